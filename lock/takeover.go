package lock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
	"github.com/mortise-go/mortise/table"
)

// suspicion is what is to be done about the first ticket.
type suspicion uint8

const (
	fine   suspicion = iota
	ghost            // it is this process's, and nobody answers for it: remove it
	dead             // its session is marked dead: evict it
	silent           // its session may be marked dead
	over             // its own lease has ended: evict it
	claim            // it has been first for long: ask whether its process knows it
)

// suspect judges the first ticket by what is known, without a request. It is called with mu held.
func (e *entry) suspect(row *lockrow.Row) suspicion {
	c := e.client
	first, held := row.First()
	place := row.Place(e.ticket.ID)
	if !held || place <= 0 {
		return fine
	}
	since := c.clk().Ago(e.at.first)
	if first.Length > 0 {
		length := time.Duration(first.Length) * time.Millisecond
		ended := since >= length || c.past(row.Ends())
		if !ended || c.tickets.find(first.ID) != nil {
			return fine
		}
		if ahead := e.livingBefore(row, place, ""); ahead == 0 || since >= time.Duration(ahead+1)*length {
			return over
		}
		return fine
	}
	id := first.Session()
	if c.isOwn(id) {
		if c.tickets.find(first.ID) == nil {
			return ghost
		}
		return fine
	}
	look, lease, ahead := e.behindSession(row, place, id)
	turn := time.Duration(ahead+1) * lease // a lease for each of those before
	switch {
	case look.Known && look.Wait == 0 && ahead > 0 && look.Silent < turn:
	case look.Dead:
		return dead
	case look.Known && look.Wait == 0:
		return silent
	case !look.Known && ahead == 0 && c.past(row.HeldSince()+lease.Milliseconds()):
		return silent // first for longer than a lease: its record tells
	case since >= turn && c.watched.mayAsk(id, first.ID):
		return claim
	}
	return fine
}

// behindSession is how the session of the first ticket looks, its lease, and how many tickets of others stand
// between that ticket and a place. Those act first, unless they are dead, too.
func (e *entry) behindSession(row *lockrow.Row, place int, id string) (look session.Suspicion, lease time.Duration, ahead int) {
	look = e.client.others.Suspect(id)
	if lease = look.Lease; lease == 0 {
		lease = e.client.config.Lease
	}
	if ahead = row.ForeignBefore(place, id); ahead > 0 && look.Known && look.Wait == 0 {
		ahead = e.livingBefore(row, place, id)
	}
	return look, lease, ahead
}

// watchFirst has the session of the first ticket watched: by the first of those who wait behind it, and by the
// others once it would have been taken for dead. It is called with mu held, by the poller's goroutine alone, so that
// what is watched does not depend on which of several waiters is faster.
func (e *entry) watchFirst() {
	row, c := &e.at.row, e.client
	first, held := row.First()
	id, place := first.Session(), row.Place(e.ticket.ID)
	if !held || place <= 0 || id == "" || c.isOwn(id) {
		c.watched.stand(e, "", 0)
		return
	}
	_, lease, ahead := e.behindSession(row, place, id)
	since := c.clk().Ago(e.at.first)
	if ahead == 0 || since >= lease {
		c.watched.stand(e, id, max(lease/4-since, minLook))
	} else {
		c.watched.stand(e, "", 0)
	}
}

// ripe is how long it takes until the first ticket can be taken for dead, by what is known: a quarter of a lease where
// nothing is, and 0 where it can be. It is called with mu held.
func (e *entry) ripe(row *lockrow.Row) time.Duration {
	c := e.client
	first, _ := row.First()
	if first.Length == 0 {
		if look := c.others.Suspect(first.Session()); look.Known {
			return look.Wait
		}
		return c.config.Lease / 4
	}
	ripe := time.Duration(first.Length)*time.Millisecond - c.clk().Ago(e.at.first)
	if until, ok := c.clk().UntilPast(row.Ends()); ok {
		ripe = min(ripe, until)
	}
	return ripe
}

