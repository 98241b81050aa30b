package lock

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/table"
)

// action is what to do about a ticket that keeps others from holding.
type action uint8

const (
	fine  action = iota
	ghost        // the ticket is this process's, and nobody answers for it: remove it
	evict        // its Fixed lease has ended, or its session may be marked as dead: mark the session, and remove the ticket
	ask          // it has been in the way for long: ask its process whether it knows the ticket
)

// leastSeen is how long a Fixed lease must at least be seen to hold before it counts as ended, unless its recorded end is past. After a
// wait, the lease counts from when its waiter notices that it is first, and the next in line looks at least every 750 ms.
const leastSeen = time.Second

// suspect is what is known of a ticket that keeps others from holding.
type suspect struct {
	session string        // empty for a Fixed lease
	lease   time.Duration // length of its Fixed lease, or of its session's lease
	since   time.Duration // how long it was seen in the way under this fence, and since its last Renew
	silent  time.Duration // how long it was not renewed, as far as is known
	wait    time.Duration // how long until it may be taken for dead, unless it shows life
	looked  time.Duration // how long ago its session was looked at; the constant never if not within its lease
	own     bool          // the ticket is this process's
	claimed bool          // somebody in this process answers for it
	asked   bool          // its process was asked about it, and must not be asked again yet
	ahead   int           // how many tickets of other sessions wait before the own ticket; they act first
}

// turn is how long the holder must hold, or be silent, before the own ticket acts, so that the tickets ahead act first: a lease for the
// next in line, less than two for all others. With a lease more per place, n dead waiters would cause a delay of about n² leases.
func (s suspect) turn() time.Duration { return 2*s.lease - s.lease/time.Duration(s.ahead+1) }

// untilAsked is how long until the ticket's process may be asked about it. It is 0 or less if it may be asked now, or must not be asked.
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
	case s.own, s.lease == 0, s.wait <= 0 && s.ahead > 0 && s.silent < s.turn(): // claimed; zero value; or those ahead act first
	case s.wait <= 0:
		return evict
	case s.session != "" && s.since >= s.turn() && !s.asked:
		return ask
	}
	return fine
}

// never is the value of suspect.looked if the session was not looked at within its lease.
const never = time.Duration(math.MaxInt64)

// look is in how long to look at the holder's session, if at all. next is in how long the row is looked at. A waiter that begins to wait
// looks if the session was not looked at within its lease. Then only the first two waiters look, a quarter of a lease after the last
// look: the second is there in case the first has died, too. All others look once the holder has held for a lease.
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

// suspect is what the entry knows of a ticket in the way, without a request; the zero value if its own ticket holds. of is the place.
func (e *entry) suspect(row *lockrow.Row, of int) (s suspect) {
	c, holder, place := e.client, row.Line[of], row.Place(e.ticket.ID)
	if row.Granted(e.ticket.ID) {
		return s
	}
	seen := c.sights.see(row, of, c.clk().Now())
	s = suspect{
		session: holder.Session(), claimed: c.tickets.find(holder.ID) != nil,
		since: c.clk().Ago(seen.since), asked: c.clk().Now().Before(seen.asked),
	}
	if s.session == "" {
		s.own, s.lease, s.silent = s.claimed, max(time.Duration(holder.Length)*time.Millisecond, leastSeen), s.since
		s.wait = s.lease - s.since
		if until, ok := c.clk().UntilPast(row.Ends()); ok {
			s.wait = min(s.wait, until)
		}
	} else {
		look := c.others.Suspect(s.session)
		s.own, s.wait, s.silent = c.isOwn(s.session), look.Wait, look.Silent
		s.lease, s.looked = cmp.Or(look.Lease, c.config.Lease), look.Age
		if !look.Known { // it may have been renewed many times since it was last looked at
			s.looked, s.silent = never, 0
			// To mark it by its recorded end alone costs a write, for each try before a full line and for each of several holders. So
			// there a look comes first, unless the session's lease is so short that the look is out of date by the next try.
			if (look.Lease == 0 || look.Lease >= c.config.Lease) && (place < 0 || row.Holders() > 1) || !c.past(row.HeldSince(of)+s.lease.Milliseconds()) {
				s.wait = c.config.Lease / 4
			}
			if _, ok := c.others.Key(s.session); !ok && s.wait > 0 { // no look finds it: after a lease, the call ends with the error of markDead
				s.wait = s.lease - s.since
			}
		}
	}
	if place >= 0 { // otherwise the own ticket is not in the line, which is full
		s.ahead = e.ahead(row.Line[row.Holders():place], s)
	}
	return s
}

