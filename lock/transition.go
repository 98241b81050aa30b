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
	repeats atomic.Bool // a goroutine releases in the holder's place, or has done so
	unused  atomic.Bool // nothing depends on the session any more

	mu    sync.Mutex // guards the following; never held across I/O
	state lease.State
	gave  bool        // a release has begun while it was held
	place *place      // of the process in the line; nil where it has another one there
	loss  error       // why it has ended by time, or has been found lost; nil while neither
	got   time.Time   // monotonic: when the caller got it; zero before
	limit *clock.Term // of MaxHold; nil for none
	kept  time.Time   // monotonic: when the row's deletion was put off last
	doubt time.Time   // monotonic: when a commit may have been applied last without an answer; zero for never
}

// doubtCommit records that a commit may have been applied, or may yet be. Renewals find out (see due). For a lease of its own a
// goroutine does, if somebody waits who may hold the lock by now. The turn is taken.
func (l *Lease) doubtCommit() {
	c, s := l.client, &l.status
	s.mu.Lock()
	finds := l.session == nil && l.turn.target != nil && !l.mayCommit()
	s.doubt = c.clk().Now()
	s.mu.Unlock()
	if !finds {
		return
	}
	c.tryRun(func() {
		c.repeat(c.closing, c.config.Lease/4, func(ctx context.Context) (done bool) {
			l.maintain(ctx)
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.state.Ended() || !l.mayCommit()
		})
	})
}

// mayCommit reports whether a commit without an answer may yet be applied. It is called with status.mu held.
func (l *Lease) mayCommit() bool {
	return !l.status.doubt.IsZero() && l.client.clk().Ago(l.status.doubt) < latest
}

// inDoubt reports whether a commit may have been applied.
func (l *Lease) inDoubt() bool {
	l.status.mu.Lock()
	defer l.status.mu.Unlock()
	return !l.status.doubt.IsZero()
}

// termCause is why the lease has ended by time; nil while it goes on.
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

// letGo drops a pass that may have been applied, after a write under way: or nobody would take its ticket for a ghost.
func (l *Lease) letGo() {
	c := l.client
	c.tryRun(func() {
		if l.turn.take(c.closing) != nil {
			return
		}
		to := l.turn.target
		l.dropTarget()
		l.turn.end()
		if to != nil && to.session == nil { // nothing tells later whose ghost it is
			c.withdraw(c.closing, nil, func(ctx context.Context) (done bool) {
				return !c.passes(c.remove(ctx, l.key, to.ticket.ID, nil, nil))
			})
		}
	})
}

// endOf is why the lease has ended whose session, or whose own term, has.
func (l *Lease) endOf(cause error) error {
	switch {
	case errors.Is(cause, session.ErrDead):
		return ErrStolen
	case errors.Is(cause, session.ErrClosed), errors.Is(cause, session.ErrIdle):
		return ErrReleased // or it is about to be
	}
	if failed := l.term.Failure(); failed != nil {
		return fmt.Errorf("%w; last renewal: %w", ErrExpired, failed)
	}
	return ErrExpired
}

// givenUp reports whether the holder has released the lock, or tried to, and whether it has committed, or may
// have.
func (l *Lease) givenUp() (released, committed bool) {
	l.status.mu.Lock()
	defer l.status.mu.Unlock()
	return l.status.gave, l.committed.Load() || !l.status.doubt.IsZero()
}

// giveBack releases a lease that its caller never saw.
func (l *Lease) giveBack() {
	ctx, cancel := l.client.clk().Detached(context.Background())
	defer cancel()
	_ = l.release(ctx)
}

// cause is why the lease was lost, or else why its context has ended; nil while it goes on. A context that
// told first that others ask for the lock does not tell of a loss after that.
func (l *Lease) cause() error {
	l.status.mu.Lock()
	defer l.status.mu.Unlock()
	return cmp.Or(l.status.loss, context.Cause(l.ctx))
}

