package next

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
	"github.com/mortise-go/mortise/table"
)

type place = waitqueue.Place[*acquisition, *Lease]

// acquisition is one call of Acquire or TryAcquire.
type acquisition struct {
	client *Client
	key    keys.Key
	fixed  time.Duration // length of a lease of its own; 0 under the session

	// Of the present attempt to get in; a ticket that has left the line is not used again.
	session *session.Session // nil for a lease of its own
	ticket  lockrow.Ticket
	start   clock.Instant // before the ticket was taken
	inDoubt bool          // it may be in the line, or may yet come

	seen lockrow.Row // that kept it waiting last
}

// Option changes how a lock is acquired.
type Option func(*acquisition)

// Fixed acquires a lease of the given length that only Lease.Renew renews.
func Fixed(length time.Duration) Option {
	return func(a *acquisition) { a.fixed = length }
}

// length is that of the lease.
func (a *acquisition) length() time.Duration {
	if a.fixed > 0 {
		return a.fixed
	}
	return a.client.config.Lease
}

// Acquire takes the lock, and waits in its line for as long as ctx lasts.
//
// Cost: one conditional write where the lock is free.
func (c *Client) Acquire(ctx context.Context, key keys.Key, opts ...Option) (*Lease, error) {
	return c.acquire(ctx, key, opts, (*acquisition).wait)
}

// TryAcquire takes the lock if it is free, and nobody waits for it. Otherwise it returns a *HeldError.
//
// Cost: one conditional write.
func (c *Client) TryAcquire(ctx context.Context, key keys.Key, opts ...Option) (*Lease, error) {
	return c.acquire(ctx, key, opts, (*acquisition).try)
}

func (c *Client) acquire(ctx context.Context, key keys.Key, opts []Option, how func(*acquisition, context.Context) (*Lease, error)) (*Lease, error) {
	a := &acquisition{client: c, key: key}
	for _, opt := range opts {
		opt(a)
	}
	if !c.enter() {
		return nil, ErrClosed
	}
	defer c.work.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.closing, func() { cancel(ErrClosed) })()
	return how(a, ctx)
}

// wait queues behind the process's goroutines that want the same lock, then waits in the line.
func (a *acquisition) wait(ctx context.Context) (*Lease, error) {
	w := a.client.queues.Join(a.key, a)
	select {
	case <-w.Ready():
	case <-ctx.Done():
		if l, granted := w.Leave(); granted {
			l.giveBack()
		}
		return nil, a.gaveUp(ctx)
	}
	if l, granted := w.Grant(); granted {
		return l.begin(ctx)
	}
	p := w.Place()
	l, err := a.line(ctx)
	if err != nil {
		p.Over()
		return nil, err
	}
	l.place = p
	return l.begin(ctx)
}

