package session

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/table"
)

// Session is this process's session: a row that one goroutine renews. It is safe for concurrent use.
type Session struct {
	keeper *Keeper
	id     string
	key    keys.Key
	term   *clock.Term
	ended  chan struct{} // closed when the term ends
	number atomic.Int64
	begin  atomic.Bool // Hooks.Opened was called for it

	// Of the goroutine only.
	beat    int64
	timed   bool     // the row says when the session ends
	handled []string // questions that the next renewal takes out of the mailbox
	empties bool     // it drops the mailbox, which is not one, or fills the row: renewing comes first

	mu    sync.Mutex // guards the following; never held across I/O
	uses  int
	over  bool  // nothing may depend on it any more
	why   error // with which it is to end, once woken
	woken chan struct{}
}

// ID tells the session from all others, for ever.
func (s *Session) ID() string { return s.id }

// Key is the key of its row.
func (s *Session) Key() keys.Key { return s.key }

// Next is the next number of a ticket of this session, from 1. No number comes twice.
func (s *Session) Next() int64 { return s.number.Add(1) }

// Ended is closed when the session has ended.
func (s *Session) Ended() <-chan struct{} { return s.ended }

// Cause is why the session has ended; nil while it goes on.
func (s *Session) Cause() error { return s.term.Cause() }

// Remaining is how long the session lasts unless it is renewed; 0 when it has ended.
func (s *Session) Remaining() time.Duration { return s.term.Remaining() }

// Failure is why the last renewal failed; nil where it did not.
func (s *Session) Failure() error { return s.term.Failure() }

// use counts one more that depends on the session; false where nothing may any more.
func (s *Session) use() bool {
	if s.term.Cause() != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.uses++
	return true
}

// Use keeps the session open until another call of Unuse, for what depends on it beside the caller.
func (s *Session) Use() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses++
}

// Unuse takes back one Keeper.Use or Use.
func (s *Session) Unuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses--
}

// idle reports whether nothing depends on the session.
func (s *Session) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uses == 0
}

// retire ends the session, for all who would depend on it, if nothing does.
func (s *Session) retire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses > 0 || s.over {
		return false
	}
	s.over, s.why = true, ErrIdle
	return true
}

// wake has the goroutine end the session for a reason.
func (s *Session) wake(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == nil {
		s.over, s.why = true, why
		close(s.woken)
	}
}

// open opens a session: with the row of the last one where that has ended idle, else with a new row.
//
// Cost: one conditional write; another one where the old row was marked dead, or the local clock is slow.
func (k *Keeper) open(ctx context.Context) (*Session, error) {
	if last := k.unpark(); last != nil {
		s, err := k.begin(ctx, last)
		if !errors.Is(err, ErrDead) {
			return s, err
		}
	}
	return k.begin(ctx, nil)
}

// begin writes the row of a session, which last is the end of; nil for a new row. The term begins before the
// request is sent.
func (k *Keeper) begin(ctx context.Context, last *Session) (*Session, error) {
	c, n := k.repeater.Clock, k.config.Names
	s := &Session{keeper: k, ended: make(chan struct{}), woken: make(chan struct{})}
	cond := table.Attr(n.PK).NotExists()
	if last == nil {
		s.id = c.Text()
	} else {
		s.id, s.beat = last.id, last.beat+1
		s.number.Store(last.number.Load())
		cond = s.renewable()
	}
	s.key = k.config.Key(s.id)
	if err := s.key.Validate(); err != nil {
		return nil, err
	}
	local := false // the row may have an end by the local clock
	var h attempt.History
	err := k.repeater.Do(ctx, attempt.Timeout(k.config.Lease), &h, func(ctx context.Context, start clock.Instant) error {
		changes := s.renewal(s.beat)
		if _, _, told := c.Server(); !told {
			// No answer has told the time yet. The local clock stands in for it, unless the answer to this
			// request shows that it is slow: then the session is renewed before anything depends on it.
			local = true
			changes[len(changes)-1] = table.Attr(n.Expires).Set(start.Wall.Add(time.Second + k.config.Lease).UnixMilli())
		}
		err := k.repeater.Table.Write(ctx, table.Update(s.key, append(changes,
			table.Attr(n.Type).Set(Type),
			table.Attr(n.Owner).Set(k.config.Owner),
			table.Attr(n.Lease).Set(k.config.Lease.Milliseconds()),
		)...).If(cond))
		var failed *table.ConditionError
		if !errors.As(err, &failed) {
			return err
		}
		// An earlier attempt of this call may have written the row.
		if row, err := n.Parse(failed.Item); err != nil || row.Dead || row.Beat != s.beat {
			return ErrDead
		}
		return nil
	})
	if err != nil {
		if last != nil && !errors.Is(err, ErrDead) {
			k.park(s)
		}
		return nil, err
	}
	s.term = k.terms.Begin(h.First, k.config.Lease-k.config.Margin, clock.Watch{End: s.end, Risk: s.risk, Part: k.config.RiskPart})
	s.timed = s.timed || local
	if earliest, _, ok := c.Server(); local && (!ok || c.Instant().Wall.Before(earliest)) {
		var h attempt.History
		err := k.repeater.Do(ctx, attempt.Timeout(k.config.Lease), &h, func(ctx context.Context, _ clock.Instant) error {
			_, err := s.renewOnce(ctx)
			return err
		})
		if err != nil {
			s.term.End(err)
			if !errors.Is(err, ErrDead) {
				k.park(s)
			}
			return nil, err
		}
	}
	return s, nil // it may have ended by now: the next one is opened then
}

