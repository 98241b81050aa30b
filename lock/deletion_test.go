package lock_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// deleted is when time to live may delete a row.
func (w *world) deleted(ctx context.Context, key keys.Key) time.Time {
	w.Helper()
	row, err := w.table.Get(ctx, key, true)
	require.NoError(w, err)
	return time.Unix(number(w.T, row["ttl"]), 0)
}

const day = 24 * time.Hour // the shortest retention

// spared holds a lease for a while in which time to live deletes whatever it may.
func (w *world) spared(ctx context.Context, l *lock.Lease, during time.Duration) {
	w.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); {
		time.Sleep(min(10*time.Minute, during/60))
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
		"when it was put off":            {by: -61 * time.Minute, from: 359 * time.Minute, until: 362 * time.Minute},
		"before it was put off":          {by: -61 * time.Minute, from: 355 * time.Minute, until: 359 * time.Minute},
		"for a while from its beginning": {by: -time.Hour, from: -time.Second, until: 3 * time.Minute},
		"more, for a while":              {by: -100 * time.Minute, from: -time.Second, until: 3 * time.Minute},
		"while the clock is fast":        {by: -31 * time.Minute, from: -time.Second, until: 362 * time.Minute, clock: 30 * time.Minute},
		"ever since":                     {by: -17 * time.Hour, from: time.Minute, until: 60 * time.Hour},
		"ahead, once":                    {by: 24 * time.Hour, from: time.Minute, until: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				locks := w.client(lock.Config{Retention: day, Lease: time.Minute}, at(c.clock))
				time.AfterFunc(time.Minute+c.from, func() {
					w.engine.Inject(skewed(c.by))
					_, _ = locks.Inspect(ctx, lock.Name("report"))
				})
				time.AfterFunc(time.Minute+c.until, w.engine.ClearFaults)
				time.Sleep(time.Minute)
				l, err := locks.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				w.spared(ctx, l, 2*day)
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// Neither does a renewal of a lease of its own, which says anew when its row is to be deleted.
func TestWrongDateOfARenewalDeletesNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Retention: day})
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		right := func() {
			t.Helper()
			assert.WithinDuration(t, time.Now().Add(day+time.Hour), w.deleted(ctx, l.Key()), 2*time.Second)
		}
		right()
		w.engine.Inject(skewed(-3 * time.Hour))
		require.NoError(t, l.Renew(ctx)) // has the wrong date
		time.Sleep(time.Minute)
		require.NoError(t, l.Renew(ctx)) // goes by it
		require.Greater(t, time.Until(w.deleted(ctx, l.Key())), 20*time.Hour, "the retention is for that")
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
		c := w.cold(lock.Config{Retention: day, HomeRegion: tabletest.Region}, at(-2*time.Hour))
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(30*time.Minute))
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now().Add(day+30*time.Minute), w.deleted(ctx, l.Key()), 2*time.Second)
		w.spared(ctx, l, 29*time.Minute)
		require.NoError(t, l.Release(ctx))
	})
}

// What put a row off can come in late once more, and bring it back to what was written before
// that: a date that was ahead meanwhile does not have the client believe otherwise.
func TestLateDuplicateDoesNotDeleteAHeldRow(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Retention: day, Lease: time.Minute})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(6*time.Hour - time.Minute)
		w.engine.Inject(tabletest.Fault{
			Kind: tabletest.DuplicateLate, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 1, For: time.Minute,
		})
		time.Sleep(90 * time.Second) // put off by now
		before := w.deleted(ctx, l.Key())
		require.WithinDuration(t, time.Now().Add(day), before, 2*time.Minute)
		time.Sleep(time.Minute)
		require.Equal(t, before, w.deleted(ctx, l.Key()), "the duplicate")
		w.spared(ctx, l, 2*day)
	})
}

// An heir goes by what its row says, also where the request that handed it over was an earlier one.
func TestHandOverThatIsRecognisedIsNotDeleted(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Retention: day, Lease: time.Minute})
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
		w.spared(ctx, next, 2*day)
	})
}

