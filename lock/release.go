package lock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/lease"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
	"github.com/mortise-go/mortise/table"
)

// Release gives the lock to the next goroutine or process that waits for it, or leaves it free. It waits for guarded
// writes that are under way. The request is sent even if ctx has ended; it then takes at most 5 s. A call
// after [Lease.Commit] or another Release has succeeded does nothing and returns nil, so that Release can be deferred.
//
// An error that matches [ErrLost] means that the lock was lost before. If the lease has only expired ([ErrExpired]), and
// nobody has taken the lock since, Release frees it and returns nil. There is one more case. If an attempt to release failed, and
// then the session ended or somebody used [Client.ForceRelease], the error matches ErrLost although that attempt may have been
// applied.
//
// After any other error the lock may still be held. The client repeats the release with its renewals. For a [Fixed] lease, it
// does so every eighth of the lease's length or of [Config.Lease], whichever is shorter. Release can be called again.
//
// Cost: one conditional write.
func (l *Lease) Release(ctx context.Context) error {
	return l.call("release", func() error {
		ctx, cancel := l.client.clk().Detach(checked(ctx))
		defer cancel()
		return l.release(ctx)
	})
}

// giveBack releases the lock whatever has become of ctx.
func (l *Lease) giveBack(ctx context.Context) error {
	ctx, cancel := l.client.clk().Detached(ctx)
	defer cancel()
	return l.release(ctx)
}

func (l *Lease) release(ctx context.Context) error {
	l.on(lease.Release, nil) // before it waits for the turn: if ctx ends meanwhile, renewals repeat the release
	if err := l.turn.take(ctx); err != nil {
		l.repeatOwn()
		return err
	}
	defer l.turn.end()
	var err error
	switch state := l.is(); {
	case !state.Over():
		l.cancel(ErrReleased) // before the request is sent: others can hold the lock before its answer comes
		if endedWithALease(ctx) {
			var cancel context.CancelFunc
			ctx, cancel = l.client.clk().Detached(ctx)
			defer cancel()
		}
		err = l.releaseInTurn(ctx)
	case state == lease.Lost:
		err = l.over()
	}
	if err != nil {
		l.client.metrics.count(ctx, failedReleases, failureOf(ctx, err)...)
		l.repeatOwn()
	} else if over := l.over(); !errors.Is(over, ErrReleased) {
		err = over
	}
	return err
}

// endedWithALease reports whether ctx has ended because a lease was released: it is that lease's context, or derived from it.
func endedWithALease(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrReleased) }

// releaseWhileHeld is the release for Close. It does not try to release a lease that has ended: others take that lock without it.
func (l *Lease) releaseWhileHeld(ctx context.Context) error {
	for l.termCause() == nil {
		bounded, cancel := l.client.clk().WithTimeout(ctx, l.term.Remaining())
		err := l.release(bounded)
		var sent *table.Error
		late := bounded.Err() != nil && ctx.Err() == nil && !errors.As(err, &sent) // it only waited for a write under way
		cancel()
		if !late {
			return err
		}
	}
	return nil
}

// change returns what a release, a pass or a commit writes besides the line and the fence. The turn is taken.
func (l *Lease) change(commit bool) lockrow.Change {
	c := l.client
	change := lockrow.Change{Since: c.now(), TTL: c.ttl(l.request.keep())}
	if !l.status.get().got.IsZero() { // a lease that no caller got does not show how long holders take
		hold := waitqueue.Smooth(time.Duration(l.turn.row.Hold)*time.Millisecond, c.clk().Ago(l.turn.since))
		change.Hold = max(hold.Milliseconds(), 1)
	}
	if commit && l.holding.Kind == lockrow.Exclusive {
		l.turn.writes++
		change.Commit = l.turn.writes
	}
	if r := l.request.run; r != nil {
		change.Run, change.Ran = lockrow.RunChange(r.ending.Load()), r.at
		if commit { // a commit finishes the run
			change.Run = lockrow.FinishRun
		}
	}
	return change
}

// othersWait reports whether other tickets were in the line when it was seen last, or may have come since (blind).
func (l *Lease) othersWait() bool { return l.turn.blind || len(l.turn.row.Line) > 1 }

// next makes a ticket for the goroutine of this process that gets the lock next. nil means that the lock is released instead of passed,
// as always while an earlier pass or release is in doubt. The turn is taken.
func (l *Lease) next() *acquisition {
	c, p := l.client, l.status.get().place
	if l.turn.target != nil || l.turn.inDoubt || l.holding.Fence >= lockrow.MaxFence || c.closing.Err() != nil ||
		p == nil || c.config.Handoffs < 0 || l.termCause() != nil || !p.MayPass(c.config.Handoffs, l.othersWait()) {
		return nil
	}
	w := p.First()
	if w == nil {
		return nil
	}
	to := &acquisition{client: c, request: w.Request.request, heir: w, start: c.clk().Instant(), taken: true}
	if to.fixed == 0 {
		if to.session = c.keeper.UseCurrent(); to.session == nil {
			return nil // no session is open: the goroutine opens one when its turn comes
		}
	}
	e := &entry{client: c, key: l.key, standing: standing{ticket: c.newTicket(&to.request, to.session), path: pathHandedOver, begun: to.run == nil}}
	if e.row.Store(&unseen); to.session != nil {
		e.ticket.At = l.turn.began
	}
	c.tickets.set(e.ticket.ID, e)
	to.entries = []*entry{e}
	l.turn.target = to
	return to
}

