package migrations

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// MaxStep is the longest name of a step, in bytes.
const MaxStep = 128

// Run is one run of a migration, under the lock. It is for one goroutine at a time.
type Run struct {
	migrator  *Migrator
	lease     *lock.Lease
	migration *Migration
	record    *Record
	steps     map[string]map[uint32]checkpoint // by name and part, of an earlier attempt
	used      map[string]bool                  // names of steps in this attempt
	step      string                           // that runs, or has failed
	failure   error                            // of the step that has failed
	recorded  bool                             // what became of it
	unclear   bool                             // whether that is recorded
}

// Table returns the table that is migrated.
func (r *Run) Table() *table.Table { return r.migrator.table }

// Lease returns the lease of the lock that the migration runs under.
func (r *Run) Lease() *lock.Lease { return r.lease }

// Attempt counts the attempts to run the migration, from 1.
func (r *Run) Attempt() int { return r.record.Attempts }

// Write applies operations, all or none, and only while the lock is held: lock.Lease.Write.
func (r *Run) Write(ctx context.Context, ops ...table.Op) error {
	if r.recorded {
		return ErrRecorded
	}
	return r.lease.Write(ctx, ops...)
}

// Step runs f, unless a step of that name was finished in an earlier attempt. When f has
// succeeded that is recorded, under the guard. A step that was cut off runs again as a whole,
// so f has to bear repetition; AtomicStep and Backfill do better. Names are 1 to 128 bytes of
// UTF-8, and each is used once per run.
//
// Cost: one guarded write besides what f does.
func (r *Run) Step(ctx context.Context, name string, f func(ctx context.Context) error) error {
	switch {
	case ctx == nil:
		return fmt.Errorf("step %q: %w: nil context", name, ErrInvalid)
	case f == nil:
		return fmt.Errorf("step %q: %w: nil function", name, ErrInvalid)
	}
	return r.once(name, func() error {
		if err := f(ctx); err != nil {
			return err
		}
		return r.lease.Write(ctx, r.checkpointOp(checkpoint{Step: name, Done: true, Seq: 1}))
	})
}

// AtomicStep returns a step of operations that are applied together with its record, in one
// transaction: exactly once, whatever happens. At most 98 operations.
//
// Cost: twice the operations' write units, and four.
func (r *Run) AtomicStep(ctx context.Context, name string, ops ...table.Op) error {
	return r.once(name, func() error {
		if len(ops) == 0 {
			return fmt.Errorf("%w: no operations", ErrInvalid)
		}
		return r.lease.Write(ctx, append(slices.Clip(ops), r.checkpointOp(checkpoint{Step: name, Done: true, Seq: 1}))...)
	})
}

// Atomic applies operations together with the record that the migration is done, in one
// transaction: exactly once, whatever happens. It is the last thing a migration does. At
// most 98 operations. It may be called again after an error, with the same operations; until
// it succeeds the migration has failed, also where its function takes no notice.
//
// Cost: twice the operations' write units, and four.
func (r *Run) Atomic(ctx context.Context, ops ...table.Op) error {
	switch {
	case r.recorded:
		return ErrRecorded
	case r.step != "":
		return fmt.Errorf("atomic: %w: inside of step %q, or after it failed", ErrInvalid, r.step)
	case len(ops) == 0:
		return fmt.Errorf("atomic: %w: no operations", ErrInvalid)
	}
	// Until it is called again and succeeds, the migration has failed, also where its function
	// takes no notice.
	r.failure = r.conclude(ctx, r.done(), ops...)
	return r.failure
}

// once runs f as the step of a name, unless it is done.
func (r *Run) once(name string, f func() error) error {
	switch {
	case r.recorded:
		return ErrRecorded
	case name == "" || len(name) > MaxStep || !utf8.ValidString(name):
		return fmt.Errorf("%w: a step's name has 1 to %d bytes of UTF-8", ErrInvalid, MaxStep)
	case r.used[name]:
		return fmt.Errorf("%w: two steps are called %q", ErrInvalid, name)
	case r.step != "":
		return fmt.Errorf("%w: step %q inside of step %q, or after it failed", ErrInvalid, name, r.step)
	}
	r.used[name] = true
	if r.steps[name][0].Done {
		return nil
	}
	r.step, r.failure = name, errNoReturn
	if err := f(); err != nil {
		r.failure = err
		return err // the step stays named, for the record
	}
	r.step, r.failure = "", nil
	return nil
}

// checkpointOp writes a checkpoint of this run, in the place of the one before it: one that
// comes late does not take a segment back.
func (r *Run) checkpointOp(c checkpoint) table.Op {
	c.Set, c.ID, c.Fence, c.Base, c.At = r.migrator.set, r.migration.ID, r.lease.Fence(), r.record.Base, r.migrator.table.Now().UTC()
	rows := r.migrator.rows.checkpoints
	before := table.Or(table.Attr(r.Table().Scheme().PK).NotExists(), rows.Field("base").NotEqual(c.Base))
	if c.Seq > 1 {
		before = table.And(rows.Field("base").Equal(c.Base), rows.Field("seq").Equal(c.Seq-1))
	}
	return rows.PutOp(c).If(before)
}