// A row that was released under wrong dates is not deleted before they are past: a new one would
// begin with a fence that was given out.
func TestWrongDatesDoNotTakeFencesBack(t *testing.T) {
	for _, by := range []time.Duration{-12 * time.Hour, -59 * time.Minute, -time.Hour, -61 * time.Minute, -100 * time.Minute} {
		t.Run(by.String(), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{Retention: day})
				time.Sleep(time.Minute)
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				w.engine.Inject(skewed(by))
				_, err = c.Inspect(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))
				last := l.Fence()
				for range 4 * 60 {
					time.Sleep(24 * time.Minute)
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
		c := w.cold(lock.Config{Retention: day, HomeRegion: tabletest.Region}, at(10*365*24*time.Hour))
		_, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.Greater(t, time.Until(w.deleted(ctx, sessionKey(c))), 24*time.Hour, "its clock was known")
		time.Sleep(10 * time.Second)
		assert.WithinDuration(t, time.Now().Add(day), w.deleted(ctx, sessionKey(c)), time.Minute)
	})
}

// With a margin of half the lease a renewal leaves little more than half of it: what is done between
// renewals goes by what the holders count on.
func TestHeldRowIsPutOffWhateverTheMargin(t *testing.T) {
	for _, margin := range []time.Duration{9 * time.Second, 10 * time.Second} {
		t.Run(margin.String(), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{Retention: day, Margin: margin})
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 5 * time.Millisecond})
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				w.spared(ctx, l, 2*day)
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
		w.releaseInVain(ctx, l)
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
					c := w.client(lock.Config{Retention: day})
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
			_ = w.client(lock.Config{Retention: day}).Every(bounded, lock.Name("report"), 30*24*time.Hour, func(ctx context.Context, _ *lock.Lease, at time.Time) error {
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

// What the dates or a clock say that are behind for as long as the lock is held is put off before it
// has come: by up to three quarters of the retention.
func TestRowsOutlastWhatIsBehindForGood(t *testing.T) {
	for name, c := range map[string]struct {
		dates, clock time.Duration
		config       lock.Config
	}{
		"dates":                         {dates: -100 * time.Minute, config: lock.Config{Retention: day, Lease: time.Minute}},
		"dates and clock":               {dates: -40 * time.Minute, clock: -40 * time.Minute, config: lock.Config{Retention: day, Lease: time.Minute}},
		"a clock that is trusted to be": {clock: -40 * time.Minute, config: lock.Config{Retention: day, Lease: time.Minute, Skew: time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				if c.dates != 0 {
					w.engine.Inject(skewed(c.dates))
				}
				locks := w.client(c.config, at(c.clock))
				l, err := locks.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				w.spared(ctx, l, 2*day)
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// A row is kept until a new one would begin above it, by whatever time of less than the retention it began ahead.
func TestFencesThatBeganAheadAreNotTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		config        lock.Config
		first, second time.Duration     // clocks
		created, then []tabletest.Fault // what there is when the row is created, and from then on
	}{
		"dates, by half a day":  {config: lock.Config{Retention: day}, created: []tabletest.Fault{skewed(day / 2)}},
		"dates, which are late": {config: lock.Config{Retention: day}, then: []tabletest.Fault{skewed(-100 * time.Minute)}},
		"a clock":               {config: lock.Config{Retention: day}, first: time.Hour, second: -1900 * time.Millisecond},
		"a clock that is slow":  {config: lock.Config{Retention: day, Skew: time.Hour}, second: -40 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				first, second := w.client(c.config, at(c.first)), w.client(c.config, at(c.second))
				told := func(faults ...tabletest.Fault) {
					w.engine.ClearFaults()
					w.engine.Inject(faults...)
					for _, c := range []*lock.Client{first, second} {
						_, err := c.Inspect(ctx, lock.Name("other"))
						require.ErrorIs(t, err, table.ErrNotFound)
					}
				}
				told(c.created...)
				l, err := first.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				outlasting := func(l *lock.Lease) {
					t.Helper()
					assert.True(t, w.deleted(ctx, l.Key()).After(time.UnixMilli(l.Fence())))
				}
				told(c.then...)
				heir := make(chan *lock.Lease)
				go func() {
					l, err := first.Acquire(ctx, lock.Name("report"))
					assert.NoError(t, err)
					heir <- l
				}()
				time.Sleep(time.Second)
				require.NoError(t, l.Release(ctx))
				l = <-heir
				outlasting(l)
				require.NoError(t, l.Release(ctx))
				outlasting(l)
				for range 5 {
					next, err := second.Acquire(ctx, lock.Name("report"))
					require.NoError(t, err)
					require.Greater(t, next.Fence(), l.Fence())
					time.Sleep(10 * time.Second)
					outlasting(next)
					require.NoError(t, next.Release(ctx))
					outlasting(next)
					l = next
					time.Sleep(time.Until(w.deleted(ctx, l.Key())) + 2*time.Second)
					require.Positive(t, w.engine.Sweep())
				}
			})
		})
	}
}

// What is known of the time does not get lost while there is nothing to compare the clock with.
func TestClockThatIsSetDoesNotBringDeletionForward(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		c := w.client(lock.Config{Retention: day}, table.WithClock(wall.now))
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(2*time.Hour))
		require.NoError(t, err)
		wall.jump(31 * time.Minute)
		require.NoError(t, l.Renew(ctx))
		w.engine.Inject(skewed(-6 * time.Hour))
		wall.jump(-31 * time.Minute)
		_, err = c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Renew(ctx))
		w.engine.ClearFaults()
		assert.Greater(t, time.Until(w.deleted(ctx, l.Key())), 19*time.Hour)
		w.spared(ctx, l, 119*time.Minute-31*time.Minute)
		require.NoError(t, l.Release(ctx))
	})
}