// dropTarget forgets the target of a pass. If the pass was applied all the same, the target's ticket is a ghost from now on.
func (l *Lease) dropTarget() {
	if l.turn.target != nil {
		l.turn.target.drop()
	}
	l.turn.target = nil
}

// give returns the operation that gives the lock up: a pass to a target, or a release if there is none.
// A commit also records that the run of an interval has finished.
func (l *Lease) give(to *acquisition, commit bool) (table.Op, lockrow.Change) {
	change := l.change(commit)
	if to == nil {
		l.turn.exit = l.turn.row.Exit(l.holding, l.leftBefore())
		return l.client.layout.rows.Release(l.key, l.holding, l.turn.exit, change), change
	}
	// The process stays first, so Since keeps its value; a Fixed lease counts from its ticket. Hold is not written: it tells other processes how
	// long this process holds in all, which is not known yet.
	change.Hold, change.Since = 0, l.turn.began
	return l.client.layout.rows.Pass(l.key, l.holding, to.entries[0].ticket, change, to.data), change
}

// leftBefore guesses how many permits or readers before the ticket have left the line since the lease began: most of them came earlier, and
// hold for about as long. The release names the ticket's place. A wrong guess costs one refused request, which shows the row.
func (l *Lease) leftBefore() int {
	row := l.turn.row
	before := row.Place(l.holding.ID)
	if l.holding.Kind == lockrow.Exclusive || before < 1 || row != l.row {
		return 0
	}
	part := float64(l.client.clk().Ago(l.turn.since).Milliseconds()) / float64(max(row.Hold, 1))
	return int(math.Round(float64(before) * min(part, 1)))
}

func (l *Lease) releaseInTurn(ctx context.Context) error {
	c := l.client
	to, answers := l.next(), table.ReturnNone
	if to != nil || l.holding.Kind == lockrow.Shared {
		answers = table.ReturnNew // the next lease begins with this row; a reader sees in it whether others removed readers
	}
	_, err := c.repeater.Do(ctx, attempt.Timeout(l.request.length(c)), func(ctx context.Context) error {
		op, change := l.give(to, false)
		item, err := c.table.Apply(ctx, op, answers)
		row, refused, bad := c.rowOf(item, err)
		l.turn.inDoubt = l.turn.inDoubt || refused && row.Echoes(l.holding, change)
		switch {
		case bad != nil && (err == nil || refused): // answered with a malformed row
			row = lockrow.Row{}
		case err == nil:
		case refused && row.Holds(l.holding) && row.Exit(l.holding, 0) != l.turn.exit:
			l.turn.inDoubt = l.turn.inDoubt || row.MayFit(l.holding, l.turn.exit)
			l.turn.saw(&row) // others have entered or left: the exit does not fit any more
			return attempt.ErrAgain
		case !refused: // also one that DynamoDB refused for now, such as a throttled one: a copy of it can be applied
			l.turn.inDoubt = true
			return err
		}
		l.turn.saw(&row)
		return err
	})
	switch {
	case err == nil && l.holding.Kind == lockrow.Shared && l.turn.row.Ousted != l.row.Ousted:
		return l.refused(ctx, true) // others removed a reader: if it was this one, only its ghost was released
	case err == nil:
		l.given(to)
	case errors.Is(err, table.ErrCondition):
		return l.refused(ctx, l.turn.inDoubt)
	}
	return err
}

func (l *Lease) given(to *acquisition) {
	if to != nil {
		l.passed(to)
		return
	}
	l.dropTarget() // an earlier pass in doubt was not applied
	l.on(lease.GivenUp, nil)
}

// passed hands the ticket of a pass, which is first now, to its goroutine.
func (l *Lease) passed(to *acquisition) {
	l.turn.target = nil
	c, e, row := l.client, to.entries[0], *l.turn.row
	row.Fence, row.Writes, row.Edits = l.holding.Fence+1, l.turn.writes, l.turn.edits
	e.row.Store(&row)
	e.tenure = l.turn.tenure
	l.status.mu.Lock()
	p := l.status.place
	l.status.place = nil // it goes with the ticket
	l.status.mu.Unlock()
	if p != nil {
		p.Passed(l.othersWait())
	}
	l.on(lease.GivenUp, nil)
	if p != nil && p.Hand(to.heir, to) {
		return
	} // otherwise the place was given up, or the goroutine waits no more
	if to.place = p; to.bequeath() {
		return
	}
	to.withdrawSoon(c.closing, func(f func()) {
		if !c.tryRun(f) {
			f()
		}
	})
	if p != nil {
		p.Over()
	}
}

func (l *Lease) refused(ctx context.Context, inDoubt bool) error {
	row, to, lost := l.turn.row, l.turn.target, ErrStolen
	passed := ""
	if to != nil {
		passed = to.entries[0].ticket.ID
	}
	switch row.Released(l.holding, inDoubt, passed) {
	case lockrow.Passed:
		l.passed(to)
		return nil
	case lockrow.Perhaps:
		alive, err := l.confirm(ctx)
		if err != nil {
			l.turn.inDoubt = true
			return err
		}
		if alive {
			l.given(nil)
			return nil
		}
		fallthrough
	case lockrow.Unclear:
		lost = fmt.Errorf("%w, or was released by an earlier attempt", ErrLost)
	}
	l.dropTarget()
	l.on(lease.Taken, nil)
	return lost
}

// confirm reports whether the lease has lasted until now. Then nobody can have taken the lock, except by force, which the row shows.
//
// Cost: one consistent read under a session.
func (l *Lease) confirm(ctx context.Context) (bool, error) {
	if l.session == nil {
		return l.term.Cause() == nil, nil
	}
	return l.session.Confirm(ctx)
}
