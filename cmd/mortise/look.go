package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// lockDocument is a lock as JSON.
type lockDocument struct {
	Name    string      `json:"name,omitempty"`   // of a lock with a name
	Beside  *keyText    `json:"beside,omitempty"` // key of the row that the lock is beside
	Held    bool        `json:"held"`
	Fence   int64       `json:"fence,omitempty"`
	Since   *time.Time  `json:"since,omitempty"`   // when the holder got the lock or, if it is free, when it was given up
	Until   *time.Time  `json:"until,omitempty"`   // end of the first holder's lease, unless it is renewed
	Holders int         `json:"holders"`           // how many places at the front of Line hold; the others wait
	Permits int         `json:"permits,omitempty"` // how many can hold at once; 0 for a lock
	Line    []placeText `json:"line,omitempty"`
	HoldMS  int64       `json:"hold_ms,omitempty"`
	Forced  string      `json:"forced,omitempty"`
	LastRun *time.Time  `json:"last_run,omitempty"`      // of Client.Every
	Error   string      `json:"error,omitempty"`         // why the row is malformed
	Unread  string      `json:"session_error,omitempty"` // why the session of a holder could not be read
}

type keyText struct {
	PK string `json:"pk"`
	SK string `json:"sk"`
}

type placeText struct {
	Owner   string     `json:"owner"`
	Since   *time.Time `json:"since,omitempty"` // when the place was taken
	Ticket  string     `json:"ticket"`
	Session string     `json:"session,omitempty"`
	Shared  bool       `json:"shared,omitempty"`        // it is a reader's
	Until   *time.Time `json:"until,omitempty"`         // of one lock's holder: the end of its lease, unless it is renewed
	State   string     `json:"session_state,omitempty"` // of one lock's holder: that of its session, as sessions has it
}

// who returns the owner for people.
func (p *placeText) who() string {
	if p.Shared {
		return p.Owner + ", a reader"
	}
	return p.Owner
}

// title returns the lock's name for people.
func (d *lockDocument) title() string {
	if d.Beside != nil {
		return "beside " + d.Beside.PK + " " + d.Beside.SK
	}
	return d.Name
}

func (d *lockDocument) target() lock.Target {
	if d.Beside != nil {
		return lock.Beside(keys.NewKey(d.Beside.PK, d.Beside.SK))
	}
	return lock.Name(d.Name)
}

// document describes a lock's row. bad is the error of a malformed row.
func (s *store) document(r lock.Record, bad error) lockDocument {
	d := lockDocument{Held: r.Held(), Fence: r.Fence, HoldMS: r.Hold, Forced: r.Forced, LastRun: tty.Moment(r.LastRun())}
	if s.standsAlone(r) {
		d.Name = r.Of
	} else {
		d.Beside = &keyText{r.Partition, r.Of}
	}
	if bad != nil {
		d.Error = bad.Error()
		return d
	}
	d.Holders, d.Permits = len(r.Holders()), r.Permits
	for _, p := range r.Line {
		d.Line = append(d.Line, placeText{Owner: p.Owner, Since: tty.Moment(p.Since), Ticket: p.Ticket, Session: p.Session, Shared: p.Shared})
	}
	if d.Since = tty.Moment(r.Since()); !d.Held && r.Changed > 0 {
		d.Since = tty.Moment(time.UnixMilli(r.Changed))
	}
	d.Until = tty.Moment(r.Until())
	return d
}

// standsAlone reports whether the row belongs to a lock with a name.
func (s *store) standsAlone(r lock.Record) bool {
	key, err := s.locks.Key(lock.Name(r.Of))
	return err == nil && key.PK == r.Partition
}

// now is the time to compare with those that others have recorded.
func (s *store) now() time.Time { return s.table.Inside(inside.Key{}).Correct(s.table.Now()) }

// ago formats how long ago t was, for people.
func (s *store) ago(t *time.Time) string {
	if t == nil {
		return ""
	}
	return span(s.now().Sub(*t))
}

// span formats a duration in two units at most.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Truncate(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// source returns which locks to list: those of a partition, of the index, or of the whole table.
func (c *call) source(s *store) lock.Source {
	switch {
	case c.in != "":
		return lock.In(c.in)
	case s.settings.locks.Index != "" && !c.all:
		return lock.Index()
	}
	return lock.WholeTable()
}

// read tells where no locks were found, if that may be the wrong place: locks with another key prefix stand elsewhere in the index.
func (c *call) read(s *store) string {
	if c.source(s) != lock.Index() {
		return ""
	}
	return fmt.Sprintf(" (in index %s, with the key prefix %q)", s.settings.locks.Index, s.table.Scheme().Prefix)
}

