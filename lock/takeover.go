package lock

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-go/mortise/table"
)

// sessionWatch is what this process has seen of somebody else's session.
type sessionWatch struct {
	clock   clock
	row     sessionRow
	since   time.Time // monotonic: when this beat was seen first
	dead    bool
	busy    time.Time // monotonic: until when it has enough questions to answer
	missing bool      // no row in order was found, perhaps by a read that lags behind: declaring it dead finds out
}

// see takes a sighting in; older ones, from reads that lag behind, change nothing.
func (w *sessionWatch) see(row *sessionRow) {
	if w.since.IsZero() || row.Beat > w.row.Beat {
		w.row, w.since = *row, w.clock.Now()
	}
	w.missing = false
}

// proved takes in a row that a refused write has met, which is how things are.
func (w *sessionWatch) proved(row *sessionRow) {
	if row.Beat != w.row.Beat || w.since.IsZero() {
		w.since = w.clock.Now()
	}
	w.row, w.missing = *row, false
}

// silent says that the beat has been the same for a whole lease.
func (w *sessionWatch) silent() bool {
	return !w.since.IsZero() && w.clock.ago(w.since) >= time.Duration(w.row.Lease)*time.Millisecond
}

// known says that the row has been looked for. It has not where another lock under the same
// session has just made the watch.
func (w *sessionWatch) known() bool { return w.dead || w.missing || !w.since.IsZero() }

// wait is how long until the session may be declared dead.
func (w *sessionWatch) wait(c *Client) time.Duration {
	switch {
	case w.dead, w.missing:
		return 0
	case w.since.IsZero():
		return 0 // not seen yet: look at once
	}
	d := time.Duration(w.row.Lease)*time.Millisecond - w.clock.ago(w.since)
	if left, ok := c.untilTakeable(fromMillis(w.row.Expires)); ok {
		d = min(d, left)
	}
	return d
}

// mayBeLongDead says that a lock was acquired so long ago that its session's record may
// lie back beyond the bound. One conditional write then finds out, and takes it at once.
func (c *Client) mayBeLongDead(r *Record) bool {
	left, ok := c.untilTakeable(r.Since().Add(time.Duration(r.Lease) * time.Millisecond))
	return ok && left <= 0 && !c.owns(r.Session) && !c.knownAlive(r.Session)
}

// takeOver tries the lock; where e says that its holder may be dead, that is seen to first:
// the holder's session is declared dead, which fails if it has shown life.
func (a *acquisition) takeOver(ctx context.Context, e *ended) (*Lease, error) {
	a.alive = nil
	if e == nil || e.session == "" || e.dead {
		return a.try(ctx, e)
	}
	c := a.client
	alive, err := c.declareDead(ctx, e.session, e.seen)
	switch {
	case err != nil:
		return nil, err
	case alive != nil:
		a.alive = alive
		c.sawAlive(e.session, alive)
		return nil, heldError(a.target, &a.seen)
	}
	return a.try(ctx, e)
}

// declareDead marks a session dead, unless it has shown life since it was seen with the
// given beat (negative: not seen for a whole lease) and its recorded end does not lie back
// far enough. That is terminal: its holder can never renew again. It returns the row that
// proves life, and nil when the session is dead.
//
// Cost: one conditional write.
func (c *Client) declareDead(ctx context.Context, id string, beat int64) (*sessionRow, error) {
	silent := make([]table.Cond, 0, 2)
	if beat >= 0 {
		silent = append(silent, c.attr(attrBeat).Equal(beat))
	}
	if deadline := c.deadline(c.offset(), c.clock.wall()); deadline > 0 {
		silent = append(silent, c.attr(attrExpires).Between(0, deadline-1))
	}
	cond := table.Attr(c.scheme.PK).NotExists()
	if len(silent) > 0 {
		cond = table.Or(cond, table.And(
			table.Attr(c.scheme.Type).Equal(sessionType), c.attr(attrDead).NotExists(), table.Or(silent...)))
	}
	op := table.Update(c.sessionKey(id),
		table.Attr(c.scheme.Type).Set(sessionType),
		c.attr(attrDead).Set(c.clock.wall().UnixMilli()),
		table.Attr(c.scheme.TTL).Set(c.deleteAfter(0, 0)),
	).If(cond)
	err := c.attempts(ctx, maxAttempt, func(ctx context.Context, _ instant) error { return c.table.Write(ctx, op) })
	var failed *table.ConditionError
	if !errors.As(err, &failed) {
		return nil, err
	}
	if !c.sessions.Owns(failed.Item) {
		return nil, ErrNotLock
	}
	if c.isDead(failed.Item) {
		return nil, nil
	}
	row, err := c.sessionOf(failed.Item)
	if err != nil {
		return nil, err
	}
	return &row, nil
}
