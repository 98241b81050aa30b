package migrations

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/mortise-go/mortise/lock"
)

// Down takes back the migration that was applied last. (With [RunAnyway], that is not always the one with the greatest ID.)
// A migration that was interrupted or has failed counts too. Repeatable migrations are not taken back. A migration whose
// revision has changed is a *[DriftError], unless [OnDrift] allows it. One that another version of the program has applied
// later, and that this one does not know, is an *[UnknownError].
//
// Cost: as [Migrator.Up].
func (m *Migrator) Down(ctx context.Context) (Report, error) {
	report, err := m.down(ctx, func(s *snapshot) []*Migration {
		list := m.latest(s, "")
		return list[:min(len(list), 1)]
	})
	return report, wrap("down", err)
}

// DownTo takes back all applied migrations after the one with the given ID, the last one first. The empty ID takes all
// of them back.
//
// Cost: as [Migrator.Up].
func (m *Migrator) DownTo(ctx context.Context, id string) (Report, error) {
	if id != "" {
		if err := m.checkOnce(id); err != nil {
			return Report{}, wrap("down to", err)
		}
	}
	report, err := m.down(ctx, func(s *snapshot) []*Migration { return m.latest(s, id) })
	return report, wrap("down to", err)
}

// latest returns the migrations after id that can be taken back. The one that was applied last comes first.
func (m *Migrator) latest(s *snapshot, id string) (list []*Migration) {
	for i := range m.list {
		if m.begun(s, &m.list[i]) && (id == "" || compareIDs(m.list[i].ID, id) > 0) {
			list = append(list, &m.list[i])
		}
	}
	compare := s.order()
	slices.SortFunc(list, func(a, b *Migration) int { return compare(b.ID, a.ID) })
	return list
}

// order returns a function that compares recorded migrations as they were applied: by the fence of the lease and, under one
// lease, by ID. Baseline records a migration later than it was applied. Those that come after it build on it, so it counts as
// older than each of them that has run.
func (s *snapshot) order() func(a, b string) int {
	fences := make(map[string]int64, len(s.records))
	first := int64(math.MaxInt64) // the smallest fence of the migrations that come later
	for _, id := range slices.SortedFunc(maps.Keys(s.records), func(a, b string) int { return compareIDs(b, a) }) {
		r := s.records[id]
		if r.State == Pending || r.Repeatable {
			continue
		}
		fences[id] = r.Fence
		if r.Baseline && r.Attempts == 0 { // Repair has not settled it: it has never run
			fences[id] = min(r.Fence, first)
		}
		first = min(first, fences[id])
	}
	return func(a, b string) int { return cmp.Or(cmp.Compare(fences[a], fences[b]), compareIDs(a, b)) }
}

// begun reports whether a migration has run, at least in part, so that Down can take it back.
func (m *Migrator) begun(s *snapshot, migration *Migration) bool {
	return !migration.Repeatable && migration.status(s).State != Pending
}

// down calls which, and takes back the migrations that it returns, in that order. It refuses if records and program disagree.
func (m *Migrator) down(ctx context.Context, which func(*snapshot) []*Migration) (report Report, err error) {
	warn := m.warnings()
	plan := func(s *snapshot, alone bool) ([]*Migration, error) {
		list := which(s)
		if len(list) == 0 {
			return nil, nil
		}
		if unknown := m.unknown(s); unknown != nil {
			compare := s.order()
			later := slices.ContainsFunc(unknown.IDs, func(id string) bool {
				return !s.records[id].Repeatable && compare(id, list[len(list)-1].ID) > 0
			})
			if m.onUnknown == Fail || later {
				return nil, unknown
			}
			warn(unknown)
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
			if !st.Resumable && (st.State == Failed || st.State == Running && alone) {
				return nil, &UnfinishedError{*st.Record, false}
			}
		}
		if len(drift.Drifted) > 0 {
			if m.onDrift == Fail {
				return nil, &drift
			}
			warn(&drift)
		}
		return list, nil
	}
	s, err := m.read(ctx)
	if err != nil {
		return report, err
	}
	if list, err := plan(s, false); err != nil || len(list) == 0 {
		return report, err
	}
	err = m.exclusively(ctx, nil, func(ctx context.Context, lease *lock.Lease) error {
		s, err := m.read(ctx)
		if err != nil {
			return err
		}
		list, err := plan(s, true)
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
