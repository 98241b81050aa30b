package lock

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/table"
)

// action is what is to be done about a ticket that holds.
type action uint8

const (
	fine   action = iota
	ghost         // it is this process's, and nobody answers for it: remove it
	evict         // its session is marked dead, or its own lease has ended: remove it
	silent        // its session may be marked dead: do so, then remove it
	ask           // it has been first for long: ask whether its process knows it
)

// leastSeen is how long a lease of its own has to be seen to be first before it can be taken for ended: one that has come to be
// first counts from when its waiter notices, which looks at least every 750 ms.
const leastSeen = time.Second

// suspect is what is known of a ticket that holds.
type suspect struct {
	session string        // empty for a lease of its own
	lease   time.Duration // its own, or its session's
	since   time.Duration // for how long it was seen to hold, under this fence
	silent  time.Duration // for how long it was not renewed, as far as is known
	dead    bool          // its session is marked dead
	wait    time.Duration // until it may be taken for dead, unless it shows life
	looked  time.Duration // how long ago its session was looked at; never within its lease
	own     bool          // it is of this process
	claimed bool          // somebody in this process answers for it
	asked   bool          // its process was asked about it lately
	ahead   int           // tickets that wait before the own one, which act first
}

// turn is for how long a ticket holds before this one acts, after those ahead: the next one after a lease, all others before
// two are over, or the dead would delay those behind them by a time that grows with the square of their number.
func (s suspect) turn() time.Duration { return 2*s.lease - s.lease/time.Duration(s.ahead+1) }

// untilAsked is how long it takes until the ticket's process may be asked about it; 0 or less where it may be, or is not to be.
func (s suspect) untilAsked() time.Duration {
	if s.session == "" || s.own || s.asked {
		return 0
	}
	return s.turn() - s.since
}

func (s suspect) judge() action {
	switch {
	case s.own && !s.claimed:
		return ghost
	case s.own, s.lease == 0, s.wait <= 0 && s.ahead > 0 && s.silent < s.turn():
	case s.dead, s.session == "" && s.wait <= 0:
		return evict
	case s.wait <= 0:
		return silent
	case s.session != "" && s.since >= s.turn() && !s.asked:
		return ask
	}
	return fine
}

// never is for what was not looked at.
const never = time.Duration(math.MaxInt64)

// look is in how long the session is to be looked at, if at all, where the row is in next. All who begin to wait look at one of which
// nothing is known. Then the first two of those who wait behind it do, once a quarter of a lease has gone by since it was looked
// at: the second one takes over where the first has died as well. The others do once it would have been taken for dead.
func (s suspect) look(next time.Duration, begins bool) (in time.Duration, wanted bool) {
	switch {
	case s.session == "" || s.own:
	case begins:
		return min(next, firstLook), s.looked == never
	case s.ahead <= 1 && (s.looked > s.since || s.since >= s.lease/4), s.since >= s.lease:
		return max(next, s.lease/4-s.looked), true
	}
	return 0, false
}

// suspect is what is known of the holder at a place, without a request, by a ticket that waits.
func (e *entry) suspect(row *lockrow.Row, of int) (s suspect) {
	c, holder, place := e.client, row.Line[of], row.Place(e.ticket.ID)
	if row.Granted(e.ticket.ID) {
		return s
	}
	s = suspect{session: holder.Session(), claimed: c.tickets.find(holder.ID) != nil}
	if seen := e.of(row.Holding(of)); seen != nil {
		s.since = c.clk().Ago(seen.since)
		s.asked = seen.asked != nil && !seen.asked.failed.Load() && c.clk().Now().Before(seen.asked.until)
	}
	if s.session == "" {
		s.own, s.lease, s.silent = s.claimed, max(time.Duration(holder.Length)*time.Millisecond, leastSeen), s.since
		s.wait = s.lease - s.since
		if until, ok := c.clk().UntilPast(row.Ends()); ok {
			s.wait = min(s.wait, until)
		}
	} else {
		look := c.others.Suspect(s.session)
		s.own, s.dead, s.wait, s.silent = c.isOwn(s.session), look.Dead, look.Wait, look.Silent
		s.lease, s.looked = cmp.Or(look.Lease, c.config.Lease), look.Age
		if !look.Known { // it may have been renewed often
			s.looked, s.silent = never, 0
			// It is marked by its record alone where that costs one write: for each try before a full line, or for each of many
			// holders, it is looked at before; unless its lease is so short that each look is out of date by the next try.
			if (look.Lease == 0 || look.Lease >= c.config.Lease) && (place < 0 || row.Holders() > 1) || !c.past(row.HeldSince(of)+s.lease.Milliseconds()) {
				s.wait = c.config.Lease / 4
			}
		}
	}
	if place < 0 { // the line is full
		return s
	}
	if s.ahead = row.ForeignBefore(place, s.session); s.ahead > 0 && s.wait <= 0 && !s.own {
		s.ahead = e.livingBefore(row, place, s.session)
	}
	return s
}

