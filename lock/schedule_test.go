package lock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// job is what Every runs.
type job = func(context.Context, *lock.Lease, time.Time) error

// running is a clock that is off, and that runs fast or slow.
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

// Intervals are counted by DynamoDB's time: an instance whose own clock is off runs the same ones.
func TestEvery_CountsIntervalsByDynamoDBsTime(t *testing.T) {
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

// A job returns an error because its lock was revoked. That is an interruption: the interval has not failed, and is run again.
func TestEvery_ARevokedRunIsInterrupted(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		var runs []time.Time
		require.ErrorIs(t, c.Every(bounded, lock.Name("report"), time.Minute, func(inside context.Context, l *lock.Lease, at time.Time) error {
			if runs = append(runs, at); len(runs) > 1 {
				cancel()
				return nil
			}
			assert.NoError(t, c.Revoke(ctx, l.Target()))
			<-inside.Done()
			return context.Cause(inside)
		}, lock.OnFailed(func(time.Time, error) { t.Error("the run counts as failed") })), context.Canceled)
		assert.Equal(t, []time.Time{runs[0], runs[0]}, runs)
	})
}

// Somebody else holds the lock for several intervals. The instance that waits does not leave out the interval in which it began to wait.
func TestEvery_RunsTheIntervalInWhichItBeganToWait(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		bounded, cancel := context.WithCancel(ctx)
		defer cancel()
		time.AfterFunc(5*time.Minute, func() { assert.NoError(t, l.Release(ctx)) })
		began := time.Now().UTC().Truncate(time.Minute)
		var runs []time.Time
		require.ErrorIs(t, c.Every(bounded, lock.Name("report"), time.Minute, func(_ context.Context, _ *lock.Lease, at time.Time) error {
			if runs = append(runs, at); len(runs) > 1 {
				cancel()
			}
			return nil
		}), context.Canceled)
		assert.Equal(t, []time.Time{began, began.Add(5 * time.Minute)}, runs)
	})
}

