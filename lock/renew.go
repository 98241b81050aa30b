package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"

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
	err := l.client.attempts(ctx, attemptTimeout(l.length), func(ctx context.Context, _ instant) error {
		return l.renewOnce(ctx)
	})
	return wrap("renew", err)
}

// keep renews the lease every quarter of its length until it ends. It is the lease's only
// goroutine, and not the one that watches its end.
func (l *Lease) keep() {
	period := l.length / 4
	for {
		// Counted from when the term was begun or renewed: an answer that came late has
		// used up part of it already.
		next := max(jitter(period)-l.term.age(), period/10)
		if sleep(l.term.ctx, next) != nil {
			return
		}
		if l.idle.Load() {
			return
		}
		l.keepOn()
	}
}

// keepOn renews once, with as many attempts as the lease leaves time for.
func (l *Lease) keepOn() {
	// Not by the table's policy, which may end long before the lease does.
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(max(l.length/200, minPoll)),
		backoff.WithMaxInterval(max(l.length/20, minPoll)),
		backoff.WithMaxElapsedTime(0),
	)
	for {
		// A share of what is left: a request that hangs leaves time for others.
		timeout := min(max(l.term.remaining()/3, minPoll), maxAttempt)
		ctx, cancel := context.WithTimeout(table.WithoutRetry(l.term.ctx), timeout)
		err := l.renewOnce(ctx)
		cancel()
		if err == nil || l.term.ctx.Err() != nil {
			return
		}
		l.term.failed(err)
		if sleep(l.term.ctx, wait.NextBackOff()) != nil || l.idle.Load() {
			return
		}
	}
}

// jitter spreads d over ±10 %, so that many clients that started together drift apart.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

// nextBeat numbers a renewal and says when it begins. Both in one step, so that a greater
// beat in the row is that of a renewal that began later.
func (l *Lease) nextBeat() (int64, instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beat++
	return l.beat, l.client.clock.now()
}

// renewOnce sends one renewal.
func (l *Lease) renewOnce(ctx context.Context) error {
	c := l.client
	beat, start := l.nextBeat()
	err := c.table.Write(ctx, c.rows.renew(l.key, l.nonce, beat, c.until(c.offset(), start, l.length), c.deleteAfter(c.calendar(), l.length)))
	var failed *table.ConditionError
	switch {
	case err == nil, errors.Is(err, errOwnBeat):
		// Ours either way: nobody else writes beats under this nonce, and what the row
		// has began no earlier than this attempt.
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