// ahead is how many of these tickets, which wait before the own one, act on a holder first: those of other sessions. If the holder may be
// taken for dead, sessions that may be dead, too, do not count. Those that are not known count, and are looked at.
func (e *entry) ahead(before []lockrow.Ticket, holder suspect) (n int) {
	for _, t := range before {
		id := t.Session()
		if id != "" && id == holder.session {
			continue
		}
		if id == "" || holder.wait > 0 || holder.own {
			n++
			continue
		}
		look := e.client.others.Suspect(id)
		if !look.Known {
			e.client.sessions.look(id, minLook) // after minLook, so that all of them share a request
		}
		if !look.Known || look.Wait > 0 {
			n++
		}
	}
	return n
}

// act does what is necessary about each ticket in the way, until the row has changed. It returns the changed row; nil if there is no change.
func (e *entry) act(ctx context.Context, row *lockrow.Row) (after *lockrow.Row, err error) {
	for place := 0; place < row.Blocking() && after == nil && err == nil; place++ {
		after, err = e.actOn(ctx, row, place)
	}
	return after, err
}

func (e *entry) actOn(ctx context.Context, row *lockrow.Row, place int) (*lockrow.Row, error) {
	c, s, places := e.client, e.suspect(row, place), []int{place}
	switch s.judge() {
	case fine:
		return nil, nil
	case ask:
		e.ask(row, place, s)
		return nil, nil
	case evict:
		if s.session == "" {
			break
		}
		if isDead, err := c.markDead(ctx, s.session); err != nil || !isDead {
			return nil, e.patient(ctx, err)
		}
		places = row.Of(s.session)
	}
	after, err := e.evict(ctx, row, places)
	return after, e.patient(ctx, err)
}

// ask asks the process of a ticket, in the background, whether it knows the ticket.
func (e *entry) ask(row *lockrow.Row, place int, s suspect) {
	c, h := e.client, row.Holding(place)
	c.sights.asked(row, place, c.clk().Now().Add(s.since))
	c.sessions.ask(s.session, session.Question{Kind: session.Claim, Ticket: h.ID, Fence: h.Fence, Key: e.key})
}

// evict removes tickets of a dead holder, or a ghost. It returns the row after that, or the row that somebody else has changed before.
func (e *entry) evict(ctx context.Context, row *lockrow.Row, places []int) (*lockrow.Row, error) {
	c := e.client
	after, refused, err := c.rowOf(c.table.Apply(ctx, c.layout.rows.Evict(e.key, row, places, c.change(row)), table.ReturnNew))
	if err != nil {
		return nil, err
	}
	if !refused && places[0] < row.Holders() {
		if e.evicted = true; after.Granted(e.ticket.ID) {
			e.path = pathTakenOver
		}
	}
	return &after, nil
}

// rowOf is the row in the answer to a write, or in its refusal. Without a row it is the zero Row.
func (c *Client) rowOf(item table.Item, err error) (row lockrow.Row, refused bool, _ error) {
	var failed *table.ConditionError
	if refused = errors.As(err, &failed); refused {
		item, err = failed.Item, nil
	}
	if err != nil || item == nil {
		return row, refused, err
	}
	row, err = c.layout.names.Parse(item)
	return row, refused, err
}

// replaceDead takes locks whose holders died long ago, if nobody who may be alive waits behind them. err is the result of the try, and is
// returned unless it is a refusal by such holders. A try watches no holder, so recorded times must tell that a holder is dead, or earlier
// tries have seen its session without a renewal. If a row changes before the write, the new row is judged: the lock may be free by then.
func (a *acquisition) replaceDead(ctx context.Context, err error) error {
	for errors.Is(err, ErrHeld) {
		if free, failed := a.removeDead(ctx); failed != nil || !free {
			return cmp.Or(failed, err)
		}
		err = a.send(ctx, true, a.replacing)
	}
	return err
}

// askHolders asks about tickets that this client has seen in the way for a lease or longer: nobody may use them.
func (a *acquisition) askHolders() {
	for _, e := range a.entries {
		row := e.row.Load()
		for place := range row.Blocking() {
			if s := e.suspect(row, place); s.judge() == ask {
				e.ask(row, place, s)
			}
		}
	}
}

