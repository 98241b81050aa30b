package session

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/table"
)

const minRetry = 10 * time.Millisecond

// keep renews the row every quarter of the term until the session ends. It does not watch the end of the term, so a renewal that hangs
// does not delay it. If nothing depends on the session when a renewal is due, keep asks again every fortieth of the term.
func (s *Session) keep() {
	k, clk := s.keeper, s.keeper.repeater.Clock
	length := k.config.Own
	period := length / 4
	look := max(length/40, minRetry) // keep reads the clocks this often: its timers stand still while the machine is suspended
	// Now, since a process that needs its session for moments opens it again and again, and never renews it.
	s.answerSoon(nil)
	// Not at once, even if the request took long: the callers that opened the session need time to count as its users.
	next := func() time.Duration { return max(clk.Jitter(period), length-s.Remaining()+period/10) }
	for due := next(); ; {
		wait := min(due-(length-s.Remaining()), look) // counted from the request of the last renewal, by the clock that shows more
		if wait <= 0 && k.idle(s) {
			wait = look
		}
		if wait > 0 {
			if !s.pause(wait) {
				return
			}
			continue
		}
		left, ok := s.renew()
		if !ok {
			return
		}
		s.answerSoon(func(ctx context.Context) { k.config.Hooks.Renewed(ctx, left) })
		due = next()
	}
}

// answerSoon answers the questions of others, and then calls more, within an eighth of the lease: before the next renewal is due.
func (s *Session) answerSoon(more func(ctx context.Context)) {
	ctx, cancel := s.keeper.repeater.Clock.WithTimeout(context.Background(), s.keeper.config.Lease/8)
	defer cancel()
	s.answer(ctx)
	if more != nil {
		more(ctx)
	}
}

// pause waits for d, or until the session ends. It reports whether the session goes on.
func (s *Session) pause(d time.Duration) bool {
	return s.keeper.repeater.Clock.Sleep(s.ctx, d) == nil && s.Cause() == nil
}

// renew sends renewals until one succeeds, or the session ends (ok is false). left is how long the session would have lasted without the
// renewal. renew does not use the table's retry policy, which may end long before the lease does.
func (s *Session) renew() (left time.Duration, ok bool) {
	k := s.keeper
	wait := machine.Backoff(k.repeater.Clock,
		backoff.WithInitialInterval(max(k.config.Lease/200, minRetry)),
		backoff.WithMaxInterval(max(k.config.Lease/20, minRetry)),
		backoff.WithMaxElapsedTime(0),
	)
	for {
		start := k.repeater.Clock.Instant()
		// A third of what is left, so that a request that hangs leaves time for others.
		ctx, cancel := k.repeater.Clock.WithTimeout(context.Background(), min(max(s.Remaining()/3, minRetry), attempt.MaxTimeout))
		err := s.write(table.WithoutRetry(ctx))
		cancel()
		left := s.Remaining()
		switch {
		case err == nil && s.Extend(start):
			k.config.Hooks.Risk(false)
			return left, true
		case errors.Is(err, ErrDead):
			s.End(ErrDead)
		}
		if s.Cause() != nil {
			return 0, false
		}
		s.Failed(err)
		k.config.Hooks.Failed(err)
		if !s.pause(wait.NextBackOff()) {
			return 0, false
		}
	}
}

// write makes the session's row, or renews it. Each write has a beat of its own, and is applied only to a row with a smaller one: a late
// copy does nothing. The error is ErrDead if the row was marked dead or is gone.
//
// If the answer shows that a guessed end may be too early, or tells the time for an end that is not recorded yet, write sends another
// request. Without a recorded end, if this process dies soon, only processes that have watched it for a lease can take it for dead.
func (s *Session) write(ctx context.Context) error {
	k, n, c := s.keeper, s.keeper.config.Names, s.keeper.repeater.Clock
	s.beat++
	cond := table.And(table.Attr(n.Type).Equal(Type), table.Attr(n.Dead).NotExists(), table.Attr(n.Beat).Less(s.beat))
	if s.fresh {
		cond = table.Or(table.Attr(n.PK).NotExists(), cond)
	}
	_, latest, known := c.Bounds()
	_, told := c.Told()
	guess := s.fresh && !told
	if guess { // the local clock stands in for DynamoDB's: the answer shows whether it is slow
		latest = c.Stamp().Add(time.Second)
	}
	expires := table.Attr(n.Expires).Remove()
	if known || guess {
		expires = table.Attr(n.Expires).Set(latest.Add(k.config.Lease).UnixMilli())
	}
	op := table.Update(s.key, expires,
		table.Attr(n.Beat).Set(s.beat),
		table.Attr(n.TTL).Set(c.Stamp().Add(k.config.Lease+k.config.Retention).Unix()+1),
		table.Attr(n.Type).Set(Type),
		table.Attr(n.Owner).Set(k.config.Owner),
		table.Attr(n.Lease).Set(k.config.Lease.Milliseconds()),
	).If(cond)
	ask := table.Attr(n.Ask)
	emptied := op.Changing(ask.Remove())
	if len(s.answered) > 0 {
		op = op.Changing(ask.RemoveFrom(stringSet(s.answered)))
	}
	item, err := k.repeater.Table.Apply(ctx, op, table.ReturnNew)
	if errors.Is(err, table.ErrInvalid) { // the mailbox has another type, or fills the row: the renewal comes first
		item, err = k.repeater.Table.Apply(ctx, emptied, table.ReturnNew)
	}
	var failed *table.ConditionError
	if errors.As(err, &failed) {
		item = failed.Item
	} else if err != nil {
		return err
	}
	row, bad := n.Parse(item)
	if failed != nil && (bad != nil || row.Dead) { // otherwise the row has the beat of this very write, which was delivered twice
		return ErrDead
	}
	s.fresh, s.asked = false, row.Ask
	behind, ok := c.Behind()
	if _, _, agree := c.Bounds(); guess && (!ok || behind > 0) || !guess && !known && agree {
		return s.write(ctx)
	}
	return nil
}
