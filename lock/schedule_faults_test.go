package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table/tabletest"
)

// With clocks that are off, and with crashes: each interval is recorded once, none is forgotten, and what is committed with
// a run is applied once.
func TestEvery_RecordsEachIntervalOnce(t *testing.T) {
	const interval, instances = time.Minute, 5
	intervals := testkit.Fewer(200)
	for _, crashing := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			ctx, stop := context.WithCancel(ctx)
			target := lock.Name("report")
			var mu sync.Mutex
			starts, crashes := map[int64]int{}, 0
			inside := 0 // runs that hold the lock, as far as they know
			instance := func(i int) {
				rnd := rand.New(rand.NewPCG(1, uint64(i)))
				for ctx.Err() == nil {
					way := &line{to: w.engine.HTTPClient()}
					off := time.Duration(rnd.Int64N(int64(2*time.Hour))) - time.Hour
					c := w.coldClientOver(way, quiet, running(off, 0.8+0.4*rnd.Float64()))
					life, crash := context.WithCancel(ctx)
					err := c.Every(life, target, interval, func(ctx context.Context, l *lock.Lease, at time.Time) error {
						mu.Lock()
						starts[at.UnixMilli()]++
						inside++
						assert.Equal(t, 1, inside)
						// One instance lives; and an interval that crashes everything is left in the end.
						dies := crashing && i > 0 && starts[at.UnixMilli()] <= 2 && rnd.IntN(2) == 0
						long := time.Duration(1+rnd.IntN(10)) * time.Second
						if dies {
							crashes++
							long = time.Duration(rnd.IntN(25)) * time.Second
						}
						commits := rnd.IntN(2) == 0
						mu.Unlock()
						time.Sleep(long)
						mu.Lock()
						inside--
						mu.Unlock()
						if dies {
							way.cut(hung)
							crash()
							return ctx.Err()
						}
						if commits {
							return l.Commit(ctx, w.count(fmt.Sprint("run", at.UnixMilli())))
						}
						return nil
					})
					crash()
					if !errors.Is(err, context.Canceled) {
						assert.NoError(t, err)
						return
					}
					if ctx.Err() == nil {
						time.Sleep(time.Duration(rnd.IntN(180)) * time.Second)
					}
				}
			}
			var all sync.WaitGroup
			began := time.Now()
			for i := range instances {
				all.Go(func() { instance(i) })
			}
			w.engine.ResetRequests()
			list, looks := w.runs(ctx, target, began.Add(time.Duration(intervals)*interval))
			requests := len(w.engine.Requests()) - looks
			stop()
			all.Wait()
			require.GreaterOrEqual(t, len(list), intervals-3)
			for i := 1; i < len(list); i++ {
				require.Equal(t, interval.Milliseconds(), list[i]-list[i-1], "the interval after number %d", i)
			}
			applied := 0
			for at := range starts {
				n := w.counted(fmt.Sprint("run", at))
				require.LessOrEqual(t, n, int64(1))
				applied += int(n)
			}
			began0 := 0
			for _, n := range starts {
				began0 += n
			}
			t.Logf("%d intervals recorded, %d runs begun, %d crashes, %d commits, %.1f requests per interval and instance",
				len(list), began0, crashes, applied, float64(requests)/float64(len(list)*instances))
			if !crashing {
				assert.Equal(t, len(starts), began0, "each began once")
			}
		})
	}
}

// A holder is paused over the end of its interval. It records the interval if nobody has taken the lock, and otherwise
// nothing: never both.
func TestEvery_PauseOverTheEndOfAnInterval(t *testing.T) {
	for name, cutOff := range map[string]bool{"still held": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				ctx, stop := context.WithCancel(ctx)
				way := &line{to: w.engine.HTTPClient()}
				a, b := w.clientOver(way, quiet), w.client(quiet)
				var mu sync.Mutex
				var ran []string
				var first time.Time
				work := func(who string, pause time.Duration) job {
					return func(ctx context.Context, l *lock.Lease, at time.Time) error {
						mu.Lock()
						if first.IsZero() {
							first = at
						}
						wait := pause
						pause = 0
						mu.Unlock()
						if cutOff && wait > 0 {
							way.cut(hung)
						}
						time.Sleep(wait + time.Second)
						way.cut(open)
						err := l.Commit(context.WithoutCancel(ctx), w.count(fmt.Sprint(at.Sub(first))))
						mu.Lock()
						defer mu.Unlock()
						ran = append(ran, fmt.Sprint(who, " ", at.Sub(first), " ", err == nil))
						return err
					}
				}
				var all sync.WaitGroup
				all.Go(func() {
					require.ErrorIs(t, a.Every(ctx, lock.Name("report"), time.Minute, work("a", 70*time.Second)), context.Canceled)
				})
				all.Go(func() {
					time.Sleep(time.Second)
					require.ErrorIs(t, b.Every(ctx, lock.Name("report"), time.Minute, work("b", 0)), context.Canceled)
				})
				list, _ := w.runs(ctx, lock.Name("report"), time.Now().Add(5*time.Minute))
				stop()
				all.Wait()
				t.Log(ran)
				require.GreaterOrEqual(t, len(list), 4)
				for i, at := range list {
					assert.Equal(t, first.UnixMilli()+int64(i)*60_000, at)
					assert.EqualValues(t, 1, w.counted(fmt.Sprint(time.Duration(i)*time.Minute)))
				}
				if cutOff {
					assert.Contains(t, ran, "a 0s false")
					assert.Contains(t, ran, "b 0s true")
				} else {
					assert.Contains(t, ran, "a 0s true")
				}
			})
		})
	}
}

