package lock_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"regexp"
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

// A waiter's own first attempt arrives late, and nobody else in its process takes it for a ghost.
func TestLateRequest_OfAWaiterIsNotTakenForAGhost(t *testing.T) {
	lateAttemptOfAWaiter(t, tabletest.DropRequest)
}

// lateAttemptOfAWaiter lets a waiter's first attempt arrive ten seconds late, right after the lock was released. Jitter
// decides whether the waiter looks at the wrong moment.
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
			// Released right before the attempt arrives, and before the waiter has looked.
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, Operation: "BatchGetItem", Times: 1})
			time.Sleep(time.Until(start.Add(9*time.Second + 990*time.Millisecond)))
			require.NoError(t, l.Release(ctx))
			time.Sleep(20 * time.Millisecond)
			slow.armed.Store(true)
			_, err = c.TryAcquire(ctx, lock.Name("report"))
			assert.ErrorIs(t, err, lock.ErrHeld, "by the waiter, which is about to hear of it")
			next := <-waiter
			if next == nil {
				return // reported already
			}
			time.Sleep(time.Minute)
			require.NoError(t, context.Cause(next.Context()))
			require.NoError(t, next.Write(ctx, w.put("z")))
		})
	}
}

// slowRelease delays, once armed, the next update that returns no row: a release.
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

// A ticket that has left the line is forgotten. If an attempt to enter it arrives late, it is removed like any ghost.
func TestLateRequest_OfATicketThatHasLeftIsRemoved(t *testing.T) {
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
		require.LessOrEqual(t, time.Since(start), freeOfGhost)
		require.NoError(t, next.Release(ctx))
	})
}

// An attempt that arrives late under a session that has ended since is no lease under the next session: others would take
// the lock from the dead session.
func TestLateRequest_UnderAnEndedSessionIsNoLease(t *testing.T) {
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
		// The look that sees the lock free is answered after the attempt has arrived.
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

// Nobody else in its process takes the ticket of such a waiter for a ghost and removes it, under a lease that goes on.
func TestLateRequest_DuplicateOfAWaiterIsNotTakenForAGhost(t *testing.T) {
	lateAttemptOfAWaiter(t, tabletest.DuplicateLate)
}

// A request to enter is delivered again when its ticket has become first. That changes nothing: the lease ends before
// others are granted the lock.
func TestLateRequest_DuplicateOfAnEnterChangesNothing(t *testing.T) {
	fixed := lock.Fixed(20 * time.Second)
	targets := names(2)
	for name, tc := range map[string]struct {
		operation string
		acquire   func(c *lock.Client, ctx context.Context) (*lock.Lease, error)
	}{
		"one": {"UpdateItem", func(c *lock.Client, ctx context.Context) (*lock.Lease, error) {
			return c.Acquire(ctx, targets[1], fixed)
		}},
		"several": {"TransactWriteItems", func(c *lock.Client, ctx context.Context) (*lock.Lease, error) {
			b, err := c.AcquireAll(ctx, targets, fixed)
			if err != nil {
				return nil, err
			}
			return b.Leases()[1], nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				holder, c, other := w.client(lock.Config{}), w.client(lock.Config{}), w.client(lock.Config{})
				l, err := holder.Acquire(ctx, targets[1])
				require.NoError(t, err)
				const late = 15 * time.Second
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: tc.operation, Key: w.table.KeyItem(l.Key()), Times: 1, For: late})
				time.AfterFunc(late-10*time.Millisecond, func() {
					// The waiter does not look until the row names it.
					w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, Operation: "BatchGetItem", Times: 1})
					assert.NoError(t, l.Release(ctx))
				})
				waiting, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				mine, err := tc.acquire(c, waiting)
				require.NoError(t, err)
				next, err := other.Acquire(waiting, targets[1])
				require.NoError(t, err)
				assert.Greater(t, next.Fence(), mine.Fence())
				assert.ErrorIs(t, context.Cause(mine.Context()), lock.ErrExpired, "told before somebody else was let in")
			})
		})
	}
}

