package migrations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// bookkeeping is for how long after the caller's context has ended things are recorded.
const bookkeeping = 5 * time.Second

// perform runs one migration, or takes it back, and records what became of it. Every record
// is written under the guard: whoever has lost the lock records nothing.
func (m *Migrator) perform(ctx context.Context, lease *lock.Lease, migration *Migration, s *snapshot, down bool, report *Report) error {
	record := Record{
		Set: m.set, ID: migration.ID, Name: migration.Name, Revision: migration.Revision, State: Running, Down: down,
		Repeating: migration.Repeatable, Owner: lease.Owner(), Fence: lease.Fence(), Base: lease.Fence(), Started: m.table.Now().UTC(),
	}
	before := s.records[migration.ID]
	if before.State == Running || before.State == Failed {
		// Done steps stay done, unless they were those of the other direction, or of
		// another revision of what is to be repeated as a whole.
		if before.Down == down && (!migration.Repeatable || before.Revision == migration.Revision) {
			record.Base = before.Base
		}
		record.Attempts = before.Attempts
	}
	record.Attempts++
	run := &Run{migrator: m, lease: lease, migration: migration, record: &record, steps: map[string]map[uint32]checkpoint{}, used: map[string]bool{}}
	fail := func(err error) error { return partial(*report, migration.ID, run.step, err) }
	if err := run.begin(ctx, before.ID != ""); err != nil {
		return fail(err)
	}
	err := run.call(ctx, down)
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

// begin records that the migration runs, and finds out which steps are done already. Those of
// an earlier run do not count from the moment at which it is recorded that it is begun anew.
func (r *Run) begin(ctx context.Context, again bool) error {
	m := r.migrator
	var old []checkpoint
	if again {
		for c, err := range m.rows.checkpoints.Query(ctx, keys.Values{"set": m.set, "id": r.migration.ID}, entityConsistent) {
			if err == nil {
				err = c.check()
			}
			switch {
			case err != nil:
				return malformed(err)
			case c.Base != r.record.Base:
				old = append(old, c)
				continue
			case r.steps[c.Step] == nil:
				r.steps[c.Step] = map[uint32]checkpoint{}
			}
			r.steps[c.Step][c.Part] = c
		}
	}
	if err := r.lease.Write(ctx, m.rows.records.PutOp(*r.record)); err != nil {
		return err
	}
	return m.forget(ctx, r.lease, old)
}

// forget deletes checkpoints.
func (m *Migrator) forget(ctx context.Context, lease *lock.Lease, old []checkpoint) error {
	const most = table.MaxOps - 1
	for len(old) > 0 {
		n := min(len(old), most)
		ops := make([]table.Op, n)
		for i := range ops {
			ops[i] = m.rows.checkpoints.DeleteOp(old[i])
		}
		if err := lease.Write(ctx, ops...); err != nil {
			return err
		}
		old = old[n:]
	}
	return nil
}

// call runs the author's function. A step that failed fails the migration, also where the
// function takes no notice.
func (r *Run) call(ctx context.Context, down bool) error {
	f := r.migration.Up
	if down {
		f = r.migration.Down
	}
	if err := safely(func() error { return f(ctx, r) }); err != nil {
		return err
	}
	return r.failure
}

// done returns the record of a migration that is finished.
func (r *Run) done() Record {
	record := *r.record
	now := r.migrator.table.Now().UTC()
	record.Finished, record.Took, record.State = now, now.Sub(record.Started), Applied
	if record.Down {
		record.State, record.Down = Pending, false
	}
	return record
}

// concludedError reports that the record is not that of a running migration any more.
type concludedError struct{ record Record }

func (*concludedError) Error() string { return "it is recorded as finished already" }

// conclude records what became of the migration, together with operations, if the record
// still says that this attempt runs. Where the answer to an earlier conclusion was lost, and
// that was applied, this one is not: the record is the earlier one's then.
func (r *Run) conclude(ctx context.Context, record Record, ops ...table.Op) error {
	records := r.migrator.rows.records
	op := records.PutOp(record).If(
		records.Field("state").Equal(string(Running)), records.Field("fence").Equal(record.Fence), records.Field("attempts").Equal(record.Attempts),
	).Explain(func(item table.Item) error {
		if have, err := records.Decode(item); err == nil && have.Fence == record.Fence && have.Attempts == record.Attempts {
			return &concludedError{have}
		}
		return nil
	})
	err := r.lease.Write(ctx, append(slices.Clip(ops), op)...)
	failed := table.Conditions(err)
	for _, f := range failed {
		var earlier *concludedError
		if f.Index == len(ops) && r.unclear && errors.As(f.Err, &earlier) {
			record, err = earlier.record, nil
		}
	}
	if err != nil {
		r.unclear = r.unclear || len(failed) == 0 && !errors.Is(err, ErrInvalid) && !errors.Is(err, lock.ErrLost)
		return err
	}
	*r.record, r.recorded = record, true
	return nil
}

// finish records that the migration is done. It is done also where ctx has ended by now.
func (r *Run) finish(ctx context.Context) error {
	ctx, cancel := detach(ctx)
	defer cancel()
	if err := r.conclude(ctx, r.done()); err != nil {
		return fmt.Errorf("it is done, but could not be recorded: %w", err)
	}
	return nil
}

// failed records why a migration failed, unless its lock was lost: then whoever has it now
// finds it running, and cut off. It returns nil where it turns out that the migration was
// recorded as finished by a request whose answer was lost.
func (r *Run) failed(ctx context.Context, err error) error {
	if r.recorded {
		return fmt.Errorf("after it was recorded as finished: %w", err)
	}
	//nolint:contextcheck // the lease's own context tells why it ended
	if cause := context.Cause(r.lease.Context()); errors.Is(cause, lock.ErrLost) {
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
	case problem != nil:
		return fmt.Errorf("%w (and it could not be recorded: %w)", err, problem)
	case r.record.State != Failed:
		return nil
	}
	return err
}

// detach returns a context that ends some time after ctx has, so that what became of a
// migration is recorded also where ctx ends while that is under way.
func detach(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(bookkeeping)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-inner.Done():
		}
	})
	return inner, func() {
		stop()
		cancel()
	}
}
