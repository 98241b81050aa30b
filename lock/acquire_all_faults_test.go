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

// Two locks of an AcquireAll are taken by force at once. What the second was told about its old ticket is no matter of the new one:
// its row need not be read, and where reading fails the call goes on.
func TestAcquireAll_ForceOfAnEarlierTicketIsForgotten(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		targets := names(3)
		held, err := w.client(quiet).Acquire(ctx, targets[2])
		require.NoError(t, err)
		var slow atomic.Pointer[string]
		reading := make(chan struct{}, 2)
		c := w.clientOver(w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
			answer, err := send()
			if key := slow.Load(); operation == "GetItem" && key != nil && strings.Contains(body, *key) && slow.CompareAndSwap(key, nil) {
				reading <- struct{}{}
				time.Sleep(time.Second)
			}
			return answer, err
		}), quiet)
		got := make(chan error, 1)
		go func() {
			b, err := c.AcquireAll(ctx, targets)
			if err == nil {
				err = b.Release(ctx)
			}
			got <- err
		}()
		time.Sleep(10 * time.Second)
		third, first := "LOCK#n02", "LOCK#n00"
		slow.Store(&third)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Writes: 50, Operation: "BatchGetItem", Times: 1})
		<-reading // the call reads the third row again
		for _, target := range targets[:2] {
			w.force(ctx, c, target)
		}
		slow.Store(&first)
		<-reading // and then the first one, while the second is told as well
		time.Sleep(100 * time.Millisecond)
		require.NoError(t, held.Release(ctx))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Operation: "GetItem", Key: w.table.KeyItem(w.lockKey("n01")), Times: 40})
		began := time.Now()
		require.NoError(t, <-got)
		assert.Less(t, time.Since(began), 5*time.Second)
	})
}

// A transaction has no answer, and its caller has given up. Nothing stays held.
func TestAcquireAll_AbandonedOneIsWithdrawn(t *testing.T) {
	for _, opts := range [][]lock.Option{nil, {lock.Fixed(time.Hour)}} {
		for _, operation := range []string{"TransactWriteItems", "BatchGetItem"} {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{})
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: operation})
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				_, err := c.AcquireAll(short, names(100), opts...)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				w.engine.ClearFaults()
				time.Sleep(5 * time.Second)
				w.free(ctx, names(100))
			})
		}
	}
}

// Two transactions that conflict are repeated. A conflict is never taken for a holder.
func TestAcquireAll_GoesThroughConflicts(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		w.engine.Inject(tabletest.Fault{Kind: tabletest.TransactionConflict, Probability: 0.5, Seed: 7})
		for range 200 {
			b, err := c.TryAcquireAll(ctx, names(3))
			require.NoError(t, err)
			require.NoError(t, b.Commit(ctx, w.count("n")))
		}
		assert.EqualValues(t, 200, w.counted("n"))
	})
}

// Locks that nobody waits for any more are given up in the background: the call returns soon after its context has ended,
// whatever hangs.
func TestAcquireAll_EndsWhileFencesAreRead(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		targets, other := names(100), w.client(lock.Config{})
		b, err := other.AcquireAll(ctx, targets)
		require.NoError(t, err)
		require.NoError(t, b.Release(ctx))
		c := w.cold(lock.Config{HomeRegion: w.table.Region()})
		for _, operation := range []string{"BatchGetItem", "GetItem", "UpdateItem"} {
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 24 * time.Hour, Operation: operation, When: ofLocks})
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		start := time.Now()
		_, err = c.AcquireAll(short, targets, lock.Fixed(time.Minute))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Less(t, time.Since(start), 7*time.Second)
		w.engine.ClearFaults()
		time.Sleep(5 * time.Second)
		b, err = other.TryAcquireAll(ctx, targets)
		require.NoError(t, err, "they were taken back")
		require.NoError(t, b.Release(ctx))
	})
}

// A lock is taken away between the transaction that took it and the read of its fence. This process does not hold it, and
// the others are released.
func TestAcquireAll_LockThatIsLostBeforeItsFenceIsRead(t *testing.T) {
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
		time.Sleep(5 * time.Second) // until all is withdrawn
		w.free(ctx, []lock.Target{targets[0], targets[2]})
	})
}

// A transaction that hangs is repeated. The last attempt meets the effect of the first one, and recognises it.
func TestAcquireAll_RecognisesAnOldTransaction(t *testing.T) {
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
				require.InDelta(t, 9*time.Second, waited, float64(time.Second), "three timeouts of 3 s")
				if opts != nil {
					assert.LessOrEqual(t, b.Leases()[2].Remaining(), 20*time.Second-waited)
				}
				require.NoError(t, b.Commit(ctx, w.count("n")))
				assert.EqualValues(t, 1, w.counted("n"))
			})
		})
	}
}

