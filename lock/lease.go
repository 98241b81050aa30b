package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lease"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/table"
)

// How a lock came to its holder.
const (
	pathFree       = "free"
	pathWaited     = "waited"
	pathTakenOver  = "taken_over"
	pathHandedOver = "handed_over"
)

// Lease is a lock that was acquired. It is safe for concurrent use.
type Lease struct {
	client  *Client
	request *request
	target  Target
	key     keys.Key
	id      string // of its ticket
	fence   int64
	session *session.Session // nil for a lease of its own
	own     *clock.Term      // nil under a session
	ctx     context.Context
	cancel  context.CancelCauseFunc
	path    string
	begun   bool        // what the holder writes beside its ticket is written
	start   time.Time   // monotonic: not later than the ticket came to be first
	row     lockrow.Row // when the lease began; its payload is guarded by status.mu until the caller has the lease

	turn      turn
	status    status
	committed atomic.Bool // a commit is known to have been applied
	commits   atomic.Bool // a commit may have been applied
}

// status is how far a lease has come.
type status struct {
	mu    sync.Mutex // guards the following; never held across I/O
	state lease.State
	place *place        // of the process in the line; nil where it has another one there
	loss  error         // why it has ended by time, or has been found lost; nil while neither
	got   time.Time     // monotonic: when the caller got it; zero before
	limit machine.Timer // of MaxHold; nil for none
	kept  time.Time     // monotonic: when the row's deletion was put off last
	over  bool          // nothing depends on the session any more
}

// turn is held while a write or the release is under way: two transactions on one row conflict. What
// follows belongs to its holder.
type turn struct {
	slot chan struct{} // of capacity 1

	row     lockrow.Row  // as it was seen last
	data    lockrow.Data // that the row has; not Given where that is not known
	since   time.Time    // monotonic: when the process came to be first
	began   int64        // the same for others, in epoch milliseconds
	writes  int64        // number of the last guarded write
	edits   int64        // number of the last SetData
	inDoubt bool         // a release may have been applied, or a commit
	targets []target     // tickets that the lock may have been passed to
}

func (t *turn) take(ctx context.Context) error {
	ctx = checked(ctx)
	if ctx.Err() != nil { // select would choose either way
		return causeOf(ctx)
	}
	select {
	case t.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return causeOf(ctx)
	}
}

func (t *turn) end() { <-t.slot }

// taken reports whether a write is under way.
func (t *turn) taken() bool { return len(t.slot) > 0 }

// newLease makes the lease of a ticket that is first in a row. start is the moment from which a lease of
// its own counts.
func (c *Client) newLease(r *request, t Target, key keys.Key, ticket lockrow.Ticket, s *session.Session, start clock.Instant, row *lockrow.Row) *Lease {
	now := c.clk().Now()
	own := *r // alone, or the whole acquisition is kept
	l := &Lease{
		client: c, request: &own, target: t, key: key, id: ticket.ID, fence: row.Fence, session: s, start: start.Mono, row: *row,
		turn:   turn{slot: make(chan struct{}, 1), row: *row, data: lockrow.Data{Given: true, Value: row.Data}, since: now, began: c.now()},
		status: status{kept: now},
	}
	l.ctx, l.cancel = context.WithCancelCause(r.values)
	if s == nil {
		l.own = c.terms.Begin(start, r.fixed-c.config.margin(r.fixed), clock.Watch{End: l.termEnded})
	}
	c.tickets.set(l.id, l)
	return l
}

// keepPlace has the lease answer for the process's place in the line. A lease that is over by now gives it
// up.
func (l *Lease) keepPlace(p *place) {
	l.status.mu.Lock()
	gone := l.status.state != lease.Held && l.status.state != lease.Revoked
	if !gone {
		l.status.place = p
	}
	l.status.mu.Unlock()
	if gone {
		p.Over()
	}
}

func (l *Lease) holding() lockrow.Holding { return lockrow.Holding{ID: l.id, Fence: l.fence} }

func (l *Lease) length() time.Duration { return l.request.length(l.client) }

// Context ends no later than the lease: when it is lost, with a cause that matches [ErrLost], released,
// with [ErrReleased], or asked back, with [ErrRevoked]. It carries the values of the context that Acquire
// got, but does not end with it.
func (l *Lease) Context() context.Context { return l.ctx }