// livingBefore is how many tickets behind the first one, and before a place, are neither of a dead session, nor
// of one that may be. Sessions that nothing is known of are looked at.
func (e *entry) livingBefore(row *lockrow.Row, place int, first string) (n int) {
	for _, t := range row.Line[1:place] {
		id := t.Session()
		if id != "" && id == first {
			continue
		}
		look := e.client.others.Suspect(id)
		if id != "" && !look.Known && !e.client.isOwn(id) {
			e.client.watched.lookOnce(id, minLook) // all of them by one request
		}
		if id == "" || !look.Known || look.Wait > 0 {
			n++
		}
	}
	return n
}

// judge does what has to be done about the first ticket. It returns the row where that has changed it.
func (e *entry) judge(ctx context.Context, row *lockrow.Row) (*lockrow.Row, error) {
	c := e.client
	e.mu.Lock()
	what, since := e.suspect(row), c.clk().Ago(e.at.first)
	e.mu.Unlock()
	first, _ := row.First()
	switch what {
	case ghost:
		return e.evict(ctx, row, nil)
	case dead, over:
		return e.evict(ctx, row, row.Others(first.Session()))
	case silent:
		isDead, err := c.others.MarkDead(ctx, first.Session())
		if err == nil && isDead {
			return e.evict(ctx, row, row.Others(first.Session()))
		}
		return nil, e.patient(ctx, err)
	case claim:
		err := c.watched.ask(ctx, first.Session(), session.Question{Kind: session.Claim, Ticket: first.ID, Fence: row.Fence, Key: e.key}, since)
		if errors.Is(err, session.ErrBusy) || errors.Is(err, session.ErrNobody) {
			err = nil // later; or its row tells soon
		}
		return nil, e.patient(ctx, err)
	}
	return nil, nil
}

// evict removes the first ticket, and others of its session. It returns the row after that, or as
// somebody else has changed it.
func (e *entry) evict(ctx context.Context, row *lockrow.Row, others []lockrow.Position) (*lockrow.Row, error) {
	c := e.client
	change := c.change(row)
	change.Last = false // the own ticket stays
	item, err := c.table.Apply(ctx, c.layout.rows.Evict(e.key, row, others, change), table.ReturnNew)
	after, refused, err := c.rowOf(item, err)
	if err != nil {
		return nil, e.patient(ctx, err)
	}
	if !refused && after.Entered(e.ticket.ID) == lockrow.Granted {
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
		row := e.lastRow()
		if len(row.Line) > 1 || len(row.Line) == 1 && !a.longDead(ctx, &row) {
			return held
		}
	}
	if !a.queued() {
		ops := make([]table.Op, len(a.entries))
		for i, e := range a.entries {
			if row := e.lastRow(); len(row.Line) == 1 {
				ops[i], e.path = a.replace(e, &row), pathTakenOver
			} else {
				ops[i] = c.layout.rows.Enter(e.key, a.entry(e, true))
			}
		}
		return a.enterBy(ctx, ops, true)
	}
	e := a.entries[0]
	row := e.lastRow()
	a.inDoubt = true
	item, err := c.table.Apply(ctx, a.replace(e, &row), table.ReturnNew)
	row, _, err = c.rowOf(item, err)
	if err != nil {
		return err
	}
	e.saw(&row)
	if row.Entered(e.ticket.ID) != lockrow.Granted {
		return heldBy(c.heldError(e.target, &row))
	}
	e.path, e.begun = pathTakenOver, a.run == nil
	return nil
}

// replace puts an entry's ticket into the place of a dead holder behind whom nobody waits.
func (a *acquisition) replace(e *entry, row *lockrow.Row) table.Op {
	change := a.client.change(row)
	change.TTL = max(change.TTL, a.client.ttl(a.keep()))
	return a.client.layout.rows.Replace(e.key, row, e.ticket, change, a.data)
}

// longDead reports whether a holder that nobody has watched is dead, and marks its session so.
func (a *acquisition) longDead(ctx context.Context, row *lockrow.Row) bool {
	c := a.client
	first, _ := row.First()
	if first.Length > 0 {
		return c.tickets.find(first.ID) == nil && c.past(row.Ends())
	}
	id := first.Session()
	if c.isOwn(id) {
		return c.tickets.find(first.ID) == nil // a ghost of this process
	}
	if c.others.Suspect(id).Alive || !c.past(row.HeldSince()+c.config.Lease.Milliseconds()) {
		return false
	}
	dead, err := c.others.MarkDead(ctx, id)
	return err == nil && dead
}

