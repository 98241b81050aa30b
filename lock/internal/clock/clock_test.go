package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestServer_IsKnownFromAnswers(t *testing.T) {
	virtual(t, func(w *world) {
		_, _, ok := w.clock.Server()
		assert.False(t, ok, "before the first answer")
		time.Sleep(700 * time.Millisecond)
		w.ask()
		time.Sleep(3 * time.Second)
		earliest, latest, ok := w.clock.Server()
		require.True(t, ok)
		now := time.Now()
		assert.False(t, now.Before(earliest), "%v is before %v", now, earliest)
		assert.False(t, now.After(latest), "%v is after %v", now, latest)
		assert.LessOrEqual(t, latest.Sub(earliest), 1100*time.Millisecond)

		w.set(time.Minute)
		_, _, ok = w.clock.Server()
		assert.False(t, ok, "a clock was set, or the machine was suspended")
		w.ask()
		_, _, ok = w.clock.Server()
		assert.True(t, ok, "until the next answer")
	})
}

// However a clock is set, by up to a second between two answers, DynamoDB's time lies within what is known of it.
func TestServer_IsKnownAlsoWhenAClockWasSetByLessThanASecond(t *testing.T) {
	for _, step := range []time.Duration{-900 * time.Millisecond, 0, 900 * time.Millisecond} {
		virtual(t, func(w *world) {
			w.ask()
			time.Sleep(time.Minute)
			w.set(step)
			earliest, latest, ok := w.clock.Server()
			require.True(t, ok)
			assert.False(t, time.Now().Before(earliest), "%v", step)
			assert.False(t, time.Now().After(latest), "%v", step)
		})
	}
}

// Who waits for an end asks DynamoDB no earlier than it can tell: in whole seconds.
func TestUntilPast_IsTheNextWholeSecond(t *testing.T) {
	virtual(t, func(w *world) {
		_, ok := w.clock.UntilPast(time.Now().UnixMilli())
		assert.False(t, ok, "before the first answer")
		time.Sleep(700 * time.Millisecond)
		w.ask()
		start := time.Now().Truncate(time.Second)
		for end, want := range map[time.Duration]time.Duration{
			-time.Second: 0, 0: 0, time.Millisecond: time.Second, 1300 * time.Millisecond: 2 * time.Second, 2 * time.Second: 2 * time.Second,
		} {
			d, ok := w.clock.UntilPast(start.Add(end).UnixMilli() - 1)
			require.True(t, ok)
			assert.Equal(t, want, d, "%v", end)
		}
		end := start.Add(1300*time.Millisecond).UnixMilli() - 1
		past, ok := w.clock.Past()
		require.True(t, ok)
		assert.Less(t, past, end)
		d, _ := w.clock.UntilPast(end)
		time.Sleep(d)
		d, _ = w.clock.UntilPast(end)
		assert.Zero(t, d)
		past, _ = w.clock.Past()
		assert.GreaterOrEqual(t, past, end)

		w.clock.Skew = 2 * time.Second
		d, _ = w.clock.UntilPast(end)
		assert.Equal(t, 2*time.Second, d, "it has to lie back by more than the skew")
		w.clock.ObservedOnly = true
		_, ok = w.clock.UntilPast(end)
		assert.False(t, ok)
		_, ok = w.clock.Past()
		assert.False(t, ok)
	})
}

// What was told goes on also when a clock was set.
func TestTold_IsCarriedOnByTheMonotonicClock(t *testing.T) {
	virtual(t, func(w *world) {
		_, ok := w.clock.Told()
		assert.False(t, ok, "before the first answer")
		w.ask()
		w.set(time.Hour)
		time.Sleep(time.Minute)
		now, ok := w.clock.Told()
		require.True(t, ok)
		assert.WithinDuration(t, time.Now(), now, time.Second)
	})
}

