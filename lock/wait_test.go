package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func every(d time.Duration) func() backoff.BackOff {
	return func() backoff.BackOff { return backoff.NewConstantBackOff(d) }
}

func TestWaiterReadsAndDoesNotSpin(t *testing.T) {
	for name, config := range map[string]lock.Config{
		"default": {}, "observed": {Expiry: lock.ObservedOnly}, "every second": {Backoff: every(time.Second)}, "no pause": {Backoff: every(0)},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				_, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				c := w.client(config)
				seconds, perSecond := 600, 2
				if name == "no pause" {
					seconds, perSecond = 60, 100
				}
				waiting, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
				defer cancel()
				counts := map[string]int{}
				for _, op := range w.requests(func() { _, err = c.Acquire(waiting, lock.Name("report")) }) {
					counts[op]++
				}
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, lock.ErrHeld)
				assert.LessOrEqual(t, counts["BatchGetItem"], seconds*perSecond+1)
				assert.Greater(t, counts["BatchGetItem"], seconds*2/3)
				assert.LessOrEqual(t, w.writesTo("LOCK#report"), 2, "enter and leave")
				// Both renew every 5 s; the waiter asks once whether the holder knows its ticket.
				assert.LessOrEqual(t, counts["UpdateItem"], 2*(seconds*2/9+1)+2+1)
			})
		})
	}
}

// A row that looks free or old to a read that lags behind is tried, and then not again at once.
func TestStaleReadsDoNotMakeAWaiterSpin(t *testing.T) {
	for _, writes := range []int{1, 2, 5, 100} {
		virtual(t, func(ctx context.Context, w *world) {
			holder := w.client(lock.Config{})
			for range 3 {
				l, err := holder.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))
			}
			l, err := holder.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Writes: writes})
			c := w.client(lock.Config{})
			time.AfterFunc(5*time.Minute, func() { _ = l.Release(ctx) })
			start := time.Now()
			var next *lock.Lease
			ops := w.requests(func() { next, err = c.Acquire(ctx, lock.Name("report")) })
			require.NoError(t, err)
			assert.Less(t, len(ops), 1500, "reads that miss %d writes", writes)
			assert.Greater(t, next.Fence(), l.Fence())
			assert.GreaterOrEqual(t, time.Since(start), 5*time.Minute)
			require.NoError(t, next.Release(ctx))
		})
	}
}

// A read that shows the row as it was before the holder acquired is no reason to try.
func TestReadsOfThePastAreNotTried(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		holder := w.client(lock.Config{})
		for range 2 {
			l, err := holder.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.NoError(t, l.Release(ctx))
		}
		_, err := holder.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Writes: 1})
		c := w.client(lock.Config{})
		waiting, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		w.requests(func() { _, err = c.Acquire(waiting, lock.Name("report")) })
		require.ErrorIs(t, err, lock.ErrHeld)
		assert.LessOrEqual(t, w.writesTo("LOCK#report"), 2, "enter and leave")
	})
}

// A release that no read shows yet is found by the write at the latest.
func TestStaleReadsDoNotHoldUpAWaiterForLong(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		require.NoError(t, l.Renew(ctx))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Writes: 1000})
		start := time.Now()
		_, err = w.client(lock.Config{Expiry: lock.ObservedOnly}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(start), 20*time.Second)
		assert.LessOrEqual(t, time.Since(start), 23*time.Second)
	})
}

// Counted from the receipt of the first sight, not from when the row was written or the
// read was sent.
func TestObservationCountsFromTheFirstSight(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		time.Sleep(15 * time.Second)
		c := w.client(lock.Config{Expiry: lock.ObservedOnly})
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 2 * time.Second, Call: 1})
		// A renewal just before it would be taken counts anew.
		time.AfterFunc(4*time.Second, func() { assert.NoError(t, l.Renew(ctx)) })
		start := time.Now()
		_, err = c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(start), 24*time.Second)
		assert.LessOrEqual(t, time.Since(start), 26*time.Second)
	})
}