// over is why a lease that is over does not hold the lock any more; nil while it may.
func (l *Lease) over() error {
	l.status.mu.Lock()
	state, loss := l.status.state, l.status.loss
	l.status.mu.Unlock()
	cause := cmp.Or(loss, context.Cause(l.ctx))
	switch {
	case !state.Over():
		return nil
	case state == lease.Released && (l.committed.Load() || !errors.Is(loss, ErrMaxHold)):
		return ErrReleased
	case errors.Is(cause, ErrLost):
		return cause
	}
	return ErrStolen
}

func (l *Lease) is() lease.State {
	l.status.mu.Lock()
	defer l.status.mu.Unlock()
	return l.status.state
}

// on takes the lease to its next state, and carries out what follows from that. cause is why, where the
// event does not tell.
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
	got, limit := s.got, s.limit
	s.mu.Unlock()
	if effects.Has(lease.Cancel) {
		l.cancel(cause)
	}
	if effects.Has(lease.Forget) {
		if limit != nil {
			limit.End(ErrReleased)
		}
		l.forget()
	}
	if got.IsZero() {
		return // nobody has had it
	}
	if ended {
		l.client.metrics.record(l.ctx, holdDuration, l.client.clk().Ago(got))
	}
	if effects.Has(lease.Tell) && (event != lease.End || errors.Is(cause, ErrLost)) { // or else Close ends it, and says so
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
			go f(l, cause) // the application's own, which may Close the client
		}
	}
}

// repeat releases in the holder's place, after a time, and tries again until the lease is over. It does so once.
func (l *Lease) repeat(in time.Duration) {
	c := l.client
	if l.status.repeats.Swap(true) {
		return
	}
	c.tryRun(func() {
		if c.clk().Sleep(c.closing, in) != nil {
			return
		}
		c.repeat(c.closing, l.betweenTries(), func(ctx context.Context) (done bool) { // in the end, Close releases it
			_ = l.release(ctx)
			return l.is().Over() || l.termCause() != nil
		})
	})
}

// repeatOwn has the release of a lease of its own repeated, which no renewal does.
func (l *Lease) repeatOwn() {
	if l.session == nil && !l.is().Over() {
		l.repeat(l.betweenTries())
	}
}

// betweenTries is how long it takes until something is tried again for the lease.
func (l *Lease) betweenTries() time.Duration {
	return min(l.request.length(l.client), l.client.config.Lease) / 8
}

// forget lets go of what the lease needs while it goes on.
func (l *Lease) forget() {
	c := l.client
	c.tickets.drop(l.holding.ID)
	if l.session == nil {
		l.term.End(ErrReleased)
	}
	l.status.mu.Lock()
	p := l.status.place
	l.status.place = nil
	l.status.mu.Unlock()
	if l.session != nil && !l.status.unused.Swap(true) {
		l.session.Unuse()
	}
	if p != nil {
		p.Over()
	}
}

func (l *Lease) answer(ctx context.Context, q session.Question) bool {
	switch q.Kind {
	case session.Revoke:
		l.on(lease.Ask, nil)
	case session.Claim:
		if q.Fence == l.holding.Fence {
			return true
		}
		// A ghost may be first under its ticket: the lock was lost, or a commit has no answer.
		if l.turn.taken() || l.turn.take(ctx) != nil {
			return false
		}
		defer l.turn.end()
		row, err := l.client.read(ctx, l.key)
		switch {
		case errors.Is(err, table.ErrNotFound), errors.Is(err, ErrNotLock):
			l.taken()
			return true
		case err == nil && !row.Holds(l.holding):
			_ = l.gone(ctx, &row)
			return l.is().Over() && l.client.remove(ctx, l.key, l.holding.ID, &row, nil) == nil
		}
		return err == nil
	case session.Forced:
		row, err := l.client.read(ctx, l.key)
		back := l.holding.Kind == lockrow.Shared && q.Fence == l.holding.Fence // by a late copy of its entry
		if err == nil && (back || !row.Holds(l.holding)) || errors.Is(err, table.ErrNotFound) || errors.Is(err, ErrNotLock) {
			l.on(lease.Taken, nil)
			l.letGo()
		}
		return err == nil || l.is().Over() || !l.client.table.Retryable(err)
	}
	return true
}
