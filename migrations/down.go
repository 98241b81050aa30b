package migrations

import (
	"context"
	"fmt"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/lock"
)

// Down takes the last applied migration back. A migration that was interrupted or has failed counts too. Repeatable
// migrations are not taken back. A migration whose revision has changed is a *[DriftError], unless [OnDrift] allows it.
//
// Cost: as [Migrator.Up].
func (m *Migrator) Down(ctx context.Context) (Report, error) {
	report, err := m.down(ctx, func(s *snapshot) []*Migration {
		for i := len(m.list) - 1; i >= 0; i-- {
			if m.begun(s, &m.list[i]) {
				return []*Migration{&m.list[i]}
			}
		}
		return nil
	})
	return report, wrap("down", err)
}

// DownTo takes back all applied migrations after the one with the given ID, the last one first. The empty ID takes all
// of them back.
//
// Cost: as [Migrator.Up].
func (m *Migrator) DownTo(ctx context.Context, id string) (Report, error) {
	if id != "" {
		if _, err := m.once(id); err != nil {
			return Report{}, wrap("down to", err)
		}
	}
	report, err := m.down(ctx, func(s *snapshot) (list []*Migration) {
		for i := len(m.list) - 1; i >= 0; i-- {
			if m.begun(s, &m.list[i]) && (id == "" || compareIDs(m.list[i].ID, id) > 0) {
				list = append(list, &m.list[i])
			}
		}
		return list
	})
	return report, wrap("down to", err)
}

// begun reports whether there is anything of a migration to take back.
func (m *Migrator) begun(s *snapshot, migration *Migration) bool {
	return !migration.Repeatable && migration.status(s).State != Pending
}

// down takes back the migrations that which returns, in that order, unless records and program disagree.
func (m *Migrator) down(ctx context.Context, which func(*snapshot) []*Migration) (report Report, err error) {
	plan := func(s *snapshot, look look) ([]*Migration, error) {
		list := which(s)
		if len(list) == 0 {
			return nil, nil
		}
		if unknown := m.unknown(s); unknown != nil && m.onUnknown == Fail {
			return nil, unknown
		}
		var drift DriftError
		for _, migration := range list {
			st := migration.status(s)
			if migration.Down == nil {
				return nil, fmt.Errorf("%s: %w", migration.ID, ErrIrreversible)
			}
			if st.State == Drifted { // its Down may not fit what was applied
				drift.Drifted = append(drift.Drifted, Drift{ID: st.ID, Applied: st.Record.Revision, Now: migration.Revision})
			}
			if !st.Resumable && (st.State == Failed || st.State == Running && look == underLock) {
				return nil, &UnfinishedError{*st.Record}
			}
		}
		if len(drift.Drifted) > 0 {
			return list, errs.Join(m.judge(nil, m.onDrift == Fail, look == beforeLock, &drift)...)
		}
		return list, nil
	}
	s, err := m.read(ctx)
	if err != nil {
		return report, err
	}
	if list, err := plan(s, beforeLock); err != nil || len(list) == 0 {
		return report, err
	}
	err = m.exclusively(ctx, nil, func(ctx context.Context, lease *lock.Lease) error {
		s, err := m.read(ctx)
		if err != nil {
			return err
		}
		list, err := plan(s, underLock)
		if err != nil {
			return err
		}
		for _, migration := range list {
			if err := m.perform(ctx, lease, migration, s, true, &report); err != nil {
				return err
			}
		}
		return nil
	})
	return report, err
}
