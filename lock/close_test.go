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
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestClose_GoesOnPastErrorsAndRetries(t *testing.T) {
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

// Leases are renewed until they are released, however long Close takes.
func TestClose_DoesNotStarveRenewals(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		slow, err := c.Acquire(ctx, lock.Name("slow"))
		require.NoError(t, err)
		// Guarded writes that together take longer than the lease delay the release.
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

func TestClose_WithEndedContextReleases(t *testing.T) {
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

// A function of Do closes the client with its own context, which ends when Close releases the lease of Do.
func TestClose_WithTheContextOfALease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		held := names(40)
		for _, target := range held {
			_, err := c.Acquire(ctx, target)
			require.NoError(t, err)
		}
		w.latency(5 * time.Millisecond)
		session := lock.SessionID(c)
		require.NoError(t, c.Do(ctx, lock.Name("report"), func(inside context.Context, _ *lock.Lease) error { return c.Close(inside) }))
		w.free(ctx, append(held, lock.Name("report")))
		left, err := other.Sessions(ctx, session)
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

// When Close has returned, nothing is held that the client was about to acquire.
func TestClose_WithdrawsAcquiresUnderWay(t *testing.T) {
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

func TestClose_NothingIsSentAfterwards(t *testing.T) {
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

// OnLost may close the client.
func TestOnLost_MayCallClose(t *testing.T) {
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

// The first call ends with its context, and goes on deleting the session's row.
func TestClose_AgainWaitsForWhatTheFirstCallHasBegun(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "DeleteItem", Times: 4})
		bounded, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, c.Close(bounded), context.DeadlineExceeded)
		require.NoError(t, c.Close(ctx))
		w.engine.ResetRequests()
		time.Sleep(time.Minute)
		assert.Empty(t, w.engine.Requests())
	})
}

// A lost lock does not keep others from being released, however many there are.
func TestClose_ReleasesLocksBehindALostOne(t *testing.T) {
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

// A caller that sees that Close has released a lease also sees that the client is closed.
func TestClose_IsSeenByThoseWhoSeeItsReleases(t *testing.T) {
	virtual(t, func(_ context.Context, w *world) {
		for range 100 {
			err, cause := lock.EndedByClose(w.client(quiet))
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, cause, lock.ErrClosed)
		}
	})
}

// Renewals that fail do not keep a client open that has nothing left to release.
func TestClose_DoesNotWaitForARenewal(t *testing.T) {
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

// A lock whose guarded write hangs does not keep others from being released.
func TestClose_ReleasesBesideWritesThatHang(t *testing.T) {
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

// Close ends calls of an operator that are waiting.
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

// A Fixed lease is passed to a goroutine that has waited for longer than an idle session lasts, and the client is closed
// afterwards.
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

// Close with many leases and many waiters, to some of which a lock is about to be passed.
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

// F9. Also where a guarded write delays a release for far longer than a lease.
func TestClose_EndsWaitersAndReleases(t *testing.T) {
	const waiters, period = 100, 5 * time.Second
	for _, busy := range []time.Duration{0, time.Minute} {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(lock.Config{})
			w.latency(10 * time.Millisecond)
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			told := make(chan time.Time, waiters)
			for range waiters {
				go func() {
					_, err := c.Acquire(ctx, lock.Name("report"))
					assert.ErrorIs(t, err, lock.ErrClosed)
					told <- time.Now()
				}()
			}
			w.engine.ResetRequests()
			time.Sleep(2 * period)
			var write sync.WaitGroup
			if busy > 0 {
				w.engine.ClearFaults() // of two delays the first counts
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: busy, Operation: "TransactWriteItems", Times: 1})
				w.latency(10 * time.Millisecond)
				write.Go(func() { assert.NoError(t, l.Write(ctx, w.put("x"))) })
				time.Sleep(time.Second)
			}
			session := sessionKey(c).PK
			start := time.Now()
			require.NoError(t, c.Close(ctx))
			closed := time.Since(start)
			write.Wait()
			var ended, gap time.Duration
			for range waiters {
				ended = max(ended, (<-told).Sub(start))
			}
			renewals := w.requestsTo(session)
			for i, r := range renewals[1:] {
				gap = max(gap, r.Time.Sub(renewals[i].Time))
			}
			testkit.Check(t, fmt.Sprintf("F9, %v of a write under way", busy),
				testkit.AtMost(ended, fmt.Sprintf(" until %d waiters were told", waiters), time.Second),
				testkit.AtMost((closed-max(busy-time.Second, 0)), " more than the write until closed", time.Second),
				// Periods have a jitter of 10 %.
				testkit.AtMost(gap, " between renewals meanwhile", period+period/10+20*time.Millisecond))
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrReleased)
			_, err = c.Acquire(ctx, lock.Name("report"))
			require.ErrorIs(t, err, lock.ErrClosed)
		})
	}
}

// Close writes once to the row of a lock, however many goroutines wait behind the lease.
func TestClose_CostsOneWritePerLock(t *testing.T) {
	for _, waiters := range []int{0, 1, 10} {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(quiet)
			w.latency(5 * time.Millisecond)
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			for range waiters {
				go func() { _, _ = c.Acquire(ctx, lock.Name("report")) }()
			}
			time.Sleep(time.Second)
			w.engine.ResetRequests()
			require.NoError(t, c.Close(ctx))
			assert.Len(t, w.requestsTo(l.Key().PK), 1, "%d waiters", waiters)
		})
	}
}

// Close fails in an outage. OnLost hears of nothing that is no loss.
func TestOnLost_OfACloseInAnOutageHearsOfLossesAlone(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wire := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(wire, lock.Config{Logger: quiet.Logger, OnLost: func(_ *lock.Lease, cause error) {
			assert.ErrorIs(t, cause, lock.ErrLost)
		}})
		for _, target := range names(40) {
			require.NoError(t, errOf(c.Acquire(ctx, target)))
		}
		wire.cut(refused)
		require.ErrorIs(t, c.Close(ctx), table.ErrUnreachable)
		time.Sleep(time.Minute)
	})
}

// Close could not release the lock, and somebody else has taken it since. That is a loss, and no release.
func TestClose_InAnOutageIsNoReleaseOfALockThatOthersTook(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wire := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(wire, quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		wire.cut(refused)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.Error(t, c.Close(short))
		require.NoError(t, errOf(w.client(quiet).Acquire(ctx, lock.Name("report"))))
		wire.cut(open)
		for range 2 {
			require.ErrorIs(t, l.Release(ctx), lock.ErrLost)
		}
		require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
	})
}
