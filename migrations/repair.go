package migrations

import (
	"context"
	"fmt"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// FixKind is the kind of a [Fix].
type FixKind string

// Kinds of fixes.
const (
	// Retry: Up (or Down) may run the unfinished migration again. It skips the finished steps, except if the migration is Repeatable and its
	// revision has changed since.
	Retry FixKind = "retry"
	// Settle: the migration is recorded as applied (or as taken back) as it is now.
	Settle FixKind = "settle"
	// AcceptRevision: the new revision of a drifted migration is recorded as the applied one.
	AcceptRevision FixKind = "accept revision"
	// Forget: the record of a migration that the program does not know is deleted, and those of its steps.
	Forget FixKind = "forget"
)

// Fix is one change that [Migrator.Repair] can make.
type Fix struct {
	ID     string
	Kind   FixKind
	Record Record // current record
	Text   string // what will be done, and why, for people
}

// Repair finds what prevents [Migrator.Up] from running, and fixes it under the lock: drifted and unknown migrations,
// and those that were interrupted or have failed and are not Idempotent, or were being taken back.
//
// It passes each fix to approve before it is made, and makes it if approve returns true. If there are two ways, Retry
// and Settle, the second is passed if the first is not approved. With a nil approve, Repair lists the possible fixes,
// makes none, and takes no lock.
//
// It returns the fixes that were made, also with an error, or, with a nil approve, those that are possible. A Forget has been made when
// the record is deleted. An error after that leaves rows of steps behind, which do not count.
//
// Cost: one consistent query; a lock, a second query and a guarded write per fix. A Forget also reads and deletes the rows of its steps.
func (m *Migrator) Repair(ctx context.Context, approve func(Fix) bool) ([]Fix, error) {
	s, err := m.read(ctx)
	if err != nil {
		return nil, wrap("repair", err)
	}
	if fixes := m.fixes(s); approve == nil || len(fixes) == 0 {
		return fixes, nil
	}
	var made []Fix
	err = m.exclusively(ctx, nil, func(ctx context.Context, lease *lock.Lease) error {
		s, err := m.read(ctx)
		if err != nil {
			return err
		}
		for _, fix := range m.fixes(s) {
			if len(made) > 0 && made[len(made)-1].ID == fix.ID || !approve(fix) {
				continue
			}
			err := lease.Write(ctx, m.fixOp(fix))
			if err == nil {
				made = append(made, fix)
				err = m.forgetSteps(ctx, lease, fix)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", fix.ID, err)
			}
		}
		return nil
	})
	return made, wrap("repair", err)
}

func (m *Migrator) fixes(s *snapshot) (list []Fix) {
	for _, st := range m.statuses(s) {
		if st.Record == nil {
			continue
		}
		fix := Fix{ID: st.ID, Record: *st.Record}
		switch {
		case st.State == Missing && st.Record.State != Pending:
			fix.Kind = Forget
			fix.Text = fmt.Sprintf("forget %s: the table has a record of it (%s), and this program does not know it; should it be known again it will run again", st.ID, st.Record.State)
		case st.State == Drifted:
			fix.Kind = AcceptRevision
			fix.Text = fmt.Sprintf("accept %s as it is now: it was applied with revision %q and has revision %q; nothing is run", st.ID, st.Record.Revision, m.byID[st.ID].Revision)
		case (st.State == Running || st.State == Failed) && (!st.Resumable || st.Record.Down):
			verb, done, how := "Up", "applied", "was cut off, unless it runs now"
			if st.Record.Down {
				verb, done = "Down", "taken back"
			}
			if st.State == Failed {
				how = "has failed: " + st.Record.Error
			}
			if !st.Resumable {
				fix.Kind = Retry
				from := "without the steps that are done"
				if !m.byID[st.ID].continues(*st.Record, st.Record.Down) {
					from = "from its beginning, since its revision has changed"
				}
				fix.Text = fmt.Sprintf("let %s run %s again, %s: it %s (attempt %d), and is not marked idempotent", verb, st.ID, from, how, st.Record.Attempts)
				list = append(list, fix)
			}
			fix.Kind = Settle
			fix.Text = fmt.Sprintf("take %s for %s as it is, since somebody has seen to it: it %s (attempt %d); nothing is run", st.ID, done, how, st.Record.Attempts)
		default:
			continue
		}
		list = append(list, fix)
	}
	return list
}

// forgetSteps deletes the checkpoints of a forgotten migration. They do not count without the record, so they can be deleted after it.
func (m *Migrator) forgetSteps(ctx context.Context, lease *lock.Lease, fix Fix) error {
	if fix.Kind != Forget {
		return nil
	}
	var old []checkpoint
	for c, err := range m.rows.checkpoints.Query(ctx, keys.Values{"set": m.set, "id": fix.ID}, entity.Consistent()) {
		if err != nil {
			return malformed(err)
		}
		old = append(old, c)
	}
	return m.forget(ctx, lease, old)
}

func (m *Migrator) fixOp(fix Fix) table.Op {
	record := fix.Record
	record.Set = m.set
	migration := m.byID[fix.ID] // nil for Forget
	switch fix.Kind {
	case Settle:
		record.State, record.Baseline, record.Finished = Applied, true, m.table.Now().UTC()
		record.Step, record.Error = "", "" // an applied migration has not failed
		if record.Down {
			record.State, record.Baseline, record.Down = Pending, false, false
		} else {
			record.Revision, record.Name = migration.Revision, migration.Name
		}
	case Forget:
		return m.rows.records.DeleteOp(record)
	case AcceptRevision:
		record.Revision, record.Name = migration.Revision, migration.Name
	case Retry:
		record.Approved = true
	}
	return m.rows.records.PutOp(record)
}
