package lock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// sessionType marks session rows.
const sessionType = "LockSession"

// Attributes of a session row, besides those that it shares with lock rows.
const (
	attrDead = "dead"
	attrAsk  = "ask"
)

// sessionRow stands for the liveness of one process. Thousands of locks hang on it, and
// only it is renewed.
type sessionRow struct {
	ID          string    `dynamo:"-"`
	Owner       string    `dynamo:"owner"`
	Lease       int64     `dynamo:"lease"`             // length in milliseconds
	Beat        int64     `dynamo:"beat"`              // renewals so far
	Expires     int64     `dynamo:"expires,omitempty"` // epoch milliseconds; 0 when the holder does not say
	Dead        int64     `dynamo:"dead,omitempty"`    // epoch milliseconds at which somebody declared it dead: terminal
	Ask         []string  `dynamo:"ask,set,omitempty"` // what others want of the holder: see question
	DeleteAfter time.Time `dynamo:"-"`
}

func (r *sessionRow) check() error {
	if r.Lease < 1 || r.Lease > MaxLease.Milliseconds() || r.Beat < 0 || r.Expires < 0 {
		return ErrMalformed
	}
	return nil
}

func (c *Client) sessionKey(id string) keys.Key { return c.sessions.Key(sessionRow{ID: id}) }

func (c *Client) sessionOf(item table.Item) (sessionRow, error) {
	row, err := c.sessions.Decode(item)
	switch {
	case err != nil:
		return row, errs.Kind(ErrMalformed, err)
	case !isString(item[c.scheme.Type], sessionType), c.of(item, attrBeat) == nil, c.of(item, attrDead) != nil && !c.isDead(item):
		return row, ErrMalformed // no condition would ever be met
	}
	return row, row.check()
}

// isDead says whether a session's row says that it was declared dead, whenever that was: conditions go
// by its being there.
func (c *Client) isDead(item table.Item) bool {
	_, ok := c.of(item, attrDead).(*types.AttributeValueMemberN)
	return ok
}

// session is this process's session row and the one goroutine that renews it.
type session struct {
	client *Client
	id     string
	key    keys.Key
	term   *term

	// Of the goroutine only:
	beat      int64 // the last one used
	kept      deletion
	ends      bool     // the row says when the session ends
	refreshed keys.Key // the lock whose row was tried last
	freed     keys.Key // of orphans, likewise

	mu      sync.Mutex        // guards the following; never held across I/O
	leases  map[string]*Lease // by nonce
	trying  map[string]int    // nonces of acquisitions under way
	waiting map[string]int    // nonces that were tried, of acquisitions that go on: nothing hangs on them, yet they may be granted
	orphans map[string]*Lease // by nonce: given up, but the release failed
	idle    time.Time         // since when there is neither; zero while there is
	retired bool              // takes no new acquisitions
	wake    chan struct{}     // closed by retire
}

// openSession writes a new session row. Its term begins before the request is sent.
//
// Cost: one conditional write.
func (c *Client) openSession(ctx context.Context) (*session, error) {
	s := &session{
		client: c, id: c.newNonce(), leases: map[string]*Lease{}, trying: map[string]int{}, waiting: map[string]int{}, orphans: map[string]*Lease{}, wake: make(chan struct{}),
		idle: c.clock.Now(),
	}
	s.key = c.sessionKey(s.id)
	if err := s.key.Validate(); err != nil {
		return nil, err
	}
	var began instant
	err := c.attempts(ctx, attemptTimeout(c.config.Lease), func(ctx context.Context, start instant) error {
		if began.mono.IsZero() {
			began = start // an earlier attempt without an answer may be the one that was applied
		}
		op := table.Update(s.key, append(s.renewal(start, 0),
			table.Attr(c.scheme.Type).Set(sessionType),
			c.attr(attrOwner).Set(c.config.Owner),
			c.attr(attrLease).Set(c.config.Lease.Milliseconds()),
		)...).If(table.Attr(c.scheme.PK).NotExists())
		err := c.table.Write(ctx, op)
		var failed *table.ConditionError
		if !errors.As(err, &failed) {
			return err
		}
		// The ID is this call's own: only its own attempt can have written the row.
		row, err := c.sessionOf(failed.Item)
		if err == nil && row.Dead != 0 {
			err = ErrStolen
		}
		s.ends = row.Expires > 0
		return err
	})
	if err != nil {
		return nil, err
	}
	s.term = newTerm(c.clock, began, c.config.Lease-c.config.margin(c.config.Lease))
	if s.term.remaining() == 0 {
		return nil, ErrExpired
	}
	s.term.begin(s.ended)
	if !c.run(s.keep) {
		s.term.end(ErrClosed)
		return nil, ErrClosed
	}
	return s, nil
}

