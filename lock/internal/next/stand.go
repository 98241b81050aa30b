package next

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

// errAnew asks for a new ticket: the present one is not in the line any more.
var errAnew = errors.New("the ticket has left the line")

// standing is an acquisition whose ticket waits in the line.
type standing struct {
	*acquisition
	id      string           // of its ticket: the acquisition has another one, or none, when a look comes late
	session *session.Session // of the ticket; nil for a lease of its own

	news   chan lockrow.Row // of capacity 1: the line has changed, or something is to be done about the first
	behind string           // the session that is watched for it; guarded by watched.mu

	mu    sync.Mutex // guards the following, which the poller's goroutine uses, too
	row   lockrow.Row
	first time.Time // monotonic: since when the first ticket was seen to be first under this fence
	busy  bool      // the goroutine that waits is at work, and looks again afterwards
	fatal error     // reading again cannot help
}

// stand waits until the ticket is first. row is where it was seen to have entered. Where it gives up it
// leaves the line.
func (a *acquisition) stand(ctx context.Context, row lockrow.Row) (*Lease, error) {
	c := a.client
	if row.Entered(a.ticket.ID) == lockrow.Granted {
		return a.granted(&row), nil
	}
	s := &standing{
		acquisition: a, id: a.ticket.ID, session: a.session, news: make(chan lockrow.Row, 1), row: row, first: c.clock.Now(), busy: true,
	}
	l, err := s.wait(ctx, row)
	c.sessions.leave(s)
	if err != nil && !errors.Is(err, errAnew) {
		a.leave(ctx)
		if ctx.Err() != nil {
			err = a.gaveUp(ctx)
		}
	}
	return l, err
}

// wait looks at the row, and acts on what it shows, until the ticket is first.
func (s *standing) wait(ctx context.Context, row lockrow.Row) (*Lease, error) {
	c := s.client
	var ended <-chan struct{}
	if s.session != nil {
		ended = s.session.Ended()
	}
	var watch *waitqueue.Watch
	for {
		if l, err := s.act(ctx, &row); l != nil || err != nil {
			return l, err
		}
		first := s.idle()
		if watch == nil {
			watch = c.poller.Watch(s.key, first, s.seen)
			defer watch.Stop()
			holder, _ := row.First()
			c.sessions.look(holder.Session(), first)
		} else {
			watch.Soon(first)
		}
		select {
		case row = <-s.news:
		case <-ended:
			return nil, errAnew // its session takes the ticket along
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err := s.failed(); err != nil {
			return nil, err
		}
	}
}

// idle says that the goroutine waits for news, and returns when to look again.
func (s *standing) idle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	e := s.client.estimate(&s.row, s.row.Place(s.id))
	e.Unchanged = s.client.clock.Ago(s.first)
	return e.Look(s.client.clock)
}

// failed is why reading again cannot help; nil where it can.
func (s *standing) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fatal
}

// seen takes a look in, on the poller's goroutine. What is to be done is left to the goroutine that waits.
func (s *standing) seen(look waitqueue.Look) time.Duration {
	c := s.client
	s.mu.Lock()
	defer s.mu.Unlock()
	row, err := c.rows.Names().Parse(look.Item)
	changed := err != nil || row.Fence != s.row.Fence || len(row.Line) != len(s.row.Line)
	switch {
	case look.Err != nil:
		s.fatal = look.Err
	case err == nil:
		s.take(&row, look.At)
	}
	if !s.busy && (look.Err != nil || changed || s.due(&row)) {
		s.busy = true
		select {
		case s.news <- s.row:
		default: // it is not read while busy is set, and there is room for one
		}
	}
	e := c.estimate(&s.row, max(s.row.Place(s.id), 1))
	e.Unchanged = c.clock.Ago(s.first)
	return e.Look(c.clock)
}

