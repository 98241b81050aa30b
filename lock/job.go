package lock

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// job is what options set about how Every runs its function.
type job struct {
	option   string // name of an option that was given, for an error; empty for none
	offset   time.Duration
	location *time.Location
	onFailed func(at time.Time, err error)
	retries  func() backoff.BackOff
}

// ofEvery makes an option that only Every accepts.
func ofEvery(name string, set func(*job) error) Option {
	return func(r *request) error {
		r.job.option = name
		return set(&r.job)
	}
}

// At moves the intervals of [Client.Every]: each begins at the offset, counted from where it would begin without At.
// The offset is less than the interval. For an interval of one hour, At(15*time.Minute, nil) is a quarter past each
// hour.
//
// A location is for intervals of whole days. The interval then begins when the clocks of that location show the offset
// as a time of day: At(2*time.Hour+30*time.Minute, berlin) is half past two in the morning, in summer and in winter.
// nil means UTC. time.Local is refused, since it differs between machines. So is a [time.FixedZone] that differs from UTC by
// a day or more. An interval of a week begins on a Thursday. For Monday, use an offset of four days more.
//
// When clocks are put forward past that time, the interval begins at that moment, for example at three o'clock. When
// clocks are put back and show that time twice, it begins at the first of the two. So each day has one run, and an
// interval of a day has 23 to 25 hours.
//
// All instances need the same offset, the same location, and the same version of the time zone data.
func At(offset time.Duration, location *time.Location) Option {
	return ofEvery("At", func(j *job) error {
		j.offset, j.location = offset, location
		return nil
	})
}

// OnFailed sets a function that is called when a run of [Client.Every] has failed and Every goes on. It gets the start
// of the interval and the error. It is called after the lock was released, and before the next run; also if the release
// finds that the lock was lost. Defaults to a warning in [Config.Logger], with the error.
func OnFailed(f func(at time.Time, err error)) Option {
	return ofEvery("OnFailed", func(j *job) error {
		if f == nil {
			return invalid("OnFailed: nil function")
		}
		j.onFailed = f
		return nil
	})
}

// RetryFailed repeats a run of [Client.Every] that has failed, for as long as its interval lasts. The backoff, of
// github.com/cenkalti/backoff/v4, sets the time until this instance repeats the run; Stop means not again. Another instance
// that waits for the lock does not wait for the backoff: it repeats the run at once. Each interval has a backoff of its own.
// All instances need this option, or none. Defaults to none: the interval counts as failed, and the next run is that of the
// next interval.
func RetryFailed(retries func() backoff.BackOff) Option {
	return ofEvery("RetryFailed", func(j *job) error {
		if retries == nil {
			return invalid("RetryFailed: nil function")
		}
		j.retries = retries
		return nil
	})
}
