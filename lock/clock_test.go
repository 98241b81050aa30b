package lock_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// wallClock is a wall clock that can be set.
type wallClock struct {
	mu sync.Mutex
	by time.Duration
}

func (c *wallClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.by)
}

func (c *wallClock) jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by += by
}

func at(by time.Duration) table.Option { return table.WithClock((&wallClock{by: by}).now) }

// The wall clock of a suspended machine jumps when it resumes, while its monotonic clock has stood still.
func TestClock_SuspendedHolderIsToldOnceItResumes(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		c := w.client(lock.Config{}, table.WithClock(wall.now))
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, context.Cause(l.Context()))
		// An outage, so that no renewal finds out.
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest})
		wall.jump(time.Minute)
		resumed := time.Now()
		assert.Zero(t, l.Remaining())
		<-l.Context().Done()
		assert.LessOrEqual(t, time.Since(resumed), time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
		require.ErrorIs(t, l.Renew(ctx), lock.ErrExpired, "what has ended stays ended")
		w.engine.ClearFaults()
	})
}

func TestClock_SetBackDoesNotProlongALease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		c := w.client(lock.Config{}, table.WithClock(wall.now))
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		wall.jump(-time.Hour)
		start := time.Now()
		<-l.Context().Done()
		assert.LessOrEqual(t, time.Since(start), 20*time.Second)
	})
}

// A holder is told of the end of its lease also if requests never get an answer.
func TestClock_HungRequestsDoNotDelayTheEnd(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 1000 * time.Hour})
		start := time.Now()
		<-l.Context().Done()
		assert.LessOrEqual(t, time.Since(start), 20*time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
		require.ErrorIs(t, context.Cause(l.Context()), context.DeadlineExceeded, "the last renewal's error")
		assert.NotContains(t, context.Cause(l.Context()).Error(), "\n")
		w.engine.ClearFaults()
		require.NoError(t, l.Release(ctx), "nobody has taken it")
	})
}

// A client that has had no answer of DynamoDB yet knows nothing of its own clock: it neither writes nor uses recorded ends.
func TestClock_OfANewClientIsNotTrusted(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		holder := w.client(lock.Config{})
		_, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		// An hour fast: by its clock the lease is long over.
		fast := w.cold(lock.Config{}, at(time.Hour))
		_, err = fast.TryAcquire(ctx, lock.Name("report"))
		require.ErrorIs(t, err, lock.ErrHeld)

		free, err := holder.Acquire(ctx, lock.Name("other"))
		require.NoError(t, err)
		require.NoError(t, free.Release(ctx))
		cold := w.cold(lock.Config{HomeRegion: w.table.Region()}) // does not ask for replicas first
		l, err := cold.Acquire(ctx, lock.Name("other"), lock.Fixed(time.Minute))
		require.NoError(t, err)
		r, err := cold.Inspect(ctx, lock.Name("other"))
		require.NoError(t, err)
		assert.Equal(t, time.Now().Add(time.Minute).UTC(), r.Until(), "known by the answer")
		require.NoError(t, l.Release(ctx))
		off := w.cold(lock.Config{HomeRegion: w.table.Region(), Logger: quiet.Logger}, at(-time.Hour))
		_, err = off.Acquire(ctx, lock.Name("other"), lock.Fixed(time.Minute))
		require.NoError(t, err)
		r, err = cold.Inspect(ctx, lock.Name("other"))
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now().Add(time.Minute), r.Until(), 1100*time.Millisecond, "by DynamoDB's time, which has whole seconds")
		assert.False(t, r.Until().Before(time.Now().Add(time.Minute)), "not earlier than its holder believes")
	})
}

// Three requests, of which one asks whether the table has replicas.
func TestClock_NewClientTakesOverWithThreeRequests(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
		require.NoError(t, err)
		time.Sleep(time.Hour)
		for _, try := range []func(*lock.Client) (*lock.Lease, error){
			func(c *lock.Client) (*lock.Lease, error) {
				return c.TryAcquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
			},
			func(c *lock.Client) (*lock.Lease, error) {
				return c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
			},
		} {
			c := w.cold(lock.Config{})
			start := time.Now()
			ops := w.requests(func() { _, err = try(c) })
			require.NoError(t, err)
			assert.Len(t, ops, 3)
			assert.Zero(t, time.Since(start))
			l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.NoError(t, l.Release(ctx))
			_, err = w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
			require.NoError(t, err)
			time.Sleep(time.Hour)
		}
	})
}

