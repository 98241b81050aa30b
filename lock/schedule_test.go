package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// job is what Every runs.
type job = func(context.Context, *lock.Lease, time.Time) error

// running is a clock that is off and runs at a rate of its own.
func running(off time.Duration, rate float64) table.Option {
	began := time.Now()
	return table.WithClock(func() time.Time {
		return began.Add(off + time.Duration(rate*float64(time.Since(began))))
	})
}

// runs follows the row and collects the starts of the intervals that are recorded.
func (w *world) runs(ctx context.Context, target lock.Target, until time.Time) (list []int64, looks int) {
	c := w.cold(lock.Config{})
	for time.Now().Before(until) {
		r, err := c.Inspect(ctx, target)
		if !errors.Is(err, table.ErrNotFound) {
			require.NoError(w, err)
			if r.Ran != 0 && (len(list) == 0 || list[len(list)-1] != r.Ran) {
				list = append(list, r.Ran)
			}
		}
		looks++
		time.Sleep(900 * time.Millisecond) // no run takes less than a second
	}
	return list, looks
}

// Intervals are numbered by DynamoDB's clock: an instance whose own is off runs the same ones.
func TestIntervalsAreNumberedByDynamoDBsClock(t *testing.T) {
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
				defer cancel()
				c := w.coldClientOver(&line{to: w.engine.HTTPClient()}, quiet, running(off, 1))
				ran := 0
				require.ErrorIs(t, c.Every(ctx, lock.Name("report"), time.Minute, func(_ context.Context, _ *lock.Lease, at time.Time) error {
					ran++
					assert.Equal(t, time.Now().UTC().Truncate(time.Minute), at)
					return nil
				}), context.DeadlineExceeded)
				assert.GreaterOrEqual(t, ran, 10)
			})
		})
	}
}

// Whatever the clocks say and whoever crashes: each interval is recorded once, none is
// forgotten, and what is committed with a run is applied once.
func TestEveryIntervalOnce(t *testing.T) {
	const interval, instances = time.Minute, 5
	intervals := testkit.Fewer(200)
	for _, crashing := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			ctx, stop := context.WithCancel(ctx)
			target := lock.Name("report")
			var mu sync.Mutex
			starts, crashes := map[int64]int{}, 0
			inside := 0 // runs that believe to hold the lock
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

// A holder that is paused over the end of its interval records it, if nobody has taken the
// lock, and otherwise nothing: never both.
func TestPauseOverTheEndOfAnInterval(t *testing.T) {
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

// once runs the job of the hour, on an instance that ends as soon as that has returned.
func (p *place) once(target lock.Target, f job, opts ...lock.Option) (at time.Time, err error) {
	p.Helper()
	ctx, cancel := context.WithCancel(p.Context())
	defer cancel()
	n := 0
	var failed error
	opts = append(opts, lock.OnFailed(func(start time.Time, err error) {
		assert.Equal(p, at, start)
		failed = err
		cancel()
	}))
	err = p.client.Every(ctx, target, time.Hour, func(inside context.Context, l *lock.Lease, start time.Time) error {
		n, at = n+1, start
		if f == nil {
			cancel()
			return nil
		}
		return f(inside, l, start)
	}, opts...)
	assert.LessOrEqual(p, n, 1)
	if failed != nil {
		require.ErrorIs(p, err, context.Canceled)
		return at, failed
	}
	return at, err
}

func TestTheRowRecordsWhatBecameOfARun(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		broken := errors.New("broken")
		row := func(target lock.Target) lock.Record {
			p.Helper()
			r, err := p.client.Inspect(ctx, target)
			require.NoError(p, err)
			assert.False(p, r.Held())
			return r
		}
		target := lock.Name("failing")
		at, err := p.once(target, func(context.Context, *lock.Lease, time.Time) error { return broken })
		require.ErrorIs(p, err, broken)
		r := row(target)
		assert.Equal(p, at, r.LastRun(), "it counts as run")
		assert.Equal(p, at, r.LastFailed(), "and as failed")
		assert.Zero(p, r.Running)

		// To be repeated: nothing is recorded.
		target = lock.Name("repeated")
		repeat := lock.RetryFailed(func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) })
		key := keys.NewKey("ROW", "ROW")
		_, err = p.once(target, func(ctx context.Context, l *lock.Lease, _ time.Time) error {
			r, err := p.client.Inspect(ctx, target)
			assert.NoError(p, err)
			assert.Equal(p, r.Running, r.Since().Truncate(time.Hour).UnixMilli(), "unless the hour has just ended")
			return errors.Join(broken, l.Write(ctx, table.Put(p.table.KeyItem(key))))
		}, repeat)
		require.ErrorIs(p, err, broken)
		r = row(target)
		assert.Zero(p, r.Ran, "the interval stays open")
		assert.Zero(p, r.Failed)
		assert.Zero(p, r.Running)

		at, err = p.once(target, nil, repeat)
		require.ErrorIs(p, err, context.Canceled)
		assert.Equal(p, at, at.Truncate(time.Hour))
		assert.Equal(p, time.UTC, at.Location())
		r = row(target)
		assert.Equal(p, at, r.LastRun())
		assert.True(p, r.LastFailed().IsZero())
		assert.Zero(p, r.Running)

		// Done, or failed: another instance only reads, and so does one with other intervals in it.
		for _, target := range []lock.Target{target, lock.Name("failing")} {
			short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
			defer cancel()
			cost := totals(short, func(ctx context.Context) {
				err = p.open(quiet).Every(ctx, target, time.Hour, func(context.Context, *lock.Lease, time.Time) error {
					p.Error("ran twice")
					return nil
				})
			})
			require.ErrorIs(p, err, context.DeadlineExceeded)
			assert.EqualValues(p, 1, cost.Requests)
			assert.InDelta(p, 1, cost.ReadUnits, 0)
		}

		// A recorded commit is one even where the job then fails.
		target = lock.Name("committed")
		at, err = p.once(target, func(ctx context.Context, l *lock.Lease, _ time.Time) error {
			return errors.Join(l.Commit(ctx, table.Put(p.table.KeyItem(key))), broken)
		})
		require.ErrorIs(p, err, broken)
		r = row(target)
		assert.Equal(p, at, r.LastRun())
		assert.True(p, r.LastFailed().IsZero())

		// A job that releases the lock itself has not finished, whatever it returns.
		for _, returns := range []error{nil, broken} {
			_, err = p.once(lock.Name("released"), func(ctx context.Context, l *lock.Lease, _ time.Time) error {
				return errors.Join(l.Release(ctx), returns)
			})
			require.ErrorIs(p, err, lock.ErrReleased)
			if returns != nil {
				require.ErrorIs(p, err, broken)
			}
			assert.Zero(p, row(lock.Name("released")).Ran)
		}
	})
}

