package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// The row of intervals that are longer than the retention is kept until the end of the next interval.
func TestEvery_IntervalsLongerThanTheRetention(t *testing.T) {
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

// An unfinished run is begun again until the end of the next interval, however long that is.
func TestEvery_UnfinishedRunOfALongIntervalIsRunAgain(t *testing.T) {
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

// The renewal of a Fixed lease does not bring the deletion of the row of an unfinished run forward.
func TestEvery_RenewedRunOfALongIntervalIsKept(t *testing.T) {
	const month = 30 * 24 * time.Hour
	virtual(t, func(ctx context.Context, w *world) {
		var began []time.Time
		once := func(f func(ctx context.Context, l *lock.Lease) error) {
			bounded, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			c := w.client(lock.Config{Retention: day, Logger: quiet.Logger})
			_ = c.Every(bounded, lock.Name("report"), month, func(ctx context.Context, l *lock.Lease, at time.Time) error {
				began = append(began, at)
				return f(ctx, l)
			}, lock.Fixed(10*time.Minute))
		}
		once(func(ctx context.Context, l *lock.Lease) error {
			assert.NoError(t, l.Renew(ctx))
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest}) // cut off for good: the run is left as it is
			<-ctx.Done()
			return ctx.Err()
		})
		w.engine.ClearFaults()
		time.Sleep(month + day)
		w.engine.Sweep()
		once(func(context.Context, *lock.Lease) error { return nil })
		require.Len(t, began, 3)
		assert.Equal(t, began[0], began[1], "the one that was broken off")
	})
}

// The row of a job is damaged and reset in the middle of an interval. The interval that is recorded is not run again.
func TestEvery_AResetRowKeepsItsRecord(t *testing.T) {
	const month = 30 * 24 * time.Hour
	virtual(t, func(ctx context.Context, w *world) {
		var runs []time.Time
		c := w.client(lock.Config{Retention: day})
		until := func(d time.Duration) {
			bounded, cancel := context.WithTimeout(ctx, d)
			defer cancel()
			_ = c.Every(bounded, lock.Name("report"), month, func(ctx context.Context, l *lock.Lease, at time.Time) error {
				runs = append(runs, at)
				return l.Commit(ctx, w.count("n"))
			})
		}
		until(time.Minute)
		key, err := c.Key(lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Update(key, table.Attr("line").Set("damaged"))))
		require.NoError(t, c.ForceRelease(ctx, lock.Name("report"), ""))
		time.Sleep(8 * 24 * time.Hour)
		w.engine.Sweep()
		until(month)
		require.Len(t, runs, 2)
		assert.Equal(t, runs[0].Add(month), runs[1])
		assert.Equal(t, int64(2), w.counted("n"))

		// A record that is itself damaged does not stay.
		require.NoError(t, w.table.Write(ctx, table.Update(key, table.Attr("ran").Set("damaged"))))
		require.NoError(t, c.ForceRelease(ctx, lock.Name("report"), ""))
		until(time.Minute)
		assert.Len(t, runs, 3)

		// Neither does a time that has not come. With it, no interval would be run until then.
		future := time.Now().Add(2 * day).UnixMilli()
		require.NoError(t, w.table.Write(ctx, table.Update(key, table.Attr("line").Set("damaged"), table.Attr("ran").Set(future))))
		require.NoError(t, c.ForceRelease(ctx, lock.Name("report"), ""))
		until(time.Minute)
		assert.Len(t, runs, 4)
	})
}
