package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table/tabletest"
)

// deleted is when time to live may delete a row.
func (w *world) deleted(ctx context.Context, key keys.Key) time.Time {
	w.Helper()
	row, err := w.table.Get(ctx, key, true)
	require.NoError(w, err)
	return time.Unix(number(w.T, row["ttl"]), 0)
}

// spared holds a lease for a while in which time to live deletes whatever it may.
func (w *world) spared(ctx context.Context, l *lock.Lease, during time.Duration) {
	w.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); {
		time.Sleep(10 * time.Second)
		w.engine.Sweep()
		_, err := w.table.Get(ctx, l.Key(), true)
		require.NoError(w, err, "deleted, by its date: %v before the end", time.Until(end))
		require.NoError(w, context.Cause(l.Context()))
	}
}

func skewed(by time.Duration) tabletest.Fault {
	return tabletest.Fault{Kind: tabletest.SkewDate, For: by}
}

// Answers with a wrong date do not have the row of a lock deleted that is held: once, or for a
// while, before the first renewal or after (deletion, seeds 150, 276 and 777). The retention is
// the shortest.
func TestWrongDatesDoNotDeleteHeldRows(t *testing.T) {
	for name, c := range map[string]struct {
		by, from, until time.Duration // since the lock was acquired
		clock           time.Duration
	}{
		"when it was acquired":           {by: -61 * time.Minute, from: -time.Second, until: time.Millisecond},
		"when it was put off":            {by: -61 * time.Minute, from: 29 * time.Minute, until: 32 * time.Minute},
		"before it was put off":          {by: -61 * time.Minute, from: 25 * time.Minute, until: 29 * time.Minute},
		"for a while from its beginning": {by: -time.Hour, from: -time.Second, until: 3 * time.Minute},
		"more, for a while":              {by: -100 * time.Minute, from: -time.Second, until: 3 * time.Minute},
		"while the clock is fast":        {by: -31 * time.Minute, from: -time.Second, until: 32 * time.Minute, clock: 30 * time.Minute},
		"ever since":                     {by: -24 * time.Hour, from: time.Minute, until: 5 * time.Hour},
		"ahead, once":                    {by: 24 * time.Hour, from: time.Minute, until: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				locks := w.client(lock.Config{Retention: time.Hour}, at(c.clock))
				time.AfterFunc(time.Minute+c.from, func() {
					w.engine.Inject(skewed(c.by))
					_, _ = locks.Inspect(ctx, lock.Name("report"))
				})
				time.AfterFunc(time.Minute+c.until, w.engine.ClearFaults)
				time.Sleep(time.Minute)
				l, err := locks.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				w.spared(ctx, l, 4*time.Hour)
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// Neither does a renewal of a lease of its own, which says anew when its row is to be deleted.
func TestWrongDateOfARenewalDeletesNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Retention: time.Hour})
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		right := func() {
			t.Helper()
			assert.WithinDuration(t, time.Now().Add(2*time.Hour), w.deleted(ctx, l.Key()), 2*time.Second)
		}
		right()
		w.engine.Inject(skewed(-3 * time.Hour))
		require.NoError(t, l.Renew(ctx)) // has the wrong date
		time.Sleep(time.Minute)
		require.NoError(t, l.Renew(ctx)) // goes by it
		right()
		w.engine.ClearFaults()
		require.NoError(t, l.Renew(ctx))
		time.Sleep(time.Minute)
		require.NoError(t, l.Renew(ctx))
		right()
	})
}

// The first request of a process does not know that its clock is slow, and a lease of its own is
// not looked after.
func TestSlowClockDoesNotDeleteALeaseOfItsOwn(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		first, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, first.Release(ctx))
		c := w.cold(lock.Config{Retention: time.Hour, HomeRegion: tabletest.Region}, at(-2*time.Hour))
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(30*time.Minute))
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now().Add(90*time.Minute), w.deleted(ctx, l.Key()), 2*time.Second)
		w.spared(ctx, l, 29*time.Minute)
		require.NoError(t, l.Release(ctx))
	})
}

// What put a row off can come in late once more, and bring it back to what was written before
// that: a date that was ahead meanwhile does not have the client believe otherwise.
func TestLateDuplicateDoesNotDeleteAHeldRow(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Retention: time.Hour})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(29 * time.Minute)
		w.engine.Inject(tabletest.Fault{
			Kind: tabletest.DuplicateLate, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 1, For: time.Minute,
		})
		time.Sleep(70 * time.Second) // put off by now
		before := w.deleted(ctx, l.Key())
		w.engine.Inject(tabletest.Fault{Kind: tabletest.SkewDate, For: time.Hour, Operation: "UpdateItem", Times: 1})
		time.Sleep(10 * time.Second)
		require.WithinDuration(t, before.Add(time.Hour), w.deleted(ctx, l.Key()), time.Minute, "the date was not gone by")
		time.Sleep(time.Minute)
		require.Equal(t, before, w.deleted(ctx, l.Key()), "the duplicate")
		w.spared(ctx, l, 4*time.Hour)
	})
}

