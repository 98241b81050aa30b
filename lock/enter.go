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

// enter takes new tickets and puts them into their lines, all or none, until it is clear whether they are
// there. ifFree refuses lines in which anybody is.
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
	for _, e := range a.entries { // the payload, and the run, were written with the tickets
		e.begun = err == nil && ifFree && (a.run == nil || e.path == pathFree)
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
	entered := false // into a row that is not in order
	inDoubt, err := c.repeater.Do(ctx, attempt.Timeout(a.length(c)), func(ctx context.Context) error {
		item, err := c.table.Apply(ctx, op(e), table.ReturnNew)
		row, refused, bad := c.rowOf(item, err)
		switch none := refused && bad == nil && row.Fence == 0; {
		case none && a.permits > 0 && !a.existing:
			e.isNew = true
			return attempt.ErrAgain
		case none: // Existing
			return table.ErrNotFound
		case !refused && errors.Is(err, table.ErrInvalid):
			return a.malformed(ctx, e.key, err)
		case bad != nil:
			if entered = err == nil; entered {
				e.malformed = item
			}
			return bad
		}
		e.saw(&row)
		return a.entered(&row, e, ifFree)
	})
	a.inDoubt = err == nil || entered || inDoubt
	return err
}

// entered is the meaning of a row that answered or refused an entry.
func (a *acquisition) entered(row *lockrow.Row, e *entry, ifFree bool) error {
	switch {
	case row.Place(e.ticket.ID) >= 0:
		return nil
	case a.waited && min(a.permits, row.Permits) > 0 && row.Permits != a.permits: // since it has begun to wait
		a.permits = row.Permits
		return attempt.ErrAgain
	case row.Permits != a.permits:
		return &PermitsError{Named: int(a.permits), Row: int(row.Permits)}
	case e.isNew: // somebody else has made the row
		e.isNew = false
		return attempt.ErrAgain
	case ifFree && a.run.recorded(row):
		return errSettled
	case ifFree:
		return heldBy(a.client.heldError(e.target, row))
	}
	return errFull
}

// joinReaders enters behind readers, where nobody else is in the line that has refused the reader. held is that refusal. Should a writer
// have come in between, the ticket waits: see allFirst.
func (a *acquisition) joinReaders(ctx context.Context, held error) error {
	e := a.entries[0]
	if row := e.row.Load(); row.Permits > 0 || row.Holders() < len(row.Line) || !row.Line[0].Shared() {
		return held
	}
	err := a.send(ctx, false, func(e *entry) table.Op { return a.client.layout.rows.Enter(e.key, a.entry(e, false)) })
	if errors.Is(err, errFull) {
		return held
	}
	return err
}

// malformed finds out why DynamoDB could not change a row.
func (a *acquisition) malformed(ctx context.Context, key keys.Key, err error) error {
	if _, bad := a.client.read(ctx, key); errors.Is(bad, ErrMalformed) || errors.Is(bad, ErrNotLock) {
		return bad
	}
	return err
}

// sendAll enters several lines in one transaction, which DynamoDB knows by its token: attempts without
// an answer are the table's to repeat. So entries of different calls stand in the same order in every
// line that they share.
//
// Cost: two write units for each line; and half a read unit for each, since a transaction returns no rows.
func (a *acquisition) sendAll(ctx context.Context, ifFree bool, op func(*entry) table.Op) error {
	ops := make([]table.Op, len(a.entries))
	for i, e := range a.entries {
		ops[i] = op(e)
	}
	a.inDoubt = true
	if err := a.client.table.Write(ctx, ops...); err != nil {
		if err = a.refusedAll(ctx, err, ifFree); err != nil {
			return err
		}
	}
	return a.readAll(ctx)
}

// allFirst refuses what a try has entered if a ticket does not hold: it waits, or has left its line, by force, before the rows of
// several were read.
func (a *acquisition) allFirst() error {
	for _, e := range a.entries {
		if !e.row.Load().Granted(e.ticket.ID) {
			return cmp.Or(a.heldBy(), ErrStolen)
		}
	}
	return nil
}

// refusedAll is the meaning of the rows that have refused a transaction; nil where it was applied.
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
			return table.ErrNotFound // Existing
		}
		row, bad := c.layout.names.Parse(f.Item)
		if bad != nil {
			return bad
		}
		e.saw(&row)
		if row.Permits > 0 {
			return &PermitsError{Row: int(row.Permits)}
		}
		if row.Place(e.ticket.ID) >= 0 { // by an attempt whose token has been forgotten
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

// readAll reads the rows of all entries, consistently.
func (a *acquisition) readAll(ctx context.Context) error {
	c := a.client
	list := make([]keys.Key, len(a.entries))
	for i, e := range a.entries {
		list[i] = e.key
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
