package migrations

import (
	"context"

	"github.com/mortise-go/mortise/lock"
)

// Report is the result of a call.
type Report struct {
	Done []Record // in the order in which they were run or taken back
}

// Up runs all pending migrations in order. Many instances can call it at the same time, as at the start of a
// deployment: one of them runs the migrations under the lock, and the others wait until none is pending. If none is
// pending, it does not take the lock.
//
// A migration that was interrupted or has failed runs again if it is Idempotent, without its finished steps. If it is
// not, Up returns an *[UnfinishedError]. An error of a migration ends Up with a *[PartialError].
//
// Cost: one consistent query. If a migration is pending, also a lock, a second query and, for each migration, two
// guarded writes and those of its steps. While it waits for another instance, a query every 1 to 5 s and the cost of
// waiting for a lock.
func (m *Migrator) Up(ctx context.Context) (Report, error) {
	report, err := m.up(ctx, "")
	return report, wrap("up", err)
}

// UpTo is [Migrator.Up] for the migrations up to and including the one with the given ID. It runs no repeatable ones.
func (m *Migrator) UpTo(ctx context.Context, id string) (Report, error) {
	if err := m.checkOnce(id); err != nil {
		return Report{}, wrap("up to", err)
	}
	report, err := m.up(ctx, id)
	return report, wrap("up to", err)
}

func (m *Migrator) up(ctx context.Context, upTo string) (report Report, err error) {
	// Read without the lock first, so that instances without pending migrations start immediately.
	s, err := m.read(ctx)
	if err != nil {
		return report, err
	}
	warn := m.warnings()
	if todo, err := m.todo(s, upTo, false, warn); err != nil || len(todo) == 0 {
		return report, err
	}
	left := func(s *snapshot) (bool, error) {
		todo, err := m.todo(s, upTo, false, warn)
		return len(todo) > 0, err
	}
	err = m.exclusively(ctx, left, func(ctx context.Context, lease *lock.Lease) error {
		s, err := m.read(ctx) // again, since another instance may have run them
		if err != nil {
			return err
		}
		todo, err := m.todo(s, upTo, true, warn)
		if err != nil {
			return err
		}
		for _, st := range todo {
			if err := m.perform(ctx, lease, m.byID[st.ID], s, false, &report); err != nil {
				return err
			}
		}
		return nil
	})
	return report, err
}
