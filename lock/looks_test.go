package lock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestLooks_DoNotSpin(t *testing.T) {
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

// A stale read shows a free or an old row. The waiter tries once, and then not again at once.
func TestLooks_StaleOnesDoNotSpin(t *testing.T) {
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
func TestLooks_OfThePastAreNotTried(t *testing.T) {
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

// A look lags behind and shows the row as it was before the waiter entered, or before a Fixed lease was renewed. A consistent read follows, and
// no write: the ticket has not left the line, and the lease has not ended.
func TestLooks_OfThePastAreReadAgain(t *testing.T) {
	for name, renews := range map[string]bool{"before the entry": false, "before a renewal": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				l, err := w.client(quiet).Acquire(ctx, lock.Name("report"), lock.Fixed(10*time.Second))
				require.NoError(t, err)
				stale := tabletest.Fault{Kind: tabletest.StaleRead, Operation: "BatchGetItem", Times: 1}
				if !renews {
					w.engine.Inject(stale)
				}
				w.engine.ResetRequests()
				got := acquireAsync(ctx, w.client(quiet), lock.Name("report"), lock.Fixed(time.Minute))
				writes := 1 // its entry
				if renews {
					time.Sleep(8 * time.Second)
					require.NoError(t, l.Renew(ctx))
					time.Sleep(5 * time.Second) // the earlier lease has ended, and the waiter has seen the renewal
					w.engine.Inject(stale)
					writes++
				}
				time.Sleep(4 * time.Second)
				assert.Equal(t, writes, w.writesTo("LOCK#report"))
				assert.Len(t, slices.DeleteFunc(w.requestsTo("LOCK#report"), func(r tabletest.Request) bool { return r.Operation != "GetItem" }), 1)
				require.NoError(t, l.Release(ctx))
				require.NotNil(t, <-got)
			})
		})
	}
}

// If no read shows a release yet, a write finds it at last.
func TestLooks_StaleOnesDoNotDelayForLong(t *testing.T) {
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

// A read that never gets an answer does not keep a waiter from a lock that is free.
func TestLooks_HungOnesDoNotDelay(t *testing.T) {
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

// A read that lags behind shows a former holder, whose lease has long ended. A waiter that knows a later holder does not try
// to take the lock.
func TestLooks_OfAFormerHolderAreNotTried(t *testing.T) {
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

// A waiter that learns that a look has failed leaves, and nobody looks for it again meanwhile.
func TestLooks_EndForAWaiterThatLeaves(t *testing.T) {
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

// A look that had to be sent twice counts.
func TestLooks_RepeatedOneCounts(t *testing.T) {
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

// A session is looked at once in a quarter of its lease by each process that waits behind it, however often its holders change.
func TestLooks_AtASessionAreFewWhileItsHoldersChange(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		during := time.Duration(testkit.IfSmall(20, 60)) * time.Second
		w.latency(2 * time.Millisecond)
		run, cancel := context.WithTimeout(ctx, during)
		defer cancel()
		var work sync.WaitGroup
		clients := w.clients(3)
		for i, goroutines := range []int{4, 1, 1} {
			c := clients[i]
			for range goroutines {
				work.Go(func() {
					for {
						l, err := c.Acquire(run, lock.Name("report"))
						if err != nil {
							return
						}
						time.Sleep(100 * time.Millisecond)
						assert.NoError(t, l.Release(ctx))
					}
				})
			}
		}
		work.Wait()
		looks := 0
		for _, c := range clients {
			for _, r := range w.requestsTo(sessionKey(c).PK) {
				if r.Operation == "BatchGetItem" {
					looks++
				}
			}
		}
		quarters := int(during / (5 * time.Second))
		testkit.Check(t, "looks at 3 sessions in a minute", testkit.AtMost(looks, "by two processes each", 6*(quarters+2)), testkit.AtLeast(looks, "", quarters))
	})
}

// Nobody looks any more once the last waiter has got its lock, whether it entered or got it by a pass.
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

// panicking is a backoff whose code is broken.
type panicking struct{}

func (panicking) NextBackOff() time.Duration { panic("of the backoff") }
func (panicking) Reset()                     {}

// A panic of Config.Backoff reaches the caller, and leaves no ticket in the line.
func TestBackoff_PanicLeavesNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		config := quiet
		config.Backoff = func() backoff.BackOff { return panicking{} }
		c, holder := w.client(config), w.client(quiet)
		_, err := c.Acquire(ctx, lock.Name("keeps the session"))
		require.NoError(t, err)
		l, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.PanicsWithValue(t, "of the backoff", func() { _, _ = c.Acquire(ctx, lock.Name("report")) })
		require.NoError(t, l.Release(ctx))
		short, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		_, err = holder.Acquire(short, lock.Name("report"))
		require.NoError(t, err)
	})
}

