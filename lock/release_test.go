package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A hand-over within a process is no take-over.
func TestPass_IsNotToldAsATakeover(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		n := &nosy{Handler: slog.DiscardHandler}
		c := w.client(lock.Config{Logger: slog.New(n)})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := acquireAsync(ctx, c, lock.Name("report"))
		require.NoError(t, l.Release(ctx))
		require.NoError(t, (<-got).Release(ctx))
		assert.Zero(t, n.count("INFO lock: taken over from a holder that died"))
	})
}

// Who has tried to give a lock up is not told of a loss when its session ends.
func TestRelease_GivenUpIsNotLost(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		lost := atomic.Int64{}
		n, r := &nosy{Handler: slog.DiscardHandler}, newRecorder()
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, lock.Config{Logger: slog.New(n), MeterProvider: r, OnLost: func(*lock.Lease, error) { lost.Add(1) }})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(refused)
		w.releaseInVain(ctx, l)
		time.Sleep(time.Minute)
		assert.Equal(t, 1, n.count("WARN lock: session lost"))
		assert.Zero(t, n.count("WARN lock: lost"))
		assert.Zero(t, lost.Load())
	})
}

// Who could not be handed the lock keeps its place.
func TestPass_TheTargetOfAFailedOneStaysFirst(t *testing.T) {
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

// A process that goes on for ever keeps nothing of the locks that it has held.
func TestRelease_KeepsNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		const cycles = 1000
		run := func() {
			for range cycles {
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))
			}
			w.engine.ResetRequests()
		}
		run()
		before := heap()
		for range 3 {
			run()
		}
		grown := int64(heap()) - int64(before)
		assert.Less(t, grown, int64(3*cycles*100), "bytes")
	})
}

// Releases that hang do not keep the session from others that failed.
func TestRelease_ThatHangsKeepsNoOther(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, quiet)
		list := names(6)
		leases := make([]*lock.Lease, len(list))
		for i, target := range list {
			var err error
			leases[i], err = c.Acquire(ctx, target)
			require.NoError(t, err)
		}
		way.cut(refused)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		var releases sync.WaitGroup
		for i, l := range leases {
			releases.Go(func() { assert.Error(t, l.Release(short)) })
			if i < len(leases)-1 {
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, Key: w.table.KeyItem(l.Key()), For: time.Hour})
			}
		}
		releases.Wait()
		way.cut(open)
		time.Sleep(2 * time.Minute)
		row, err := w.table.Get(ctx, leases[len(leases)-1].Key(), true)
		require.NoError(t, err)
		assert.Empty(t, lineIn(row))
		w.engine.ClearFaults()
	})
}

// A release that failed behind a guarded write has given the lock up as well.
func TestRelease_BehindAWriteIsNoLoss(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		lost := atomic.Int64{}
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, lock.Config{Logger: quiet.Logger, OnLost: func(*lock.Lease, error) { lost.Add(1) }})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, Operation: "TransactWriteItems", For: 3 * time.Second})
		writing, stop := context.WithTimeout(ctx, 5*time.Second)
		defer stop()
		go func() { _ = l.Write(writing, w.put("x")) }()
		time.Sleep(100 * time.Millisecond)
		w.releaseInVain(ctx, l)
		way.cut(refused)
		time.Sleep(time.Minute)
		assert.Zero(t, lost.Load())
	})
}

// Who releases after a commit without an answer has released; no client is closed for that.
func TestRelease_AfterACommitInVain(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		l, err := w.clientOver(way, quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(refused)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.Error(t, l.Commit(short, w.put("x")))
		way.cut(open)
		require.NoError(t, l.Release(ctx))
		err = l.Write(ctx, w.put("x"))
		require.ErrorIs(t, err, lock.ErrReleased)
		require.NotErrorIs(t, err, lock.ErrClosed)
	})
}

// releaseInVain tries to release what cannot be released within a second.
func (w *world) releaseInVain(ctx context.Context, l *lock.Lease) {
	w.Helper()
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	require.Error(w, l.Release(short))
}

// A lease that was handed over has the next fence, and the one before is over.
func TestPass_TheLeaseIsWhole(t *testing.T) {
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
func TestPass_WithoutAnAnswerIsRecognisedByItsTarget(t *testing.T) {
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

// The holder's context ends with its session also after a release that failed.
func TestRelease_ToldOfTheSessionsEndWhereItCouldNotBeDone(t *testing.T) {
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
func TestRelease_ThatHangsDoesNotStarveRenewals(t *testing.T) {
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

// An heir that goes back to its place, before one who tries meanwhile and then gives up, is
// not forgotten.
func TestPass_ATargetThatGoesBackIsServed(t *testing.T) {
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

// A holder whose only Release waited in vain for a guarded write does not hold the lock for ever.
func TestRelease_ThatWaitedForAWriteInVain(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 3 * time.Second, Operation: "TransactWriteItems", Times: 1})
		go func() { assert.NoError(t, l.Write(ctx, w.put("x"))) }()
		time.Sleep(time.Second)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err = l.Release(short)
		require.Error(t, err)
		require.NotErrorIs(t, err, lock.ErrLost)
		time.Sleep(time.Hour)
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.False(t, r.Held(), "an hour later")
	})
}

// A release that has waited in vain for a write does not have the write cut off by those who wait in the
// process.
func TestRelease_InVainSparesTheWrite(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			next, err := c.Acquire(ctx, lock.Name("report"))
			if assert.NoError(t, err) {
				_ = next.Release(ctx)
			}
		}()
		time.Sleep(time.Second)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 20 * time.Second, Operation: "TransactWriteItems", Times: 1})
		got := make(chan error, 1)
		go func() { got <- l.Write(ctx, w.put("x")) }()
		time.Sleep(time.Second)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, l.Release(short), context.DeadlineExceeded)
		require.NoError(t, context.Cause(l.Context()))
		assert.NoError(t, <-got)
		<-done
	})
}

