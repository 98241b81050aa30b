package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// Guard returns the condition that this lease holds the lock, as an operation for a transaction of the caller's own in
// the same table. Use it to check several locks, or if [Lease.Write] does not fit.
//
// If the lock was lost, the transaction fails with a [*table.ConditionError] that matches [ErrLost], and nothing was written
// ([Shared] describes an exception). For any other error, also one that matches ErrLost, [table.MayBeApplied] reports whether
// the transaction may have been applied. (If ctx is that of the lease and ends meanwhile, the error matches ErrLost too.)
//
// Transactions with a guard have no order, neither among each other nor with [Lease.Write]. One whose answer was lost may be
// applied after a later one, as long as the lock is held. If that matters, use Write, or a version of the row.
//
// The condition does not depend on clocks: while nobody else has acquired the lock it holds, also if the lease has
// ended.
//
// Cost: two write units in the transaction.
func (l *Lease) Guard() table.Op {
	return l.client.layout.rows.Guard(l.key, l.holding).In(l.client.table).Explain(func(table.Item) error { return cmp.Or(l.over(), ErrStolen) })
}

// Write applies all operations, or none, and only if the lock is still held. DynamoDB decides that in the same
// transaction. If the lock was lost, the error matches [ErrLost], and nothing was written. If a condition of an
// operation is not met, the error is a [*table.ConditionError] with the operation's index. At most 99 operations are
// possible.
//
// Writes of one lease take turns and are applied in the order of the calls. A write whose answer was lost is never
// applied after a later one.
//
// An error that matches [ErrLost] or [ErrReleased] means that nothing was written. For any other error, [table.MayBeApplied]
// reports whether the operations may have been applied: no answer came, or ctx ended meanwhile. An operation on the lock's own
// row, such as [Lease.Guard], is refused before anything is sent, and so is a call without operations ([ErrInvalid]).
//
// Cost: twice the write units of the operations, and two for the guard.
func (l *Lease) Write(ctx context.Context, ops ...table.Op) error {
	return l.call("write", func() error { return write(ctx, []*Lease{l}, ops) })
}

// Commit does the same as [Lease.Write], and releases the lock in the same transaction. Use it for the last write under
// a lock: the release then costs no request.
//
// If the error matches [ErrLost] or [ErrReleased], nothing was written. After another error the lock is still held, and the call
// can be repeated, except where it is not known whether the operations were applied (see Write). If the lock is not held any
// more by then, the second call returns [table.ErrUnreachable]: the first one may have been applied.
//
// Cost: twice the write units of the operations, and two for the release.
func (l *Lease) Commit(ctx context.Context, ops ...table.Op) error {
	return l.call("commit", func() error { return commit(ctx, []*Lease{l}, ops) })
}

// inTurns takes the turns of all leases, and then runs f. Two calls with the leases of one bundle cannot deadlock, since the leases come
// in the same order. over returns the error of a lease that is over.
func inTurns(ctx context.Context, leases []*Lease, ops []table.Op, over func(*Lease) error, f func() error) error {
	if len(ops) == 0 {
		return invalid("no operations")
	}
	if n := len(ops) + len(leases); n > table.MaxOps {
		return invalid("%d operations and %d locks, at most %d together", len(ops), len(leases), table.MaxOps)
	}
	for _, l := range leases {
		if err := l.turn.take(ctx); err != nil {
			return errs.WithOutcome(err, false) // nothing was sent
		}
		defer l.turn.end()
	}
	for _, l := range leases {
		if l.is().Over() {
			return over(l)
		}
	}
	return f()
}