func TestEveryRefusesBadArguments(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		f := func(context.Context, *lock.Lease, time.Time) error { return nil }
		ops := w.requests(func() {
			for _, d := range []time.Duration{-time.Second, 0, lock.MinInterval - 1, lock.MaxInterval + 1} {
				require.ErrorIs(t, c.Every(ctx, lock.Name("x"), d, f), lock.ErrInvalid)
			}
			require.ErrorIs(t, c.Every(ctx, lock.Name("x"), time.Hour, nil), lock.ErrInvalid)
			require.ErrorIs(t, c.Every(ctx, lock.Target{}, time.Hour, f), lock.ErrInvalid)
			require.ErrorIs(t, c.Every(ctx, lock.Name("x"), time.Hour, f, nil), lock.ErrInvalid)
			require.ErrorIs(t, c.Every(ctx, lock.Name("x"), time.Hour, f, lock.Fixed(0)), lock.ErrInvalid)
			require.ErrorIs(t, c.Every(ctx, lock.Name("x"), time.Hour, f, lock.OnFailed(nil)), lock.ErrInvalid)
			require.ErrorIs(t, c.Every(ctx, lock.Name("x"), time.Hour, f, lock.RetryFailed(nil)), lock.ErrInvalid)
			require.ErrorIs(t, c.Lead(ctx, lock.Name("x"), nil), lock.ErrInvalid)
			require.ErrorIs(t, c.Lead(ctx, lock.Target{}, func(context.Context, *lock.Lease) error { return nil }), lock.ErrInvalid)
		})
		assert.Empty(t, ops)
		require.NoError(t, c.Close(ctx))
		require.ErrorIs(t, c.Every(ctx, lock.Name("x"), time.Hour, f), lock.ErrClosed)
		require.ErrorIs(t, c.Lead(ctx, lock.Name("x"), func(context.Context, *lock.Lease) error { return nil }), lock.ErrClosed)
	})
}

