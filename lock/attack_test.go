package lock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// releaseInVain tries to release what cannot be released within a second.
func (w *world) releaseInVain(ctx context.Context, l *lock.Lease) {
	w.Helper()
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	require.Error(w, l.Release(short))
}

// A lease that was handed over has the next fence, and the one before is over.
func TestHandedOverLease(t *testing.T) {
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

// A commit that handed over without an answer, whose caller leaves it at that: the heir
// recognises its own lease.
func TestHeirRecognisesAHandOverWithoutAnAnswer(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		first, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := acquireAsync(ctx, c, lock.Name("report"))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.Error(t, first.Commit(short, w.put("x")))
		w.engine.ClearFaults()
		start := time.Now()
		next := <-got
		require.NotNil(t, next)
		assert.LessOrEqual(t, time.Since(start), 6*time.Second)
		assert.Equal(t, first.Fence()+1, next.Fence())
		require.NoError(t, next.Write(ctx, w.put("x")))
		require.NoError(t, next.Release(ctx))
	})
}

// F19, while others of the same process wait already: a ghost of the own session is found.
func TestGhostOfTheOwnSessionUnderAWaiter(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Call: 1, For: time.Minute})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		keep, err := c.Acquire(ctx, lock.Name("keeps the session"))
		require.NoError(t, err)
		l, err = other.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(50 * time.Second)
		got := acquireAsync(ctx, c, lock.Name("report"))
		time.Sleep(7 * time.Second)
		// Free exactly when the ghost arrives, and before the waiter looks.
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "BatchGetItem"})
		time.Sleep(time.Second)
		require.NoError(t, l.Release(ctx))
		time.Sleep(3 * time.Second)
		w.engine.ClearFaults()
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.True(t, r.Held(), "by a ghost")
		start := time.Now()
		select {
		case next := <-got:
			require.NotNil(t, next)
			require.NoError(t, next.Release(ctx))
		case <-time.After(time.Minute):
			t.Fatal("waits for a ghost of its own process")
		}
		assert.LessOrEqual(t, time.Since(start), 25*time.Second)
		require.NoError(t, keep.Release(ctx))
	})
}

// After 16 hand-overs in a row another process gets its turn.
func TestOtherProcessesGetTheirTurn(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{Backoff: every(20 * time.Millisecond)})
		first, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		var wait sync.WaitGroup
		var mu sync.Mutex
		served, before := 0, -1
		for range 100 {
			wait.Go(func() {
				l, err := c.Acquire(ctx, lock.Name("report"))
				if !assert.NoError(t, err) {
					return
				}
				time.Sleep(50 * time.Millisecond)
				mu.Lock()
				served++
				mu.Unlock()
				assert.NoError(t, l.Release(ctx))
			})
		}
		time.Sleep(time.Second)
		wait.Go(func() {
			l, err := other.Acquire(ctx, lock.Name("report"))
			if !assert.NoError(t, err) {
				return
			}
			mu.Lock()
			before = served
			mu.Unlock()
			assert.NoError(t, l.Release(ctx))
		})
		time.Sleep(time.Second)
		require.NoError(t, first.Release(ctx))
		wait.Wait()
		t.Logf("another process got its turn after %d hand-overs (goal 16)", before)
		assert.Equal(t, 16, before)
		assert.Equal(t, 100, served)
	})
}

// The holder's context ends with its session also after a release that failed.
func TestSessionEndIsToldToWhoeverCouldNotRelease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wire := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(wire, lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		wire.cut(refused)
		w.releaseInVain(ctx, l)
		require.NoError(t, l.Context().Err())
		start := time.Now()
		select {
		case <-l.Context().Done():
		case <-time.After(time.Minute):
			t.Fatal("never told")
		}
		assert.LessOrEqual(t, time.Since(start), 20*time.Second)
	})
}

