package lock_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
)

// P3: for any number of locks, one renewal per period, no goroutine for each, and little memory.
func TestHoldTenThousand(t *testing.T) {
	const locks, held, period = 10_000, 10 * time.Minute, 5 * time.Second
	virtual(t, func(ctx context.Context, w *world) {
		w.latency(20 * time.Millisecond)
		wire := &line{to: w.engine.HTTPClient()}
		goroutines := runtime.NumGoroutine()
		// The test does not close this client. Its memory is measured when nothing refers to it any more.
		c := w.unclosed(wire, lock.Config{Logger: slog.New(slog.DiscardHandler)})
		leases := make([]*lock.Lease, locks)
		slots := make(chan struct{}, 64)
		var wait sync.WaitGroup
		for i := range leases {
			slots <- struct{}{}
			wait.Go(func() {
				defer func() { <-slots }()
				l, err := c.Acquire(ctx, lock.Name(fmt.Sprintf("job-%d", i)))
				if assert.NoError(t, err) {
					leases[i] = l
				}
			})
		}
		wait.Wait()
		require.False(t, t.Failed())
		more := locks
		for range 5 { // the least of several: requests, and sometimes the runtime, have goroutines
			time.Sleep(700 * time.Millisecond)
			synctest.Wait()
			more = min(more, runtime.NumGoroutine()-goroutines)
		}
		w.engine.ResetRequests()
		time.Sleep(held)
		renewals, lost := 0, 0
		for _, r := range w.engine.Requests() {
			if r.Operation != "BatchGetItem" && r.Operation != "GetItem" {
				renewals++
			}
		}
		for _, l := range leases {
			if l.Context().Err() != nil {
				lost++
			}
		}
		// The engine keeps its rows, and only the client ends: what the heap loses was the client's.
		wire.cut(refused)
		w.engine.ResetRequests()
		with := heap()
		time.Sleep(time.Minute)
		require.ErrorIs(t, context.Cause(leases[0].Context()), lock.ErrExpired)
		clear(leases)
		c = nil
		without := heap()
		testkit.Check(t, fmt.Sprintf("P3, %d locks for %v", locks, held),
			testkit.Within(float64(renewals)/(held.Seconds()/period.Seconds()), "writes per period", 1, 0.15),
			testkit.Exactly(lost, "lost", 0), testkit.AtMost(more, "goroutines in all", 2),
			testkit.AtMost((float64(with)-float64(without))/locks, "bytes per lock", 1536))
		require.Greater(t, with, without+100*locks, "the leases were not in what was measured")
	})
}

// F20. Repetitions share the days.
func TestHoldThirtyDays(t *testing.T) {
	first, end := testkit.Repetition(t).Share(testkit.IfSmall(5, 30))
	virtual(t, func(ctx context.Context, w *world) {
		const retention = day // the shortest
		c := w.client(lock.Config{Lease: time.Hour, Retention: retention})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		session := sessionKey(c)
		time.Sleep(retention) // so that all days are beyond it
		swept, deleted, lost := 0, 0, 0
		for day := range end - first {
			time.Sleep(24 * time.Hour)
			swept += w.engine.Sweep()
			rows, err := w.table.BatchGet(ctx, []keys.Key{l.Key(), session}, true)
			require.NoError(t, err, "day %d", day)
			for _, row := range rows {
				if row == nil {
					deleted++
				}
			}
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err, "day %d", day)
			if l.Context().Err() != nil || !r.Held() || r.Fence != l.Fence() {
				lost++
			}
		}
		testkit.Check(t, fmt.Sprintf("F20, %d days", end-first), testkit.Exactly(deleted, "rows in use deleted", 0), testkit.Exactly(lost, "days without the lock", 0),
			testkit.AtLeast(swept, "rows not in use deleted", 1))
		require.NoError(t, l.Release(ctx))
	})
}

// Clients of one lock may have different retentions. What one with the shortest has written last does not have the row
// deleted while another one holds the lock, though that one would keep it for longer.
func TestHold_IsNotEndedByTheRetentionOfOthers(t *testing.T) {
	for name, passes := range map[string]bool{"waited behind it": false, "passed it on": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				brief := w.client(lock.Config{Lease: time.Hour, Retention: day})
				holder := w.client(lock.Config{Lease: time.Hour})
				var l *lock.Lease
				if passes {
					first, err := brief.Acquire(ctx, lock.Name("report"))
					require.NoError(t, err)
					got := acquireAsync(ctx, holder, lock.Name("report"))
					time.Sleep(time.Second)
					require.NoError(t, first.Release(ctx))
					l = <-got
					require.NotNil(t, l)
				} else {
					var err error
					l, err = holder.Acquire(ctx, lock.Name("report"))
					require.NoError(t, err)
					waiting, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					_, err = brief.Acquire(waiting, lock.Name("report"))
					require.ErrorIs(t, err, lock.ErrHeld)
				}
				for hour := range 5 * 24 {
					time.Sleep(time.Hour)
					w.engine.Sweep()
					_, err := w.table.Get(ctx, l.Key(), true)
					require.NoError(t, err, "after %d hours", hour+1)
				}
				require.NoError(t, l.Write(ctx, w.put("x")))
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}
