package lock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// writesTo counts the single writes to a partition since the log was reset.
func (w *world) writesTo(pk string) (n int) {
	for _, r := range w.requestsTo(pk) {
		if r.Operation == "UpdateItem" {
			n++
		}
	}
	return n
}

// A session that was marked dead ends its leases at its next renewal.
func TestSession_DeadOneEndsItsLeases(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		id := lock.SessionID(c)
		require.NoError(t, w.table.Write(ctx, table.Update(sessionKey(c), table.Attr("dead").Set(1))))
		start := time.Now()
		<-l.Context().Done()
		assert.LessOrEqual(t, time.Since(start), 6*time.Second, "told with the next renewal")
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
		// The next acquisition opens another session, and the old lease stays lost.
		next, err := c.Acquire(ctx, lock.Name("other"))
		require.NoError(t, err)
		require.NotEqual(t, id, lock.SessionID(c))
		require.ErrorIs(t, l.Renew(ctx), lock.ErrLost)
		require.NoError(t, next.Release(ctx))
		require.NoError(t, l.Release(ctx), "the row still named it")
	})
}

// A process that holds no lock sends nothing.
func TestSession_IdleOneEnds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		time.Sleep(time.Minute)
		ops := w.requests(func() { time.Sleep(24 * time.Hour) })
		assert.Empty(t, ops)
		_, err := w.table.Get(ctx, keys.NewKey("SESSION#"+lock.SessionID(c), "SESSION#"+lock.SessionID(c)), true)
		require.Error(t, err)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
	})
}

// An acquire ends with its context while another one opens the session for both.
func TestSession_OpeningIsWaitedForUntilTheContextEnds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.coldClientOver(way, lock.Config{HomeRegion: tabletest.Region})
		way.cut(hung)
		opening, give := context.WithCancel(ctx)
		first := acquireAsync(opening, c, lock.Name("first"))
		bounded, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.Acquire(bounded, lock.Name("second"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(start))
		give()
		assert.Nil(t, <-first)
	})
}

// Once a clock is found to be off, the end that it has recorded is removed from the session's row.
func TestSession_EndByAWrongClockIsRemoved(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		c, other := w.client(quiet, table.WithClock(wall.now)), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		wall.jump(-10 * time.Second)
		for range 60 {
			time.Sleep(time.Second)
			_, err = other.TryAcquire(ctx, lock.Name("report"))
			require.ErrorIs(t, err, lock.ErrHeld)
		}
		require.NoError(t, context.Cause(l.Context()))
	})
}

// A session does not end as idle while a lock is being acquired under it.
func TestSession_IsNotIdleWhileItAcquires(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		id := lock.SessionID(c)
		time.Sleep(8 * time.Second)
		require.Equal(t, id, lock.SessionID(c))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Key: w.table.KeyItem(keys.NewKey("LOCK#report", "LOCK#report"))})
		time.AfterFunc(8*time.Second, w.engine.ClearFaults)
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		l, err := c.Acquire(bounded, lock.Name("report"))
		require.NoError(t, err)
		assert.Equal(t, id, lock.SessionID(c))
		require.NoError(t, l.Release(ctx))
	})
}

// A release that failed once and then succeeded leaves nothing behind, and neither does a lock that was taken by force: the
// session ends.
func TestSession_SendsNothingOnceNothingIsHeld(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, w *world, way *line, l *lock.Lease){
		"released at the second try": func(ctx context.Context, w *world, way *line, l *lock.Lease) {
			way.cut(refused)
			w.releaseInVain(ctx, l)
			way.cut(open)
			require.NoError(w, l.Release(ctx))
		},
		"taken by force": func(ctx context.Context, w *world, _ *line, l *lock.Lease) {
			op := w.client(quiet)
			w.force(ctx, op, lock.Name("report"))
			<-l.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way := &line{to: w.engine.HTTPClient()}
				l, err := w.clientOver(way, quiet).Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				end(ctx, w, way, l)
				time.Sleep(time.Minute)
				assert.Empty(t, w.requests(func() { time.Sleep(time.Hour) }))
			})
		})
	}
}

