package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// sessionDocument is a process that holds locks, or waits for them.
type sessionDocument struct {
	ID    string     `json:"id"`
	Owner string     `json:"owner"`
	Holds []string   `json:"holds,omitempty"`
	Waits []string   `json:"waits,omitempty"`
	Until *time.Time `json:"until,omitempty"` // end of its lease, unless it is renewed
	State string     `json:"state"`
	Asked int        `json:"asked,omitempty"` // requests that it has not answered yet
}

// States of sessions. sessionsCommand explains them.
const (
	stateLive   = "live"
	stateLate   = "late"
	stateDead   = "dead"
	stateGone   = "gone"
	stateUnread = "unread"
)

func (s *store) state(x lock.Session) string {
	switch {
	case !x.Dead.IsZero():
		return stateDead
	case !x.Expires.IsZero() && x.Expires.Before(s.now()):
		return stateLate
	}
	return stateLive
}

func sessionsCommand() command {
	return command{
		name: "sessions", text: "list the processes that hold locks or wait", json: true,
		more: "A process renews one session, on which all of its locks and places depend. STATE is live; late, if it was not renewed in\n" +
			"time; dead, if another process has noticed that, after which it cannot be renewed; gone, if its row was deleted since; or\n" +
			"unread, if its row could not be read. In the states late, dead and gone, the next one who asks for a lock of it gets the\n" +
			"lock. Leases of a length of their own, of serverless functions, have no session.\n\n" + sourceHelp,
		flags: func(f *flag.FlagSet, c *call) {
			f.StringVar(&c.in, "in", "", "only those at locks in the item collection of the partition key `PK`")
		},
		run: func(ctx context.Context, c *call) error {
			return c.with(ctx, func(s *store) error {
				list, unread, err := c.sessions(ctx, s)
				if err != nil {
					return err
				}
				return errors.Join(unread, c.print(map[string]any{"sessions": list}, func(w io.Writer) {
					if len(list) == 0 {
						if unread == nil {
							tty.Say(w, "no session holds a lock or waits for one%s\n", c.read(s)) // a lease of its own can hold one
						}
						return
					}
					g := tty.Grid{Head: []string{"OWNER", "STATE", "LASTS", "HOLDS", "WAITS FOR", "SESSION"}, Optional: []int{5}}
					for _, d := range list {
						lasts := ""
						if d.Until != nil && d.State == stateLive {
							lasts = span(d.Until.Sub(s.now()))
						}
						g.Add(d.Owner, d.State, lasts, strings.Join(d.Holds, ", "), strings.Join(d.Waits, ", "), d.ID)
					}
					g.Write(w, c.columns())
				}))
			})
		},
	}
}