// watched are the sessions of first tickets that somebody in this process waits behind: one watch for
// all who do.
type watched struct {
	client *Client

	mu   sync.Mutex // guards the following; never held across I/O
	list map[string]*watchedSession
}

type watchedSession struct {
	watch   *waitqueue.Watch
	waiters int
	asked   map[string]time.Time // tickets that were asked about, and when to ask again
	asking  bool                 // a request with questions is under way
	ready   []session.Question   // for the next one
}

func newWatched(c *Client) *watched { return &watched{client: c, list: map[string]*watchedSession{}} }

// saw records a look at a session's row. It returns the lease of the session.
func (w *watched) saw(id string, look waitqueue.Look) time.Duration {
	if look.Err == nil {
		w.client.others.Saw(id, look.Item, look.At)
	}
	if lease := w.client.others.Suspect(id).Lease; lease > 0 {
		return lease
	}
	return w.client.config.Lease
}

// lookOnce has a session looked at, unless it was seen lately.
func (w *watched) lookOnce(id string, in time.Duration) {
	if id == "" || w.client.others.Suspect(id).Alive {
		return
	}
	w.client.poller.Watch(w.client.others.Key(id), in, func(look waitqueue.Look) time.Duration {
		w.saw(id, look)
		return -1
	})
}

// stand has a session watched for an entry that waits behind its ticket, and no other for it; an empty
// ID ends that.
func (w *watched) stand(e *entry, id string, in time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.behind == id || e.left {
		return
	}
	w.drop(e)
	e.behind = id
	if id == "" {
		return
	}
	if v := w.list[id]; v != nil {
		v.waiters++
		return
	}
	w.list[id] = &watchedSession{waiters: 1, asked: map[string]time.Time{}, watch: w.client.poller.Watch(w.client.others.Key(id), in,
		func(look waitqueue.Look) time.Duration { return w.client.clk().Jitter(w.saw(id, look) / 4) })}
}

// leave ends what stand has begun, for good: a look that comes late begins nothing.
func (w *watched) leave(e *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(e)
	e.left = true
}

func (w *watched) drop(e *entry) {
	if v := w.list[e.behind]; v != nil {
		if v.waiters--; v.waiters == 0 {
			v.watch.Stop()
			delete(w.list, e.behind)
		}
	}
	e.behind = ""
}

// mayAsk reports whether it is time to ask a session about a ticket.
func (w *watched) mayAsk(id, ticket string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.list[id]
	return v != nil && !w.client.clk().Now().Before(v.asked[ticket])
}

// askTogether is how long a question waits for others that are put to the same session.
const askTogether = 100 * time.Millisecond

// ask puts a question to a session about a ticket that has been first for a time. It is not asked about that
// ticket again before that time has doubled: a ghost is gone after the first question, and a holder may hold for
// days. Questions that come within a short time, or while a request is under way, share a request.
//
// Cost: one conditional write, or none.
func (w *watched) ask(ctx context.Context, id string, q session.Question, since time.Duration) error {
	w.mu.Lock()
	v := w.list[id]
	if v == nil {
		w.mu.Unlock()
		return nil
	}
	v.asked[q.Ticket] = w.client.clk().Now().Add(since)
	v.ready = append(v.ready, q)
	for !v.asking && len(v.ready) > 0 {
		v.asking = true
		w.mu.Unlock()
		_ = w.client.clk().Sleep(ctx, askTogether)
		w.mu.Lock()
		list := v.ready[:min(len(v.ready), session.MaxAsked)]
		v.ready = v.ready[len(list):]
		w.mu.Unlock()
		err := w.client.others.Ask(ctx, id, list...)
		w.mu.Lock()
		if v.asking = false; err != nil {
			for _, q := range append(list, v.ready...) {
				delete(v.asked, q.Ticket)
			}
			v.ready = nil
			w.mu.Unlock()
			return err
		}
	}
	w.mu.Unlock()
	return nil
}
