package lock_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A pass within a process is not reported as a takeover.
func TestPass_IsNotReportedAsATakeover(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		n := &nosy{Handler: slog.DiscardHandler}
		c := w.client(lock.Config{Logger: slog.New(n)})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := acquireAsync(ctx, c, lock.Name("report"))
		require.NoError(t, l.Release(ctx))
		require.NoError(t, (<-got).Release(ctx))
		assert.Zero(t, n.count("INFO lock: taken over after the holder's lease ended"))
	})
}

// A goroutine to which the lock could not be passed keeps its place in the queue.
func TestPass_TargetOfAFailedPassKeepsItsPlace(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		first, second := acquireAsync(ctx, c, lock.Name("report")), acquireAsync(ctx, c, lock.Name("report"))
		way.cut(refused)
		w.releaseInVain(ctx, l)
		way.cut(open)
		require.NoError(t, l.Release(ctx))
		select {
		case next := <-first:
			require.NotNil(t, next)
			require.NoError(t, next.Release(ctx))
			require.NoError(t, (<-second).Release(ctx))
		case next := <-second:
			require.NoError(t, next.Release(ctx))
			require.NoError(t, (<-first).Release(ctx))
			t.Error("the second was served first")
		}
	})
}

// With a negative Config.Handoffs a goroutine never passes the lock to another one: that one enters the line, also if nobody else waits.
func TestHandoffs_NegativeMeansNever(t *testing.T) {
	for handoffs, requests := range map[int]int{0: 1, 1: 1, -1: 2} {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(lock.Config{Handoffs: handoffs})
			first, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			got := acquireAsync(ctx, c, lock.Name("report"))
			var next *lock.Lease
			ops := w.requests(func() {
				require.NoError(t, first.Release(ctx))
				next = <-got
			})
			assert.Len(t, ops, requests, "%d handoffs: %v", handoffs, ops)
			require.NoError(t, next.Release(ctx))
		})
	}
}

// A lease that was passed has the next fence and its whole length, and the lease before is over.
func TestPass_GivesAWholeLease(t *testing.T) {
	for _, commits := range []bool{false, true} {
		for _, opts := range [][]lock.Option{nil, {lock.Fixed(time.Minute)}} {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{})
				first, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				got := acquireAsync(ctx, c, lock.Name("report"), opts...)
				ops := w.requests(func() {
					if commits {
						require.NoError(t, first.Commit(ctx, w.count("n")))
					} else {
						require.NoError(t, first.Release(ctx))
					}
				})
				next := <-got
				require.NotNil(t, next)
				assert.Len(t, ops, 1)
				assert.Equal(t, first.Fence()+1, next.Fence())
				require.ErrorIs(t, context.Cause(first.Context()), lock.ErrReleased)
				require.ErrorIs(t, first.Write(ctx, w.put("x")), lock.ErrReleased)
				require.ErrorIs(t, w.table.Write(ctx, w.put("x"), first.Guard()), lock.ErrReleased)
				require.NoError(t, next.Write(ctx, w.put("x")))
				r, err := c.Inspect(ctx, lock.Name("report"))
				require.NoError(t, err)
				assert.Equal(t, next.Fence(), r.Fence)
				assert.Equal(t, len(opts) == 0, r.Holder().Session != "")
				require.NoError(t, next.Release(ctx))
			})
		}
	}
}

// The target of a pass returns to its place in the queue, before a caller that tries meanwhile and then gives up. It is not
// forgotten.
func TestPass_TargetThatReturnsIsServed(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		first, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := acquireAsync(ctx, c, lock.Name("report"))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Hour, Key: w.table.KeyItem(first.Key())})
		var wait sync.WaitGroup
		wait.Go(func() {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			assert.Error(t, first.Release(short))
		})
		time.Sleep(100 * time.Millisecond)
		wait.Go(func() {
			short, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			_, err := c.Acquire(short, lock.Name("report"))
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
		wait.Wait()
		w.engine.ClearFaults()
		select {
		case next := <-got:
			require.NotNil(t, next)
			require.NoError(t, next.Release(ctx))
		case <-time.After(time.Minute):
			t.Fatal("nobody serves the target of the pass")
		}
	})
}