func TestRowThatChangesUnderAWaiter(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(table.Item)
		want   error
	}{
		"malformed": {func(i table.Item) { i["since"] = &types.AttributeValueMemberS{Value: "x"} }, lock.ErrMalformed},
		"foreign":   {func(i table.Item) { i["type"] = &types.AttributeValueMemberS{Value: "Order"} }, lock.ErrNotLock},
		"deleted":   {nil, nil},
		"restored":  {func(i table.Item) { i["fence"] = &types.AttributeValueMemberN{Value: "5"} }, lock.ErrHeld},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
				require.NoError(t, err)
				item, err := w.table.Get(ctx, l.Key(), true)
				require.NoError(t, err)
				time.AfterFunc(time.Minute, func() {
					if tc.change == nil {
						assert.NoError(t, w.table.Write(ctx, table.Delete(l.Key())))
						return
					}
					tc.change(item)
					assert.NoError(t, w.table.Write(ctx, table.Put(item)))
				})
				waiting, cancel := context.WithTimeout(ctx, 10*time.Minute)
				defer cancel()
				start := time.Now()
				c := w.client(lock.Config{})
				ops := w.requests(func() { _, err = c.Acquire(waiting, lock.Name("report")) })
				assert.Less(t, len(ops), 1500)
				if tc.want == nil {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, tc.want)
				if errors.Is(tc.want, lock.ErrHeld) {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					return
				}
				require.NotErrorIs(t, err, lock.ErrHeld)
				assert.InDelta(t, 60, time.Since(start).Seconds(), 2)
				got, err := w.table.Get(ctx, l.Key(), true)
				require.NoError(t, err)
				assert.Equal(t, item, got)
			})
		})
	}
}

// A restored table can show fences that are lower than those seen: the lock must be taken all the same.
func TestWaiterTakesALockFromARestoredTable(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		other := w.client(lock.Config{})
		_, err := other.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		old := w.engine.Snapshot()
		time.Sleep(time.Minute)
		_, err = other.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		time.AfterFunc(time.Minute, func() { w.engine.Restore(old) })
		start := time.Now()
		_, err = w.client(lock.Config{Expiry: lock.ObservedOnly}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.LessOrEqual(t, time.Since(start), time.Hour+30*time.Second)
	})
}

func TestWaitingEndsWithWhyAndWho(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, err := w.client(lock.Config{Owner: "holder\n1"}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		c := w.client(lock.Config{})
		check := func(err error, want ...error) {
			t.Helper()
			for _, e := range want {
				require.ErrorIs(t, err, e)
			}
			var held *lock.HeldError
			require.ErrorAs(t, err, &held)
			assert.Equal(t, "holder\n1", held.Owner)
			assert.NotContains(t, err.Error(), "\n")
			assert.Contains(t, err.Error(), `"holder\n1"`)
		}
		waiting, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err = c.Acquire(waiting, lock.Name("report"))
		check(err, context.DeadlineExceeded, lock.ErrHeld)

		mine := errors.New("shutting down")
		because, stop := context.WithCancelCause(ctx)
		time.AfterFunc(time.Minute, func() { stop(mine) })
		_, err = c.Acquire(because, lock.Name("report"))
		check(err, mine, context.Canceled)

		_, err = w.client(lock.Config{Backoff: func() backoff.BackOff { return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 3) }}).
			Acquire(ctx, lock.Name("report"))
		check(err)

		time.AfterFunc(time.Minute, func() { assert.NoError(t, c.Close(context.Background())) })
		_, err = c.Acquire(ctx, lock.Name("report"))
		check(err, lock.ErrClosed)
	})
}

func TestEndedContextSendsNothing(t *testing.T) {
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

// A read that never answers does not keep a waiter from a lock that is free.
func TestHungReadsDoNotHoldUpAWaiter(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 1000 * time.Hour, Operation: "BatchGetItem", Times: 1})
		time.AfterFunc(2*time.Second, func() { assert.NoError(t, l.Release(ctx)) })
		start := time.Now()
		_, err = w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.LessOrEqual(t, time.Since(start), 5*time.Second)
	})
}

