package migrations

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
)

// Status is the state of one migration of the program or of the table.
type Status struct {
	ID, Name string
	State    State
	Record   *Record // nil if it was never begun

	// Live reports that an instance runs the migration at this moment. One that is Running and not Live was interrupted;
	// that shows when two leases have passed since its process died, at the latest.
	Live bool

	// Resumable reports that Up, or Down if it was being taken back, continues a migration that was interrupted or has
	// failed. If it is false for such a migration, [Migrator.Repair] has to decide.
	Resumable bool

	// Steps are the recorded steps of a migration that runs, was interrupted or has failed: finished steps, and the
	// progress of backfills. The step that was recorded last comes last.
	Steps []StepStatus
}

// StepStatus is the record of a step.
type StepStatus struct {
	Name string
	Done bool
	At   time.Time // time of the last record

	// For a backfill:
	Segments     int   // number of segments; 0 for other steps
	SegmentsDone int   // number of finished segments
	Seen         int64 // items read so far that its Filter selects; at the end, that can be few of Total
	Changed      int64 // items written so far
	Total        int64 // items in the table, as DynamoDB estimates with a delay of hours; 0 if unknown
}

// Status lists all migrations in order, followed by those that only the table knows.
//
// Cost: one consistent query; one more for each migration that runs, was interrupted or has failed; if one is recorded as
// running, also reads of the lock and of a session, and a second query unless the holder of the lock runs it; one DescribeTable
// if there is an unfinished backfill.
func (m *Migrator) Status(ctx context.Context) ([]Status, error) {
	s, err := m.readLive(ctx)
	if err != nil {
		return nil, wrap("status", err)
	}
	list := m.statuses(s)
	for i := range list {
		st := &list[i]
		if st.Record == nil || st.Record.State != Running && st.Record.State != Failed {
			continue
		}
		if st.Steps, err = m.stepsOf(ctx, st.Record); err != nil {
			return nil, wrap("status", err)
		}
	}
	m.estimate(ctx, list)
	return list, nil
}

// stepsOf reads the recorded steps of the run that a record describes.
func (m *Migrator) stepsOf(ctx context.Context, r *Record) ([]StepStatus, error) {
	var list []StepStatus
	for c, err := range m.rows.checkpoints.Query(ctx, keys.Values{"set": m.set, "id": r.ID}, entity.Consistent()) {
		if err == nil {
			err = c.check()
		}
		if err != nil {
			return nil, malformed(err)
		}
		if c.Base != r.Base {
			continue // of an earlier run
		}
		i := slices.IndexFunc(list, func(s StepStatus) bool { return s.Name == c.Step })
		if i < 0 {
			i, list = len(list), append(list, StepStatus{Name: c.Step})
		}
		list[i].add(c)
	}
	slices.SortStableFunc(list, func(a, b StepStatus) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Name, b.Name))
	})
	return list, nil
}

// add adds a row of the step: the step's own, or the row of one of its segments.
func (s *StepStatus) add(c checkpoint) {
	if c.At.After(s.At) {
		s.At = c.At
	}
	s.Segments = max(s.Segments, c.Segments)
	if c.Part == 0 {
		s.Done = c.Done // not its counts, which are the sums of its segments
	} else {
		s.Seen += c.Seen
		s.Changed += c.Changed
		if c.Done {
			s.SegmentsDone++
		}
	}
}

// estimate sets the number of items in the table for unfinished backfills. It omits the number if it is not available.
func (m *Migrator) estimate(ctx context.Context, list []Status) {
	var open []*StepStatus
	for i := range list {
		for j := range list[i].Steps {
			if s := &list[i].Steps[j]; s.Segments > 0 && !s.Done {
				open = append(open, s)
			}
		}
	}
	if len(open) == 0 {
		return
	}
	size, err := m.table.Estimate(ctx)
	if err != nil {
		return
	}
	for _, s := range open {
		s.Total = size.Items
	}
}
