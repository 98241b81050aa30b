package lock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"
	_ "time/tzdata" // so that all machines know the same locations

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

var errJob = errors.New("broken")

// diary records the runs of all instances.
type diary struct {
	mu     sync.Mutex
	starts []time.Time
	failed []time.Time
}

func (j *diary) began(at time.Time) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.starts = append(j.starts, at)
	return len(j.starts)
}

func (j *diary) onFailed(at time.Time, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !errors.Is(err, errJob) {
		panic(err)
	}
	j.failed = append(j.failed, at)
}

// every runs a job for some time, on some instances whose clocks are off by hours.
func (w *world) every(ctx context.Context, instances int, during, interval time.Duration, f job, opts ...lock.Option) {
	w.Helper()
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	var all sync.WaitGroup
	for i := range instances {
		c := w.coldClientOver(&line{to: w.engine.HTTPClient()}, quiet, running(time.Duration(i-1)*3*time.Hour, 1))
		all.Go(func() {
			assert.ErrorIs(w, c.Every(ctx, lock.Name("job"), interval, f, opts...), context.DeadlineExceeded, "nothing but ctx ends it")
		})
	}
	all.Wait()
}

func TestEvery_FailedRunDoesNotEndIt(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var j diary
		begin := time.Now()
		w.every(ctx, 1, 5*time.Minute-time.Second, time.Minute, func(_ context.Context, _ *lock.Lease, at time.Time) error {
			if n := j.began(at); n == 2 || n == 3 {
				return fmt.Errorf("run %d: %w", n, errJob)
			}
			return nil
		}, lock.OnFailed(j.onFailed))
		minute := func(n int) time.Time { return begin.UTC().Add(time.Duration(n) * time.Minute) }
		assert.Equal(t, []time.Time{minute(0), minute(1), minute(2), minute(3), minute(4)}, j.starts)
		assert.Equal(t, []time.Time{minute(1), minute(2)}, j.failed)
		r, err := w.client(quiet).Inspect(ctx, lock.Name("job"))
		require.NoError(t, err)
		assert.Equal(t, minute(4), r.LastRun())
		assert.Equal(t, minute(2), r.LastFailed())
	})
}

// An interval that has failed is settled, also for those that wait for the lock or come later.
func TestEvery_FailedIntervalIsRunByNobodyElse(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var j diary
		w.every(ctx, 4, time.Hour-time.Second, time.Minute, func(_ context.Context, _ *lock.Lease, at time.Time) error {
			n := j.began(at)
			time.Sleep(3 * time.Second) // the others wait meanwhile
			if n%2 == 0 {
				return errJob
			}
			return nil
		}, lock.OnFailed(j.onFailed))
		assert.Len(t, j.starts, 60)
		assert.Len(t, slices.Compact(slices.Clone(j.starts)), 60, "each once")
		assert.Len(t, j.failed, 30)
	})
}

// A failure is logged unless OnFailed is set.
func TestOnFailed_ReplacesTheLogRecord(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var text bytes.Buffer
		c := w.client(lock.Config{Logger: slog.New(slog.NewTextHandler(&text, nil))})
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		fails := func(context.Context, *lock.Lease, time.Time) error { return errJob }
		require.ErrorIs(t, c.Every(ctx, lock.Name("secret"), time.Hour, fails), context.DeadlineExceeded)
		assert.Contains(t, text.String(), `level=WARN msg="lock: a run of Every has failed" error=broken`)
		assert.NotContains(t, text.String(), "secret")

		text.Reset()
		ctx, cancel = context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		told := 0
		require.ErrorIs(t, c.Every(ctx, lock.Name("other"), time.Hour, fails, lock.OnFailed(func(time.Time, error) { told++ })), context.DeadlineExceeded)
		assert.Equal(t, 1, told)
		assert.Empty(t, text.String())
	})
}

// If Every ends during a run, it returns that run's error.
func TestEvery_ReturnsTheErrorOfTheLastRun(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		err := c.Every(bounded, lock.Name("job"), time.Hour, func(ctx context.Context, _ *lock.Lease, _ time.Time) error {
			<-ctx.Done()
			return errJob
		}, lock.OnFailed(func(time.Time, error) { t.Error("it does not go on") }))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errJob)
		r, err := c.Inspect(ctx, lock.Name("job"))
		require.NoError(t, err)
		assert.False(t, r.Held())
		assert.Zero(t, r.Ran, "it was broken off")
		assert.Zero(t, r.Failed)
	})
}