// gaveUp is the error of a wait that was cut short, beside who held the lock.
func (a *acquisition) gaveUp(ctx context.Context) error {
	if len(a.seen.Line) == 0 {
		return clock.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", clock.Cause(ctx), heldError(&a.seen))
}

// try enters the line if it is empty, or holds nobody but one who is dead.
func (a *acquisition) try(ctx context.Context) (*Lease, error) {
	w := a.client.queues.Join(a.key, a)
	var p *place
	select {
	case <-w.Ready():
		if l, granted := w.Grant(); granted {
			return l.begin(ctx)
		}
		p = w.Place()
	default:
		w.Leave() // somebody in this process has the place: the row says who
	}
	row, err := a.enter(ctx, true)
	if errors.Is(err, ErrHeld) {
		row, err = a.replaceDead(ctx, err)
	}
	if err != nil {
		a.leave(ctx)
		if p != nil {
			p.Over()
		}
		return nil, err
	}
	l := a.granted(&row)
	l.place = p
	return l.begin(ctx)
}

// take makes a new ticket. Its ID is known to the process from now on.
func (a *acquisition) take(ctx context.Context) error {
	c := a.client
	a.inDoubt, a.start = false, c.clock.Instant()
	if a.fixed > 0 {
		a.ticket = lockrow.OwnTicket(c.clock.Text(), c.now(), a.fixed, c.config.Owner)
	} else {
		s, err := c.keeper.Use(ctx)
		if err != nil {
			return err
		}
		a.session, a.start = s, c.clock.Instant()
		a.ticket = lockrow.SessionTicket(s.ID(), s.Next(), c.now(), c.config.Owner)
	}
	c.tickets.add(a.ticket.ID)
	return nil
}

// drop forgets the ticket, which is in no line any more, or is a ghost where it comes.
func (a *acquisition) drop() {
	a.client.tickets.drop(a.ticket.ID)
	if a.session != nil {
		a.session.Unuse()
		a.session = nil
	}
	a.ticket = lockrow.Ticket{}
}

// errFull is the error of a line that has no room.
var errFull = errors.New("the line is full")

// enter takes a ticket and sends it, until it is clear whether it is in the line. The row is the one in
// which it was seen there.
func (a *acquisition) enter(ctx context.Context, ifFree bool) (row lockrow.Row, err error) {
	c := a.client
	if err := a.take(ctx); err != nil {
		return row, err
	}
	var h attempt.History
	err = c.repeater.Do(ctx, attempt.Timeout(a.length()), &h, func(ctx context.Context, start clock.Instant) error {
		entry := lockrow.Entry{Ticket: a.ticket, IfFree: ifFree, TTL: c.ttl()}
		_, latest, timed := c.clock.Server()
		if !timed && h.Sent > 1 { // no answer tells the time
			latest, timed = start.Wall, true
		}
		entry.Seed, entry.Exists = latest.UnixMilli(), !timed
		item, err := c.table.Apply(ctx, c.rows.Enter(a.key, entry), table.ReturnNew)
		var failed *table.ConditionError
		refused := errors.As(err, &failed)
		switch {
		case refused && failed.Item == nil:
			return attempt.ErrAgain // there is no row, and by now it is known what fence to begin with
		case refused:
			item = failed.Item
		case errors.Is(err, table.ErrInvalid):
			return a.malformed(ctx, err)
		case err != nil:
			return err
		}
		row, err = c.rows.Names().Parse(item)
		switch {
		case err != nil && !refused:
			c.retract(ctx, a.key, item, a.ticket)
			return err
		case err != nil:
			return err
		case row.Entered(a.ticket.ID) != lockrow.Refused:
			return nil
		case ifFree:
			return heldError(&row)
		}
		return errFull
	})
	a.inDoubt = h.InDoubt
	if err == nil {
		a.inDoubt = true // it is there
	}
	a.seen = row
	return row, err
}

// malformed finds out why DynamoDB could not add to the row.
func (a *acquisition) malformed(ctx context.Context, err error) error {
	if _, bad := a.client.read(ctx, a.key); bad != nil {
		return bad
	}
	return err
}

// retract takes a ticket out of a row that is not in order. Should that fail, nothing is granted by it.
func (c *Client) retract(ctx context.Context, key keys.Key, item table.Item, t lockrow.Ticket) {
	for place, text := range c.rows.Names().Texts(item) {
		if text == t.String() {
			_ = c.table.Write(ctx, c.rows.Retract(key, place, t))
		}
	}
}

// line waits in the lock's line until the ticket is first.
func (a *acquisition) line(ctx context.Context) (*Lease, error) {
	for tries := 0; ; {
		row, err := a.enter(ctx, false)
		switch {
		case errors.Is(err, errFull):
			a.drop()
			e := a.client.estimate(&row, len(row.Line))
			e.Longest = a.client.config.Lease
			if a.client.clock.Sleep(ctx, e.Enter(a.client.clock, tries)) != nil {
				return nil, a.gaveUp(ctx)
			}
			tries++
			continue
		case err != nil && ctx.Err() == nil && a.client.table.Retryable(err):
			// An outage: waiting goes on for as long as the caller wants.
			a.leave(ctx)
			continue
		case err != nil:
			a.leave(ctx)
			if ctx.Err() != nil {
				return nil, a.gaveUp(ctx)
			}
			return nil, err
		}
		l, err := a.stand(ctx, row)
		if !errors.Is(err, errAnew) {
			return l, err
		}
		a.drop()
	}
}

// estimate is what a row says about when to look at it again, for a place with so many before it.
func (c *Client) estimate(row *lockrow.Row, ahead int) waitqueue.Estimate {
	e := waitqueue.Estimate{Ahead: ahead, Hold: time.Duration(row.Hold) * time.Millisecond, Longest: c.config.Lease / 4}
	e.Held = time.Duration(c.now()-row.HeldSince()) * time.Millisecond
	return e
}

// granted makes a lease of a row in which the ticket is first.
func (a *acquisition) granted(row *lockrow.Row) *Lease {
	return newLease(a, row.Fence, a.start, row)
}

// leave takes the ticket out of the line, in the background where the caller's context has ended: it may
// be there, or may come yet.
func (a *acquisition) leave(ctx context.Context) {
	if !a.inDoubt {
		a.drop()
		return
	}
	c := a.client
	gone := *a
	a.session, a.ticket = nil, lockrow.Ticket{}
	c.work.Go(func() {
		ctx, cancel := c.clock.Detached(ctx)
		defer cancel()
		defer gone.drop()
		_ = c.removeGhost(ctx, gone.key, gone.ticket.ID) // or else whoever sees it next
	})
}
