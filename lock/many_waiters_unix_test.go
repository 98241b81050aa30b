//go:build unix

package lock_test

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
)

// cpu is the processor time that this process has used.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// P17: as long as nothing changes, waiting costs little, however many locks a process waits for.
func TestManyWaiters(t *testing.T) {
	const inFull, settle = 4000, time.Minute
	waiters, during := testkit.IfSmall(150, inFull), time.Duration(testkit.IfSmall(20, 120))*time.Second
	virtual(t, func(ctx context.Context, w *world) {
		w.guardian = nil // it would take most of the measured time
		holder, c := w.client(quiet), w.client(quiet)
		targets := make([]lock.Target, waiters)
		for i := range targets {
			targets[i] = lock.Name(fmt.Sprintf("job-%d", i))
			_, err := holder.Acquire(ctx, targets[i])
			require.NoError(t, err)
		}
		w.latency(2 * time.Millisecond)
		waiting, cancel := context.WithCancel(ctx)
		var all sync.WaitGroup
		for _, target := range targets {
			all.Go(func() {
				_, err := c.Acquire(waiting, target)
				assert.ErrorIs(t, err, lock.ErrHeld)
			})
		}
		time.Sleep(settle)
		// The engine runs in this process: its work is included.
		w.engine.ResetRequests()
		before, began := cpu(t), time.Now()
		time.Sleep(during)
		used, took := cpu(t)-before, time.Since(began)
		requests := len(w.engine.Requests())
		t.Logf("%.1f ms of CPU per virtual second (goal 50 ms, the engine's work included)", used.Seconds()*1000/took.Seconds())
		testkit.Check(t, fmt.Sprintf("P17, %d waiters on as many locks", waiters),
			testkit.AtMost(float64(requests)/took.Seconds(), "requests a second", 25).InFull(waiters, inFull))
		cancel()
		all.Wait()
	})
}