// A waiter recognises its own transaction when it arrives late, and is granted the locks that it has taken.
func TestAcquireAll_LateTransactionIsRecognised(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		targets := names(3)
		l, err := w.client(lock.Config{}).Acquire(ctx, targets[1])
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: 10 * time.Second})
		waiter := make(chan *lock.Bundle, 1)
		go func() {
			waiting, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			b, err := c.AcquireAll(waiting, targets)
			assert.NoError(t, err)
			waiter <- b
		}()
		// The waiter does not get to look between the release and the late transaction.
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 2 * time.Second, Operation: "BatchGetItem"})
		time.Sleep(9990 * time.Millisecond)
		require.NoError(t, l.Release(ctx))
		time.Sleep(20 * time.Millisecond)
		_, err = c.TryAcquire(ctx, targets[0])
		require.ErrorIs(t, err, lock.ErrHeld, "by the waiter, which is about to hear of it")
		b := <-waiter
		if b == nil {
			return // reported already
		}
		time.Sleep(time.Minute)
		require.NoError(t, context.Cause(b.Context()))
		require.NoError(t, b.Commit(ctx, w.put("x")))
		w.engine.ClearFaults()
		w.free(ctx, targets)
	})
}

// A lease begins with the transaction that took it, and not with one whose answer was lost long before.
func TestAcquireAll_LeasesBeginWithTheTransactionThatTookThem(t *testing.T) {
	targets := []lock.Target{lock.Name("a"), lock.Name("b")}
	for name, opts := range map[string][]lock.Option{"fixed": {lock.Fixed(20 * time.Second)}, "max hold": {lock.MaxHold(30 * time.Second)}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				holder, c := w.client(lock.Config{}), w.client(lock.Config{})
				l, err := holder.Acquire(ctx, lock.Name("a"))
				require.NoError(t, err)
				time.AfterFunc(time.Minute, func() { assert.NoError(t, l.Release(ctx)) })
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: 240 * time.Hour})
				b, err := c.AcquireAll(ctx, targets, opts...)
				require.NoError(t, err)
				time.Sleep(time.Second)
				require.NoError(t, context.Cause(b.Context()))
				require.NoError(t, b.Release(ctx))
			})
		})
	}
}

// Tickets of its own that are left from an earlier attempt are removed before the next: TryAcquireAll does not report itself
// as the holder.
func TestTryAcquireAll_DoesNotReportItself(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, operator := w.client(lock.Config{Owner: "me"}), w.client(lock.Config{Owner: "operator"})
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
		_, err := c.TryAcquireAll(ctx, targets, lock.Fixed(20*time.Second))
		t.Log(err)
		var held *lock.HeldAllError
		require.ErrorAs(t, err, &held)
		for _, h := range held.Held {
			assert.Equal(t, "operator", h.Owner)
		}
		time.Sleep(10 * time.Second)
	})
}

// A transaction arrives late, and one of its locks is taken away by force. The other locks are not kept for as long as
// AcquireAll waits for that one.
func TestAcquireAll_KeepsNoLockOfALateTransaction(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, h, x := w.client(lock.Config{}), w.client(lock.Config{}), w.client(lock.Config{})
		targets := []lock.Target{lock.Name("a"), lock.Name("b")}
		l, err := h.Acquire(ctx, targets[1])
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: 10 * time.Second})
		done := make(chan error, 1)
		waiting, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		go func() {
			b, err := c.AcquireAll(waiting, targets)
			if err == nil {
				err = b.Release(ctx)
			}
			done <- err
		}()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 2 * time.Second, Operation: "BatchGetItem"})
		time.Sleep(9990 * time.Millisecond)
		require.NoError(t, l.Release(ctx))
		time.Sleep(20 * time.Millisecond)
		r, err := x.Inspect(ctx, targets[1])
		require.NoError(t, err)
		require.True(t, r.Held(), "the transaction has come in")
		require.NoError(t, x.ForceRelease(ctx, targets[1], r.Holder().Ticket))
		b, err := x.TryAcquire(ctx, targets[1])
		require.NoError(t, err)
		w.engine.ClearFaults()
		start := time.Now()
		bounded, stop := context.WithTimeout(ctx, 10*time.Minute)
		defer stop()
		a, err := x.Acquire(bounded, targets[0])
		assert.Less(t, time.Since(start), time.Minute)
		if err == nil {
			assert.NoError(t, a.Release(ctx))
		}
		require.NoError(t, b.Release(ctx))
		require.NoError(t, <-done)
	})
}

