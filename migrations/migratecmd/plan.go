package migratecmd

import (
	"context"
	"io"

	"github.com/mortise-go/mortise/internal/tty"
)

func plan(ctx context.Context, c *call) error {
	list, refused := c.m.Plan(ctx)
	d := planDocument{Actions: []actionRow{}, Error: textOf(refused)}
	for _, a := range list {
		d.Actions = append(d.Actions, actionRow{ID: a.ID, Name: a.Name, State: a.State, Text: a.Text})
	}
	result := refused
	if c.exitCode && refused == nil && len(list) > 0 {
		result = ErrPending
	}
	return c.result(result, d, func(w io.Writer) {
		if len(list) == 0 {
			if refused == nil {
				tty.Say(w, "nothing to do\n")
			}
			return
		}
		g := tty.Grid{Head: []string{"ID", "STATE", "UP WOULD"}}
		for _, a := range list {
			g.Add(a.ID, string(a.State), a.Text)
		}
		width, _ := c.terminal(c.Stdout)
		g.Write(w, width)
	})
}

func validate(ctx context.Context, c *call) error {
	invalid := c.m.Validate(ctx)
	return c.result(invalid, validDocument{Valid: invalid == nil, Error: textOf(invalid)}, func(w io.Writer) {
		if invalid == nil {
			tty.Say(w, "the table's records and this program agree\n")
		}
	})
}