// risk is called when the lease is at risk, and when it is well again. A session that nothing depends on is not
// renewed, and has nothing at risk.
func (s *Session) risk(atRisk bool) {
	if f := s.keeper.config.Hooks.Risk; f != nil && (!atRisk || !s.idle()) {
		f(atRisk)
	}
}

// end is called once, when the term ends.
func (s *Session) end(cause error) {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.keeper.forget(s)
	close(s.ended)
	if s.keeper.config.Hooks.Ended != nil {
		s.keeper.config.Hooks.Ended(s, cause)
	}
}

// renewal is what a renewal writes.
func (s *Session) renewal(beat int64) []table.Change {
	k, n := s.keeper, s.keeper.config.Names
	keep := k.config.Lease + k.config.Retention
	changes := []table.Change{
		table.Attr(n.Beat).Set(beat),
		table.Attr(n.TTL).Set(k.repeater.Clock.Today().Add(keep).Unix() + 1),
	}
	latest, ok := k.repeater.Clock.Latest()
	if s.timed = ok; !ok {
		return append(changes, table.Attr(n.Expires).Remove())
	}
	return append(changes, table.Attr(n.Expires).Set(latest.Add(k.config.Lease).UnixMilli()))
}

// renewable is the condition under which a renewal with the present beat is applied.
func (s *Session) renewable() table.Cond {
	n := s.keeper.config.Names
	return table.And(table.Attr(n.Type).Equal(Type), table.Attr(n.Dead).NotExists(), table.Attr(n.Beat).Less(s.beat))
}

// minRetry is the shortest wait between two renewals.
const minRetry = 10 * time.Millisecond

// keep renews the row every quarter of the lease until the session ends. It does not watch the end of
// the term: a renewal that hangs delays nothing. While nothing depends on the session it is not renewed, and
// whether something does is asked every fortieth of the lease once the next renewal is due.
func (s *Session) keep() {
	for s.pause(s.untilRenewal()) {
		left := s.term.Remaining()
		if s.idle() && left >= s.keeper.config.Lease/2 {
			continue
		}
		if s.retire() {
			s.keeper.park(s)
			break
		}
		asked, ok := s.renew()
		if !ok {
			break
		}
		s.attend(asked, left)
	}
	s.mu.Lock()
	why := s.why
	s.mu.Unlock()
	if why == nil {
		return // the term has ended by itself
	}
	s.term.End(why)
	if !errors.Is(why, ErrIdle) {
		s.remove(context.Background())
	}
}

// untilRenewal is how long to wait before the next renewal, counted from the last one's request. A row
// that does not say yet when the session ends is renewed at once, now that an answer has told the time:
// should the process die before, only those who have watched it for a lease could tell.
func (s *Session) untilRenewal() time.Duration {
	c, period := s.keeper.repeater.Clock, s.keeper.config.Lease/4
	if _, ok := c.Latest(); ok && !s.timed && !s.idle() {
		return minRetry
	}
	return max(c.Jitter(period)-s.term.Age(), period/10)
}

// pause waits; false where there is to be no renewal any more.
func (s *Session) pause(d time.Duration) bool {
	timer := s.keeper.repeater.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-s.woken:
		return false
	case <-s.ended:
		return false
	}
}

