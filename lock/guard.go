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
	return l.client.rows.guard(l.key, l.nonce, l.fence).Explain(func(table.Item) error { return l.wasTaken() })
}

// wasTaken is ErrStolen once the row was found to name somebody else. It may say that it was released
// since then: a ghost under this nonce was.
func (l *Lease) wasTaken() error {
	if l.taken.Load() {
		return ErrStolen
	}
	return nil
}

// Write applies operations, all or none, and only if the lock is still held: DynamoDB
// decides that in the same transaction. Otherwise the error matches ErrLost. A condition
// of one of the operations that does not hold is a *table.ConditionError with its index.
// At most 99 actions fit.
//
// Writes of one lease take turns, since transactions that check the same row conflict.
// Whether an operation whose answer was lost for good (table.ErrUnreachable, or ctx ended)
// was applied is not known, also where ctx ended with the lease and the error therefore
// matches ErrLost, too; nor is it where a *table.ConditionError says Pending: an earlier
// attempt may come in when the condition holds. An operation on the lock's own row is refused
// before anything is sent: the guard counts as the operation after the last.
//
// Cost: twice the operations' write units, plus two for the guard.
func (l *Lease) Write(ctx context.Context, ops ...table.Op) error {
	if len(ops) == 0 {
		return wrap("write", fmt.Errorf("%w: no operations", ErrInvalid))
	}
	if err := l.takeTurn(ctx); err != nil {
		return wrap("write", err)
	}
	defer l.endTurn()
	if l.released.Load() {
		return l.gone("write")
	}
	return wrap("write", l.guarded(ctx, l.Guard(), ops))
}

// Commit is Write, and gives the lock up in the same transaction, like Release: the last
// write of a critical section makes the release free. After an error the lock is still held
// and the call can be repeated, unless the error matches ErrLost, or the answer was lost for
// good (table.ErrUnreachable, or ctx ended), or a *table.ConditionError says Pending, since
// an earlier attempt may come in yet: then what was applied is not known. Calling
// again is safe even so; ErrReleased is then the answer if the first call was applied, and
// ErrLost where that cannot be told, since the lock was lost or taken by force meanwhile, or
// ErrClosed, since Close has released it. Where ctx ended with the lease the error matches
// ErrLost, too, and the commit may have been applied: see Write.
//
// Cost: twice the operations' write units, plus two for the release.
func (l *Lease) Commit(ctx context.Context, ops ...table.Op) error {
	if len(ops) == 0 {
		return wrap("commit", fmt.Errorf("%w: no operations: use Release", ErrInvalid))
	}
	if err := l.takeTurn(ctx); err != nil {
		return wrap("commit", err)
	}
	defer l.endTurn()
	if l.released.Load() {
		return l.gone("commit")
	}
	p := l.part(true)
	defer p.abort()
	tried := l.run.committing()
	if err := l.guarded(ctx, p.op, ops); err != nil {
		p.failed(err)
		l.run.refused(tried, err)
		return wrap("commit", err)
	}
	p.done()
	return nil
}

// mayHaveApplied says whether a transaction that failed for good may have been applied, or may
// yet be: where a condition of the caller's own was in its way, an earlier attempt can come in
// when it is not any more. A guard that has failed never holds again.
func mayHaveApplied(err error) bool {
	if failed := table.Conditions(err); len(failed) > 0 {
		return failed[0].Pending
	}
	return !errors.Is(err, ErrInvalid) && !errors.As(err, new(refusal))
}

// guarded writes ops and the guard, and says what it means if the guard fails.
func (l *Lease) guarded(ctx context.Context, guard table.Op, ops []table.Op) error {
	return l.client.guarded(ctx, []*Lease{l}, []table.Op{guard}, ops)
}

// guarded writes ops and the guards of leases, and says what it means if one fails.
func (c *Client) guarded(ctx context.Context, leases []*Lease, guards, ops []table.Op) error {
	at := len(ops)
	err := c.table.Write(ctx, append(ops[:at:at], guards...)...)
	if err != nil && ctx.Err() == nil && c.table.Retryable(err) {
		c.instruments.gaveUp(ctx)
	}
	var lost error
	for _, failed := range table.Conditions(err) {
		if failed.Index < at {
			continue
		}
		if err := leases[failed.Index-at].refusedBy(failed); lost == nil {
			lost = err
		}
	}
	if lost != nil {
		return refusal{lost}
	}
	return err
}

// refusal says that a guard did not hold: nothing was applied.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// refusedBy takes in what it means that the row does not name this lease, with the turn taken, and
// returns it.
func (l *Lease) refusedBy(failed *table.ConditionError) error {
	if err := l.wasTaken(); err != nil {
		return err
	}
	if errors.Is(failed.Err, ErrReleased) || l.goneSince(failed.Item) { // the latter without an answer
		l.gaveBack()
		return l.given() // whether a commit did it cannot always be told
	}
	l.stolen()
	return failed.Err
}
