package migratecmd

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/migrations"
)

// repair asks first and then takes the lock, so that no lock is held while it waits for an answer. An approved fix is
// made only if it is still the same under the lock.
func repair(ctx context.Context, c *call) error {
	fixes, err := c.m.Repair(ctx, nil)
	var agreed []migrations.Fix
	if err == nil {
		agreed, err = c.agree(ctx, fixes)
	}
	var made []migrations.Fix
	if err == nil && len(agreed) > 0 {
		made, err = c.m.Repair(ctx, func(f migrations.Fix) bool { return contains(agreed, f) })
		if err == nil && len(made) < len(agreed) {
			err = ErrChanged
		}
	}
	d := repairDocument{Fixes: []fixRow{}, Error: textOf(err)}
	for _, f := range fixes {
		d.Fixes = append(d.Fixes, fixRow{ID: f.ID, Kind: f.Kind, Text: f.Text, Made: contains(made, f)})
	}
	return c.result(err, d, func(w io.Writer) {
		if len(fixes) == 0 && err == nil {
			tty.Say(w, "nothing to repair\n")
		}
		for _, row := range d.Fixes {
			mark := "not made"
			switch {
			case row.Made:
				mark = "made"
			case fixed(made, row.ID):
				continue // another fix of this migration was made
			}
			tty.Say(w, "%s: %s: %s\n", mark, row.Kind, tty.Clean(row.Text))
		}
	})
}

func contains(list []migrations.Fix, f migrations.Fix) bool {
	return slices.ContainsFunc(list, func(g migrations.Fix) bool { return g.ID == f.ID && g.Kind == f.Kind && g.Text == f.Text })
}

// fixed reports whether one of the fixes is for the migration with the given ID.
func fixed(fixes []migrations.Fix, id string) bool {
	return slices.ContainsFunc(fixes, func(f migrations.Fix) bool { return f.ID == id })
}

// agree returns the approved fixes. If there are several for a migration, it takes the first one that is approved.
func (c *call) agree(ctx context.Context, fixes []migrations.Fix) (agreed []migrations.Fix, err error) {
	if c.yes {
		for _, f := range fixes {
			if !fixed(agreed, f.ID) {
				agreed = append(agreed, f)
			}
		}
		return agreed, nil
	}
	if len(fixes) == 0 {
		return nil, nil
	}
	if _, ok := c.terminal(c.Stdin); !ok || c.json {
		return nil, ErrNotApproved
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answers := tty.Lines(ctx, c.Stdin)
	for _, f := range fixes {
		if fixed(agreed, f.ID) {
			continue
		}
		tty.Say(c.Stderr, "%s\nDo that? [y/N] ", tty.Clean(f.Text))
		select {
		case answer, more := <-answers:
			if !more { // end of input
				tty.Say(c.Stderr, "\n")
				return agreed, nil
			}
			switch strings.ToLower(strings.TrimSpace(answer)) {
			case "y", "yes":
				agreed = append(agreed, f)
			}
		case <-ctx.Done():
			tty.Say(c.Stderr, "\n")
			return nil, context.Cause(ctx)
		}
	}
	return agreed, nil
}