// Nor where no answer tells the time.
func TestClockThatIsSetBackWithoutDates(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		c, err := lock.New(w.openOver(undated{w.engine.HTTPClient()}, table.Schema{Name: "app"}, table.WithClock(wall.now)),
			lock.Config{Retention: day, Lease: time.Minute, HomeRegion: tabletest.Region})
		require.NoError(t, err)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.spared(ctx, l, 18*time.Hour)
		wall.jump(-3 * time.Hour)
		w.spared(ctx, l, 2*day)
		require.NoError(t, c.Close(ctx))
	})
}

// undated is a connection whose answers do not tell the time.
type undated struct{ to aws.HTTPClient }

func (u undated) Do(r *http.Request) (*http.Response, error) {
	resp, err := u.to.Do(r)
	if err == nil {
		resp.Header.Del("Date")
	}
	return resp, err
}

// Rows whose writes hang, each time, do not keep the others from being put off.
func TestRowsThatHangKeepNoOther(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Retention: day, Lease: time.Minute})
		var last *lock.Lease
		for i := range 5 {
			l, err := c.Acquire(ctx, lock.Name(fmt.Sprint("report-", i)))
			require.NoError(t, err)
			if last = l; i < 4 {
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Hour, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key())})
			}
		}
		w.spared(ctx, last, 2*day)
		w.engine.ClearFaults()
	})
}

// Somebody else's release keeps what the holder has had the row tell.
func TestForcedReleaseKeepsARunInMind(t *testing.T) {
	const month = 30 * 24 * time.Hour
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		err := c.Every(bounded, lock.Name("report"), month, func(ctx context.Context, l *lock.Lease, _ time.Time) error {
			w.force(ctx, c, lock.Name("report"))
			<-l.Context().Done()
			cancel()
			return l.Context().Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		assert.Greater(t, time.Until(w.deleted(ctx, keys.NewKey("LOCK#report", "LOCK#report"))), 59*24*time.Hour)
	})
}

// A fence that is no time of day is not waited for: nothing could put such a row off for long enough.
func TestFencesThatAreNoTimeOfDay(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		require.NoError(t, w.table.Write(ctx, table.Update(l.Key(), table.Attr("fence").Set(int64(1_790_000_000_000_000))))) // adopted: of microseconds
		l, err = c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.ResetRequests()
		time.Sleep(time.Hour)
		require.Empty(t, w.requestsTo(l.Key().PK))
		require.NoError(t, l.Release(ctx))
		assert.WithinDuration(t, time.Now().Add(7*24*time.Hour), w.deleted(ctx, l.Key()), 2*time.Second)
	})
}

// A fence that lies a little ahead costs nothing: the retention is for that.
func TestFencesALittleAheadCostNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(lock.Config{}, at(5*time.Minute)).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		c := w.client(lock.Config{})
		assert.Equal(t, []string{"UpdateItem", "UpdateItem"}, w.requests(func() {
			l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
			require.NoError(t, err)
			require.NoError(t, l.Release(ctx))
		}))
	})
}

