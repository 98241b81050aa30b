package lock

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
)

var (
	// errAnew means that a ticket is not in its line any more: the call needs new tickets.
	errAnew = errors.New("the ticket has left the line")

	errStopped = errors.New("Config.Backoff has stopped")
)

// line enters the lines and waits in them until all tickets hold.
func (a *acquisition) line(ctx context.Context) ([]*Lease, error) {
	for tries := 0; ; {
		var err error
		inherited := a.taken // from a call of this process that gave up, or by a pass
		if !inherited {
			err = a.enterAnyhow(ctx)
		}
		if err == nil {
			err = a.stand(ctx, a.entries[0].stale.Load()) // the ticket of a call that gave up has been in the line for a while
		}
		if err == nil {
			var list []*Lease
			if list, err = a.granted(ctx); err == nil {
				return list, nil
			}
		}
		full, room := errors.Is(err, errFull), false
		if full {
			room, err = a.makeRoom(ctx)
			full = err == nil
		}
		a.leave(ctx)
		var wait time.Duration
		switch {
		case ctx.Err() != nil:
			return nil, a.gaveUp(ctx)
		case full:
			if a.waited = true; !room {
				wait = a.lobby(tries)
			}
			tries++
		case errors.Is(err, errStopped):
			return nil, cmp.Or(a.heldBy(), ErrHeld)
		case errors.Is(err, errAnew), errors.Is(err, ErrLost) && (a.fixed == 0 || inherited || !errors.Is(err, ErrExpired)):
			a.back = true
		case (a.waited || a.behind) && a.client.passes(err): // an outage does not end a wait that has begun
			a.back, wait = true, a.client.clk().Jitter(time.Second)
		default:
			return nil, err
		}
		if p := a.entries[0].patience; wait > 0 && p != nil && p.NextBackOff() == backoff.Stop {
			return nil, cmp.Or(a.heldBy(), err) // err is that of an outage; nil before a full line, which was seen
		}
		if wait > 0 && a.client.clk().Sleep(ctx, wait) != nil {
			return nil, a.gaveUp(ctx)
		}
	}
}

// enterAnyhow enters the lines. If the call writes more than its tickets (a payload, or the start of a run), it first tries whether
// the locks are free: then one request writes everything.
func (a *acquisition) enterAnyhow(ctx context.Context) error {
	if a.writes() && !a.waited && !a.run.waits() {
		err := a.enter(ctx, true)
		if !errors.Is(err, ErrHeld) {
			return err
		}
		a.leave(ctx)
		a.waited = true
	}
	return a.enter(ctx, false)
}

// makeRoom acts on the tickets in the way of lines that are full, since all processes with a ticket in such a line may have died. It reports
// whether a line has changed.
func (a *acquisition) makeRoom(ctx context.Context) (room bool, err error) {
	for _, e := range a.entries {
		row := e.row.Load()
		if !e.news || len(row.Line) < lockrow.Cap { // this line has not refused the last try
			continue
		}
		for of := range row.Blocking() {
			if s := e.suspect(row, of); s.looked == never && s.since >= minLook { // an earlier try has found it there, too
				a.client.sessions.look(s.session, minLook)
			}
		}
		after, err := e.act(ctx, row)
		if err != nil {
			return false, err
		}
		room = room || after != nil
	}
	return room, nil
}

// lobby is how long to wait until a full line may have room, after the given number of tries in vain.
func (a *acquisition) lobby(tries int) time.Duration {
	row := slices.MaxFunc(a.entries, func(d, e *entry) int { return len(d.row.Load().Line) - len(e.row.Load().Line) }).row.Load()
	est := a.client.estimate(row, len(row.Line))
	est.Longest = a.client.config.Lease
	return est.Enter(a.client.clk(), tries)
}

