package lock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Renewals of one lease take turns: the later one counts, and neither is a loss.
func TestRenew_CallsOfOneLeaseTakeTurns(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, Call: 1})
		slow := make(chan error, 1)
		go func() { slow <- l.Renew(ctx) }()
		time.Sleep(500 * time.Millisecond)
		require.NoError(t, l.Renew(ctx))
		renewed := l.Remaining()
		require.NoError(t, <-slow)
		assert.Equal(t, renewed, l.Remaining(), "by the later one")
		assert.Equal(t, 20*time.Second-200*time.Millisecond, renewed)
		require.NoError(t, context.Cause(l.Context()))
		require.NoError(t, l.Release(ctx))
	})
}

// One renewal that hangs leaves time for others.
func TestRenew_HungOneLosesNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, Operation: "UpdateItem", For: 1000 * time.Hour, Times: 1})
		time.Sleep(time.Minute)
		require.NoError(t, context.Cause(l.Context()))
		assert.Greater(t, l.Remaining(), 10*time.Second)
	})
}

// A holder that has lost the lock, and does not know yet, renews nothing for the next holder.
func TestRenew_OfALostLeaseRenewsNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		first, second := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := first.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		w.force(ctx, second, lock.Name("report"))
		next, err := second.TryAcquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		before, err := second.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		require.ErrorIs(t, l.Renew(ctx), lock.ErrLost)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
		after, err := second.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Equal(t, before, after)
		require.NoError(t, next.Renew(ctx))
	})
}

func TestRenew_LateDuplicateChangesNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{
			Kind: tabletest.DuplicateLate, Operation: "UpdateItem", For: 10 * time.Second, Times: 1, Key: w.table.KeyItem(l.Key()),
		})
		time.Sleep(5 * time.Second)
		require.NoError(t, l.Renew(ctx))
		time.Sleep(5 * time.Second)
		require.NoError(t, l.Renew(ctx))
		before, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(6 * time.Second)
		after, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Equal(t, before, after)
		assert.Equal(t, 14*time.Second, time.Until(after.Until()))
	})
}

func TestRenew_LateDuplicateOfASessionsRenewalChangesNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		key := sessionKey(c)
		w.engine.Inject(tabletest.Fault{
			Kind: tabletest.DuplicateLate, Operation: "UpdateItem", For: 12 * time.Second, Times: 3, Key: w.table.KeyItem(key),
		})
		var beat, expires int64
		for range 60 {
			time.Sleep(time.Second)
			row, err := w.table.Get(ctx, key, true)
			require.NoError(t, err)
			require.GreaterOrEqual(t, number(t, row["beat"]), beat)
			require.GreaterOrEqual(t, number(t, row["expires"]), expires)
			beat, expires = number(t, row["beat"]), number(t, row["expires"])
		}
		assert.GreaterOrEqual(t, beat, int64(10), "it was renewed")
		require.NoError(t, context.Cause(l.Context()))
	})
}

// Grants and renewals count from when the request was sent. So the holder never counts on more than others read in the row.
func TestRenew_SlowAnswersDoNotProlongTheLease(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{})
				time.Sleep(time.Minute) // the session is idle, and ends
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 2 * time.Second})
				l, err := c.Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				for range 12 {
					for range 50 {
						require.LessOrEqual(t, l.Remaining(), 18*time.Second)
						time.Sleep(100 * time.Millisecond)
					}
					require.NoError(t, l.Renew(ctx))
					require.Greater(t, l.Remaining(), 10*time.Second, "it is renewed")
				}
			})
		})
	}
}

// A renewal whose answer arrives after the lease has ended renews nothing.
func TestRenew_AnsweredTooLateRenewsNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, Key: w.table.KeyItem(l.Key()), Times: 1, For: 700 * time.Millisecond})
		time.Sleep(l.Remaining() - 300*time.Millisecond)
		require.ErrorIs(t, l.Renew(ctx), lock.ErrExpired)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
	})
}

// A renewal whose answer comes after the lock was given up finds no loss.
func TestRenew_AnsweredAfterTheReleaseIsNoLoss(t *testing.T) {
	for name, giveUp := range map[string]func(ctx context.Context, w *world, l *lock.Lease) error{
		"release": func(ctx context.Context, _ *world, l *lock.Lease) error { return l.Release(ctx) },
		"commit":  func(ctx context.Context, w *world, l *lock.Lease) error { return l.Commit(ctx, w.count("n")) },
	} {
		for _, applied := range []bool{true, false} { // before the lock was given up; otherwise the row refuses it
			t.Run(fmt.Sprint(name, applied), func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					c := w.client(lock.Config{})
					l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
					require.NoError(t, err)
					w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: applied, For: time.Second, Times: 1})
					renewed := make(chan error, 1)
					go func() { renewed <- l.Renew(ctx) }()
					time.Sleep(500 * time.Millisecond)
					require.NoError(t, giveUp(ctx, w, l))
					err = <-renewed
					require.ErrorIs(t, err, lock.ErrReleased)
					require.NotErrorIs(t, err, lock.ErrLost)
				})
			})
		}
	}
}