// livingBefore is how many tickets that wait before a place are neither of a dead session, nor of one that may be, nor of that of
// the holder. Sessions that nothing is known of are looked at.
func (e *entry) livingBefore(row *lockrow.Row, place int, holder string) (n int) {
	for _, t := range row.Line[row.Holders():place] {
		id := t.Session()
		if id != "" && id == holder {
			continue
		}
		look := e.client.others.Suspect(id)
		if id != "" && !look.Known && !e.client.isOwn(id) {
			e.client.sessions.look(id, minLook) // all of them by one request
		}
		if id == "" || !look.Known || look.Wait > 0 {
			n++
		}
	}
	return n
}

// act does what has to be done about those who hold. It returns the row where that has changed it.
func (e *entry) act(ctx context.Context, row *lockrow.Row) (after *lockrow.Row, err error) {
	for place := 0; place < row.Holders() && after == nil && err == nil; place++ {
		after, err = e.actOn(ctx, row, place)
	}
	return after, err
}

func (e *entry) actOn(ctx context.Context, row *lockrow.Row, place int) (*lockrow.Row, error) {
	c, h := e.client, row.Holding(place)
	s := e.suspect(row, place)
	what := s.judge()
	places := []int{place}
	switch what {
	case fine:
		return nil, nil
	case ask:
		asked := &asking{until: c.clk().Now().Add(s.since)}
		if seen := e.of(h); seen != nil {
			seen.asked = asked
		}
		c.sessions.ask(s.session, question{session.Question{Kind: session.Claim, Ticket: h.ID, Fence: h.Fence, Key: e.key}, asked})
		return nil, nil
	case silent:
		if isDead, err := c.markDead(ctx, s.session); err != nil || !isDead {
			return nil, e.patient(ctx, err)
		}
	}
	if what != ghost && s.session != "" {
		places = row.Of(s.session)
	}
	return e.evict(ctx, row, places)
}

// evict removes tickets of a dead holder. It returns the row after that, or as somebody else has changed it.
func (e *entry) evict(ctx context.Context, row *lockrow.Row, places []int) (*lockrow.Row, error) {
	c := e.client
	item, err := c.table.Apply(ctx, c.layout.rows.Evict(e.key, row, places, c.change(row)), table.ReturnNew)
	after, refused, err := c.rowOf(item, err)
	if err != nil {
		return nil, e.patient(ctx, err)
	}
	if !refused && after.Granted(e.ticket.ID) {
		e.path = pathTakenOver
	}
	return &after, nil
}

// rowOf is the row that answered a write, or refused it.
func (c *Client) rowOf(item table.Item, err error) (row lockrow.Row, refused bool, _ error) {
	var failed *table.ConditionError
	if refused = errors.As(err, &failed); refused {
		if failed.Item == nil {
			return row, true, nil
		}
		item, err = failed.Item, nil
	}
	if err != nil {
		return row, refused, err
	}
	row, err = c.layout.names.Parse(item)
	return row, refused, err
}

