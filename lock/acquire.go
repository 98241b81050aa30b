package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-go/mortise/internal/nilctx"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Option changes how a lock is acquired.
type Option func(*acquisition) error

// Fixed acquires a lease of the given length, 100 ms to 24 h in whole milliseconds, that is
// not renewed in the background: for short-lived processes such as serverless functions.
// Lease.Renew extends it. It counts from the request, as any lease: where the answer takes longer, the
// lock is given back, and the error matches ErrExpired.
func Fixed(lease time.Duration) Option {
	return func(a *acquisition) error {
		if lease < MinFixed || lease > MaxFixed {
			return fmt.Errorf("%w: Fixed(%v): want %v to %v", ErrInvalid, lease, MinFixed, MaxFixed)
		}
		a.length, a.fixed = lease.Truncate(time.Millisecond), true
		return nil
	}
}

// acquisition is one call of Acquire or TryAcquire.
type acquisition struct {
	client  *Client
	target  Target
	key     keys.Key
	nonce   string // one for all attempts, so that an earlier one is recognised
	length  time.Duration
	fixed   bool
	maxHold time.Duration // 0 for no limit
	data    payload
	values  context.Context // whose values the lease's context carries

	seen  Record      // the holder that the last refusal named
	from  *ended      // the holder that this try may take over from; nil for none
	alive *sessionRow // what proved its session to live, if that is why it was refused

	// again says that the last two refusals have met the same holder in the same state; of
	// acquisitions of several locks.
	again bool

	run *run // of an interval (Every); nil for others
	job job  // how such runs are repeated

	// seeds are the fences that new rows were to begin with although DynamoDB's time was not
	// known.
	seeds []int64
	// blind says that DynamoDB's time was asked for already: a row that does not exist is
	// made now, whether an answer has told the time or not.
	blind bool

	stake // of this nonce
}

func (c *Client) acquisition(ctx context.Context, target Target, opts []Option) (*acquisition, error) {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	a := &acquisition{client: c, target: target, nonce: c.newNonce(), length: c.config.Lease, maxHold: c.config.MaxHold, values: context.WithoutCancel(ctx)}
	for _, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("%w: nil option", ErrInvalid)
		}
		if err := opt(a); err != nil {
			return nil, err
		}
	}
	if a.run == nil && a.job.option != "" {
		return nil, fmt.Errorf("%w: %s: an option of Every", ErrInvalid, a.job.option)
	}
	var err error
	a.key, err = c.key(target)
	return a, err
}

// TryAcquire takes the lock if nobody holds it. Where somebody does it returns a
// *HeldError, which says who. It does not wait.
//
// Cost: one conditional write, whether it succeeds or not. One more where the client has no
// session yet (unless Fixed); where the lock has been held for longer than a lease under a
// session that is not known to live, and two where that session is dead; where only the answer
// to the first could tell how far the local clock is off, by which others tell when the lease has
// ended, or what fence a new row has to begin with; and two where the row names an earlier
// acquisition of this process that came in late.
func (c *Client) TryAcquire(ctx context.Context, target Target, opts ...Option) (*Lease, error) {
	lease, err := c.acquire(ctx, target, opts, (*acquisition).tryOnce)
	return lease, wrap("try acquire", err)
}