// A renewal that was refused waits for a write under way, which may tell why. It waits no longer than its context.
func TestRenew_OfALostLeaseEndsWithItsContextBehindAWrite(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Minute))
		require.NoError(t, err)
		w.force(ctx, w.client(quiet), lock.Name("report"))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, Operation: "TransactWriteItems", For: 3 * time.Second, Times: 1})
		written := make(chan error, 1)
		go func() { written <- l.Write(ctx, w.put("x")) }()
		time.Sleep(time.Second)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, l.Renew(short), context.DeadlineExceeded)
		require.ErrorIs(t, <-written, lock.ErrLost)
		require.ErrorIs(t, l.Renew(ctx), lock.ErrLost)
	})
}

// A holder whose lock was taken by force is told, whatever eventually consistent reads would show.
func TestSession_ReadsConsistentlyWhatIsHeld(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, op := w.client(quiet), w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(time.Minute) // many renewals: every read shows the acquire
		r, err := op.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Writes: 8})
		require.NoError(t, op.ForceRelease(ctx, lock.Name("report"), r.Holder().Ticket))
		start := time.Now()
		<-l.Context().Done()
		assert.LessOrEqual(t, time.Since(start), 6*time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
	})
}

// Clients that began together do not renew together for ever.
func TestRenew_IsSpread(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		_, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.ResetRequests()
		time.Sleep(5 * time.Minute)
		gaps := map[time.Duration]bool{}
		list := w.requestsTo(sessionKey(c).PK)
		for i := range list[1:] {
			gaps[list[i+1].Time.Sub(list[i].Time)] = true
		}
		assert.Greater(t, len(gaps), len(list)/2)
	})
}

// A renewal that failed and was repeated is not named as the cause of a later end.
func TestRenew_OldFailureIsNotNamed(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, quiet, table.WithClock(wall.now))
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(refused)
		time.Sleep(7 * time.Second)
		way.cut(open)
		time.Sleep(time.Minute)
		require.NoError(t, context.Cause(l.Context()))
		wall.jump(time.Minute)
		<-l.Context().Done()
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
		require.NotErrorIs(t, context.Cause(l.Context()), table.ErrUnreachable)
	})
}

func TestRenew_KeepsTheLock(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := a.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(time.Duration(testkit.IfSmall(1, 10)) * time.Hour)
		require.NoError(t, context.Cause(l.Context()))
		_, err = b.TryAcquire(ctx, lock.Name("report"))
		require.ErrorIs(t, err, lock.ErrHeld)
		require.NoError(t, l.Release(ctx))
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrReleased)
		require.NotErrorIs(t, context.Cause(l.Context()), lock.ErrLost)
		next, err := b.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Equal(t, l.Fence()+1, next.Fence())
	})
}

// A row that is not in order is told apart from a lock that is lost.
func TestLease_OfAMalformedRowSaysSo(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		for attr, calls := range map[string][]func(*lock.Lease) error{
			"renewed": {func(l *lock.Lease) error { return l.Renew(ctx) }},
			"edits":   {func(l *lock.Lease) error { return l.SetData(ctx, 1) }},
			"writes": {
				func(l *lock.Lease) error { return l.Write(ctx, w.count("n")) },
				func(l *lock.Lease) error { return l.Commit(ctx, w.count("n")) },
			},
		} {
			l, err := w.client(quiet).Acquire(ctx, lock.Name(attr), lock.Fixed(time.Minute))
			require.NoError(t, err)
			require.NoError(t, w.table.Write(ctx, table.Update(l.Key(), table.Attr(attr).Set("x"))))
			for _, call := range calls {
				ops := w.requests(func() { err = call(l) })
				require.ErrorIs(t, err, lock.ErrMalformed, attr)
				require.NotErrorIs(t, err, lock.ErrLost, attr)
				assert.Len(t, ops, 1, attr)
			}
			require.NoError(t, context.Cause(l.Context()), "the lease goes on")
		}
		assert.Zero(t, w.counted("n"))
	})
}

// The row of a lock whose commit has no answer is not written with each renewal of the session.
func TestRenew_AfterACommitWithoutAnAnswerWritesNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems"})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, l.Commit(short, w.put("x")), context.DeadlineExceeded)
		w.engine.ClearFaults()
		time.Sleep(time.Hour)
		w.engine.ResetRequests()
		time.Sleep(time.Hour)
		assert.LessOrEqual(t, len(w.requestsTo(l.Key().PK)), 1)
		require.NoError(t, l.Release(ctx))
	})
}

// A write that takes longer than the lease does not keep it from being renewed.
func TestRenew_OfAFixedLeaseBehindASlowWrite(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"), lock.Fixed(2*time.Second))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, Operation: "TransactWriteItems", For: 4 * time.Second, Times: 1})
		done := make(chan error, 1)
		go func() { done <- l.Write(ctx, w.put("x")) }()
		for range 5 {
			time.Sleep(500 * time.Millisecond)
			assert.NoError(t, l.Renew(ctx))
		}
		require.NoError(t, context.Cause(l.Context()))
		assert.NoError(t, <-done)
	})
}
