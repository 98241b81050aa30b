package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

var errFull = errors.New("the line is full")

// enter takes new tickets and enters all of them into their lines, or none. After an error, inDoubt tells whether they may be there.
// With ifFree, it refuses a lock that is not free. (Of permits, one free permit is enough.)
func (a *acquisition) enter(ctx context.Context, ifFree bool) error {
	if err := a.take(ctx); err != nil {
		return err
	}
	return a.send(ctx, ifFree, func(e *entry) table.Op { return a.client.layout.rows.Enter(e.key, a.entry(e, ifFree)) })
}

func (a *acquisition) send(ctx context.Context, ifFree bool, op func(*entry) table.Op) error {
	how := a.sendAll
	if len(a.entries) == 1 {
		how = a.sendOne
	}
	err := how(ctx, ifFree, op)
	for _, e := range a.entries { // with ifFree, the payload and the run were written with the tickets (a try has no run)
		e.begun = err == nil && ifFree
	}
	return err
}

func (a *acquisition) entry(e *entry, ifFree bool) lockrow.Entry {
	entry := lockrow.Entry{Ticket: e.ticket, IfFree: ifFree, Exists: a.existing, Seed: a.client.clk().Stamp().UnixMilli(), TTL: a.client.ttl(a.keep())}
	if entry.Permits, entry.New = a.permits, e.isNew; ifFree {
		entry.Data, entry.Run = a.data, a.run.start()
	}
	entry.Shard, entry.Listed = a.client.layout.index.listed(e.key, e.ticket)
	return entry
}

func (a *acquisition) sendOne(ctx context.Context, ifFree bool, op func(*entry) table.Op) error {
	c, e := a.client, a.entries[0]
	inDoubt, err := c.repeater.Do(ctx, attempt.Timeout(a.length(c)), func(ctx context.Context) error {
		item, err := c.table.Apply(ctx, op(e), table.ReturnNew)
		row, refused, bad := c.rowOf(item, err)
		switch none := refused && bad == nil && row.Fence == 0; {
		case none && a.permits > 0 && !a.existing:
			e.isNew = true
			return attempt.ErrAgain
		case none: // there is no row, and Existing forbids making one
			return table.ErrNotFound
		case !refused && errors.Is(err, table.ErrInvalid):
			return a.malformed(ctx, e.key, err)
		case bad != nil:
			if err == nil {
				e.malformed = item
			}
			return bad
		}
		e.saw(&row)
		return a.entered(&row, e, ifFree)
	})
	a.inDoubt = err == nil || e.malformed != nil || inDoubt
	return err
}

// entered is the result of an entry, by the row that answered or refused it. nil means that the ticket is in the line.
func (a *acquisition) entered(row *lockrow.Row, e *entry, ifFree bool) error {
	switch {
	case row.Place(e.ticket.ID) >= 0:
		return nil
	case a.waited && min(a.permits, row.Permits) > 0 && row.Permits != a.permits: // SetPermits was called while the call waited
		a.permits = row.Permits
		return attempt.ErrAgain
	case row.Permits != a.permits:
		return &PermitsError{Named: int(a.permits), Row: int(row.Permits)}
	case e.isNew: // somebody else has made the row meanwhile
		e.isNew = false
		return attempt.ErrAgain
	case ifFree && a.run.recorded(row):
		return errSettled
	case ifFree:
		return heldBy(a.client.heldError(e.target, row))
	}
	return errFull
}

// malformed reads a row that DynamoDB could not change. It returns what is wrong with the row, or else err.
func (a *acquisition) malformed(ctx context.Context, key keys.Key, err error) error {
	if _, bad := a.client.read(ctx, key); errors.Is(bad, ErrMalformed) || errors.Is(bad, ErrNotLock) {
		return bad
	}
	return err
}

// sendAll enters several lines in one transaction. So the tickets of two calls stand in the same order in every line that they share.
// DynamoDB recognises a repeated transaction by its token, so the table itself repeats attempts without an answer.
//
// Cost: two write units for each line; and half a read unit for each, since a transaction returns no rows.
func (a *acquisition) sendAll(ctx context.Context, ifFree bool, op func(*entry) table.Op) error {
	c := a.client
	ops, list := make([]table.Op, len(a.entries)), make([]keys.Key, len(a.entries))
	for i, e := range a.entries {
		ops[i], list[i] = op(e), e.key
	}
	a.inDoubt = true
	if err := c.table.Write(ctx, ops...); err != nil {
		if err = a.refusedAll(ctx, err, ifFree); err != nil {
			return err
		}
	}
	items, err := c.table.BatchGet(ctx, list, true)
	if err != nil {
		return err
	}
	for i, e := range a.entries {
		row, err := c.layout.names.Parse(items[i])
		if err != nil {
			return err
		}
		e.saw(&row)
	}
	return nil
}

// allFirst refuses what a try has entered if one of the tickets does not hold. Such a ticket waits (a reader behind a writer), or somebody has
// removed it by force before sendAll read the rows.
func (a *acquisition) allFirst() error {
	for _, e := range a.entries {
		if !e.row.Load().Granted(e.ticket.ID) {
			return cmp.Or(a.heldBy(), ErrStolen)
		}
	}
	return nil
}

// refusedAll is the result of a transaction, by the rows that have refused it. nil means that an earlier attempt was applied.
func (a *acquisition) refusedAll(ctx context.Context, err error, ifFree bool) error {
	c := a.client
	failed := table.Conditions(err)
	if len(failed) == 0 {
		if errors.Is(err, table.ErrInvalid) {
			for _, e := range a.entries {
				if bad := a.malformed(ctx, e.key, nil); bad != nil {
					return fmt.Errorf("%w: %w", bad, err)
				}
			}
		}
		return err
	}
	var held []*HeldError
	a.inDoubt = table.MayBeApplied(err)
	for _, f := range failed {
		e := a.entries[f.Index]
		if f.Item == nil {
			return table.ErrNotFound // there is no row, and Existing forbids making one
		}
		row, bad := c.layout.names.Parse(f.Item)
		if bad != nil {
			return bad
		}
		e.saw(&row)
		if row.Permits > 0 {
			return &PermitsError{Row: int(row.Permits)}
		}
		if row.Place(e.ticket.ID) >= 0 { // an earlier attempt was applied, and DynamoDB has forgotten its token
			a.inDoubt = true
			return nil
		}
		held = append(held, c.heldError(e.target, &row))
	}
	if ifFree {
		return heldBy(held...)
	}
	return errFull
}
