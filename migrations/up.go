package migrations

import (
	"context"
	"fmt"

	"github.com/mortise-go/mortise/lock"
)

// Report says what a call has done.
type Report struct {
	Done []Record // in the order in which they were run, or taken back
}

// Up runs all pending migrations, in their order. Many instances may call it at once, as at
// the start of a deployment: one runs them, under the lock, and the others wait until
// nothing is left to do. Where nothing is pending it does not take the lock.
//
// A migration that was cut off or has failed is run again where it is Idempotent, without the
// steps that are done; otherwise Up returns an *UnfinishedError. An error of a migration ends
// it, as a *PartialError.
//
// Cost: one consistent query; when something is pending a lock and a second query, and for
// each migration two guarded writes and those of its steps. While it waits for another
// instance, a query every 1 to 5 s besides what waiting for a lock costs.
func (m *Migrator) Up(ctx context.Context) (Report, error) {
	report, err := m.up(ctx, "")
	return report, wrap("up", err)
}

// UpTo returns Up, up to and including the migration with an ID. Repeatable ones wait.
func (m *Migrator) UpTo(ctx context.Context, id string) (Report, error) {
	migration, err := m.find(id)
	if err == nil && migration.Repeatable {
		err = fmt.Errorf("%w: %q is repeatable", ErrInvalid, id)
	}
	if err != nil {
		return Report{}, wrap("up to", err)
	}
	report, err := m.up(ctx, id)
	return report, wrap("up to", err)
}

func (m *Migrator) up(ctx context.Context, upTo string) (report Report, err error) {
	// Without the lock first: instances that are up to date start at once.
	s, err := m.read(ctx)
	if err != nil {
		return report, err
	}
	if todo, err := m.todo(s, upTo, beforeLock); err != nil || len(todo) == 0 {
		return report, err
	}
	left := func(s *snapshot) (bool, error) {
		todo, err := m.todo(s, upTo, silently)
		return len(todo) > 0, err
	}
	err = m.exclusively(ctx, left, func(ctx context.Context, lease *lock.Lease) error {
		s, err := m.read(ctx) // again: somebody may have run them meanwhile
		if err != nil {
			return err
		}
		todo, err := m.todo(s, upTo, underLock)
		if err != nil {
			return err
		}
		for _, st := range todo {
			migration, err := m.find(st.ID)
			if err == nil {
				err = m.perform(ctx, lease, migration, s, false, &report)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return report, err
}

func partial(report Report, id, step string, err error) error {
	return &PartialError{Done: report.Done, Failed: id, Step: step, Err: err}
}