// A lock that was passed on without an answer is not kept by a ticket that nobody claims, once the lease is
// over of which nobody asks any more. No session's renewals find out: there is none, or the lease is Fixed.
func TestPass_WithoutAnAnswerOfALeaseThatEnds(t *testing.T) {
	const length = 20 * time.Second
	for name, opts := range leases() {
		for heirs, heir := range leases() {
			t.Run(name+" to "+heirs, func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					waiting, cancel := context.WithTimeout(ctx, time.Hour)
					defer cancel()
					c, other := w.client(quiet), w.client(quiet)
					_, err := c.Acquire(ctx, lock.Name("keeps the session"))
					require.NoError(t, err)
					l, err := c.Acquire(ctx, lock.Name("report"), opts...)
					require.NoError(t, err)
					got := acquireAsync(waiting, c, lock.Name("report"), heir...)
					w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
					short, stop := context.WithTimeout(ctx, time.Second)
					defer stop()
					require.ErrorIs(t, l.Commit(short, w.count("n")), context.DeadlineExceeded)
					w.engine.ClearFaults()
					start := time.Now()
					next := <-got
					require.NotNil(t, next)
					assert.LessOrEqual(t, time.Since(start), 2*length+6*time.Second)
					require.NoError(t, next.Write(ctx, w.count("n")))
					require.NoError(t, next.Release(ctx))
					last, err := other.Acquire(waiting, lock.Name("report"))
					require.NoError(t, err)
					require.NoError(t, last.Release(ctx))
				})
			})
		}
	}
}

// A refusal that names a lease of this process, and whose answer comes after that was released, is
// nothing to wait for: nobody hands over any more. A Fixed lease's acquisition asks no session.
func TestPass_ALeaseThatIsGonePassesNothing(t *testing.T) {
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

// The answer of a release is lost, its second attempt meets a conflict, and meanwhile the process's session is
// taken for dead by another process, which enters. The row then shows that somebody else has the lock, and
// not whether the release was applied before: Release tells both.
func TestRelease_WithoutAnAnswerOfASessionTakenForDead(t *testing.T) {
	for name, applied := range map[string]bool{"applied": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				var attempts atomic.Int32
				var armed atomic.Bool
				other := w.client(quiet)
				var c *lock.Client
				way := w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
					if operation != "UpdateItem" || !armed.Load() || !strings.Contains(body, "LOCK#report") {
						return send()
					}
					switch attempts.Add(1) {
					case 1: // its answer is lost
						if applied {
							resp, err := send()
							require.NoError(t, err)
							require.NoError(t, resp.Body.Close())
						}
						return nil, errors.New("connection reset")
					case 2:
						w.engine.Inject(tabletest.Fault{Kind: tabletest.TransactionConflict, Operation: "UpdateItem", Times: 1, Key: w.table.KeyItem(w.lockKey("report"))})
						resp, err := send()
						w.takenForDead(ctx, c, other)
						return resp, err
					}
					return send()
				})
				c = w.clientOver(way, quiet)
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				armed.Store(true)
				err = l.Release(ctx)
				require.ErrorIs(t, err, lock.ErrLost)
				assert.ErrorContains(t, err, "or was released")
				assert.GreaterOrEqual(t, attempts.Load(), int32(3))
				require.Error(t, context.Cause(l.Context()))
				require.ErrorIs(t, l.Release(ctx), lock.ErrLost)
				require.Error(t, l.Write(ctx, w.put("x")))
				r, err := other.Inspect(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.True(t, r.Held())
				require.NotEqual(t, l.Ticket(), r.Holder().Ticket)
				require.Greater(t, r.Fence, l.Fence())
			})
		})
	}
}

func (w *world) lockKey(name string) keys.Key { return keys.NewKey("LOCK#"+name, "LOCK#"+name) }

// takenForDead marks the session of a client dead, as one does that has observed it for a whole lease, and has
// another one acquire.
func (w *world) takenForDead(ctx context.Context, c, other *lock.Client) {
	w.Helper()
	require.NoError(w, w.table.Write(ctx, table.Update(sessionKey(c), table.Attr("dead").Set(time.Now().UnixMilli()))))
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := other.Acquire(bounded, lock.Name("report"))
	require.NoError(w, err)
}