// A job that crashes its process is begun again in the next interval, and does not keep later ones from being run.
func TestEvery_UnfinishedIntervalIsRunInTheNext(t *testing.T) {
	for late, want := range map[time.Duration]time.Duration{90 * time.Second: 0, 150 * time.Second: 2 * time.Minute} {
		virtual(t, func(ctx context.Context, w *world) {
			way := &line{to: w.engine.HTTPClient()}
			c := w.clientOver(way, quiet)
			dying, die := context.WithCancel(ctx)
			var first time.Time
			require.ErrorIs(t, c.Every(dying, lock.Name("x"), time.Minute, func(_ context.Context, _ *lock.Lease, at time.Time) error {
				first = at
				way.cut(hung)
				die()
				return nil
			}), context.Canceled)
			time.Sleep(time.Until(first.Add(late)))
			next, end := context.WithCancel(ctx)
			var ran []time.Duration
			require.ErrorIs(t, w.client(quiet).Every(next, lock.Name("x"), time.Minute, func(_ context.Context, _ *lock.Lease, at time.Time) error {
				ran = append(ran, at.Sub(first))
				end()
				return nil
			}), context.Canceled)
			assert.Equal(t, []time.Duration{want}, ran, "%v later", late)
		})
	}
}

// The run of an interval has begun, and its instance has crashed. An instance that has waited for an older interval takes
// over the lock. The unfinished interval is still run.
func TestEvery_OlderIntervalDoesNotForgetALaterOne(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		const interval = time.Minute
		target := lock.Name("report")
		ctx, stop := context.WithTimeout(ctx, 295*time.Second)
		defer stop()
		start := time.Now()
		slow := quiet
		slow.Backoff = func() backoff.BackOff { return backoff.NewConstantBackOff(50 * time.Second) }
		way := &line{to: w.engine.HTTPClient()}
		h, a, b := w.client(quiet), w.clientOver(way, quiet), w.client(slow)
		sleep := func(until time.Duration) { time.Sleep(time.Until(start.Add(until))) }
		started := make(map[string][]time.Duration)
		note := func(who string, at time.Time) {
			started[who] = append(started[who], at.Sub(start))
		}
		done := make(chan struct{}, 3)
		life, die := context.WithCancel(ctx)
		go func() { // runs for more than two intervals, and leaves it at that
			defer func() { done <- struct{}{} }()
			_ = h.Every(life, target, interval, func(_ context.Context, _ *lock.Lease, at time.Time) error {
				note("h", at)
				sleep(185 * time.Second)
				die()
				return nil
			})
		}()
		sleep(122 * time.Second)
		go func() {
			defer func() { done <- struct{}{} }()
			_ = b.Every(ctx, target, interval, func(_ context.Context, _ *lock.Lease, at time.Time) error {
				note("b", at)
				time.Sleep(20 * time.Second)
				return nil
			})
		}()
		sleep(181 * time.Second)
		crashed, crash := context.WithCancel(ctx)
		go func() {
			defer func() { done <- struct{}{} }()
			_ = a.Every(crashed, target, interval, func(ctx context.Context, _ *lock.Lease, at time.Time) error {
				note("a", at)
				way.cut(hung)
				crash()
				return ctx.Err()
			})
		}()
		for range 3 {
			<-done
		}
		require.Equal(t, []time.Duration{180 * time.Second}, started["a"], "it has begun, and was not finished")
		assert.Contains(t, started["b"], 180*time.Second, "and was to be taken up until 300 s")
	})
}

// One answer with a wrong date does not record a run in the future, after which none follows, and no interval is slept
// through. Wrong dates of a job's own writes have no effect on the intervals.
func TestEvery_GoesOnAfterAWrongDate(t *testing.T) {
	for name, c := range map[string]struct {
		operation string
		by        time.Duration
		times     int
		rate      float64 // of the local clock
	}{
		"ahead, once":                   {"GetItem", 24 * time.Hour, 1, 1},
		"ahead, once, for a fast clock": {"GetItem", 24 * time.Hour, 1, 1.2},
		"behind, once":                  {"GetItem", -24 * time.Hour, 1, 1},
		"writes ahead, once":            {"UpdateItem", 24 * time.Hour, 1, 1},
		"writes behind, always":         {"UpdateItem", -70 * time.Second, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				time.AfterFunc(time.Hour, func() {
					w.engine.Inject(tabletest.Fault{Kind: tabletest.SkewDate, For: c.by, Operation: c.operation, Times: c.times})
				})
				ctx, cancel := context.WithTimeout(ctx, 3*time.Hour)
				defer cancel()
				ran := 0
				err := w.client(quiet, running(0, c.rate)).Every(ctx, lock.Name("report"), time.Minute, func(_ context.Context, _ *lock.Lease, at time.Time) error {
					assert.Less(t, time.Until(at).Abs(), 2*time.Minute)
					ran++
					return nil
				})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				t.Log(ran)
				assert.GreaterOrEqual(t, ran, 179)
			})
		})
	}
}