// A refusal names a lease of this process, and is answered after that lease was released. It is not waited for: it passes
// the lock to nobody any more. The acquire of a Fixed lease asks no session.
func TestPass_LeaseThatIsReleasedIsNotWaitedFor(t *testing.T) {
	fixed := lock.Fixed(time.Minute)
	for name, tc := range map[string]struct {
		operation string
		acquire   func(c *lock.Client, ctx context.Context) error
	}{
		"one": {"UpdateItem", func(c *lock.Client, ctx context.Context) error {
			_, err := c.Acquire(ctx, names(2)[1], fixed)
			return err
		}},
		"several": {"TransactWriteItems", func(c *lock.Client, ctx context.Context) error {
			_, err := c.AcquireAll(ctx, names(2), fixed)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{Lease: time.Hour})
				l, err := c.Acquire(ctx, names(2)[1])
				require.NoError(t, err)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 100 * time.Millisecond, Operation: tc.operation, Times: 1})
				time.AfterFunc(50*time.Millisecond, func() { assert.NoError(t, l.Release(ctx)) })
				waiting, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				start := time.Now()
				require.NoError(t, tc.acquire(c, waiting))
				assert.Less(t, time.Since(start), 2*time.Second)
			})
		})
	}
}

// A waiter for a lock of its own process gets it by a pass. Nothing is polled meanwhile.
func TestPass_IsNotPolledFor(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := acquireAsync(ctx, c, lock.Name("report"))
		looks := times("BatchGetItem", w.requests(func() { time.Sleep(5 * time.Minute) }))
		assert.LessOrEqual(t, looks, 60+1, "one in a quarter of the lease")
		require.NoError(t, l.Release(ctx))
		next := <-got
		require.NotNil(t, next)
		require.NoError(t, next.Release(ctx))
	})
}

// The session of a waiter ends while the lock is being passed to it. The waiter goes on waiting, and acquires under another
// session: it has lost nothing yet.
func TestPass_TargetWhoseSessionHasEndedWaitsOn(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		c := w.client(lock.Config{}, table.WithClock(wall.now))
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := make(chan error, 1)
		go func() {
			next, err := c.Acquire(ctx, lock.Name("report"))
			if err == nil {
				err = next.Release(ctx)
			}
			got <- err
		}()
		time.Sleep(time.Second)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 2 * time.Second, Key: w.table.KeyItem(l.Key()), Operation: "UpdateItem", Times: 1})
		time.AfterFunc(time.Second, func() { wall.jump(time.Minute) }) // the machine was suspended
		err = <-got
		assert.NoError(t, err)
	})
}

// A lease that is passed to a goroutine whose waiting has just ended, and that has not left yet, is released.
func TestPass_TargetThatStopsWaitingReleases(t *testing.T) {
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

// A goroutine whose session has ended as the lock was passed to it keeps the process's place: it enters the line again
// before those that wait behind it.
func TestPass_TargetWhoseSessionEndsKeepsThePlace(t *testing.T) {
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

// A goroutine that stops waiting while the lock is being passed to it learns who held it, like all others.
func TestPass_TargetThatLeavesIsToldTheHolder(t *testing.T) {
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

// A goroutine stops waiting while the lock is being passed to it. The next one of its process gets the ticket of that pass, and writes its own
// payload.
func TestPass_OfOneThatHasLeftGoesToTheNext(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		bounded, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		left := outcome(bounded, c, lock.Name("report"), lock.WithData("of the one that leaves"))
		time.Sleep(time.Second)
		got := acquireAsync(ctx, c, lock.Name("report"), lock.WithData("of the next"))
		time.Sleep(time.Second)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 2 * time.Second, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 1})
		require.NoError(t, l.Release(ctx))
		require.ErrorIs(t, <-left, context.DeadlineExceeded)
		next := <-got
		require.NotNil(t, next)
		assert.Equal(t, l.Fence()+1, next.Fence(), "the lock was passed once")
		var data string
		require.NoError(t, next.Data().Decode(&data))
		assert.Equal(t, "of the next", data)
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, r.Data.Decode(&data))
		assert.Equal(t, "of the next", data)
		require.NoError(t, next.Release(ctx))
	})
}