// The holder's session ends, and a goroutine of the same process waits for the lock. It goes on waiting.
func TestSession_WaiterOutlivesIt(t *testing.T) {
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

// Many acquires at once share one session, and so do those that begin as it ends.
func TestSession_ReopensUnderConcurrency(t *testing.T) {
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

func TestSession_IsReadByTheIDOfAPlace(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a := w.cold(lock.Config{Owner: "a", Lease: 8 * time.Second})
		_, err := a.Acquire(ctx, lock.Name("x"))
		require.NoError(w, err)
		seen, err := a.Inspect(ctx, lock.Name("x"))
		require.NoError(w, err)

		list, err := a.Sessions(ctx, "of nobody", seen.Holder().Session)
		require.NoError(w, err)
		require.Len(w, list, 1)
		s := list[0]
		assert.Equal(w, lock.Session{ID: seen.Holder().Session, Owner: "a", Lease: 8 * time.Second, Expires: s.Expires}, s)
		assert.WithinDuration(w, time.Now().Add(s.Lease), s.Expires, 2*time.Second)
		// One question is in the mailbox until the next renewal.
		require.NoError(w, w.cold(lock.Config{Owner: "b"}).Revoke(ctx, lock.Name("x")))
		list, err = a.Sessions(ctx, s.ID)
		require.NoError(w, err)
		assert.Equal(w, 1, list[0].Asked)

		// Another process marks it as dead, like a client that takes over.
		dead := time.Now().Truncate(time.Millisecond).UTC()
		require.NoError(w, w.table.Write(ctx, table.Update(sessionKey(a), table.Attr("dead").Set(dead.UnixMilli()))))
		list, err = a.Sessions(ctx, s.ID)
		require.NoError(w, err)
		assert.Equal(w, dead, list[0].Dead)

		list, err = a.Sessions(ctx)
		require.NoError(w, err)
		assert.Empty(w, list)
	})
}

// A slow answer costs a session little of its lease: it counts from the attempt that was answered.
func TestSession_OpenedLateHasItsWholeLease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.coldClient(lock.Config{Lease: time.Second}) // the grant of the session
		w.engine.ResetRequests()
		w.engine.Inject(
			tabletest.Fault{Kind: tabletest.Delay, After: true, For: time.Hour, Call: 1},
			tabletest.Fault{Kind: tabletest.Delay, After: true, For: time.Hour, Call: 2},
			tabletest.Fault{Kind: tabletest.Delay, After: true, For: 200 * time.Millisecond, Call: 3},
		)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.Greater(t, l.Remaining(), 600*time.Millisecond)
		time.Sleep(time.Minute)
		require.NoError(t, context.Cause(l.Context()))
	})
}

// A session that was found alive counts as alive only until the end that it shows, however the clock is set.
func TestSession_SignOfLifeEndsWithItsLease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way, fast := &line{to: w.engine.HTTPClient()}, &wallClock{by: time.Hour}
		holder := w.clientOver(way, quiet)
		c := w.client(quiet, table.WithClock(fast.now))
		_, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		// A look that lags behind does not find the holder's session. A later read shows that it is alive.
		w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Operation: "BatchGetItem", Writes: 1000})
		waiting, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err = c.Acquire(waiting, lock.Name("report"))
		require.ErrorIs(t, err, lock.ErrHeld)
		w.engine.ClearFaults()
		fast.jump(-time.Hour)
		time.Sleep(20 * time.Second)
		way.cut(hung)
		time.Sleep(30 * time.Second)
		_, err = c.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
	})
}

// The first request of a client does not know the time, and records no end of its lease. Soon after, the client records it:
// should the process die, a client that does not wait could otherwise never find out.
func TestSession_FirstOneRecordsItsEndSoon(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				other := w.client(lock.Config{})
				l, err := other.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx)) // the row is there: the first request takes it
				way := &line{to: w.engine.HTTPClient()}
				c, err := lock.New(w.openOver(way, table.Schema{Name: "app"}), lock.Config{HomeRegion: w.table.Region(), Logger: quiet.Logger})
				require.NoError(t, err)
				defer func() { _ = c.Close(ctx) }()
				_, err = c.TryAcquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				time.Sleep(100 * time.Millisecond)
				way.cut(hung)
				time.Sleep(time.Minute + 3*time.Second)
				_, err = other.TryAcquire(ctx, lock.Name("report"))
				require.NoError(t, err)
			})
		})
	}
}

