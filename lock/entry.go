package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
	"github.com/mortise-go/mortise/table"
)

// entry is one lock of an acquisition, with the ticket that stands in its line.
type entry struct {
	client   *Client
	target   Target
	key      keys.Key
	wake     chan struct{}   // of the acquisition
	patience backoff.BackOff // that of the wanted lock

	// Of the goroutine that waits.
	ticket    lockrow.Ticket
	isNew     bool       // of permits: there is no row, and the ticket is to make one
	path      string     // how it came to be first
	begun     bool       // what the holder writes beside its ticket is written
	left      bool       // it was taken out of its line
	malformed table.Item // the row in which the ticket stands, where that is not in order
	watch     *waitqueue.Watch
	news      bool // it has seen the row by other means than by a look, which tells when the next look is due

	mu sync.Mutex // guards the following, which the poller's goroutine uses, too
	at look
}

// look is what an entry knows of its lock.
type look struct {
	row     lockrow.Row
	holders []sight   // in the order of the line
	turn    time.Time // monotonic: since when the holders' processes were seen to hold, which pass the lock on within
	stale   bool      // the row is to be read again
	fatal   error     // reading again cannot help
}

// sight is what was seen of a ticket that holds.
type sight struct {
	holding lockrow.Holding
	renewed int64     // of the row
	session string    // of the ticket
	since   time.Time // monotonic: since when it was seen to hold like that
	ask     time.Time // monotonic: its process is not asked about it before
}

// clone returns a copy, for the next entry of the call.
func (l *look) clone() look {
	c := *l
	c.holders = slices.Clone(l.holders)
	return c
}

// of is what was seen of a holder; nil for nothing.
func (l *look) of(h lockrow.Holding) *sight {
	for i := range l.holders {
		if l.holders[i].holding == h {
			return &l.holders[i]
		}
	}
	return nil
}

// saw records a row that the goroutine that waits has written, or read consistently.
func (e *entry) saw(row *lockrow.Row) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at.take(row, e.client.clk().Now())
	e.news = true
}

// older reports whether a row was read that is older than what is known: each change of the first place counts the fence up, but
// for one that begins with an empty line, and for those among readers, of which an older row tells nothing wrong. Of permits, each
// entry counts it up, and between two of them tickets only leave.
func (l *look) older(row *lockrow.Row) bool {
	was, held := l.row.First()
	is, _ := row.First()
	switch {
	case row.Fence != l.row.Fence:
		return row.Fence < l.row.Fence
	case row.Permits > 0:
		return len(row.Line) > len(l.row.Line)
	}
	return held && !was.Shared() && (is.ID != was.ID || row.Renewed < l.row.Renewed)
}

// take records a row that was seen at a monotonic time.
func (l *look) take(row *lockrow.Row, at time.Time) {
	holders := make([]sight, row.Holders())
	for i := range holders {
		s := sight{holding: row.Holding(i), renewed: row.Renewed, session: row.Line[i].Session(), since: at}
		if was := l.of(s.holding); was != nil && was.renewed == s.renewed {
			s = *was
		} else if !slices.ContainsFunc(l.holders, func(was sight) bool {
			return was.session == s.session && (s.session != "" && s.holding.Kind == lockrow.Exclusive || was.holding.ID == s.holding.ID)
		}) {
			l.turn = at
		}
		holders[i] = s
	}
	l.holders, l.row = holders, *row
}

func (e *entry) last() *lockrow.Row {
	if row := e.lastRow(); len(row.Line) > 0 {
		return &row
	}
	return nil
}

func (e *entry) lastRow() lockrow.Row {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at.row
}

// askAgain is called where the question could not be put whether a holder's process knows its ticket.
func (e *entry) askAgain(q session.Question) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.at.holders {
		if s := &e.at.holders[i]; s.holding.ID == q.Ticket && s.holding.Fence == q.Fence {
			s.ask = time.Time{}
		}
	}
}

// proceed does what the present row asks for, and reports whether the ticket holds. The error is errAnew
// where it has left the line.
func (e *entry) proceed(ctx context.Context) (first bool, err error) {
	for {
		e.mu.Lock()
		row, stale, fatal := e.at.row, e.at.stale, e.at.fatal
		e.at.stale = false
		e.mu.Unlock()
		switch {
		case fatal != nil && (stale || !row.Granted(e.ticket.ID)):
			return false, fatal
		case stale, row.Place(e.ticket.ID) < 0:
			// Absence in a look that lags behind proves nothing.
			now, err := e.client.read(ctx, e.key)
			switch {
			case errors.Is(err, table.ErrNotFound):
				return false, errAnew
			case err != nil:
				return false, e.patient(ctx, err)
			case now.Place(e.ticket.ID) < 0:
				return false, errAnew
			}
			e.saw(&now)
			continue
		case row.Granted(e.ticket.ID):
			return true, nil
		}
		if e.path == pathFree {
			e.path = pathWaited
		}
		next, err := e.act(ctx, &row)
		if err != nil || next == nil {
			return false, err
		}
		e.saw(next)
	}
}

