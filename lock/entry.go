package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
	"github.com/mortise-go/mortise/table"
)

// entry is one lock of an acquisition, with the ticket in that lock's line. Only the goroutine that waits uses it, except for the
// atomic fields. When the entry gets a new ticket, it keeps what it knows about the lock.
type entry struct {
	client   *Client
	target   Target
	key      keys.Key
	wake     chan struct{}   // the acquisition's
	patience backoff.BackOff // from Config.Backoff; nil if the place in the line sets the times of looks

	standing
	watch *watch                      // the look that proceed has not yet taken; nil if there is none
	row   atomic.Pointer[lockrow.Row] // the row as last seen, never changed in place; at first an empty row
	stale atomic.Bool                 // the row must be read again, consistently
	turn  time.Time                   // monotonic: when a new holder was last seen; a pass within a process, or a renewal, is none
}

// unseen is the row of every entry that has not seen its row yet.
var unseen lockrow.Row

// standing is what belongs to the entry's present ticket, or to its last one. It begins anew with each ticket.
type standing struct {
	ticket    lockrow.Ticket
	isNew     bool       // only Permits: there is no row, so the request that enters the ticket makes one
	path      string     // how the ticket came to hold: pathFree, pathWaited or pathTakenOver
	evicted   bool       // the call has removed a dead holder
	begun     bool       // the payload and the start of the run, if any, were written with the ticket
	left      bool       // withdraw has removed the ticket, or has found that trying again would not help
	malformed table.Item // the malformed row that the ticket was entered into; nil if there is none
	since     time.Time  // monotonic: just before the ticket was taken
	news      bool       // the row came from a write or a consistent read, and no look was asked for since
	tenure    tenure     // that a pass has handed over with the ticket; zero for none
}

// watch is one look at an entry's row.
type watch struct {
	*waitqueue.Watch

	seen atomic.Pointer[waitqueue.Look] // nil while the look is still due
}

// saw records the row in the answer or the refusal of this goroutine's own write, or in a consistent read.
func (e *entry) saw(row *lockrow.Row) {
	e.take(row, e.client.clk().Now())
	e.news = true
}

// older reports whether a look, which may lag behind, shows a row that may be older than the known one. Each change of the first place
// raises the fence, except an entry into an empty line; a row from before such an entry does not have the own ticket. Readers and
// permits can leave under the same fence. An older row then shows holders that have left since, which does no harm.
func (e *entry) older(row *lockrow.Row) bool {
	known := e.row.Load()
	return row.Place(e.ticket.ID) < 0 || cmp.Or(cmp.Compare(row.Fence, known.Fence), cmp.Compare(row.Renewed, known.Renewed)) < 0
}

// take records a row that was seen at the given monotonic time.
func (e *entry) take(row *lockrow.Row, at time.Time) {
	known := e.row.Load()
	if e.skipped(known, row) {
		e.client.skips.add(e.client.clk().Now())
	}
	if !row.Granted(e.ticket.ID) {
		for place := range row.Blocking() {
			e.client.sights.see(row, place, at)
		}
	}
	for place := range row.Holders() {
		by, kind := row.Line[place], row.Holding(place).Kind
		if !slices.ContainsFunc(known.Line[:known.Holders()], func(was lockrow.Ticket) bool {
			return was.ID == by.ID || kind == lockrow.Exclusive && by.Session() != "" && was.Session() == by.Session()
		}) {
			e.turn = at
		}
	}
	e.row.Store(row)
}

func (e *entry) last() *lockrow.Row {
	if row := e.row.Load(); len(row.Line) > 0 {
		return row
	}
	return nil
}

// proceed acts on the present row, and reports whether the ticket holds. The error is errAnew if the ticket has left the line. If a
// look is still due and nothing else has happened, proceed does nothing.
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
		case e.stale.Swap(false):
			now, err := e.client.read(ctx, e.key)
			switch {
			case errors.Is(err, table.ErrNotFound):
				return false, errAnew
			case err != nil:
				e.stale.Store(true)
				return false, e.patient(ctx, err)
			}
			e.saw(&now)
			continue
		case row.Place(e.ticket.ID) < 0: // by a consistent read or a write of its own: no look is taken that lacks the ticket
			return false, errAnew
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

// patient returns nil for an error of an outage, which does not end a wait.
func (e *entry) patient(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, session.ErrMalformed):
		return fmt.Errorf("%w: that of the holder's session: %w", ErrMalformed, err) // nobody can find out whether the holder is dead
	case ctx.Err() == nil && e.client.passes(err):
		return nil
	}
	return err
}

// passes reports whether err is that of an outage, which ends by itself; false for nil. The call's own context must not have ended.
func (c *Client) passes(err error) bool {
	return err != nil && (c.table.Retryable(err) || errors.Is(err, context.DeadlineExceeded)) // the timeout of a single request
}

