package migratecmd

import (
	"context"
	"io"
)

func plan(ctx context.Context, c *call) error {
	list, refused := c.m.Plan(ctx)
	if list == nil && refused != nil {
		return refused // the table could not be read
	}
	d := planDocument{Actions: []actionRow{}, Error: textOf(refused)}
	for _, a := range list {
		d.Actions = append(d.Actions, actionRow{ID: a.ID, Name: a.Name, State: a.State, Text: a.Text})
	}
	err := c.result(d, func(w io.Writer) {
		if len(list) == 0 {
			say(w, "nothing to do\n")
			return
		}
		g := grid{head: []string{"ID", "STATE", "UP WOULD"}}
		for _, a := range list {
			g.add(a.ID, string(a.State), a.Text)
		}
		width, _ := c.terminal(c.Stdout)
		g.write(w, width)
	})
	if refused != nil {
		return refused
	}
	return err
}

func validate(ctx context.Context, c *call) error {
	invalid := c.m.Validate(ctx)
	err := c.result(validDocument{Valid: invalid == nil, Error: textOf(invalid)}, func(w io.Writer) {
		if invalid == nil {
			say(w, "the table's records and this program go together\n")
		}
	})
	if invalid != nil {
		return invalid
	}
	return err
}
