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

// How a holder got the lock: values of the metric attribute keyPath.
const (
	pathFree       = "free"        // without waiting
	pathWaited     = "waited"      // after waiting in the line
	pathTakenOver  = "taken_over"  // this client removed a dead holder
	pathHandedOver = "handed_over" // by a pass
)

// Lease is a lock that was acquired. End it with [Lease.Commit] or [Lease.Release]; [Client.Do] does that itself. It is safe
// for concurrent use.
type Lease struct {
	client  *Client
	request *request
	target  Target
	key     keys.Key
	holding lockrow.Holding
	session *session.Session // nil for a Fixed lease
	term    *clock.Term      // the session's term, or the Fixed lease's own
	ctx     context.Context
	cancel  context.CancelCauseFunc
	path    string
	row     *lockrow.Row // the row when the lease began, with this holder's payload; never changed

	turn      turn
	status    status
	committed atomic.Bool // a commit is known to have been applied
	begun     bool        // the payload (WithData) and the start of the run (Every) are written: writeFirst has nothing to do
}

// turn lets the writes and the release of a lease run one at a time, since two transactions on one row conflict.
// Only the goroutine that has taken the turn may use the fields below slot.
type turn struct {
	slot chan struct{} // of capacity 1; full while the turn is taken

	tenure
	row     *lockrow.Row // the row as it was seen last; never changed in place
	data    lockrow.Data // the payload in the row; Given is false while the payload is not known
	writes  int64        // number of the last guarded write; it continues the count of earlier holders
	edits   int64        // the same for SetData
	inDoubt bool         // a release or a commit may have been applied without an answer
	exit    lockrow.Exit // what the last release or commit assumed about the row
	target  *acquisition // the ticket of a pass that is under way or in doubt; nil for none
}

// tenure is what a pass keeps.
type tenure struct {
	since time.Time // monotonic: when this process became first
	began int64     // the same moment for other processes, in epoch milliseconds
	blind bool      // the line may have tickets that turn.row lacks: the lock was passed on by a transaction, which returns no row
}

func (t *turn) take(ctx context.Context) error {
	ctx = checked(ctx)
	if ctx.Err() != nil { // if both are ready, select chooses at random
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

// saw records the row that an answer or a refusal has shown.
func (t *turn) saw(row *lockrow.Row) { t.row, t.blind = row, false }

// taken reports whether a write, or the release, is under way.
func (t *turn) taken() bool { return len(t.slot) > 0 }

// newLease makes the lease of a ticket that holds, by the row as last seen. A Fixed lease and MaxHold count from start: before the request, or
// after a wait, when the client noticed that it holds. The lease keeps a copy of the row, and puts its own payload into it.
func (a *acquisition) newLease(e *entry) *Lease {
	c, row, s := a.client, *e.row.Load(), a.session
	r := a.request // a copy: an acquisition would stay in memory as long as the lease
	l := &Lease{
		client: c, request: &r, target: e.target, key: e.key, holding: row.Holding(row.Place(e.ticket.ID)), session: s, row: &row,
		path: e.path, begun: e.begun,
		turn: turn{
			slot: make(chan struct{}, 1), tenure: cmp.Or(e.tenure, tenure{since: c.clk().Now(), began: c.now()}),
			row: &row, data: lockrow.Data{Given: true, Value: row.Data},
			writes: row.Writes, edits: row.Edits,
		},
		status: status{known: known{kept: c.clk().Instant()}},
	}
	if r.data.Given { // the payload is written by now, or will be before the caller gets the lease
		row.Data = r.data.Value
	}
	l.ctx, l.cancel = context.WithCancelCause(r.values)
	l.status.mu.Lock() // the terms may end at once: their functions then wait for mu until the lease is complete
	defer l.status.mu.Unlock()
	if s != nil {
		l.term = s.Term
	} else {
		l.term = c.terms.Begin(a.start, c.config.own(r.fixed), clock.Watch{
			Tell: func(error) { l.cancel(ErrExpired) }, // before any End: all contexts end before anything is logged, which may be slow
			End:  l.termEnded,
		})
	}
	if r.maxHold > 0 {
		l.status.limit = c.terms.Begin(a.start, r.maxHold, clock.Watch{End: func(cause error) {
			if errors.Is(cause, clock.ErrEnded) {
				l.on(lease.Overstay, ErrMaxHold)
			}
		}})
	}
	c.tickets.set(l.holding.ID, l)
	return l
}

// keepPlace makes the lease responsible for the process's place in the line. If the lease is not held any more, the place is given up.
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

// call runs a method of the lease, and puts the method's name into the error. It refuses a nil lease, which a failed Acquire returns,
// and a zero one.
func (l *Lease) call(operation string, f func() error) error {
	if l == nil || l.client == nil {
		return wrap(operation, invalid("a lease that was not acquired"))
	}
	return wrap(operation, f())
}

// Context returns a context that ends with the lease, at the latest. [context.Cause] then returns an error that matches
// [ErrLost] if the lock was lost, [ErrReleased] if it was released, and [ErrRevoked] if somebody asked for it.
// [Lease.Release] and [Client.Close] end it before they send the request. [Lease.Commit] ends it when the answer comes.
//
// The context carries the values of the context that the lock was acquired with, but does not end with that context.
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

// begin records that the caller gets the lease. It fails if the lease or ctx has ended. The function that called it then gives the lock
// back.
func (l *Lease) begin(ctx context.Context) error {
	if err := cmp.Or(causeOf(ctx), l.termCause()); err != nil {
		return err
	}
	c := l.client
	l.status.mu.Lock()
	if l.status.state.Ended() { // it ended after termCause, or the lock was taken by force
		defer l.status.mu.Unlock()
		return cmp.Or(l.status.loss, ErrReleased)
	}
	l.status.got = c.clk().Now()
	l.status.mu.Unlock()
	c.metrics.count(l.ctx, acquisitions, keyPath.String(l.path))
	c.checkClock()
	if l.path == pathTakenOver {
		c.config.Logger.Info("lock: taken over after the holder's lease ended", "fence", l.holding.Fence)
	}
	if log := c.config.Logger; log.Enabled(l.ctx, slog.LevelDebug) { // its arguments cost time, in every acquisition
		log.Debug("lock: acquired", "key", l.key, "fence", l.holding.Fence, "path", l.path)
	}
	return nil
}

// writeFirst writes the start of a run (Every) and the payload (WithData), unless they were written together with the ticket.
func (l *Lease) writeFirst(ctx context.Context) error {
	if err := l.termCause(); err != nil || l.begun {
		return err
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
		return l.setData(ctx, r.data)
	}
	return nil
}

// update writes attributes of the lock's row, and leaves the line as it is. If the row refuses the write, it is returned. inDoubt
// reports whether an attempt may have been applied without an answer.
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
