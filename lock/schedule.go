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

// Bounds of the interval of [Client.Every]. DynamoDB's clock has a resolution of one second.
const (
	MinInterval = 2 * time.Second
	MaxInterval = 366 * 24 * time.Hour
)

// maxJitter bounds how long after the start of an interval an instance looks at the row.
const maxJitter = time.Second

// maxSleep bounds how long an instance counts on its monotonic clock, which can be slow by some ten thousandths: by 20 s a day.
const maxSleep = 2 * time.Hour

// Every runs f once per interval, in one of all the instances that call it with the same target, interval and [At]. An
// interval is 2 s to 366 days long, in whole milliseconds. f gets its start. Every returns when ctx ends.
//
// Intervals are counted from 1970 by DynamoDB's clock; local clocks do not matter. An interval of a day begins at
// midnight UTC, one of a week on Thursday, unless At moves it. at is the start of the interval, in the location of At
// or in UTC.
//
// A run is recorded in the lock's row when it has finished: by the write that releases the lock after f has returned nil, or
// by f's own [Lease.Commit]. So what f commits is applied once per interval. Everything else that f does can happen more
// than once. An interval that is recorded is not run again, also if f took only a moment.
//
// What happens to an interval in other cases:
//
//   - f returns an error while the lock is held: the run has failed. The row records that ([Record.LastFailed]), unless
//     f has committed. No instance runs the interval again, unless [RetryFailed] is given. Every calls [OnFailed] and
//     continues with the next interval.
//   - The instance crashes or loses the lock, or f returns an error because somebody has asked for the lock
//     ([Client.Revoke]): the run was interrupted, which is no error of f. An instance begins it again, until the end of
//     the next interval.
//   - The run takes longer than the interval. When it ends, one of the instances runs the present interval at once. The
//     intervals between are left out.
//   - An instance has to wait for the lock: it then runs the interval in which it began to wait, also if that has ended
//     meanwhile, unless that or a later one is recorded.
//   - No instance is alive for a part of the interval: the next instance that calls Every runs the interval at once,
//     however late. So a job of a day with At(2*time.Hour+30*time.Minute, nil), first deployed at 15:00, runs at 15:00.
//   - No instance is alive until the interval ends: it is left out, and not run later.
//
// f has to return when its context ends, which happens when ctx ends or when the lease ends. It has to return an error
// then: nil means that the run has finished. A panic in f, or in a function of an option, releases the lock. It
// is not recovered.
//
// Every returns in these cases:
//
//   - ctx ends or the client is closed: after f has returned, with an error that matches ctx.Err() or [ErrClosed],
//     joined with that of f.
//   - f has called [Lease.Release]: with an error that matches [ErrReleased], since this does not tell whether the run
//     has finished. Let f return, or use Commit.
//   - Another attempt cannot help: see [Client.Lead]; also [ErrNoTime].
//
// Everything else is repeated until ctx ends. If you change the length, the first interval that is run is one that begins
// after the last recorded start.
//
// Cost per interval: each instance sends one read of one unit (two if the time in DynamoDB's answer differs from
// earlier ones by more than an interval). While it waits, it sends one more every two hours. The instance that runs f
// sends one write to acquire and one to release, and one more if it had to wait. An instance that waits for the run of
// another sends one write to enter the line, one to leave it, and looks of half a read unit each (REFERENCE.md, Waiting). A
// client without a session sends one more write, which opens it; none with [Fixed]. A session lasts for half a lease without
// any lock, so a client that only calls Every opens it in each interval.
func (c *Client) Every(
	ctx context.Context, target Target, interval time.Duration,
	f func(ctx context.Context, lease *Lease, at time.Time) error, opts ...Option,
) error {
	if f == nil {
		return wrap("every", invalid("nil function"))
	}
	a, err := c.acquisition(ctx, []Target{target}, slices.Concat(opts, []Option{ofRun(&run{})})) // checks the arguments, and gives the key
	if err != nil {
		return wrap("every", err)
	}
	s := &schedule{key: a.entries[0].key, job: a.job}
	if s.intervals, err = newIntervals(interval, s.job.offset, s.job.location); err != nil {
		return wrap("every", err)
	}
	if s.job.onFailed == nil {
		s.job.onFailed = func(_ time.Time, err error) { c.config.Logger.Warn("lock: a run of Every has failed", "error", err) }
	}
	s.campaign = c.campaign(ctx, min(c.config.Lease, interval)/2)
	return wrap("every", s.run(func() (over bool, err error) {
		r, err := s.next()
		if err != nil {
			return false, err
		}
		l, err := one(c.acquire(ctx, []Target{target}, slices.Concat(opts, []Option{ofRun(r)}), (*acquisition).wait))
		if err != nil {
			return false, err
		}
		at := s.intervals.time(r.at)
		return s.end(ctx, l, r, s.hold(ctx, l, func(ctx context.Context, l *Lease) error { return f(ctx, l, at) }))
	}))
}

func ofRun(r *run) Option { return set(func(req *request) { req.run, req.alone = r, "Every" }) }

type schedule struct {
	*campaign
	key       keys.Key
	intervals intervals
	job       job
	done      int64         // start of the last interval that is known to be recorded, epoch milliseconds; 0 for none
	told      time.Time     // DynamoDB's time in the answer to the last look
	toldAt    clock.Instant // when that answer came

	retried int64           // start of the last interval with a failed run
	retries backoff.BackOff // of that interval; nil if its runs are not repeated
}

