package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-go/mortise/table"
)

// Guard is the condition that this lease holds the lock, as an operation to put into a
// transaction of the caller's own. It does not look at the time: a lease that has ended
// without anybody else acquiring is still exclusive. If the lock was lost, its failure is
// a *table.ConditionError that matches ErrLost.
//
// Cost: two write units in the transaction.
func (l *Lease) Guard() table.Op {
	return l.client.rows.guard(l.key, l.nonce)
}

// Write applies operations, all or none, and only if the lock is still held: DynamoDB
// decides that in the same transaction. Otherwise the error matches ErrLost. A condition
// of one of the operations that does not hold is a *table.ConditionError with its index.
// At most 99 actions fit.
//
// Writes of one lease take turns, since transactions that check the same row conflict.
// Whether an operation whose answer was lost for good (table.ErrUnreachable, or ctx ended)
// was applied is not known. An operation on the lock's own row is refused before anything
// is sent: the guard counts as the operation after the last.
//
// Cost: twice the operations' write units, plus two for the guard.
func (l *Lease) Write(ctx context.Context, ops ...table.Op) error {
	if len(ops) == 0 {
		return wrap("write", fmt.Errorf("%w: no operations", ErrInvalid))
	}
	return l.write(ctx, "write", l.Guard(), ops)
}

// Commit is Write, and releases the lock in the same transaction: the last write of a
// critical section makes the release free. After an error the lock is still held and the
// call can be repeated, unless the error matches ErrLost, or the answer was lost for good
// (table.ErrUnreachable, or ctx ended): then what was applied is not known. Calling again
// is safe even so; ErrReleased is then the answer if the first call was applied.
//
// Cost: twice the operations' write units, plus two for the release.
func (l *Lease) Commit(ctx context.Context, ops ...table.Op) error {
	if len(ops) == 0 {
		return wrap("commit", fmt.Errorf("%w: no operations: use Release", ErrInvalid))
	}
	c := l.client
	return l.write(ctx, "commit", c.rows.release(l.key, l.nonce, c.clock.wall(), c.deleteAfter(c.calendar(), 0)), ops)
}

func (l *Lease) write(ctx context.Context, operation string, guard table.Op, ops []table.Op) error {
	if err := l.takeTurn(ctx); err != nil {
		return wrap(operation, err)
	}
	defer l.endTurn()
	if l.released.Load() {
		return wrap(operation, ErrReleased)
	}
	at := len(ops)
	err := l.client.table.Write(ctx, append(ops[:at:at], guard)...)
	if err == nil {
		if operation == "commit" {
			l.gaveBack()
		}
		return nil
	}
	for _, failed := range table.Conditions(err) {
		if failed.Index != at {
			continue
		}
		if errors.Is(failed.Err, ErrReleased) {
			l.gaveBack()
		} else {
			l.stolen()
		}
		return wrap(operation, failed.Err)
	}
	return wrap(operation, err)
}
