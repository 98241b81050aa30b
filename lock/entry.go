package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
	"github.com/mortise-go/mortise/table"
)

// entry is one lock of an acquisition, with the ticket that stands in its line. It belongs to the goroutine that waits, but for
// what is atomic. What is known of the lock is kept when the ticket is taken anew.
type entry struct {
	client   *Client
	target   Target
	key      keys.Key
	wake     chan struct{}   // of the acquisition
	patience backoff.BackOff // Config.Backoff; nil where looks are timed by the place

	standing
	watch   *watch                      // nil where it does not wait, or its look was taken
	row     atomic.Pointer[lockrow.Row] // as it was seen last, and not changed; an empty one before
	stale   atomic.Bool                 // the row is to be read again
	holders []sight                     // of the row, in the order of the line
	turn    time.Time                   // monotonic: since when the holders' processes were seen to hold, which pass the lock on within
}

// unseen is the row of an entry that has seen none.
var unseen lockrow.Row

// standing is the present ticket of an entry, or the last one.
type standing struct {
	ticket    lockrow.Ticket
	isNew     bool       // of permits: there is no row, and the ticket is to make one
	path      string     // how it came to be first
	begun     bool       // what the holder writes beside its ticket is written
	left      bool       // it was taken out of its line
	malformed table.Item // the row in which the ticket stands, where that is not in order
	news      bool       // it has seen the row by other means than by a look
}

// watch has one look at an entry's row.
type watch struct {
	*waitqueue.Watch

	seen atomic.Pointer[waitqueue.Look] // nil where it is still due
}

// sight is what was seen of a ticket that holds.
type sight struct {
	holding lockrow.Holding
	renewed int64     // of the row
	session string    // of the ticket
	since   time.Time // monotonic: since when it was seen to hold like that
	asked   *asking   // its process about it, last; nil for never
}

// asking is one time that a process was asked about a ticket.
type asking struct {
	until  time.Time   // monotonic: it is not asked again before
	failed atomic.Bool // the question could not be put
}

// of is what was seen of a holder; nil for nothing.
func (e *entry) of(h lockrow.Holding) *sight {
	for i := range e.holders {
		if e.holders[i].holding == h {
			return &e.holders[i]
		}
	}
	return nil
}

// saw records a row that the goroutine that waits has written, or read consistently.
func (e *entry) saw(row *lockrow.Row) {
	e.take(row, e.client.clk().Now())
	e.news = true
}

// older reports whether a look shows a row that may be older than what is known. A change of the first place counts the fence up,
// unless the line was empty: a row of before does not have the own ticket. Of readers and permits, an older row shows more of them,
// which tells nothing wrong.
func (e *entry) older(row *lockrow.Row) bool {
	known := e.row.Load()
	return row.Place(e.ticket.ID) < 0 || cmp.Or(cmp.Compare(row.Fence, known.Fence), cmp.Compare(row.Renewed, known.Renewed)) < 0
}

// take records a row that was seen at a monotonic time.
func (e *entry) take(row *lockrow.Row, at time.Time) {
	holders := make([]sight, row.Holders())
	for i := range holders {
		s := sight{holding: row.Holding(i), renewed: row.Renewed, session: row.Line[i].Session(), since: at}
		if was := e.of(s.holding); was != nil && was.renewed == s.renewed {
			s = *was
		} else if !slices.ContainsFunc(e.holders, func(was sight) bool {
			return was.session == s.session && (s.session != "" && s.holding.Kind == lockrow.Exclusive || was.holding.ID == s.holding.ID)
		}) {
			e.turn = at
		}
		holders[i] = s
	}
	e.holders = holders
	e.row.Store(row)
}

func (e *entry) last() *lockrow.Row {
	if row := e.row.Load(); len(row.Line) > 0 {
		return row
	}
	return nil
}

