package lock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table/tabletest"
)

// F19: a request that is applied once more after its ticket has left the line makes a holder that nobody
// is. However many there are of one process, each is gone within a lease and a period.
func TestGhostsAreGoneWithinALeaseAndAPeriod(t *testing.T) {
	const lease, period, late = 20 * time.Second, 5 * time.Second, 30 * time.Second
	for _, n := range []int{1, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.client(quiet), w.client(quiet)
				keeps, err := c.Acquire(ctx, lock.Name("keeps the session"))
				require.NoError(t, err)
				w.latency(2 * time.Millisecond)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", When: ofLocks, For: late})
				targets := names(n)
				list := make([]*lock.Lease, n)
				for i := range list {
					list[i], err = c.Acquire(ctx, targets[i])
					require.NoError(t, err)
				}
				w.engine.ClearFaults()
				w.latency(2 * time.Millisecond)
				for _, l := range list {
					require.NoError(t, l.Release(ctx))
				}
				time.Sleep(late + time.Second)
				ghosts := 0
				for _, target := range targets {
					r, err := other.Inspect(ctx, target)
					require.NoError(t, err)
					if r.Held() {
						ghosts++
					}
				}
				require.Positive(t, ghosts, "they are there")
				t.Logf("%d of %d locks are held by a ghost", ghosts, n)

				start := time.Now()
				waiting, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				var all sync.WaitGroup
				var mu sync.Mutex
				var took time.Duration
				for i, target := range targets {
					all.Go(func() {
						l, err := other.Acquire(waiting, target)
						if !assert.NoError(t, err) {
							return
						}
						assert.Greater(t, l.Fence(), list[i].Fence())
						mu.Lock()
						defer mu.Unlock()
						took = max(took, time.Since(start))
					})
				}
				all.Wait()
				testkit.Check(t, fmt.Sprintf("F19, %d ghosts", n), testkit.AtMost(took, " until all are gone", lease+period+period/10+time.Second))
				require.NoError(t, context.Cause(keeps.Context()), "their process has lost nothing else")
				require.ErrorIs(t, list[0].Write(ctx, w.put("x")), lock.ErrReleased)
			})
		})
	}
}