// next waits until there is an interval to run.
//
// Cost: one read unit per interval that is done already, and one per maxSleep of waiting.
func (s *schedule) next() (*run, error) {
	for {
		if err := s.sleep(); err != nil {
			return nil, err
		}
		row, now, err := s.look()
		if err != nil {
			return nil, err
		}
		at := s.intervals.at(now.UnixMilli())
		if begun(&row, s.intervals.before(at), s.intervals.next(at)) {
			at = row.Running // its run was interrupted; or it is the next one, begun by an instance whose answers are ahead
		}
		if row.Ran < at {
			return &run{at: at, intervals: s.intervals, behind: len(row.Line) > 0}, nil
		}
		s.done = at
	}
}

// look reads the row and DynamoDB's time. If the time differs by more than an interval from earlier answers, a second read decides. With
// a wrong time, a run could be recorded ahead of its time, and no other would run until then; or this instance could sleep for too long.
// If there is no row, nothing has run.
//
// Cost: one read unit, two after such an answer.
func (s *schedule) look() (row lockrow.Row, now time.Time, err error) {
	c, clk := s.client, s.client.clk()
	told, known := clk.Told()
	began := clk.Now()
	for {
		_, err = c.repeater.Do(s.open, attempt.MaxTimeout, func(ctx context.Context) (err error) {
			row, err = c.read(ctx, s.key)
			return err
		})
		if err != nil && !errors.Is(err, table.ErrNotFound) {
			return row, now, err
		}
		var ok bool
		if now, ok = clk.Told(); !ok {
			return row, now, ErrNoTime
		}
		if !known || now.Sub(told.Add(clk.Ago(began))).Abs() <= s.intervals.length() {
			s.told, s.toldAt = now, clk.Instant()
			return row, now, nil
		}
		known = false
	}
}

// sleep waits until the interval after the last recorded one begins, by the time that the last look told. It then waits a little longer,
// so that not all instances look at once. It returns early if that time is too old to count on the monotonic clock since, or if the wall
// clock shows that the machine was suspended, so that the monotonic clock stood still: then only the next answer tells the time.
func (s *schedule) sleep() error {
	if s.done == 0 {
		return nil
	}
	clk := s.client.clk()
	begin := s.begin(s.done).Add(clk.N(min(s.intervals.length()/20, maxJitter)))
	for last := s.toldAt; ; {
		left, now := min(s.until(begin), maxSleep-clk.Ago(s.toldAt.Mono)), clk.Instant()
		if left <= 0 || now.Since(last)-now.Mono.Sub(last.Mono) > time.Second {
			return nil
		}
		last = now
		if err := clk.Sleep(s.open, min(left, time.Minute)); err != nil {
			return err
		}
	}
}

// begin returns the time at which DynamoDB's answers, dated in whole seconds, show that the interval after the one at start has begun.
func (s *schedule) begin(start int64) time.Time {
	return time.UnixMilli(s.intervals.next(start)).Add(time.Second - 1).Truncate(time.Second)
}

// until returns how long it takes until a time of DynamoDB's clock, by what the last look told.
func (s *schedule) until(then time.Time) time.Duration {
	return then.Sub(s.told.Add(s.client.clk().Ago(s.toldAt.Mono)))
}

// end releases the lock after a run that returned err. over means that Every ends with the error. Otherwise Every goes on: at once if
// the error is nil.
func (s *schedule) end(ctx context.Context, l *Lease, r *run, err error) (over bool, _ error) {
	released, committed := l.status.get().gave, l.committed.Load() || l.inDoubt() // read first: so far, only f can have caused these
	cause, ended := l.cause(), s.open.Err() != nil
	held := cause == nil || errors.Is(cause, ErrReleased)
	wait := backoff.Stop // until the run is repeated; Stop: never
	switch {
	case released && !committed && !ended && (held || err == nil):
		// If f's release failed, it may still have been applied, without a record of the run.
		byF := fmt.Errorf("%w by the function of Every: the run is not recorded", ErrReleased)
		return true, join(byF, err, s.release(ctx, l))
	case err == nil:
		r.ending.Store(uint32(lockrow.FinishRun))
	case held && !ended:
		l.orGiveBack(func() { wait = s.retry(r.at) })
		if s.until(s.begin(r.at)) <= 0 { // the interval is over: otherwise all instances that wait would repeat the run in turn
			wait = backoff.Stop
		}
		ending := lockrow.FailRun
		if wait != backoff.Stop {
			ending = lockrow.DropRun
		}
		r.ending.Store(uint32(ending))
	}
	freed := s.release(ctx, l)
	switch {
	case ended:
		return true, s.ended(err, freed)
	case err != nil && !held:
		return false, cause
	case err != nil:
		s.job.onFailed(s.intervals.time(r.at), err)
	}
	switch {
	case freed != nil:
		return false, freed
	case l.committed.Load(), wait == backoff.Stop && !released && !errors.Is(cause, ErrLost): // it is recorded; in other cases the row tells
		s.done = r.at
	case wait != backoff.Stop:
		return false, s.client.clk().Sleep(s.open, min(wait, s.until(s.begin(r.at)))) // not beyond the next start
	}
	return false, nil
}

// retry returns how long to wait before the failed run of an interval is repeated; backoff.Stop if it is not repeated.
func (s *schedule) retry(at int64) time.Duration {
	if s.job.retries != nil && s.retried != at {
		s.retried, s.retries = at, s.job.retries()
	}
	if s.retries == nil { // no RetryFailed, or its function returned nil: no repetition, as in table.Retry
		return backoff.Stop
	}
	return s.retries.NextBackOff()
}

// release gives the lock up. It repeats that for as long as the lease lasts, since this write also records the run.
func (s *schedule) release(ctx context.Context, l *Lease) error {
	for {
		err := l.giveBack(ctx)
		if err == nil || errors.Is(err, ErrLost) || l.is().Ended() || s.again(err) != nil {
			return err
		}
	}
}
