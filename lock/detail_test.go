package lock_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// More of them, those of sessions and waiters first.

// Once a clock is found to be off, a session's row no longer says by it when the session ends.
func TestEndByAWrongClockIsTakenBack(t *testing.T) {
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

// A session does not end as idle while something is acquired under it.
func TestSessionIsNotIdleWhileItAcquires(t *testing.T) {
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

// A release that has failed once and then succeeded leaves nothing behind, and neither does a lock that was taken by
// force: the session ends.
func TestNothingIsSentOnceNothingIsHeld(t *testing.T) {
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

// Releases that hang do not keep the session from others that failed.
func TestReleasesThatHangKeepNoOther(t *testing.T) {
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

// Clients that began together do not renew together for ever.
func TestRenewalsAreSpread(t *testing.T) {
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

// Whoever puts off the deletion of a row that is gone is told.
func TestHolderOfADeletedRowIsTold(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(lock.Config{Retention: aDay, Logger: quiet.Logger}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Delete(l.Key())))
		time.Sleep(8 * time.Hour)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
	})
}

// A release that failed behind a guarded write has given the lock up as well.
func TestReleaseBehindAWriteIsNoLoss(t *testing.T) {
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
func TestReleaseAfterACommitInVain(t *testing.T) {
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

// An heir that went back to the line is told, when its waiting ends, who holds the lock then.
func TestHeirThatWentBackNamesTheHolder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, lock.Config{Owner: "first", Logger: quiet.Logger})
		op := w.client(lock.Config{Owner: "second", Logger: quiet.Logger})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		ended := outcome(bounded, c, lock.Name("report"))
		time.Sleep(100 * time.Millisecond)
		way.cut(refused)
		w.releaseInVain(ctx, l)
		w.force(ctx, op, lock.Name("report"))
		next, err := op.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(open)
		err = <-ended
		var held *lock.HeldError
		require.ErrorAs(t, err, &held)
		assert.Equal(t, "second", held.Owner)
		require.NoError(t, next.Release(ctx))
	})
}

// A run of an interval is begun in the row, also where the lock is released by its own process.
func TestRunIsNeverHandedTheLock(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		time.AfterFunc(90*time.Second, func() { assert.NoError(t, l.Release(ctx)) })
		require.ErrorIs(t, c.Every(bounded, lock.Name("report"), time.Minute, func(_ context.Context, l *lock.Lease, at time.Time) error {
			r, err := c.Inspect(ctx, l.Target())
			assert.NoError(t, err)
			assert.Equal(t, at.UnixMilli(), r.Running)
			cancel()
			return nil
		}), context.Canceled)
	})
}

// Who waits for a lock that was handed over within the process knows as much of its holder as of any.
func TestHolderByAHandOverIsKnown(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		began := time.Now().UTC()
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		second := acquireAsync(ctx, c, lock.Name("report"), lock.WithData("of the second"))
		bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		ended := outcome(bounded, c, lock.Name("report"))
		time.Sleep(time.Second)
		require.NoError(t, l.Release(ctx))
		next := <-second
		require.NotNil(t, next)
		var held *lock.HeldError
		require.ErrorAs(t, <-ended, &held)
		assert.Equal(t, next.Fence(), held.Fence)
		assert.Equal(t, began, held.Since, "since when its process holds it")
		var data string
		require.NoError(t, held.Data.Decode(&data))
		assert.Equal(t, "of the second", data)
		require.NoError(t, next.Release(ctx))
	})
}

// Who waits for several locks finds a holder's death in time, too, however rarely it looks.
func TestDeathIsFoundInTimeByWhoWaitsForSeveral(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		both := names(2)
		_, err := w.clientOver(way, quiet).Acquire(ctx, both[0])
		require.NoError(t, err)
		waiter := w.client(lock.Config{Logger: quiet.Logger, Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }})
		got := make(chan *lock.Bundle, 1)
		go func() {
			b, err := waiter.AcquireAll(ctx, both)
			assert.NoError(t, err)
			got <- b
		}()
		time.Sleep(2 * time.Minute)
		way.cut(refused)
		start := time.Now()
		b := <-got
		assert.LessOrEqual(t, time.Since(start), 2*20*time.Second+5*time.Second)
		require.NoError(t, b.Release(ctx))
	})
}