// A waiter that leaves just as the lock is passed to it does not keep the lock.
func TestPass_WaiterThatLeavesKeepsNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		w.latency(10 * time.Millisecond)
		for range 50 {
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			bounded, cancel := context.WithTimeout(ctx, time.Second)
			var wait sync.WaitGroup
			wait.Go(func() {
				if l, err := c.Acquire(bounded, lock.Name("report")); err == nil {
					assert.NoError(t, l.Release(ctx))
				}
			})
			time.Sleep(time.Second - 5*time.Millisecond)
			require.NoError(t, l.Release(ctx))
			wait.Wait()
			cancel()
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.False(t, r.Held())
		}
	})
}

// A pass that is under way when Close is called is withdrawn before Close returns.
func TestPass_IsWithdrawnBeforeCloseReturns(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		waited := outcome(ctx, c, lock.Name("report"))
		time.Sleep(time.Second)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 2 * time.Second, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 1})
		released := make(chan error, 1)
		go func() { released <- l.Release(ctx) }()
		time.Sleep(time.Second)
		r, err := other.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NotEqual(t, l.Ticket(), r.Holder().Ticket, "it was passed")
		closed := make(chan error, 1)
		go func() { closed <- c.Close(ctx) }()
		require.ErrorIs(t, <-waited, lock.ErrClosed)
		synctest.Wait()
		select {
		case err := <-closed:
			require.Fail(t, "closed while a lock is being handed over", "%v", err)
		default:
		}
		require.NoError(t, <-closed)
		require.NoError(t, <-released)
		next, err := other.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, next.Release(ctx))
	})
}

// A waiter knows as much about a holder that got the lock by a pass as about any other.
func TestPass_WaitersKnowTheHolder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		began := time.Now().UTC()
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		second := acquireAsync(ctx, c, lock.Name("report"), lock.WithData("of the second"))
		bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		ended := outcome(bounded, c, lock.Name("report"))
		time.Sleep(time.Second)
		require.NoError(t, l.Release(ctx))
		next := <-second
		require.NotNil(t, next)
		var held *lock.HeldError
		require.ErrorAs(t, <-ended, &held)
		assert.Equal(t, next.Fence(), held.Fence)
		assert.Equal(t, began, held.Since, "since when its process holds it")
		var data string
		require.NoError(t, held.Data.Decode(&data))
		assert.Equal(t, "of the second", data)
		require.NoError(t, next.Release(ctx))
	})
}

// The target of a pass that returned to the queue learns, when its waiting ends, who holds the lock then.
func TestPass_TargetThatReturnedNamesTheHolder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, lock.Config{Owner: "first", Logger: quiet.Logger})
		op := w.client(lock.Config{Owner: "second", Logger: quiet.Logger})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		ended := outcome(bounded, c, lock.Name("report"))
		time.Sleep(100 * time.Millisecond)
		way.cut(refused)
		w.releaseInVain(ctx, l)
		w.force(ctx, op, lock.Name("report"))
		next, err := op.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(open)
		err = <-ended
		var held *lock.HeldError
		require.ErrorAs(t, err, &held)
		assert.Equal(t, "second", held.Owner)
		require.NoError(t, next.Release(ctx))
	})
}

// A lasting refusal, as of a policy that has changed, meets the first write of a waiter whose turn has come. Its call returns the refusal,
// and so do the calls behind it: they do not wait until their contexts end.
func TestPass_ALastingRefusalOfTheFirstWriteReachesTheCallsBehind(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		text := `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"no identity-based policy allows it"}`
		var denied atomic.Bool
		c := w.clientOver(w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
			if denied.Load() && operation == "UpdateItem" && strings.Contains(body, "LOCK#report") {
				return &http.Response{StatusCode: http.StatusBadRequest, Body: io.NopCloser(strings.NewReader(text)), Header: http.Header{}}, nil
			}
			return send()
		}), quiet)
		held, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		bounded, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		first := outcome(bounded, c, lock.Name("report"), lock.WithData("d"))
		time.Sleep(time.Second)
		second := outcome(bounded, c, lock.Name("report"))
		time.Sleep(time.Second)
		synctest.Wait()
		denied.Store(true)
		defer denied.Store(false) // so that Close can release
		require.NoError(t, held.Release(ctx))
		require.ErrorIs(t, <-first, table.ErrDenied)
		assert.ErrorIs(t, <-second, table.ErrDenied)
	})
}
