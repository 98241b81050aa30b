package next

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lease"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
	"github.com/mortise-go/mortise/table"
)

type waitqueueClaim = waitqueue.Claim[*acquisition, *Lease]

// refusal is the row that a condition has met; false for other errors, and for none.
func (c *Client) refusal(err error) (lockrow.Row, bool) {
	var failed *table.ConditionError
	if !errors.As(err, &failed) {
		return lockrow.Row{}, false
	}
	row, _ := c.rows.Names().Parse(failed.Item) // of a row that is not in order nothing is concluded
	return row, true
}

// Release gives the lock up: to the next one in this process, or in the line. It may be called again
// after an error.
//
// Cost: one conditional write.
func (l *Lease) Release(ctx context.Context) error {
	ctx, cancel := l.client.clock.Detach(ctx)
	defer cancel()
	return l.release(ctx)
}

func (l *Lease) release(ctx context.Context) error {
	if err := l.takeTurn(ctx); err != nil {
		return err
	}
	defer l.endTurn()
	switch l.is() {
	case lease.Released:
		return nil
	case lease.Lost:
		return ErrStolen
	}
	l.on(lease.Release, nil)
	err := l.releaseInTurn(ctx)
	if err != nil && !l.is().Over() {
		l.client.mu.Lock()
		if l.session != nil && l.session.Cause() == nil {
			l.client.undone[l] = struct{}{}
		}
		l.client.mu.Unlock()
	}
	return err
}

// change is what a change of the first place writes.
func (l *Lease) change() lockrow.Change {
	c := l.client
	hold := waitqueue.Smooth(time.Duration(l.row.Hold)*time.Millisecond, c.clock.Ago(l.since))
	return lockrow.Change{Since: c.now(), Hold: max(hold.Milliseconds(), 1), TTL: c.ttl()}
}

// othersWait reports whether anybody else stood in the line when it was seen last.
func (l *Lease) othersWait() bool { return len(l.row.Line) > 1 }

// next claims the goroutine of this process that the lock is to be passed to; nil for none.
func (l *Lease) next() *target {
	c := l.client
	if l.place == nil || l.session != nil && l.session.Cause() != nil || !l.place.Handoffs.May(c.config.Handoffs, l.othersWait()) {
		return nil
	}
	claim := l.place.Claim()
	if claim == nil {
		return nil
	}
	a := *claim.Request()
	ctx, cancel := context.WithCancel(c.closing)
	cancel() // a session is there, or the lock is not passed
	if err := a.take(ctx); err != nil {
		claim.Cancel()
		return nil
	}
	return &target{ticket: a.ticket, session: a.session, claim: claim}
}

// settle ends a pass: by handing the lease over, or by taking the target back.
func (t *target) cancel(c *Client) {
	t.claim.Cancel()
	c.tickets.drop(t.ticket.ID)
	if t.session != nil {
		t.session.Unuse()
	}
}

// releaseInTurn passes or releases, and finds out what became of that.
func (l *Lease) releaseInTurn(ctx context.Context) error {
	c := l.client
	var to *target
	if len(l.targets) == 0 && !l.inDoubt {
		to = l.next()
	}
	var h attempt.History
	var start clock.Instant
	err := c.repeater.Do(ctx, attempt.Timeout(l.length()), &h, func(ctx context.Context, at clock.Instant) error {
		start = at
		op := c.rows.Release(l.key, l.holding(), l.change())
		if to != nil {
			op = c.rows.Pass(l.key, l.holding(), to.ticket, l.change(), lockrow.Data{})
		}
		item, err := c.table.Apply(ctx, op, table.ReturnNew)
		if err == nil {
			l.row, _ = c.rows.Names().Parse(item)
		}
		return err
	})
	row, refused := c.refusal(err)
	switch {
	case err == nil && to == nil:
		l.on(lease.GivenUp, nil)
		l.dropTargets()
		return nil
	case err == nil:
		return l.passed(to, start)
	case !refused && h.InDoubt:
		l.inDoubt = l.inDoubt || to == nil
		if to != nil {
			l.targets = append(l.targets, *to)
		}
		return err
	case !refused:
		if to != nil {
			to.cancel(c)
		}
		return err
	}
	if to != nil {
		l.targets = append(l.targets, *to)
	}
	return l.refused(ctx, &row, l.inDoubt || h.InDoubt)
}

// passed hands the lease over to the waiter that it was passed to.
func (l *Lease) passed(to *target, start clock.Instant) error {
	heir := l.heir(to, start)
	l.place = nil // it goes on with the heir
	l.on(lease.GivenUp, nil)
	if !to.claim.Hand(heir) {
		heir.giveBack() // its waiter has left meanwhile
	}
	return nil
}

// heir is the lease of a waiter that the lock was passed to.
func (l *Lease) heir(to *target, start clock.Instant) *Lease {
	a := &acquisition{client: l.client, key: l.key, session: to.session, ticket: to.ticket, start: start, fixed: time.Duration(to.ticket.Length) * time.Millisecond}
	heir := newLease(a, l.fence+1, start, &l.row)
	heir.place, heir.since = l.place, l.since
	if heir.place != nil {
		heir.place.Handoffs.Passed(l.othersWait())
	}
	return heir
}

// refused finds out what the row means that has refused a release or a pass.
func (l *Lease) refused(ctx context.Context, row *lockrow.Row, inDoubt bool) error {
	c := l.client
	ids := make([]string, len(l.targets))
	for i := range l.targets {
		ids[i] = l.targets[i].ticket.ID
	}
	switch row.Released(l.holding(), inDoubt, ids...) {
	case lockrow.Held:
		return table.ErrConflict
	case lockrow.Passed:
		for i := range l.targets {
			to := l.targets[i]
			if row.Took(l.holding(), to.ticket.ID) {
				l.targets = append(l.targets[:i], l.targets[i+1:]...)
				l.dropTargets()
				l.row = *row
				return l.passed(&to, c.clock.Instant())
			}
		}
	case lockrow.Perhaps:
		alive, err := l.confirm(ctx)
		if err != nil {
			l.inDoubt = true
			return err
		}
		if alive {
			l.on(lease.GivenUp, nil)
			l.dropTargets()
			return nil
		}
	}
	l.on(lease.Taken, ErrStolen)
	l.dropTargets()
	return ErrStolen
}

// confirm reports whether the lease went on until now, so that nobody can have taken the lock from it.
func (l *Lease) confirm(ctx context.Context) (bool, error) {
	if l.own != nil {
		return l.own.Cause() == nil, nil
	}
	return l.session.Confirm(ctx)
}

// dropTargets gives up the passes that were not applied.
func (l *Lease) dropTargets() {
	for i := range l.targets {
		l.targets[i].cancel(l.client)
	}
	l.targets = nil
}