func TestEveryRefusesARowThatIsNotInOrder(t *testing.T) {
	for _, name := range []string{"ran", "running", "failed"} {
		for _, bad := range []types.AttributeValue{&types.AttributeValueMemberS{Value: "1"}, &types.AttributeValueMemberN{Value: "-1"}} {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{})
				l, err := c.Acquire(ctx, lock.Name("x"))
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))
				require.NoError(t, w.table.Write(ctx, table.Update(l.Key(), table.Attr(name).Set(bad))))
				err = c.Every(ctx, lock.Name("x"), time.Hour, func(context.Context, *lock.Lease, time.Time) error { return nil })
				require.ErrorIs(t, err, lock.ErrMalformed)
			})
		}
	}
}

// A job that brings its process down is begun again in the interval after its own, and does
// not keep later ones from being run.
func TestUnfinishedIntervalIsTakenUpInTheNext(t *testing.T) {
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

// An instance that waited for a run, or has read the row before it finished, finds out
// without acquiring.
func TestFinishedIntervalIsNotAcquiredAgain(t *testing.T) {
	for name, late := range map[string]bool{"waited": false, "read before": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				ctx, stop := context.WithTimeout(ctx, 30*time.Second)
				defer stop()
				a, b := w.client(quiet), w.client(quiet)
				var mu sync.Mutex
				ran := 0
				work := func(context.Context, *lock.Lease, time.Time) error {
					mu.Lock()
					ran++
					mu.Unlock()
					if !late {
						time.Sleep(10 * time.Second)
					}
					return nil
				}
				w.engine.ResetRequests()
				var all sync.WaitGroup
				if late {
					w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 2 * time.Second, Operation: "GetItem", Times: 1})
					all.Go(func() { assert.ErrorIs(t, b.Every(ctx, lock.Name("x"), time.Hour, work), context.DeadlineExceeded) })
					time.Sleep(time.Second)
				}
				all.Go(func() { assert.ErrorIs(t, a.Every(ctx, lock.Name("x"), time.Hour, work), context.DeadlineExceeded) })
				if !late {
					time.Sleep(time.Second)
					all.Go(func() { assert.ErrorIs(t, b.Every(ctx, lock.Name("x"), time.Hour, work), context.DeadlineExceeded) })
				}
				all.Wait()
				assert.Equal(t, 1, ran)
				if late {
					assert.Equal(t, 3, w.writesTo("LOCK#x"), "one to acquire, one to release, one refused")
				} else {
					assert.Equal(t, 4, w.writesTo("LOCK#x"), "one to acquire, one to release; one to enter the line, one to leave it")
				}
			})
		})
	}
}

// The run of an interval has begun, and its instance has crashed; somebody who has waited for an older
// interval takes the lock over. The one that was broken off is taken up all the same.
func TestOlderIntervalDoesNotForgetALaterOne(t *testing.T) {
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

// A job that releases the lock itself is told so, also where the answer to that is lost: the interval
// is not recorded, and not taken for it.
func TestEveryKnowsOfAReleaseWithoutAnAnswer(t *testing.T) {
	for _, kind := range []tabletest.FaultKind{tabletest.DropReply, tabletest.DropRequest} {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(quiet)
			bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
			defer cancel()
			runs := 0
			require.ErrorIs(t, c.Every(bounded, lock.Name("report"), time.Minute, func(_ context.Context, l *lock.Lease, _ time.Time) error {
				if runs++; runs > 1 {
					return nil
				}
				w.engine.Inject(tabletest.Fault{Kind: kind, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key())})
				defer w.engine.ClearFaults()
				short, cancel := context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
				assert.Error(t, l.Release(short))
				return nil
			}), lock.ErrReleased)
			assert.Equal(t, 1, runs)
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			assert.False(t, r.Held())
			assert.Zero(t, r.Ran)
		})
	}
}

// A commit that was refused has recorded nothing: a job that then gives the lock up is told so, and is
// not run again and again.
func TestEveryKnowsOfAReleaseAfterARefusedCommit(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		runs := 0
		require.ErrorIs(t, c.Every(bounded, lock.Name("report"), time.Minute, func(ctx context.Context, l *lock.Lease, _ time.Time) error {
			if runs++; runs > 3 {
				cancel()
			}
			assert.ErrorIs(t, l.Commit(ctx, w.count("n").If(table.Attr("n").Exists())), table.ErrCondition)
			return l.Release(ctx)
		}), lock.ErrReleased)
		assert.Equal(t, 1, runs)
	})
}