// Fence is the fencing token: a number that is greater for every later holder of this lock. A resource
// outside the table can refuse smaller numbers than it has seen.
func (l *Lease) Fence() int64 { return l.fence }

// Target is what was acquired.
func (l *Lease) Target() Target { return l.target }

// Owner is what the lock's row says of its holder: Config.Owner.
func (l *Lease) Owner() string { return l.client.config.Owner }

// Key is the key of the lock's row.
func (l *Lease) Key() keys.Key { return l.key }

// Ticket is the lease's ticket in the lock's line, which no other lease has, ever.
func (l *Lease) Ticket() string { return l.id }

// Data is the payload that the row had when this lease began: its own ([WithData]), or what the last holder
// left. [Lease.SetData] does not change what it returns.
func (l *Lease) Data() Data { return Data{l.row.Data} }

// Remaining is how long the lease lasts unless renewed, by the more pessimistic of the wall and the
// monotonic clock; 0 when it has ended. One that was asked back goes on.
func (l *Lease) Remaining() time.Duration {
	switch {
	case l.is() != lease.Held && l.is() != lease.Revoked:
		return 0
	case l.own != nil:
		return l.own.Remaining()
	}
	return l.session.Remaining()
}

// begin hands the lease to its caller, unless it is over already or nobody wants it any more.
func (l *Lease) begin(ctx context.Context) error {
	begun := false
	defer func() {
		if !begun { // or a Logger has panicked
			l.giveBack()
		}
	}()
	err := l.termCause()
	if err == nil && !l.begun {
		err = l.writeFirst(ctx)
	}
	if err == nil && ctx.Err() != nil {
		err = causeOf(ctx)
	}
	if err == nil {
		err = l.termCause()
	}
	if err != nil {
		return err
	}
	c := l.client
	l.status.mu.Lock()
	l.status.got = c.clk().Now()
	if d := l.request.maxHold; d > 0 {
		l.status.limit = c.clk().AfterFunc(d-c.clk().Ago(l.start), func() { l.on(lease.Overstay, ErrMaxHold) })
	}
	l.status.mu.Unlock()
	c.metrics.acquired(l.ctx, l.path)
	c.checkClock()
	if l.path == pathTakenOver {
		c.config.Logger.Info("lock: taken over from a holder that died", "fence", l.fence)
	}
	if log := c.config.Logger; log.Enabled(l.ctx, slog.LevelDebug) { // its arguments cost, and this is every acquisition
		log.Debug("lock: acquired", "key", l.key, "fence", l.fence, "path", l.path)
	}
	begun = true
	return nil
}

// writeFirst writes what the holder writes beside its ticket, where that could not be written with it.
func (l *Lease) writeFirst(ctx context.Context) error {
	r := l.request
	if r.run != nil {
		if err := l.beginRun(ctx, r.run); err != nil {
			return err
		}
	}
	if r.data.Given {
		if err := l.setData(ctx, r.data); err != nil {
			return err
		}
		l.status.mu.Lock()
		l.row.Data = r.data.Value
		l.status.mu.Unlock()
	}
	return nil
}

// termCause is why the lease has ended by time; nil while it goes on.
func (l *Lease) termCause() error {
	var cause error
	if l.own != nil {
		cause = l.own.Cause()
	} else {
		cause = l.session.Cause()
	}
	if cause != nil {
		l.termEnded(cause)
		return l.cause()
	}
	return nil
}