// An heir goes by what its row says, also where the request that handed it over was an earlier one.
func TestHandOverThatIsRecognisedIsNotDeleted(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Retention: time.Hour})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		heir := make(chan *lock.Lease, 1)
		go func() {
			l, err := c.Acquire(ctx, lock.Name("report"))
			assert.NoError(t, err)
			heir <- l
		}()
		time.Sleep(30 * time.Second)
		w.engine.Inject(
			tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"},
			tabletest.Fault{Kind: tabletest.Delay, Operation: "BatchGetItem", For: 4 * time.Second},
			tabletest.Fault{Kind: tabletest.SkewDate, For: time.Hour, Operation: "GetItem"},
		)
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		time.AfterFunc(1900*time.Millisecond, func() { _, _ = c.Inspect(ctx, lock.Name("report")) })
		require.ErrorIs(t, l.Commit(short, w.count("n")), context.DeadlineExceeded)
		require.NoError(t, l.Release(ctx))
		next := <-heir
		w.engine.ClearFaults()
		require.Equal(t, l.Fence()+1, next.Fence())
		w.spared(ctx, next, 4*time.Hour)
	})
}

// A row that was released under wrong dates is not deleted before they are past: a new one would
// begin with a fence that was given out.
func TestWrongDatesDoNotTakeFencesBack(t *testing.T) {
	for _, by := range []time.Duration{-59 * time.Minute, -time.Hour, -61 * time.Minute, -100 * time.Minute} {
		t.Run(by.String(), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{Retention: time.Hour})
				time.Sleep(time.Minute)
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				w.engine.Inject(skewed(by))
				_, err = c.Inspect(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))
				last := l.Fence()
				for range 4 * 60 {
					time.Sleep(time.Minute)
					w.engine.Sweep()
					next, err := c.Acquire(ctx, lock.Name("report"))
					require.NoError(t, err)
					require.Greater(t, next.Fence(), last)
					last = next.Fence()
					require.NoError(t, next.Release(ctx))
				}
			})
		})
	}
}

// The first request of a process does not know that its clock is years ahead: its session's row is
// not to stay that long, should it crash.
func TestFastClockDoesNotKeepASession(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.cold(lock.Config{Retention: time.Hour, HomeRegion: tabletest.Region}, at(10*365*24*time.Hour))
		_, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.Greater(t, time.Until(w.deleted(ctx, sessionKey(c))), 24*time.Hour, "its clock was known")
		time.Sleep(10 * time.Second)
		assert.WithinDuration(t, time.Now().Add(2*time.Hour), w.deleted(ctx, sessionKey(c)), time.Minute)
	})
}

// With a margin of half the lease a renewal leaves little more than half of it: what is done between
// renewals goes by what the holders count on.
func TestHeldRowIsPutOffWhateverTheMargin(t *testing.T) {
	for _, margin := range []time.Duration{9 * time.Second, 10 * time.Second} {
		t.Run(margin.String(), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{Retention: time.Hour, Margin: margin})
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 5 * time.Millisecond})
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				w.spared(ctx, l, 2*time.Hour)
			})
		})
	}
}

func TestOrphanIsFreedWhateverTheMargin(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{Margin: 10 * time.Second}), w.client(lock.Config{})
		latency := tabletest.Fault{Kind: tabletest.Delay, For: 5 * time.Millisecond}
		w.engine.Inject(latency)
		_, err := c.Acquire(ctx, lock.Name("other")) // keeps the session
		require.NoError(t, err)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Key: w.table.KeyItem(l.Key())})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.Error(t, l.Release(short))
		w.engine.ClearFaults()
		w.engine.Inject(latency)
		start := time.Now()
		_, err = other.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Less(t, time.Since(start), 20*time.Second)
	})
}

// The row of intervals that are longer than the retention tells of them until the end of the next one.
func TestIntervalsLongerThanTheRetention(t *testing.T) {
	const month = 30 * 24 * time.Hour
	for name, f := range map[string]func(ctx context.Context, w *world, l *lock.Lease) error{
		"returns": func(context.Context, *world, *lock.Lease) error { return nil },
		"commits": func(ctx context.Context, w *world, l *lock.Lease) error { return l.Commit(ctx, w.count("n")) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				runs := map[time.Time]int{}
				for range 12 { // instances, eight days apart
					c := w.client(lock.Config{Retention: time.Hour})
					bounded, cancel := context.WithTimeout(ctx, time.Minute)
					err := c.Every(bounded, lock.Name("report"), month, func(ctx context.Context, l *lock.Lease, at time.Time) error {
						runs[at]++
						return f(ctx, w, l)
					})
					cancel()
					require.ErrorIs(t, err, context.DeadlineExceeded)
					time.Sleep(8 * 24 * time.Hour)
					w.engine.Sweep()
				}
				assert.Len(t, runs, 4, "96 days have parts of four months: %v", runs)
				for at, n := range runs {
					assert.Equal(t, 1, n, at)
				}
			})
		})
	}
}

// A run that is broken off is begun again until the end of the next interval, however long that is.
func TestBrokenOffRunOfALongIntervalIsBegunAgain(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var began []time.Time
		once := func(f func(ctx context.Context) error) {
			bounded, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			_ = w.client(lock.Config{Retention: time.Hour}).Every(bounded, lock.Name("report"), 30*24*time.Hour, func(ctx context.Context, _ *lock.Lease, at time.Time) error {
				began = append(began, at)
				return f(ctx)
			})
		}
		once(func(ctx context.Context) error {
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest}) // cut off for good: the run is left as it is
			<-ctx.Done()
			return ctx.Err()
		})
		w.engine.ClearFaults()
		time.Sleep(31 * 24 * time.Hour)
		w.engine.Sweep()
		once(func(context.Context) error { return nil })
		require.Len(t, began, 3)
		assert.Equal(t, began[0], began[1], "the one that was broken off")
		assert.Equal(t, began[0].Add(30*24*time.Hour), began[2])
	})
}
