package lock_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// slowRelease delays, once armed, one update of a lock that brings nothing back: a release.
type slowRelease struct {
	to    aws.HTTPClient
	armed atomic.Bool
	by    time.Duration
}

func (s *slowRelease) Do(r *http.Request) (*http.Response, error) {
	body, err := peek(r)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".UpdateItem") && bytes.Contains(body, []byte("LOCK#report")) && !bytes.Contains(body, []byte("ALL_NEW")) {
		if s.armed.CompareAndSwap(true, false) {
			time.Sleep(s.by)
		}
	}
	return s.to.Do(r)
}

// A waiter that was handed the lock without an answer finds itself named by the row. Nobody else of its
// process takes that for a ghost meanwhile and frees the row: its lease would go on while others
// acquire.
func TestHeirThatRecognisesItselfIsNoGhost(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		slow := &slowRelease{to: w.engine.HTTPClient(), by: 300 * time.Millisecond}
		c := w.clientOver(&line{to: slow}, lock.Config{})
		w.latency(10 * time.Millisecond)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		heir := make(chan *lock.Lease, 1)
		go func() {
			waiting, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			next, err := c.Acquire(waiting, lock.Name("report"))
			assert.NoError(t, err)
			heir <- next
		}()
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 1, lock.Queued(c, l.Key()))
		w.engine.ClearFaults()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		w.latency(10 * time.Millisecond)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		slow.armed.Store(true)
		time.AfterFunc(995*time.Millisecond, func() {
			_, err := c.TryAcquire(ctx, lock.Name("report"))
			assert.ErrorIs(t, err, lock.ErrHeld)
		})
		require.ErrorIs(t, l.Commit(short, w.put("x")), context.DeadlineExceeded)
		next := <-heir
		if next == nil {
			return // said already
		}
		w.engine.ClearFaults()
		time.Sleep(2 * time.Minute)
		require.NoError(t, context.Cause(next.Context()))
		require.NoError(t, next.Write(ctx, w.put("y")))
	})
}

// The same without a hand-over: a waiter's own first attempt comes in late.
func TestLateAttemptOfAWaiterIsNoGhost(t *testing.T) {
	lateAttemptOfAWaiter(t, tabletest.DropRequest)
}

// lateAttemptOfAWaiter has the fault bring a waiter's first attempt in, ten seconds late, right after
// the lock was released. Whether the waiter looks at the wrong moment is left to jitter.
func lateAttemptOfAWaiter(t *testing.T, fault tabletest.FaultKind) {
	t.Helper()
	for range 16 {
		virtual(t, func(ctx context.Context, w *world) {
			slow := &slowRelease{to: w.engine.HTTPClient(), by: 300 * time.Millisecond}
			c := w.clientOver(&line{to: slow}, lock.Config{Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(100 * time.Millisecond) }})
			l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			w.engine.Inject(tabletest.Fault{Kind: fault, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 1, For: 10 * time.Second})
			start := time.Now()
			waiter := make(chan *lock.Lease, 1)
			go func() {
				waiting, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				next, err := c.Acquire(waiting, lock.Name("report"))
				assert.NoError(t, err)
				waiter <- next
			}()
			time.Sleep(9 * time.Second)
			// Released right before the attempt comes in, and the waiter has not looked yet.
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, Operation: "BatchGetItem", Times: 1})
			time.Sleep(time.Until(start.Add(9*time.Second + 990*time.Millisecond)))
			require.NoError(t, l.Release(ctx))
			time.Sleep(20 * time.Millisecond)
			slow.armed.Store(true)
			_, err = c.TryAcquire(ctx, lock.Name("report"))
			assert.ErrorIs(t, err, lock.ErrHeld, "by the waiter, which is about to hear of it")
			next := <-waiter
			if next == nil {
				return // said already
			}
			time.Sleep(time.Minute)
			require.NoError(t, context.Cause(next.Context()))
			require.NoError(t, next.Write(ctx, w.put("z")))
		})
	}
}

