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

func TestCloseGoesOnPastErrorsAndRetries(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		leases := make([]*lock.Lease, 40)
		for i := range leases {
			var err error
			leases[i], err = c.Acquire(ctx, lock.Name(fmt.Sprint(i)))
			require.NoError(t, err)
		}
		key := w.table.KeyItem(leases[7].Key())
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Key: key})
		bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		err := c.Close(bounded)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, table.ErrThrottled)
		for i, l := range leases {
			if i != 7 {
				require.ErrorIs(t, context.Cause(l.Context()), lock.ErrReleased)
			}
		}
		<-leases[7].Context().Done()
		require.ErrorIs(t, context.Cause(leases[7].Context()), lock.ErrReleased, "its session has ended")
		w.engine.ClearFaults()
		time.Sleep(time.Minute) // the session's row is gone
		w.engine.ResetRequests()
		require.NoError(t, c.Close(ctx))
		assert.Len(t, w.engine.Requests(), 1)
		require.ErrorIs(t, context.Cause(leases[7].Context()), lock.ErrReleased)
		require.NoError(t, c.Close(ctx), "again does nothing")
		assert.Len(t, w.engine.Requests(), 1)
	})
}

// Leases are renewed until their release is through, however long Close takes.
func TestCloseDoesNotStarveRenewals(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		slow, err := c.Acquire(ctx, lock.Name("slow"))
		require.NoError(t, err)
		// Guarded writes that take longer than the lease together hold the release up.
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 4 * time.Second, Operation: "TransactWriteItems"})
		var group sync.WaitGroup
		for range 15 {
			group.Go(func() { assert.NoError(t, slow.Write(ctx, w.put("x"))) })
		}
		time.Sleep(time.Second)
		closed := make(chan error, 1)
		go func() { closed <- c.Close(ctx) }()
		for range 50 {
			time.Sleep(time.Second)
			_, err := other.TryAcquire(ctx, lock.Name("slow"))
			require.ErrorIs(t, err, lock.ErrHeld)
		}
		require.NoError(t, context.Cause(slow.Context()))
		require.NoError(t, <-closed)
		group.Wait()
		l, err := other.TryAcquire(ctx, lock.Name("slow"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
	})
}

func TestCloseWithEndedContextReleases(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		_, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		require.NoError(t, c.Close(ended))
		_, err = w.client(lock.Config{}).TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
	})
}

// When Close has returned, nothing that the client was about to acquire is held.
func TestCloseTakesBackAcquisitionsUnderWay(t *testing.T) {
	for _, after := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(lock.Config{})
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 10 * time.Second, After: after, Operation: "UpdateItem", Times: 1})
			acquired := outcome(ctx, c, lock.Name("report"))
			time.Sleep(time.Second)
			start := time.Now()
			require.NoError(t, c.Close(ctx))
			assert.Less(t, time.Since(start), time.Second)
			require.ErrorIs(t, <-acquired, lock.ErrClosed)
			_, err := w.client(lock.Config{}).TryAcquire(ctx, lock.Name("report"))
			require.NoError(t, err, "answer held up: %v", after)
		})
	}
}

func TestClosedClientSendsNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, c.Close(ctx))
		ops := w.requests(func() {
			_, err := c.Acquire(ctx, lock.Name("report"))
			require.ErrorIs(t, err, lock.ErrClosed)
			_, err = c.TryAcquire(ctx, lock.Name("report"))
			require.ErrorIs(t, err, lock.ErrClosed)
			require.ErrorIs(t, c.Do(ctx, lock.Name("report"), func(context.Context, *lock.Lease) error { return nil }), lock.ErrClosed)
			require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrReleased)
			require.ErrorIs(t, l.Commit(ctx, w.put("x")), lock.ErrReleased)
			require.ErrorIs(t, l.Renew(ctx), lock.ErrReleased)
			require.NoError(t, l.Release(ctx))
		})
		assert.Empty(t, ops)
	})
}