// A request that gives a lease up was refused, since others had come or gone. While its repetition is under way, a late copy of it
// fits the row again. The lock is then given up, and a commit has written: neither is reported as a loss.
func TestLateRequest_RefusedOneThatFitsLaterIsNoLoss(t *testing.T) {
	beside := func(ctx context.Context, w *world) (l *lock.Lease, others func()) { // one more waits, and gives up
		w.indexed(byTime)
		l, err := w.indexing().Acquire(ctx, lock.Name("report"))
		require.NoError(w, err)
		waiting, leave := context.WithCancel(ctx)
		acquireAsync(waiting, w.indexing(), lock.Name("report"))
		return l, leave
	}
	among := func(ctx context.Context, w *world) (l *lock.Lease, others func()) { // the last: it expects that the others have left
		list := w.threeHold(ctx, &line{to: w.engine.HTTPClient()}, 2, exports, lock.Permits(4))
		brief, err := w.client(quiet).Acquire(ctx, exports, lock.Permits(4))
		require.NoError(w, err)
		require.NoError(w, brief.Release(ctx)) // the row tells that holders are brief
		l, err = w.client(quiet).Acquire(ctx, exports, lock.Permits(4))
		require.NoError(w, err)
		time.Sleep(10 * time.Second)
		return l, func() {
			for _, l := range list {
				assert.NoError(w, l.Release(ctx))
			}
		}
	}
	for name, tc := range map[string]struct {
		held      func(context.Context, *world) (l *lock.Lease, others func())
		operation string
	}{
		"commit, in an index":   {beside, "TransactWriteItems"},
		"release, in an index":  {beside, "UpdateItem"},
		"commit of a permit":    {among, "TransactWriteItems"},
		"release of one permit": {among, "UpdateItem"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				l, others := tc.held(ctx, w)
				row, second := w.table.KeyItem(l.Key()), 0
				w.engine.Inject(
					tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: tc.operation, Key: row, Times: 1, For: 2 * time.Second},
					tabletest.Fault{
						Kind: tabletest.Delay, Operation: tc.operation, Key: row, For: 2500 * time.Millisecond,
						When: func(tabletest.Request) bool {
							second++
							return second == 2
						},
					},
				)
				time.AfterFunc(time.Second, others)
				if tc.operation == "UpdateItem" {
					require.NoError(t, l.Release(ctx))
					return
				}
				err := l.Commit(ctx, w.count("x"))
				require.EqualValues(t, 1, w.counted("x"))
				require.True(t, table.MayBeApplied(err), err)
				require.NotErrorIs(t, err, lock.ErrLost)
				require.NotErrorIs(t, err, lock.ErrReleased)
			})
		})
	}
}

// The same, and the repetition of the commit is refused by a condition of the caller's own. The release after that finds the lock given up.
func TestLateRequest_RefusedCommitThatFitsLaterIsNoLossForTheRelease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.indexed(byTime)
		l, err := w.indexing().Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		waiting, leave := context.WithCancel(ctx)
		acquireAsync(waiting, w.indexing(), lock.Name("report"))
		second, flag := 0, table.Attr("flag")
		w.engine.Inject(
			tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "TransactWriteItems", Times: 1, For: 3 * time.Second},
			tabletest.Fault{Kind: tabletest.Delay, Operation: "TransactWriteItems", For: time.Second, When: func(tabletest.Request) bool {
				second++
				return second == 2
			}},
		)
		time.AfterFunc(500*time.Millisecond, func() { assert.NoError(t, w.table.Write(ctx, table.Update(w.row("x"), flag.Set(1)))) })
		err = l.Commit(ctx, w.count("x").If(flag.NotExists()))
		require.ErrorIs(t, err, table.ErrCondition)
		require.True(t, table.MayBeApplied(err), err)
		require.NoError(t, w.table.Write(ctx, table.Update(w.row("x"), flag.Remove())))
		leave()
		time.Sleep(3 * time.Second)
		require.EqualValues(t, 1, w.counted("x"))
		require.NoError(t, l.Release(ctx))
	})
}

// The network delivers every request twice. Every write of a lock's life recognises its own effect.
func TestDuplicates_OfEveryRequestChangeNothing(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.clientOver(&line{to: repeating{w.engine.HTTPClient()}}, lock.Config{})
				for range 3 {
					l, err := c.Acquire(ctx, lock.Name("report"), opts...)
					require.NoError(t, err)
					for range 12 {
						time.Sleep(5 * time.Second)
						require.NoError(t, l.Renew(ctx))
					}
					require.NoError(t, l.Write(ctx, w.count("n")))
					require.NoError(t, l.SetData(ctx, "x"))
					require.NoError(t, context.Cause(l.Context()))
					require.NoError(t, l.Release(ctx))
				}
				l, err := c.Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				require.NoError(t, l.Commit(ctx, w.count("n")))
				assert.EqualValues(t, 4, w.counted("n"))
			})
		})
	}
}

