package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lease"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/table"
)

type status struct {
	repeats atomic.Bool // a goroutine repeats the release for the holder, or has done so

	mu sync.Mutex // guards the following; never held across I/O
	known
}

// known is what is known of a lease at one moment.
type known struct {
	state lease.State
	gave  bool          // a release has begun while the lock was held
	place *place        // the process's place in the line; nil if this lease does not have it
	loss  error         // why the lease expired or was lost; nil if neither
	got   time.Time     // monotonic: when the caller got the lease; zero before
	limit *clock.Term   // the term of MaxHold; nil without MaxHold
	kept  clock.Instant // when the row's deletion was put off last; the time until it goes on while the machine is suspended
	doubt time.Time     // monotonic: when a commit without an answer was sent last; zero for never
}

// get returns what is known now.
func (s *status) get() known {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// doubtCommit records that a commit may have been applied, or may yet be. Renewals find out (see due). A Fixed lease has no renewals: for
// it a goroutine finds out, if the commit passes the lock to a goroutine that may hold it by now. The turn is taken.
func (l *Lease) doubtCommit() {
	c := l.client
	finds := l.session == nil && l.turn.target != nil && !l.mayCommit()
	l.status.mu.Lock()
	l.status.doubt = c.clk().Now()
	l.status.mu.Unlock()
	if !finds {
		return
	}
	c.tryRun(func() {
		c.repeat(c.closing, c.config.Lease/4, func(ctx context.Context) (done bool) {
			l.maintain(ctx)
			return l.is().Ended() || !l.mayCommit()
		})
	})
}

// mayCommit reports whether a commit without an answer may still be applied.
func (l *Lease) mayCommit() bool {
	sent := l.status.get().doubt
	return !sent.IsZero() && l.client.clk().Ago(sent) < latest
}

// inDoubt reports whether a commit without an answer may have been applied.
func (l *Lease) inDoubt() bool { return !l.status.get().doubt.IsZero() }

// termCause ends the lease if its term has ended, and returns why; nil while the term goes on.
func (l *Lease) termCause() error {
	if cause := l.term.Cause(); cause != nil {
		l.termEnded(cause)
		return l.cause()
	}
	return nil
}

func (l *Lease) termEnded(cause error) {
	state := l.is()
	doubt := l.inDoubt() || l.turn.taken() || state == lease.Releasing || state == lease.Expired
	if l.on(lease.End, l.endOf(cause)); doubt {
		l.letGo()
	}
}

// letGo drops the target of a pass in doubt, after a write under way. Until then nobody takes its ticket for a ghost.
func (l *Lease) letGo() {
	c := l.client
	c.tryRun(func() {
		if l.turn.take(c.closing) != nil {
			return
		}
		to := l.turn.target
		l.dropTarget()
		l.turn.end()
		if to != nil && to.fixed > 0 { // a Fixed ticket does not show whose ghost it is: remove it now
			to.withdraw(c.closing)
		}
	})
}

// endOf returns the error of a lease whose term has ended with cause.
func (l *Lease) endOf(cause error) error {
	switch {
	case errors.Is(cause, session.ErrDead):
		return ErrStolen
	case errors.Is(cause, session.ErrClosed):
		return ErrReleased // it is released, or about to be
	}
	if failed := l.term.Failure(); failed != nil {
		return fmt.Errorf("%w; last renewal: %w", ErrExpired, failed)
	}
	return ErrExpired
}

// cause returns why the lease was lost, or else why its context has ended; nil while the lease goes on. The context alone is not
// enough: if it ended with ErrRevoked, it does not show a later loss.
func (l *Lease) cause() error { return cmp.Or(l.status.get().loss, context.Cause(l.ctx)) }

// over returns why the lease does not hold the lock any more; nil while it may hold it.
func (l *Lease) over() error {
	switch s := l.status.get(); {
	case !s.state.Over():
		return nil
	case s.state == lease.Released && (l.committed.Load() || !errors.Is(s.loss, ErrMaxHold)):
		return ErrReleased
	case errors.Is(s.loss, ErrLost):
		return s.loss
	}
	return ErrStolen // the lease had ended by Close, and the release found that somebody else has the lock
}

func (l *Lease) is() lease.State { return l.status.get().state }

// on takes the lease to its next state, and carries out the effects. cause is the reason; nil if the event alone tells it.
func (l *Lease) on(event lease.Event, cause error) {
	cause = cmp.Or(cause, [...]error{lease.Ask: ErrRevoked, lease.GivenUp: ErrReleased, lease.Taken: ErrStolen}[event])
	s := &l.status
	s.mu.Lock()
	next, effects := s.state.On(event)
	ended := next.Ended() && !s.state.Ended()
	s.state = next
	s.gave = s.gave || next == lease.Releasing
	if ended && next != lease.Released {
		s.loss = cause
	}
	got := s.got
	s.mu.Unlock()
	if effects.Has(lease.Cancel) {
		l.cancel(cause)
	}
	if effects.Has(lease.Forget) {
		l.forget()
	}
	if got.IsZero() {
		return // no caller ever had the lease
	}
	if ended {
		l.client.metrics.record(l.ctx, holdDuration, l.client.clk().Ago(got))
	}
	if effects.Has(lease.Tell) && (event != lease.End || errors.Is(cause, ErrLost)) { // an End without a loss comes from Close, which tells it
		l.tell(event, cause)
	}
	if effects.Has(lease.GiveUp) {
		l.repeat(0)
	}
}

func (l *Lease) tell(event lease.Event, cause error) {
	c := l.client
	switch event {
	case lease.Ask:
		c.metrics.count(l.ctx, revocations)
		c.config.Logger.Info("lock: asked to release", "fence", l.holding.Fence)
	case lease.GivenUp:
		c.metrics.count(l.ctx, releases)
	default:
		c.metrics.count(l.ctx, losses, lossOf(cause))
		c.config.Logger.Warn("lock: lost", "fence", l.holding.Fence, "cause", cause)
		if f := c.config.OnLost; f != nil {
			go f(l, cause) // not by tryRun: f may call Close, which waits for those goroutines
		}
	}
}

// repeat starts a goroutine that releases for the holder after a time, and tries again until the lease is over. Only the first call counts.
func (l *Lease) repeat(in time.Duration) {
	c := l.client
	if l.status.repeats.Swap(true) {
		return
	}
	c.tryRun(func() {
		if c.clk().Sleep(c.closing, in) != nil {
			return
		}
		c.repeat(c.closing, l.betweenTries(), func(ctx context.Context) (done bool) { // if Close begins, Close releases the lock
			_ = l.release(ctx)
			return l.is().Over() || l.termCause() != nil
		})
	})
}

// repeatOwn repeats the release of a Fixed lease. For other leases, renewals of the session do that.
func (l *Lease) repeatOwn() {
	if l.session == nil && !l.is().Over() {
		l.repeat(l.betweenTries())
	}
}

// betweenTries returns the time between two tries to release the lease.
func (l *Lease) betweenTries() time.Duration {
	return min(l.request.length(l.client), l.client.config.Lease) / 8
}

// forget frees what the lease needs only while it lasts: its entry in tickets, its terms, its session and its place. Only the first call
// counts.
func (l *Lease) forget() {
	if !l.client.tickets.drop(l.holding.ID) {
		return
	}
	if l.session == nil {
		l.term.End(ErrReleased)
	} else {
		l.session.Unuse()
	}
	l.status.mu.Lock()
	p, limit := l.status.place, l.status.limit
	l.status.place = nil
	l.status.mu.Unlock()
	if limit != nil {
		limit.End(ErrReleased)
	}
	if p != nil {
		p.Over()
	}
}

// now reads the lock's row. It is the zero Row, which names nobody, if no lock is at its key any more.
func (l *Lease) now(ctx context.Context) (lockrow.Row, error) {
	row, err := l.client.read(ctx, l.key)
	if errors.Is(err, table.ErrNotFound) || errors.Is(err, ErrNotLock) {
		err = nil
	}
	return row, err
}

func (l *Lease) answer(ctx context.Context, q session.Question) bool {
	switch q.Kind {
	case session.Revoke:
		l.on(lease.Ask, nil)
	case session.Claim:
		if q.Fence == l.holding.Fence {
			return true
		}
		// The ticket is first under another fence: as a ghost, if the lock was lost or a commit without an answer was applied.
		if l.turn.taken() || l.turn.take(ctx) != nil {
			return false
		}
		defer l.turn.end()
		row, err := l.now(ctx)
		if err == nil && !row.Holds(l.holding) {
			_ = l.gone(ctx, &row)
			return l.is().Over() && l.client.remove(ctx, l.key, l.holding.ID, &row, nil) == nil
		}
		return err == nil
	case session.Forced:
		row, err := l.now(ctx)
		back := l.holding.Kind == lockrow.Shared && q.Fence == l.holding.Fence // a late copy of its entry may have brought it back
		if err == nil && (back || !row.Holds(l.holding)) {
			l.on(lease.Taken, nil)
			l.letGo()
		}
		return l.is().Over() || !again(err)
	}
	return true
}