// Waiters that give up while reads fail leave nothing behind in the client.
func TestWait_GivenUpWhileReadsFailLeavesNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.guardian = nil // it would take most of the time
		_, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		c := w.client(quiet)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Operation: "BatchGetItem"})
		const waiters = 500
		try := func() {
			for range waiters {
				short, cancel := context.WithTimeout(ctx, time.Millisecond)
				_, err := c.Acquire(short, lock.Name("report"))
				cancel()
				require.ErrorIs(t, err, lock.ErrHeld)
			}
			time.Sleep(time.Second)
			w.engine.ResetRequests()
		}
		try()
		try() // buffers have grown
		before := heap()
		for range 3 {
			try()
		}
		grown := int64(heap()) - int64(before)
		assert.Less(t, grown, int64(3*waiters*100), "bytes")
		w.engine.ClearFaults()
	})
}

type crowded struct {
	in    *atomic.Int32
	most  *atomic.Int32
	calls *atomic.Int32
}

func (s crowded) Reset() {}
func (s crowded) NextBackOff() time.Duration {
	n := s.in.Add(1)
	defer s.in.Add(-1)
	if n > s.most.Load() {
		s.most.Store(n)
	}
	s.calls.Add(1)
	time.Sleep(700 * time.Millisecond)
	return time.Second
}

// The functions of a BackOff are not called by two goroutines at once.
func TestBackoff_IsCalledOneAtATime(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var most, calls atomic.Int32
		config := quiet
		config.Backoff = func() backoff.BackOff { return crowded{new(atomic.Int32), &most, &calls} }
		holder := w.client(quiet)
		_, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		c := w.client(config)
		waiting, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() { _, err := c.Acquire(waiting, lock.Name("report")); done <- err }()
		time.Sleep(time.Second)
		for range 40 { // force takes the waiter's ticket out by hand: its session is marked
			_ = w.table.Write(ctx, table.Update(sessionKey(c), table.Attr("dead").Set(1)))
			time.Sleep(2*time.Second + 37*time.Millisecond)
		}
		cancel()
		assert.ErrorIs(t, <-done, lock.ErrHeld)
		t.Log(calls.Load(), most.Load())
		assert.LessOrEqual(t, most.Load(), int32(1))
	})
}

