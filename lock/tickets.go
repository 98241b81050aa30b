package lock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/table"
)

// claimant answers for a ticket of this process: a lease, an entry that waits, or the target of a pass.
type claimant interface {
	// answer reports whether a question is answered. One that is not comes again with the next renewal.
	answer(ctx context.Context, q session.Question) bool
	// last is the lock's row as it was seen last; nil where it was not.
	last() *lockrow.Row
}

// tickets are those that this process answers for. A ticket of its session that is not among them is a
// ghost: a request has entered it that was applied late. No ticket is used twice, so a ghost is
// recognised whenever it is seen.
type tickets struct {
	mu    sync.Mutex
	known map[string]claimant
}

func newTickets() *tickets { return &tickets{known: map[string]claimant{}} }

func (c *Client) newTicket(r *request, s *session.Session) lockrow.Ticket {
	if s == nil {
		return lockrow.OwnTicket(c.clk().Text(), c.now(), r.fixed, c.config.Owner)
	}
	t := lockrow.SessionTicket(s.ID(), s.Next(), c.now(), c.config.Owner)
	if r.shared {
		t = t.AsReader()
	}
	return t
}

// set records who answers for a ticket. An entry does before the request is sent that enters it.
func (t *tickets) set(id string, by claimant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[id] = by
}

func (t *tickets) drop(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, id)
}

func (t *tickets) find(id string) claimant {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[id]
}

// leases are those that go on and that which selects, in the order of their keys: maps have no order, and the same run is to
// send the same requests.
func (t *tickets) leases(which func(*Lease) bool) []*Lease {
	list := t.all()
	list = slices.DeleteFunc(list, func(l *Lease) bool { return !which(l) })
	slices.SortFunc(list, func(a, b *Lease) int {
		return cmp.Or(a.key.Compare(b.key), cmp.Compare(a.holding.Fence, b.holding.Fence), cmp.Compare(a.holding.ID, b.holding.ID))
	})
	return list
}

// all are the leases that go on, in no order.
func (t *tickets) all() (list []*Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, by := range t.known {
		if l, ok := by.(*Lease); ok {
			list = append(list, l)
		}
	}
	return list
}

// seen is a lock's row as the goroutine of this process knows it that has the process's place; nil where nobody has it.
func (c *Client) seen(key keys.Key) *lockrow.Row {
	if by := c.tickets.find(c.queues.Ticket(key)); by != nil {
		return by.last()
	}
	return nil
}

func (c *Client) isOwn(session string) bool {
	s := c.keeper.Current()
	return s != nil && s.ID() == session
}

func (c *Client) asked(ctx context.Context, q session.Question) bool {
	ctx = c.within(ctx)
	if by := c.tickets.find(q.Ticket); by != nil {
		return by.answer(ctx, q)
	}
	if q.Kind == session.Forced {
		return true
	}
	err := c.remove(ctx, q.Key, q.Ticket, nil, nil)
	return err == nil || ctx.Err() == nil && !c.table.Retryable(err)
}

// remove takes a ticket of this process out of a line, wherever it stands, also out of a row that is not in
// order. It was seen last in row, or in item; nil where it was not.
//
// Cost: one conditional write, and one consistent read without a row.
func (c *Client) remove(ctx context.Context, key keys.Key, id string, row *lockrow.Row, item table.Item) error {
	rows := c.layout.rows
	_, err := c.repeater.Do(ctx, attempt.Timeout(c.config.Lease), func(ctx context.Context) (err error) {
		if row == nil && item == nil {
			item, err = c.table.Get(ctx, key, true)
		}
		var now lockrow.Row
		if row != nil {
			now = *row
		} else if err == nil {
			now, err = c.layout.names.Parse(item)
		}
		var op table.Op
		place := now.Place(id)
		there := place >= 0
		switch {
		case errors.Is(err, ErrMalformed):
			op, there = rows.Retract(key, item, id)
		case err != nil && !errors.Is(err, table.ErrNotFound) && !errors.Is(err, ErrNotLock):
			return err
		case there:
			op = rows.Remove(key, &now, []int{place}, c.change(&now))
		}
		if !there {
			return nil
		}
		err = c.table.Write(ctx, op)
		var failed *table.ConditionError
		if !errors.As(err, &failed) {
			return err
		}
		if row, item = nil, failed.Item; item == nil {
			return nil
		}
		return attempt.ErrAgain // the line has moved
	})
	return err
}

// change is what a change of the first place writes, by anybody but its holder. row is what was seen
// before it: what its holder wanted kept for longer (Every) is.
func (c *Client) change(row *lockrow.Row) lockrow.Change {
	return lockrow.Change{Since: c.now(), TTL: max(c.ttl(0), row.TTL)}
}
