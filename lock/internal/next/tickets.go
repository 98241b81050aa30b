package next

import (
	"context"
	"errors"
	"sync"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/table"
)

// tickets are those that somebody in this process answers for: who enters, waits, holds or releases. A
// ticket of this process that is not among them is a ghost, which a request has entered that came in
// late. No ticket is used twice, so a ghost is recognised whenever it is seen.
type tickets struct {
	mu    sync.Mutex
	known map[string]*Lease // nil until there is a lease
}

func newTickets() *tickets { return &tickets{known: map[string]*Lease{}} }

// add makes a ticket known, before the request is sent that enters it.
func (t *tickets) add(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[id] = nil
}

// hold says which lease a ticket belongs to.
func (t *tickets) hold(id string, l *Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[id] = l
}

// drop forgets a ticket: nobody answers for it any more.
func (t *tickets) drop(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, id)
}

// find reports whether a ticket is known, and its lease.
func (t *tickets) find(id string) (*Lease, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok := t.known[id]
	return l, ok
}

// asked answers what another process asks of this one.
func (c *Client) asked(ctx context.Context, q session.Question) bool {
	l, known := c.tickets.find(q.Ticket)
	switch {
	case !known && q.Kind == session.Forced:
		return true
	case !known:
		return c.removeGhost(ctx, q.Key, q.Ticket) == nil
	case l == nil:
		return q.Kind == session.Claim // somebody is entering with it
	case q.Kind == session.Revoke:
		l.asked()
	case q.Kind == session.Forced:
		l.check(ctx)
	}
	return true
}

// removeGhost takes a ticket of this process that nobody answers for out of a line.
//
// Cost: one consistent read; one conditional write where it is there.
func (c *Client) removeGhost(ctx context.Context, key keys.Key, id string) error {
	var h attempt.History
	return c.repeater.Do(ctx, attempt.Timeout(c.config.Lease), &h, func(ctx context.Context, _ clock.Instant) error {
		row, err := c.read(ctx, key)
		if errors.Is(err, lockrow.ErrNotLock) {
			return nil
		}
		if err != nil {
			return err
		}
		place := row.Place(id)
		if place < 0 {
			return nil
		}
		op := c.rows.Leave(key, lockrow.Position{Place: place, ID: id})
		if place == 0 {
			op = c.rows.Release(key, lockrow.Holding{ID: id, Fence: row.Fence}, lockrow.Change{Since: c.now(), TTL: c.ttl()})
		}
		return again(c.table.Write(ctx, op))
	})
}

// again asks for another attempt where a condition did not hold: the line has moved.
func again(err error) error {
	if errors.Is(err, table.ErrCondition) {
		return attempt.ErrAgain
	}
	return err
}

// read reads a lock's row, consistently. A row that does not exist is lockrow.ErrNotLock.
func (c *Client) read(ctx context.Context, key keys.Key) (lockrow.Row, error) {
	item, err := c.table.Get(ctx, key, true)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return lockrow.Row{}, err
	}
	return c.rows.Names().Parse(item)
}
