package migrations

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mortise-go/mortise/keys"
)

// Status is one migration as it stands, known to the program or only to the table.
type Status struct {
	ID, Name string
	State    State
	Record   *Record // nil when it was never begun

	// Resumable says that Up, or Down where it was being taken back, goes on with a migration
	// that was cut off or has failed. Where it is false for one of these, Repair has to decide.
	Resumable bool

	// Steps are what is recorded of the steps of a migration that runs, was cut off, or has
	// failed: of those that are done, and of backfills how far they have come. The one that was
	// recorded last comes last.
	Steps []StepStatus
}

// StepStatus is what is recorded of a step.
type StepStatus struct {
	Name string
	Done bool
	At   time.Time // when that was recorded last

	// Of a backfill:
	Segments     int   // into which it parts the table; 0 for other steps
	SegmentsDone int   // of them
	Seen         int64 // items read so far
	Changed      int64 // items written so far
	Total        int64 // items in the table, as DynamoDB estimates, some hours late; 0 where that is not known
}

// Status lists all migrations in their order, and then those that only the table knows.
//
// Cost: one consistent query; one more for each migration that runs, was cut off, or has failed,
// and one DescribeTable where a backfill of theirs is not done.
func (m *Migrator) Status(ctx context.Context) ([]Status, error) {
	s, err := m.read(ctx)
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

// stepsOf reads what is recorded of a migration's steps in the run that a record is of.
func (m *Migrator) stepsOf(ctx context.Context, r *Record) ([]StepStatus, error) {
	var list []StepStatus
	for c, err := range m.rows.checkpoints.Query(ctx, keys.Values{"set": m.set, "id": r.ID}, entityConsistent) {
		if err == nil {
			err = c.check()
		}
		if err != nil {
			return nil, malformed(err)
		}
		if c.Base != r.Base {
			continue // of a run before this one
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

// add takes in one of the step's rows: its own, or that of a segment.
func (s *StepStatus) add(c checkpoint) {
	if c.At.After(s.At) {
		s.At = c.At
	}
	s.Segments = max(s.Segments, c.Segments)
	if c.Part == 0 {
		s.Done = c.Done // its sums are those of its segments
	} else {
		s.Seen += c.Seen
		s.Changed += c.Changed
		if c.Done {
			s.SegmentsDone++
		}
	}
}

// estimate says how many items there are, where that tells how far a backfill has come. Where it
// cannot be had it is left out.
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
	n, err := m.table.EstimateItems(ctx)
	if err != nil {
		return
	}
	for _, s := range open {
		s.Total = n
	}
}
