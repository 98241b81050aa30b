package lock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/table"
)

// claimant answers for a ticket of this process: an entry that waits, or a lease.
type claimant interface {
	// answer reports whether a question is answered. One that is not comes again with the next renewal.
	answer(ctx context.Context, q session.Question) bool
}

// tickets are those that this process answers for. A ticket of its session that is not among them is a
// ghost: a request has entered it that was applied late. No ticket is used twice, so a ghost is
// recognised whenever it is seen.
type tickets struct {
	mu    sync.Mutex
	known map[string]claimant
}

func newTickets() *tickets { return &tickets{known: map[string]claimant{}} }

// set records who answers for a ticket. An entry does before the request is sent that enters it.
func (t *tickets) set(id string, by claimant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[id] = by
}

// drop forgets a ticket: nobody answers for it any more.
func (t *tickets) drop(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, id)
}

// find is who answers for a ticket; nil for nobody.
func (t *tickets) find(id string) claimant {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[id]
}

// leases are those that go on, in the order of their keys: maps have no order, and the same run is to
// send the same requests.
func (t *tickets) leases() []*Lease {
	t.mu.Lock()
	var list []*Lease
	for _, by := range t.known {
		if l, ok := by.(*Lease); ok {
			list = append(list, l)
		}
	}
	t.mu.Unlock()
	slices.SortFunc(list, func(a, b *Lease) int {
		return cmp.Or(cmp.Compare(a.key.PK, b.key.PK), cmp.Compare(a.key.SK, b.key.SK), cmp.Compare(a.fence, b.fence))
	})
	return list
}

// held is how many leases go on.
func (t *tickets) held() (n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, by := range t.known {
		if _, ok := by.(*Lease); ok {
			n++
		}
	}
	return n
}

// ofKey is a lease of this process for a lock; nil for none.
func (t *tickets) ofKey(key keys.Key) *Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, by := range t.known {
		if l, ok := by.(*Lease); ok && l.key == key {
			return l
		}
	}
	return nil
}

// asked answers what another process asks of this one.
func (c *Client) asked(ctx context.Context, q session.Question) bool {
	if by := c.tickets.find(q.Ticket); by != nil {
		return by.answer(ctx, q)
	}
	if q.Kind == session.Forced {
		return true
	}
	err := c.remove(ctx, q.Key, q.Ticket, nil)
	return err == nil || ctx.Err() == nil && !c.table.Retryable(err)
}

// remove takes a ticket of this process out of a line, wherever it stands. row is where it was seen last,
// nil where it was not.
//
// Cost: one conditional write, and one consistent read without a row.
func (c *Client) remove(ctx context.Context, key keys.Key, id string, row *lockrow.Row) error {
	var h attempt.History
	return c.repeater.Do(ctx, attempt.Timeout(c.config.Lease), &h, func(ctx context.Context, _ clock.Instant) error {
		if row == nil {
			now, err := c.read(ctx, key)
			switch {
			case errors.Is(err, table.ErrNotFound), errors.Is(err, ErrNotLock):
				return nil
			case err != nil:
				return err
			}
			row = &now
		}
		place := row.Place(id)
		if place < 0 {
			return nil
		}
		op := c.layout.rows.Leave(key, lockrow.Position{Place: place, ID: id})
		if place == 0 {
			op = c.layout.rows.Release(key, lockrow.Holding{ID: id, Fence: row.Fence}, c.change(row))
		}
		err := c.table.Write(ctx, op)
		var failed *table.ConditionError
		if !errors.As(err, &failed) {
			return err
		}
		if failed.Item == nil {
			return nil
		}
		now, err := c.layout.names.Parse(failed.Item) // the line has moved
		if err != nil {
			return err
		}
		row = &now
		return attempt.ErrAgain
	})
}

// change is what a change of the first place writes, by anybody but its holder. row is what was seen
// before it.
func (c *Client) change(row *lockrow.Row) lockrow.Change {
	return lockrow.Change{Since: c.now(), TTL: c.ttl(0), Last: len(row.Line) == 1}
}
