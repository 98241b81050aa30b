package migratecmd

import (
	"time"

	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/migrations"
)

// The JSON documents. Members that do not apply are omitted. Times are RFC 3339 in UTC.

type statusDocument struct {
	Migrations []statusRow `json:"migrations"`
	Error      string      `json:"error,omitempty"`
}

type statusRow struct {
	ID        string           `json:"id"`
	Name      string           `json:"name,omitempty"`
	State     migrations.State `json:"state"`
	Live      bool             `json:"live,omitempty"`
	Resumable bool             `json:"resumable,omitempty"`
	Record    *recordRow       `json:"record,omitempty"`
	Steps     []stepRow        `json:"steps,omitempty"` // of an unfinished migration
}

type stepRow struct {
	Name         string     `json:"name"`
	Done         bool       `json:"done,omitempty"`
	At           *time.Time `json:"at,omitempty"`
	Segments     int        `json:"segments,omitempty"` // this and the following are for backfills
	SegmentsDone int        `json:"segments_done,omitempty"`
	Seen         int64      `json:"seen,omitempty"`
	Changed      int64      `json:"changed,omitempty"`
	Total        int64      `json:"total,omitempty"`
}

type recordRow struct {
	ID       string           `json:"id"`
	Name     string           `json:"name,omitempty"`
	Revision string           `json:"revision,omitempty"`
	State    migrations.State `json:"state"`
	Down     bool             `json:"down,omitempty"`
	Baseline bool             `json:"baseline,omitempty"`
	Owner    string           `json:"owner,omitempty"`
	Fence    int64            `json:"fence,omitempty"`
	Attempts int              `json:"attempts,omitempty"`
	Started  *time.Time       `json:"started,omitempty"`
	Finished *time.Time       `json:"finished,omitempty"`
	Seconds  float64          `json:"seconds,omitempty"` // Record.Took
	Approved bool             `json:"approved,omitempty"`
	Step     string           `json:"step,omitempty"`
	Error    string           `json:"error,omitempty"`
}

type planDocument struct {
	Actions []actionRow `json:"actions"`
	Error   string      `json:"error,omitempty"` // why up would refuse to run anything
}

type actionRow struct {
	ID    string           `json:"id"`
	Name  string           `json:"name,omitempty"`
	State migrations.State `json:"state"`
	Text  string           `json:"text"`
}

type reportDocument struct {
	Done  []*recordRow `json:"done"`
	Error string       `json:"error,omitempty"`
}

type repairDocument struct {
	Fixes []fixRow `json:"fixes"`
	Error string   `json:"error,omitempty"`
}

type fixRow struct {
	ID   string             `json:"id"`
	Kind migrations.FixKind `json:"kind"`
	Text string             `json:"text"`
	Made bool               `json:"made"`
}

type validDocument struct {
	Valid bool   `json:"valid"`
	Error string `json:"error,omitempty"`
}

func rowOf(r *migrations.Record) *recordRow {
	if r == nil {
		return nil
	}
	return &recordRow{
		ID: r.ID, Name: r.Name, Revision: r.Revision, State: r.State, Down: r.Down, Baseline: r.Baseline, Owner: r.Owner,
		Fence: r.Fence, Attempts: r.Attempts, Started: tty.Moment(r.Started), Finished: tty.Moment(r.Finished), Seconds: r.Took.Seconds(),
		Approved: r.Approved, Step: r.Step, Error: r.Error,
	}
}

func stepsOf(list []migrations.StepStatus) (rows []stepRow) {
	for _, s := range list {
		rows = append(rows, stepRow{
			Name: s.Name, Done: s.Done, At: tty.Moment(s.At), Segments: s.Segments, SegmentsDone: s.SegmentsDone,
			Seen: s.Seen, Changed: s.Changed, Total: s.Total,
		})
	}
	return rows
}

func reportOf(report migrations.Report, err error) reportDocument {
	d := reportDocument{Done: []*recordRow{}, Error: textOf(err)}
	for i := range report.Done {
		d.Done = append(d.Done, rowOf(&report.Done[i]))
	}
	return d
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