// In an outage the release of a failed run is repeated for as long as the lease lasts. OnFailed is called after that.
func TestOnFailed_IsCalledAfterTheRelease(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				way := &line{to: w.engine.HTTPClient()}
				c, told := w.clientOver(way, quiet), 0
				target := lock.Name("job")
				require.ErrorIs(t, c.Every(ctx, target, time.Hour, func(context.Context, *lock.Lease, time.Time) error {
					way.cut(refused)
					time.AfterFunc(12*time.Second, func() { way.cut(open) })
					return errors.New("failed")
				}, append(opts, lock.OnFailed(func(at time.Time, _ error) {
					told++
					r, err := w.client(lock.Config{}).Inspect(ctx, target)
					require.NoError(t, err)
					assert.False(t, r.Held())
					assert.Equal(t, at, r.LastFailed())
				}))...), context.DeadlineExceeded)
				assert.Equal(t, 1, told)
			})
		})
	}
}

func TestOnFailed_PanicLeavesNoLockHeld(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		assert.PanicsWithValue(t, "on failed", func() {
			_ = c.Every(ctx, lock.Name("job"), time.Hour, func(context.Context, *lock.Lease, time.Time) error { return errJob },
				lock.OnFailed(func(time.Time, error) { panic("on failed") }))
		})
		l, err := c.TryAcquire(ctx, lock.Name("job"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
	})
}

func TestRetryFailed_RepeatsWhileTheIntervalLasts(t *testing.T) {
	constantly := func(d time.Duration, most uint64) lock.Option {
		return lock.RetryFailed(func() backoff.BackOff { return backoff.WithMaxRetries(backoff.NewConstantBackOff(d), most) })
	}
	for name, c := range map[string]struct {
		instances int
		retries   lock.Option
		succeeds  int // the n-th run of an interval
		runs      int // of the first interval
		ran       bool
		failed    bool // is recorded
	}{
		"once":                        {1, constantly(time.Minute, 9), 2, 2, true, false},
		"until its backoff stops":     {1, constantly(time.Minute, 3), 0, 4, true, true},
		"until the next begins":       {1, constantly(25*time.Minute, 9), 0, 3, false, false},
		"by others, at once":          {3, constantly(40*time.Minute, 9), 3, 3, true, false},
		"never":                       {3, lock.RetryFailed(func() backoff.BackOff { return &backoff.StopBackOff{} }), 2, 1, true, true},
		"never, by none":              {1, lock.RetryFailed(func() backoff.BackOff { return nil }), 2, 1, true, true},
		"by others, until one has it": {2, constantly(10*time.Minute, 9), 5, 5, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				var j diary
				begin := time.Now().UTC()
				w.every(ctx, c.instances, time.Hour-time.Second, time.Hour, func(_ context.Context, _ *lock.Lease, at time.Time) error {
					n := j.began(at)
					time.Sleep(5 * time.Second)
					if n == c.succeeds {
						return nil
					}
					return errJob
				}, lock.OnFailed(j.onFailed), c.retries)
				assert.Len(t, j.starts, c.runs)
				assert.Equal(t, []time.Time{begin}, slices.Compact(slices.Clone(j.starts)), "all of one interval")
				r, err := w.client(quiet).Inspect(ctx, lock.Name("job"))
				require.NoError(t, err)
				assert.False(t, r.Held())
				assert.Equal(t, c.ran, r.LastRun().Equal(begin))
				assert.Equal(t, c.failed, r.LastFailed().Equal(begin))
				assert.Zero(t, r.Running)
			})
		})
	}
}

// Each interval has its own backoff, and the next one is run in its time, however the last one ended.
func TestRetryFailed_BeginsAgainWithEachInterval(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var j diary
		w.every(ctx, 2, 3*time.Hour-time.Second, time.Hour, func(_ context.Context, _ *lock.Lease, at time.Time) error {
			j.began(at)
			return errJob
		}, lock.OnFailed(j.onFailed), lock.RetryFailed(func() backoff.BackOff {
			return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Minute), 1)
		}))
		per := map[time.Time]int{}
		for _, at := range j.starts {
			per[at]++
		}
		assert.Len(t, per, 3)
		for at, n := range per {
			assert.GreaterOrEqual(t, n, 2, "%v", at)
			assert.LessOrEqual(t, n, 3, "%v: what one instance gives up, none repeats", at)
		}
	})
}