// acquire runs one acquisition, in the way of how, and takes back what it may have left.
func (c *Client) acquire(ctx context.Context, target Target, opts []Option, how func(*acquisition, context.Context) (*Lease, error)) (lease *Lease, err error) {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	began := c.clock.Now()
	defer func() { c.instruments.asked(ctx, c.clock.ago(began), err) }()
	a, err := c.acquisition(ctx, target, opts)
	if err != nil {
		return nil, err
	}
	waiting, leave, err := c.admit(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	defer func() {
		if lease == nil || err != nil {
			lease = nil
			a.abandon(ctx)
		}
		a.letGo()
	}()
	return how(a, waiting)
}

// tryOnce tries and, where the refusal shows that the holder may have died long ago, tries
// to take over from it.
func (a *acquisition) tryOnce(ctx context.Context) (*Lease, error) {
	lease, err := a.try(ctx, nil)
	if !errors.Is(err, ErrHeld) || ctx.Err() != nil {
		return lease, err
	}
	if id := a.seen.Session; id != "" {
		if a.client.mayBeLongDead(&a.seen) {
			return a.takeOver(ctx, &ended{nonce: a.seen.Nonce, fence: a.seen.Fence, beat: -1, session: id, seen: -1})
		}
		return nil, err
	}
	// The first request of a client cannot use its clock; its answer measures it.
	if left, ok := a.client.untilTakeable(a.seen.Until()); ok && left <= 0 {
		return a.try(ctx, &ended{nonce: a.seen.Nonce, fence: a.seen.Fence, beat: -1, seen: -1})
	}
	return nil, err
}

// deadline is the time, in epoch milliseconds, before which a recorded end has to lie to be
// taken for past at now: by the local clock or, where that is fast or may be so, by what
// DynamoDB's is at least, less the skew bound. A clock that is off does not judge: 0.
func (c *Client) deadline(o offset, now time.Time) int64 {
	if c.config.Expiry == ObservedOnly || !o.known {
		return 0
	}
	return now.Add(min(o.least, 0) - c.config.Skew).UnixMilli()
}

// untilTakeable is how long until a recorded end lies back far enough.
func (c *Client) untilTakeable(end time.Time) (time.Duration, bool) {
	if end.IsZero() {
		return 0, false
	}
	// Without a word about a clock that is off: it is called with mutexes held.
	o, _ := c.measured()
	deadline := c.deadline(o, c.clock.wall())
	if deadline <= 0 {
		return 0, false
	}
	// The end has to lie back, not just be reached: milliseconds are compared. One that lies further
	// ahead than a duration says is as good as forever.
	return min(end.Sub(fromMillis(deadline)), forever-time.Millisecond) + time.Millisecond, true
}

// until is the end to record, in epoch milliseconds, for a lease that begins at start; 0
// for none. Others count on it to be late rather than early, so the clock must not be slow
// by more than the bound.
func (c *Client) until(o offset, start instant, length time.Duration) int64 {
	if !o.known || o.most > c.config.Skew {
		return 0
	}
	return start.wall.Add(length).UnixMilli()
}

// offset is the clock's offset; unknown when it is off by more than the bound.
func (c *Client) offset() offset {
	o, by := c.measured()
	if by != 0 {
		c.clockIsOff(by)
	}
	return o
}

// measured is offset without saying so; by is how far the clock is off beyond the bound.
func (c *Client) measured() (o offset, by time.Duration) {
	o = c.clock.offset()
	if by, off := o.beyond(c.config.Skew); off {
		return offset{}, by
	}
	return o, 0
}

// maxRenames bounds how often a try begins anew since its session ended under it.
const maxRenames = 3

// try finds out who holds the lock, and takes it if nobody does. e is a holder that may be
// taken for dead, if there is one. Where this client's own session ends meanwhile, whose
// locks are lost with it, it tries under another session and another nonce; and where the
// row shows that this very nonce was given back, under another nonce.
func (a *acquisition) try(ctx context.Context, e *ended) (*Lease, error) {
	for again := 0; ; again++ {
		lease, err := a.tryNonce(ctx, e)
		anew := errors.Is(err, errFreed) || errors.Is(err, ErrLost) && !a.fixed
		if !anew || again == maxRenames || ctx.Err() != nil {
			return lease, err
		}
		a.abandon(ctx)
		a.letGo()
		a.nonce, a.seeds = a.client.newNonce(), nil
	}
}

// tryNonce sends the acquiring update, again where that helps, until it is clear who holds
// the lock.
func (a *acquisition) tryNonce(ctx context.Context, e *ended) (*Lease, error) {
	c := a.client
	a.from = e
	var s *session
	if !a.fixed {
		var err error
		if s, err = c.session(ctx, a.nonce); err != nil {
			return nil, err
		}
		defer func() { a.keep(s, a.nonce) }()
	}
	var lease *Lease
	var refused error // what is not to be tried again under this nonce: the row may name it
	reclaimed, first := false, c.clock.Now()
	err := c.attempts(ctx, attemptTimeout(a.length), func(attempt context.Context, start instant) error {
		a.sending(doubt{instant: start}, a.length)
		item, err := c.table.Apply(attempt, a.op(start, s, e), table.ReturnNew)
		var failed *table.ConditionError
		switch {
		case err == nil:
			lease, refused = a.granted(ctx, item, doubt{instant: start}, s)
			return nil
		case !errors.As(err, &failed):
			if table.MayHaveApplied(err) {
				a.doubt(doubt{instant: start})
			}
			return err
		case failed.Item == nil && !a.blind:
			a.blind = true // the refusal has told the time, or nothing does
			return errAgain
		case isString(c.of(failed.Item, attrNonce), a.nonce):
			if s != nil && !isString(c.of(failed.Item, attrSession), s.id) {
				// It was applied under a session that has ended since.
				c.reclaim(attempt, a.key, a.nonce, a.length)
				return errFreed
			}
			// An earlier attempt was applied and its answer lost, or it was delivered once more
			// after it was refused: this is our own lock.
			began := a.written(c.of(failed.Item, attrAcquired))
			lease, refused = a.granted(ctx, failed.Item, began, s)
			if errors.Is(refused, ErrLost) && began.mono.Before(first) {
				refused = errFreed // what an earlier try has got too late is no reason to give this one up
			}
			return nil
		}
		r, err := c.recordOf(failed.Item)
		switch {
		case err != nil:
			return err
		case a.run.settled(&r):
			return errSettled
		case !r.Held():
			return errFreed
		}
		a.seen = r
		if !reclaimed && c.isGhost(s, &r) {
			reclaimed = true
			if c.reclaim(attempt, a.key, r.Nonce, a.length) {
				return errAgain
			}
		}
		return heldError(a.target, &r)
	})
	return lease, join(err, refused)
}

// errFreed says that the row was refused and yet names nobody, as a duplicate of a request
// that the network delivered twice can find it, or a waiter whom a hand-over without an
// answer had reached and who was taken for a ghost: there is nothing to wait for.
var errFreed = errors.New("the acquisition was applied and released before its answer came")

// isGhost says that a row names this very session, and a nonce that nobody in the process
// holds or acquires: a request that came in late had acquired for nobody. Without a session (nil, as
// under Fixed) it is the client's.
func (c *Client) isGhost(s *session, r *Record) bool {
	if s == nil {
		s = c.currentSession()
	}
	if s == nil || r.Session != s.id {
		return false
	}
	_, known := s.knows(r.Nonce)
	return !known
}

// handsOver says that a row names this client's session, and a nonce that somebody in the process
// holds or acquires: one that is not known any more was given up while the row was being read.
func (c *Client) handsOver(r *Record) bool {
	s := c.currentSession()
	return s != nil && s.id == r.Session && !c.isGhost(s, r)
}

// op is the acquiring update.
func (a *acquisition) op(start instant, s *session, e *ended) table.Op {
	c := a.client
	o := c.offset()
	now, verified := c.clock.calendar(c.config.Skew)
	g := a.grant(start, s, o, 0)
	if g.existing = !verified && !a.blind; !verified && a.blind {
		a.seeds = append(a.seeds, now.UnixMilli())
	}
	g.seed, g.ended, g.deadline = now.UnixMilli(), e, c.deadline(o, start.wall)
	op := c.rows.acquire(a.key, &g)
	if a.run != nil {
		op = a.run.begin(op)
	}
	return op
}

// grant is what a row will say of this acquisition as its holder. fence is 0 where it is not known.
func (a *acquisition) grant(start instant, s *session, o offset, fence int64) grant {
	c := a.client
	g := grant{
		nonce: a.nonce, owner: c.config.Owner, length: a.length, start: start.wall, ttl: c.deleteAfter(a.length+a.run.told(), fence),
		data: a.data, listed: c.rows.shape.index.sortKey(start.wall, a.nonce),
	}
	if s != nil {
		g.session = s.id
	} else {
		g.until = c.until(o, start, a.length)
	}
	return g
}

// granted makes a lease of a row that names this acquisition. by is the request that wrote
// it, or an earlier one that may have.
func (a *acquisition) granted(ctx context.Context, item table.Item, by doubt, s *session) (lease *Lease, err error) {
	l := a.named(item, by, s)
	defer func() {
		if lease == nil { // refused, or something of the application's has panicked
			err = join(err, l.giveBack(ctx))
		}
	}()
	if err = a.settle(ctx, l, item); err == nil {
		err = l.beginFor(ctx)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// named is granted without what may take requests: settle is next.
func (a *acquisition) named(item table.Item, by doubt, s *session) *Lease {
	l := a.lease(0, by.instant, s).with(payloadOf(a.client.of(item, attrData)))
	l.deletion, l.handed = a.client.deletionOf(item, l.written), by.handed
	return l
}

// settle gives a lease its fence, and its row what could not be known when it was written.
//
// Cost: one conditional write where the fence was wrong, and one for Lease.complete.
func (a *acquisition) settle(ctx context.Context, l *Lease, item table.Item) (err error) {
	if l.fence, err = a.client.fenceOf(item); err == nil && len(a.seeds) > 0 {
		l.fence, err = a.verify(ctx, l.fence)
	}
	if err == nil && l.session == nil {
		err = l.complete(ctx, item)
	}
	if l.path = a.path(item, l.fence); l.handed > 0 {
		l.path = pathHandedOver
	}
	return err
}

// beginFor is begin, for whoever still waits for the lease.
func (l *Lease) beginFor(ctx context.Context) error {
	if ctx.Err() != nil {
		return causeOf(ctx)
	}
	return l.begin()
}

// path tells a takeover from a lock that was free: a holder that has released is named by
// the row, and one that somebody else has followed is more than one fence behind.
func (a *acquisition) path(item table.Item, fence int64) path {
	if e := a.from; e != nil && fence == e.fence+1 && !isString(a.client.of(item, attrReleasedNonce), e.nonce) {
		return pathTakenOver
	}
	return pathFree
}

// verify replaces a fence that a new row began with while DynamoDB's time was not known,
// if the local clock has turned out to be off: fences of a row that was deleted must not
// come again. Nobody has seen the fence yet.
func (a *acquisition) verify(ctx context.Context, fence int64) (int64, error) {
	c := a.client
	seeded := false
	for _, seed := range a.seeds {
		seeded = seeded || fence == seed+1
	}
	now, verified := c.clock.calendar(c.config.Skew)
	if !seeded || !verified || now.Equal(c.clock.wall()) {
		return fence, nil
	}
	right := now.UnixMilli() + 1
	err := c.attempts(ctx, attemptTimeout(a.length), func(ctx context.Context, _ instant) error {
		err := c.table.Write(ctx, c.rows.refence(a.key, a.nonce, fence, right))
		var failed *table.ConditionError
		if errors.As(err, &failed) && isString(c.of(failed.Item, attrNonce), a.nonce) {
			return nil // applied by an attempt whose answer was lost
		}
		return err
	})
	return right, err
}

// abandon takes back what an attempt without a clear answer may have acquired.
func (a *acquisition) abandon(ctx context.Context) {
	if nonce := a.nonce; len(a.doubts()) > 0 {
		a.client.work.Go(func() { a.takeBack(ctx, nonce) }) // which Close waits for
	}
}

// takeBack frees the row if it names this acquisition, for which nobody waits any more.
func (a *acquisition) takeBack(ctx context.Context, nonce string) {
	ctx, cancel := a.client.clock.detached(ctx)
	defer cancel()
	c := a.client
	// Nobody is left to hear of a failure; whoever waits for the row has it freed.
	err := c.giveUp(ctx, a.key, nonce, a.length)
	c.room.gone(a.key, nonce)
	c.config.Logger.Debug("lock: took back an acquisition without an answer", "key", a.key, "error", err)
}

// reclaim frees a row that names nobody in this process; true also where somebody else, who
// takes an acquisition back, was faster.
func (c *Client) reclaim(ctx context.Context, key keys.Key, nonce string, length time.Duration) bool {
	err := c.giveUp(ctx, key, nonce, length)
	return err == nil || errors.Is(err, table.ErrCondition)
}

// giveUp frees the row if it names nonce.
func (c *Client) giveUp(ctx context.Context, key keys.Key, nonce string, length time.Duration) error {
	return c.attempts(ctx, attemptTimeout(length), func(ctx context.Context, start instant) error {
		return c.free(ctx, key, nonce, start.wall)
	})
}

// free sends one release of a row in somebody's place.
//
// Cost: one conditional write; another where the row would be deleted soon.
func (c *Client) free(ctx context.Context, key keys.Key, nonce string, at time.Time) error {
	row, err := c.table.Apply(ctx, c.rows.release(key, nonce, at, 0), table.ReturnNew)
	if failed := (*table.ConditionError)(nil); errors.As(err, &failed) && errors.Is(failed.Err, ErrReleased) {
		row = failed.Item // perhaps by an earlier attempt, whose answer was lost
	}
	c.preserve(ctx, key, row)
	return err
}