func write(ctx context.Context, leases []*Lease, ops []table.Op) error {
	return inTurns(ctx, leases, ops, (*Lease).over, func() error {
		guards := make([]table.Op, len(leases))
		for i, l := range leases {
			l.turn.writes++
			guards[i] = l.client.layout.rows.GuardedWrite(l.key, l.holding, l.turn.writes)
		}
		err := send(ctx, leases, guards, ops)
		rows, bad := guardRefusals(leases, err, len(ops))
		if bad != nil {
			return bad
		}
		written := 0
		var gone error
		for i, l := range leases {
			switch {
			case rows[i] == nil:
			case !rows[i].Holds(l.holding): // others of the leases may be gone, too
				gone = cmp.Or(gone, l.gone(ctx, rows[i]))
			case l.holding.Kind == lockrow.Exclusive && rows[i].Writes == l.turn.writes: // an attempt was applied, and its token forgotten
				written++
			}
		}
		switch {
		case gone != nil && leases[0].holding.Kind == lockrow.Shared && table.MayBeApplied(err):
			return unknown(errs.Kind(table.ErrUnreachable, gone)) // with a late copy of its entry, an earlier attempt can still be applied
		case gone != nil:
			return gone
		case written == len(leases):
			return nil
		}
		return err
	})
}

func commit(ctx context.Context, leases []*Lease, ops []table.Op) error {
	err := inTurns(ctx, leases, ops, (*Lease).overOrCommitted, func() error {
		for pending := false; ; {
			again, err := commitOnce(ctx, leases, ops)
			if pending = pending || table.MayBeApplied(err); !again {
				for _, failed := range table.Conditions(err) {
					failed.Pending = pending
				}
				return err
			}
		}
	})
	if slices.ContainsFunc(leases, (*Lease).inDoubt) {
		return unknown(err) // this commit, or an earlier one, may have been applied
	}
	return err
}

// commitOnce sends the transaction of a commit. again means that the caller has to call it again: tickets have entered or left the line,
// so that the lock has to be given up by another operation.
func commitOnce(ctx context.Context, leases []*Lease, ops []table.Op) (again bool, err error) {
	var to *acquisition
	if l := leases[0]; len(leases) == 1 && l.turn.data.Given { // a transaction returns no row: to pass, the payload has to be known
		to = l.next()
	}
	gives := make([]table.Op, len(leases))
	for i, l := range leases {
		gives[i], _ = l.give(to, true)
	}
	err = send(ctx, leases, gives, ops)
	if err == nil {
		for _, l := range leases {
			l.committed.Store(true)
			if to != nil {
				row := passedRow(l, to)
				l.turn.row, l.turn.blind = &row, true
			}
			l.given(to)
		}
		return false, nil
	}
	doubt := table.MayBeApplied(err)
	if to != nil && !doubt {
		leases[0].dropTarget()
	}
	rows, bad := guardRefusals(leases, err, len(ops))
	if bad != nil {
		return false, bad
	}
	refused, late := 0, false
	var gone error
	for i, l := range leases {
		row := rows[i]
		if row == nil {
			continue
		}
		refused++
		if doubt && l.holding.Kind == lockrow.Shared { // as in write
			l.doubtCommit()
		}
		switch {
		case !row.Holds(l.holding) && l.inDoubt():
			l.turn.saw(row)
			_ = l.refused(ctx, true) // whatever it finds out, nothing shows whether the earlier commit was applied
			gone = cmp.Or(gone, l.overOrCommitted())
		case !row.Holds(l.holding): // this transaction was not applied, and never will be
			gone = cmp.Or(gone, l.gone(ctx, row))
		case row.Exit(l.holding, 0) != l.turn.exit:
			late = late || row.MayFit(l.holding, l.turn.exit)
			l.turn.saw(row)
			again = true
		}
	}
	if gone != nil {
		return false, gone
	}
	again = again && refused == len(table.Conditions(err))
	if doubt || again && late { // a late copy of the request is applied once the row fits it
		for _, l := range leases {
			l.turn.inDoubt = true
			l.doubtCommit()
		}
	}
	return again, ofOperations(err, len(ops))
}