// renew sends renewals until one succeeds, which brings what others ask; false where the session ends
// before. It does not go by the table's policy, which may end long before the lease does.
func (s *Session) renew() (asked []string, ok bool) {
	k := s.keeper
	wait := machine.Backoff(k.repeater.Clock,
		backoff.WithInitialInterval(max(k.config.Lease/200, minRetry)),
		backoff.WithMaxInterval(max(k.config.Lease/20, minRetry)),
		backoff.WithMaxElapsedTime(0),
	)
	for {
		asked, err := s.renewOnce(context.Background())
		switch {
		case s.term.Cause() != nil:
			return nil, false
		case err == nil:
			return asked, true
		}
		s.term.Failed(err)
		if k.config.Hooks.Failed != nil {
			k.config.Hooks.Failed(err)
		}
		if errors.Is(err, table.ErrInvalid) && !s.empties {
			s.empties = true
			continue
		}
		if !s.pause(wait.NextBackOff()) {
			return nil, false
		}
	}
}

// renewOnce sends one renewal, with a beat of its own. A late copy of it finds a greater one and changes
// nothing.
//
// Cost: one conditional write.
func (s *Session) renewOnce(ctx context.Context) ([]string, error) {
	k, n := s.keeper, s.keeper.config.Names
	s.beat++
	// A share of what is left: a request that hangs leaves time for others.
	ctx, cancel := k.repeater.Clock.WithTimeout(ctx, min(max(s.term.Remaining()/3, minRetry), attempt.MaxTimeout))
	defer cancel()
	start := k.repeater.Clock.Instant()
	changes := s.renewal(s.beat)
	switch {
	case s.empties:
		changes = append(changes, table.Attr(n.Ask).Remove())
	case len(s.handled) > 0:
		changes = append(changes, table.Attr(n.Ask).DeleteFrom(stringSet(s.handled)))
	}
	item, err := k.repeater.Table.Apply(table.WithoutRetry(ctx), table.Update(s.key, changes...).If(s.renewable()), table.ReturnNew)
	var failed *table.ConditionError
	if errors.As(err, &failed) {
		row, bad := n.Parse(failed.Item)
		if bad != nil || row.Dead || row.Beat < s.beat {
			s.term.End(ErrDead) // marked, deleted, or not this session's any more
			return nil, ErrDead
		}
		item, err = failed.Item, nil // this very beat, delivered twice
	}
	if err != nil {
		return nil, err
	}
	s.empties = false
	if !s.term.Extend(start) {
		return nil, s.term.Cause()
	}
	row, err := n.Parse(item)
	if err != nil {
		return nil, nil // renewed all the same
	}
	return row.Ask, nil
}

// attend does what is done at the pace of renewals, bounded by the time until the next one.
func (s *Session) attend(asked []string, left time.Duration) {
	k := s.keeper
	ctx, cancel := k.repeater.Clock.WithTimeout(context.Background(), k.config.Lease/8)
	defer cancel()
	s.answer(ctx, asked)
	if k.config.Hooks.Renewed != nil {
		k.config.Hooks.Renewed(ctx, s, left)
	}
}

// Confirm finds out whether the session is alive at a moment after the call began. It ends one that
// is not. What cannot be found out is an error, and the session goes on.
//
// Cost: one consistent read.
func (s *Session) Confirm(ctx context.Context) (alive bool, err error) {
	k := s.keeper
	if s.Remaining() == 0 {
		return false, nil
	}
	var h attempt.History
	err = k.repeater.Do(ctx, attempt.Timeout(k.config.Lease), &h, func(ctx context.Context, _ clock.Instant) error {
		item, err := k.repeater.Table.Get(ctx, s.key, true)
		if errors.Is(err, table.ErrNotFound) {
			item, err = nil, nil
		}
		if err != nil {
			return err
		}
		row, bad := k.config.Names.Parse(item)
		alive = bad == nil && !row.Dead
		return nil
	})
	if err != nil {
		return false, err
	}
	if !alive {
		s.term.End(ErrDead)
	}
	return alive && s.term.Cause() == nil, nil
}

// remove deletes the row. Should that fail, its time to live does it.
func (s *Session) remove(ctx context.Context) {
	k, n := s.keeper, s.keeper.config.Names
	ctx, cancel := k.repeater.Clock.Detached(ctx)
	defer cancel()
	err := k.repeater.Table.Write(ctx, table.Delete(s.key).If(table.Or(
		table.Attr(n.PK).NotExists(), table.Attr(n.Type).Equal(Type))))
	if err != nil && k.config.Hooks.Failed != nil {
		k.config.Hooks.Failed(err)
	}
}