// proceed does what the present row asks for, and reports whether the ticket holds. The error is errAnew
// where it has left the line. Where a look is due, and nothing else has happened, it is left at that.
func (e *entry) proceed(ctx context.Context) (first bool, err error) {
	if e.watch != nil {
		seen := e.watch.seen.Load()
		if seen == nil && !e.stale.Load() {
			return false, nil
		}
		if e.stop(); seen != nil {
			if err := e.looked(seen); err != nil {
				return false, err
			}
		}
	}
	for {
		row := e.row.Load()
		switch {
		case e.stale.Swap(false), row.Place(e.ticket.ID) < 0:
			// Absence in a look that lags behind proves nothing.
			now, err := e.client.read(ctx, e.key)
			switch {
			case errors.Is(err, table.ErrNotFound):
				return false, errAnew
			case err != nil:
				e.stale.Store(true)
				return false, e.patient(ctx, err)
			}
			if e.saw(&now); now.Place(e.ticket.ID) < 0 {
				return false, errAnew
			}
			continue
		case row.Granted(e.ticket.ID):
			return true, nil
		}
		if e.path == pathFree {
			e.path = pathWaited
		}
		next, err := e.act(ctx, row)
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

// looked takes a look.
func (e *entry) looked(seen *waitqueue.Look) error {
	row, err := e.client.layout.names.Parse(seen.Item)
	switch {
	case seen.Err != nil: // reading again cannot help
		return seen.Err
	case err != nil, e.older(&row): // a consistent read decides: the table may have been restored
		e.stale.Store(true)
	default:
		e.take(&row, seen.At)
	}
	return nil
}

// await has the row looked at once more, unless the ticket holds. What is done about the look is left to proceed. The waiters are
// woken when all of them have been told: so what one finds does not depend on which of them is faster.
func (e *entry) await() error {
	if e.watch != nil || !e.stale.Load() && e.row.Load().Granted(e.ticket.ID) {
		return nil
	}
	d, err := e.next()
	if err != nil {
		return err
	}
	w := &watch{}
	w.Watch = e.client.poller.Watch(e.key, d, func(seen waitqueue.Look) time.Duration {
		w.seen.Store(&seen)
		seen.Then(e.signal)
		return -1
	})
	e.watch, e.news = w, false
	return nil
}

// next is when to look again: not later than the moment at which a holder can be taken for dead, or asked. It also has the
// holders' sessions looked at.
func (e *entry) next() (d time.Duration, err error) {
	if d, err = e.pause(); err != nil {
		return 0, err
	}
	row := e.row.Load()
	holders := make([]suspect, row.Holders())
	for place := range holders {
		s := e.suspect(row, place)
		for _, then := range []time.Duration{s.wait, s.untilAsked()} {
			if then > 0 {
				d = min(d, then)
			}
		}
		holders[place] = s
	}
	for _, s := range holders {
		if in, wanted := s.look(d, e.news); wanted {
			e.client.sessions.look(s.session, in)
		}
	}
	return d, nil
}

// pause is how long to wait between two looks while the first ticket's process is alive.
func (e *entry) pause() (time.Duration, error) {
	if e.patience != nil {
		d := e.patience.NextBackOff()
		if d == backoff.Stop {
			return 0, errStopped
		}
		return min(max(d, minLook), e.client.config.Lease/4), nil
	}
	row := e.row.Load()
	est := e.client.estimate(row, row.Place(e.ticket.ID))
	est.Unchanged = e.client.clk().Ago(e.turn)
	return est.Look(e.client.clk()), nil
}

const (
	// minLook bounds the times between looks that Config.Backoff says, and is how long looks at sessions wait for
	// each other.
	minLook = 10 * time.Millisecond

	// firstLook bounds the time until the holder's session is looked at.
	firstLook = 200 * time.Millisecond
)

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
	}
}

func (e *entry) answer(_ context.Context, q session.Question) bool {
	switch q.Kind {
	case session.Forced:
		e.stale.Store(true)
		e.signal()
	case session.Revoke:
		return false // it may have come to be first just now: the lease answers
	}
	return true
}
