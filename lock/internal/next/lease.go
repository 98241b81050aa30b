package next

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lease"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
)

// Lease is a lock that was acquired. It is safe for concurrent use.
type Lease struct {
	client  *Client
	key     keys.Key
	ticket  lockrow.Ticket
	fence   int64
	session *session.Session // nil for a lease of its own
	own     *clock.Term      // nil under a session
	place   *place           // of the process in the line; nil where it has another one there
	since   time.Time        // monotonic: when the process came to be first

	ctx    context.Context
	cancel context.CancelCauseFunc

	// turn is held while a write or the release is under way: two transactions on one row conflict.
	turn chan struct{}
	// Of the turn's holder:
	row     lockrow.Row // as it was seen last
	writes  int64       // number of the last guarded write
	inDoubt bool        // a release may have been applied
	targets []target    // of passes that may have been applied

	mu    sync.Mutex // guards the following; never held across I/O
	state lease.State
}

// target is a ticket that the lock may have been passed to.
type target struct {
	ticket  lockrow.Ticket
	session *session.Session
	claim   *waitqueueClaim
}

func newLease(a *acquisition, fence int64, start clock.Instant, row *lockrow.Row) *Lease {
	c := a.client
	l := &Lease{
		client: c, key: a.key, ticket: a.ticket, fence: fence, session: a.session, since: c.clock.Now(),
		turn: make(chan struct{}, 1), row: *row,
	}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	if l.session == nil {
		length := a.fixed
		margin := max(length/100, 10*time.Millisecond)
		l.own = c.terms.Begin(start, length-min(margin, length/2), clock.Watch{End: l.termEnded})
	}
	c.tickets.hold(l.ticket.ID, l)
	return l
}

func (l *Lease) holding() lockrow.Holding { return lockrow.Holding{ID: l.ticket.ID, Fence: l.fence} }

// Context ends no later than the lease.
func (l *Lease) Context() context.Context { return l.ctx }

// Fence is the fencing token.
func (l *Lease) Fence() int64 { return l.fence }

// ID is the ticket's.
func (l *Lease) ID() string { return l.ticket.ID }

// begin hands the lease to its caller, unless it is over already or nobody wants it any more.
func (l *Lease) begin(ctx context.Context) (*Lease, error) {
	c := l.client
	var err error
	switch {
	case l.session != nil && l.session.Cause() != nil:
		l.termEnded(l.session.Cause())
		err = ErrExpired
	case l.own != nil && l.own.Cause() != nil:
		err = ErrExpired
	case ctx.Err() != nil:
		err = clock.Cause(ctx)
	}
	if err == nil {
		c.mu.Lock()
		if c.closed {
			err = ErrClosed
		} else {
			c.leases[l] = struct{}{}
		}
		c.mu.Unlock()
	}
	if err != nil {
		l.giveBack()
		return nil, err
	}
	if l.session != nil && l.session.Cause() != nil { // it ended before it knew of this lease
		l.termEnded(l.session.Cause())
	}
	return l, nil
}

// giveBack releases a lease that its caller never saw.
func (l *Lease) giveBack() {
	ctx, cancel := l.client.clock.Detached(context.Background())
	defer cancel()
	_ = l.Release(ctx)
}

// termEnded is called when the session, or the lease's own term, has ended.
func (l *Lease) termEnded(cause error) {
	if errors.Is(cause, session.ErrDead) {
		l.on(lease.End, ErrStolen)
	} else {
		l.on(lease.End, ErrExpired)
	}
}

// asked is called when somebody wants the lock back.
func (l *Lease) asked() { l.on(lease.Ask, nil) }

// on takes the lease to its next state, and carries out what follows from that.
func (l *Lease) on(event lease.Event, cause error) {
	l.mu.Lock()
	next, effects := l.state.On(event)
	l.state = next
	l.mu.Unlock()
	switch {
	case effects.Has(lease.CancelRevoked):
		l.cancel(ErrRevoked)
	case effects.Has(lease.CancelExpired):
		l.cancel(cause)
	case effects.Has(lease.CancelReleased):
		l.cancel(ErrReleased)
	case effects.Has(lease.CancelStolen):
		l.cancel(ErrStolen)
	}
	if effects.Has(lease.Forget) {
		l.forget(next)
	}
}

// forget lets go of what the lease needs while it goes on.
func (l *Lease) forget(state lease.State) {
	c := l.client
	c.mu.Lock()
	delete(c.leases, l)
	delete(c.undone, l)
	c.mu.Unlock()
	if l.own != nil {
		l.own.End(ErrReleased)
	}
	if state == lease.Expired {
		// Its session is dead, or as good as dead, and the ticket with it: others remove it.
		l.placeOver()
		return
	}
	c.tickets.drop(l.ticket.ID)
	l.unuse()
	l.placeOver()
}

func (l *Lease) unuse() {
	l.mu.Lock()
	s := l.session
	l.mu.Unlock()
	if s != nil {
		s.Unuse()
	}
}

// placeOver lets the next goroutine of this process enter the line.
func (l *Lease) placeOver() {
	if l.place != nil {
		l.place.Over()
	}
}

func (l *Lease) is() lease.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// check finds out whether the row still names the lease.
func (l *Lease) check(ctx context.Context) {
	row, err := l.client.read(ctx, l.key)
	if err == nil && !row.Holds(l.holding()) || errors.Is(err, lockrow.ErrNotLock) {
		l.on(lease.Taken, ErrStolen)
	}
}

// Renew extends a lease of its own to its full length from now. Others are renewed with their session.
//
// Cost: one conditional write; nothing under a session.
func (l *Lease) Renew(ctx context.Context) error {
	if l.own == nil {
		return l.session.Cause()
	}
	if err := l.takeTurn(ctx); err != nil {
		return err
	}
	defer l.endTurn()
	if l.is().Over() || l.own.Cause() != nil {
		return context.Cause(l.ctx)
	}
	c := l.client
	t := l.ticket
	var h attempt.History
	err := c.repeater.Do(ctx, attempt.Timeout(l.length()), &h, func(ctx context.Context, start clock.Instant) error {
		t.At = max(c.now(), t.At+1)
		err := c.table.Write(ctx, c.rows.Renew(l.key, l.holding(), t, c.ttl()))
		if row, refused := c.refusal(err); refused {
			if !row.Renewed(l.holding(), t.At) {
				l.on(lease.Taken, ErrStolen)
				return ErrStolen
			}
			err = nil
		}
		if err == nil && !l.own.Extend(start) {
			return ErrExpired
		}
		return err
	})
	if err == nil {
		l.ticket = t
	}
	return err
}

func (l *Lease) length() time.Duration {
	if l.own != nil {
		return time.Duration(l.ticket.Length) * time.Millisecond
	}
	return l.client.config.Lease
}

func (l *Lease) takeTurn(ctx context.Context) error {
	if ctx.Err() != nil { // select would choose either way
		return clock.Cause(ctx)
	}
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return clock.Cause(ctx)
	}
}

func (l *Lease) endTurn() { <-l.turn }