// patient drops errors that waiting goes on through.
func (e *entry) patient(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, session.ErrMalformed):
		return fmt.Errorf("%w: that of the holder's session: %w", ErrMalformed, err) // nobody can find out whether it is dead
	case ctx.Err() == nil && e.client.passes(err):
		return nil
	}
	return err
}

// passes reports whether an error is that of an outage, which passes. The context of the call goes on. nil is none.
func (c *Client) passes(err error) bool {
	return err != nil && (c.table.Retryable(err) || errors.Is(err, context.DeadlineExceeded)) // of a single request
}

// await has the row looked at until the ticket holds.
func (e *entry) await() {
	row := e.lastRow()
	switch {
	case row.Granted(e.ticket.ID):
		e.stop()
	case e.watch == nil, e.patience == nil && e.news:
		if e.watch == nil {
			e.client.sessions.wait(1)
		} else {
			e.watch.Stop()
		}
		d, _, _ := e.next()
		e.watch = e.client.poller.Watch(e.key, d, e.seen)
		for _, holder := range row.Line[:row.Holders()] {
			e.client.sessions.look(holder.Session(), min(d, firstLook))
		}
	}
	e.news = false
}

// next is when to look again: not later than the moment at which a holder can be taken for dead, or asked. It is also the
// sessions that are to be looked at, and whether there is anything to do about a holder.
func (e *entry) next() (d time.Duration, watched []string, acts bool) {
	d = e.pause()
	e.mu.Lock()
	defer e.mu.Unlock()
	for place := range e.at.row.Holders() {
		s := e.suspect(&e.at.row, place)
		for _, then := range []time.Duration{s.wait, s.untilAsked()} {
			if then > 0 {
				d = min(d, then)
			}
		}
		if s.watched() && !slices.Contains(watched, s.session) {
			watched = append(watched, s.session)
		}
		acts = acts || s.judge() != fine
	}
	return d, watched, acts
}

// pause is how long to wait between two looks while the first ticket's process is alive. With a Config.Backoff,
// await calls it before the row is watched, and the poller from then on: the caller's code runs on one goroutine
// at a time, and under no mutex.
func (e *entry) pause() time.Duration {
	if e.patience != nil {
		d := e.patience.NextBackOff()
		if d == backoff.Stop {
			e.mu.Lock()
			e.at.fatal = errStopped
			e.mu.Unlock()
			e.signal()
		}
		return min(max(d, minLook), e.client.config.Lease/4)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	est := e.client.estimate(&e.at.row, e.at.row.Place(e.ticket.ID))
	est.Unchanged = e.client.clk().Ago(e.at.turn)
	return est.Look(e.client.clk())
}

const (
	// minLook bounds the times between looks that Config.Backoff says, and is how long looks at sessions wait for
	// each other.
	minLook = 10 * time.Millisecond

	// firstLook bounds the time until the holder's session is looked at.
	firstLook = 200 * time.Millisecond
)

// seen takes a look, on the poller's goroutine: what is watched does not depend on which of several waiters is faster.
// What is to be done is left to the goroutine that waits.
func (e *entry) seen(look waitqueue.Look) time.Duration {
	changed := e.record(look)
	next, watched, acts := e.next()
	for _, id := range watched {
		e.client.sessions.watch(id, next)
	}
	if changed || acts {
		look.Then(e.signal)
	}
	return next
}

// record records a look, and reports whether it is to be acted on.
func (e *entry) record(look waitqueue.Look) (changed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	fence, length := e.at.row.Fence, len(e.at.row.Line)
	row, err := e.client.layout.names.Parse(look.Item)
	switch {
	case look.Err != nil:
		e.at.fatal = look.Err
	case err != nil, e.at.older(&row): // a consistent read decides: the table may have been restored
		e.at.stale = true
	default:
		e.at.take(&row, look.At)
	}
	return e.at.stale || e.at.fatal != nil || e.at.row.Fence != fence || len(e.at.row.Line) != length || e.at.row.Granted(e.ticket.ID) || e.at.row.Place(e.ticket.ID) < 0
}

func (e *entry) signal() {
	select {
	case e.wake <- struct{}{}:
	default: // it was told already
	}
}

func (e *entry) stop() {
	if e.watch != nil {
		e.watch.Stop()
		e.watch = nil
		e.client.sessions.wait(-1)
	}
}

func (e *entry) answer(_ context.Context, q session.Question) bool {
	switch q.Kind {
	case session.Forced:
		e.mu.Lock()
		e.at.stale = true
		e.mu.Unlock()
		e.signal()
	case session.Revoke:
		return false // it may have come to be first just now: the lease answers
	}
	return true
}
