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

// claimant answers for a ticket of this process: a lease, or an entry that waits or gets the lock by a pass.
type claimant interface {
	// answer reports whether a question is answered. If not, the question comes again with the next renewal.
	answer(ctx context.Context, q session.Question) bool
}

// tickets has the tickets that this process answers for. Any other ticket of its session is a ghost: a late request has entered it. No
// ticket is used twice, so a ghost is recognised whenever it is seen.
type tickets struct {
	mu    sync.Mutex
	known map[string]claimant
}

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

// set records who answers for a ticket. An entry calls it before its request is sent, or else the ticket could be taken for a ghost.
func (t *tickets) set(id string, by claimant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[id] = by
}

// drop forgets who answers for a ticket, and reports whether anybody did.
func (t *tickets) drop(id string) (known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known = t.known[id]
	delete(t.known, id)
	return known
}

func (t *tickets) find(id string) claimant {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[id]
}

// leases returns those leases that go on and match which, in the order of their keys: a map has no order, and a simulation that is
// repeated must send the same requests.
func (t *tickets) leases(which func(*Lease) bool) (list []*Lease) {
	t.mu.Lock()
	for _, by := range t.known {
		if l, ok := by.(*Lease); ok {
			list = append(list, l)
		}
	}
	t.mu.Unlock()
	list = slices.DeleteFunc(list, func(l *Lease) bool { return !which(l) })
	slices.SortFunc(list, func(a, b *Lease) int {
		return cmp.Or(a.key.Compare(b.key), cmp.Compare(a.holding.Fence, b.holding.Fence), cmp.Compare(a.holding.ID, b.holding.ID))
	})
	return list
}

// seen is a lock's row as known to the goroutine that has this process's place in the line; nil if no goroutine has it.
func (c *Client) seen(key keys.Key) *lockrow.Row {
	switch by := c.tickets.find(c.queues.Ticket(key)).(type) {
	case *entry:
		return by.last()
	case *Lease:
		return by.row
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
	return !again(c.remove(ctx, q.Key, q.Ticket, nil, nil))
}

// remove takes a ticket of this process out of a line, from any place, also out of a malformed row. The ticket was last seen in row,
// or in item if the row is malformed. Both are nil if it was not seen.
//
// Cost: one conditional write, and one consistent read if row and item are nil.
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
			op = rows.Remove(key, &now, place, c.change(&now))
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
		return attempt.ErrAgain // the row has changed: item shows it
	})
	return err
}

// change is what anybody except the holder writes with a change of the first place. row is the row before the change: if its holder
// keeps it for longer than the retention (Every), it stays for as long.
func (c *Client) change(row *lockrow.Row) lockrow.Change {
	return lockrow.Change{Since: c.now(), TTL: max(c.ttl(0), row.TTL)}
}
