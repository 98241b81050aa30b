package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mortise-go/mortise/migrations"
)

const (
	statusEvery     = 2 * time.Second // while a migration runs
	statusEveryIdle = 5 * time.Second
)

// migrationList is the state of all migrations at one moment.
type migrationList struct {
	list []migrations.Status
	read bool // at least once
	err  error
}

// readMigrations feeds the page of migrations, until ctx ends.
func (c *Console) readMigrations(ctx context.Context, publish func(*migrationList)) {
	var now migrationList
	for {
		list, err := c.config.Migrations.Status(ctx)
		wait := statusEveryIdle
		if now.err = err; err == nil {
			now.list, now.read = list, true
			for i := range list {
				if stateOf(&list[i]) == migrations.Running {
					wait = statusEvery
				}
			}
		}
		snapshot := now
		publish(&snapshot)
		if !sleep(ctx, wait) {
			return
		}
	}
}

// migrationsView is what the page of migrations shows.
type migrationsView struct {
	Known   bool
	Rows    []migrationView
	Counts  []countView
	Failure string
}

type countView struct {
	State string
	N     int
}

type migrationView struct {
	ID, Name, State  string
	When, Took, Note string
	HasError         bool
	Error            string // empty if it is hidden
	Steps            []stepView
}

type stepView struct {
	Name, Text string
	Done, Bar  bool
	Percent    int64
}

func (c *Console) migrationsPage(*http.Request) (*part, error) {
	p := part{name: "migrations", title: "Migrations", events: eventsOf("migrations", nil)}
	return live(p, c.migrations.enter, func(l *migrationList) any { return c.viewMigrations(l) }), nil
}

func (c *Console) viewMigrations(l *migrationList) migrationsView {
	if l == nil {
		return migrationsView{}
	}
	v := migrationsView{Known: l.read, Failure: c.failure(l.err)}
	counts := map[migrations.State]int{}
	for i := range l.list {
		s := &l.list[i]
		counts[stateOf(s)]++
		v.Rows = append(v.Rows, c.viewMigration(s))
	}
	for _, s := range []migrations.State{migrations.Running, migrations.Failed, migrations.Drifted, migrations.Pending, migrations.Applied} {
		if n := counts[s]; n > 0 {
			v.Counts = append(v.Counts, countView{string(s), n})
		}
	}
	return v
}

// stateOf returns the state that the page shows. If only the table has the migration, it is the state in the record.
func stateOf(s *migrations.Status) migrations.State {
	if s.State == migrations.Missing && s.Record != nil {
		return s.Record.State
	}
	return s.State
}

func (c *Console) viewMigration(s *migrations.Status) migrationView {
	v := migrationView{ID: s.ID, Name: s.Name, State: string(stateOf(s))}
	for i := range s.Steps {
		v.Steps = append(v.Steps, viewStep(&s.Steps[i]))
	}
	r := s.Record
	if r == nil {
		return v
	}
	if !r.Finished.IsZero() {
		v.When = clock(r.Finished)
		if r.Took > 0 {
			v.Took = r.Took.Round(time.Millisecond).String()
		}
	}
	if v.HasError = r.Error != ""; v.HasError && c.config.ShowData {
		v.Error = r.Error
	}
	v.Note = note(s)
	return v
}

// note explains a migration's state and how it continues.
func note(s *migrations.Status) string {
	r := s.Record
	what := "up"
	if r.Down {
		what = "down"
	}
	next := what + " continues it"
	switch {
	case s.State == migrations.Missing:
		next = "the program that has it continues it, or an operator decides (repair)"
	case !s.Resumable:
		next = "an operator has to decide (repair)"
	}
	var text string
	switch stateOf(s) {
	case migrations.Applied:
		if r.Baseline {
			text = "recorded as applied, without a run"
		}
	case migrations.Running:
		text = fmt.Sprintf("%s was begun by %s at %s, attempt %d; ", what, r.Owner, clock(r.Started), r.Attempts)
		if s.Live {
			text += "it runs now"
		} else {
			text += "it was interrupted: " + next
		}
	case migrations.Failed:
		where := ""
		if r.Step != "" {
			where = " in step " + r.Step
		}
		text = fmt.Sprintf("%s has failed%s, attempt %d; %s", what, where, r.Attempts, next)
	case migrations.Drifted:
		text = "it has changed since it was applied"
	case migrations.Pending, migrations.Missing:
	}
	if s.State == migrations.Missing {
		text = strings.TrimPrefix(text+"; only the table has it", "; ")
	}
	return text
}

func viewStep(s *migrations.StepStatus) stepView {
	v := stepView{Name: s.Name, Done: s.Done, Text: "done"}
	switch {
	case s.Segments > 0 && s.Done:
		v.Text = fmt.Sprintf("done: %s items read, %s changed", number(s.Seen), number(s.Changed))
	case s.Segments > 0:
		v.Text = number(s.Seen) + " items read"
		if s.Total > 0 {
			v.Bar, v.Percent = true, min(100, 100*s.Seen/s.Total)
			v.Text += " of about " + number(s.Total)
		}
		v.Text += fmt.Sprintf(", %s changed, %d of %d segments done", number(s.Changed), s.SegmentsDone, s.Segments)
	case !s.Done:
		v.Text = "under way"
	}
	return v
}