// The same where the job has released the lock when that was asked back.
func TestEveryKnowsOfAReleaseAfterARevocation(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		runs := 0
		require.ErrorIs(t, c.Every(bounded, lock.Name("report"), time.Minute, func(inside context.Context, l *lock.Lease, _ time.Time) error {
			if runs++; runs > 3 {
				cancel()
			}
			assert.NoError(t, c.Revoke(ctx, l.Target()))
			<-inside.Done()
			return l.Release(ctx)
		}), lock.ErrReleased)
		assert.Equal(t, 1, runs)
	})
}

// The same where the job has released the lock without an answer first, and others have held it since:
// the guard of the commit tells that, and nothing is applied.
func TestEveryKnowsOfAReleaseBeforeARefusedCommit(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		runs := 0
		require.ErrorIs(t, c.Every(bounded, lock.Name("report"), time.Minute, func(_ context.Context, l *lock.Lease, _ time.Time) error {
			if runs++; runs > 3 {
				cancel()
			}
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key())})
			short, stop := context.WithTimeout(ctx, 2*time.Second)
			defer stop()
			assert.ErrorIs(t, l.Release(short), context.DeadlineExceeded)
			w.engine.ClearFaults()
			o, err := other.TryAcquire(ctx, lock.Name("report"))
			if assert.NoError(t, err) {
				assert.NoError(t, o.Release(ctx))
			}
			assert.ErrorIs(t, l.Commit(ctx, w.count("n")), lock.ErrReleased)
			return nil
		}), lock.ErrReleased)
		assert.Equal(t, 1, runs)
		assert.EqualValues(t, 0, w.counted("n"))
	})
}

// One answer whose date is wrong does not have a run recorded that none follows until then, nor an
// interval slept away; and writes that are dated wrong are no business of the intervals.
func TestEveryGoesOnAfterAWrongDate(t *testing.T) {
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

// Nor does a wrong date have a run forgotten that was broken off.
func TestBrokenOffRunIsBegunAgainAfterAWrongDate(t *testing.T) {
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
func TestSlowReadsTellTheIntervals(t *testing.T) {
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

// A job that is due once a day begins a second after midnight at the latest.
func TestEvery_LongIntervalsBeginOnTime(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		const day = 24 * time.Hour
		bounded, cancel := context.WithTimeout(ctx, 6*day)
		defer cancel()
		runs := 0
		require.ErrorIs(t, w.client(quiet).Every(bounded, lock.Name("report"), day, func(ctx context.Context, l *lock.Lease, at time.Time) error {
			if runs++; runs > 1 { // the first one was due before it was asked for
				assert.LessOrEqual(t, time.Since(at), 2*time.Second) // server times are in whole seconds
			}
			return l.Commit(ctx, w.count("n"))
		}), context.DeadlineExceeded)
		assert.GreaterOrEqual(t, runs, 6)
	})
}

// A commit that was never sent has not been applied: Every then believes the release.
func TestEvery_KnowsOfAReleaseAfterAnInvalidCommit(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		runs := 0
		require.ErrorIs(t, w.client(quiet).Every(bounded, lock.Name("report"), time.Minute, func(ctx context.Context, l *lock.Lease, _ time.Time) error {
			if runs++; runs > 3 {
				cancel()
			}
			assert.ErrorIs(t, l.Commit(ctx, table.Update(keys.NewKey("", ""), table.Attr("n").Set(1))), table.ErrInvalid)
			return l.Release(ctx)
		}), lock.ErrReleased)
		assert.Equal(t, 1, runs)
	})
}

// A commit that was applied without an answer is recorded, and a release after it is no other end.
func TestEvery_KnowsOfACommitWithoutAnAnswer(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, quiet)
		bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		err := c.Every(bounded, lock.Name("report"), time.Minute, func(ctx context.Context, l *lock.Lease, _ time.Time) error {
			short, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			way.cut(unanswered)
			assert.Error(t, l.Commit(short, w.count("n")))
			way.cut(open)
			return l.Release(ctx)
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.GreaterOrEqual(t, w.counted("n"), int64(9))
	})
}

// A run of an interval is begun in the row, also where the lock is released by its own process.
func TestEvery_IsNeverPassedTheLock(t *testing.T) {
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

// Every looks for the time within a minute of its machine's resuming: intervals may have passed.
func TestEvery_LooksAfterASuspension(t *testing.T) {
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
func TestEvery_ARunThatIsRecordedAlreadyFreesTheLock(t *testing.T) {
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