// A ticket that has left the line is not known any more: should an attempt to enter it come late, it is removed
// as any ghost.
func TestTicketThatHasLeftTheLineIsNotKept(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, holder := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		_, err = c.Acquire(ctx, lock.Name("other")) // the session goes on
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 1, For: time.Minute})
		waiting, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err = c.Acquire(waiting, lock.Name("report"))
		require.ErrorIs(t, err, lock.ErrHeld)
		require.NoError(t, l.Release(ctx))
		time.Sleep(time.Minute)
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.True(t, r.Held(), "the attempt has come in")
		start := time.Now()
		next, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(start), 26500*time.Millisecond) // as F19: a lease, and a period with jitter
		require.NoError(t, next.Release(ctx))
	})
}

// An attempt that comes in late under a session which has ended since is no lease under the next one:
// others would take it from the dead session.
func TestLateAttemptUnderAnEndedSession(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		c := w.client(lock.Config{Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(100 * time.Millisecond) }}, table.WithClock(wall.now))
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 1, For: 10 * time.Second})
		waiter := make(chan *lock.Lease, 1)
		go func() {
			next, err := c.Acquire(ctx, lock.Name("report"))
			assert.NoError(t, err)
			waiter <- next
		}()
		time.Sleep(5 * time.Second)
		wall.jump(time.Minute) // the machine was suspended
		time.Sleep(4 * time.Second)
		require.NoError(t, l.Release(ctx))
		// The look that sees the lock free is answered after the attempt has come in.
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 2 * time.Second, Operation: "BatchGetItem", Times: 1})
		next := <-waiter
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.Equal(t, lock.SessionID(c), r.Holder().Session, "the lease hangs on the session that goes on")
		time.Sleep(time.Minute)
		require.NoError(t, context.Cause(next.Context()))
		require.NoError(t, next.Write(ctx, w.put("z")))
	})
}

// The same for several locks: who waits for them recognises a transaction that comes in late, and is
// granted what it has taken.
func TestLateTransactionIsRecognised(t *testing.T) {
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
			return // said already
		}
		time.Sleep(time.Minute)
		require.NoError(t, context.Cause(b.Context()))
		require.NoError(t, b.Commit(ctx, w.put("x")))
		w.engine.ClearFaults()
		w.free(ctx, targets)
	})
}

// A lease begins with the transaction that took it, not with one whose answer was lost long before.
func TestAcquireAllAfterALostAnswerAndAWait(t *testing.T) {
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

// A lease that is recognised begins with the attempt that the row tells of, not with an earlier one
// whose answer was lost, too.
func TestAcquireAfterLostAnswersAndAWait(t *testing.T) {
	for name, opts := range map[string][]lock.Option{"fixed": {lock.Fixed(20 * time.Second)}, "max hold": {lock.MaxHold(30 * time.Second)}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				holder, c := w.client(lock.Config{}), w.client(lock.Config{})
				l, err := holder.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				time.AfterFunc(time.Minute, func() {
					assert.NoError(t, l.Release(ctx))
					w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Times: 1, Key: w.table.KeyItem(l.Key())})
				})
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Times: 1, For: 240 * time.Hour})
				next, err := c.Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				time.Sleep(time.Second)
				require.NoError(t, context.Cause(next.Context()))
				require.NoError(t, next.Release(ctx))
			})
		})
	}
}

// A waiter whose session has ended while it was being handed the lock waits on, and acquires under
// another one: it has lost nothing yet.
func TestHeirOfASessionThatHasEndedWaitsOn(t *testing.T) {
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

// What names the gathering still when it begins anew is freed before: nobody is told that it stands in
// its own way.
func TestTryAcquireAllDoesNotStandInItsOwnWay(t *testing.T) {
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

// The same under a lease of its own, which no session stands for: the waiter does not wait for itself.
func TestFixedWaiterRecognisesItself(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Call: 1, For: 10 * time.Second})
		start := time.Now()
		got := make(chan time.Duration, 1)
		go func() {
			waiting, cancel := context.WithTimeout(ctx, 3*time.Hour)
			defer cancel()
			next, err := c.Acquire(waiting, lock.Name("report"), lock.Fixed(time.Hour))
			assert.NoError(t, err)
			got <- time.Since(start)
			if err == nil {
				_ = next.Release(ctx)
			}
		}()
		time.Sleep(9 * time.Second)
		// Whoever looks next sees it after it was seen here.
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 1100 * time.Millisecond, Operation: "BatchGetItem", Times: 1})
		time.Sleep(time.Until(start.Add(9*time.Second + 990*time.Millisecond)))
		require.NoError(t, l.Release(ctx))
		time.Sleep(20 * time.Millisecond)
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.True(t, r.Held(), "the attempt has come in")
		took := <-got
		require.Less(t, took, time.Minute)
	})
}