// Each try of several locks costs one transaction; who holds them is asked once a lease whether it lives, and
// declared dead once.
func TestCostOfTryingSeveral(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		all := names(3)
		held, err := w.clientOver(way, quiet).AcquireAll(ctx, all)
		require.NoError(t, err)
		c := w.client(quiet)
		time.Sleep(10 * time.Minute)
		assert.LessOrEqual(t, times("UpdateItem", w.requests(func() {
			for range 40 {
				_, err := c.TryAcquireAll(ctx, all)
				require.ErrorIs(t, err, lock.ErrHeld)
				time.Sleep(100 * time.Millisecond)
			}
		})), 2+4, "whether the holder lives, and renewals")
		require.NoError(t, held.Context().Err())
		way.cut(refused)
		time.Sleep(time.Hour)
		c = w.client(quiet)
		var b *lock.Bundle
		assert.Equal(t, 1, times("UpdateItem", w.requests(func() { b, err = c.TryAcquireAll(ctx, all) })))
		require.NoError(t, err)
		require.NoError(t, b.Release(ctx))
	})
}

// The row that says that a missing session is dead is deleted some day.
func TestRowOfAMissingSessionIsDeletedSomeDay(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		dead := w.clientOver(way, quiet)
		_, err := dead.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		session := sessionKey(dead)
		way.cut(refused)
		require.NoError(t, w.table.Write(ctx, table.Delete(session)))
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		row, err := w.table.Get(ctx, session, true)
		require.NoError(t, err)
		assert.Contains(t, row, "ttl")
		require.NoError(t, l.Release(ctx))
	})
}

// A try costs one request where the holder is the client itself, or has held for less than its lease.
func TestTriesThatNeedNotAskWhetherAHolderLives(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		_, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		try := func(c *lock.Client) []string {
			return w.requests(func() {
				_, err := c.TryAcquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrHeld)
			})
		}
		time.Sleep(5 * time.Second) // its session goes on
		assert.Len(t, try(other), 1)
		time.Sleep(10 * time.Minute)
		assert.Len(t, try(c), 1)
	})
}

// Reasons have up to MaxReason bytes, and say who it was where none is given.
func TestReasonsOfForcedReleases(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		op := w.client(lock.Config{Owner: "operator"})
		whole := strings.Repeat("x", lock.MaxReason)
		for given, want := range map[string]string{whole: whole, "": "forced by operator", "hung": "hung"} {
			_, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			r, err := op.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.NoError(t, op.ForceRelease(ctx, lock.Name("report"), r.Holder().Ticket, given))
			r, err = op.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			assert.Equal(t, want, r.Forced)
		}
		_, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.ErrorIs(t, op.ForceRelease(ctx, lock.Name("report"), "x", whole+"x"), lock.ErrInvalid)
	})
}

// Every looks for the time within a minute of its machine's resuming: intervals may have passed.
func TestEveryLooksAfterASuspension(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		c := w.coldClient(quiet, table.WithClock(wall.now))
		bounded, cancel := context.WithTimeout(ctx, 3*time.Hour)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			ended <- c.Every(bounded, lock.Name("report"), 2*time.Hour, func(context.Context, *lock.Lease, time.Time) error { return nil })
		}()
		time.Sleep(10 * time.Minute)
		require.Empty(t, w.requests(func() { time.Sleep(10 * time.Minute) }))
		wall.jump(30 * time.Minute)
		assert.NotEmpty(t, w.requests(func() { time.Sleep(61 * time.Second) }))
		require.ErrorIs(t, <-ended, context.DeadlineExceeded)
	})
}

// Where the row says already that an interval has been run, it is not left held.
func TestRunThatIsRecordedAlreadyFreesTheLock(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		bounded, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		ended := make(chan error, 1)
		returned := make(chan struct{}, 100)
		go func() {
			ended <- c.Every(bounded, lock.Name("report"), time.Hour, func(_ context.Context, l *lock.Lease, at time.Time) error {
				assert.NoError(t, w.table.Write(ctx, table.Update(l.Key(), table.Attr("ran").Set(at.UnixMilli()))))
				returned <- struct{}{}
				return nil
			})
		}()
		<-returned
		time.Sleep(100 * time.Millisecond)
		l, err := other.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		require.ErrorIs(t, <-ended, context.DeadlineExceeded)
	})
}

