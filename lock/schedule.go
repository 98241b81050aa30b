package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// Bounds of the interval that Every accepts. DynamoDB's clock resolves to a second.
const (
	MinInterval = 2 * time.Second
	MaxInterval = 366 * 24 * time.Hour
)

// maxJitter is how much later than an interval an instance looks at most.
const maxJitter = time.Second

// Every runs f once per interval, across all instances that call it with the same target,
// interval and At: 2 s to 366 days in whole milliseconds. Intervals are numbered from 1970 by
// DynamoDB's clock, which local clocks do not come into: one of a day begins at midnight
// UTC, one of a week on Thursdays, unless At says otherwise. at is the start of the interval that
// f is to run for, in the location that At names or in UTC.
//
// The lock's row remembers the last interval whose run has finished, which the write says
// that releases the lock: after f has returned nil, or f's own lease.Commit. What f commits
// is therefore applied once per interval, together with that. What f does otherwise happens
// at least once for the one run that is recorded: a run that is broken off, since its
// instance crashed or lost the lock, is begun again by another one, until the end of the
// next interval; loss of the lock is no error of f. An instance that waits for the lock runs
// the interval in which it began to wait, even after that has ended, if nobody has since.
// Other intervals are left out, and not made up for: those in which no instance was alive,
// or all were waiting for the run of an earlier one. Where the length of the interval is
// changed, one that begins no later than the last recorded run counts as run.
//
// Where f returns an error while the lock is held, the run has failed. The row records that
// (Record.LastFailed) unless f has committed: no instance runs that interval again, unless
// RetryFailed says so. OnFailed is told, and Every goes on with the next interval.
//
// A minimum time to hold the lock, which other schedulers need since their clocks differ, is
// not needed: an interval that was recorded is done, however short its run was.
//
// Every returns
//   - an error that matches ctx.Err() or ErrClosed when ctx ends or the client is closed, after f
//     has returned, joined with the error of f that it met there;
//   - an error that matches ErrReleased when f has released the lease itself: that leaves open
//     whether the run has finished. Use Commit, or return;
//   - what Lead returns for, but for errors of f.
//
// f's context ends with ctx and with the lease; a run that stops for that reason has to
// return an error, or it counts as finished where the lock is still held. Everything else
// goes on for as long as ctx lasts. A panic of f, or of a function of its options, releases the
// lock and goes on to the caller.
//
// Cost per interval: each instance sends one read of one unit, and another after an answer
// whose date differs by more than an interval from those before; the one that runs f one write
// to acquire, one more if it has waited for that, and one to release. Others that come while f
// runs wait like Acquire until the run has finished: one write to enter the line, and one to
// leave it. One write opens a session where the client has none, and one deletes it, unless the
// option Fixed is given.
func (c *Client) Every(
	ctx context.Context, target Target, interval time.Duration,
	f func(ctx context.Context, lease *Lease, at time.Time) error, opts ...Option,
) error {
	if f == nil {
		return wrap("every", invalid("nil function"))
	}
	a, err := c.acquisition(ctx, []Target{target}, slices.Concat(opts, []Option{ofRun(&run{})})) // to check what it is made of
	if err != nil {
		return wrap("every", err)
	}
	s := &schedule{key: a.wanted[0].key, interval: interval.Truncate(time.Millisecond), job: a.job, f: f}
	if err := s.intervals.check(interval, a.job.offset, a.job.location); err != nil {
		return wrap("every", err)
	}
	if c.closing.Err() != nil {
		return wrap("every", ErrClosed)
	}
	s.campaign = c.campaign(ctx)
	defer s.stop()
	for {
		r, err := s.next()
		if err == nil {
			var over bool
			if over, err = s.turn(ctx, target, r, opts); over {
				return wrap("every", err)
			}
		}
		if err == nil || errors.Is(err, errSettled) && s.open.Err() == nil {
			continue
		}
		if err := s.again(err); err != nil {
			return wrap("every", err)
		}
	}
}

// ofRun has an acquisition take the lock for a run.
func ofRun(r *run) Option {
	return func(req *request) error {
		req.run = r
		return nil
	}
}

// schedule is one call of Every.
type schedule struct {
	*campaign
	key       keys.Key
	interval  time.Duration
	intervals intervals
	job       job
	f         func(ctx context.Context, lease *Lease, at time.Time) error
	done      time.Time // start of the last interval that is known to be recorded
	told      time.Time // DynamoDB's time, as the answer to the last look told it
	toldAt    time.Time // monotonic: when it did
	failures  failures
}

// errNoTime means that intervals cannot be told.
var errNoTime = errors.New("DynamoDB's answers do not tell its time")

// next waits until there is an interval to run.
//
// Cost: one read unit per interval, if it is done already.
func (s *schedule) next() (*run, error) {
	for {
		if err := s.sleep(); err != nil {
			return nil, err
		}
		row, now, err := s.look()
		if err != nil {
			return nil, err
		}
		r := &run{at: s.intervals.at(now.UnixMilli()), intervals: s.intervals, clock: s.client.clk(), behind: len(row.Line) > 0}
		switch {
		case unfinished(&row, r.at, s.intervals.before(r.at)),
			begunSince(&row, r.at, s.intervals.next(r.at)): // somebody's answers are ahead of these
			r.at = row.Running
			return r, nil
		case row.Ran < r.at:
			return r, nil
		}
		s.done = time.UnixMilli(r.at)
	}
}