// The ends of several Fixed leases are recorded at once, and not one after the other.
func TestSession_FirstEndsAreRecordedTogether(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		const n = 100
		targets := names(n)
		b, err := w.client(lock.Config{}).AcquireAll(ctx, targets)
		require.NoError(t, err)
		require.NoError(t, b.Release(ctx)) // the rows are there
		w.latency(10 * time.Millisecond)
		c := w.cold(lock.Config{HomeRegion: w.table.Region()})
		start := time.Now()
		_, err = c.AcquireAll(ctx, targets, lock.Fixed(time.Minute))
		require.NoError(t, err)
		assert.Less(t, time.Since(start), 200*time.Millisecond)
		for _, target := range targets {
			r, err := c.Inspect(ctx, target)
			require.NoError(t, err)
			assert.False(t, r.Until().IsZero())
		}
	})
}

// An ID that no session can have, as in a row that another hand has written, is left out, and keeps no other session from the answer.
func TestSessions_LeavesOutImpossibleIDs(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		config := quiet
		config.SessionKey = "SESSION#{id:raw}"
		c := w.client(config)
		id := lock.SessionID(c)
		list, err := c.Sessions(ctx, "A#B", id, strings.Repeat("x", 3000))
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.Equal(t, id, list[0].ID)
	})
}

// No client has an owner's name of 300 KB. A row by another hand can, and what shows sessions would keep it.
func TestSessions_HaveOwnersAsLongAsAClientsAtMost(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b := w.client(quiet), w.client(quiet)
		require.NoError(t, errOf(b.Acquire(ctx, lock.Name("x"))))
		require.NoError(t, w.table.Write(ctx, table.Update(sessionKey(b), table.Attr("owner").Set("a"+strings.Repeat("é", 150_000)))))
		list, err := a.Sessions(ctx, lock.SessionID(b))
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.Equal(t, "a"+strings.Repeat("é", lock.MaxOwner/2-1), list[0].Owner, "whole characters")
	})
}

// A place without a session, an impossible ID, and a malformed session hide no other session.
func TestSessions_ReturnsTheOthers(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b := w.client(quiet), w.client(quiet)
		require.NoError(t, errOf(a.Acquire(ctx, lock.Name("x"))))
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		acquireAsync(waiting, b, lock.Name("x"), lock.Fixed(time.Minute))
		r, err := a.Inspect(ctx, lock.Name("x"))
		require.NoError(t, err)
		require.Len(t, r.Line, 2)
		ids := []string{r.Line[0].Session, r.Line[1].Session, "A#B"}
		list, err := a.Sessions(ctx, ids...)
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.Equal(t, lock.SessionID(a), list[0].ID)

		require.NoError(t, errOf(b.Acquire(ctx, lock.Name("y"))))
		require.NoError(t, w.table.Write(ctx, table.Update(sessionKey(b), table.Attr("lease").Set("x"))))
		list, err = a.Sessions(ctx, append(ids, lock.SessionID(b))...)
		require.Error(t, err)
		require.Len(t, list, 1)
		assert.Equal(t, lock.SessionID(a), list[0].ID)
	})
}

// A session without locks ends after half a lease. A lock that is acquired at any moment before, during or after that is renewed.
func TestSession_LockAcquiredAtAnyMomentIsKept(t *testing.T) {
	const lease, step = 20 * time.Second, 250 * time.Millisecond
	virtual(t, func(ctx context.Context, w *world) {
		w.latency(20 * time.Millisecond)
		var all sync.WaitGroup
		for pause := time.Duration(0); pause < lease*5/8; pause += step {
			c, target := w.client(quiet), lock.Name(pause.String())
			all.Go(func() {
				l, err := c.Acquire(ctx, target)
				assert.NoError(t, err)
				assert.NoError(t, l.Release(ctx))
				time.Sleep(pause)
				l, err = c.Acquire(ctx, target)
				assert.NoError(t, err)
				time.Sleep(2 * lease)
				assert.NoError(t, l.Context().Err(), "after %v", pause)
				assert.NoError(t, l.Commit(ctx, w.put(pause.String())))
			})
		}
		all.Wait()
	})
}