// OnLost may be where the application gives up altogether.
func TestOnLostMayClose(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var c *lock.Client
		closed := make(chan error, 1)
		c = w.client(lock.Config{OnLost: func(*lock.Lease, error) { closed <- c.Close(ctx) }})
		_, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		_, err = c.Acquire(ctx, lock.Name("other"))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Delete(sessionKey(c))))
		start := time.Now()
		require.NoError(t, <-closed)
		assert.LessOrEqual(t, time.Since(start), 6*time.Second, "with the next renewal")
		// The session has ended before, so the lock frees itself.
		_, err = w.client(lock.Config{}).Acquire(ctx, lock.Name("other"))
		require.NoError(t, err)
		assert.LessOrEqual(t, time.Since(start), 8*time.Second)
	})
}

// Whoever uses Fixed and lets the lease end by itself keeps nothing in the client.
func TestFixedLeasesThatEndedAreLetGo(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.coldClient(lock.Config{}) // without a session
		for i := range 100 {
			_, err := c.Acquire(ctx, lock.Name(fmt.Sprint(i)), lock.Fixed(time.Second))
			require.NoError(t, err)
		}
		time.Sleep(time.Minute)
		assert.Empty(t, w.requests(func() { require.NoError(t, c.Close(ctx)) }))
	})
}

func TestEverythingAtOnce(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		for round := range 30 {
			c := w.client(lock.Config{})
			w.engine.ClearFaults()
			w.engine.Inject(
				tabletest.Fault{Kind: tabletest.Delay, For: 3 * time.Millisecond, Probability: 0.5, Seed: uint64(round)},
				tabletest.Fault{Kind: tabletest.DropReply, Probability: 0.1, Seed: uint64(round)},
				tabletest.Fault{Kind: tabletest.TransactionConflict, Probability: 0.2, Seed: uint64(round)},
			)
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			name := fmt.Sprint("n", round)
			var group sync.WaitGroup
			var mu sync.Mutex
			applied := 0
			count := func(err error) {
				if err == nil {
					mu.Lock()
					applied++
					mu.Unlock()
					return
				}
				assert.ErrorIs(t, err, lock.ErrReleased)
			}
			for i := range 5 {
				group.Go(func() { count(l.Write(ctx, w.count(name))) })
				group.Go(func() { _ = l.Renew(ctx) })
				group.Go(func() { time.Sleep(time.Duration(i*7) * time.Millisecond); count(l.Commit(ctx, w.count(name))) })
				group.Go(func() { time.Sleep(time.Duration(i*11) * time.Millisecond); assert.NoError(t, l.Release(ctx)) })
				group.Go(func() { time.Sleep(time.Duration(i*13) * time.Millisecond); assert.NoError(t, c.Close(ctx)) })
			}
			group.Wait()
			w.engine.ClearFaults()
			assert.EqualValues(t, applied, w.counted(name))
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrReleased)
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.False(t, r.Held())
		}
	})
}

// One lock that was lost keeps no other from being released, however many there are.
func TestCloseReleasesBehindALockThatWasLost(t *testing.T) {
	const locks = 40 // more than are released at once
	virtual(t, func(ctx context.Context, w *world) {
		c, operator := w.client(lock.Config{}), w.client(lock.Config{})
		targets := make([]lock.Target, locks)
		for i := range targets {
			targets[i] = lock.Name(fmt.Sprintf("lock %02d", i))
			l, err := c.Acquire(ctx, targets[i])
			require.NoError(t, err)
			if i == 0 {
				w.force(ctx, operator, l.Target())
			}
		}
		w.latency(10 * time.Millisecond)
		require.NoError(t, c.Close(ctx))
		w.free(ctx, targets)
	})
}

// Whoever sees that Close has released a lease sees that the client is closed.
func TestClosedAtOnceForWhoeverLooks(t *testing.T) {
	virtual(t, func(_ context.Context, w *world) {
		for range 100 {
			err, cause := lock.EndedByClose(w.client(quiet))
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, cause, lock.ErrClosed)
		}
	})
}

// Renewals that fail do not keep a client open that has nothing to release any more.
func TestCloseDoesNotWaitForARenewal(t *testing.T) {
	for _, how := range []cut{refused, hung} {
		virtual(t, func(ctx context.Context, w *world) {
			wire := &line{to: w.engine.HTTPClient()}
			config := quiet
			config.Lease = time.Hour
			c := w.clientOver(wire, config)
			time.Sleep(10 * time.Minute)
			wire.cut(how)
			time.Sleep(10 * time.Minute)
			start := time.Now()
			require.NoError(t, c.Close(ctx))
			assert.LessOrEqual(t, time.Since(start), 8*time.Second, "a renewal under way, and deleting the session's row")
		})
	}
}

