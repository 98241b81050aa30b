package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// The leases of several locks count from before the transaction that took them was sent,
// however long it took to learn their fences.
func TestLeasesOfABundleCountFromTheRequest(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		for _, operation := range []string{"TransactWriteItems", "BatchGetItem"} {
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 2 * time.Second, Operation: operation})
		}
		b, err := c.AcquireAll(ctx, names(3), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		for _, l := range b.Leases() {
			assert.LessOrEqual(t, l.Remaining(), 16*time.Second)
		}
	})
}

// A lock that is taken away between the transaction that took it with others and the read of
// its fence is nobody's in this process, and the others are freed.
func TestLockOfABundleThatIsTakenBeforeItsFenceIsRead(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, operator := w.client(lock.Config{}), w.client(lock.Config{Owner: "operator"})
		targets := names(3)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 2 * time.Second, Operation: "BatchGetItem", Times: 1})
		time.AfterFunc(time.Second, func() {
			r, err := operator.Inspect(ctx, targets[1])
			if !assert.NoError(t, err) {
				return
			}
			assert.NoError(t, operator.ForceRelease(ctx, targets[1], r.Holder().Ticket))
			_, err = operator.TryAcquire(ctx, targets[1])
			assert.NoError(t, err)
		})
		_, err := c.TryAcquireAll(ctx, targets)
		var held *lock.HeldAllError
		require.ErrorAs(t, err, &held)
		require.Len(t, held.Held, 1)
		assert.Equal(t, "operator", held.Held[0].Owner)
		time.Sleep(5 * time.Second) // for what is taken back
		w.free(ctx, []lock.Target{targets[0], targets[2]})
	})
}

// Each of the locks is guarded, whichever of them was lost.
func TestBundleWritesNothingWithoutOneOfItsLocks(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, operator := w.client(lock.Config{}), w.client(lock.Config{})
		for i, target := range names(3) {
			b, err := c.AcquireAll(ctx, names(3))
			require.NoError(t, err)
			w.force(ctx, operator, target)
			require.ErrorIs(t, b.Write(ctx, w.count("n")), lock.ErrLost, "without lock %d", i)
			require.ErrorIs(t, b.Release(ctx), lock.ErrLost)
		}
		assert.Zero(t, w.counted("n"))
	})
}

// A transaction that takes several locks is sent under another token once it is old. It then
// meets what an earlier one has taken, and knows it.
func TestOldTransactionIsRecognised(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{}, table.WithRetry(table.Retry{Backoff: func() backoff.BackOff {
					return backoff.NewConstantBackOff(10 * time.Millisecond)
				}}))
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: time.Hour, Operation: "TransactWriteItems", Times: 3})
				start := time.Now()
				b, err := c.TryAcquireAll(ctx, names(3), opts...)
				require.NoError(t, err)
				waited := time.Since(start)
				require.Greater(t, waited, 10*time.Second, "half of a lease")
				if opts != nil {
					assert.LessOrEqual(t, b.Leases()[2].Remaining(), 20*time.Second-waited)
				}
				require.NoError(t, b.Commit(ctx, w.count("n")))
				assert.EqualValues(t, 1, w.counted("n"))
			})
		})
	}
}
