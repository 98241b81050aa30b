package lock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lease"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// Renew extends a [Fixed] lease to its full length from now. Other leases are renewed in the background; for them,
// Renew only reports whether the lease goes on. A lease that has ended cannot be renewed: the error matches [ErrLost] or
// [ErrReleased]. After another error the lease goes on for [Lease.Remaining], and the call can be repeated.
//
// Cost: one conditional write with Fixed, otherwise nothing.
func (l *Lease) Renew(ctx context.Context) error {
	return l.call("renew", func() error {
		if err := cmp.Or(causeOf(checked(ctx)), l.over(), l.termCause()); err != nil {
			return err
		}
		switch state := l.is(); {
		case state != lease.Held && state != lease.Revoked:
			return cmp.Or(l.over(), l.cause(), ErrReleased)
		case l.session != nil:
			return nil
		}
		// The renewal does not wait for a write under way, which may take longer than the lease.
		row, err := l.client.renewOwn(ctx, l.key, l.holding, *l.row, l.request, l.term)
		switch {
		case errors.Is(err, ErrExpired): // perhaps because a release has ended the lease meanwhile
			return cmp.Or(l.over(), err)
		case !errors.Is(err, ErrStolen):
			return err
		}
		if err := l.turn.take(ctx); err != nil {
			return err
		}
		defer l.turn.end()
		if err := l.over(); err != nil { // a write or a release that was under way has shown it
			return err
		}
		return l.gone(ctx, &row)
	})
}

// renewOwn extends a Fixed lease, and its term own; nil for a ticket that has no Lease yet. seen is the row as it was seen last. With
// ErrStolen it returns the row that refused the renewal.
func (c *Client) renewOwn(ctx context.Context, key keys.Key, h lockrow.Holding, seen lockrow.Row, r *request, own *clock.Term) (row lockrow.Row, err error) {
	row = seen // a holder with a fast clock may have renewed it: at has to be later
	_, err = c.repeater.Do(ctx, attempt.Timeout(r.fixed), func(bounded context.Context) error {
		start, at := c.clk().Instant(), max(c.now(), row.Renewed+1)
		now, refused, err := c.rowOf(c.table.Apply(bounded, c.layout.rows.Renew(key, h, at, c.ttl(r.keep())), table.ReturnNone))
		if err != nil {
			c.metrics.count(ctx, failedRenewals, failureOf(ctx, err)...)
			return err
		}
		if refused {
			row = now
		}
		switch {
		case refused && !row.Holds(h):
			return ErrStolen
		case refused && row.Renewed > at:
			return attempt.ErrAgain // the clock was set back since that renewal: observers only notice a later time
		case own == nil: // the row is renewed; if it has refused, this attempt was applied before, or an earlier one without an answer
			return nil
		}
		left := own.Remaining()
		if !own.Extend(start) {
			return ErrExpired
		}
		c.metrics.record(ctx, renewalRemaining, left)
		return nil
	})
	return row, err
}

// prolongEvery is how often a holder puts off the deletion of its row. Clients that entered the line, and earlier holders, have set the
// time of deletion by their own Retention, which may be the shortest possible.
const prolongEvery = minRetention / 4

// prolong puts off the deletion of a held row. If the holder has lost the lock, it returns ErrStolen and the row that refused.
func (c *Client) prolong(ctx context.Context, key keys.Key, h lockrow.Holding, keep time.Duration) (lockrow.Row, error) {
	row, refused, err := c.rowOf(c.table.Apply(ctx, c.layout.rows.Prolong(key, h, c.ttl(keep)), table.ReturnNone))
	if refused && err == nil {
		err = ErrStolen
	}
	return row, err
}

// latest is how long after its sending a request can be applied. By then its signature, or a transaction's token, has expired.
const latest = 15 * time.Minute

// due reports whether maintain has something to do. A write under way comes first, for up to twice prolongEvery.
func (l *Lease) due() bool {
	s := l.status.get()
	kept := l.client.clk().Instant().Since(s.kept)
	if l.session == nil || l.turn.taken() && kept < 2*prolongEvery {
		return false
	}
	return s.state == lease.Releasing || l.mayCommit() || kept >= prolongEvery
}

// maintain repeats a release that has failed. Otherwise it puts off the deletion of the row, and learns from the answer whether a
// commit without an answer was applied.
func (l *Lease) maintain(ctx context.Context) {
	c := l.client
	if l.is() == lease.Releasing {
		_ = l.release(ctx)
		return
	}
	if l.turn.take(ctx) != nil {
		return
	}
	defer l.turn.end()
	if l.is().Over() {
		return
	}
	start := c.clk().Instant()
	row, err := c.prolong(ctx, l.key, l.holding, l.request.keep())
	switch {
	case errors.Is(err, ErrStolen):
		_ = l.gone(ctx, &row)
	case err == nil:
		l.status.mu.Lock()
		l.status.kept = start
		l.status.mu.Unlock()
	}
}
