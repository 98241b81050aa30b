package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// An acquire whose answer was lost, and that was withdrawn, is not waited for as if it were about to release the lock.
func TestAcquire_WithdrawnOneIsNotWaitedFor(t *testing.T) {
	const patience = 3 * time.Second
	for name, tc := range map[string]struct {
		operation string
		acquire   func(c *lock.Client, ctx context.Context) error
	}{
		"one": {"UpdateItem", func(c *lock.Client, ctx context.Context) error {
			_, err := c.TryAcquire(ctx, names(2)[1])
			return err
		}},
		"several": {"TransactWriteItems", func(c *lock.Client, ctx context.Context) error {
			_, err := c.TryAcquireAll(ctx, names(2))
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.client(lock.Config{Lease: time.Hour}), w.client(lock.Config{})
				l, err := other.Acquire(ctx, names(2)[1])
				require.NoError(t, err)
				_, err = c.Acquire(ctx, lock.Name("keeps the session"))
				require.NoError(t, err)
				got := acquireAsync(ctx, c, names(2)[1])
				time.Sleep(10 * time.Second)
				require.NoError(t, l.Release(ctx))
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: tc.operation})
				start := time.Now()
				bounded, giveUp := context.WithCancel(ctx)
				time.AfterFunc(patience, func() {
					w.engine.ClearFaults()
					giveUp()
				})
				require.ErrorIs(t, tc.acquire(c, bounded), context.Canceled)
				next := <-got
				require.NotNil(t, next)
				assert.Less(t, time.Since(start), patience+3*time.Second)
				require.NoError(t, next.Release(ctx))
			})
		})
	}
}

// The same for a pass: a commit without an answer passed the lock to a goroutine that has stopped waiting, and the holder
// releases.
func TestAcquire_WithdrawnPassIsNotWaitedFor(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Lease: time.Hour})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		first, leave := context.WithCancel(ctx)
		acquireAsync(first, c, lock.Name("report"))
		got := acquireAsync(ctx, c, lock.Name("report"))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		time.AfterFunc(time.Second, leave)
		require.ErrorIs(t, l.Commit(ctx, w.count("n")), table.ErrUnreachable)
		start := time.Now()
		require.NoError(t, l.Release(ctx))
		next := <-got
		require.NotNil(t, next)
		assert.Less(t, time.Since(start), 3*time.Second)
		require.NoError(t, next.Release(ctx))
		assert.EqualValues(t, 1, w.counted("n"))
	})
}

// If the session ends before an acquire has its answer, the acquire goes on under a new session. The lock is not lost, since
// it was not held yet.
func TestAcquire_GoesOnUnderAnotherSession(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		first, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, first.Release(ctx))
		// The next acquire is answered after the renewal that finds out.
		session := lock.SessionID(c)
		w.engine.Inject(tabletest.Fault{
			Kind: tabletest.Delay, After: true, For: 2800 * time.Millisecond, Operation: "UpdateItem", Times: 1,
			Key: w.table.KeyItem(first.Key()),
		})
		time.Sleep(3500 * time.Millisecond)
		require.NoError(t, w.table.Write(ctx, table.Update(sessionKey(c), table.Attr("dead").Set(1))))
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.NotEqual(t, session, lock.SessionID(c))
		assert.Equal(t, first.Fence()+2, l.Fence(), "the first grant was given back, and never seen")
		require.NoError(t, l.Write(ctx, w.put("x")))
		require.NoError(t, l.Release(ctx))
	})
}

func TestAcquire_FreeLockCostsTwoWrites(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		ops := w.requests(func() {
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.NoError(t, l.Release(ctx))
		})
		assert.Equal(t, []string{"UpdateItem", "UpdateItem"}, ops)
	})
}

func TestTryAcquire_NamesTheHolder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b := w.client(lock.Config{Owner: "a"}), w.client(lock.Config{Owner: "b"})
		l, err := a.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		ops := w.requests(func() {
			_, err = b.TryAcquire(ctx, lock.Name("report"))
		})
		var held *lock.HeldError
		require.ErrorAs(t, err, &held)
		require.ErrorIs(t, err, lock.ErrHeld)
		assert.Equal(t, "a", held.Owner)
		assert.Equal(t, l.Fence(), held.Fence)
		assert.Equal(t, time.Now().UTC(), held.Since)
		assert.Zero(t, held.Until, "it renews")
		assert.Equal(t, lock.Name("report"), held.Target)
		assert.Len(t, ops, 1)
		assert.NotContains(t, err.Error(), "report")

		_, err = a.Acquire(ctx, lock.Name("other"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		_, err = b.TryAcquire(ctx, lock.Name("other"))
		require.ErrorAs(t, err, &held)
		assert.Equal(t, time.Now().UTC().Add(20*time.Second), held.Until)
	})
}