// A client whose clock is off by more than Skew neither uses nor records ends, and logs that once. A Fixed lease then counts
// from DynamoDB's time.
func TestClock_ThatIsOffIsNotUsed(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, -10 * time.Second, 10 * time.Second, time.Hour} {
		virtual(t, func(ctx context.Context, w *world) {
			var log bytes.Buffer
			_, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
			require.NoError(t, err)
			start := time.Now()
			c := w.client(lock.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, at(by))
			l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(2*time.Hour))
			require.NoError(t, err)
			// By observation, which does not compare clocks.
			assert.GreaterOrEqual(t, time.Since(start), 20*time.Second, "clock off by %v", by)
			assert.LessOrEqual(t, time.Since(start), 22*time.Second, "clock off by %v", by)
			require.NoError(t, l.Renew(ctx))
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			assert.WithinDuration(t, time.Now().Add(2*time.Hour), r.Until(), 1100*time.Millisecond, "clock off by %v", by)
			assert.False(t, r.Until().Before(time.Now().Add(2*time.Hour)), "clock off by %v", by)
			_, err = w.client(lock.Config{}).Acquire(ctx, lock.Name("other"), lock.Fixed(20*time.Second))
			require.NoError(t, err)
			time.Sleep(time.Hour)
			require.NoError(t, context.Cause(l.Context()))
			_, err = c.TryAcquire(ctx, lock.Name("other"))
			require.ErrorIs(t, err, lock.ErrHeld, "a recorded end that lies back far enough, clock off by %v", by)
			item, err := w.table.Get(ctx, sessionKey(c), true)
			require.NoError(t, err)
			assert.NotContains(t, item, "expires")
			assert.Equal(t, 1, strings.Count(log.String(), "the clock is off"))
		})
	}
}

// A clock that is set while the client runs is not trusted until DynamoDB answers again.
func TestClock_SetForwardTakesNoLiveLock(t *testing.T) {
	for _, by := range []time.Duration{3 * time.Second, time.Minute, time.Hour} {
		virtual(t, func(ctx context.Context, w *world) {
			wall := &wallClock{}
			c := w.client(lock.Config{}, table.WithClock(wall.now))
			_, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			time.Sleep(3 * time.Second)
			wall.jump(by)
			for range 10 {
				_, err = c.TryAcquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrHeld, "clock set forward by %v", by)
			}
		})
	}
}

// The end of a lease is not recorded by a clock that was set: DynamoDB tells the time.
func TestClock_ThatWasSetIsNotRecorded(t *testing.T) {
	for _, by := range []time.Duration{20 * time.Minute, -20 * time.Minute} {
		virtual(t, func(ctx context.Context, w *world) {
			wall := &wallClock{}
			c := w.client(lock.Config{}, table.WithClock(wall.now))
			wall.jump(by)
			_, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Minute))
			require.NoError(t, err)
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			assert.WithinDuration(t, time.Now().Add(time.Minute), r.Until(), 1100*time.Millisecond, "set by %v", by)
			assert.False(t, r.Until().Before(time.Now().Add(time.Minute)), "set by %v", by)
		})
	}
}

// An answer that is under way for long has an old time in it.
func TestClock_SlowAnswersDoNotMakeItOff(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var log bytes.Buffer
		c := w.client(lock.Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 2900 * time.Millisecond})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Renew(ctx))
		require.NoError(t, l.Release(ctx))
		assert.Empty(t, log.String())
	})
}

// A machine that was suspended for less than was left of the lease renews it when it resumes.
func TestClock_ShortSuspensionLosesNothing(t *testing.T) {
	for _, lease := range []time.Duration{20 * time.Second, time.Minute, time.Hour} {
		for part := 60; part <= 90; part += 5 {
			virtual(t, func(ctx context.Context, w *world) {
				wall := &wallClock{}
				config := quiet
				config.Lease = lease
				c := w.client(config, table.WithClock(wall.now))
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				time.Sleep(lease / 100)
				wall.jump(lease * time.Duration(part) / 100)
				left := l.Remaining()
				require.Positive(t, left)
				time.Sleep(lease)
				assert.NoError(t, context.Cause(l.Context()), "of a lease of %v, %v were left", lease, left)
			})
		}
	}
}
