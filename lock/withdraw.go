package lock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// drop forgets the tickets, which are in no line any more. A ticket that a late request enters after that is a ghost.
func (a *acquisition) drop() {
	if a.taken {
		for _, e := range a.entries {
			a.client.tickets.drop(e.ticket.ID)
		}
	}
	if a.session != nil {
		a.session.Unuse()
	}
	a.taken, a.session = false, nil
}

// leaving is how long a call waits until its tickets have left their lines. Then it returns, and the removal goes on.
const leaving = 100 * time.Millisecond

// leave removes the tickets from their lines, if they may be there or may still come. If DynamoDB does not answer at once, the removal
// goes on in the background, and the session stays in use until it is done. If ctx has ended and another goroutine of this process can
// take over the ticket, it does that instead.
func (a *acquisition) leave(ctx context.Context) {
	if !a.inDoubt || !a.taken {
		a.drop()
		return
	}
	c := a.client
	gone := &acquisition{client: c, request: a.request, place: a.place, session: a.session, start: a.start, taken: true}
	for _, e := range a.entries { // copies, since the entries may get new tickets meanwhile
		left := &entry{client: c, key: e.key, standing: e.standing, turn: e.turn}
		left.row.Store(e.row.Load())
		gone.entries = append(gone.entries, left)
	}
	a.taken, a.session = false, nil
	if ctx.Err() != nil && gone.bequeath() {
		a.place = nil
		return
	}
	gone.withdrawSoon(ctx, c.work.Go)
}

// bequeath hands the place of this process over to the next goroutine that waits for the lock, together with the ticket.
// Without that, the process would stand at the end of the line after each call that gives up. One whose calls often do would hardly come
// to hold the lock, even if there is always another call. A Fixed ticket only fits a lease of the same length.
func (a *acquisition) bequeath() bool {
	e := a.entries[0]
	if a.place == nil || e.row.Load().Place(e.ticket.ID) < 0 {
		return false
	}
	e.begun = false     // what was written with the ticket is not the next call's
	e.stale.Store(true) // one that enters learns from the answer whether it is first; the next call reads the row
	for to := a.place.First(); to != nil && to.Request.fixed == a.fixed; to = a.place.First() {
		if a.place.Hand(to, a) {
			return true
		}
		// It has given up meanwhile, too.
	}
	return false
}

// inherit takes over a ticket: that of a pass, or of a call of this process that has given up.
func (a *acquisition) inherit(left *acquisition) {
	e, was := a.entries[0], left.entries[0]
	a.session, a.start, a.taken, a.inDoubt = left.session, left.start, true, true
	e.standing, e.turn = was.standing, was.turn
	e.row.Store(was.row.Load())
	a.client.tickets.set(e.ticket.ID, e)
	e.stale.Store(was.stale.Load())
}

// withdrawSoon removes the tickets in a goroutine, which start starts. It waits for that, but no longer than the time leaving.
func (a *acquisition) withdrawSoon(ctx context.Context, start func(func())) {
	done := make(chan struct{})
	start(func() {
		defer close(done)
		defer a.drop()
		a.withdraw(ctx)
	})
	t := a.client.clk().NewTimer(leaving)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C():
	}
}

// withdraw removes the tickets from their lines, and repeats that until it is done or Close begins, but not longer than their session lasts.
// Those with Fixed leases are tried once more after Close has begun: such a ticket would stay until its lease has ended. Each round
// tries each ticket once, so that a row that fails does not delay the others.
func (a *acquisition) withdraw(ctx context.Context) {
	c, s, list := a.client, a.session, slices.Clone(a.entries)
	remove := func(ctx context.Context) (done bool) {
		_ = attempt.Each(list, func(e *entry) error {
			ctx, cancel := c.clk().Detached(ctx) // each ticket has a timeout of its own
			defer cancel()
			var row *lockrow.Row
			if r := e.row.Load(); r.Place(e.ticket.ID) >= 0 {
				row = r
			}
			e.left = !again(c.remove(ctx, e.key, e.ticket.ID, row, e.malformed))
			return nil
		})
		list = slices.DeleteFunc(list, func(e *entry) bool { return e.left })
		return len(list) == 0 || s != nil && s.Cause() != nil
	}
	if !c.repeat(ctx, c.config.Lease/8, remove) && s == nil {
		remove(ctx)
	}
}

// again reports whether trying again may help after err. It is false for nil, and for errors that would come again. Expired credentials
// pass, and a policy that does not repeat requests is no reason to leave a ticket behind.
func again(err error) bool {
	for _, lasting := range []error{table.ErrDenied, table.ErrNoTable, table.ErrSchema, table.ErrInvalid} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	return err != nil
}