// looked records what a look has seen, or asks for a consistent read if the look shows an older or malformed row.
func (e *entry) looked(seen *waitqueue.Look) error {
	row, err := e.client.layout.names.Parse(seen.Item)
	switch {
	case seen.Err != nil: // reading again would not help
		return seen.Err
	case err != nil, e.older(&row): // a consistent read decides: if the table was restored from a backup, the older row is right
		e.stale.Store(true)
	default:
		e.take(&row, seen.At)
	}
	return nil
}

// await asks for one more look at the row, unless the ticket holds or a look is due already. proceed acts on the look. The poller wakes
// waiters only after it has told all of them: so what a waiter finds does not depend on which goroutine runs first. left is how long the
// call may wait still.
func (e *entry) await(left time.Duration) error {
	if e.watch != nil || !e.stale.Load() && e.row.Load().Granted(e.ticket.ID) {
		return nil
	}
	d, err := e.next(left)
	if err != nil {
		return err
	}
	w := &watch{}
	w.Watch = e.client.poller.Watch(e.key, d, func(seen waitqueue.Look) func() {
		w.seen.Store(&seen)
		return e.signal
	})
	e.watch, e.news = w, false
	return nil
}

// next is how long to wait until the next look: at most until a process whose ticket is in the way may be taken for dead, or may be asked.
// It also asks for looks at the sessions of these tickets.
func (e *entry) next(left time.Duration) (d time.Duration, err error) {
	if d, err = e.pause(left); err != nil {
		return 0, err
	}
	row := e.row.Load()
	suspects := make([]suspect, row.Blocking())
	for place := range suspects {
		s := e.suspect(row, place)
		for _, then := range []time.Duration{s.wait, s.untilAsked()} {
			if then > 0 {
				d = min(d, then)
			}
		}
		suspects[place] = s
	}
	for _, s := range suspects {
		if in, wanted := s.look(d, e.news); wanted {
			e.client.sessions.look(s.session, in)
		}
	}
	return d, nil
}

// pause is how long to wait until the next look while the holder's process is alive.
func (e *entry) pause(left time.Duration) (time.Duration, error) {
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
	est.Longest = min(est.Longest, max(left/2, minLook)) // if those before it give up, its turn comes early
	if e.client.skips.before(e.client.clk().Now()) {     // those of other processes give up: its turn may have come at any time
		est.Longest = min(est.Longest, max(e.client.clk().Ago(e.since), min(est.Hold, firstLook), minLook))
	}
	return est.Look(e.client.clk()), nil
}

// skipped reports whether tickets before the own one have left the line without their turn, by two rows that show the own one: it has
// moved up by more turns than the fence has grown. Passes can hide that, and rows of permits do not tell it.
func (e *entry) skipped(was, row *lockrow.Row) bool {
	place := was.Place(e.ticket.ID)
	if place < 0 || row.Permits > 0 {
		return false
	}
	turns := was.Turns(place)
	if !row.Granted(e.ticket.ID) {
		turns -= row.Turns(row.Place(e.ticket.ID))
	}
	return int64(turns) > row.Fence-was.Fence
}

// skips are the last two moments at which a client has seen that tickets left a line without their turn.
type skips struct {
	mu               sync.Mutex
	last, beforeThat time.Time // monotonic
}

func (s *skips) add(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.After(s.last) {
		s.last, s.beforeThat = now, s.last
	}
}

// before reports whether more skips are to be expected. One that is seen at this moment does not count yet: which goroutine of the client
// runs first must not decide, since a simulation that is repeated must send the same requests.
func (s *skips) before(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last
	if !last.Before(now) {
		last = s.beforeThat
	}
	return !last.IsZero() && now.Sub(last) < afterSkip
}

const (
	// afterSkip is for how long a client expects that tickets leave a line without their turn, after it has seen that.
	afterSkip = 30 * time.Second

	// minLook is the shortest time between looks that Config.Backoff can set, and between those before a call gives up. It is also how
	// long a look at a session waits, so that several looks share a request.
	minLook = 10 * time.Millisecond

	// firstLook is the longest time until a new waiter looks at the holder's session.
	firstLook = 200 * time.Millisecond
)

func (e *entry) signal() {
	select {
	case e.wake <- struct{}{}:
	default: // a signal is pending already
	}
}

func (e *entry) stop() {
	if e.watch != nil {
		e.watch.Stop()
		e.watch = nil
	}
}

func (e *entry) answer(_ context.Context, q session.Question) bool {
	if q.Kind == session.Forced {
		e.stale.Store(true)
		e.signal()
	}
	return q.Kind == session.Claim // the ticket may have come to hold just now: other messages come again, and then the lease answers them
}