// list reads the selected locks, sorted by name. Without --all it omits locks that nobody holds.
func (c *call) list(ctx context.Context, s *store) (list []lockDocument, err error) {
	list = []lockDocument{}
	for r, err := range s.locks.List(ctx, c.source(s)) {
		if err != nil && !errors.Is(err, lock.ErrMalformed) {
			return nil, err
		}
		if c.all || err != nil || r.Held() {
			list = append(list, s.document(r, err))
		}
	}
	slices.SortFunc(list, func(a, b lockDocument) int { return strings.Compare(a.title(), b.title()) })
	return list, nil
}

// sourceFlags adds the flags that select locks.
func sourceFlags(f *flag.FlagSet, c *call) {
	f.BoolVar(&c.all, "all", false, "also locks that nobody holds; reads the whole table")
	f.StringVar(&c.in, "in", "", "only the locks in the item collection of the partition key `PK`")
}

const sourceHelp = `The locks are read from the index that the settings of locks name ("index"). Without one, every row of the table is read:
that costs half a read unit per 4 KB of the whole table. --in reads one item collection.`

func lsCommand() command {
	return command{
		name: "ls", text: "list the locks that are held, and who waits", json: true, flags: sourceFlags,
		more: "A lock counts as held while somebody stands in its line. Whether the holder's lease has ended is what show and sessions tell.\n\n" + sourceHelp,
		run: func(ctx context.Context, c *call) error {
			return c.with(ctx, func(s *store) error {
				list, err := c.list(ctx, s)
				if err != nil {
					return err
				}
				return c.print(map[string]any{"locks": list}, func(w io.Writer) {
					if len(list) == 0 {
						tty.Say(w, "no locks%s%s\n", map[bool]string{false: " are held"}[c.all], c.read(s))
						return
					}
					g := tty.Grid{Head: []string{"LOCK", "HOLDER", "SINCE", "FENCE", "WAITING", "NOTE"}, Optional: []int{3}}
					for _, d := range list {
						g.Add(row(s, &d)...)
					}
					g.Write(w, c.columns())
				})
			})
		},
	}
}

func row(s *store, d *lockDocument) []string {
	cells := []string{d.title(), "-", s.ago(d.Since), "", "", d.Error}
	if d.Fence > 0 { // permits have none
		cells[3] = strconv.FormatInt(d.Fence, 10)
	}
	if d.Held {
		cells[1], cells[4] = d.holder(), strconv.Itoa(d.waiting())
	}
	switch prefix, other := s.otherPrefix(d); {
	case d.Error != "":
	case other:
		cells[5] = fmt.Sprintf("the lock %s with the key prefix %q", d.Beside.SK, prefix)
	case d.Forced != "":
		cells[5] = "taken by force: " + d.Forced
	}
	return cells
}

// otherPrefix reports whether the row is that of a lock with a name, under another key prefix than this program was given.
func (s *store) otherPrefix(d *lockDocument) (prefix string, other bool) {
	if d.Beside == nil {
		return "", false
	}
	key, err := s.locks.Key(lock.Name(d.Beside.SK))
	if err != nil {
		return "", false
	}
	return strings.CutSuffix(d.Beside.PK, strings.TrimPrefix(key.PK, s.table.Scheme().Prefix))
}

// with opens the table for a command that acquires nothing.
func (c *call) with(ctx context.Context, f func(s *store) error) error {
	s, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	if err = c.checkNames(s); err == nil {
		err = f(s)
	}
	return errors.Join(err, s.close(ctx))
}

// checkNames refuses arguments that cannot be a lock's name or a partition key: such a name would be shown as a free lock.
func (c *call) checkNames(s *store) error {
	var targets []lock.Target
	switch {
	case c.command.locks:
		targets = []lock.Target{c.target()}
	case c.command.names:
		for _, name := range c.operands {
			targets = append(targets, lock.Name(name))
		}
	}
	for _, target := range targets {
		if _, err := s.locks.Key(target); err != nil {
			return usagef("%w", err)
		}
	}
	if pk := c.partition(); pk != "" {
		if err := keys.NewKey(pk, "any").Validate(); err != nil {
			return usagef("%w", err)
		}
	}
	return nil
}

// partition returns the partition key that the command reads; empty if there is none.
func (c *call) partition() string {
	if c.command.pk {
		return c.operands[0]
	}
	return c.in
}

