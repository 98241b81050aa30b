package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A request that was refused, and is delivered once more when the lock has come free, acquires for
// whoever waits still. The lease begins with that request: others take it by what the row says.
func TestLeaseOfADuplicateBeginsWithItsRequest(t *testing.T) {
	fixed := lock.Fixed(20 * time.Second)
	targets := names(2)
	for name, tc := range map[string]struct {
		operation string
		acquire   func(c *lock.Client, ctx context.Context) (*lock.Lease, error)
	}{
		"one": {"UpdateItem", func(c *lock.Client, ctx context.Context) (*lock.Lease, error) {
			return c.Acquire(ctx, targets[1], fixed)
		}},
		"several": {"TransactWriteItems", func(c *lock.Client, ctx context.Context) (*lock.Lease, error) {
			b, err := c.AcquireAll(ctx, targets, fixed)
			if err != nil {
				return nil, err
			}
			return b.Leases()[1], nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				holder, c, other := w.client(lock.Config{}), w.client(lock.Config{}), w.client(lock.Config{})
				l, err := holder.Acquire(ctx, targets[1])
				require.NoError(t, err)
				const late = 15 * time.Second
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: tc.operation, Key: w.table.KeyItem(l.Key()), Times: 1, For: late})
				time.AfterFunc(late-10*time.Millisecond, func() {
					// Who waits does not look until the row names it.
					w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, Operation: "BatchGetItem", Times: 1})
					assert.NoError(t, l.Release(ctx))
				})
				waiting, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				mine, err := tc.acquire(c, waiting)
				require.NoError(t, err)
				assert.Less(t, mine.Remaining(), 20*time.Second-late)
				next, err := other.Acquire(waiting, targets[1])
				require.NoError(t, err)
				assert.Greater(t, next.Fence(), mine.Fence())
				assert.ErrorIs(t, context.Cause(mine.Context()), lock.ErrExpired, "told before somebody else was let in")
			})
		})
	}
}

// Nobody else of its process takes such a waiter for a ghost and frees the row, under a lease that goes
// on.
func TestDuplicateOfAWaiterIsNoGhost(t *testing.T) {
	for range 16 { // whether the waiter looks at the wrong moment is left to jitter
		virtual(t, duplicateOfAWaiter)
	}
}

func duplicateOfAWaiter(ctx context.Context, w *world) {
	slow := &slowRelease{to: w.engine.HTTPClient(), by: 300 * time.Millisecond}
	c := w.clientOver(&line{to: slow}, lock.Config{Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(100 * time.Millisecond) }})
	l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
	require.NoError(w, err)
	w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 1, For: 10 * time.Second})
	start := time.Now()
	waiter := make(chan *lock.Lease, 1)
	go func() {
		waiting, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		next, err := c.Acquire(waiting, lock.Name("report"))
		assert.NoError(w, err)
		waiter <- next
	}()
	time.Sleep(9 * time.Second)
	// Released right before the duplicate comes in, and the waiter has not looked yet.
	w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, Operation: "BatchGetItem", Times: 1})
	time.Sleep(time.Until(start.Add(9*time.Second + 990*time.Millisecond)))
	require.NoError(w, l.Release(ctx))
	time.Sleep(20 * time.Millisecond)
	slow.armed.Store(true)
	_, err = c.TryAcquire(ctx, lock.Name("report"))
	assert.ErrorIs(w, err, lock.ErrHeld, "by the waiter, which is about to hear of it")
	next := <-waiter
	if next == nil {
		return // said already
	}
	time.Sleep(time.Minute)
	require.NoError(w, context.Cause(next.Context()))
	require.NoError(w, next.Write(ctx, w.put("z")))
}
