package lock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// F6.
func TestAcquire_LostAnswerCostsOneRequest(t *testing.T) {
	for _, kind := range []tabletest.FaultKind{tabletest.DropReply, tabletest.InternalErrorAfter} {
		t.Run(kind.String(), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{})
				w.engine.ResetRequests()
				w.engine.Inject(tabletest.Fault{Kind: kind, Call: 1})
				start := time.Now()
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				testkit.Check(t, "F6, "+kind.String(), testkit.AtMost(len(w.engine.Requests())-1, "extra requests", 1), testkit.AtMost(time.Since(start), " waited", time.Second))
				require.NoError(t, l.Write(ctx, w.put("x")))
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// A hung request is repeated before the lease would end, and the lock that it acquired is recognised.
func TestAcquire_HungRequestIsRepeatedAndRecognised(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{})
				w.engine.ResetRequests()
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 24 * time.Hour, Call: 1})
				start := time.Now()
				l, err := c.Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				waited := time.Since(start)
				assert.Less(t, waited, 4*time.Second)
				// The row was written by the first attempt: the lease began before that.
				assert.LessOrEqual(t, l.Remaining(), 20*time.Second-waited)
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// F7.
func TestRenew_LostAnswersLoseNoLock(t *testing.T) {
	replies := testkit.Fewer(10_000)
	for name, opts := range map[string][]lock.Option{"session": nil, "Fixed": {lock.Fixed(20 * time.Second)}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{})
				time.Sleep(time.Minute) // the session is idle and ends: only renewals under test are sent
				l, err := c.Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				// Each renewal's first attempt is applied without an answer.
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Times: replies, When: func(r tabletest.Request) bool {
					return r.Index%2 == 1
				}})
				w.engine.ResetRequests()
				dropped, lost := 0, 0
				for dropped < replies && lost == 0 {
					if opts == nil {
						time.Sleep(time.Hour)
					} else {
						for range 720 {
							time.Sleep(5 * time.Second)
							require.NoError(t, l.Renew(ctx))
						}
					}
					dropped = 0
					for _, r := range w.engine.Requests() {
						dropped += len(r.Faults)
					}
					if l.Context().Err() != nil {
						lost++
					}
				}
				testkit.Check(t, "F7, "+name, testkit.Exactly(dropped, "lost replies", replies), testkit.Exactly(lost, "locks lost", 0))
				require.NoError(t, l.Write(ctx, w.put("x")))
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// F8.
func TestRelease_GoesThroughThrottling(t *testing.T) {
	for _, kind := range []tabletest.FaultKind{
		tabletest.Throttle, tabletest.TransactionConflict, tabletest.DropRequest, tabletest.DropReply,
		tabletest.InternalError, tabletest.InternalErrorAfter,
	} {
		t.Run(kind.String(), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{})
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				w.engine.ResetRequests()
				w.engine.Inject(tabletest.Fault{Kind: kind, Operation: "UpdateItem", Times: 5})
				require.NoError(t, l.Release(ctx))
				hit, held := 0, 0
				for _, r := range w.engine.Requests() {
					hit += len(r.Faults)
				}
				require.NoError(t, l.Release(ctx), "again does nothing")
				r, err := c.Inspect(ctx, lock.Name("report"))
				require.NoError(t, err)
				if r.Held() {
					held++
				}
				testkit.Check(t, "F8, "+kind.String(), testkit.Exactly(hit, "faults", 5), testkit.Exactly(held, "rows held after the same handle's Release", 0))
			})
		})
	}
}

func TestRelease_CanBeRepeatedAfterItFailed(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle})
		require.ErrorIs(t, l.Release(ctx), table.ErrThrottled)
		w.engine.ClearFaults()
		require.NoError(t, l.Release(ctx))
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrReleased)
	})
}

// The row names another holder after a release without an answer. The release may have been applied before that, but not if
// the holder has been told already that the lock is lost.
func TestRelease_WithoutAnAnswerAfterALossReportsTheLoss(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, op := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.force(ctx, op, lock.Name("report"))
		_, err = op.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.InternalErrorAfter, Operation: "UpdateItem", Times: 1})
		require.ErrorIs(t, l.Release(ctx), lock.ErrLost)
	})
}