// replaceDead takes locks from holders that died long ago, behind whom nobody waits. held is the refusal,
// which it returns where anybody else is in the way.
func (a *acquisition) replaceDead(ctx context.Context, held error) error {
	c := a.client
	for _, e := range a.entries {
		for row := *e.row.Load(); len(row.Line) > 0; { // each row is judged anew: others may have come
			dead := a.longDead(ctx, &row)
			if dead == nil || len(row.Line) > row.Holders() && len(dead) < len(row.Line) { // somebody waits
				return held
			}
			if len(row.Line) == 1 && row.Permits == 0 { // to be replaced
				break
			}
			item, err := c.table.Apply(ctx, c.layout.rows.Evict(e.key, &row, dead, c.change(&row)), table.ReturnNew)
			if row, _, err = c.rowOf(item, err); err != nil {
				return err
			}
			seen := row
			if e.saw(&seen); row.Permits > 0 {
				break
			}
		}
	}
	return a.send(ctx, true, func(e *entry) table.Op {
		row := e.row.Load()
		if len(row.Line) == 0 || row.Permits > 0 {
			return c.layout.rows.Enter(e.key, a.entry(e, true))
		}
		e.path = pathTakenOver
		change := c.change(row)
		change.TTL = max(change.TTL, c.ttl(a.keep()))
		return c.layout.rows.Replace(e.key, row, e.ticket, change, a.data)
	})
}

// longDead is the places of holders that are dead, and that nobody has watched. It marks their sessions so.
func (a *acquisition) longDead(ctx context.Context, row *lockrow.Row) (places []int) {
	a.client.lookAt(ctx, row)
	for place := range row.Line {
		switch {
		case ctx.Err() != nil:
			return nil
		case place > 0 && row.Line[place].Length > 0: // its lease begins when it comes to hold
			return nil
		case a.isLongDead(ctx, row, place):
			places = append(places, place)
		case row.Permits == 0 || len(row.Line) > row.Holders(): // of readers, and where anybody waits, all have to be
			return nil
		}
	}
	return places
}

// lookAt reads the sessions of holders that may be dead, if they are several: those that live cost no write each, then.
//
// Cost: half a read unit each, in one request.
func (c *Client) lookAt(ctx context.Context, row *lockrow.Row) {
	var ids []string
	var list []keys.Key
	for place, t := range row.Line[:row.Holders()] {
		id := t.Session()
		key, ok := c.others.Key(id)
		if !ok || c.isOwn(id) || slices.Contains(ids, id) || c.others.Suspect(id).Known || !c.heldLong(row, place) {
			continue
		}
		ids, list = append(ids, id), append(list, key)
	}
	if len(ids) < 2 {
		return
	}
	items, err := c.table.BatchGet(ctx, list, false)
	for i := range items {
		if err == nil {
			c.others.Saw(ids[i], items[i], c.clk().Now())
		}
	}
}

// heldLong reports whether a holder came so long ago that its lease may have ended, as far as the row tells.
func (c *Client) heldLong(row *lockrow.Row, place int) bool {
	return c.past(row.HeldSince(place) + c.config.Lease.Milliseconds())
}

// markDead marks a session dead, unless it lives. It ends with ctx. The request does not, since others may share it.
func (c *Client) markDead(ctx context.Context, id string) (dead bool, err error) {
	if ctx.Err() != nil {
		return false, causeOf(ctx)
	}
	done := make(chan struct{})
	var isDead bool
	var failed error
	c.work.Go(func() {
		defer close(done)
		isDead, failed = c.others.MarkDead(ctx, id)
	})
	select {
	case <-done:
		return isDead, failed
	case <-ctx.Done():
		return false, causeOf(ctx)
	}
}

func (a *acquisition) isLongDead(ctx context.Context, row *lockrow.Row, place int) bool {
	c, holder := a.client, row.Line[place]
	if holder.Length > 0 {
		return c.tickets.find(holder.ID) == nil && c.past(row.Ends())
	}
	id := holder.Session()
	if c.isOwn(id) {
		return c.tickets.find(holder.ID) == nil // a ghost of this process
	}
	if look := c.others.Suspect(id); look.Known && look.Wait > 0 || !c.heldLong(row, place) {
		return false
	}
	dead, err := c.markDead(ctx, id)
	return err == nil && dead
}
