package migratecmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/migrations"
)

// timeLayout is the format of times for people, in UTC.
const timeLayout = "2006-01-02 15:04:05Z"

// longestName is the maximum width of a name on a terminal, in columns.
const longestName = 40

func status(ctx context.Context, c *call) error {
	list, err := c.m.Status(ctx)
	d := statusDocument{Migrations: []statusRow{}, Error: textOf(err)}
	for _, st := range list {
		d.Migrations = append(d.Migrations, statusRow{ID: st.ID, Name: st.Name, State: st.State, Live: st.Live, Resumable: st.Resumable, Record: rowOf(st.Record), Steps: stepsOf(st.Steps)})
	}
	return c.result(err, d, func(w io.Writer) {
		if err == nil {
			c.writeStatus(w, list)
		}
	})
}

func (c *call) writeStatus(w io.Writer, list []migrations.Status) {
	if len(list) == 0 {
		tty.Say(w, "there are no migrations\n")
		return
	}
	g := tty.Grid{Head: []string{"ID", "NAME", "STATE", "FINISHED", "TOOK", "NOTE"}, Optional: []int{4, 3, 1}}
	width, _ := c.terminal(c.Stdout)
	var steps []string
	for _, st := range list {
		steps = append(steps, stepLines(&st)...)
		finished, took := "", ""
		if r := st.Record; r != nil && r.State != migrations.Pending && !r.Finished.IsZero() {
			finished = r.Finished.UTC().Format(timeLayout)
			if !r.Baseline {
				took = roundly(r.Took)
			}
		}
		name := tty.Clean(st.Name)
		if width > 0 {
			name = tty.Cut(name, longestName)
		}
		g.Add(st.ID, name, string(st.State), finished, took, note(&st))
	}
	g.Write(w, width)
	if len(steps) > 0 {
		tty.Say(w, "\n")
	}
	for _, line := range steps {
		if width > 0 {
			line = tty.Cut(line, width)
		}
		tty.Say(w, "%s\n", line)
	}
	tty.Say(w, "\n%s\n", counts(list))
}

// counts returns the number of migrations in each state.
func counts(list []migrations.Status) string {
	n := map[migrations.State]int{}
	for _, st := range list {
		n[st.State]++
	}
	texts := make([]string, 0, len(n))
	for _, s := range slices.Sorted(maps.Keys(n)) {
		texts = append(texts, fmt.Sprintf("%d %s", n[s], s))
	}
	return strings.Join(texts, ", ")
}

// stepLines returns the progress of an unfinished migration, with a line for each of its steps.
func stepLines(st *migrations.Status) (lines []string) {
	for _, s := range st.Steps {
		text := "done"
		switch {
		case s.Segments > 0 && s.Done:
			text = fmt.Sprintf("done, %d items read, %d changed", s.Seen, s.Changed)
		case s.Segments > 0:
			text = fmt.Sprintf("%d items read", s.Seen)
			if s.Total > 0 {
				text += fmt.Sprintf(" of about %d (%d %%)", s.Total, min(100, 100*s.Seen/s.Total))
			}
			text += fmt.Sprintf(", %d changed, %d of %d segments done", s.Changed, s.SegmentsDone, s.Segments)
		}
		lines = append(lines, tty.Clean(fmt.Sprintf("%s: step %q: %s; recorded %s", st.ID, s.Name, text, s.At.UTC().Format(timeLayout))))
	}
	return lines
}

// note returns the details of a migration that have no column.
func note(st *migrations.Status) string {
	r := st.Record
	if r == nil {
		return ""
	}
	switch st.State {
	case migrations.Pending:
		if r.State == migrations.Applied {
			return "changed since: up repeats it"
		}
		return "taken back"
	case migrations.Applied:
		if r.Baseline {
			return "taken for applied: was not run, or not to its end"
		}
	case migrations.Drifted:
		return fmt.Sprintf("changed since it was applied, with revision %q", r.Revision)
	case migrations.Missing:
		return fmt.Sprintf("%s, and not known to this program", r.State)
	case migrations.Running:
		begun := fmt.Sprintf("%s begun by %s at %s, attempt %d", direction(r), r.Owner, r.Started.UTC().Format(timeLayout), r.Attempts)
		if st.Live {
			return begun + "; runs now"
		}
		return begun + "; cut off: " + whatNext(st)
	case migrations.Failed:
		where := ""
		if r.Step != "" {
			where = fmt.Sprintf(" in step %q", r.Step)
		}
		return fmt.Sprintf("%s failed%s, attempt %d; %s: %s", direction(r), where, r.Attempts, whatNext(st), r.Error)
	}
	return ""
}

func direction(r *migrations.Record) string {
	if r.Down {
		return "down"
	}
	return "up"
}

// whatNext explains how to continue a migration that was interrupted or has failed.
func whatNext(st *migrations.Status) string {
	if !st.Resumable {
		return "repair has to decide"
	}
	return direction(st.Record) + " goes on with it"
}

// roundly rounds a duration for people.
func roundly(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}
