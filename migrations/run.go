package migrations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// MaxStep is the maximum length of a step's name in bytes.
const MaxStep = 128

// Run is one run of a migration, under the lock. It is not safe for concurrent use.
type Run struct {
	migrator  *Migrator
	lease     *lock.Lease
	migration *Migration
	record    *Record
	steps     map[string]map[uint32]checkpoint // checkpoints of earlier attempts that count, by step name and part
	used      map[string]bool                  // names of steps in this attempt
	step      string                           // the step that runs, or that failed
	failure   error                            // error of the step that failed
	recorded  bool                             // the result is recorded: the run can write nothing more
	unclear   []Record                         // results that may be recorded, although the answers to their writes do not say so
}

// Table returns the table that is migrated.
func (r *Run) Table() *table.Table { return r.migrator.table }

// Lease returns the lease of the migration's lock.
func (r *Run) Lease() *lock.Lease { return r.lease }

// Attempt returns the number of this attempt to run the migration, counted from 1.
func (r *Run) Attempt() int { return r.record.Attempts }

// Write applies all operations or none, and only while the lock is held. See [lock.Lease.Write].
func (r *Run) Write(ctx context.Context, ops ...table.Op) error {
	if r.recorded {
		return ErrRecorded
	}
	return r.lease.Write(ctx, ops...)
}

// Step runs f, unless a step with that name was finished in an earlier attempt. When f has succeeded, the step is
// recorded under the guard. A step that was interrupted runs again as a whole, so f must be repeatable;
// [Run.AtomicStep] and [Run.Backfill] have no such condition. A name has 1 to 128 bytes of UTF-8 and can be used once
// per run. If an interrupted migration is edited, the name of a backfill cannot become that of a Step, nor the reverse
// ([ErrStepKind]).
//
// Cost: one guarded write besides those of f.
func (r *Run) Step(ctx context.Context, name string, f func(ctx context.Context) error) error {
	return r.once(name, false, func() error {
		switch {
		case ctx == nil:
			return fmt.Errorf("step %q: %w: nil context", name, ErrInvalid)
		case f == nil:
			return fmt.Errorf("step %q: %w: nil function", name, ErrInvalid)
		}
		if err := f(ctx); err != nil {
			return err
		}
		if !errors.Is(r.failure, errNoReturn) { // f has called another step or Atomic, which was refused
			return r.failure
		}
		return r.lease.Write(ctx, r.checkpointOp(checkpoint{Step: name, Done: true, Seq: 1}))
	})
}

// AtomicStep is a step that applies operations together with its record, in one transaction. They are applied exactly
// once, whatever happens. There can be up to 98 operations.
//
// Cost: twice the operations' write units, and four.
func (r *Run) AtomicStep(ctx context.Context, name string, ops ...table.Op) error {
	return r.once(name, false, func() error {
		if len(ops) == 0 {
			return fmt.Errorf("%w: no operations", ErrInvalid)
		}
		return r.lease.Write(ctx, append(slices.Clip(ops), r.checkpointOp(checkpoint{Step: name, Done: true, Seq: 1}))...)
	})
}

// Atomic applies operations together with the record that the migration is finished, in one transaction. They are
// applied exactly once, whatever happens. There can be up to 98 operations. It must be the last action of a migration.
//
// After an error it can be called again with the same operations. Until it succeeds the migration counts as failed,
// even if its function ignores the error.
//
// Cost: twice the operations' write units, and four.
func (r *Run) Atomic(ctx context.Context, ops ...table.Op) error {
	if r.recorded {
		return ErrRecorded
	}
	// Until another call succeeds, the migration counts as failed, even if its function ignores the error.
	switch {
	case r.step != "":
		return r.refused(fmt.Errorf("atomic: %w: inside of step %q, or after it failed", ErrInvalid, r.step))
	case len(ops) == 0:
		return r.refused(fmt.Errorf("atomic: %w: no operations", ErrInvalid))
	}
	r.failure = r.conclude(ctx, r.done(), ops...)
	return r.failure
}

// refused makes the migration fail with err, unless an earlier error has. (errNoReturn is no error yet: the step still runs.)
func (r *Run) refused(err error) error {
	if r.failure == nil || errors.Is(r.failure, errNoReturn) {
		r.failure = err
	}
	return err
}

// once runs f as the step called name, unless an earlier attempt has finished that step. A refused step fails the migration.
func (r *Run) once(name string, backfill bool, f func() error) error {
	if r.recorded {
		return ErrRecorded
	}
	if err := r.refuses(name, backfill); err != nil {
		r.step = cmp.Or(r.step, strings.ToValidUTF8(name[:min(len(name), MaxStep)], "?"), "?") // short and valid enough for the record
		return r.refused(err)
	}
	r.used[name] = true
	if r.steps[name][0].Done {
		return nil
	}
	r.step, r.failure = name, errNoReturn
	if err := f(); err != nil {
		r.failure = err
		return err // r.step stays set, since the record needs the name
	}
	r.step, r.failure = "", nil
	return nil
}

// refuses returns why a step called name cannot run, or nil.
func (r *Run) refuses(name string, backfill bool) error {
	whole, begun := r.steps[name][0] // a backfill has this row before those of its segments
	switch {
	case name == "" || len(name) > MaxStep || !utf8.ValidString(name):
		return fmt.Errorf("%w: a step's name has 1 to %d bytes of UTF-8", ErrInvalid, MaxStep)
	case r.used[name]:
		return fmt.Errorf("%w: two steps are called %q", ErrInvalid, name)
	case r.step != "":
		return fmt.Errorf("%w: step %q inside of step %q, or after it failed", ErrInvalid, name, r.step)
	case r.failure != nil:
		return fmt.Errorf("%w: step %q after a failure: %w", ErrInvalid, name, r.failure)
	case begun && backfill != (whole.Segments > 0):
		return fmt.Errorf("%w: %q was begun in an earlier attempt, and has been changed since: give the new step another name, or undo the change", ErrStepKind, name)
	}
	return nil
}

// checkpointOp writes a checkpoint on the condition that the row has the preceding Seq. So a late request cannot replace a newer one.
func (r *Run) checkpointOp(c checkpoint) table.Op {
	c.Set, c.ID, c.Fence, c.Base, c.At = r.migrator.set, r.migration.ID, r.lease.Fence(), r.record.Base, r.migrator.table.Now().UTC()
	rows := r.migrator.rows.checkpoints
	before := table.Or(table.Attr(r.Table().Scheme().PK).NotExists(), rows.Field("base").NotEqual(c.Base))
	if c.Seq > 1 {
		before = table.And(rows.Field("base").Equal(c.Base), rows.Field("seq").Equal(c.Seq-1))
	}
	return rows.PutOp(c).If(before).Explain(func(item table.Item) error {
		if have, err := rows.Decode(item); err == nil && have.Base == c.Base && have.Fence == c.Fence && have.Seq == c.Seq {
			return &reachedError{have}
		}
		return nil
	})
}

// reachedError reports that this run has written the checkpoint already, by a request whose answer was lost.
type reachedError struct{ at checkpoint }

func (*reachedError) Error() string { return "it is recorded already" }
