package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

func watchCommand() command {
	return command{
		name: "watch", operands: "[NAME…]", most: -1, names: true, json: true,
		text: "show locks again and again: who holds, who waits, for how long",
		more: "Without a NAME: all locks that are held, as ls lists them. With NAMEs it reads no more than these.\n" +
			"On a terminal it draws one table over and over. Elsewhere, and with TERM=dumb, it writes the table anew when it has changed;\n" +
			"with --json one line per look. An interrupt ends it. If DynamoDB does not answer meanwhile, it tells that once, goes\n" +
			"on, and tells when it answers again.\n\n" + sourceHelp,
		flags: func(f *flag.FlagSet, c *call) {
			sourceFlags(f, c)
			c.every = 2 * time.Second
			f.Func("every", "`DURATION` between two looks, at least 500ms (default: 2s)", func(text string) (err error) {
				c.every, err = duration(text)
				return err
			})
		},
		run: watch,
	}
}

const leastEvery = 500 * time.Millisecond

func watch(ctx context.Context, c *call) error {
	if c.every < leastEvery {
		return usagef("--every %v: want at least %v", c.every, leastEvery)
	}
	if len(c.operands) > 0 && (c.all || c.in != "") {
		return usagef("want NAMES, or --in and --all")
	}
	return c.with(ctx, func(s *store) error { return c.watch(ctx, s) })
}

// watch looks until ctx ends, which is its ordinary end. After a first look, an outage does not end it. One message tells that an outage
// has begun, and one that it is over, however long it lasts.
func (c *call) watch(ctx context.Context, s *store) error {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	last, looked := "", false
	var outage time.Time // when it began; zero if the last look has succeeded
	for {
		list, err := c.watched(ctx, s)
		switch {
		case ctx.Err() != nil:
			return nil
		case looked && (errors.Is(err, table.ErrUnreachable) || errors.Is(err, table.ErrThrottled) || table.Retryable(err)): // or no credentials in time
			if outage.IsZero() {
				outage = time.Now()
				c.say("%s", c.explain(err))
			}
		case err != nil:
			return err
		default:
			looked = true
			if last, err = c.draw(s, list, last); err != nil {
				return err
			}
			if !outage.IsZero() { // after draw, which clears a terminal
				c.say("DynamoDB answers again, after %s", span(time.Since(outage)))
				outage = time.Time{}
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// watched reads the locks that are shown.
func (c *call) watched(ctx context.Context, s *store) ([]lockDocument, error) {
	if len(c.operands) == 0 {
		return c.list(ctx, s)
	}
	list := make([]lockDocument, len(c.operands))
	for i, name := range c.operands {
		var err error
		if list[i], err = c.look(ctx, s, lock.Name(name)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// draw writes the locks, on a terminal over the last text. Elsewhere it leaves the text out if only times have changed. It returns the
// new last. If the reader has gone, it writes all the same: as for any program, that is the end.
func (c *call) draw(s *store, list []lockDocument, last string) (string, error) {
	width, terminal := c.width(c.stdout)
	over := terminal && c.env("TERM") != "dumb" // such a terminal has no escape sequences
	var b strings.Builder
	switch {
	case c.json:
		if err := tty.JSON(&b, map[string]any{"at": s.now().UTC(), "locks": list}, ""); err != nil {
			return last, err
		}
	default:
		state := fmt.Sprint(lines(list))
		if state == last && !over && !tty.Unread(c.stdout) {
			return last, nil
		}
		last = state
		if over {
			b.WriteString("\x1b[H\x1b[2J")
		}
		heading := tty.Grid{}
		heading.Add(s.table.Name(), s.now().UTC().Format(time.RFC3339))
		heading.Write(&b, width)
		if len(list) == 0 {
			tty.Say(&b, "no locks are held%s\n", c.read(s))
		} else {
			s.drawLines(&b, width, list)
		}
	}
	if _, err := io.WriteString(c.stdout, b.String()); err != nil {
		return last, fmt.Errorf("standard output: %w", err)
	}
	return last, nil
}

// lines returns what draw compares: the name, fence, error, number of holders and tickets of each lock, but no times.
func lines(list []lockDocument) (all [][]string) {
	for _, d := range list {
		tickets := []string{d.title(), strconv.FormatInt(d.Fence, 10), d.Error, strconv.Itoa(d.Holders)}
		for _, p := range d.Line {
			tickets = append(tickets, p.Ticket)
		}
		all = append(all, tickets)
	}
	return all
}

// drawLines writes one line of text for each place.
func (s *store) drawLines(w io.Writer, width int, list []lockDocument) {
	g := tty.Grid{Head: []string{"LOCK", "PLACE", "FOR", "WHO"}}
	for _, d := range list {
		switch {
		case d.Error != "":
			g.Add(d.title(), "", "", d.Error)
		case !d.Held:
			g.Add(d.title(), "free", s.ago(d.Since), "-")
		}
		for i, p := range d.Line {
			title := ""
			if i == 0 {
				title = d.title()
			}
			if i < d.Holders {
				g.Add(title, "holds", s.heldFor(&d, i), p.who())
			} else {
				g.Add(title, "waits "+strconv.Itoa(i-d.Holders+1), s.ago(p.Since), p.who())
			}
		}
	}
	g.Write(w, width)
}
