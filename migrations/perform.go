package migrations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// bookkeeping is the time for recording a result after the caller's context has ended.
const bookkeeping = 5 * time.Second

// perform runs one migration, or takes it back, and records the result. Every record is written under the guard, so a
// former holder of the lock records nothing.
func (m *Migrator) perform(ctx context.Context, lease *lock.Lease, migration *Migration, s *snapshot, down bool, report *Report) error {
	record := Record{
		Set: m.set, ID: migration.ID, Name: migration.Name, Revision: migration.Revision, State: Running, Down: down,
		Repeatable: migration.Repeatable, Owner: lease.Owner(), Fence: lease.Fence(), Base: lease.Fence(), Started: m.table.Now().UTC(),
	}
	before := s.records[migration.ID]
	if before.State == Running || before.State == Failed {
		if migration.continues(before, down) {
			record.Base = before.Base // so that finished steps stay finished
		}
		record.Attempts = before.Attempts
	}
	record.Attempts = max(record.Attempts, record.Attempts+1) // also after the greatest number, which somebody else has written
	run := &Run{migrator: m, lease: lease, migration: migration, record: &record, steps: map[string]map[uint32]checkpoint{}, used: map[string]bool{}}
	fail := func(err error) error {
		return &PartialError{Done: report.Done, Failed: migration.ID, Step: run.step, Err: err}
	}
	old, err := run.begin(ctx, before)
	if err != nil {
		return fail(err)
	}
	if err = m.forget(ctx, lease, old); err == nil {
		err = run.call(ctx, down)
	} else if before.State == Applied || before.State == Pending { // restore the record: old checkpoints of a finished run never count
		run.undo(ctx, before)
		return fail(err)
	}
	if err == nil && !run.recorded {
		err = run.finish(ctx)
	}
	if err != nil {
		err = run.failed(ctx, err)
	}
	if err != nil {
		return fail(err)
	}
	s.records[migration.ID] = record
	report.Done = append(report.Done, record)
	m.logger.Info("migrations: "+map[bool]string{false: "applied", true: "taken back"}[down], "id", migration.ID, "took", record.Took)
	return nil
}

// continues reports whether another run skips the finished steps of an unfinished one. A run in the other direction starts anew, and so does
// a repeatable migration with a new revision.
func (m *Migration) continues(unfinished Record, down bool) bool {
	return unfinished.Down == down && (!m.Repeatable || unfinished.Revision == m.Revision)
}

// begin records that the migration runs, and reads which of its steps are finished. It returns the checkpoints with
// another Base: they do not count once the new record is written.
func (r *Run) begin(ctx context.Context, before Record) (old []checkpoint, err error) {
	m := r.migrator
	if before.ID != "" {
		for c, err := range m.rows.checkpoints.Query(ctx, keys.Values{"set": m.set, "id": r.migration.ID}, entity.Consistent()) {
			if err == nil {
				err = c.check()
			}
			switch {
			case err != nil:
				return nil, malformed(err)
			case c.Base != r.record.Base:
				old = append(old, c)
				continue
			case r.steps[c.Step] == nil:
				r.steps[c.Step] = map[uint32]checkpoint{}
			}
			r.steps[c.Step][c.Part] = c
		}
	}
	if err = r.lease.Write(ctx, m.rows.records.PutOp(*r.record)); err != nil && !errors.Is(err, lock.ErrLost) {
		r.undo(ctx, before) // also if DynamoDB has refused the request: a copy of it can be applied
	}
	return old, err
}

// undo restores the record of a migration that did not run. If that fails too, the migration counts as interrupted.
func (r *Run) undo(ctx context.Context, before Record) {
	ctx, cancel := detach(ctx)
	defer cancel()
	undo := r.migrator.rows.records.DeleteOp(*r.record)
	if before.ID != "" {
		undo = r.migrator.rows.records.PutOp(before)
	}
	_ = r.lease.Write(ctx, undo)
}

// forget deletes checkpoints.
func (m *Migrator) forget(ctx context.Context, lease *lock.Lease, old []checkpoint) error {
	const most = table.MaxOps - 1 // the guard is one operation
	for some := range slices.Chunk(old, most) {
		ops := make([]table.Op, len(some))
		for i := range ops {
			ops[i] = m.rows.checkpoints.DeleteOp(some[i])
		}
		if err := lease.Write(ctx, ops...); err != nil {
			return err
		}
	}
	return nil
}