// once runs the job of the day, on an instance that ends as soon as that has returned. Tests in real time hardly ever meet the end of a day.
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
	err = p.client.Every(ctx, target, day, func(inside context.Context, l *lock.Lease, start time.Time) error {
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

func TestEvery_RecordsHowARunEnded(t *testing.T) {
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

		// With RetryFailed: nothing is recorded.
		target = lock.Name("repeated")
		repeat := lock.RetryFailed(func() backoff.BackOff { return backoff.NewConstantBackOff(day) })
		key := keys.NewKey("ROW", "ROW")
		_, err = p.once(target, func(ctx context.Context, l *lock.Lease, _ time.Time) error {
			r, err := p.client.Inspect(ctx, target)
			assert.NoError(p, err)
			assert.Equal(p, r.Running, r.Since().Truncate(day).UnixMilli(), "unless the day has just ended")
			return errors.Join(broken, l.Write(ctx, table.Put(p.table.KeyItem(key))))
		}, repeat)
		require.ErrorIs(p, err, broken)
		r = row(target)
		assert.Zero(p, r.Ran, "the interval stays open")
		assert.Zero(p, r.Failed)
		assert.Zero(p, r.Running)

		at, err = p.once(target, nil, repeat)
		require.ErrorIs(p, err, context.Canceled)
		assert.Equal(p, at, at.Truncate(day))
		assert.Equal(p, time.UTC, at.Location())
		r = row(target)
		assert.Equal(p, at, r.LastRun())
		assert.True(p, r.LastFailed().IsZero())
		assert.Zero(p, r.Running)

		// Done, or failed: another instance only reads, and so does one with other intervals in it.
		for _, target := range []lock.Target{target, lock.Name("failing")} {
			other := p.open(quiet)
			ctx, usage := table.WithUsage(ctx)
			waits, cancel := context.WithCancel(ctx)
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				ended <- other.Every(waits, target, day, func(context.Context, *lock.Lease, time.Time) error {
					p.Error("ran twice")
					return nil
				})
			}()
			require.Eventually(p, func() bool { return usage.Totals().ReadUnits > 0 }, 10*time.Second, time.Millisecond)
			time.Sleep(100 * time.Millisecond) // for a request or a run too many
			cancel()
			require.ErrorIs(p, <-ended, context.Canceled)
			cost := usage.Totals()
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

func TestEvery_RefusesBadArguments(t *testing.T) {
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

func TestEvery_RefusesAMalformedRow(t *testing.T) {
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

// An instance that waited for a run, or that read the row before the run finished, finds out without acquiring.
func TestEvery_FinishedIntervalIsNotAcquiredAgain(t *testing.T) {
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

// A job that is due once a day begins no later than a second after midnight.
func TestEvery_LongIntervalsBeginOnTime(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
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

// slow is a machine whose monotonic clock loses 17 s a day, as a clock that nothing corrects can.
type slow struct {
	machine.Real

	since time.Time
}

func (s slow) Now() time.Time { return time.Now().Add(-time.Since(s.since) / 5000) }

func TestEvery_LongIntervalsBeginOnTimeByASlowClock(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		tbl, err := table.Open(onMachine{w.sdk(w.engine.HTTPClient()), slow{since: time.Now()}}, table.Schema{Name: "app"})
		require.NoError(t, err)
		c, err := lock.New(tbl, quiet)
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close(ctx)) }()
		bounded, cancel := context.WithTimeout(ctx, 4*day)
		defer cancel()
		runs := 0
		ops := w.requests(func() {
			require.ErrorIs(t, c.Every(bounded, lock.Name("report"), day, func(_ context.Context, _ *lock.Lease, at time.Time) error {
				if runs++; runs > 1 { // the first one was due before it was asked for
					assert.LessOrEqual(t, time.Since(at), 4*time.Second)
				}
				return nil
			}), context.DeadlineExceeded)
		})
		assert.GreaterOrEqual(t, runs, 4)
		assert.LessOrEqual(t, times("GetItem", ops), 4*12+runs, "one per two hours, and one per interval")
	})
}

// The run of an interval is recorded as begun, also where the lock is released by the same process.
func TestEvery_NeverGetsTheLockByAPass(t *testing.T) {
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

// Every looks at the time within a minute of its machine's resuming: intervals may have passed. The machine can be suspended between any
// two readings of its clock.
func TestEvery_LooksAfterASuspension(t *testing.T) {
	for after := range 3 { // the readings of the wall clock within a minute
		virtual(t, func(ctx context.Context, w *world) {
			wall := &wallClock{}
			var readings atomic.Int64
			c := w.coldClient(quiet, table.WithClock(func() time.Time {
				defer func() {
					if readings.Add(-1) == 0 {
						wall.jump(30 * time.Minute)
					}
				}()
				return wall.now()
			}))
			bounded, cancel := context.WithTimeout(ctx, 3*time.Hour)
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				ended <- c.Every(bounded, lock.Name("report"), 2*time.Hour, func(context.Context, *lock.Lease, time.Time) error { return nil })
			}()
			time.Sleep(10*time.Minute + time.Second)
			require.Empty(t, w.requests(func() { time.Sleep(10 * time.Minute) }))
			if readings.Store(int64(after)); after == 0 {
				wall.jump(30 * time.Minute)
			}
			assert.NotEmpty(t, w.requests(func() { time.Sleep(3 * time.Minute) }))
			require.ErrorIs(t, <-ended, context.DeadlineExceeded)
		})
	}
}

// An interval costs one read, also where it does not begin with a whole second.
func TestEvery_CostsOneReadPerInterval(t *testing.T) {
	for name, tc := range map[string]struct{ interval, at time.Duration }{
		"a whole second":            {10 * time.Second, 0},
		"half a second":             {10 * time.Second, 500 * time.Millisecond},
		"almost a second":           {10 * time.Second, 900 * time.Millisecond},
		"two and a half in between": {2500 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(quiet)
				bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
				defer cancel()
				ran := 0
				ops := w.requests(func() {
					err := c.Every(bounded, lock.Name("report"), tc.interval, func(context.Context, *lock.Lease, time.Time) error {
						ran++
						return nil
					}, lock.At(tc.at, nil))
					require.ErrorIs(t, err, context.DeadlineExceeded)
				})
				assert.LessOrEqual(t, times("GetItem", ops), ran+2)
			})
		})
	}
}

