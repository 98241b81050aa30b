package lock_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A lease that is handed to somebody whose waiting has just ended, and who has not left yet,
// is passed on.
func TestLeaseThatIsHandedOverAsTheWaitingEnds(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that the heir does not leave in between
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		for range 20 {
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			waiting, cancel := context.WithCancel(ctx)
			left := make(chan error, 1)
			go func() {
				next, err := c.Acquire(waiting, lock.Name("report"))
				if err == nil {
					err = next.Release(ctx)
				}
				left <- err
			}()
			time.Sleep(time.Second)
			require.Equal(t, 1, lock.Heirs(c, l.Key()))
			finish, err := lock.HandOver(ctx, l)
			require.NoError(t, err)
			cancel()
			finish()
			if err := <-left; err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
			time.Sleep(time.Second)
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.False(t, r.Held())
		}
	})
}

// A commit may have handed the lock over although its answer never came. If the heir has left
// meanwhile, the lock is taken back.
func TestHeirOfAnUnclearCommitHasLeft(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		waiting, leave := context.WithTimeout(ctx, 2*time.Second)
		defer leave()
		left := outcome(waiting, c, lock.Name("report"))
		time.Sleep(time.Second)
		require.Equal(t, 1, lock.Heirs(c, l.Key()))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		require.ErrorIs(t, l.Commit(short, w.put("x")), context.DeadlineExceeded)
		require.ErrorIs(t, <-left, context.DeadlineExceeded)
		w.engine.ClearFaults()
		time.Sleep(time.Second)
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.False(t, r.Held())
	})
}

// Whoever leaves while the lock is being handed over to it is told who has held it, like all others.
func TestHeirThatLeavesHearsWhoHeldTheLock(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		left := make(chan error, 1)
		go func() {
			waiting, cancel := context.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			_, err := c.Acquire(waiting, lock.Name("report"))
			left <- err
		}()
		time.Sleep(2 * time.Second)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 2500 * time.Millisecond, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 1})
		require.NoError(t, l.Release(ctx))
		err = <-left
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var held *lock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, l.Fence(), held.Fence)
	})
}
