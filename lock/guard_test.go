package lock_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A write of a bundle that was late is refused after a later one of any of its leases.
func TestWrite_LateOneOfABundleIsRefused(t *testing.T) {
	for i := range 2 { // under which lock the later write is made
		virtual(t, func(ctx context.Context, w *world) {
			is := func(v string) table.Op { return table.Update(w.row("x"), table.Attr("is").Set(v)) }
			b, err := w.client(quiet).AcquireAll(ctx, names(2))
			require.NoError(t, err)
			lost := tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems"}
			late := lost
			late.Times, late.For = 1, 10*time.Second
			w.engine.Inject(late, lost)
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			require.ErrorIs(t, b.Write(short, is("first")), context.DeadlineExceeded)
			w.engine.ClearFaults()
			require.NoError(t, b.Leases()[i].Write(ctx, is("second")))
			time.Sleep(11 * time.Second)
			item, err := w.table.Get(ctx, w.row("x"), true)
			require.NoError(t, err)
			assert.Equal(t, text("second"), item["is"])
			assert.True(t, slices.ContainsFunc(w.engine.Requests(), func(r tabletest.Request) bool { return r.Late }))
		})
	}
}

// A commit was applied without an answer: the lock was released, and not lost, however many others have held it since.
func TestCommit_WithoutAnAnswerIsNoLossAfterOthers(t *testing.T) {
	for _, how := range []string{"commit", "commit while reads fail", "release"} {
		virtual(t, func(ctx context.Context, w *world) {
			lost := make(chan error, 1)
			c, other := w.client(lock.Config{OnLost: func(_ *lock.Lease, cause error) { lost <- cause }}), w.client(lock.Config{})
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			err = l.Commit(short, w.count("n"))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, lock.ErrLost)
			w.engine.ClearFaults()
			require.EqualValues(t, 1, w.counted("n"), "it was applied")
			o, err := other.TryAcquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.NoError(t, o.Release(ctx))
			if how != "release" {
				if how != "commit" {
					w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Operation: "GetItem"})
				}
				err = l.Commit(ctx, w.count("n"))
				assert.ErrorIs(t, err, table.ErrUnreachable, how)
				assert.NotErrorIs(t, err, lock.ErrLost, how)
				w.engine.ClearFaults()
			}
			if how != "commit" {
				err = l.Release(ctx)
				assert.NoError(t, err, how)
			}
			assert.EqualValues(t, 1, w.counted("n"))
			time.Sleep(time.Second)
			select {
			case cause := <-lost:
				t.Error("OnLost:", cause)
			default:
			}
		})
	}
}

// A condition of the caller's own refused a commit, and an attempt of it is applied later, when the condition holds. It
// counts like a commit without an answer.
func TestCommit_RefusedOneThatIsAppliedLaterIsNoLoss(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		lost := make(chan error, 1)
		c, other := w.client(lock.Config{OnLost: func(_ *lock.Lease, cause error) { lost <- cause }}), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, w.put("x")))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: 3 * time.Second})
		err = l.Commit(ctx, w.put("x").If(table.Attr("pk").NotExists()))
		require.ErrorIs(t, err, table.ErrCondition)
		require.NotErrorIs(t, err, lock.ErrLost)
		require.NoError(t, context.Cause(l.Context()))
		require.NoError(t, w.table.Write(ctx, table.Delete(w.row("x"))))
		time.Sleep(4 * time.Second)
		_, err = w.table.Get(ctx, w.row("x"), true)
		require.NoError(t, err, "the first attempt has come in")
		o, err := other.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, o.Release(ctx))
		require.NoError(t, l.Release(ctx))
		time.Sleep(time.Second)
		select {
		case cause := <-lost:
			t.Error("OnLost:", cause)
		default:
		}
	})
}

// If the lock was taken by force meanwhile, nobody can tell whether the commit was applied. It is not reported as released.
func TestCommit_WithoutAnAnswerBeforeAForcedRelease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems"})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, l.Commit(short, w.count("n")), context.DeadlineExceeded)
		w.engine.ClearFaults()
		w.force(ctx, other, lock.Name("report"))
		for range 2 {
			o, err := other.TryAcquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.NoError(t, o.Release(ctx))
		}
		err = l.Commit(ctx, w.count("n"))
		require.ErrorIs(t, err, table.ErrUnreachable)
		require.NotErrorIs(t, err, lock.ErrReleased)
		require.EqualValues(t, 0, w.counted("n"))
	})
}