// Locks behind guarded writes that hang keep no other from being released.
func TestCloseReleasesBesideWritesThatHang(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 4 * time.Second, Operation: "TransactWriteItems"})
		hanging, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		var group sync.WaitGroup
		var rest []*lock.Lease
		for i := range 24 {
			name := fmt.Sprintf("%02d", i)
			l, err := c.Acquire(ctx, lock.Name(name), lock.Fixed(time.Hour))
			require.NoError(t, err)
			if i >= 20 {
				rest = append(rest, l)
				continue
			}
			for range 5 { // one after the other
				group.Go(func() { _ = l.Write(hanging, w.put(name)) })
			}
		}
		time.Sleep(time.Second)
		bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		require.ErrorIs(t, c.Close(bounded), context.DeadlineExceeded)
		for _, l := range rest {
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrReleased)
		}
		group.Wait()
	})
}

// A commit without an answer, and then the client is closed: nobody answers for the commit but its token, so who
// repeats it is told neither that it was applied nor that it was not (section 4 of the design).
func TestCommitThatCloseHasForestalled(t *testing.T) {
	for name, release := range map[string]tabletest.FaultKind{"told": 0, "answer lost": tabletest.DropReply} {
		for _, kind := range []tabletest.FaultKind{tabletest.DropRequest, tabletest.DropReply} {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(quiet)
				b, err := c.AcquireAll(ctx, []lock.Target{lock.Name("report"), lock.Name("other")})
				require.NoError(t, err)
				l := b.Leases()[0]
				w.engine.Inject(tabletest.Fault{Kind: kind, Operation: "TransactWriteItems"})
				if release != 0 {
					w.engine.Inject(tabletest.Fault{Kind: release, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key())})
				}
				short, cancel := context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
				require.ErrorIs(t, l.Commit(short, w.count("n")), context.DeadlineExceeded)
				bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
				_ = c.Close(bounded)
				w.engine.ClearFaults()
				err = l.Commit(ctx, w.count("n"))
				require.ErrorIs(t, err, table.ErrUnreachable, "%s, %v", name, kind)
				require.NotErrorIs(t, err, lock.ErrReleased, name)
				require.ErrorIs(t, b.Commit(ctx, w.count("n")), table.ErrUnreachable, name)
				assert.LessOrEqual(t, w.counted("n"), int64(1), name)
				if release == 0 {
					require.NoError(t, l.Release(ctx), "%s, %v", name, kind)
				}
			})
		}
	}
}

// Close ends what an operator's calls wait for.
func TestClose_EndsOperatorsCalls(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way := &line{to: w.engine.HTTPClient()}
		op := w.clientOver(way, quiet)
		r, err := op.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(hung)
		ended := make(chan error, 2)
		go func() { ended <- op.ForceRelease(ctx, lock.Name("report"), r.Holder().Ticket) }()
		go func() { ended <- op.Revoke(ctx, lock.Name("report")) }()
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		time.AfterFunc(2*time.Second, func() { way.cut(open) })
		closed := make(chan error, 1)
		go func() { closed <- op.Close(ctx) }()
		for range 2 {
			require.ErrorIs(t, <-ended, lock.ErrClosed)
		}
		assert.Less(t, time.Since(start), time.Second)
		require.NoError(t, <-closed)
		require.NoError(t, l.Release(ctx))
	})
}

// A lock of its own lease goes to somebody who has waited for longer than an idle session lasts, and the
// client closes afterwards.
func TestClose_AfterAPassToALongWaiter(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		got := acquireAsync(ctx, c, lock.Name("report"))
		time.Sleep(10 * time.Minute)
		require.NoError(t, l.Release(ctx))
		next := <-got
		require.NotNil(t, next)
		require.NoError(t, next.Release(ctx))
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		require.NoError(t, c.Close(bounded))
	})
}

// Close with many leases and many waiters, some about to be handed a lock.
func TestClose_UnderLoad(t *testing.T) {
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
