package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

func every(d time.Duration) func() backoff.BackOff {
	return func() backoff.BackOff { return backoff.NewConstantBackOff(d) }
}

// A restored table can show fences that are lower than those seen before. The lock is taken all the same.
func TestWait_RestoredTableWithALowerFence(t *testing.T) {
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

func TestWait_ErrorHasItsCauseAndTheHolder(t *testing.T) {
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

// In a table that was restored, a lock is free or held, under a lower fence. A waiter takes it as it is, once no read can be
// so late.
func TestWait_RestoredTableWithAFreeOrHeldLock(t *testing.T) {
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

// stopping is a backoff that stops after a few looks.
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

// A waiter that comes just when those before it have given up waits no longer than any other.
func TestWait_NewcomerAfterOthersHaveGivenUp(t *testing.T) {
	for range testkit.IfSmall(20, 100) {
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
					assert.NoError(t, l.Release(ctx)) // it had its place already when the holder released
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

// waitForAll lets a client wait for n locks of another client, each in a goroutine, and counts the requests in a while.
func (w *world) waitForAll(ctx context.Context, n int, from, to time.Duration) (looks, questions int) {
	h, c := w.client(lock.Config{}), w.client(lock.Config{})
	for _, target := range names(n) {
		_, err := h.Acquire(ctx, target)
		require.NoError(w, err)
	}
	waiting, cancel := context.WithCancel(ctx) // without a deadline, before which there are more looks
	defer time.AfterFunc(to, cancel).Stop()
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

func TestWait_EndsWithARelease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := a.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.AfterFunc(time.Minute, func() { _ = l.Release(ctx) })
		start := time.Now()
		next, err := b.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Greater(t, next.Fence(), l.Fence())
		assert.InDelta(t, time.Minute.Seconds(), time.Since(start).Seconds(), 2)
	})
}

// Waiters of one process are served in the order in which they came.
func TestWait_IsServedInOrder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		first, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		var mu sync.Mutex
		var order []int
		var wait sync.WaitGroup
		for i := range 40 {
			wait.Go(func() {
				l, err := c.Acquire(ctx, lock.Name("report"))
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				assert.NoError(t, l.Release(ctx))
			})
			time.Sleep(time.Millisecond)
		}
		w.engine.ResetRequests()
		require.NoError(t, first.Release(ctx))
		wait.Wait()
		want := make([]int, 40)
		for i := range want {
			want[i] = i
		}
		assert.Equal(t, want, order)
		t.Logf("40 grants in one process: %d requests", len(w.engine.Requests()))
	})
}

// Nothing is read when nobody waits.
func TestWait_NothingIsPolledWithoutAWaiter(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := a.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		_, err = b.Acquire(bounded, lock.Name("report"))
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var held *lock.HeldError
		require.ErrorAs(t, err, &held)
		require.NoError(t, l.Release(ctx))
		time.Sleep(time.Minute)
		assert.Empty(t, w.requests(func() { time.Sleep(time.Hour) }))
	})
}

// Config.Backoff is asked once per look, also if the waiter has something to do then: here it evicts the dead.
func TestWait_BackoffIsAskedOncePerLook(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		const dead = 10
		for range dead {
			acquireAsync(waiting, w.clientOver(way, lock.Config{}), lock.Name("report"), lock.Fixed(2*time.Second))
		}
		way.cut(refused)
		asked := &counting{BackOff: backoff.NewConstantBackOff(time.Second)}
		start := time.Now()
		l, err := w.client(lock.Config{Backoff: func() backoff.BackOff { return asked }}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Greater(t, time.Since(start), dead*2*time.Second)
		assert.InDelta(t, time.Since(start).Seconds(), float64(asked.times), 2)
		require.NoError(t, l.Release(ctx))
	})
}

// counting counts how often a backoff is asked.
type counting struct {
	backoff.BackOff

	times int
}

func (c *counting) NextBackOff() time.Duration {
	c.times++
	return c.BackOff.NextBackOff()
}

// A waiter that gives up in a short outage leaves the line after it, also if nobody waits who could ask for its place.
func TestWait_LeavesTheLineAfterAShortOutage(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		holder, c := w.client(quiet), w.clientOver(way, quiet)
		l, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		_, err = c.Acquire(ctx, lock.Name("keeps the session"))
		require.NoError(t, err)
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		ended := outcome(short, c, lock.Name("report"))
		time.Sleep(59 * time.Second)
		way.cut(refused)
		require.ErrorIs(t, <-ended, context.DeadlineExceeded)
		time.Sleep(7 * time.Second)
		way.cut(open) // its session goes on
		require.NoError(t, l.Release(ctx))
		time.Sleep(time.Hour)
		_, err = holder.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
	})
}

// A waiter whose credentials expire for a moment leaves the line after that.
func TestWait_LeavesTheLineWhenCredentialsAreValidAgain(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				holder, c := w.client(quiet), w.client(quiet)
				_, err := c.Acquire(ctx, lock.Name("keeps the session"))
				require.NoError(t, err)
				l, err := holder.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				ended := outcome(ctx, c, lock.Name("report"), opts...)
				time.Sleep(3 * time.Second)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.ExpiredCredentials, Key: w.table.KeyItem(l.Key())})
				require.ErrorIs(t, <-ended, table.ErrCredentials)
				time.Sleep(time.Second)
				w.engine.ClearFaults()
				time.Sleep(5 * time.Second)
				require.NoError(t, l.Release(ctx))
				_, err = holder.TryAcquire(ctx, lock.Name("report"))
				require.NoError(t, err)
			})
		})
	}
}