// A commit that the guard refused was not applied. Its repetition reports the loss again.
func TestCommit_RefusedByTheGuardIsNotInDoubt(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.askBack(ctx, other, l)
		<-l.Context().Done()
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked, "it goes on, and is not known to be lost later")
		require.NoError(t, w.table.Write(ctx, table.Delete(l.Key()))) // by hand
		o, err := other.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.Greater(t, o.Fence(), l.Fence())
		require.ErrorIs(t, l.Commit(ctx, w.count("n")), lock.ErrLost)
		err = l.Commit(ctx, w.count("n"))
		require.ErrorIs(t, err, lock.ErrLost, "nothing was applied")
	})
}

// A commit was applied without an answer, and others have held the lock since. The first call that finds out does not report
// a loss.
func TestCommit_WithoutAnAnswerIsNoLossForAnyCall(t *testing.T) {
	for name, hear := range map[string]func(ctx context.Context, l *lock.Lease) error{
		"renew":    func(ctx context.Context, l *lock.Lease) error { return l.Renew(ctx) },
		"set data": func(ctx context.Context, l *lock.Lease) error { return l.SetData(ctx, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.client(lock.Config{OnLost: func(*lock.Lease, error) { t.Error("it was told of a loss") }}), w.client(lock.Config{})
				l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Minute))
				require.NoError(t, err)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				require.ErrorIs(t, l.Commit(short, w.count("n")), context.DeadlineExceeded)
				w.engine.ClearFaults()
				o, err := other.TryAcquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.NoError(t, o.Release(ctx))
				require.ErrorIs(t, hear(ctx, l), lock.ErrReleased)
				require.ErrorIs(t, hear(ctx, l), lock.ErrReleased)
				err = l.Commit(ctx, w.count("n"))
				require.ErrorIs(t, err, table.ErrUnreachable, "nothing answers for the first one but its token")
				require.NotErrorIs(t, err, lock.ErrLost)
				require.EqualValues(t, 1, w.counted("n"))
			})
		})
	}
}

func TestGuard_RefusesAFormerHolder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		orders := w.orders()
		o, err := orders.Create(ctx, order{Tenant: "acme", ID: "42", Status: "open"})
		require.NoError(t, err)
		a, b := w.client(lock.Config{}), w.client(lock.Config{})
		target := lock.Beside(orders.Key(o))
		stale, err := a.Acquire(ctx, target, lock.Fixed(time.Second))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.ErrorIs(t, context.Cause(stale.Context()), lock.ErrExpired)
		// Expired, but nobody took it: still exclusive.
		require.NoError(t, stale.Write(ctx, orders.UpdateOp(o, entity.Set("status", "checked"))))
		fresh, err := b.Acquire(ctx, target)
		require.NoError(t, err)
		err = stale.Write(ctx, orders.AnyVersion().UpdateOp(order{Tenant: "acme", ID: "42"}, entity.Set("status", "stale")))
		require.ErrorIs(t, err, lock.ErrLost)
		err = stale.Commit(ctx, orders.AnyVersion().UpdateOp(order{Tenant: "acme", ID: "42"}, entity.Set("status", "stale")))
		require.ErrorIs(t, err, lock.ErrLost)
		require.ErrorIs(t, stale.Release(ctx), lock.ErrLost)
		require.NoError(t, fresh.Commit(ctx, orders.AnyVersion().UpdateOp(order{Tenant: "acme", ID: "42"}, entity.Set("status", "settled"))))
		o, err = orders.Get(ctx, o, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, "settled", o.Status)
		r, err := b.Inspect(ctx, target)
		require.NoError(t, err)
		assert.False(t, r.Held())
	})
}

// A guard belongs to the table of its lock. Another table has no such row, which does not mean that the lock is lost.
func TestGuard_OfAnotherTableIsRefused(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		other, err := table.Open(w.sdk(w.engine.HTTPClient()), table.Schema{Name: "other"})
		require.NoError(t, err)
		require.NoError(t, other.Ensure(ownHand(ctx)))
		c := w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		b, err := c.AcquireAll(ctx, names(2))
		require.NoError(t, err)
		for _, guards := range [][]table.Op{{l.Guard()}, b.Guards()} {
			ops := w.requests(func() {
				err = other.Write(ctx, append(guards, table.Put(other.KeyItem(w.row("x"))))...)
			})
			require.ErrorIs(t, err, lock.ErrInvalid)
			require.NotErrorIs(t, err, lock.ErrLost)
			assert.Empty(t, ops, "nothing was sent")
			require.NoError(t, w.open().Write(ctx, append(guards, w.put("x"))...), "the same table, opened once more")
		}
		require.NoError(t, context.Cause(l.Context()))
		require.NoError(t, l.Write(ctx, w.put("x")))
	})
}

