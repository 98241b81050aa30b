package lock_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// The local clock decides nothing about a lease of its own: others count it from DynamoDB's time.
func TestFixedLeaseOfAHolderWhoseClockIsOff(t *testing.T) {
	for name, by := range map[string]time.Duration{"an hour behind": -time.Hour, "an hour ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				off := table.WithClock(func() time.Time { return time.Now().Add(by) })
				wire := &line{to: w.engine.HTTPClient()}
				l, err := w.clientOver(wire, lock.Config{}, off).Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
				require.NoError(t, err)
				next := w.client(lock.Config{})
				time.Sleep(15 * time.Second)
				require.NoError(t, l.Renew(ctx))
				time.Sleep(15 * time.Second)
				_, err = next.TryAcquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrHeld)
				require.NoError(t, l.Context().Err())

				wire.cut(refused)
				time.Sleep(10 * time.Second)
				_, err = next.TryAcquire(ctx, lock.Name("report"))
				require.NoError(t, err, "it has ended, and its end was recorded")
				assert.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
			})
		})
	}
}

// A holder whose clock is set back, as are the dates of answers, renews all the same: others see each renewal.
func TestFixedLeaseIsRenewedWhereTheClockIsSetBack(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var by atomic.Int64
		clock := table.WithClock(func() time.Time { return time.Now().Add(time.Duration(by.Load())) })
		l, err := w.client(lock.Config{}, clock).Acquire(ctx, lock.Name("report"), lock.Fixed(10*time.Second))
		require.NoError(t, err)
		waits := acquireAsync(ctx, w.client(lock.Config{Expiry: lock.ObservedOnly}), lock.Name("report"))
		for i := range 10 {
			time.Sleep(8 * time.Second)
			back := -time.Duration(i+1) * time.Minute
			by.Store(int64(back))
			w.engine.ClearFaults()
			w.engine.Inject(tabletest.Fault{Kind: tabletest.SkewDate, For: back})
			require.NoError(t, l.Renew(ctx))
		}
		require.NoError(t, l.Context().Err())
		require.NoError(t, l.Write(ctx, w.put("a")))
		require.NoError(t, l.Release(ctx))
		require.NotNil(t, <-waits)
	})
}

// A look that takes longer than a lease does not show that the lease has lasted for so long.
func TestFixedLeaseThatASlowLookFinds(t *testing.T) {
	const length, slow = 2 * time.Second, 2500 * time.Millisecond // which is not too long for a request
	virtual(t, func(ctx context.Context, w *world) {
		waiting, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		target := lock.Name("report")
		held, err := w.client(quiet).Acquire(ctx, target)
		require.NoError(t, err)
		var once atomic.Bool
		behind := w.clientOver(w.passing(func(operation, _ string, send func() (*http.Response, error)) (*http.Response, error) {
			if operation == "BatchGetItem" && once.CompareAndSwap(true, false) {
				time.Sleep(slow - 10*time.Millisecond)
				assert.NoError(t, held.Release(ctx))
				time.Sleep(10 * time.Millisecond)
			}
			return send()
		}), quiet)
		next := acquireAsync(waiting, w.client(quiet), target, lock.Fixed(length))
		last := acquireAsync(waiting, behind, target)
		once.Store(true)

		l := <-next
		require.NotNil(t, l, "the one that waits behind it has taken its place")
		require.NoError(t, context.Cause(l.Context()))
		require.NotNil(t, <-last)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired, "told before another one was let in")
	})
}

// A waiter that loses its turn before it has its lease does not get one under the fence of the holder after it.
func TestFixedLeaseThatIsTakenBeforeItBegins(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		target, op := lock.Name("report"), w.client(quiet)
		held, err := w.client(quiet).Acquire(ctx, target)
		require.NoError(t, err)
		var renewed atomic.Bool
		c := w.clientOver(w.passing(func(_, body string, send func() (*http.Response, error)) (*http.Response, error) {
			answer, err := send()
			if strings.Contains(body, `"renewed"`) && !renewed.Swap(true) {
				w.force(ctx, op, target)
				time.Sleep(2 * time.Second) // in which the row is looked at
			}
			return answer, err
		}), quiet)
		mine := acquireAsync(ctx, c, target, lock.Fixed(20*time.Second))
		next := acquireAsync(ctx, w.client(quiet), target)
		require.NoError(t, held.Release(ctx))

		other := <-next
		time.Sleep(5 * time.Second)
		require.True(t, renewed.Load())
		require.NoError(t, other.Write(ctx, w.put("x")), "it holds the lock")
		require.Empty(t, mine)
		require.NoError(t, other.Release(ctx))
		assert.Greater(t, (<-mine).Fence(), other.Fence())
	})
}

// A lease that is shorter than the time between two looks of its waiter keeps its turn until that waiter has noticed it.
func TestShortFixedLeaseKeepsItsPlace(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		target, first, next := lock.Name("report"), w.client(quiet), w.client(quiet)
		often := quiet
		often.Backoff = func() backoff.BackOff { return backoff.NewConstantBackOff(10 * time.Millisecond) }
		last := w.client(often)
		for range 10 {
			held, err := first.Acquire(ctx, target)
			require.NoError(t, err)
			short := acquireAsync(ctx, next, target, lock.Fixed(lock.MinFixed))
			behind := acquireAsync(ctx, last, target)
			time.Sleep(10 * time.Second)
			require.NoError(t, held.Release(ctx))
			l := <-behind
			require.Len(t, short, 1, "it was first")
			assert.Less(t, (<-short).Fence(), l.Fence())
			require.NoError(t, l.Release(ctx))
		}
	})
}

// A lease of its own counts from its request, however long the answer takes.
func TestFixed_CountsFromTheRequest(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Margin: time.Millisecond})
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, Operation: "UpdateItem", Times: 1, For: 1500 * time.Millisecond})
		start := time.Now()
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		assert.LessOrEqual(t, l.Remaining(), 20*time.Second-time.Since(start))
		require.NoError(t, l.Release(ctx))
	})
}