// Nor does a wrong date make an unfinished run forgotten.
func TestEvery_UnfinishedRunIsKeptThroughAWrongDate(t *testing.T) {
	for name, f := range map[string]tabletest.Fault{
		"read ahead":    {Kind: tabletest.SkewDate, For: 24 * time.Hour, Operation: "GetItem", Times: 1},
		"write behind":  {Kind: tabletest.SkewDate, For: -3 * time.Hour, Operation: "UpdateItem", Times: 1},
		"writes behind": {Kind: tabletest.SkewDate, For: -3 * time.Hour, Operation: "UpdateItem", Times: 2},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				var began []time.Time
				run := func(c *lock.Client, f func(ctx context.Context) error) {
					bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
					defer cancel()
					_ = c.Every(bounded, lock.Name("report"), time.Hour, func(ctx context.Context, _ *lock.Lease, at time.Time) error {
						began = append(began, at)
						return f(ctx)
					})
				}
				run(w.client(quiet), func(ctx context.Context) error {
					w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest}) // crashed
					<-ctx.Done()
					return ctx.Err()
				})
				w.engine.ClearFaults()
				time.Sleep(time.Hour)
				other := w.client(quiet)
				f.Key = w.table.KeyItem(keys.NewKey("LOCK#report", "LOCK#report"))
				w.engine.Inject(f)
				run(other, func(context.Context) error { return nil })
				require.Len(t, began, 3)
				assert.Equal(t, began[0], began[1], "the one that was broken off")
			})
		})
	}
}

// Reads that take longer than an interval are no reason to read again.
func TestEvery_SlowReadsAreNotRepeated(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, Operation: "GetItem", For: 2900 * time.Millisecond})
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		ran := 0
		ops := w.requests(func() {
			err := c.Every(ctx, lock.Name("report"), lock.MinInterval, func(context.Context, *lock.Lease, time.Time) error {
				ran++
				return nil
			})
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
		assert.Greater(t, ran, 10)
		assert.LessOrEqual(t, times("GetItem", ops), ran+2)
	})
}

// A request that fails long after an outage does not cost an interval.
func TestEvery_ForgetsAnOldOutage(t *testing.T) {
	const outage, interval = 10 * time.Minute, 5 * time.Second
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, quiet)
		bounded, cancel := context.WithTimeout(ctx, outage+10*time.Minute)
		defer cancel()
		way.cut(refused)
		time.AfterFunc(outage, func() { way.cut(open) })
		for i := range 9 { // waits are random
			time.AfterFunc(outage+time.Duration(i+1)*time.Minute, func() {
				w.engine.Inject(tabletest.Fault{Kind: tabletest.ExpiredCredentials, Operation: "GetItem", Times: 1})
			})
		}
		var last time.Time
		missed := 0
		err := c.Every(bounded, lock.Name("report"), interval, func(_ context.Context, _ *lock.Lease, at time.Time) error {
			if !last.IsZero() {
				missed += int(at.Sub(last)/interval) - 1
			}
			last = at
			return nil
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotZero(t, last)
		assert.Zero(t, missed)
	})
}

// However long the lease is.
func TestEvery_GoesOnSoonAfterAnOutage(t *testing.T) {
	const before, outage = 5 * time.Minute, 20 * time.Minute
	for range testkit.IfSmall(2, 10) { // waits are random
		virtual(t, func(ctx context.Context, w *world) {
			way := &line{to: w.engine.HTTPClient()}
			c := w.clientOver(way, lock.Config{Logger: quiet.Logger, Lease: time.Hour})
			bounded, cancel := context.WithTimeout(ctx, 2*outage)
			defer cancel()
			over := time.Now().Add(before + outage)
			time.AfterFunc(before, func() { way.cut(refused) })
			time.AfterFunc(before+outage, func() { way.cut(open) })
			var first time.Duration // run after the outage
			require.ErrorIs(t, c.Every(bounded, lock.Name("report"), time.Minute, func(context.Context, *lock.Lease, time.Time) error {
				if d := time.Since(over); d > 0 && first == 0 {
					first = d
				}
				return nil
			}), context.DeadlineExceeded)
			assert.NotZero(t, first)
			assert.Less(t, first, 2*time.Minute)
		})
	}
}