// termEnded is called when the session, or the lease's own term, has ended.
func (l *Lease) termEnded(cause error) {
	doubt := l.commits.Load() || l.is() == lease.Releasing
	if l.on(lease.End, l.endOf(cause)); !doubt {
		return
	}
	l.client.work.tryRun(func() {
		if l.turn.take(l.client.closing) == nil {
			l.dropTargets() // or nobody would take their tickets for ghosts
			l.turn.end()
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
	if failed := l.termFailure(); failed != nil {
		return fmt.Errorf("%w; last renewal: %w", ErrExpired, failed)
	}
	return ErrExpired
}

// termFailure is why the last renewal failed; nil where it did not.
func (l *Lease) termFailure() error {
	if l.session == nil {
		return nil // the caller renews, and knows
	}
	return l.session.Failure()
}

// givenUp reports whether the holder has released the lock, or tried to, and whether it has committed, or may
// have.
func (l *Lease) givenUp() (released, committed bool) {
	state := l.is()
	return state == lease.Releasing || state == lease.Released, l.committed.Load() || l.commits.Load()
}

// giveBack releases a lease that its caller never saw.
func (l *Lease) giveBack() {
	ctx, cancel := l.client.clk().Detached(context.Background())
	defer cancel()
	_ = l.release(ctx)
}

// cause is why the lease was lost, or else why its context has ended; nil while it goes on. A context that
// told first that the lock was asked back does not tell of a loss after that.
func (l *Lease) cause() error {
	l.status.mu.Lock()
	defer l.status.mu.Unlock()
	return cmp.Or(l.status.loss, context.Cause(l.ctx))
}

// over is why a lease that is over does not hold the lock any more; nil while it may.
func (l *Lease) over() error {
	state, cause := l.is(), l.cause()
	switch {
	case !state.Over():
		return nil
	case state == lease.Released && (l.committed.Load() || !errors.Is(cause, ErrMaxHold)):
		return ErrReleased
	case errors.Is(cause, ErrLost):
		return cause
	}
	return ErrStolen
}

// had reports whether the caller has got the lease.
func (l *Lease) had() bool {
	l.status.mu.Lock()
	defer l.status.mu.Unlock()
	return !l.status.got.IsZero()
}

func (l *Lease) is() lease.State {
	l.status.mu.Lock()
	defer l.status.mu.Unlock()
	return l.status.state
}

// on takes the lease to its next state, and carries out what follows from that. cause is why, where the
// event does not say.
func (l *Lease) on(event lease.Event, cause error) {
	s := &l.status
	s.mu.Lock()
	next, effects := s.state.On(event)
	ended := next.Ended() && !s.state.Ended()
	s.state = next
	if effects.Has(lease.CancelStolen) || cause == nil {
		cause = ErrStolen
	}
	if ended && next != lease.Released {
		s.loss = cause
	}
	got, limit := s.got, s.limit
	s.mu.Unlock()
	c := l.client
	switch {
	case effects.Has(lease.CancelRevoked):
		l.cancel(ErrRevoked)
	case effects.Has(lease.CancelReleased):
		l.cancel(ErrReleased)
	case effects.Has(lease.CancelStolen), effects.Has(lease.CancelExpired), effects.Has(lease.CancelOverstayed):
		l.cancel(cause)
	}
	if effects.Has(lease.Forget) {
		if limit != nil {
			limit.Stop()
		}
		l.forget()
	}
	if got.IsZero() {
		return // nobody has had it
	}
	if effects.Has(lease.TellRevoked) {
		c.metrics.revoked(l.ctx)
		c.config.Logger.Info("lock: asked back", "fence", l.fence)
	}
	if ended {
		c.metrics.held(l.ctx, c.clk().Ago(got))
	}
	if effects.Has(lease.TellReleased) {
		c.metrics.released(l.ctx)
	}
	if effects.Has(lease.TellLost) {
		c.metrics.lost(l.ctx, cause)
		c.config.Logger.Warn("lock: lost", "fence", l.fence, "cause", cause)
		if f := c.config.OnLost; f != nil {
			go f(l, cause) // the application's own, which may Close the client
		}
	}
	if effects.Has(lease.GiveUp) {
		c.work.tryRun(l.giveUp)
	}
}

// giveUp releases in the holder's place, which has held the lock for too long, and tries again until the
// lease is over.
func (l *Lease) giveUp() {
	c := l.client
	for {
		ctx, cancel := c.clk().Detached(c.closing)
		err := l.release(ctx)
		cancel()
		if err == nil || l.is().Over() || l.termCause() != nil || c.clk().Sleep(c.closing, c.config.Lease/8) != nil {
			return // Close releases it
		}
	}
}

// forget lets go of what the lease needs while it goes on.
func (l *Lease) forget() {
	c := l.client
	c.tickets.drop(l.id)
	if l.own != nil {
		l.own.End(ErrReleased)
	}
	l.status.mu.Lock()
	p, over := l.status.place, l.status.over
	l.status.place, l.status.over = nil, true
	l.status.mu.Unlock()
	if l.session != nil && !over {
		l.session.Unuse()
	}
	if p != nil {
		p.Over()
	}
}

// answer is for questions of others about the lease's ticket.
func (l *Lease) answer(ctx context.Context, q session.Question) bool {
	switch q.Kind {
	case session.Revoke:
		l.on(lease.Ask, nil)
	case session.Claim:
		if q.Fence == l.fence {
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
		case err == nil && !row.Holds(l.holding()):
			_ = l.gone(ctx, &row)
			return l.is().Over() && l.client.remove(ctx, l.key, l.id, &row) == nil
		}
		return err == nil
	case session.Forced:
		row, err := l.client.read(ctx, l.key)
		if err == nil && !row.Holds(l.holding()) || errors.Is(err, table.ErrNotFound) || errors.Is(err, ErrNotLock) {
			l.on(lease.Taken, nil)
		}
		return err == nil || l.is().Over() || !l.client.table.Retryable(err)
	}
	return true
}

// heldByOwn is the error of a wait for a lock that this very client holds.
func (l *Lease) heldByOwn() *HeldError {
	l.status.mu.Lock()
	row := l.row
	l.status.mu.Unlock()
	return l.client.heldError(l.target, &row)
}

// Renew extends a lease of its own ([Fixed]) to its full length from now. Leases under a session are
// renewed in the background: for them it only reports whether the lease goes on. A lease that has ended
// stays ended.
//
// Cost: one conditional write; nothing under a session.
func (l *Lease) Renew(ctx context.Context) error { return wrap("renew", l.renew(ctx)) }

func (l *Lease) renew(ctx context.Context) error {
	if err := l.turn.take(ctx); err != nil {
		return err
	}
	defer l.turn.end()
	if err := l.over(); err != nil {
		return err
	}
	if err := l.termCause(); err != nil {
		return err
	}
	if state := l.is(); state != lease.Held && state != lease.Revoked {
		return cmp.Or(l.over(), l.cause(), ErrReleased)
	}
	if l.own == nil {
		return nil
	}
	row, err := l.client.renewOwn(ctx, l.key, l.holding(), l.request.fixed, l.own)
	if errors.Is(err, ErrStolen) {
		return l.gone(ctx, &row)
	}
	return err
}

// renewOwn extends a lease of its own, and its term where there is one. The row is the one that has refused it,
// with ErrStolen.
//
// Cost: one conditional write.
func (c *Client) renewOwn(ctx context.Context, key keys.Key, h lockrow.Holding, length time.Duration, own *clock.Term) (row lockrow.Row, err error) {
	var history attempt.History
	err = c.repeater.Do(ctx, attempt.Timeout(length), &history, func(bounded context.Context, start clock.Instant) error {
		at := max(c.now(), row.Renewed+1)
		item, err := c.table.Apply(bounded, c.layout.rows.Renew(key, h, at, c.ttl(length)), table.ReturnNone)
		now, refused, bad := c.rowOf(item, err)
		if refused {
			switch row = now; {
			case bad != nil || !row.Holds(h):
				return ErrStolen
			case row.Renewed > at:
				return attempt.ErrAgain // by a clock that was set back since: observers have to see this one, too
			}
			err = nil // by this very attempt, or by one whose answer was lost
		}
		if err != nil {
			c.metrics.renewalFailed(ctx, err)
			return err
		}
		if own == nil {
			return nil
		}
		left := own.Remaining()
		if !own.Extend(start) {
			return ErrExpired
		}
		c.metrics.renewed(ctx, left)
		return nil
	})
	return row, err
}

// due reports whether there is something to maintain.
func (l *Lease) due() bool {
	l.status.mu.Lock()
	defer l.status.mu.Unlock()
	c := l.client
	return l.session != nil && !l.turn.taken() &&
		(l.status.state == lease.Releasing || l.commits.Load() || c.clk().Ago(l.status.kept) >= c.config.Retention/4)
}

// maintain tries a release that has failed again, finds out what became of a commit without an answer, and puts
// off the deletion of a row that is held for long.
func (l *Lease) maintain(ctx context.Context) {
	c := l.client
	if l.is() == lease.Releasing {
		_ = l.release(ctx)
		return
	}
	if l.turn.take(ctx) != nil {
		return
	}
	defer l.turn.end()
	if l.is().Over() {
		return
	}
	item, err := c.table.Apply(ctx, c.layout.rows.Prolong(l.key, l.holding(), c.ttl(l.request.keep())), table.ReturnNone)
	if row, refused, bad := c.rowOf(item, err); refused {
		if bad == nil && !row.Holds(l.holding()) {
			_ = l.gone(ctx, &row)
		}
	} else if err == nil {
		l.status.mu.Lock()
		l.status.kept = c.clk().Now()
		l.status.mu.Unlock()
	}
}
