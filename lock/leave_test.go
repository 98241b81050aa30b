package lock_test

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A lease that is passed to somebody whose waiting has just ended, and who has not left yet, is released.
func TestLeaseThatIsPassedAsTheWaitingEnds(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that the next goroutine does not leave in between
	virtual(t, func(ctx context.Context, w *world) {
		var answered atomic.Pointer[context.CancelFunc] // called when the pass was applied
		c := w.clientOver(w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
			resp, err := send()
			if leave := answered.Load(); leave != nil && operation == "UpdateItem" && strings.Contains(body, "LOCK#report") {
				(*leave)()
			}
			return resp, err
		}), lock.Config{})
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
			require.Equal(t, 1, lock.Queued(c, l.Key()))
			answered.Store(&cancel)
			require.NoError(t, l.Release(ctx))
			if err := <-left; err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
			answered.Store(nil)
			time.Sleep(time.Second)
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.False(t, r.Held())
		}
	})
}

// A goroutine whose session has ended as the lock was passed to it keeps the process's place: it enters the line anew
// before those that wait behind it.
func TestLeaseThatIsPassedAsItsSessionEnds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		var ends atomic.Bool // when the pass was applied
		c := w.clientOver(w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
			resp, err := send()
			if operation == "UpdateItem" && strings.Contains(body, "LOCK#report") && ends.CompareAndSwap(true, false) {
				wall.jump(time.Minute)
			}
			return resp, err
		}), quiet, table.WithClock(wall.now))
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		var order atomic.Int32
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				l, err := c.Acquire(ctx, lock.Name("report"))
				if assert.NoError(t, err) {
					assert.EqualValues(t, i+1, order.Add(1))
					assert.NoError(t, l.Release(ctx))
				}
			})
			time.Sleep(time.Second)
		}
		ends.Store(true)
		require.NoError(t, l.Release(ctx))
		all.Wait()
	})
}

// A commit may have passed the lock on although its answer never came. If the goroutine that it went to has
// left meanwhile, the holder's release frees it.
func TestTargetOfAnUnclearCommitHasLeft(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		waiting, leave := context.WithTimeout(ctx, 2*time.Second)
		defer leave()
		left := outcome(waiting, c, lock.Name("report"))
		time.Sleep(time.Second)
		require.Equal(t, 1, lock.Queued(c, l.Key()))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		require.ErrorIs(t, l.Commit(short, w.put("x")), context.DeadlineExceeded)
		require.ErrorIs(t, <-left, context.DeadlineExceeded)
		w.engine.ClearFaults()
		require.NoError(t, l.Release(ctx))
		time.Sleep(time.Second)
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.False(t, r.Held())
	})
}

// A goroutine that leaves while the lock is being passed to it is told who has held it, like all others.
func TestTargetThatLeavesHearsWhoHeldTheLock(t *testing.T) {
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
