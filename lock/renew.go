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
// Renew only reports whether the lease goes on. A lease that has ended cannot be renewed.
//
// Cost: one conditional write with Fixed, otherwise nothing.
func (l *Lease) Renew(ctx context.Context) error {
	return l.call("renew", func() error {
		if ctx := checked(ctx); ctx.Err() != nil {
			return causeOf(ctx)
		}
		if err := cmp.Or(l.over(), l.termCause()); err != nil {
			return err
		}
		switch state := l.is(); {
		case state != lease.Held && state != lease.Revoked:
			return cmp.Or(l.over(), l.cause(), ErrReleased)
		case l.session != nil:
			return nil
		}
		// It does not wait for a write under way, which may take longer than the lease.
		row, err := l.client.renewOwn(ctx, l.key, l.holding, *l.row, l.request, l.term)
		if !errors.Is(err, ErrStolen) {
			return err
		}
		if err := l.turn.take(ctx); err != nil {
			return err
		}
		defer l.turn.end()
		if err := l.over(); err != nil { // by the write
			return err
		}
		return l.gone(ctx, &row)
	})
}

// renewOwn extends a lease of its own, and its term where there is one. seen is the row as it was seen last. The
// row that is returned with ErrStolen is the one that has refused the renewal.
func (c *Client) renewOwn(ctx context.Context, key keys.Key, h lockrow.Holding, seen lockrow.Row, r *request, own *clock.Term) (row lockrow.Row, err error) {
	row = seen // it may have been renewed by a holder whose clock was ahead
	_, err = c.repeater.Do(ctx, attempt.Timeout(r.fixed), func(bounded context.Context) error {
		start, at := c.clk().Instant(), max(c.now(), row.Renewed+1)
		item, err := c.table.Apply(bounded, c.layout.rows.Renew(key, h, at, c.ttl(r.keep())), table.ReturnNone)
		now, refused, bad := c.rowOf(item, err)
		if refused {
			switch row = now; {
			case bad != nil:
				return bad
			case !row.Holds(h):
				return ErrStolen
			case row.Renewed > at:
				return attempt.ErrAgain // by a clock that was set back since: observers have to see this one, too
			}
			err = nil // by this very attempt, or by one whose answer was lost
		}
		if err != nil {
			c.metrics.count(ctx, failedRenewals, failureOf(ctx, err)...)
			return err
		}
		if own == nil {
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

// prolongEvery is how often the deletion of a held row is put off. Those who enter, or have held the lock before, write
// when it may be deleted by their own retentions, which may be the shortest.
const prolongEvery = minRetention / 4

// prolong puts off the deletion of a held row. The error is ErrStolen, beside the row, where the holder has lost the lock.
func (c *Client) prolong(ctx context.Context, key keys.Key, h lockrow.Holding, keep time.Duration) (lockrow.Row, error) {
	item, err := c.table.Apply(ctx, c.layout.rows.Prolong(key, h, c.ttl(keep)), table.ReturnNone)
	row, refused, bad := c.rowOf(item, err)
	switch {
	case !refused:
		return row, err
	case bad == nil && !row.Holds(h):
		return row, ErrStolen
	}
	return row, bad
}

// latest is when a request can be applied at the latest: its token, or its signature, has died by then.
const latest = 15 * time.Minute

// due reports whether there is something to maintain. It waits for the end of writes, unless they never end.
func (l *Lease) due() bool {
	l.status.mu.Lock()
	defer l.status.mu.Unlock()
	kept := l.client.clk().Ago(l.status.kept)
	if l.session == nil || l.turn.taken() && kept < 2*prolongEvery {
		return false
	}
	return l.status.state == lease.Releasing || l.mayCommit() || kept >= prolongEvery
}

// maintain tries a release that has failed again, finds out what became of a commit without an answer, and puts
// off the deletion of a row that is held for long.
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
	row, err := c.prolong(ctx, l.key, l.holding, l.request.keep())
	switch {
	case errors.Is(err, ErrStolen):
		_ = l.gone(ctx, &row)
	case err == nil:
		l.status.mu.Lock()
		l.status.kept = c.clk().Now()
		l.status.mu.Unlock()
	}
}
