package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/mortise-go/mortise/table"
)

// Renew extends the lease to its full length from now. Leases of Acquire are renewed in
// the background; those of Fixed only by this. A lease that has ended stays ended.
//
// Cost: one conditional write.
func (l *Lease) Renew(ctx context.Context) error {
	if err := l.term.cause(); err != nil {
		return wrap("renew", err)
	}
	err := l.client.attempts(ctx, l.length/3, func(ctx context.Context, start instant) error {
		return l.renewOnce(ctx, start)
	})
	return wrap("renew", err)
}

// keep renews the lease every quarter of its length until it ends. It is the lease's only
// goroutine, and not the one that watches its end.
func (l *Lease) keep() {
	period := l.length / 4
	next := jitter(period)
	for {
		if sleep(l.term.ctx, next) != nil {
			return
		}
		if l.idle.Load() {
			return
		}
		wait := lazyBackoff{table: l.client.table}
		for {
			// A share of what is left: a request that hangs leaves time for others.
			timeout := max(l.term.remaining()/3, 10*time.Millisecond)
			ctx, cancel := context.WithTimeout(l.term.ctx, timeout)
			err := l.renewOnce(ctx, l.client.clock.now())
			cancel()
			if err == nil || l.term.ctx.Err() != nil {
				break
			}
			l.term.failed(err)
			if wait.sleep(l.term.ctx) == errStopped {
				wait.wait.Reset() // the policy ends before the lease does
			}
		}
		next = jitter(period)
	}
}

// jitter spreads d over ±10 %, so that many clients that started together drift apart.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

// renewOnce sends one renewal, begun at start, with a beat of its own. Beats only grow, so
// a late duplicate of an earlier renewal finds a greater one and changes nothing.
func (l *Lease) renewOnce(ctx context.Context, start instant) error {
	c := l.client
	beat := l.beat.Add(1)
	changes := []table.Change{
		table.Attr(attrBeat).Set(beat),
		table.Attr(c.scheme.TTL).Set(c.deleteAfter(start, l.length)),
	}
	if how, by := c.clock.measure(c.config.Skew); how == skewWithin {
		changes = append(changes, table.Attr(attrExpires).Set(start.wall.Add(l.length).UnixMilli()))
	} else {
		if how == skewBeyond {
			c.clockIsOff(by)
		}
		changes = append(changes, table.Attr(attrExpires).Remove())
	}
	op := table.Update(l.key, changes...).
		If(table.Attr(attrNonce).Equal(l.nonce), table.Attr(attrBeat).Less(beat)).
		Explain(func(item table.Item) error {
			if !isString(item[attrNonce], l.nonce) {
				return explainLoss(l.nonce)(item)
			}
			return errOwnBeat
		})
	err := c.table.Write(table.WithoutRetry(ctx), op)
	var failed *table.ConditionError
	switch {
	case err == nil, errors.Is(err, errOwnBeat):
		// Ours either way: nobody else writes beats under this nonce. What the row has
		// was sent no earlier than this attempt.
		if !l.term.extend(start) {
			return l.term.cause()
		}
		return nil
	case errors.As(err, &failed):
		if errors.Is(failed.Err, ErrReleased) {
			l.gaveBack()
		} else {
			l.stolen()
		}
		return failed.Err
	}
	return err
}

// errOwnBeat says that the row already has the beat that was to be written, or a later one.
var errOwnBeat = errors.New("renewed already")