// ofOperations removes the failed guards from the error of a transaction if conditions of the caller's own operations, which come first,
// were not met either.
func ofOperations(err error, ops int) error {
	failed := table.Conditions(err)
	own := slices.IndexFunc(failed, func(f *table.ConditionError) bool { return f.Index >= ops })
	if own <= 0 {
		return err
	}
	return table.ConditionErrors(failed[:own])
}

// overOrCommitted is over for a commit. If an earlier commit may have been applied, the error says so: only the token of that
// transaction could show whether it was, and no release does.
func (l *Lease) overOrCommitted() error {
	if l.inDoubt() && !l.committed.Load() {
		return fmt.Errorf("%w: the lock is not held any more, and an earlier commit may have been applied", table.ErrUnreachable)
	}
	return l.over()
}

// gone returns the error of a write that was refused because the lock is not held any more. Either the lock was lost, or a release
// or a commit without an answer gave it up.
func (l *Lease) gone(ctx context.Context, row *lockrow.Row) error {
	l.turn.saw(row)
	if err := l.refused(ctx, l.turn.inDoubt); err != nil {
		return err
	}
	return l.over()
}

// passedRow works out the row of a lock after a transaction has passed the lock on, since a transaction returns no row.
func passedRow(l *Lease, to *acquisition) lockrow.Row {
	row := *l.turn.row
	row.Fence++
	row.Line = append([]lockrow.Ticket{to.entries[0].ticket}, row.Line[min(1, len(row.Line)):]...)
	row.Data = l.turn.data.Value // which is known
	if to.data.Given {
		row.Data = to.data.Value
	}
	return row
}

// send applies ops and guards. ctx can be that of a lease, and end because the lease does. If no guard was refused by then, a late copy
// of a request can still be applied, even of one that was throttled. An error that tells of a loss while ctx goes on is that of another
// lease's guard among ops.
func send(ctx context.Context, leases []*Lease, guards, ops []table.Op) error {
	err := leases[0].client.table.Write(ctx, append(slices.Clip(ops), guards...)...)
	refused := slices.ContainsFunc(table.Conditions(err), func(f *table.ConditionError) bool { return f.Index >= len(ops) })
	if table.MayBeApplied(err) || !refused && ctx.Err() != nil && saysOver(err) {
		return unknown(err)
	}
	return err
}

// guardRefusals returns for each lease the row that has refused its guard; nil if the guard was not refused. after is the number of
// operations in front of the guards.
func guardRefusals(leases []*Lease, err error, after int) ([]*lockrow.Row, error) {
	rows := make([]*lockrow.Row, len(leases))
	for _, failed := range table.Conditions(err) {
		i := failed.Index - after
		if i < 0 {
			continue
		}
		row, err := leases[i].client.layout.names.Parse(failed.Item)
		if errors.Is(err, ErrMalformed) {
			return nil, err // a malformed row does not show who holds the lock
		}
		rows[i] = &row
	}
	return rows, nil
}

// unknownError is the error of a write that may have been applied. It does not match [ErrLost] and [ErrReleased], which mean that
// nothing was written. Without it, the error would match if ctx is the lease's own context, which has the loss as its cause.
type unknownError struct{ err error }

// unknown marks the error of a write that may have been applied. The error can be that of a later attempt, which was clearly refused.
func unknown(err error) error {
	err = errs.WithOutcome(err, true)
	if saysOver(err) {
		return &unknownError{err}
	}
	return err
}

func saysOver(err error) bool { return errors.Is(err, ErrLost) || errors.Is(err, ErrReleased) }

func (e *unknownError) Error() string { return e.err.Error() }

// Is matches what the inner error matches, except ErrReleased, ErrLost and the errors that match ErrLost.
func (e *unknownError) Is(target error) bool {
	return !errors.Is(target, ErrLost) && !errors.Is(target, ErrReleased) && errors.Is(e.err, target)
}

// As finds what the inner error contains.
func (e *unknownError) As(target any) bool { return errors.As(e.err, target) }