// act does what the present row asks for: it returns a lease where the ticket is first, errAnew where it
// has left the line, and neither where there is nothing but to wait.
func (s *standing) act(ctx context.Context, row *lockrow.Row) (*Lease, error) {
	c := s.client
	for {
		s.acquisition.seen = *row
		switch row.Entered(s.id) {
		case lockrow.Granted:
			return s.granted(row), nil
		case lockrow.Refused:
			// Absence in a look that lags behind proves nothing.
			now, err := c.read(ctx, s.key)
			if err != nil && !errors.Is(err, lockrow.ErrNotLock) {
				return nil, err
			}
			if now.Place(s.id) < 0 {
				return nil, errAnew
			}
			s.update(&now)
			*row = now
			continue
		}
		next, err := s.judge(ctx, row)
		if err != nil || next == nil {
			return nil, err
		}
		s.update(next)
		*row = *next
	}
}

// update takes in a row that was read or written by the waiting goroutine itself.
func (s *standing) update(row *lockrow.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(row, s.client.clock.Now())
}

// take takes in a row that was seen at a monotonic time. It is called with mu held.
func (s *standing) take(row *lockrow.Row, at time.Time) {
	was, _ := s.row.First()
	if is, _ := row.First(); is != was || row.Fence != s.row.Fence {
		s.first = at
	}
	s.row = *row
}

// suspicion is what is to be done about the first ticket.
type suspicion uint8

const (
	fine   suspicion = iota
	ghost            // it is this process's, and nobody answers for it
	dead             // its session is marked dead: evict it
	silent           // its session may be marked dead
	over             // its own lease has ended: evict it
	claim            // it has been first for long: ask whether its process knows it
)

// due reports whether the first ticket gives something to do. It is called with mu held.
func (s *standing) due(row *lockrow.Row) bool { return s.suspect(row) != fine }

// suspect judges the first ticket by what is known, without a request. It is called with mu held.
func (s *standing) suspect(row *lockrow.Row) suspicion {
	c := s.client
	first, held := row.First()
	if !held || first.ID == s.id {
		return fine
	}
	place := row.Place(s.id)
	if first.Length > 0 {
		if _, known := c.tickets.find(first.ID); known {
			return fine
		}
		length := time.Duration(first.Length) * time.Millisecond
		turn := time.Duration(row.ForeignBefore(place, "")-1) * length
		if c.clock.Ago(s.first) >= length+turn || turn == 0 && c.past(first.Ends(row.Since)) {
			return over
		}
		return fine
	}
	id := first.Session()
	if s.session != nil && id == s.session.ID() {
		if _, known := c.tickets.find(first.ID); !known {
			return ghost
		}
		return fine
	}
	look := c.others.Suspect(id)
	lease := look.Lease
	if lease == 0 {
		lease = c.config.Lease
	}
	// Those before act first, unless they are dead, too.
	ahead := row.ForeignBefore(place, id)
	if ahead > 0 && look.Known && look.Wait == 0 {
		ahead = s.livingBefore(row, place, id)
	}
	if ahead == 0 {
		c.sessions.stand(s, id, max(lease/4-c.clock.Ago(s.first), 0))
	} else {
		c.sessions.stand(s, "", 0)
	}
	since := c.clock.Ago(s.first)
	myTurn := ahead == 0 || since >= time.Duration(ahead+1)*lease
	switch {
	case !myTurn:
		return fine
	case look.Dead:
		return dead
	case look.Known && look.Wait == 0:
		return silent
	case !look.Known && c.past(row.HeldSince()+lease.Milliseconds()):
		return silent // first for longer than a lease: its record tells
	case since >= lease && c.sessions.mayAsk(id, first.ID):
		return claim
	}
	return fine
}

// livingBefore is how many tickets before a place are not of a dead session, nor of one that may be. What
// is not known of them is looked at.
func (s *standing) livingBefore(row *lockrow.Row, place int, first string) (n int) {
	c := s.client
	for _, t := range row.Line[:place] {
		id := t.Session()
		if id == first {
			continue
		}
		look := c.others.Suspect(id)
		if id != "" && !look.Known && (s.session == nil || id != s.session.ID()) {
			c.sessions.look(id, 0)
		}
		if id == "" || !look.Known || look.Wait > 0 {
			n++
		}
	}
	return n
}

