package lock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
)

func location(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	require.NoError(t, err)
	return loc
}

const (
	aDay  = 24 * time.Hour
	aWeek = 7 * aDay
)

// Instances whose own clocks are hours off agree on the time of a day's run, also on the days on which clocks are put
// forward or back.
func TestEvery_DailyJobsFollowTheClocksOfALocation(t *testing.T) {
	for name, c := range map[string]struct {
		location string
		interval time.Duration
		at       time.Duration
		from     string   // in UTC
		runs     []string // as clocks show them there, and in UTC
	}{
		"put forward past the time": {
			"Europe/Berlin", aDay, 2*time.Hour + 30*time.Minute, "2026-03-28T01:00:00Z",
			[]string{ // the clocks go from 02:00 to 03:00
				"2026-03-27T02:30:00+01:00 2026-03-27T01:30:00Z",
				"2026-03-28T02:30:00+01:00 2026-03-28T01:30:00Z",
				"2026-03-29T03:00:00+02:00 2026-03-29T01:00:00Z",
				"2026-03-30T02:30:00+02:00 2026-03-30T00:30:00Z",
			},
		},
		"put back, the time comes twice": {
			"Europe/Berlin", aDay, 2*time.Hour + 30*time.Minute, "2026-10-24T00:00:00Z",
			[]string{ // from 03:00 to 02:00
				"2026-10-23T02:30:00+02:00 2026-10-23T00:30:00Z",
				"2026-10-24T02:30:00+02:00 2026-10-24T00:30:00Z",
				"2026-10-25T02:30:00+02:00 2026-10-25T00:30:00Z",
				"2026-10-26T02:30:00+01:00 2026-10-26T01:30:00Z",
			},
		},
		"the very moments": {
			"Europe/Berlin", aDay, 3 * time.Hour, "2026-10-24T00:30:00Z",
			[]string{
				"2026-10-23T03:00:00+02:00 2026-10-23T01:00:00Z",
				"2026-10-24T03:00:00+02:00 2026-10-24T01:00:00Z",
				"2026-10-25T03:00:00+01:00 2026-10-25T02:00:00Z",
			},
		},
		"a day without a midnight": {
			"America/Sao_Paulo", aDay, 0, "2018-11-03T01:00:00Z",
			[]string{ // from 00:00 to 01:00
				"2018-11-02T00:00:00-03:00 2018-11-02T03:00:00Z",
				"2018-11-03T00:00:00-03:00 2018-11-03T03:00:00Z",
				"2018-11-04T01:00:00-02:00 2018-11-04T03:00:00Z",
				"2018-11-05T00:00:00-02:00 2018-11-05T02:00:00Z",
			},
		},
		"a day with two midnights": {
			"America/Havana", aDay, 30 * time.Minute, "2026-10-31T03:00:00Z",
			[]string{ // from 01:00 to 00:00
				"2026-10-30T00:30:00-04:00 2026-10-30T04:30:00Z",
				"2026-10-31T00:30:00-04:00 2026-10-31T04:30:00Z",
				"2026-11-01T00:30:00-04:00 2026-11-01T04:30:00Z",
				"2026-11-02T00:30:00-05:00 2026-11-02T05:30:00Z",
			},
		},
		"half an hour": {
			"Australia/Lord_Howe", aDay, 2*time.Hour + 15*time.Minute, "2026-10-02T20:00:00Z",
			[]string{ // from 02:00 to 02:30
				"2026-10-03T02:15:00+10:30 2026-10-02T15:45:00Z",
				"2026-10-04T02:30:00+11:00 2026-10-03T15:30:00Z",
				"2026-10-05T02:15:00+11:00 2026-10-04T15:15:00Z",
			},
		},
		"a day that was left out": {
			"Pacific/Apia", aDay, 6 * time.Hour, "2011-12-28T20:00:00Z",
			[]string{ // from the 29th, 24:00, to the 31st, 00:00
				"2011-12-28T06:00:00-10:00 2011-12-28T16:00:00Z",
				"2011-12-29T06:00:00-10:00 2011-12-29T16:00:00Z",
				"2011-12-31T00:00:00+14:00 2011-12-30T10:00:00Z",
				"2011-12-31T06:00:00+14:00 2011-12-30T16:00:00Z",
				"2012-01-01T06:00:00+14:00 2011-12-31T16:00:00Z",
			},
		},
		"Mondays": {
			"America/New_York", aWeek, 4*aDay + 6*time.Hour, "2026-03-03T00:00:00Z",
			[]string{
				"2026-03-02T06:00:00-05:00 2026-03-02T11:00:00Z",
				"2026-03-09T06:00:00-04:00 2026-03-09T10:00:00Z",
				"2026-03-16T06:00:00-04:00 2026-03-16T10:00:00Z",
			},
		},
		"in UTC": {
			"UTC", aDay, 2*time.Hour + 30*time.Minute, "2026-03-28T03:00:00Z",
			[]string{"2026-03-28T02:30:00Z 2026-03-28T02:30:00Z", "2026-03-29T02:30:00Z 2026-03-29T02:30:00Z"},
		},
		"without a location": {
			"", time.Hour, 15 * time.Minute, "2026-03-28T03:00:00Z",
			[]string{
				"2026-03-28T02:15:00Z 2026-03-28T02:15:00Z", "2026-03-28T03:15:00Z 2026-03-28T03:15:00Z",
				"2026-03-28T04:15:00Z 2026-03-28T04:15:00Z",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var loc *time.Location
			if c.location != "" {
				loc = location(t, c.location)
			}
			virtual(t, func(ctx context.Context, w *world) {
				from, err := time.Parse(time.RFC3339, c.from)
				require.NoError(t, err)
				time.Sleep(time.Until(from))
				var j diary
				late := time.Duration(0)
				_, utc, _ := strings.Cut(c.runs[len(c.runs)-1], " ")
				last, err := time.Parse(time.RFC3339, utc)
				require.NoError(t, err)
				w.every(ctx, 3, time.Until(last)+time.Minute, c.interval, func(_ context.Context, _ *lock.Lease, at time.Time) error {
					if j.began(at) > 1 {
						late = max(late, time.Since(at))
					}
					return nil
				}, lock.At(c.at, loc))
				var runs []string
				for _, at := range j.starts {
					runs = append(runs, at.Format(time.RFC3339)+" "+at.UTC().Format(time.RFC3339))
				}
				assert.Equal(t, c.runs, runs)
				assert.LessOrEqual(t, late, 3*time.Second, "each in its time, but for the first, which has begun before")
			})
		})
	}
}