// renewal is what every renewal of a session writes.
func (s *session) renewal(start instant, beat int64) []table.Change {
	c := s.client
	s.kept = c.putOff(s.kept, c.config.Lease, 0)
	changes := make([]table.Change, 0, 8)
	changes = append(changes, c.attr(attrBeat).Set(beat), table.Attr(c.scheme.TTL).Set(s.kept.epoch()))
	until := c.until(c.offset(), start, c.config.Lease)
	if s.ends = until > 0; s.ends {
		return append(changes, c.attr(attrExpires).Set(until))
	}
	return append(changes, c.attr(attrExpires).Remove())
}

// keep renews the row every quarter of the lease until the term ends or the session has
// been idle for a lease. It is not what watches the term's end.
func (s *session) keep() {
	c := s.client
	period := c.config.Lease / 4
	var handled, again []string // what was answered, and what of that is asked again
	for s.pause(s.untilRenewal(period)) && !s.retireIfIdle() {
		ask, ok := s.renew(handled)
		if !ok {
			break
		}
		// What was asked once more meanwhile was taken back with it.
		again = append(again, handled...)
		done := s.answer(again)
		again = slices.DeleteFunc(again, func(q string) bool { return slices.Contains(done, q) })
		handled = s.answer(ask)
		s.refresh()
		s.freeOrphans()
	}
	if s.term.ctx.Err() == nil {
		s.close()
	}
}

// untilRenewal is how long to wait before the next renewal. It is counted from when the term was begun
// or renewed: an answer that came late has used up part of it already. Where that answer has told what
// the client could not know when it asked, the row soon says when the session ends: should the process
// die before it does, nobody who has not watched it could tell.
func (s *session) untilRenewal(period time.Duration) time.Duration {
	c := s.client
	left := max(c.clock.jitter(period)-s.term.age(), period/10)
	if !s.ends && c.until(c.offset(), c.clock.instant(), c.config.Lease) > 0 {
		return min(left, minPoll)
	}
	return left
}

// pause waits until the next renewal; false where there is to be none any more.
func (s *session) pause(d time.Duration) bool {
	timer := s.client.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-s.wake:
		return false
	case <-s.term.ctx.Done():
		return false
	}
}

// jitter spreads d over ±10 %, so that many clients that started together drift apart.
func (c clock) jitter(d time.Duration) time.Duration {
	return d - d/10 + c.N(d/5+1)
}

// renew sends renewals until one succeeds, which brings what is asked; false where the term ends
// before, or the session is retired.
func (s *session) renew(handled []string) (ask []string, ok bool) {
	c := s.client
	// Not by the table's policy, which may end long before the lease does.
	wait := machine.Backoff(c.clock,
		backoff.WithInitialInterval(max(c.config.Lease/200, minPoll)),
		backoff.WithMaxInterval(max(c.config.Lease/20, minPoll)),
		backoff.WithMaxElapsedTime(0),
	)
	for {
		// A share of what is left: a request that hangs leaves time for others.
		timeout := min(max(s.term.remaining()/3, minPoll), maxAttempt)
		ctx, cancel := c.clock.WithTimeout(table.WithoutRetry(s.term.ctx), timeout)
		ask, err := s.renewOnce(ctx, c.clock.instant(), handled)
		cancel()
		if s.term.ctx.Err() != nil {
			return nil, false
		}
		if err == nil {
			return ask, true
		}
		s.term.failed(err)
		c.instruments.renewalFailed(s.term.ctx, err)
		if errors.Is(err, table.ErrInvalid) && len(handled) > 0 {
			handled = nil // somebody has made another type of the set: renewing comes first
			continue
		}
		if !s.pause(wait.NextBackOff()) {
			return nil, false
		}
	}
}