// past reports whether a recorded end lies back far enough.
func (c *Client) past(end int64) bool {
	now, ok := c.clock.Earliest()
	return ok && !c.config.ObservedOnly && now.Add(-c.config.Skew).UnixMilli() > end
}

// judge does what has to be done about the first ticket. It returns the row where that has changed it.
func (s *standing) judge(ctx context.Context, row *lockrow.Row) (*lockrow.Row, error) {
	c := s.client
	s.mu.Lock()
	what := s.suspect(row)
	s.mu.Unlock()
	first, _ := row.First()
	switch what {
	case ghost:
		return s.evict(ctx, row, nil)
	case dead, over:
		return s.evict(ctx, row, row.Others(first.Session()))
	case silent:
		isDead, err := c.others.MarkDead(ctx, first.Session())
		if err == nil && isDead {
			return s.evict(ctx, row, row.Others(first.Session()))
		}
		return nil, s.patient(ctx, err)
	case claim:
		err := c.others.Ask(ctx, first.Session(), session.Question{Kind: session.Claim, Ticket: first.ID, Key: s.key})
		if errors.Is(err, session.ErrBusy) || errors.Is(err, session.ErrNobody) {
			err = nil // later; or its row tells soon
		}
		c.sessions.asked(first.Session(), first.ID, c.config.Lease)
		return nil, s.patient(ctx, err)
	}
	return nil, nil
}

// patient drops errors that waiting goes on through.
func (s *standing) patient(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil && (s.client.table.Retryable(err) || errors.Is(err, session.ErrMalformed)) {
		return nil
	}
	return err
}

// evict removes the first ticket, and others of its session, and returns the row after that, or as
// somebody else has changed it.
func (s *standing) evict(ctx context.Context, row *lockrow.Row, others []lockrow.Position) (*lockrow.Row, error) {
	c := s.client
	first, _ := row.First()
	op := c.rows.Evict(s.key, lockrow.Holding{ID: first.ID, Fence: row.Fence}, others, lockrow.Change{Since: c.now(), TTL: c.ttl()})
	item, err := c.table.Apply(ctx, op, table.ReturnNew)
	var failed *table.ConditionError
	if errors.As(err, &failed) {
		item, err = failed.Item, nil
	}
	if err != nil {
		return nil, s.patient(ctx, err)
	}
	after, err := c.rows.Names().Parse(item)
	if err != nil {
		return nil, err
	}
	return &after, nil
}

// replaceDead takes the lock from a dead holder behind whom nobody waits. held is the refusal.
func (a *acquisition) replaceDead(ctx context.Context, held error) (lockrow.Row, error) {
	c, row := a.client, a.seen
	first, is := row.First()
	id := first.Session()
	switch {
	case !is || len(row.Line) > 1:
		return row, held
	case first.Length > 0:
		if _, known := c.tickets.find(first.ID); known || !c.past(first.Ends(row.Since)) {
			return row, held
		}
	default:
		if a.session != nil && id == a.session.ID() {
			if _, known := c.tickets.find(first.ID); known {
				return row, held
			}
			break // a ghost of this process
		}
		if c.others.SeenAlive(id) || !c.past(row.HeldSince()+c.config.Lease.Milliseconds()) {
			return row, held
		}
		if dead, err := c.others.MarkDead(ctx, id); err != nil || !dead {
			return row, held
		}
	}
	a.inDoubt = true
	op := c.rows.Replace(a.key, lockrow.Holding{ID: first.ID, Fence: row.Fence}, a.ticket, lockrow.Change{Since: c.now(), TTL: c.ttl()}, lockrow.Data{})
	item, err := c.table.Apply(ctx, op, table.ReturnNew)
	var failed *table.ConditionError
	if errors.As(err, &failed) {
		item, err = failed.Item, nil
	}
	if err != nil {
		return row, err
	}
	if row, err = c.rows.Names().Parse(item); err == nil && row.Entered(a.ticket.ID) != lockrow.Granted {
		err = heldError(&row)
	}
	return row, err
}