// repeating delivers every request twice, and returns the second answer, like a proxy that repeats requests without an
// answer.
type repeating struct{ to aws.HTTPClient }

func (t repeating) Do(r *http.Request) (*http.Response, error) {
	first := r.Clone(r.Context())
	if r.Body != nil {
		body, err := peek(r)
		if err != nil {
			return nil, err
		}
		first.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := t.to.Do(first)
	if err != nil {
		return nil, err
	}
	if err := resp.Body.Close(); err != nil {
		return nil, err
	}
	return t.to.Do(r)
}

// A ghost is removed also by a process that holds locks for moments: its session is opened again and again, and hardly ever
// renewed.
func TestGhost_OfAProcessThatHoldsBrieflyIsRemoved(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.guardian = nil // it would take most of the time
		c, other := w.client(quiet), w.client(quiet)
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Call: 1, For: time.Minute})
		for _, c := range []*lock.Client{c, other} { // a row that names the first as released would refuse it
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.NoError(t, l.Release(ctx))
		}
		work, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			for work.Err() == nil {
				if l, err := c.Acquire(ctx, lock.Name("other")); assert.NoError(t, err) {
					time.Sleep(10 * time.Millisecond)
					assert.NoError(t, l.Release(ctx))
				}
				time.Sleep(990 * time.Millisecond)
			}
		}()
		time.Sleep(70 * time.Second)
		r, err := other.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.True(t, r.Held(), "by a ghost")
		bounded, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		start := time.Now()
		require.NoError(t, errOf(other.Acquire(bounded, lock.Name("report"))))
		assert.LessOrEqual(t, time.Since(start), freeOfGhost+5*time.Second, "and a period, in which the session was opened")
		stop()
		time.Sleep(time.Second)
	})
}

// A commit without an answer that arrives after a later write of the same lease is not applied: it would undo that write.
func TestCommit_LateOneIsNotAppliedAfterALaterWrite(t *testing.T) {
	type call = func(context.Context, ...table.Op) error
	for name, acquire := range map[string]func(ctx context.Context, c *lock.Client) (commit, write call, err error){
		"of a lease": func(ctx context.Context, c *lock.Client) (commit, write call, err error) {
			l, err := c.Acquire(ctx, lock.Name("report"))
			return l.Commit, l.Write, err
		},
		"of a bundle": func(ctx context.Context, c *lock.Client) (commit, write call, err error) {
			b, err := c.AcquireAll(ctx, names(2))
			return b.Commit, b.Leases()[1].Write, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				commit, write, err := acquire(ctx, w.client(quiet))
				require.NoError(t, err)
				set := func(v string) table.Op { return table.Update(w.row("x"), table.Attr("v").Set(v)) }
				w.engine.Inject(tabletest.Fault{
					Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: 10 * time.Second,
				})
				short, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				require.ErrorIs(t, commit(short, set("commit")), context.DeadlineExceeded)
				require.NoError(t, write(ctx, set("write")))
				time.Sleep(time.Minute)
				item, err := w.table.Get(ctx, w.row("x"), true)
				require.NoError(t, err)
				assert.Equal(t, text("write"), item["v"])
			})
		})
	}
}

// DynamoDB has forgotten the token of a write that was applied. Its repetition is refused by the number in the row, which
// shows that it was applied.
// Likewise the transaction that enters several lines: the ticket in the row shows that it was applied.
func TestWrite_IsRecognisedByItsNumber(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		forgets := regexp.MustCompile(`"ClientRequestToken":"[^"]*"`)
		c := w.clientOver(&line{to: roundTrip(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			body = forgets.ReplaceAll(body, []byte(`"ClientRequestToken":"`+rand.Text()+`"`))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			return w.engine.HTTPClient().Do(r)
		})}, quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems", Times: 1})
		require.NoError(t, l.Write(ctx, w.count("n")))
		assert.EqualValues(t, 1, w.counted("n"))
		require.NoError(t, l.Release(ctx))

		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems", Times: 1})
		var b *lock.Bundle
		ops := w.requests(func() { b, err = c.TryAcquireAll(ctx, names(2)) })
		require.NoError(t, err, "it is not held by somebody else")
		assert.Equal(t, []string{"TransactWriteItems", "TransactWriteItems", "BatchGetItem"}, ops)
		require.NoError(t, b.Release(ctx))
		w.free(ctx, names(2))
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) Do(r *http.Request) (*http.Response, error) { return f(r) }