// call runs the author's function. If a step failed, the migration fails even if the function ignores the error.
func (r *Run) call(ctx context.Context, down bool) error {
	f := r.migration.Up
	if down {
		f = r.migration.Down
	}
	return safely(func() error {
		if err := f(ctx, r); err != nil {
			return err
		}
		return r.failure
	})
}

// done returns the record of a finished migration.
func (r *Run) done() Record {
	record := *r.record
	now := r.migrator.table.Now().UTC()
	record.Finished, record.Took, record.State = now, now.Sub(record.Started), Applied
	if record.Down {
		record.State, record.Down = Pending, false
	}
	return record
}

// concludedError reports that the record already has a result of this run, although the answer to its write was lost.
type concludedError struct{ record Record }

func (*concludedError) Error() string { return "it is recorded as finished already" }

// conclude records the result of the migration, together with operations, if the record still shows this attempt as
// running. If an earlier result was applied although its answer was lost, conclude keeps that one: it writes nothing, and
// returns nil.
func (r *Run) conclude(ctx context.Context, record Record, ops ...table.Op) error {
	records := r.migrator.rows.records
	op := records.PutOp(record).If(
		records.Field("state").Equal(string(Running)), records.Field("fence").Equal(record.Fence), records.Field("attempts").Equal(record.Attempts),
	).Explain(func(item table.Item) error {
		if have, err := records.Decode(item); err == nil && r.wrote(have) {
			return &concludedError{have}
		}
		return nil
	})
	err := r.lease.Write(ctx, append(slices.Clip(ops), op)...)
	var earlier *concludedError
	switch {
	case errors.As(err, &earlier):
		record = earlier.record
	case err != nil:
		if record.State != Failed { // also if DynamoDB has refused the request: a copy of it can be applied
			r.unclear = append(r.unclear, record)
		}
		return err
	}
	*r.record, r.recorded = record, true
	return nil
}

// wrote reports whether have is a result of this run whose answer was lost. The time in Finished distinguishes it from a
// record that Repair has settled.
func (r *Run) wrote(have Record) bool {
	return slices.ContainsFunc(r.unclear, func(u Record) bool {
		return have.State == u.State && have.Fence == u.Fence && have.Attempts == u.Attempts && have.Finished.Equal(u.Finished)
	})
}

// finish records that the migration is finished, even if ctx has ended.
func (r *Run) finish(ctx context.Context) error {
	ctx, cancel := detach(ctx)
	defer cancel()
	if err := r.conclude(ctx, r.done()); err != nil {
		return fmt.Errorf("it is done, but could not be recorded: %w", err)
	}
	return nil
}

// failed records why a migration failed. If the lock was lost it records nothing, and the next holder finds an
// interrupted migration. It returns nil if the migration turns out to be finished, by a request whose answer was lost.
func (r *Run) failed(ctx context.Context, err error) error {
	if r.recorded {
		return fmt.Errorf("after it was recorded as finished: %w", err)
	}
	//nolint:contextcheck // the lease's own context tells why it ended
	if cause := context.Cause(r.lease.Context()); errors.Is(cause, lock.ErrLost) {
		if len(r.unclear) > 0 && r.finished(ctx) {
			return nil
		}
		if errors.Is(err, lock.ErrLost) {
			return err
		}
		return fmt.Errorf("%w: %w", cause, err)
	}
	ctx, cancel := detach(ctx)
	defer cancel()
	record := *r.record
	now := r.migrator.table.Now().UTC()
	record.State, record.Finished, record.Took = Failed, now, now.Sub(record.Started)
	record.Step, record.Error = r.step, short(err)
	switch problem := r.conclude(ctx, record); {
	case errors.Is(problem, lock.ErrLost) && len(r.unclear) > 0 && r.finished(ctx):
		return nil
	case problem != nil:
		return fmt.Errorf("%w (and it could not be recorded: %w)", err, problem)
	case r.record.State != Failed:
		return nil
	}
	return err
}

// finished reads the record, and reports whether it has a result of this run whose answer was lost.
func (r *Run) finished(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bookkeeping)
	defer cancel()
	have, err := r.migrator.rows.records.Get(ctx, *r.record, entity.Consistent())
	if err != nil || !r.wrote(have) {
		return false
	}
	*r.record, r.recorded = have, true
	return true
}

// detach returns a context that ends 5 s (bookkeeping) after ctx, so that the result of a migration is recorded even if
// ctx ends meanwhile.
func detach(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = sleep(inner, bookkeeping)
		cancel()
	})
	return inner, func() {
		stop()
		cancel()
	}
}