// A caller that waits for a lock that its own client holds learns this from the error: it may be waiting for itself.
func TestAcquire_NestedOneNamesThisClient(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(quiet)
				l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
				require.NoError(t, err)
				short, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				_, err = c.Acquire(short, lock.Name("report"), opts...)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, lock.ErrHeld)
				assert.ErrorContains(t, err, "this client")
				require.NoError(t, l.Release(ctx))
				l, err = c.Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))

				// A lock of another process is not a lock of this client.
				l, err = w.client(quiet).Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				again, stop := context.WithTimeout(ctx, time.Minute)
				defer stop()
				_, err = c.Acquire(again, lock.Name("report"), opts...)
				require.ErrorIs(t, err, lock.ErrHeld)
				assert.NotContains(t, err.Error(), "this client")
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// A client that is one of several holders is told so, also where it is not the first.
func TestAcquire_NestedOneNamesThisClientAmongHolders(t *testing.T) {
	for name, tc := range map[string]struct{ first, nested []lock.Option }{
		"permits":                      {[]lock.Option{lock.Permits(2)}, []lock.Option{lock.Permits(2)}},
		"a reader that wants to write": {[]lock.Option{lock.Shared()}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(quiet)
				for _, holder := range []*lock.Client{w.client(quiet), c} {
					_, err := holder.Acquire(ctx, exports, tc.first...)
					require.NoError(t, err)
				}
				short, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				_, err := c.Acquire(short, exports, tc.nested...)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.ErrorContains(t, err, " and 1 more, this client itself among them, since ")
				_, err = w.client(quiet).TryAcquire(ctx, exports, tc.nested...)
				require.ErrorIs(t, err, lock.ErrHeld)
				assert.NotContains(t, err.Error(), "this client")
			})
		})
	}
}

// Two clients in one process, on one table, behave like two processes.
func TestAcquire_TwoClientsInOneProcess(t *testing.T) {
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
				inside++ // unsynchronized on purpose: only the lock orders it
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

// An acquire whose context ends between two attempts reports the context's end, and not that its retries are exhausted.
func TestAcquire_EndedContextIsNotExhaustion(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		r := newRecorder()
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, lock.Config{MeterProvider: r}, twice())
		r.take(ctx)
		way.cut(refused)
		bounded, cancel := context.WithTimeout(ctx, 50*time.Millisecond) // the first pause has 100
		defer cancel()
		_, err := c.TryAcquire(bounded, lock.Name("report"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Contains(t, r.take(ctx), "wait.duration context")
		way.cut(open)
	})
}

// A lease begins with the attempt that the row shows, and not with an earlier one whose answer was also lost.
func TestAcquire_LeaseBeginsWithTheAttemptThatSucceeded(t *testing.T) {
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

func TestAcquire_EndedContextSendsNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		mine := errors.New("why")
		ended, cancel := context.WithCancelCause(ctx)
		cancel(mine)
		ops := w.requests(func() {
			_, err := c.Acquire(ended, lock.Name("report"))
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, mine)
			_, err = c.TryAcquire(ended, lock.Name("report"))
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, c.Do(ended, lock.Name("report"), func(context.Context, *lock.Lease) error { return nil }), context.Canceled)
		})
		assert.Empty(t, ops)
	})
}

// An answer that took longer than the lease grants nothing, and leaves nothing behind.
func TestAcquire_AnswerLaterThanTheLeaseGrantsNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		w.engine.ResetRequests()
		for call := 1; call <= 4; call++ {
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: time.Hour, Call: call})
		}
		start := time.Now()
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
		require.Greater(t, time.Since(start), time.Second)
		require.ErrorIs(t, err, lock.ErrExpired)
		require.Nil(t, l)
		w.free(ctx, []lock.Target{lock.Name("report")})
	})
}

// A grant was answered too late, and could not be given back. It is not recognised again later: its lease would count from
// a later attempt.
func TestAcquire_LateGrantIsNotRecognisedAgain(t *testing.T) {
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

// leases are the two kinds of leases, by name, with their options.
func leases() map[string][]lock.Option {
	return map[string][]lock.Option{"session": nil, "Fixed": {lock.Fixed(20 * time.Second)}}
}