// removeDead removes the tickets of holders that died long ago, except for one that a new ticket can replace. free reports whether
// nobody else is in the way.
func (a *acquisition) removeDead(ctx context.Context) (free bool, err error) {
	for _, e := range a.entries {
		for row := e.row.Load(); len(row.Line) > a.beside(row); row = e.row.Load() { // each new row is judged again: others may have come
			dead := a.longDead(ctx, row)
			if dead == nil {
				return false, nil
			}
			if len(row.Line) == 1 { // replacing puts the new ticket into the place of the dead one
				break
			}
			after, err := e.evict(ctx, row, dead)
			if err != nil {
				return false, err
			}
			if e.saw(after); after.Permits > 0 {
				break
			}
		}
	}
	return true, nil
}

// replacing returns the operation that enters a line where nobody is in the way, or that replaces its one ticket, that of a dead holder.
func (a *acquisition) replacing(e *entry) table.Op {
	c, row := a.client, e.row.Load()
	if row.Permits > 0 || len(row.Line) == a.beside(row) {
		if e.path = pathFree; e.evicted {
			e.path = pathTakenOver
		}
		return c.layout.rows.Enter(e.key, a.entry(e, row.Permits > 0 || len(row.Line) == 0))
	}
	e.path = pathTakenOver
	change := c.change(row)
	change.TTL = max(change.TTL, c.ttl(a.keep()))
	shard, listed := c.layout.index.listed(e.key, e.ticket)
	return c.layout.rows.Replace(e.key, row, e.ticket, change, a.data, shard, listed)
}

// beside returns how many tickets at the beginning of the line are not in the way of a try. For a reader that finds room, these are
// the readers that hold, dead or not. If a writer enters before the reader does, allFirst refuses the reader.
func (a *acquisition) beside(row *lockrow.Row) int {
	if first, ok := row.First(); ok && a.shared && first.Shared() && len(row.Line) < lockrow.Cap {
		return row.Holders()
	}
	return 0
}

// longDead is the places of tickets whose processes died long ago; nil if another ticket is in the way. It marks their sessions as dead.
func (a *acquisition) longDead(ctx context.Context, row *lockrow.Row) (places []int) {
	from := a.beside(row)
	a.client.lookAt(ctx, row, from)
	for place := from; place < len(row.Line); place++ {
		switch {
		case ctx.Err() != nil:
			return nil
		case place > 0 && row.Line[place].Length > 0: // no time tells, since a Fixed lease begins when its ticket comes to hold
			return nil
		case a.isLongDead(ctx, row, place):
			places = append(places, place)
		case row.Permits == 0 || len(row.Line) > row.Holders(): // here all must be dead; otherwise one dead permit is enough
			return nil
		}
	}
	return places
}

// lookAt reads the sessions of the holders from a place on that may be dead, if there are several. Otherwise each of them that lives
// would cost a write. It reads also one that may live if recorded times do not tell: a later try finds out whether it was renewed.
//
// Cost: half a read unit each, in one request.
func (c *Client) lookAt(ctx context.Context, row *lockrow.Row, from int) {
	_, recorded := c.clk().Past()
	var ids []string
	var list []keys.Key
	for place := from; place < row.Holders(); place++ {
		id := row.Line[place].Session()
		key, ok := c.others.Key(id)
		if !ok || c.isOwn(id) || slices.Contains(ids, id) || recorded && (c.others.Suspect(id).Known || !c.heldLong(row, place)) {
			continue
		}
		ids, list = append(ids, id), append(list, key)
	}
	if len(ids) == 0 || len(ids) == 1 && recorded {
		return
	}
	items, err := c.table.BatchGet(ctx, list, false)
	for i := range items {
		if err == nil {
			c.others.Saw(ids[i], items[i], c.clk().Now())
		}
	}
}

// heldLong reports whether a ticket has held or waited for so long that its lease may have ended, as far as the row tells.
func (c *Client) heldLong(row *lockrow.Row, place int) bool {
	return c.past(row.HeldSince(place) + c.config.Lease.Milliseconds())
}

// markDead marks a session as dead, unless it lives. It returns when ctx ends. The request goes on, since others may share it.
func (c *Client) markDead(ctx context.Context, id string) (dead bool, err error) {
	var isDead bool
	var failed error
	c.work.Add(1)
	err = clock.Wait(ctx, func() {
		defer c.work.Done()
		isDead, failed = c.others.MarkDead(ctx, id)
	})
	if err != nil {
		return false, err
	}
	return isDead, failed
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
	look := c.others.Suspect(id)
	if _, recorded := c.clk().Past(); look.Known && look.Wait > 0 || recorded && !c.heldLong(row, place) {
		return false
	}
	dead, err := c.markDead(ctx, id)
	return err == nil && dead
}