// look reads the row, and the time. One answer alone is not believed that differs by more than an
// interval from what others have told: a run that is recorded ahead of its time has none run until
// then, and one that is taken to lie ahead is slept away.
//
// Cost: one read unit, two after such an answer.
func (s *schedule) look() (row lockrow.Row, now time.Time, err error) {
	told, known := s.client.clk().Told()
	began := s.client.clk().Now()
	for {
		if row, err = s.read(); err != nil {
			return row, now, err
		}
		var ok bool
		if now, ok = s.client.clk().Told(); !ok {
			return row, now, errNoTime
		}
		if !known || now.Sub(told.Add(s.client.clk().Ago(began))).Abs() <= s.interval {
			s.told, s.toldAt = now, s.client.clk().Now()
			return row, now, nil
		}
		known = false
	}
}

// read reads the row; one that does not exist has run nothing.
func (s *schedule) read() (row lockrow.Row, err error) {
	c := s.client
	var h attempt.History
	err = c.repeater.Do(s.open, attempt.MaxTimeout, &h, func(ctx context.Context, _ clock.Instant) (err error) {
		row, err = c.read(ctx, s.key)
		return err
	})
	if errors.Is(err, table.ErrNotFound) {
		return lockrow.Row{}, nil
	}
	return row, err
}

// sleep waits for the interval after the one that is done to begin, by the time that the last look told and
// a little longer, so that not all instances look at once. It returns early where the wall
// clock says that the machine was suspended: the process's clock has stood still then, and
// the next answer tells the time.
func (s *schedule) sleep() error {
	if s.done.IsZero() {
		return nil
	}
	clk := s.client.clk()
	begin := time.UnixMilli(s.intervals.next(s.done.UnixMilli())).Add(clk.N(min(s.interval/20, maxJitter)))
	for {
		left := begin.Sub(s.told.Add(clk.Ago(s.toldAt)))
		if left <= 0 {
			return nil
		}
		start := clk.Instant()
		if err := clk.Sleep(s.open, min(left, time.Minute)); err != nil {
			return err
		}
		if clk.Instant().Since(start)-clk.Ago(start.Mono) > time.Second {
			return nil
		}
	}
}

// turn acquires the lock for an interval and runs f. over means that Every ends with err.
// Otherwise it goes on: at once where err is nil or errSettled.
func (s *schedule) turn(ctx context.Context, target Target, r *run, opts []Option) (over bool, err error) {
	at := r.at
	l, err := one(s.client.acquire(ctx, []Target{target}, slices.Concat(opts, []Option{ofRun(r)}), (*acquisition).wait))
	if err != nil {
		return false, err
	}
	_, err = s.hold(ctx, l, func(ctx context.Context, l *Lease) error { return s.f(ctx, l, s.intervals.time(at)) })
	released, committed := l.givenUp() // looked at before anybody else than f may have caused it
	cause, ended := l.cause(), s.open.Err() != nil
	alive := cause == nil || errors.Is(cause, ErrReleased)
	askedBack := errors.Is(cause, ErrRevoked) && !errors.Is(cause, ErrLost)
	wait := backoff.Stop // until the run is repeated
	switch {
	case released && !committed && !ended && (alive || askedBack && err == nil):
		// Should that have failed, it may have been applied all the same.
		byF := fmt.Errorf("%w by f: the run is not recorded", ErrReleased)
		return true, join(join(byF, err), s.release(ctx, l))
	case err == nil:
		r.ending.Store(finished)
	case !ended && alive:
		r.ending.Store(failed)
		if wait = s.failures.next(at, s.job.retries); wait != backoff.Stop {
			r.ending.Store(repeated)
		}
	}
	freed := s.release(ctx, l)
	switch {
	case ended:
		if errors.Is(freed, ErrLost) {
			freed = nil
		}
		return true, join(s.ended(err), freed)
	case err != nil && !alive:
		return false, cause
	case err != nil:
		s.failed(at, err)
	}
	switch {
	case freed != nil:
	case l.committed.Load() || wait == backoff.Stop && (cause == nil || err != nil):
		s.done = time.UnixMilli(at) // or else the row tells
	case wait != backoff.Stop:
		freed = s.client.clk().Sleep(s.open, wait)
	}
	return false, freed
}

// failed tells of a run that has failed, after which Every goes on.
func (s *schedule) failed(at int64, err error) {
	if s.job.onFailed == nil {
		s.client.config.Logger.Warn("lock: a run of Every has failed", "error", err)
		return
	}
	s.job.onFailed(s.intervals.time(at), err)
}

// release gives the lock up, repeating it for as long as the lease goes on: on it depends
// whether the run is recorded.
func (s *schedule) release(ctx context.Context, l *Lease) error {
	for {
		bounded, cancel := s.client.clk().Detached(ctx)
		err := l.release(bounded)
		cancel()
		if err == nil || errors.Is(err, ErrLost) || l.cause() != nil || s.again(err) != nil {
			return err
		}
	}
}