// A wrong local clock, or a wrong date, makes a client wait longer: it never makes it judge others
// earlier, or promise less than it keeps.
func TestBounds_GoByTheClockThatHarmsNobody(t *testing.T) {
	tests := []struct {
		name            string
		local, date     time.Duration
		earliest, later time.Duration // of the truth, at most this far off
	}{
		{"both right", 0, 0, 0, 0},
		{"local clock ahead", time.Hour, 0, 0, time.Hour},
		{"local clock behind", -time.Hour, 0, -time.Hour, 0},
		{"date ahead", 0, time.Hour, 0, time.Hour},
		{"date behind", 0, -time.Hour, -time.Hour, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			virtual(t, func(w *world) {
				w.clock.Skew = 2 * time.Hour
				w.set(tt.local)
				if tt.date != 0 {
					w.engine.Inject(tabletest.Fault{Kind: tabletest.SkewDate, For: tt.date})
				}
				_, _, ok := w.clock.Bounds()
				require.False(t, ok)
				w.ask()
				earliest, latest, ok := w.clock.Bounds()
				require.True(t, ok)
				now := time.Now()
				assert.InDelta(t, tt.earliest.Seconds(), earliest.Sub(now).Seconds(), 1.1)
				assert.InDelta(t, tt.later.Seconds(), latest.Sub(now).Seconds(), 1.1)
				assert.False(t, earliest.After(now))
				assert.False(t, latest.Before(now))
				w.clock.Skew = time.Minute
				_, _, ok = w.clock.Bounds()
				assert.Equal(t, tt.local == 0 && tt.date == 0, ok, "a clock that is off by more takes no part")
			})
		})
	}
}

func TestStamp_IsNeverTooEarlyOnceAnAnswerCame(t *testing.T) {
	virtual(t, func(w *world) {
		w.set(-72 * time.Hour)
		assert.WithinDuration(t, time.Now().Add(-72*time.Hour), w.clock.Stamp(), time.Second, "there is nothing to compare with")
		w.ask()
		assert.WithinDuration(t, time.Now(), w.clock.Stamp(), 2*time.Second)
		w.set(72 * time.Hour)
		w.ask()
		assert.Equal(t, time.Now().Round(0), w.clock.Stamp(), "the answer does not show that the clock is wrong")
		w.set(-73 * time.Hour)
		assert.WithinDuration(t, time.Now(), w.clock.Stamp(), 2*time.Second, "the clock was set back: the answer counts")
		w.set(100 * time.Hour)
		w.ask()
		assert.WithinDuration(t, time.Now(), w.clock.Stamp(), 2*time.Second, "the clock is ahead: the answer counts")
		w.set(200 * time.Hour)
		assert.True(t, w.clock.Stamp().After(time.Now()), "deleted later, not earlier")
	})
}

func TestSleep_EndsWithTheContext(t *testing.T) {
	virtual(t, func(w *world) {
		require.NoError(t, w.clock.Sleep(w.Context(), time.Second))
		cause := errors.New("closing")
		ctx, cancel := context.WithCancelCause(w.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		began := time.Now()
		err := w.clock.Sleep(ctx, time.Hour)
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, w.clock.Sleep(ctx, 0), cause)
		same, stop := w.clock.Detach(w.Context())
		stop()
		assert.Equal(t, w.Context(), same)
		detached, stop := w.clock.Detach(ctx)
		defer stop()
		require.NoError(t, detached.Err())
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.ErrorIs(t, detached.Err(), context.DeadlineExceeded)
	})
}

// A context may end while Cause looks at it. Then it goes on still, or has ended with its cause: never without.
func TestCause_OfAContextThatEndsMeanwhile(t *testing.T) {
	closing := errors.New("closing")
	for looks := range 4 {
		ctx, cancel := context.WithCancelCause(t.Context())
		err := clock.Cause(&endsLater{ctx, looks, func() { cancel(closing) }})
		if err != nil {
			require.ErrorIs(t, err, closing, "after %d looks", looks)
			require.ErrorIs(t, err, context.Canceled)
		}
		cancel(closing)
		require.ErrorIs(t, clock.Cause(ctx), closing)
	}
}

// The reason is told once, and a context that has none to tell has ended all the same.
func TestCause_IsTheContextsErrorIfThatIsAllThereIs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	assert.Equal(t, context.Canceled, clock.Cause(ended{t.Context()}), "of another implementation")
	cancel()
	assert.Equal(t, context.Canceled, clock.Cause(ctx))
}

// ended is a context that has ended, unlike the standard one inside it.
type ended struct{ context.Context }

func (ended) Err() error { return context.Canceled }

// endsLater ends when its Err was called several times.
type endsLater struct {
	context.Context

	looks int
	end   func()
}

func (c *endsLater) Err() error {
	if c.looks--; c.looks < 0 {
		c.end()
	}
	return c.Context.Err()
}

func TestJitter_SpreadsByATenth(t *testing.T) {
	virtual(t, func(w *world) {
		for range 1000 {
			assert.InDelta(t, 1000, w.clock.Jitter(time.Second).Milliseconds(), 101)
		}
	})
}
