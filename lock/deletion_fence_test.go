package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A row that was released under wrong dates is not deleted before these dates are past: a new row would begin with a fence
// that was granted before.
func TestFence_WrongDatesDoNotTakeItBack(t *testing.T) {
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

// A fence began ahead of the time, by less than the retention. Its row is kept until a new one would begin with a greater
// fence.
func TestFence_ThatBeganAheadIsNotTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		config        lock.Config
		first, second time.Duration     // how far the clocks are off
		created, then []tabletest.Fault // faults when the row is created, and from then on
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
				waiter := make(chan *lock.Lease)
				go func() {
					l, err := first.Acquire(ctx, lock.Name("report"))
					assert.NoError(t, err)
					waiter <- l
				}()
				time.Sleep(time.Second)
				require.NoError(t, l.Release(ctx))
				l = <-waiter
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

// A fence far beyond the present time, such as one in microseconds, does not put off the deletion of its row: nothing could
// put it off for long enough.
func TestFence_ThatIsNoTimePutsNoDeletionOff(t *testing.T) {
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

// A fence that is a little ahead costs nothing: the retention covers that.
func TestFence_ALittleAheadCostsNothing(t *testing.T) {
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

// F12. After the row was deleted, the next fence is greater, for every client and with every clock.
func TestFencesIncreaseAcrossDeletionAndClocks(t *testing.T) {
	offsets := []time.Duration{0, time.Hour, -time.Hour, -30 * 24 * time.Hour, 10 * 365 * 24 * time.Hour, -10 * 365 * 24 * time.Hour}
	larger := 0
	for _, cold := range []bool{false, true} {
		for _, first := range offsets {
			for _, second := range offsets {
				virtual(t, func(ctx context.Context, w *world) {
					start := w.client
					if cold {
						start = w.cold
					}
					acquire := func(by time.Duration) *lock.Lease {
						l, err := start(lock.Config{}, at(by)).Acquire(ctx, lock.Name("report"))
						require.NoError(t, err)
						return l
					}
					l := acquire(first)
					require.NoError(t, l.Release(ctx))
					last := l.Fence()
					time.Sleep(6 * 24 * time.Hour)
					assert.Zero(t, w.engine.Sweep(), "within the retention, clock off by %v", first)
					time.Sleep(2*24*time.Hour + 2*time.Hour)
					w.engine.Sweep()
					_, err := w.table.Get(ctx, l.Key(), true)
					require.ErrorIs(t, err, table.ErrNotFound, "after the retention, clock off by %v", first)
					l = acquire(second)
					require.Greater(t, l.Fence(), last, "cold %v, clocks off by %v and %v", cold, first, second)
					r, err := w.client(lock.Config{}).Inspect(ctx, lock.Name("report"))
					require.NoError(t, err)
					require.Equal(t, l.Fence(), r.Fence)
					require.NoError(t, l.Release(ctx))
					larger++
				})
				if t.Failed() {
					return
				}
			}
		}
	}
	testkit.Check(t, "F12, rows deleted under wrong clocks", testkit.Exactly(larger, "fences larger than the one before", 2*len(offsets)*len(offsets)))
}

func TestFence_SurvivesDeletion(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		require.NoError(t, w.table.Write(ctx, table.Delete(l.Key())))
		time.Sleep(time.Millisecond)
		next, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Greater(t, next.Fence(), l.Fence())
	})
}