// Calls give up before their turn: at a deadline, or since they are cancelled, as a web server's are. Those behind them then come to hold
// earlier than they could expect, and have to notice that before they give up as well.
func TestLooks_FindALockThatOthersHaveGivenUpOn(t *testing.T) {
	during := time.Duration(testkit.IfSmall(20, 60)) * time.Second
	deadline := context.WithTimeout
	cancelled := func(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		timer := time.AfterFunc(patience, cancel)
		return ctx, func() {
			timer.Stop()
			cancel()
		}
	}
	for _, c := range []struct {
		name       string
		limit      func(context.Context, time.Duration) (context.Context, context.CancelFunc)
		patience   time.Duration
		processes  int
		goroutines int // of each
		hold       time.Duration
		opts       []lock.Option
	}{
		{"deadline", deadline, time.Second, 12, 1, 400 * time.Millisecond, nil},
		{"longer deadline", deadline, 2 * time.Second, 12, 1, 400 * time.Millisecond, nil},
		{"fixed", deadline, time.Second, 12, 1, 400 * time.Millisecond, []lock.Option{lock.Fixed(20 * time.Second)}},
		{"cancelled", cancelled, time.Second, 12, 1, 400 * time.Millisecond, nil},
		{"cancelled, short holds", cancelled, 500 * time.Millisecond, 20, 1, 50 * time.Millisecond, nil},
		{"cancelled, fixed", cancelled, time.Second, 12, 1, 400 * time.Millisecond, []lock.Option{lock.Fixed(20 * time.Second)}},
		{"cancelled in web servers", cancelled, 500 * time.Millisecond, 2, 20, 50 * time.Millisecond, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				w.latency(2 * time.Millisecond)
				bounded, cancel := context.WithTimeout(ctx, during)
				defer cancel()
				var all sync.WaitGroup
				var grants, calls atomic.Int64
				clients := w.clients(c.processes)
				w.engine.ResetRequests()
				for i := range c.processes * c.goroutines {
					all.Go(func() {
						for bounded.Err() == nil {
							short, stop := c.limit(bounded, c.patience)
							l, err := clients[i%c.processes].Acquire(short, lock.Name("report"), c.opts...)
							stop()
							if calls.Add(1); err == nil {
								grants.Add(1)
								time.Sleep(c.hold)
								assert.NoError(t, l.Release(ctx))
							}
						}
					})
				}
				all.Wait()
				assert.Greater(t, time.Duration(grants.Load())*c.hold, during*3/4, "time in which the lock was held")
				var ops []string
				for _, r := range w.engine.Requests() {
					ops = append(ops, r.Operation)
				}
				assert.Less(t, times("BatchGetItem", ops), int(calls.Load())*10, "looks")
			})
		})
	}
}

// Callers that do not give up wait behind callers of other processes that do, and that leave the line long before their turn. The patient
// ones notice soon that they hold.
func TestLooks_OfPatientCallersFindALockThatOthersHaveGivenUpOn(t *testing.T) {
	const hold = 50 * time.Millisecond
	seconds := testkit.IfSmall(5, 15)
	during := time.Duration(seconds) * time.Second
	for _, tc := range []struct {
		patient, impatient int
		patience           time.Duration
		opts               []lock.Option // of the patient ones
		rate               float64       // least grants of each patient one in a second
	}{
		{1, 30, 100 * time.Millisecond, nil, 3},
		{3, 20, 200 * time.Millisecond, nil, 1.8},
		{8, 6, 200 * time.Millisecond, []lock.Option{lock.Shared()}, 2.5},
	} {
		t.Run(fmt.Sprint(tc.patient, " beside ", tc.impatient), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				w.guardian = nil // it would take most of the time
				w.latency(2 * time.Millisecond)
				bounded, cancel := context.WithTimeout(ctx, during)
				defer cancel()
				var all sync.WaitGroup
				grants := make([]int, tc.patient)
				for i, c := range w.clients(tc.patient + tc.impatient) {
					all.Go(func() {
						patience, opts := tc.patience, []lock.Option(nil)
						if i < tc.patient {
							patience, opts = during, tc.opts
						}
						for bounded.Err() == nil {
							short, stop := context.WithTimeout(bounded, patience)
							l, err := c.Acquire(short, lock.Name("report"), opts...)
							stop()
							if err != nil {
								continue
							}
							if i < tc.patient {
								grants[i]++
							}
							time.Sleep(hold)
							assert.NoError(t, l.Release(ctx))
						}
					})
				}
				all.Wait()
				assert.GreaterOrEqual(t, float64(slices.Min(grants)), tc.rate*float64(seconds), "grants of a patient caller: %v", grants)
			})
		})
	}
}