// renewOnce sends one renewal with a beat of its own, takes back the questions that have
// been answered, and returns those that are asked now.
//
// Cost: one conditional write.
func (s *session) renewOnce(ctx context.Context, start instant, handled []string) ([]string, error) {
	c := s.client
	s.beat++
	beat := s.beat
	changes := s.renewal(start, beat)
	if len(handled) > 0 {
		changes = append(changes, c.attr(attrAsk).DeleteFrom(stringSet(handled)))
	}
	op := table.Update(s.key, changes...).If(
		table.Attr(c.scheme.Type).Equal(sessionType),
		c.attr(attrDead).NotExists(),
		c.attr(attrBeat).Less(beat),
	)
	item, err := c.table.Apply(ctx, op, table.ReturnNew)
	var failed *table.ConditionError
	if errors.As(err, &failed) {
		row, decode := c.sessionOf(failed.Item)
		if decode != nil || row.Dead != 0 || row.Beat < beat {
			// Declared dead, deleted, or not ours any more: terminal in every case.
			s.term.end(ErrStolen)
			return nil, ErrStolen
		}
		item, err = failed.Item, nil // our own beat, whose answer was lost
	}
	if err != nil {
		return nil, err
	}
	left := s.term.remaining()
	if !s.term.extend(start) {
		return nil, s.term.cause()
	}
	c.instruments.renewed(ctx, left)
	if row, err := c.sessionOf(item); err == nil {
		return row.Ask, nil
	}
	return nil, nil // renewed all the same
}

// ended ends every lease that hangs on the session.
func (s *session) ended(cause error) {
	s.mu.Lock()
	s.retired = true
	list := make([]*Lease, 0, len(s.leases))
	for _, l := range s.leases {
		list = append(list, l)
	}
	for nonce, l := range s.orphans {
		if s.leases[nonce] == nil {
			list = append(list, l) // their holders may not have left it at that
		}
	}
	s.mu.Unlock()
	inOrder(list)
	s.client.sessionEnded(s)
	// All of the contexts first: a Logger that is slow must not delay what the holders hear.
	first := list[:0:0]
	for _, l := range list {
		if l.stop(cause) {
			first = append(first, l)
		}
	}
	s.client.tellSessionEnded(s, cause, len(list))
	for _, l := range first {
		l.book(cause)
	}
}

// reserve announces an acquisition with the given nonce; false when the session takes none.
func (s *session) reserve(nonce string) bool {
	if s.term.cause() != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired {
		return false
	}
	s.trying[nonce]++
	s.idle = time.Time{}
	return true
}

// unreserve ends what reserve announced; a lease that came of it has been added before.
func (s *session) unreserve(nonce string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trying[nonce]--; s.trying[nonce] <= 0 {
		delete(s.trying, nonce)
	}
	s.rest()
}

// await has a nonce known, until forgo, that is not being tried: a request of it that was answered
// may be delivered once more, and whoever waits then finds itself named by the row. A session on
// which nothing else hangs ends all the same.
func (s *session) await(nonce string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[nonce]++
}

func (s *session) forgo(nonce string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[nonce]--; s.waiting[nonce] <= 0 {
		delete(s.waiting, nonce)
	}
}

func (s *session) add(l *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[l.nonce] = l
	s.idle = time.Time{}
}

func (s *session) remove(nonce string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.leases, nonce)
	delete(s.orphans, nonce)
	s.rest()
}

// orphan takes in that a lease was given up although its release failed: its caller may
// leave it at that, and the session must not keep the row alive. Unless it is alone the lease
// stays known, or who waits here would free the row under a write.
func (s *session) orphan(l *Lease, alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if alone {
		delete(s.leases, l.nonce)
	}
	s.orphans[l.nonce] = l
	s.rest()
}