// The guarded writes of a lease are applied in their order: a write that timed out does not overwrite a later one that was
// acknowledged.
func TestWrite_LateOneIsRefusedAfterALaterOne(t *testing.T) {
	for name, later := range map[string]func(*lock.Lease, context.Context, ...table.Op) error{
		"Write": (*lock.Lease).Write, "Commit": (*lock.Lease).Commit,
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				const late = 10 * time.Second
				is := func(v string) table.Op { return table.Update(w.row("x"), table.Attr("is").Set(v)) }
				l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				w.engine.Inject(
					tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: late},
					tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems"},
				)
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				err = l.Write(short, is("first"))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NotErrorIs(t, err, lock.ErrLost)
				w.engine.ClearFaults()
				require.NoError(t, later(l, ctx, is("second")))
				time.Sleep(late + time.Second)
				item, err := w.table.Get(ctx, w.row("x"), true)
				require.NoError(t, err)
				assert.Equal(t, text("second"), item["is"])
				came := false
				for _, r := range w.engine.Requests() {
					came = came || r.Late
				}
				assert.True(t, came, "the first write came in")
			})
		})
	}
}

// A guard in a transaction of the caller's own keeps no order among writes of the same holder: that is what Write does.
func TestGuard_LateOneIsAppliedAfterALaterOne(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		const late = 10 * time.Second
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		is := func(ctx context.Context, v string) error {
			return w.table.Write(ctx, l.Guard(), table.Update(w.row("x"), table.Attr("is").Set(v)))
		}
		w.engine.Inject(
			tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: late},
			tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems"},
		)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, is(short, "first"), context.DeadlineExceeded)
		w.engine.ClearFaults()
		require.NoError(t, is(ctx, "second"))
		time.Sleep(late + time.Second)
		item, err := w.table.Get(ctx, w.row("x"), true)
		require.NoError(t, err)
		assert.Equal(t, text("first"), item["is"])
	})
}

// The writes of each holder are numbered on from those of the holder before, in whatever way it got the lock. None of them
// is taken for a write of the other.
func TestWrite_OfEachHolderIsApplied(t *testing.T) {
	target := lock.Name("report")
	release := func(ctx context.Context, _ *world, _ *lock.Client, l *lock.Lease) error { return l.Release(ctx) }
	commit := func(ctx context.Context, w *world, _ *lock.Client, l *lock.Lease) error {
		return l.Commit(ctx, w.count("n"))
	}
	force := func(ctx context.Context, w *world, op *lock.Client, _ *lock.Lease) error {
		w.force(ctx, op, target)
		return nil
	}
	for name, c := range map[string]struct {
		end   func(context.Context, *world, *lock.Client, *lock.Lease) error
		other bool // the next holder is another process
	}{
		"passed": {release, false}, "passed by a commit": {commit, false},
		"released": {release, true}, "committed": {commit, true}, "by force": {force, true},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				first := w.client(quiet)
				next := first
				if c.other {
					next = w.client(quiet)
				}
				l, err := first.Acquire(ctx, target)
				require.NoError(t, err)
				want := int64(0)
				for n := range 3 {
					for range n + 1 {
						require.NoError(t, l.Write(ctx, w.count("n")))
						require.NoError(t, l.SetData(ctx, name))
						want++
					}
					got := acquireAsync(ctx, next, target)
					require.NoError(t, c.end(ctx, w, next, l))
					l = <-got
					require.NotNil(t, l)
				}
				require.NoError(t, l.Write(ctx, w.count("n")))
				require.NoError(t, l.SetData(ctx, "the last"))
				r, err := next.Inspect(ctx, target)
				require.NoError(t, err)
				assert.Equal(t, "the last", decoded(t, r.Data))
				if strings.Contains(name, "commit") {
					want += 3
				}
				assert.Equal(t, want+1, w.counted("n"))
			})
		})
	}
}

// A commit has no answer, and then the client is closed. Only the commit's token can tell whether it was applied. A caller
// that repeats it is told neither that it was applied nor that it was not (section 4 of the design).
func TestCommit_RepeatedAfterCloseStaysInDoubt(t *testing.T) {
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