// A goroutine that waits behind another one of its process waits through an outage, also if the other's lease ends in it.
func TestWait_BehindTheOwnProcessOutlastsAnOutage(t *testing.T) {
	for name, how := range outages() {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way := &line{to: w.engine.HTTPClient()}
				c := w.clientOver(way, quiet)
				_, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				const waiters = 3
				ended := make(chan error, waiters)
				for range waiters {
					go func() {
						l, err := c.Acquire(ctx, lock.Name("report"))
						if err == nil {
							err = l.Release(ctx)
						}
						ended <- err
					}()
				}
				time.Sleep(10 * time.Second)
				way.cut(how)
				time.Sleep(2 * time.Minute)
				assert.Empty(t, ended)
				way.cut(open)
				for range waiters {
					assert.NoError(t, <-ended)
				}
			})
		})
	}
}

// Config.Backoff ends a wait also before a full line, and in an outage.
func TestWait_EndsWithTheBackoff(t *testing.T) {
	ends := func(t *testing.T, n uint64, prepare func(ctx context.Context, w *world, c *lock.Client, way *line)) {
		virtual(t, func(ctx context.Context, w *world) {
			config := quiet
			config.Backoff = func() backoff.BackOff { return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), n) }
			way := &line{to: w.engine.HTTPClient()}
			c := w.clientOver(way, config)
			waiting, stop := context.WithCancel(ctx)
			defer stop()
			prepare(waiting, w, c, way)
			short, cancel := context.WithTimeout(ctx, 10*time.Minute)
			defer cancel()
			_, err := c.Acquire(short, names(1)[0])
			require.ErrorIs(t, err, lock.ErrHeld)
			assert.NoError(t, short.Err())
		})
	}
	t.Run("a full line", func(t *testing.T) {
		ends(t, 3, func(ctx context.Context, w *world, _ *lock.Client, _ *line) {
			w.fillLine(ctx, w.client(quiet), w.client(quiet), names(2)...)
		})
	})
	for _, n := range []uint64{0, 3} {
		t.Run(fmt.Sprintf("an outage, after %d looks", n), func(t *testing.T) {
			ends(t, n, func(ctx context.Context, w *world, _ *lock.Client, way *line) {
				require.NoError(w, errOf(w.client(quiet).Acquire(ctx, names(1)[0])))
				time.AfterFunc(5*time.Millisecond, func() { way.cut(refused) })
			})
		})
	}
}

// A goroutine has waited behind another one of its process, and then cannot enter the line. If Config.Backoff stops, the error is that of
// the outage: nothing shows that somebody holds the lock.
func TestWait_ThatAnOutageKeepsFromTheLineEndsWithItsError(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		config := quiet
		config.Backoff = func() backoff.BackOff { return &backoff.StopBackOff{} }
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, config)
		require.NoError(t, errOf(c.Acquire(ctx, lock.Name("report"))))
		way.cut(refused)
		_, err := c.Acquire(ctx, lock.Name("report"))
		require.ErrorIs(t, err, table.ErrUnreachable)
		require.NotErrorIs(t, err, lock.ErrHeld)
	})
}

// A goroutine that waits behind another one of its process makes no looks. So its backoff is not asked.
func TestWait_BehindAGoroutineAsksNoBackoff(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Backoff: func() backoff.BackOff { return &backoff.StopBackOff{} }})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.AfterFunc(time.Hour, func() { assert.NoError(t, l.Release(ctx)) })
		next, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, next.Release(ctx))
	})
}

// The look with which a backoff ends finds the lock free, or its holder.
func TestWait_EndsWithTheLastLookAsTheLockIsReleased(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		config := quiet
		config.Backoff = func() backoff.BackOff { return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 3) }
		time.AfterFunc(2500*time.Millisecond, func() { assert.NoError(t, l.Release(ctx)) })
		if got, err := w.client(config).Acquire(ctx, lock.Name("report")); err == nil {
			require.NoError(t, got.Release(ctx))
		} else {
			var held *lock.HeldError
			require.ErrorAs(t, err, &held)
		}
	})
}

// In a long wait, the next in the line looks every 0.75 s, and every other process every 5 s (REFERENCE.md, Waiting).
func TestWait_LooksDuringALongHold(t *testing.T) {
	for waiters, atMost := range map[int]int{1: 88, 20: 336} {
		t.Run(fmt.Sprint(waiters), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				require.NoError(t, errOf(w.client(quiet).Acquire(ctx, catalogue)))
				for range waiters {
					acquireAsync(ctx, w.client(quiet), catalogue)
				}
				time.Sleep(5 * time.Minute)
				ops := w.requests(func() { time.Sleep(time.Minute) })
				looks := times("BatchGetItem", ops) + times("GetItem", ops)
				testkit.Check(t, fmt.Sprintf("looks of %d waiters, long hold", waiters),
					testkit.AtLeast(looks, "looks per minute", 60+(waiters-1)*12), testkit.AtMost(looks, "looks per minute", atMost))
			})
		})
	}
}