// An error that another attempt cannot mend ends Every: here a row that is not in order.
func TestEvery_EndsWithAnErrorThatLasts(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		time.AfterFunc(90*time.Second, func() {
			key := keys.NewKey("LOCK#job", "LOCK#job")
			assert.NoError(t, w.table.Write(ctx, table.Update(key, table.Attr("fence").Set("none"))))
		})
		var j diary
		err := c.Every(ctx, lock.Name("job"), time.Minute, func(_ context.Context, _ *lock.Lease, at time.Time) error {
			j.began(at)
			return errJob
		}, lock.OnFailed(j.onFailed))
		require.ErrorIs(t, err, lock.ErrMalformed)
		assert.NotErrorIs(t, err, errJob)
		assert.Len(t, j.starts, 2)
	})
}

func TestEvery_ItsOptionsAreRefusedElsewhere(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		ops := w.requests(func() {
			for name, opt := range map[string]lock.Option{
				"At":          lock.At(time.Second, nil),
				"OnFailed":    lock.OnFailed(func(time.Time, error) {}),
				"RetryFailed": lock.RetryFailed(func() backoff.BackOff { return &backoff.StopBackOff{} }),
			} {
				two := []lock.Target{lock.Name("a"), lock.Name("b")}
				for call, f := range map[string]func() error{
					"Acquire":       func() error { _, err := c.Acquire(ctx, lock.Name("a"), opt); return err },
					"TryAcquire":    func() error { _, err := c.TryAcquire(ctx, lock.Name("a"), opt); return err },
					"AcquireAll":    func() error { _, err := c.AcquireAll(ctx, two, opt); return err },
					"TryAcquireAll": func() error { _, err := c.TryAcquireAll(ctx, two[:1], opt); return err },
					"Lead": func() error {
						return c.Lead(ctx, lock.Name("a"), func(context.Context, *lock.Lease) error { return nil }, opt)
					},
				} {
					err := f()
					require.ErrorIs(t, err, lock.ErrInvalid, call)
					assert.ErrorContains(t, err, name+": an option of Every", call)
				}
			}
		})
		assert.Empty(t, ops, "nothing was sent")
	})
}

// A panic in the function of RetryFailed, or in its backoff, leaves no lock held.
func TestRetryFailed_PanicLeavesNoLockHeld(t *testing.T) {
	for name, retries := range map[string]func() backoff.BackOff{
		"function": func() backoff.BackOff { panic("of the function") },
		"backoff":  func() backoff.BackOff { return panicking{} },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.client(quiet), w.client(quiet)
				assert.PanicsWithValue(t, "of the "+name, func() {
					_ = c.Every(ctx, lock.Name("job"), time.Hour, func(context.Context, *lock.Lease, time.Time) error { return errJob },
						lock.RetryFailed(retries))
				})
				l, err := other.TryAcquire(ctx, lock.Name("job"))
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// A wait for the next attempt ends with the interval: the next one is run in its time.
func TestRetryFailed_WaitsNoLongerThanTheIntervalLasts(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var j diary
		w.every(ctx, 1, 10*time.Minute-time.Second, time.Minute, func(_ context.Context, _ *lock.Lease, at time.Time) error {
			if j.began(at) == 1 {
				return errJob
			}
			return nil
		}, lock.OnFailed(j.onFailed), lock.RetryFailed(every(5*time.Minute)))
		assert.Len(t, j.starts, 10, "each interval once")
	})
}

// An interval fails on all instances, and lasts longer than it should. The next one is run in its time all the same.
func TestRetryFailed_LeavesNoOtherIntervalOut(t *testing.T) {
	const takes = 40 * time.Second
	virtual(t, func(ctx context.Context, w *world) {
		var j diary
		begin := time.Now().UTC()
		var last time.Duration // run of the first interval
		w.every(ctx, 10, 3*time.Minute-time.Second, time.Minute, func(_ context.Context, _ *lock.Lease, at time.Time) error {
			j.began(at)
			if at.Equal(begin) {
				last = time.Since(begin)
				time.Sleep(takes)
				return errJob
			}
			time.Sleep(time.Second)
			return nil
		}, lock.OnFailed(j.onFailed), lock.RetryFailed(every(time.Second)))
		assert.Equal(t, []time.Time{begin, begin.Add(time.Minute), begin.Add(2 * time.Minute)}, slices.Compact(slices.Clone(j.starts)))
		assert.Less(t, last, time.Minute+takes)
	})
}