// An unfinished run is begun again until the end of the next day, however long that day is, also with the shortest
// retention.
func TestEvery_UnfinishedDayIsRunUntilTheEndOfTheNext(t *testing.T) {
	for late, want := range map[time.Duration][]string{
		// The day of change has 25 hours, from 00:30 to 01:30 UTC.
		48*time.Hour + 30*time.Minute: {"2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z"},
		49*time.Hour + 30*time.Minute: {"2026-10-26T01:30:00Z"},
	} {
		virtual(t, func(ctx context.Context, w *world) {
			begin := time.Date(2026, 10, 24, 0, 30, 0, 0, time.UTC)
			time.Sleep(time.Until(begin))
			config := quiet
			config.Retention = aDay // the shortest
			at := lock.At(2*time.Hour+30*time.Minute, location(t, "Europe/Berlin"))
			way := &line{to: w.engine.HTTPClient()}
			dying, die := context.WithCancel(ctx)
			require.ErrorIs(t, w.clientOver(way, config).Every(dying, lock.Name("job"), aDay, func(context.Context, *lock.Lease, time.Time) error {
				way.cut(hung)
				die()
				return nil
			}, at), context.Canceled)

			time.Sleep(time.Until(begin.Add(late)))
			w.engine.Sweep()
			var runs []string
			next, end := context.WithTimeout(ctx, 10*time.Minute)
			defer end()
			require.ErrorIs(t, w.client(config).Every(next, lock.Name("job"), aDay, func(_ context.Context, _ *lock.Lease, at time.Time) error {
				runs = append(runs, at.UTC().Format(time.RFC3339))
				return nil
			}, at), context.DeadlineExceeded)
			assert.Equal(t, want, runs)
		})
	}
}

func TestAt_RefusesImpossibleIntervals(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		berlin := location(t, "Europe/Berlin")
		f := func(context.Context, *lock.Lease, time.Time) error { return nil }
		ops := w.requests(func() {
			for name, x := range map[string]struct {
				interval time.Duration
				at       lock.Option
			}{
				"before it begins":             {time.Hour, lock.At(-time.Millisecond, nil)},
				"a moment before it begins":    {time.Hour, lock.At(-time.Nanosecond, nil)},
				"when the next begins":         {time.Hour, lock.At(time.Hour, nil)},
				"the machine's location":       {aDay, lock.At(0, time.Local)},
				"hours of a location":          {time.Hour, lock.At(0, berlin)},
				"days and hours of a location": {aDay + time.Hour, lock.At(0, berlin)},
				"later than the day":           {aDay, lock.At(aDay, berlin)},
				"a day ahead of UTC":           {aDay, lock.At(0, time.FixedZone("", 24*60*60))},
				"a day behind UTC":             {aDay, lock.At(0, time.FixedZone("", -24*60*60))},
				"many days ahead of UTC":       {aDay, lock.At(0, time.FixedZone("", 100*24*60*60))},
			} {
				ended, cancel := context.WithCancel(ctx) // otherwise a call that accepts the interval would not return
				cancel()
				require.ErrorIs(t, c.Every(ended, lock.Name("x"), x.interval, f, x.at), lock.ErrInvalid, name)
			}
		})
		assert.Empty(t, ops)
	})
}
