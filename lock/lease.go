package lock

import (
	"context"
	"errors"
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
	begun   bool // what the holder writes beside its ticket is written
	data    Data // when the lease began

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
	got   time.Time     // monotonic: when the caller got it; zero before
	limit machine.Timer // of MaxHold; nil for none
	over  bool          // nothing depends on the session any more
}

// turn is held while a write or the release is under way: two transactions on one row conflict. What
// follows belongs to its holder.
type turn struct {
	slot chan struct{} // of capacity 1

	ticket  lockrow.Ticket // with the time of the last renewal of a lease of its own
	row     lockrow.Row    // as it was seen last
	data    lockrow.Data   // that the row has; not Given where that is not known
	since   time.Time      // monotonic: when the process came to be first
	writes  int64          // number of the last guarded write
	edits   int64          // number of the last SetData
	inDoubt bool           // a release may have been applied, or a commit
	targets []target       // tickets that the lock may have been passed to
	kept    time.Time      // monotonic: when the row's deletion was put off last
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
	l := &Lease{
		client: c, request: r, target: t, key: key, id: ticket.ID, fence: row.Fence, session: s, data: Data{row.Data},
		turn: turn{slot: make(chan struct{}, 1), ticket: ticket, row: *row, data: lockrow.Data{Given: true, Value: row.Data}, since: now, kept: now},
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
func (l *Lease) Data() Data { return l.data }

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
		l.giveBack()
		return err
	}
	c := l.client
	l.status.mu.Lock()
	l.status.got = c.clk().Now()
	if d := l.request.maxHold; d > 0 {
		l.status.limit = c.clk().AfterFunc(d, func() { l.on(lease.Overstay, ErrMaxHold) })
	}
	l.status.mu.Unlock()
	c.metrics.acquired(l.ctx, l.path)
	if l.path == pathTakenOver {
		c.config.Logger.Info("lock: taken over from a holder that died", "fence", l.fence)
	}
	if log := c.config.Logger; log.Enabled(l.ctx, slog.LevelDebug) { // its arguments cost, and this is every acquisition
		log.Debug("lock: acquired", "key", l.key, "fence", l.fence, "path", l.path)
	}
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
		l.data = Data{r.data.Value}
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
	switch {
	case errors.Is(cause, session.ErrDead):
		l.on(lease.End, ErrStolen)
	case errors.Is(cause, session.ErrClosed), errors.Is(cause, session.ErrIdle):
		l.on(lease.End, ErrClosed)
	default:
		l.on(lease.End, join(ErrExpired, errors.Unwrap(cause)))
	}
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

// cause is why the lease's context has ended; nil while it goes on.
func (l *Lease) cause() error { return context.Cause(l.ctx) }

// gone is the error of what needs the lock, once the lease has ended. Its context may have ended before,
// for a reason that is no loss.
func (l *Lease) gone() error {
	state, cause := l.is(), l.cause()
	switch {
	case errors.Is(cause, ErrLost):
		return cause
	case state == lease.Lost:
		return ErrStolen
	case state == lease.Expired && !errors.Is(cause, ErrClosed):
		return ErrExpired
	}
	return ErrReleased
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
	s.state = next
	got, limit := s.got, s.limit
	s.mu.Unlock()
	c := l.client
	switch {
	case effects.Has(lease.CancelRevoked):
		l.cancel(ErrRevoked)
	case effects.Has(lease.CancelReleased):
		l.cancel(ErrReleased)
	case effects.Has(lease.CancelStolen):
		cause = ErrStolen
		l.cancel(cause)
	case effects.Has(lease.CancelExpired), effects.Has(lease.CancelOverstayed):
		l.cancel(cause)
	}
	if cause == nil {
		cause = ErrStolen
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
	if effects.Has(lease.TellReleased) {
		c.metrics.released(l.ctx)
		c.metrics.held(l.ctx, c.clk().Ago(got))
	}
	if effects.Has(lease.TellLost) {
		c.metrics.lost(l.ctx, cause)
		c.metrics.held(l.ctx, c.clk().Ago(got))
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
		if err == nil || l.is().Over() || l.termCause() != nil || c.clk().Sleep(c.closing, l.length()/8) != nil {
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
	case session.Forced:
		row, err := l.client.read(ctx, l.key)
		if err == nil && !row.Holds(l.holding()) || errors.Is(err, table.ErrNotFound) || errors.Is(err, ErrNotLock) {
			l.on(lease.Taken, nil)
		}
		return err == nil || l.is().Over()
	}
	return true
}

// heldByOwn is the error of a wait for a lock that this very client holds.
func (l *Lease) heldByOwn() *HeldError {
	since := fromMillis(l.client.clk().Instant().Wall.Add(-l.client.clk().Ago(l.turn.since)).UnixMilli())
	return &HeldError{
		Target: l.target, Owner: l.client.config.Owner, Ticket: l.id, Fence: l.fence, Since: since, Own: true,
		Line: []Place{{Ticket: l.id, Owner: l.client.config.Owner, Since: since, Lease: l.request.fixed}},
	}
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
	if state := l.is(); l.termCause() != nil || state != lease.Held && state != lease.Revoked {
		return l.gone()
	}
	if l.own == nil {
		return nil
	}
	t, err := l.client.renewTicket(ctx, l.key, l.holding(), l.turn.ticket, l.own)
	switch {
	case err == nil:
		l.turn.ticket = t
	case errors.Is(err, ErrStolen):
		l.on(lease.Taken, nil)
	}
	return err
}

// renewTicket extends a first ticket that has a lease of its own, and its term where there is one.
//
// Cost: one conditional write.
func (c *Client) renewTicket(ctx context.Context, key keys.Key, h lockrow.Holding, t lockrow.Ticket, own *clock.Term) (lockrow.Ticket, error) {
	length := time.Duration(t.Length) * time.Millisecond
	var history attempt.History
	err := c.repeater.Do(ctx, attempt.Timeout(length), &history, func(ctx context.Context, start clock.Instant) error {
		t.At = max(c.latest(), t.At+1)
		item, err := c.table.Apply(ctx, c.layout.rows.Renew(key, h, t, c.ttl(length)), table.ReturnNone)
		if row, refused, bad := c.rowOf(item, err); refused {
			if bad != nil || !row.Renewed(h, t.At) {
				return ErrStolen
			}
			err = nil
		}
		if err == nil && own != nil && !own.Extend(start) {
			return ErrExpired
		}
		return err
	})
	return t, err
}

// maintain is called after each renewal of the session. It tries a release that has failed again, and puts
// off the deletion of a row that is held for long.
func (l *Lease) maintain(ctx context.Context) {
	c := l.client
	if l.session == nil || l.turn.taken() {
		return
	}
	if l.is() == lease.Releasing {
		_ = l.release(ctx)
		return
	}
	if l.turn.take(ctx) != nil {
		return
	}
	defer l.turn.end()
	if c.clk().Ago(l.turn.kept) < c.config.Retention/4 || l.is().Over() {
		return
	}
	item, err := c.table.Apply(ctx, c.layout.rows.Prolong(l.key, l.holding(), c.ttl(l.request.keep())), table.ReturnNone)
	if row, refused, bad := c.rowOf(item, err); refused {
		if bad == nil && !row.Holds(l.holding()) {
			l.on(lease.Taken, nil)
		}
	} else if err == nil {
		l.turn.kept = c.clk().Now()
	}
}
