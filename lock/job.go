package lock

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// job is what options say of how Every runs its function.
type job struct {
	option   string // one that was given; empty for none
	offset   time.Duration
	location *time.Location
	onFailed func(at time.Time, err error)
	retries  func() backoff.BackOff
}

// ofEvery makes an option that other calls than Every refuse.
func ofEvery(name string, set func(*job) error) Option {
	return func(r *request) error {
		r.job.option = name
		return set(&r.job)
	}
}

// At has the intervals of Every begin at an offset, less than an interval, from where they would: in an interval of an hour,
// At(15*time.Minute, nil) is a quarter past.
//
// A location is for intervals of whole days. They begin when the clocks there show the offset, as a time of day:
// At(2*time.Hour+30*time.Minute, berlin) is half past two in the morning, in summer and in winter. An interval of a week
// begins on a Thursday, as 1970-01-01 was one: an offset of 4 days more makes that a Monday. nil is UTC. time.Local is
// refused: it is not the same on all machines.
//
// Where clocks are put forward past that time, the interval begins at that moment: at three o'clock on that day. Where they
// are put back, so that they show it twice, it begins at the first. Each day has one run therefore, and an interval of a day
// has 23 to 25 hours.
//
// All instances need the same offset and location. Where a law changes the time of a location, they need the same time zone
// data, too.
func At(offset time.Duration, location *time.Location) Option {
	return ofEvery("At", func(j *job) error {
		j.offset, j.location = offset.Truncate(time.Millisecond), location
		return nil
	})
}

// OnFailed is called with the error of each run of Every that has failed and after which Every goes on, and with the start of
// its interval, after the lock was released and before anything else is run. Defaults to a warning in Config.Logger, with the
// error.
func OnFailed(f func(at time.Time, err error)) Option {
	return ofEvery("OnFailed", func(j *job) error {
		if f == nil {
			return invalid("OnFailed: nil function")
		}
		j.onFailed = f
		return nil
	})
}

// RetryFailed has Every run an interval again whose run has failed, for as long as the interval lasts. Another instance that
// waits for the lock does so at once, this one when a backoff says; its Stop gives the interval up. Each interval has a
// backoff of its own. All instances need the same. Defaults to none: the interval counts as failed, and the next one is run in
// its time.
func RetryFailed(retries func() backoff.BackOff) Option {
	return ofEvery("RetryFailed", func(j *job) error {
		if retries == nil {
			return invalid("RetryFailed: nil function")
		}
		j.retries = retries
		return nil
	})
}