// So does an heir with a lease of its own.
func TestFixedHeirRecognisesItself(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		start := time.Now()
		got := make(chan time.Duration, 1)
		go func() {
			next, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
			assert.NoError(t, err)
			got <- time.Since(start)
			if err == nil {
				_ = next.Release(ctx)
			}
		}()
		time.Sleep(500 * time.Millisecond)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.Error(t, l.Commit(short, w.put("x")))
		w.engine.ClearFaults()
		require.Less(t, <-got, time.Minute)
	})
}

// Its lease begins with the commit that has handed the lock over, not with the release that finds it so.
func TestFixedHeirBeginsWithTheHandOver(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := make(chan *lock.Lease, 1)
		go func() {
			next, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
			assert.NoError(t, err)
			got <- next
		}()
		time.Sleep(500 * time.Millisecond)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.Error(t, l.Commit(short, w.put("x")))
		w.engine.ClearFaults()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Hour, Operation: "BatchGetItem"}) // the heir does not see it
		time.Sleep(15 * time.Second)
		require.NoError(t, l.Release(ctx))
		w.engine.ClearFaults()
		next := <-got
		o, err := other.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.Error(t, context.Cause(next.Context()), "somebody else has it, under fence %d after %d", o.Fence(), next.Fence())
	})
}

// A grant whose answer came too late, and that could not be given back, is not recognised once more: its lease
// would be counted from a later attempt.
func TestLateGrantIsNotRecognisedAnew(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		wire := &line{to: w.engine.HTTPClient()}
		c, other := w.clientOver(wire, lock.Config{Expiry: lock.ObservedOnly}, table.WithClock(wall.now)), w.client(lock.Config{})
		first, err := other.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, first.Release(ctx))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 2 * time.Second, Key: w.table.KeyItem(first.Key()), Operation: "UpdateItem", Times: 1})
		time.AfterFunc(time.Second, func() { wall.jump(time.Minute) }) // the machine was suspended, in effect
		time.AfterFunc(1900*time.Millisecond, func() { wire.cut(hung) })
		time.AfterFunc(9*time.Second, func() { wire.cut(open) })
		_, err = c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.ErrorIs(t, err, lock.ErrExpired)
		o, err := other.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, o.Release(ctx))
	})
}

// What a late transaction took, of which one lock was taken away by force, is not kept for as long as the
// gathering waits for that one.
func TestGatheringKeepsNothingWhileItWaits(t *testing.T) {
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

// A commit is refused by a condition of the caller's own, and an earlier attempt of it comes in late, once
// that holds: the lease of whom it hands the lock to counts from the commit.
func TestFixedHeirOfARefusedCommit(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, w.put("x")))
		got := make(chan *lock.Lease, 1)
		go func() {
			next, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
			assert.NoError(t, err)
			got <- next
		}()
		time.Sleep(500 * time.Millisecond)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: 15 * time.Second})
		err = l.Commit(ctx, table.Put(w.table.KeyItem(w.row("x"))).If(table.Attr("pk").NotExists()))
		var failed *table.ConditionError
		require.ErrorAs(t, err, &failed)
		require.NotErrorIs(t, err, lock.ErrLost)
		require.NoError(t, w.table.Write(ctx, table.Delete(w.row("x"))))
		next := <-got
		require.NotNil(t, next)
		o, err := other.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.Error(t, context.Cause(next.Context()), "somebody else has it, under fence %d after %d", o.Fence(), next.Fence())
	})
}