// What is freed in somebody's place is kept as what its holder frees, whatever whoever acquired it has
// had it say: by a clock that was not known to be slow, or before it died long ago.
func TestRowsFreedInSomebodysPlaceAreKept(t *testing.T) {
	const week = 7 * day
	key := keys.NewKey("LOCK#report", "LOCK#report")
	abandoned := func(ctx context.Context, w *world, c *lock.Client, f tabletest.Fault, limit time.Duration) {
		w.Helper()
		w.engine.ResetRequests()
		w.engine.Inject(f)
		bounded, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_, err := c.Acquire(bounded, lock.Name("report"), lock.Fixed(30*time.Second))
		require.ErrorIs(w, err, context.DeadlineExceeded)
		time.Sleep(time.Minute)
		w.engine.ClearFaults()
	}
	for name, f := range map[string]func(ctx context.Context, w *world){
		"taken back": func(ctx context.Context, w *world) {
			c := w.cold(lock.Config{HomeRegion: tabletest.Region}, at(-10*day))
			time.AfterFunc(500*time.Millisecond, func() { _, _ = c.Inspect(ctx, lock.Name("report")) }) // which tells the date
			abandoned(ctx, w, c, tabletest.Fault{
				Kind: tabletest.Delay, After: true, Operation: "UpdateItem", Key: w.table.KeyItem(key), Times: 1, For: 10 * time.Second,
			}, time.Second)
		},
		"taken back, without an answer": func(ctx context.Context, w *world) {
			c := w.cold(lock.Config{HomeRegion: tabletest.Region}, at(-10*day))
			time.AfterFunc(500*time.Millisecond, func() { _, _ = c.Inspect(ctx, lock.Name("report")) })
			time.AfterFunc(900*time.Millisecond, func() {
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Key: w.table.KeyItem(key), Times: 1})
			})
			abandoned(ctx, w, c, tabletest.Fault{
				Kind: tabletest.Delay, After: true, Operation: "UpdateItem", Key: w.table.KeyItem(key), Times: 1, For: 10 * time.Second,
			}, time.Second)
		},
		"taken back with others": func(ctx context.Context, w *world) {
			both := []lock.Target{lock.Name("report"), lock.Name("another")}
			b, err := w.client(lock.Config{}).AcquireAll(ctx, both) // which makes the other one's row
			require.NoError(w, err)
			require.NoError(w, b.Release(ctx))
			c := w.cold(lock.Config{HomeRegion: tabletest.Region}, at(-10*day))
			time.AfterFunc(500*time.Millisecond, func() { _, _ = c.Inspect(ctx, lock.Name("report")) })
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, Operation: "TransactWriteItems", Times: 1, For: 10 * time.Second})
			bounded, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err = c.AcquireAll(bounded, both, lock.Fixed(30*time.Second))
			require.ErrorIs(w, err, context.DeadlineExceeded)
			time.Sleep(time.Minute)
			w.engine.ClearFaults()
		},
		"given back unseen": func(ctx context.Context, w *world) {
			c := w.cold(lock.Config{HomeRegion: tabletest.Region}, at(-10*day))
			abandoned(ctx, w, c, tabletest.Fault{Kind: tabletest.Delay, Call: 2, For: 10 * time.Second}, 500*time.Millisecond)
		},
		"forced, long after its holder has died": func(ctx context.Context, w *world) {
			wire := &line{to: w.engine.HTTPClient()}
			_, err := w.clientOver(wire, quiet).Acquire(ctx, lock.Name("report"))
			require.NoError(w, err)
			wire.cut(refused)
			time.Sleep(week - time.Minute)
			w.force(ctx, w.client(quiet), lock.Name("report"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))
				f(ctx, w)
				assert.Greater(t, w.deleted(ctx, key), time.Now().Add(5*day))
			})
		})
	}
}

// A holder that prolongs the life of a deleted row learns that it has lost the lock.
func TestDeletion_TheHolderOfADeletedRowIsTold(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(lock.Config{Retention: aDay, Logger: quiet.Logger}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Delete(l.Key())))
		time.Sleep(8 * time.Hour)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
	})
}