// stand waits until all tickets hold. waited means that they have been in their lines for a while.
func (a *acquisition) stand(ctx context.Context, waited bool) error {
	defer func() {
		for _, e := range a.entries {
			e.stop()
		}
	}()
	var ended <-chan struct{}
	if a.session != nil {
		ended = a.session.Ended()
	}
	for ; ; waited = true {
		// By the clock, and not by the channel: which goroutine of this process notices the end first must not decide whether this one acts
		// on a look.
		if a.session != nil && a.session.Cause() != nil {
			return errAnew // the tickets have ended with their session
		}
		if ctx.Err() != nil {
			return causeOf(ctx)
		}
		first := 0
		for _, e := range a.entries {
			is, err := e.proceed(ctx)
			switch {
			case err != nil:
				return err
			case is:
				first++
			case a.run.recorded(e.row.Load()):
				return errSettled
			}
		}
		if first == len(a.entries) {
			if !waited {
				return nil
			}
			return a.renewFirst(ctx)
		}
		a.waited = true
		for _, e := range a.entries {
			if err := e.await(a.left(ctx)); err != nil {
				return err
			}
		}
		again, stop := a.third(first)
		select {
		case <-a.wake:
		case <-again:
			if err := a.renewFirst(ctx); err != nil {
				stop()
				return err
			}
		case <-ended:
		case <-ctx.Done():
		}
		stop()
	}
}

// left is how long the call may wait still, as far as that is known: until its deadline, or until it has waited for as long as the last call
// of this client that gave up. A call can be cancelled without a deadline: a web server does that when its own client gives up. A call of
// Every waits until the run before it should have ended.
func (a *acquisition) left(ctx context.Context) time.Duration {
	left := time.Duration(math.MaxInt64)
	if end, ok := ctx.Deadline(); ok {
		left = time.Until(end)
	}
	if vain := time.Duration(a.client.vain.Load()) - a.client.clk().Ago(a.began); vain > 0 {
		left = min(left, vain)
	}
	if a.run != nil {
		if est := a.client.estimate(a.entries[0].row.Load(), 1); est.Hold > 0 {
			left = min(left, max(est.Hold-est.Held, max(est.Hold, est.Held)/5)) // all others leave the line when the run is recorded, too
		}
	}
	return left
}

// third is the timer for renewFirst while some tickets are first and the call still waits for the others. It goes off after a third of
// a Fixed lease; under a session after prolongEvery, when the deletion of the rows must be put off.
func (a *acquisition) third(first int) (<-chan time.Time, func()) {
	if first == 0 {
		return nil, func() {}
	}
	every := prolongEvery
	if a.fixed > 0 {
		every = a.fixed / 3
	}
	t := a.client.clk().NewTimer(max(every-a.client.clk().Instant().Since(a.start), 0))
	return t.C(), func() { t.Stop() }
}

// renewFirst is called after a wait. It renews the Fixed leases of tickets that are first: these leases, and MaxHold, count from then
// on. For a call under a session that has waited for several locks for prolongEvery, it puts off the deletion of their rows instead.
func (a *acquisition) renewFirst(ctx context.Context) error {
	c := a.client
	start := c.clk().Instant()
	long := len(a.entries) > 1 && start.Since(a.start) >= prolongEvery
	err := attempt.Each(a.entries, func(e *entry) (err error) { // in parallel: one after the other, they could take longer than a lease
		row := *e.row.Load()
		if !row.Granted(e.ticket.ID) {
			return nil
		}
		h := row.Holding(row.Place(e.ticket.ID))
		switch {
		case a.fixed > 0:
			_, err = c.renewOwn(ctx, e.key, h, row, &a.request, nil)
		case long:
			_, err = c.prolong(ctx, e.key, h, a.keep())
			err = e.patient(ctx, err) // in an outage it is tried again, before the row can be deleted
		}
		return err
	})
	if err == nil {
		a.start = start
	}
	return err
}

// estimate is what a row tells about when to look at it again. place is that of the own ticket; before it has entered, the line's length.
func (c *Client) estimate(row *lockrow.Row, place int) waitqueue.Estimate {
	began := cmp.Or(row.Since, row.HeldSince(0)) // Since is 0 until the first place has changed for the first time
	return waitqueue.Estimate{
		Ahead: row.Turns(place), AtOnce: int(row.Permits), Hold: time.Duration(row.Hold) * time.Millisecond, Longest: min(c.config.Lease/4, 5*time.Second),
		Held: time.Duration(c.now()-began) * time.Millisecond,
	}
}
