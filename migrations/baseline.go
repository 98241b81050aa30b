package migrations

import (
	"context"
	"slices"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Baseline records all migrations up to and including the one with the given ID as applied, without running them. Use
// it for a table that is already in that state. Applied migrations keep their records; one that is Running or Failed is an
// *[UnfinishedError]. To [Migrator.Down], they were applied before those that come after them.
//
// Cost: a lock, one consistent query and a guarded write per 99 migrations.
func (m *Migrator) Baseline(ctx context.Context, id string) (Report, error) {
	var report Report
	if err := m.checkOnce(id); err != nil {
		return report, wrap("baseline", err)
	}
	err := m.exclusively(ctx, nil, func(ctx context.Context, lease *lock.Lease) error {
		s, err := m.read(ctx)
		if err != nil {
			return err
		}
		var list []Record
		for i := range m.list {
			migration := &m.list[i]
			if migration.Repeatable || compareIDs(migration.ID, id) > 0 {
				continue
			}
			switch st := migration.status(s); st.State {
			case Pending:
				now := m.table.Now().UTC()
				list = append(list, Record{
					Set: m.set, ID: migration.ID, Name: migration.Name, Revision: migration.Revision, State: Applied, Baseline: true,
					Owner: lease.Owner(), Fence: lease.Fence(), Base: lease.Fence(), Started: now, Finished: now,
				})
			case Running, Failed:
				return &UnfinishedError{*st.Record, st.Resumable}
			}
		}
		const most = table.MaxOps - 1
		for some := range slices.Chunk(list, most) {
			ops := make([]table.Op, len(some))
			for i := range ops {
				ops[i] = m.rows.records.PutOp(some[i])
			}
			if err := lease.Write(ctx, ops...); err != nil {
				return err
			}
			report.Done = append(report.Done, some...)
		}
		return nil
	})
	return report, wrap("baseline", err)
}