// AcquireAll that gives up leaves all lines, over a slow network as well.
func TestAcquireAll_LeavesAllLinesOverASlowNetwork(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		list := names(lock.MaxTargets)
		holder, c := w.client(quiet), w.client(quiet)
		require.NoError(t, errOf(holder.Acquire(ctx, list[0])))
		require.NoError(t, errOf(c.Acquire(ctx, lock.Name("keeps the session"))))
		w.latency(60 * time.Millisecond)
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := c.AcquireAll(short, list)
		require.ErrorIs(t, err, lock.ErrHeld)
		time.Sleep(10 * time.Second)
		w.free(ctx, list[1:])
	})
}

// AcquireAll whose context ends in an outage, while it writes payloads, returns as soon as Acquire does.
func TestAcquireAll_EndsWhilePayloadsAreWritten(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		holder, c := w.client(quiet), w.clientOver(way, quiet)
		targets := names(40)
		l, err := holder.Acquire(ctx, targets[0])
		require.NoError(t, err)
		w.latency(10 * time.Millisecond)
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- errOf(c.AcquireAll(short, targets, lock.WithData("x"))) }()
		time.Sleep(52 * time.Second) // so that the session, last renewed before that, does not end just when Close is called
		require.NoError(t, l.Release(ctx))
		for written := false; !written; {
			r, err := holder.Inspect(ctx, targets[3])
			require.NoError(t, err)
			written = !r.Data.IsZero()
		}
		way.cut(hung)
		<-short.Done()
		start := time.Now()
		require.Error(t, <-ended)
		assert.Less(t, time.Since(start), 6*time.Second)
		way.cut(open)
	})
}

// Over a slow network, many short leases, and their payloads, are written in time once the last lock is free.
func TestAcquireAll_FixedOverASlowNetwork(t *testing.T) {
	for name, opts := range map[string][]lock.Option{"alone": nil, "with data": {lock.WithData("x")}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, targets := w.client(quiet), names(100)
				l, err := w.client(quiet).Acquire(ctx, targets[0])
				require.NoError(t, err)
				w.latency(60 * time.Millisecond)
				time.AfterFunc(2*time.Second, func() { assert.NoError(t, l.Release(ctx)) })
				waiting, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				b, err := c.AcquireAll(waiting, targets, append(opts, lock.Fixed(5*time.Second))...)
				require.NoError(t, err)
				if opts == nil {
					assert.Greater(t, b.Remaining(), 3*time.Second)
				}
				require.NoError(t, b.Release(ctx))
			})
		})
	}
}

func TestAcquireAll_FixedKeepsItsPlacesOverASlowNetwork(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.guardian = nil
		c, other, targets := w.client(quiet), w.client(quiet), names(100)
		l, err := w.client(quiet).Acquire(ctx, targets[0])
		require.NoError(t, err)
		w.latency(60 * time.Millisecond)
		waiting, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		got := make(chan error, 1)
		go func() {
			b, err := c.AcquireAll(waiting, targets, lock.Fixed(5*time.Second))
			if err == nil {
				err = b.Release(ctx)
			}
			got <- err
		}()
		time.Sleep(time.Second)
		behind := acquireAsync(waiting, other, targets[50])
		time.Sleep(time.Minute)
		require.Empty(t, behind, "it is behind in the line")
		require.NoError(t, l.Release(ctx))
		require.NoError(t, <-got)
		require.NotNil(t, <-behind)
	})
}

// A request that hangs is repeated in time, also if the application has set no timeout for requests.
func TestAcquireAll_HungRequestIsRepeated(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"default timeout": 0, "no timeout": -1} {
		for _, operation := range []string{"TransactWriteItems", "BatchGetItem"} {
			t.Run(operation+", "+name, func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					config := quiet
					config.Lease = 3 * time.Second
					c := w.client(config, table.WithRetry(table.Retry{Timeout: timeout}))
					w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 240 * time.Hour, Operation: operation, Times: 1})
					short, cancel := context.WithTimeout(ctx, time.Hour)
					defer cancel()
					start := time.Now()
					require.NoError(t, errOf(c.AcquireAll(short, names(2))))
					assert.Less(t, time.Since(start), config.Lease)
				})
			})
		}
	}
}