// After an outage that is long over, a leader that loses the lock campaigns again at once.
func TestCampaignForgetsAnOldOutage(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c, op := w.clientOver(way, quiet), w.client(quiet)
		bounded, cancel := context.WithCancel(ctx)
		defer cancel()
		terms := make(chan time.Time, 10)
		ended := make(chan error, 1)
		way.cut(refused)
		go func() {
			ended <- c.Lead(bounded, lock.Name("report"), func(ctx context.Context, _ *lock.Lease) error {
				terms <- time.Now()
				<-ctx.Done()
				return nil
			})
		}()
		time.Sleep(10 * time.Minute)
		way.cut(open)
		<-terms
		for range 3 { // waits are random
			time.Sleep(time.Hour)
			w.force(ctx, op, lock.Name("report"))
			start := time.Now()
			assert.LessOrEqual(t, (<-terms).Sub(start), 5500*time.Millisecond+time.Second, "told within a period, and then at once")
		}
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// What campaigning again cannot help against ends a campaign.
func TestCampaignsInVainEnd(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		bounded, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		tbl, err := table.Open(&replicated{Client: w.sdk(w.engine.HTTPClient())}, table.Schema{Name: "app"})
		require.NoError(t, err)
		c, err := lock.New(tbl, quiet)
		require.NoError(t, err)
		require.ErrorIs(t, c.Lead(bounded, lock.Name("report"), func(context.Context, *lock.Lease) error { return nil }), lock.ErrMultiRegion)
		require.NoError(t, c.Close(ctx))

		config := quiet
		config.HomeRegion = tabletest.Region
		tbl = w.openOver(undated{w.engine.HTTPClient()}, table.Schema{Name: "app"})
		c, err = lock.New(tbl, config)
		require.NoError(t, err)
		require.Error(t, c.Every(bounded, lock.Name("report"), time.Minute, func(context.Context, *lock.Lease, time.Time) error { return nil }))
		require.NoError(t, c.Close(ctx))
		require.NoError(t, bounded.Err())
	})
}

// A renewal that failed and was repeated is not blamed for an end that comes later.
func TestOldFailureIsNotBlamed(t *testing.T) {
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

// Metrics tell throttling from other failures, and errors the end of the caller's patience from both.
func TestFailuresAreToldApart(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		r := newRecorder()
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, lock.Config{MeterProvider: r, Logger: slog.New(slog.DiscardHandler)}, twice())
		r.take(ctx)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle})
		_, err := c.TryAcquire(ctx, lock.Name("report"))
		require.ErrorIs(t, err, table.ErrThrottled)
		w.engine.ClearFaults()
		assert.Len(t, r.take(ctx)["wait.duration throttled"], 1)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(refused)
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.Write(short, w.put("x")), context.DeadlineExceeded)
		way.cut(open)
		require.NoError(t, l.Release(ctx))
	})
}

// Without a name of their own processes are told apart by host and number.
func TestOwnerNamesTheProcess(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		_, err = w.client(lock.Config{}).TryAcquire(ctx, lock.Name("report"))
		var held *lock.HeldError
		require.ErrorAs(t, err, &held)
		assert.True(t, strings.HasSuffix(held.Owner, fmt.Sprintf("/%d", os.Getpid())), held.Owner)
	})
}

// A holder that has proved to live is asked again a lease later, not with each look, also for who waits for several.
func TestWhoWaitsForSeveralAsksOnceALease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		holder, waiter := w.client(quiet), w.client(quiet)
		both := names(2)
		l, err := holder.Acquire(ctx, both[0])
		require.NoError(t, err)
		bounded, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		w.engine.ResetRequests()
		_, err = waiter.AcquireAll(bounded, both)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.LessOrEqual(t, w.writesTo(sessionKey(holder).PK), 66+15, "renewals, and questions")
		require.NoError(t, l.Release(ctx))
	})
}
