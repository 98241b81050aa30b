package migratecmd

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/migrations"
)

func up(ctx context.Context, c *call) error {
	if c.to != "" {
		report, err := c.m.UpTo(ctx, c.to)
		return c.done(ctx, "applied", report, err)
	}
	report, err := c.m.Up(ctx)
	return c.done(ctx, "applied", report, err)
}

func down(ctx context.Context, c *call) (err error) {
	var report migrations.Report
	if c.to != "" || c.all {
		report, err = c.m.DownTo(ctx, c.to)
	} else {
		report, err = c.m.Down(ctx)
	}
	return c.done(ctx, "taken back", report, err)
}

func baseline(ctx context.Context, c *call) error {
	report, err := c.m.Baseline(ctx, c.operand)
	return c.done(ctx, "recorded as applied", report, err)
}

// done writes the finished migrations and, after a failure, the recorded state.
func (c *call) done(ctx context.Context, verb string, report migrations.Report, err error) error {
	result := c.result(err, reportOf(report, err), func(w io.Writer) {
		ids := make([]string, len(report.Done))
		for i, r := range report.Done {
			ids[i] = tty.Clean(r.ID)
		}
		switch {
		case len(ids) > 0:
			tty.Say(w, "%s: %s\n", verb, strings.Join(ids, ", "))
		case err == nil:
			tty.Say(w, "nothing to do\n")
		}
	})
	if failed := (*migrations.PartialError)(nil); errors.As(err, &failed) || err != nil && ctx.Err() != nil {
		c.explain(ctx)
	}
	return result
}

// afterwards bounds the time for reading the recorded state, even if ctx has ended.
const afterwards = 5 * time.Second

// explain writes the state after a failure: the unfinished migrations and how to continue.
func (c *call) explain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer cancel()
	list, err := c.m.Status(ctx)
	if err != nil {
		tty.Say(c.Stderr, "what is recorded could not be read: %s\n", tty.Clean(err.Error()))
		return
	}
	for _, st := range list {
		if st.State != migrations.Applied && st.State != migrations.Pending {
			tty.Say(c.Stderr, "recorded: %s: %s\n", tty.Clean(st.ID), tty.Clean(note(&st)))
		}
		for _, line := range stepLines(&st) {
			tty.Say(c.Stderr, "recorded: %s\n", line)
		}
	}
	tty.Say(c.Stderr, "recorded: %s\n", counts(list))
}