// After a failed release that the caller does not repeat, the lock is not renewed for ever.
func TestRelease_FailedOneHoldsForOneLeaseAtMost(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		lost := 0
		c := w.client(lock.Config{OnLost: func(*lock.Lease, error) { lost++ }})
		other := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Operation: "UpdateItem", Times: 100})
		start := time.Now()
		w.releaseInVain(ctx, l)
		w.engine.ClearFaults()
		_, err = other.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.LessOrEqual(t, time.Since(start), 24*time.Second)
		assert.Zero(t, lost, "given up is not lost")
	})
}

// After a failed release that the caller does not repeat, the session repeats it. So the lock is not held for as long as the
// process lives.
func TestSession_RepeatsAFailedRelease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		line := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(line, lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		line.cut(refused)
		w.releaseInVain(ctx, l)
		line.cut(open)
		time.Sleep(6 * time.Second) // a renewal is due
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.False(t, r.Held())
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrReleased)
		require.NoError(t, l.Release(ctx))
	})
}

func TestRelease_WithEndedContextReleases(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		require.NoError(t, l.Release(ended))
		_, err = w.client(lock.Config{}).TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
	})
}

// ghost lets the first attempt of an acquire arrive after the second has acquired and released, and others have held the
// lock.
func (w *world) ghost(ctx context.Context, late time.Duration, holders int, busy bool) {
	t := w.T
	c := w.client(lock.Config{})
	if busy {
		_, err := c.Acquire(ctx, lock.Name("other"))
		require.NoError(t, err)
	}
	w.engine.ResetRequests()
	w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Call: 1, For: late})
	l, err := c.Acquire(ctx, lock.Name("report"))
	require.NoError(t, err)
	require.NoError(t, l.Release(ctx))
	fence := l.Fence()
	for range holders {
		l, err := w.client(lock.Config{}).TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.Greater(t, l.Fence(), fence)
		fence = l.Fence()
		require.NoError(t, l.Release(ctx))
	}
	time.Sleep(late)
	arrived := time.Now()
	r, err := c.Inspect(ctx, lock.Name("report"))
	require.NoError(t, err)
	require.True(t, r.Held(), "the ghost is there")
	next, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
	require.NoError(t, err)
	what := ""
	if busy {
		what = ", session goes on"
	}
	testkit.Check(t, fmt.Sprintf("F19, %v late, %d holders between%s", late, holders, what),
		testkit.AtMost(time.Since(arrived), " until free again", freeOfGhost), testkit.AtLeast(next.Fence()-fence, "more than the last fence", 1))
}

func TestRelease_LateDuplicateDoesNotReleaseTheNextHolder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", For: time.Minute, Times: 1})
		require.NoError(t, l.Release(ctx))
		next, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		require.NoError(t, context.Cause(next.Context()))
		require.NoError(t, next.Write(ctx, w.put("x")))
	})
}

func TestRelease_AfterACommitWithoutAnAnswer(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err = l.Commit(short, w.put("x"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, lock.ErrLost)
		w.engine.ClearFaults()
		again := l.Commit(ctx, w.put("x"))
		require.ErrorIs(t, again, table.ErrUnreachable, "nothing answers for the first but its token")
		require.NotErrorIs(t, again, lock.ErrLost)
		require.NoError(t, l.Release(ctx))
		require.NotErrorIs(t, context.Cause(l.Context()), lock.ErrLost)
	})
}

// A commit is throttled. That proves nothing about an earlier one, which may have been applied.
func TestCommit_ThrottledAfterOneWithoutAnAnswerIsUnclear(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		throttled := tabletest.Fault{Kind: tabletest.Throttle, Operation: "TransactWriteItems"}
		w.engine.Inject(throttled)
		err = l.Commit(ctx, w.count("n"))
		require.ErrorIs(t, err, table.ErrThrottled)
		require.False(t, table.MayBeApplied(err))
		w.engine.ClearFaults()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: time.Minute})
		require.ErrorIs(t, l.Commit(table.WithoutRetry(ctx), w.count("n")), table.ErrUnreachable)
		w.engine.Inject(throttled)
		err = l.Commit(ctx, w.count("n"))
		require.ErrorIs(t, err, table.ErrThrottled)
		require.True(t, table.MayBeApplied(err))
		w.engine.ClearFaults()
	})
}