// Requests that free what could not be released hang, and the renewals go on.
func TestHungReleasesDoNotStarveRenewals(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Lease: time.Second})
		keep, err := c.Acquire(ctx, lock.Name("keep"))
		require.NoError(t, err)
		for i := range 5 {
			l, err := c.Acquire(ctx, lock.Name(fmt.Sprint("hung", i)))
			require.NoError(t, err)
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 1000 * time.Hour, Key: w.table.KeyItem(l.Key())})
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			require.Error(t, l.Release(short))
			cancel()
		}
		time.Sleep(time.Minute)
		require.NoError(t, context.Cause(keep.Context()))
		w.engine.ClearFaults()
		time.Sleep(5 * time.Second)
		for i := range 5 {
			r, err := c.Inspect(ctx, lock.Name(fmt.Sprint("hung", i)))
			require.NoError(t, err)
			assert.False(t, r.Held())
		}
		require.NoError(t, keep.Release(ctx))
	})
}

// The holder's session ends under a waiter of its own process: the waiter goes on.
func TestWaiterOutlivesTheSessionOfItsProcess(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := acquireAsync(ctx, c, lock.Name("report"))
		require.NoError(t, w.table.Write(ctx, table.Update(sessionKey(c), table.Attr("dead").Set(1))))
		start := time.Now()
		next := <-got
		require.NotNil(t, next)
		assert.LessOrEqual(t, time.Since(start), 8*time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
		require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
		require.NoError(t, next.Write(ctx, w.put("x")))
		require.NoError(t, next.Release(ctx))
	})
}

// Two clients of one process at one table are as two processes.
func TestTwoClientsInOneProcess(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var clients []*lock.Client
		tbl := w.open()
		for range 2 {
			c, err := lock.New(tbl, lock.Config{})
			require.NoError(t, err)
			w.Cleanup(func() { assert.NoError(w, c.Close(context.Background())) })
			clients = append(clients, c)
		}
		var wait sync.WaitGroup
		inside := 0
		for i := range 40 {
			var opts []lock.Option
			if i%3 == 0 {
				opts = append(opts, lock.Fixed(time.Minute))
			}
			wait.Go(func() {
				l, err := clients[i%2].Acquire(ctx, lock.Name("report"), opts...)
				if !assert.NoError(t, err) {
					return
				}
				inside++ // unsynchronized on purpose: the lock is what keeps it in order
				assert.Equal(t, 1, inside)
				assert.NoError(t, l.Write(ctx, w.count("n")))
				inside--
				assert.NoError(t, l.Release(ctx))
			})
		}
		wait.Wait()
		assert.EqualValues(t, 40, w.counted("n"))
	})
}

// Many acquisitions at once share one session, and so do those that come as it ends.
func TestSessionReopensUnderConcurrency(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.coldClient(lock.Config{Lease: time.Second})
		for round := range 60 {
			var wait sync.WaitGroup
			for i := range 10 {
				wait.Go(func() {
					time.Sleep(time.Duration(i) * 30 * time.Millisecond)
					l, err := c.Acquire(ctx, lock.Name(fmt.Sprint(i%4)))
					if assert.NoError(t, err) {
						assert.NoError(t, l.Write(ctx, w.count("n")))
						assert.NoError(t, l.Release(ctx))
					}
				})
			}
			wait.Wait()
			time.Sleep(time.Second + time.Duration(round)*10*time.Millisecond)
		}
		assert.EqualValues(t, 600, w.counted("n"))
	})
}

// Close with many leases and many waiters, some about to be handed a lock.
func TestCloseUnderLoad(t *testing.T) {
	for round := range 20 {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.coldClient(lock.Config{})
			w.latency(3 * time.Millisecond)
			for i := range 100 {
				go func() {
					for {
						l, err := c.Acquire(ctx, lock.Name(fmt.Sprint(i%7)))
						if err != nil {
							assert.ErrorIs(t, err, lock.ErrClosed)
							return
						}
						time.Sleep(time.Millisecond)
						assert.NoError(t, l.Release(ctx))
					}
				}()
			}
			time.Sleep(time.Duration(round) * 7 * time.Millisecond / 4)
			start := time.Now()
			require.NoError(t, c.Close(ctx))
			assert.LessOrEqual(t, time.Since(start), time.Second)
			for i := range 7 {
				if r, err := c.Inspect(ctx, lock.Name(fmt.Sprint(i))); err == nil {
					assert.False(t, r.Held(), "held after Close")
				}
			}
		})
	}
}

// An heir that goes back to its place, before one who tries meanwhile and then gives up, is
// not forgotten.
func TestHeirThatGoesBackIsServed(t *testing.T) {
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
			t.Fatal("nobody serves the heir")
		}
	})
}