// freeOrphans tries once more to release what its callers could not.
func (s *session) freeOrphans() {
	s.mu.Lock()
	list := make([]*Lease, 0, len(s.orphans))
	for _, l := range s.orphans {
		list = append(list, l)
	}
	s.mu.Unlock()
	for _, l := range inTurn(list, s.freed) {
		ctx, cancel := s.spare()
		if ctx == nil {
			return
		}
		s.freed = l.key
		if l.takeTurn(ctx) == nil { // or else with the next renewal, as where it fails
			l.orphaned = true // a hand-over may take longer than there is
			if !l.released.Load() {
				_ = l.releaseInTurn(ctx, errors.Is(l.cause(), ErrMaxHold))
			}
			if l.released.Load() {
				s.remove(l.nonce)
			}
			l.endTurn()
		}
		cancel()
	}
}

// rest notes that the session has nothing to do. It is called with mu held.
func (s *session) rest() {
	if len(s.leases)+len(s.trying)+len(s.orphans) == 0 && s.idle.IsZero() {
		s.idle = s.client.clock.Now()
	}
}

// knows says whether a nonce is this process's to hold.
func (s *session) knows(nonce string) (*Lease, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[nonce]; l != nil {
		return l, true
	}
	return nil, s.trying[nonce]+s.waiting[nonce] > 0
}

// retireIfIdle ends a session that nothing has hung on for a lease: a process that holds no
// lock sends nothing.
func (s *session) retireIfIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle.IsZero() || s.client.clock.ago(s.idle) < s.client.config.Lease {
		return false
	}
	s.retired = true
	return true
}

// retire has the goroutine end the session.
func (s *session) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.retired {
		s.retired = true
		close(s.wake)
	}
}

// close ends the term and deletes the row. Should that fail, the row's time to live does it.
func (s *session) close() {
	s.term.end(ErrReleased)
	ctx, cancel := s.client.clock.WithTimeout(context.Background(), detachedTimeout)
	defer cancel()
	scheme := s.client.scheme
	err := s.client.table.Write(ctx, table.Delete(s.key).If(table.Or(
		table.Attr(scheme.PK).NotExists(), table.Attr(scheme.Type).Equal(sessionType))))
	if err != nil {
		s.client.config.Logger.Debug("lock: a session's row was not deleted", "error", err)
	}
}

// inTurn sorts leases by their keys, beginning behind the one that was tried last: there may not be
// time for all, and some may hang each time.
func inTurn(list []*Lease, last keys.Key) []*Lease {
	inOrder(list)
	behind := max(slices.IndexFunc(list, func(l *Lease) bool { return byKey(l.key, last) > 0 }), 0)
	return slices.Concat(list[behind:], list[:behind])
}

// refresh extends the time to live of the rows of locks that have been held for a quarter of the
// retention: nothing else writes them while they are held, and they must not be deleted. What
// was written by a wrong date is seen when a right one comes.
//
// Cost: one conditional write per lock and quarter of the retention.
func (s *session) refresh() {
	c := s.client
	today := c.calendar()
	s.mu.Lock()
	var old []*Lease
	for _, l := range s.leases {
		if c.isDue(l.kept(), today, l.length, l.fence) {
			old = append(old, l)
		}
	}
	s.mu.Unlock()
	for _, l := range inTurn(old, s.refreshed) {
		ctx, cancel := s.spare()
		if ctx == nil {
			return
		}
		s.refreshed = l.key
		err := l.prolong(ctx)
		cancel()
		if failed := (*table.ConditionError)(nil); errors.As(err, &failed) && errors.Is(err, ErrStolen) {
			l.overtaken(failed.Item)
		}
		// Whatever else failed is tried again with the next renewal; most of the retention is left.
	}
}

// spare bounds a request that the goroutine sends between two renewals, which must not be
// late by it: nil when it is time to renew. What counts is what the holders count on, which
// may be half of the lease: less than half of that is left only when a renewal is due.
//
//nolint:nilnil // a nil context is the answer
func (s *session) spare() (context.Context, context.CancelFunc) {
	length := s.term.length
	if s.term.remaining() < length/2 {
		return nil, nil
	}
	return s.client.clock.WithTimeout(table.WithoutRetry(s.term.ctx), min(length/6, maxAttempt))
}
