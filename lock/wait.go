package lock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
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
	// errAnew asks for new tickets: a present one is not in its line any more.
	errAnew = errors.New("the ticket has left the line")

	errStopped = errors.New("Config.Backoff has stopped")
)

// line enters the lines and waits in them until all tickets are first.
func (a *acquisition) line(ctx context.Context) ([]*Lease, error) {
	a.client.sessions.wait(1)
	defer a.client.sessions.wait(-1)
	for tries := 0; ; {
		err := a.enterAnyhow(ctx)
		if err == nil {
			err = a.stand(ctx)
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
		ended := a.session != nil && a.session.Cause() != nil
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
		case errors.Is(err, errAnew), errors.Is(err, ErrLost) && (a.fixed == 0 || !errors.Is(err, ErrExpired)):
			a.back = ended
		case (a.waited || a.behind) && a.client.passes(err): // an outage: waiting goes on for as long as the caller wants
			a.back, wait = true, a.client.clk().Jitter(time.Second)
		default:
			return nil, err
		}
		if p := a.entries[0].patience; wait > 0 && p != nil && p.NextBackOff() == backoff.Stop {
			return nil, cmp.Or(a.heldBy(), ErrHeld)
		}
		if wait > 0 && a.client.clk().Sleep(ctx, wait) != nil {
			return nil, a.gaveUp(ctx)
		}
	}
}

// apart is how long a waiter that comes back waits once there is a session again: a table that has just come back as well gets some
// 500 of them a second from one process. It goes by the old ticket and not by chance, since they all wake at once, in any order, and
// the same run is to send the same requests.
func (a *acquisition) apart() time.Duration {
	sum := sha256.Sum256([]byte(a.entries[0].ticket.ID))
	all := time.Duration(a.client.sessions.wait(0)) * 2 * time.Millisecond
	return time.Duration(float64(all) * float64(binary.BigEndian.Uint32(sum[:])) / math.MaxUint32)
}

// enterAnyhow enters the lines. Where the holder of a free lock writes something beside its ticket, it
// first tries to do so in one request.
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

// makeRoom does what has to be done about the first tickets of lines that are full: all who stand in one may have died. It
// reports whether a line has changed.
func (a *acquisition) makeRoom(ctx context.Context) (room bool, err error) {
	for _, e := range a.entries {
		row := e.row.Load()
		if !e.news || len(row.Line) < lockrow.Cap { // it has not refused this time
			continue
		}
		for of := range row.Holders() {
			if s := e.suspect(row, of); s.looked == never && s.since >= minLook { // it held with an earlier try, too
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

// lobby is how long to wait until the line may have room.
func (a *acquisition) lobby(tries int) time.Duration {
	row := slices.MaxFunc(a.entries, func(d, e *entry) int { return len(d.row.Load().Line) - len(e.row.Load().Line) }).row.Load()
	est := a.client.estimate(row, len(row.Line))
	est.Longest = a.client.config.Lease
	return est.Enter(a.client.clk(), tries)
}

func (a *acquisition) stand(ctx context.Context) error {
	defer func() {
		for _, e := range a.entries {
			e.stop()
		}
	}()
	var ended <-chan struct{}
	if a.session != nil {
		ended = a.session.Ended()
	}
	for waited := false; ; waited = true {
		select { // before what a look has found: a select takes either
		case <-ended:
			return errAnew // its session takes the tickets along
		case <-ctx.Done():
			return causeOf(ctx)
		default:
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
			if err := e.await(); err != nil {
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

// third goes off when something has to be renewed while some tickets are first, and the others are waited for: leases of
// their own, or else the deletion of their rows is to be put off.
func (a *acquisition) third(first int) (<-chan time.Time, func()) {
	if first == 0 {
		return nil, func() {}
	}
	every := prolongEvery
	if a.fixed > 0 {
		every = a.fixed / 3
	}
	t := a.client.clk().NewTimer(max(every-a.client.clk().Ago(a.start.Mono), 0))
	return t.C(), func() { t.Stop() }
}

// renewFirst renews the tickets that are first after a wait, where they have leases of their own. Those count
// from there, and so does MaxHold. For others it puts off the deletion of their rows, after a long wait.
func (a *acquisition) renewFirst(ctx context.Context) error {
	c := a.client
	start, long := c.clk().Instant(), len(a.entries) > 1 && c.clk().Ago(a.start.Mono) >= prolongEvery
	err := attempt.Each(a.entries, func(e *entry) (err error) { // several at once: together they may take longer than a lease
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
			err = e.patient(ctx, err) // it is tried again before the row can be deleted
		}
		if errors.Is(err, ErrLost) {
			return errAnew
		}
		return err
	})
	if err == nil {
		a.start = start
	}
	return err
}

// estimate is what a row tells about when to look at it again, for a ticket at a place, or one that comes to the end.
func (c *Client) estimate(row *lockrow.Row, place int) waitqueue.Estimate {
	began := cmp.Or(row.Since, row.HeldSince(0)) // or else nobody has released it yet
	return waitqueue.Estimate{
		Ahead: row.Turns(place), AtOnce: int(row.Permits), Hold: time.Duration(row.Hold) * time.Millisecond, Longest: min(c.config.Lease/4, 5*time.Second),
		Held: time.Duration(c.now()-began) * time.Millisecond,
	}
}