// A condition of the caller's own refuses a commit. That proves nothing about an earlier attempt of the same commit, which
// may still arrive.
func TestCommit_RefusedOneMayStillBeAppliedByAnEarlierAttempt(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		const late = 10 * time.Second
		c := w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: late})
		err = l.Commit(ctx, w.count("n"), table.Check(w.row("x"), table.Attr("pk").Exists()))
		var failed *table.ConditionError
		require.ErrorAs(t, err, &failed)
		assert.True(t, failed.Pending)
		require.NoError(t, w.table.Write(ctx, w.put("x")))
		time.Sleep(late + time.Second)
		require.Equal(t, int64(1), w.counted("n"), "it has come")
		next, err := w.client(quiet).TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		again := l.Commit(ctx, w.count("n"))
		require.ErrorIs(t, again, table.ErrUnreachable)
		require.NotErrorIs(t, again, lock.ErrLost)
		require.NoError(t, l.Release(ctx))
		require.NotErrorIs(t, context.Cause(l.Context()), lock.ErrLost)
		require.NoError(t, next.Release(ctx))
	})
}

func TestCommit_WithALostAnswerIsAppliedOnce(t *testing.T) {
	for _, kind := range []tabletest.FaultKind{tabletest.DropReply, tabletest.InternalErrorAfter, tabletest.DuplicateLate} {
		t.Run(kind.String(), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{})
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				w.engine.Inject(tabletest.Fault{Kind: kind, Operation: "TransactWriteItems", Times: 1, For: time.Minute})
				require.NoError(t, l.Write(ctx, w.count("n")))
				w.engine.Inject(tabletest.Fault{Kind: kind, Operation: "TransactWriteItems", Times: 1, For: time.Minute})
				require.NoError(t, l.Commit(ctx, w.count("n")))
				require.NoError(t, l.Release(ctx))
				time.Sleep(2 * time.Minute)
				assert.Equal(t, int64(2), w.counted("n"))
			})
		})
	}
}

// F15.
func TestConflictStormLosesAndRepeatsNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		orders := w.orders()
		o, err := orders.Create(ctx, order{Tenant: "acme", ID: "1", Status: "open"})
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.TransactionConflict, Probability: 0.3, Seed: 1})
		l, err := c.Acquire(ctx, lock.Beside(orders.Key(o)))
		require.NoError(t, err)
		transactions := testkit.Fewer(10_000)
		for range transactions {
			require.NoError(t, l.Write(ctx, w.count("n")))
		}
		require.NoError(t, l.Commit(ctx, orders.UpdateOp(o, entity.Set("status", "done"))))
		testkit.Check(t, "F15, 30 % conflicts", testkit.Exactly(int(w.counted("n")), "transactions applied", transactions))
	})
}

// A release whose answer is lost counts as a release, even if others have held the lock before it is sent again and the row
// shows no trace of it.
func TestRelease_LostAnswerIsRecognisedAfterOtherHolders(t *testing.T) {
	for name, opts := range map[string][]lock.Option{"session": nil, "fixed": {lock.Fixed(time.Minute)}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.client(lock.Config{}), w.client(lock.Config{})
				l, err := c.Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Times: 1, Key: w.table.KeyItem(l.Key())})
				released := make(chan error, 1)
				go func() { released <- l.Release(ctx) }()
				time.Sleep(time.Millisecond) // applied; the next attempt comes 12 ms later at the earliest
				for range 2 {
					o, err := other.TryAcquire(ctx, lock.Name("report"))
					require.NoError(t, err)
					require.NoError(t, o.Release(ctx))
				}
				require.NoError(t, <-released)
				require.ErrorIs(t, context.Cause(l.Context()), lock.ErrReleased)
				require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrReleased)
			})
		})
	}
}

// Without such an attempt it is a loss.
func TestRelease_OfALockThatOthersHaveTakenIsALoss(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		fence := table.Attr("fence")
		require.NoError(t, w.table.Write(ctx, table.Update(l.Key(), fence.Set(fence.Plus(1)), table.Attr("line").Set([]string{"STRANGER/1@1764000000123 another"}))))
		require.ErrorIs(t, l.Release(ctx), lock.ErrStolen)
	})
}
