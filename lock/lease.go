package lock

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

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
	holding lockrow.Holding
	session *session.Session // nil for a lease of its own
	term    *clock.Term      // of the session, or of the lease of its own
	ctx     context.Context
	cancel  context.CancelCauseFunc
	path    string
	begun   bool         // what the holder writes beside its ticket is written
	start   time.Time    // monotonic: not later than the ticket came to be first
	row     *lockrow.Row // when the lease began, with the payload that the holder gives it; not changed

	turn      turn
	status    status
	committed atomic.Bool // a commit is known to have been applied
}

// turn is held while a write or the release is under way: two transactions on one row conflict. What
// follows belongs to its holder.
type turn struct {
	slot chan struct{} // of capacity 1

	row     *lockrow.Row // as it was seen last, not changed
	data    lockrow.Data // that the row has; not Given where that is not known
	since   time.Time    // monotonic: when the process came to be first
	began   int64        // the same for others, in epoch milliseconds
	writes  int64        // number of the last guarded write, at first that of the holders before
	edits   int64        // the same for SetData
	blind   bool         // others may have come to the line since: the transaction that passed the lock on returned no row
	inDoubt bool         // a release may have been applied, or a commit
	exit    lockrow.Exit // that the last release, or commit, went by
	target  *target      // a pass that may have been applied; nil for none
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

// saw records the row, as an answer or a refusal has shown it.
func (t *turn) saw(row *lockrow.Row) { t.row, t.blind = row, false }

// taken reports whether a write is under way.
func (t *turn) taken() bool { return len(t.slot) > 0 }

// newLease makes the lease of a ticket that holds, by a row. start is the moment from which a lease of
// its own counts. The row is the lease's from now on.
func (c *Client) newLease(r *request, t Target, key keys.Key, h lockrow.Holding, s *session.Session, start clock.Instant, row *lockrow.Row) *Lease {
	now := c.clk().Now()
	own := *r // alone, or the whole acquisition is kept
	l := &Lease{
		client: c, request: &own, target: t, key: key, holding: h, session: s, start: start.Mono, row: row,
		turn: turn{
			slot: make(chan struct{}, 1), row: row, data: lockrow.Data{Given: true, Value: row.Data}, since: now, began: c.now(),
			writes: row.Writes, edits: row.Edits,
		},
		status: status{kept: now},
	}
	if r.data.Given { // written by now, or before the caller gets the lease
		row.Data = r.data.Value
	}
	l.ctx, l.cancel = context.WithCancelCause(r.values)
	l.status.mu.Lock() // its term may end at once, which waits until the lease is whole
	defer l.status.mu.Unlock()
	if s != nil {
		l.term = s.Term
	} else {
		l.term = c.terms.Begin(start, r.fixed-c.config.margin(r.fixed), clock.Watch{
			Tell: func(error) { l.cancel(ErrExpired) }, // all holders are told before anything is logged, which may take its time
			End:  l.termEnded,
		})
	}
	c.tickets.set(l.holding.ID, l)
	return l
}

// keepPlace has the lease answer for the process's place in the line. A lease that is over by now gives it up.
func (l *Lease) keepPlace(p *place) {
	l.status.mu.Lock()
	gone := l.status.state != lease.Held && l.status.state != lease.Revoked
	if !gone {
		l.status.place = p
	}
	l.status.mu.Unlock()
	switch {
	case p == nil:
	case gone:
		p.Over()
	default:
		p.Stand(l.holding.ID)
	}
}

// call runs a method of the lease, and names it in its error. It refuses a lease that no call has returned, such as that of an
// Acquire that has failed.
func (l *Lease) call(operation string, f func() error) error {
	if l == nil || l.client == nil {
		return wrap(operation, invalid("a lease that was not acquired"))
	}
	return wrap(operation, f())
}

// last is the row as it was when the lease began.
func (l *Lease) last() *lockrow.Row { return l.row }

// Context returns a context that ends with the lease, at the latest. [context.Cause] then returns an error that matches
// [ErrLost] if the lock was lost, [ErrReleased] if it was released, and [ErrRevoked] if somebody asked for it. The
// context carries the values of the context that the lock was acquired with, but does not end with that context.
func (l *Lease) Context() context.Context { return l.ctx }

// Fence returns the fencing token: a number that is greater for every later holder of this lock. A resource outside the
// table is protected if it refuses a number that is smaller than the greatest it has seen.
//
// The fence of a reader ([Shared]) is greater than that of every writer before it, and less than that of every writer after it.
// The fence of a permit ([Permits]) is greater for every ticket that enters the line later; it does not order leases that are
// held at the same time.
func (l *Lease) Fence() int64 { return l.holding.Fence }

// Target returns the target that was acquired.
func (l *Lease) Target() Target { return l.target }

// Owner returns [Config.Owner] of the client that holds the lock.
func (l *Lease) Owner() string { return l.client.config.Owner }

// Key returns the key of the lock's row.
func (l *Lease) Key() keys.Key { return l.key }

// Ticket returns the ID of the lease's ticket in the lock's line. No other lease ever has the same.
func (l *Lease) Ticket() string { return l.holding.ID }

// Data returns the payload that the lock's row had when this lease began: the value of [WithData], or that of an earlier
// holder. [Lease.SetData] does not change it.
func (l *Lease) Data() Data { return Data{l.row.Data} }

// Remaining returns how long the lease lasts without another renewal, by the wall clock or the monotonic clock,
// whichever is less. It is 0 if the lease has ended. A lease that was asked for with [Client.Revoke] goes on.
func (l *Lease) Remaining() time.Duration {
	if state := l.is(); state != lease.Held && state != lease.Revoked {
		return 0
	}
	return l.term.Remaining()
}

// begin hands the lease to its caller, unless it is over already or nobody wants it any more: then the caller gives
// it back.
func (l *Lease) begin(ctx context.Context) error {
	err := l.termCause()
	if err == nil {
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
	if l.status.state.Ended() { // since termCause, or by force
		defer l.status.mu.Unlock()
		return cmp.Or(l.status.loss, ErrReleased)
	}
	l.status.got = c.clk().Now()
	if d := l.request.maxHold; d > 0 {
		start := clock.Instant{Wall: c.clk().Instant().Wall.Add(-c.clk().Ago(l.start)), Mono: l.start}
		l.status.limit = c.terms.Begin(start, d, clock.Watch{End: func(cause error) {
			if errors.Is(cause, clock.ErrEnded) {
				l.on(lease.Overstay, ErrMaxHold)
			}
		}})
	}
	l.status.mu.Unlock()
	c.metrics.count(l.ctx, acquisitions, keyPath.String(l.path))
	c.checkClock()
	if l.path == pathTakenOver {
		c.config.Logger.Info("lock: taken over after the holder's lease ended", "fence", l.holding.Fence)
	}
	if log := c.config.Logger; log.Enabled(l.ctx, slog.LevelDebug) { // its arguments cost, and this is every acquisition
		log.Debug("lock: acquired", "key", l.key, "fence", l.holding.Fence, "path", l.path)
	}
	return nil
}

// writeFirst writes what the holder writes beside its ticket, where that could not be written with it.
func (l *Lease) writeFirst(ctx context.Context) error {
	if l.begun {
		return nil
	}
	if err := l.turn.take(ctx); err != nil {
		return err
	}
	defer l.turn.end()
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
	}
	l.begun = true
	return nil
}

// update writes to the lock's row, beside its first place. The row is the one that has refused it; inDoubt reports whether an
// attempt may have been applied without an answer.
func (l *Lease) update(ctx context.Context, op table.Op) (row lockrow.Row, inDoubt bool, err error) {
	c := l.client
	inDoubt, err = c.repeater.Do(ctx, attempt.Timeout(l.request.length(c)), func(ctx context.Context) error {
		item, err := c.table.Apply(ctx, op, table.ReturnNone)
		now, refused, bad := c.rowOf(item, err)
		if refused && bad != nil {
			return bad
		}
		row = now
		return err
	})
	return row, inDoubt, err
}