// sessions reads the sessions of all places in the lines of the selected locks. unread is why the list may lack some, or their states.
func (c *call) sessions(ctx context.Context, s *store) (_ []*sessionDocument, unread, err error) {
	locks, err := c.list(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	list := []*sessionDocument{}
	byID := map[string]*sessionDocument{}
	var ids []string
	var unknown []*lockDocument // locks of which nobody can tell who holds them
	for i := range locks {
		if locks[i].Error != "" {
			unknown = append(unknown, &locks[i])
		}
		for place, p := range locks[i].Line {
			if p.Session == "" {
				continue
			}
			d := byID[p.Session]
			if d == nil {
				d = &sessionDocument{ID: p.Session, Owner: p.Owner, State: stateGone}
				byID[p.Session] = d
				list, ids = append(list, d), append(ids, p.Session)
			}
			if place < locks[i].Holders {
				d.Holds = append(d.Holds, locks[i].title())
			} else {
				d.Waits = append(d.Waits, locks[i].title())
			}
		}
	}
	found, unread := s.locks.Sessions(ctx, ids...)
	if unread != nil { // one that is not in found may have a row
		for _, d := range list {
			d.State = stateUnread
		}
	}
	for _, x := range found {
		d := byID[x.ID]
		d.Owner, d.Asked, d.Until, d.State = cmp.Or(x.Owner, d.Owner), x.Asked, tty.Moment(x.Expires), s.state(x)
	}
	if len(unknown) > 0 {
		first := unknown[0]
		unread = errors.Join(unread, fmt.Errorf("who holds %d locks is not known, such as %s: %s: %s", len(unknown), first.title(), first.Error, ifMalformed(first.Error)))
	}
	return list, unread, nil
}

func revokeCommand() command {
	return command{
		name: "revoke", operands: "NAME", least: 1, most: 1, locks: true, json: true,
		text: "ask the holder of a lock to give it up",
		more: "The holder hears of it with its next renewal, within about a quarter of its lease. mortise exec then sends its command SIGTERM.\n" +
			"The lock stays held until the holder gives it up. force does not ask.",
		run: func(ctx context.Context, c *call) error {
			return c.with(ctx, func(s *store) error {
				d, err := c.look(ctx, s, c.target())
				if err == nil {
					err = s.locks.Revoke(ctx, c.target())
				}
				if errors.Is(err, lock.ErrNotHeld) {
					return errors.New("nobody holds " + c.targetName())
				}
				if err != nil {
					return err
				}
				return c.print(map[string]any{"asked": d}, func(w io.Writer) {
					tty.Say(w, "asked %s to give up %s\n", tty.Clean(d.holder()), tty.Clean(c.targetName()))
				})
			})
		},
	}
}

// holder returns who holds the lock, for people: the first holder, and how many others there are.
func (d *lockDocument) holder() string {
	switch d.Holders {
	case 0:
		return "the holder"
	case 1:
		return d.Line[0].Owner
	}
	return fmt.Sprintf("%s and %d more", d.Line[0].Owner, d.Holders-1)
}

func (d *lockDocument) waiting() int { return len(d.Line) - d.Holders }

func forceCommand() command {
	return command{
		name: "force", operands: "NAME", least: 1, most: 1, locks: true, json: true,
		text: "take a lock away from its holder",
		more: "Shows the holder and asks first; without a terminal, --yes has to say so. Only the holder that was shown loses the lock. The\n" +
			"next one in the line holds it then. No guarded write of the old holder goes through from that moment on; what it does\n" +
			"outside the table goes on until it hears of it, with its next renewal. A malformed row is reset.",
		flags: func(f *flag.FlagSet, c *call) {
			f.BoolVar(&c.yes, "yes", false, "do not ask")
			f.StringVar(&c.ticket, "ticket", "", "`TICKET` of the holder that loses it, as show has it; needed where several hold")
			f.StringVar(&c.reason, "reason", "", "why, in `TEXT` that the row shows until the next change")
		},
		run: func(ctx context.Context, c *call) error {
			if len(c.reason) > lock.MaxReason || !utf8.ValidString(c.reason) { // before anything is asked
				return usagef("--reason: want at most %d bytes of UTF-8", lock.MaxReason)
			}
			return c.with(ctx, func(s *store) error { return c.force(ctx, s) })
		},
	}
}

func (c *call) force(ctx context.Context, s *store) error {
	d, err := c.look(ctx, s, c.target())
	if err != nil {
		return err
	}
	var ticket string
	switch {
	case d.Error != "" && c.ticket != "":
		return fmt.Errorf("the row of %s is malformed, so force would reset all of it: to do that, leave out --ticket", c.targetName())
	case d.Error != "":
		if ticket, err = s.firstText(ctx, c.target()); err != nil {
			return err
		}
	case !d.Held:
		return errors.New("nobody holds " + c.targetName())
	case c.ticket != "":
		ticket = c.ticket
	case d.Holders > 1:
		s.show(c.stderr, 0, &d)
		return usagef("%d hold %s: name one of them with --ticket", d.Holders, c.targetName())
	default:
		ticket = d.Line[0].Ticket
	}
	if !c.yes {
		s.show(c.stderr, 0, &d)
		if err := c.agreed(ctx, "Take it away?"); err != nil {
			return err
		}
	}
	var reason []string
	if c.reason != "" {
		reason = append(reason, c.reason)
	}
	err = s.locks.ForceRelease(ctx, c.target(), ticket, reason...)
	var held *lock.HeldError
	switch {
	case errors.Is(err, lock.ErrNotHeld):
		return errors.New("the holder has given it up meanwhile: nothing was done")
	case errors.As(err, &held):
		return errors.New("another holds it by now, " + held.Owner + ": nothing was done")
	case errors.Is(err, table.ErrUnreachable), err != nil && ctx.Err() != nil:
		again := "" // the same call would take it from the next one in the line
		if ticket != "" && d.Error == "" {
			again = ", and repeat this with --ticket " + ticket
		}
		c.say("the lock may have been taken all the same: look at it with mortise show%s", again)
		return err
	case err != nil:
		return err
	}
	return c.print(map[string]any{"taken": d}, func(w io.Writer) {
		if d.Error != "" {
			tty.Say(w, "reset %s: its row was malformed\n", tty.Clean(c.targetName()))
			return
		}
		owner := "the holder"
		for _, p := range d.Line[:d.Holders] {
			if p.Ticket == ticket {
				owner = p.Owner
			}
		}
		tty.Say(w, "took %s from %s\n", tty.Clean(c.targetName()), tty.Clean(owner))
	})
}

// firstText returns the first element of the line of a malformed row, or "". ForceRelease wants it in place of a ticket.
func (s *store) firstText(ctx context.Context, target lock.Target) (string, error) {
	key, err := s.locks.Key(target)
	if err != nil {
		return "", err
	}
	item, err := s.table.Get(ctx, key, true)
	if err != nil {
		return "", err
	}
	list, ok := item[s.settings.locks.AttributePrefix+"line"].(*types.AttributeValueMemberL)
	if !ok || len(list.Value) == 0 {
		return "", nil
	}
	first, ok := list.Value[0].(*types.AttributeValueMemberS)
	if !ok {
		return "", nil
	}
	return first.Value, nil
}

// agreed asks a question on a terminal. Any answer but yes is an error.
func (c *call) agreed(ctx context.Context, question string) error {
	if _, terminal := c.width(c.stdin); !terminal || c.json {
		return errors.New("nothing was done: say --yes where nobody can be asked")
	}
	tty.Say(c.stderr, "%s [y/N] ", question)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	select {
	case answer := <-tty.Lines(ctx, c.stdin):
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return nil
		}
		return errors.New("nothing was done")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