// look reads one lock. A lock without a row is free.
func (c *call) look(ctx context.Context, s *store, target lock.Target) (lockDocument, error) {
	r, err := s.locks.Inspect(ctx, target)
	switch {
	case errors.Is(err, table.ErrNotFound), errors.Is(err, lock.ErrMalformed):
		d := lockDocument{Name: target.Name()}
		if key := target.Beside(); !key.IsZero() {
			d.Beside = &keyText{key.PK, key.SK}
		}
		if errors.Is(err, lock.ErrMalformed) {
			d.Error = err.Error()
		}
		return d, nil
	case err != nil:
		return lockDocument{}, err
	}
	d := s.document(r, nil)
	holders := d.Line[:d.Holders]
	var ids []string
	for _, p := range holders {
		if p.Session != "" { // a Fixed lease has none
			ids = append(ids, p.Session)
		}
	}
	found, err := s.locks.Sessions(ctx, ids...)
	if err != nil {
		d.Unread = err.Error() // a session's row that is not in order hides no lock, and force needs no session
	}
	for i := range holders {
		p := &holders[i]
		if x := slices.IndexFunc(found, func(x lock.Session) bool { return x.ID == p.Session }); x >= 0 {
			p.Until, p.State = tty.Moment(found[x].Expires), s.state(found[x])
		} else if p.Session != "" {
			p.State = map[bool]string{true: stateGone, false: stateUnread}[err == nil]
		}
	}
	switch {
	case d.Holders == 0:
	case holders[0].Session == "":
		holders[0].Until = d.Until
	default:
		d.Until = holders[0].Until
	}
	return d, nil
}

func showCommand() command {
	return command{
		name: "show", operands: "NAME", least: 1, most: 1, locks: true, json: true,
		text: "show one lock: who holds it, since when, and who waits",
		run: func(ctx context.Context, c *call) error {
			return c.with(ctx, func(s *store) error {
				d, err := c.look(ctx, s, c.target())
				if err != nil {
					return err
				}
				return c.print(d, func(w io.Writer) { s.show(w, c.columns(), &d) })
			})
		},
	}
}

// heldFor returns how long a place has held. For places behind the first, which have no record of that, it is since they came.
func (s *store) heldFor(d *lockDocument, place int) string {
	if place == 0 {
		return s.ago(d.Since)
	}
	return s.ago(d.Line[place].Since)
}

// lease tells when the lease of a holder ends.
func (s *store) lease(p *placeText) string {
	const free = "the next one who asks gets the lock"
	switch {
	case p.State == stateGone:
		return "ended, and the row of its session was deleted: " + free
	case p.State == stateDead:
		return "ended, and others have noticed that: " + free
	case p.State == stateLive && p.Until == nil:
		return "renewed, without a time: the holder's clock is off"
	case p.Until == nil:
		return "unknown"
	}
	if over := s.now().Sub(*p.Until); over > 0 {
		return "ended " + span(over) + " ago: " + free
	}
	return "lasts until " + p.Until.Format(time.RFC3339) + " unless renewed"
}

// show writes a lock for people.
func (s *store) show(w io.Writer, width int, d *lockDocument) {
	g := tty.Grid{}
	g.Add("lock", d.title())
	switch {
	case d.Error != "":
		g.Add("", d.Error)
		g.Add("", "these settings cannot acquire it: "+ifMalformed(d.Error))
	case d.Fence == 0 && d.Permits == 0:
		g.Add("", "nobody has acquired it, or not for so long that its row was deleted")
		if key, err := s.locks.Key(d.target()); err == nil {
			g.Add("no row", fmt.Sprintf("%s %s", key.PK, key.SK))
		}
	case !d.Held:
		g.Add("held by", "nobody, for "+s.ago(d.Since))
	default:
		for i, p := range d.Line[:d.Holders] {
			g.Add("held by", fmt.Sprintf("%s, for %s", p.who(), s.heldFor(d, i)))
			g.Add("ticket", p.Ticket)
			g.Add("lease", s.lease(&p))
		}
		if d.Since != nil {
			g.Add("since", d.Since.Format(time.RFC3339))
		}
	}
	if d.Unread != "" {
		g.Add("session", "cannot be read: "+d.Unread)
	}
	if d.Permits > 0 {
		g.Add("permits", fmt.Sprintf("%d, of which %d are held", d.Permits, d.Holders))
	}
	if d.Fence > 0 {
		g.Add("fence", strconv.FormatInt(d.Fence, 10))
	}
	if d.Forced != "" {
		g.Add("forced", "taken by force from the previous holder: "+d.Forced)
	}
	for i, p := range d.Line[d.Holders:] {
		name := ""
		if i == 0 {
			name = "waiting"
		}
		g.Add(name, fmt.Sprintf("%d. %s, for %s", i+1, p.who(), s.ago(p.Since)))
	}
	g.Write(w, width)
}