// A run takes most of the interval, and many instances wait for its end. They leave the line in time for the next interval.
func TestEvery_ManyInstancesDoNotDelayTheNextInterval(t *testing.T) {
	const interval, takes = 5 * time.Second, 4200 * time.Millisecond
	during := time.Duration(testkit.IfSmall(60, 300)) * time.Second
	virtual(t, func(ctx context.Context, w *world) {
		w.latency(2 * time.Millisecond)
		bounded, cancel := context.WithTimeout(ctx, during)
		defer cancel()
		var all sync.WaitGroup
		var mu sync.Mutex
		var late []time.Duration
		for _, c := range w.clients(20) {
			all.Go(func() {
				assert.ErrorIs(t, c.Every(bounded, lock.Name("report"), interval, func(ctx context.Context, _ *lock.Lease, at time.Time) error {
					mu.Lock()
					late = append(late, time.Since(at))
					mu.Unlock()
					select {
					case <-ctx.Done():
					case <-time.After(takes):
					}
					return ctx.Err()
				}), context.DeadlineExceeded)
			})
		}
		all.Wait()
		t.Logf("%d runs in %v, the latest of them %v after the start of its interval", len(late), during, slices.Max(late))
		assert.GreaterOrEqual(t, len(late), int(during/interval)*9/10)
		assert.Less(t, slices.Max(late), 2*interval)
	})
}

// A run takes far longer than usual. The instances that wait for it look less and less often.
func TestEvery_LooksBecomeFewerInALongRun(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.latency(2 * time.Millisecond)
		bounded, cancel := context.WithTimeout(ctx, 100*time.Second)
		defer cancel()
		var all sync.WaitGroup
		began := time.Now()
		clients := w.clients(2)
		ops := w.requests(func() {
			for _, c := range clients {
				all.Go(func() {
					assert.ErrorIs(t, c.Every(bounded, lock.Name("report"), 2*time.Second, func(ctx context.Context, _ *lock.Lease, _ time.Time) error {
						d := 5 * time.Millisecond
						if time.Since(began) > 20*time.Second {
							d = time.Hour
						}
						select {
						case <-ctx.Done():
						case <-time.After(d):
						}
						return ctx.Err()
					}), context.DeadlineExceeded)
				})
			}
			all.Wait()
		})
		assert.Less(t, times("BatchGetItem", ops), 250, "looks in 80 s")
	})
}

// A run that turns out to be settled gives the lock to the next goroutine of its process, as any other holder does.
func TestEvery_ASettledRunPassesTheLockOn(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		bounded, stop := context.WithTimeout(ctx, 50*time.Second)
		defer stop()
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				assert.ErrorIs(t, c.Every(bounded, lock.Name("job"), time.Hour, func(context.Context, *lock.Lease, time.Time) error {
					time.Sleep(10 * time.Second)
					return nil
				}), context.DeadlineExceeded)
			})
			time.Sleep(time.Second)
		}
		var mu sync.Mutex
		var order []string
		hold := func(c *lock.Client, who string) {
			all.Go(func() {
				assert.NoError(t, c.Do(ctx, lock.Name("job"), func(context.Context, *lock.Lease) error {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, who)
					return nil
				}))
			})
			time.Sleep(time.Second)
		}
		hold(c, "a goroutine of the process")
		hold(other, "another process")
		all.Wait()
		assert.Equal(t, []string{"a goroutine of the process", "another process"}, order)
	})
}