// A read that lags behind shows a holder of before, whose lease has long ended. Whoever knows
// a later one does not try for that.
func TestHolderOfThePastIsNotTakenFor(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		first, second, c := w.cold(lock.Config{}), w.cold(lock.Config{}), w.cold(lock.Config{})
		_, err := first.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
		require.NoError(t, err)
		time.Sleep(time.Hour)
		_, err = second.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Operation: "BatchGetItem"})
		w.engine.ResetRequests()
		waiting, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err = c.Acquire(waiting, lock.Name("report"), lock.Fixed(time.Second))
		require.ErrorIs(t, err, lock.ErrHeld)
		assert.LessOrEqual(t, w.writesTo("LOCK#report"), 2, "enter and leave")
	})
}

// A waiter who hears that looking has failed leaves, and nobody looks for it once more
// meanwhile.
func TestNobodyLooksForAWaiterWhoLeaves(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		holder, c := w.client(lock.Config{}), w.client(lock.Config{})
		_, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.ExpiredCredentials, Operation: "BatchGetItem"})
		const calls = 200
		looks := times("BatchGetItem", w.requests(func() {
			for range calls {
				_, err := c.Acquire(ctx, lock.Name("report"))
				assert.Error(t, err)
				_, err = c.AcquireAll(ctx, []lock.Target{lock.Name("report"), lock.Name("other")})
				assert.Error(t, err)
			}
		}))
		assert.Equal(t, 2*calls, looks)
	})
}

// In a table that was restored a lock is free, or held by somebody, under a lower fence: whoever waits
// takes it as it is, once no read can be so late.
func TestWaiterOfARestoredTable(t *testing.T) {
	for _, held := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			h, c := w.client(lock.Config{}), w.client(lock.Config{})
			_, err := h.Acquire(ctx, lock.Name("other")) // the session goes on
			require.NoError(t, err)
			short, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
			require.NoError(t, err)
			if !held {
				require.NoError(t, short.Release(ctx))
			}
			old := w.engine.Snapshot()
			if held {
				require.NoError(t, short.Release(ctx))
			}
			_, err = h.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			time.AfterFunc(time.Second, func() { w.engine.Restore(old) })
			start := time.Now()
			waiting, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			next, err := c.Acquire(waiting, lock.Name("report"))
			require.NoError(t, err)
			require.Less(t, time.Since(start), 30*time.Second)
			require.NoError(t, next.Release(ctx))
		})
	}
}

// stopping gives up after a few polls.
type stopping struct {
	polls int
	stops func()
}

func (s *stopping) NextBackOff() time.Duration {
	if s.polls++; s.polls > 3 {
		s.stops()
		return backoff.Stop
	}
	return time.Second
}

func (*stopping) Reset() {}

// Whoever comes just when those before it were given up waits as long as anybody.
func TestNewcomerAfterOthersWereGivenUp(t *testing.T) {
	for range 100 {
		virtual(t, func(ctx context.Context, w *world) {
			now, once := make(chan struct{}), sync.Once{}
			c := w.client(lock.Config{Backoff: func() backoff.BackOff { return &stopping{stops: func() { once.Do(func() { close(now) }) }} }})
			l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			time.AfterFunc(4*time.Second, func() { assert.NoError(t, l.Release(ctx)) })
			var all sync.WaitGroup
			for range 30 {
				all.Go(func() {
					l, err := c.Acquire(ctx, lock.Name("report"))
					if err != nil {
						assert.ErrorIs(t, err, lock.ErrHeld)
						return
					}
					assert.NoError(t, l.Release(ctx)) // it came to have its place when the holder released
				})
			}
			for range 8 {
				all.Go(func() {
					<-now
					began := time.Now()
					if l, err := c.Acquire(ctx, lock.Name("report")); err == nil {
						assert.NoError(t, l.Release(ctx))
					}
					assert.Less(t, time.Since(began), 6*time.Second)
				})
			}
			all.Wait()
			time.Sleep(5 * time.Second) // until the holder has released
		})
	}
}
