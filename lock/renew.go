package lock

import (
	"context"
	"errors"

	"github.com/mortise-go/mortise/table"
)

// Renew extends a lease of its own (Fixed) to its full length from now. Leases under a
// session are renewed in the background: for them it only says whether the lease goes on, as one
// does that was asked back. A lease that has ended stays ended.
//
// Cost: one conditional write; nothing under a session.
func (l *Lease) Renew(ctx context.Context) error {
	if err := l.cause(); err != nil && (l.over.Load() == isOver || l.term.cause() != nil) {
		return wrap("renew", err)
	}
	if l.session != nil {
		return nil
	}
	err := l.client.attempts(ctx, attemptTimeout(l.length), func(ctx context.Context, _ instant) error {
		return l.renewOnce(ctx)
	})
	return wrap("renew", err)
}

// nextBeat numbers a renewal and says when it begins. Both in one step, so that a greater
// beat in the row is that of a renewal that began later.
func (l *Lease) nextBeat() (int64, instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beat++
	return l.beat, l.client.clock.instant()
}

// renewOnce sends one renewal.
func (l *Lease) renewOnce(ctx context.Context) error {
	c := l.client
	start, err := l.writeBeat(ctx)
	var failed *table.ConditionError
	switch {
	case err == nil:
		left := l.term.remaining()
		if !l.term.extend(start) {
			return l.cause()
		}
		c.instruments.renewed(ctx, left)
		return nil
	case errors.As(err, &failed):
		return l.refusedBeside(ctx, failed)
	}
	l.term.failed(err)
	c.instruments.renewalFailed(ctx, err)
	return err
}

// refusedBeside is refusedBy for what takes no turns: whether a commit without an answer was applied
// is known when none is under way.
func (l *Lease) refusedBeside(ctx context.Context, failed *table.ConditionError) error {
	if err := l.takeTurn(ctx); err != nil {
		return err
	}
	defer l.endTurn()
	if l.released.Load() {
		return l.given()
	}
	return l.refusedBy(failed)
}

// writeBeat writes a beat, the end of a lease that begins at start, and when to delete the row.
func (l *Lease) writeBeat(ctx context.Context) (start instant, err error) {
	c := l.client
	beat, start := l.nextBeat()
	d := c.putOff(l.kept(), l.length, l.fence)
	err = c.table.Write(ctx, c.rows.renew(l.key, l.nonce, l.fence, beat, c.until(c.offset(), start, l.length), d.epoch()))
	if err == nil || errors.Is(err, errOwnBeat) {
		// Ours either way: nobody else writes beats under this nonce, and what the row has began
		// no earlier than this attempt.
		l.keep(d)
		return start, nil
	}
	return start, err
}

// errOwnBeat says that the row already has the beat that was to be written, or a later one.
var errOwnBeat = errors.New("renewed already")
