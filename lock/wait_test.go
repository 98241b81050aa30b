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

// Whose context ends between two attempts has given up; retries have not.
func TestAcquire_ImpatienceIsNoExhaustion(t *testing.T) {
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

// Who waits for a lock of its own process is handed it: nothing is polled meanwhile.
func TestPass_IsHardlyPolledFor(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := acquireAsync(ctx, c, lock.Name("report"))
		looks := times("BatchGetItem", w.requests(func() { time.Sleep(5 * time.Minute) }))
		assert.LessOrEqual(t, looks, 60+1, "one in a quarter of the lease")
		require.NoError(t, l.Release(ctx))
		next := <-got
		require.NotNil(t, next)
		require.NoError(t, next.Release(ctx))
	})
}

// However long an outage lasts, it is not hammered: neither by campaigns nor by renewals.
func TestAcquire_DoesNotHammerDuringAnOutage(t *testing.T) {
	for name, begin := range map[string]func(ctx context.Context, w *world, c *lock.Client){
		"Lead": func(ctx context.Context, _ *world, c *lock.Client) {
			go func() {
				_ = c.Lead(ctx, lock.Name("report"), func(ctx context.Context, _ *lock.Lease) error {
					<-ctx.Done()
					return nil
				})
			}()
		},
		"renewals": func(ctx context.Context, w *world, c *lock.Client) {
			_, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(w, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				config := quiet
				if name == "renewals" {
					config.Lease = time.Hour
				}
				begin(ctx, w, w.client(config))
				time.Sleep(time.Minute)
				w.latency(50 * time.Millisecond) // without which whoever does not pause repeats for ever at one instant
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest})
				time.Sleep(20 * time.Minute)
				tries := len(w.requests(func() { time.Sleep(20 * time.Minute) }))
				assert.Positive(t, tries)
				assert.LessOrEqual(t, tries, 20*60, "one a second")
				w.engine.ClearFaults()
			})
		})
	}
}

// An heir that went back to the line is told, when its waiting ends, who holds the lock then.
func TestAcquire_AWaiterThatWentBackNamesTheHolder(t *testing.T) {
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

// Who waits for a lock that was handed over within the process knows as much of its holder as of any.
func TestAcquire_AHolderByAPassIsKnown(t *testing.T) {
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

// Two clients of one process at one table are as two processes.
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
				inside++ // unsynchronized on purpose: the lock is what keeps it in order
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

// waitForAll has a client wait for n locks that another one holds, each in a goroutine of its own,
// and counts what is sent in a while.
func (w *world) waitForAll(ctx context.Context, n int, from, to time.Duration) (looks, questions int) {
	h, c := w.client(lock.Config{}), w.client(lock.Config{})
	for _, target := range names(n) {
		_, err := h.Acquire(ctx, target)
		require.NoError(w, err)
	}
	waiting, cancel := context.WithTimeout(ctx, to)
	defer cancel()
	var all sync.WaitGroup
	for i, target := range names(n) {
		all.Go(func() {
			time.Sleep(time.Duration(i%50) * 17 * time.Millisecond)
			_, err := c.Acquire(waiting, target)
			assert.ErrorIs(w, err, lock.ErrHeld)
		})
	}
	time.Sleep(from)
	w.engine.ResetRequests()
	all.Wait()
	for _, r := range w.engine.Requests() {
		if r.Operation == "BatchGetItem" {
			looks++
		}
	}
	for _, r := range w.requestsTo(sessionKey(h).PK) {
		if r.Operation == "UpdateItem" {
			questions++
		}
	}
	return looks, questions - int((to-from)/(4500*time.Millisecond)) // which are renewals
}

// However many locks are waited for, one request looks at all of them.
func TestLooks_AtManyLocksAreShared(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		const seconds = 50
		looks, _ := w.waitForAll(ctx, 60, 30*time.Second, (30+seconds)*time.Second)
		t.Logf("%d looks at 60 locks in %d s", looks, seconds)
		assert.LessOrEqual(t, looks, 3*seconds)
		assert.GreaterOrEqual(t, looks, seconds)
	})
}

// A look that had to be sent twice shows what it has read.
func TestLooks_ARepeatedOneCounts(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		waiting, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := other.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := acquireAsync(waiting, c, lock.Name("report"))
		require.NoError(t, l.Release(ctx))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "BatchGetItem", Times: 1})
		looks := 0
		for _, operation := range w.requests(func() { require.NotNil(t, <-got) }) {
			if operation == "BatchGetItem" {
				looks++
			}
		}
		assert.Equal(t, 2, looks)
	})
}

// Nobody looks any more once the last waiter has got its lock, whether it tried or was handed it.
func TestLooks_EndWithTheLastWaiter(t *testing.T) {
	for name, own := range map[string]bool{"another process's": false, "its own": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, holder := w.client(lock.Config{}), w.client(lock.Config{})
				other := holder
				if own {
					holder = c
				}
				w.latency(20 * time.Millisecond)
				l, err := holder.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				next := acquireAsync(ctx, c, lock.Name("report"))
				looks := func() int {
					return times("BatchGetItem", w.requests(func() { time.Sleep(time.Minute) }))
				}
				if own {
					require.Zero(t, looks(), "it is passed on")
					behind := acquireAsync(ctx, other, lock.Name("report"))
					require.Positive(t, looks())
					defer func() { require.NotNil(t, <-behind) }()
				} else {
					require.Positive(t, looks())
				}
				require.NoError(t, l.Release(ctx))
				l = <-next
				require.NotNil(t, l)
				if own {
					require.NoError(t, l.Release(ctx))
				}
				time.Sleep(time.Second)
				assert.Zero(t, looks())
			})
		})
	}
}
