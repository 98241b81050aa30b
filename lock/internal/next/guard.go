package next

import (
	"context"
	"errors"
	"slices"

	"github.com/mortise-go/mortise/lock/internal/lease"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// Guard is the condition that the lease holds the lock, for a transaction of the caller's own in the same
// table.
//
// Cost: two write units in the transaction.
func (l *Lease) Guard() table.Op {
	return l.client.rows.Guard(l.key, l.holding()).In(l.client.table).Explain(func(table.Item) error { return ErrStolen })
}

// Write applies operations, all or none, and only if the lock is held. Writes of one lease are applied in
// their order: one whose answer was lost is not applied after a later one.
//
// Cost: twice the operations' write units, and two for the guard.
func (l *Lease) Write(ctx context.Context, ops ...table.Op) error {
	if err := l.takeTurn(ctx); err != nil {
		return err
	}
	defer l.endTurn()
	if l.is().Over() {
		return context.Cause(l.ctx)
	}
	l.writes++
	number := l.writes
	guard := l.client.rows.GuardedWrite(l.key, l.holding(), number)
	err := l.client.table.Write(ctx, append(slices.Clip(ops), guard)...)
	row, guarded := l.guardRefusal(err, len(ops))
	if !guarded {
		return err
	}
	switch row.Wrote(l.holding(), number) {
	case lockrow.Written:
		return nil // by an attempt whose token has been forgotten
	case lockrow.Gone:
		l.on(lease.Taken, ErrStolen)
		return ErrStolen
	}
	return err
}

// guardRefusal is the row that has refused the guard, which counts as the operation after the others.
func (l *Lease) guardRefusal(err error, at int) (lockrow.Row, bool) {
	for _, failed := range table.Conditions(err) {
		if failed.Index == at {
			return l.client.refusal(failed)
		}
	}
	return lockrow.Row{}, false
}

// Commit is Write, and gives the lock up in the same transaction.
//
// Cost: twice the operations' write units, and two for the release.
func (l *Lease) Commit(ctx context.Context, ops ...table.Op) error {
	if err := l.takeTurn(ctx); err != nil {
		return err
	}
	defer l.endTurn()
	if l.is().Over() {
		return context.Cause(l.ctx)
	}
	c := l.client
	to := l.next()
	op := c.rows.Release(l.key, l.holding(), l.change())
	if to != nil {
		op = c.rows.Pass(l.key, l.holding(), to.ticket, l.change(), lockrow.Data{})
	}
	start := c.clock.Instant()
	err := c.table.Write(ctx, append(slices.Clip(ops), op)...)
	row, guarded := l.guardRefusal(err, len(ops))
	switch {
	case err == nil && to == nil:
		l.on(lease.GivenUp, nil)
		return nil
	case err == nil:
		return l.passed(to, start)
	case guarded && !row.Holds(l.holding()):
		// The transaction's token judges: it was not applied, and never will be.
		if to != nil {
			to.cancel(c)
		}
		l.on(lease.Taken, ErrStolen)
		return ErrStolen
	case guarded || len(table.Conditions(err)) > 0 && !pending(err):
		if to != nil {
			to.cancel(c)
		}
		return err
	}
	// It may have been applied, or may yet be.
	if to != nil {
		l.targets = append(l.targets, *to)
	}
	l.inDoubt = true
	return err
}

func pending(err error) bool {
	var failed *table.ConditionError
	return errors.As(err, &failed) && failed.Pending
}
