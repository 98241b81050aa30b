package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Option changes how a lock is acquired.
type Option func(*acquisition) error

// Fixed acquires a lease of the given length, 100 ms to 24 h, that is not renewed in the
// background: for short-lived processes such as serverless functions. Lease.Renew extends it.
func Fixed(lease time.Duration) Option {
	return func(a *acquisition) error {
		if lease < MinFixed || lease > MaxFixed {
			return fmt.Errorf("%w: Fixed(%v): want %v to %v", ErrInvalid, lease, MinFixed, MaxFixed)
		}
		a.length, a.fixed = lease, true
		return nil
	}
}

// acquisition is one call of Acquire or TryAcquire.
type acquisition struct {
	client *Client
	target Target
	key    keys.Key
	nonce  string // one for all attempts, so that an earlier one is recognised
	length time.Duration
	fixed  bool

	seen Record // the holder that the last refusal named

	// unclear is when the first attempt was sent whose answer was lost: it may have been
	// applied, and the lease then began at that time.
	unclear instant
}

func (c *Client) acquisition(target Target, opts []Option) (*acquisition, error) {
	a := &acquisition{client: c, target: target, nonce: newNonce(), length: c.config.Lease}
	for _, opt := range opts {
		if err := opt(a); err != nil {
			return nil, err
		}
	}
	var err error
	a.key, err = c.key(target)
	return a, err
}

// TryAcquire takes the lock if nobody holds it. Where somebody does it returns a
// *HeldError, which says who. It does not wait.
//
// Cost: one conditional write, whether it succeeds or not; a second one where only the
// answer to the first could tell how far the local clock is off.
func (c *Client) TryAcquire(ctx context.Context, target Target, opts ...Option) (*Lease, error) {
	a, err := c.acquisition(target, opts)
	if err != nil {
		return nil, wrap("try acquire", err)
	}
	ctx, stop := c.waiting(ctx)
	defer stop()
	lease, err := a.try(ctx, nil)
	if held := (*HeldError)(nil); errors.As(err, &held) && a.mayHaveEnded(held) {
		lease, err = a.try(ctx, nil)
	}
	if err != nil {
		a.abandon(ctx)
		return nil, wrap("try acquire", err)
	}
	return lease, nil
}

// mayHaveEnded says that a lock was refused although, as the clock is known now, its
// recorded end lies back far enough: the first request of a client cannot use its clock.
func (a *acquisition) mayHaveEnded(held *HeldError) bool {
	end, ok := a.client.recordedEnd(held.Until)
	return ok && a.client.clock.wall().After(end)
}

// recordedEnd is when a lease that was recorded to end at until may be taken for ended.
func (c *Client) recordedEnd(until time.Time) (time.Time, bool) {
	if until.IsZero() || c.config.Expiry == ObservedOnly {
		return time.Time{}, false
	}
	how, by := c.clock.measure(c.config.Skew)
	switch how {
	case skewBeyond:
		c.clockIsOff(by)
		return time.Time{}, false
	case skewUnknown:
		return time.Time{}, false
	}
	return until.Add(c.config.Skew), true
}

// waiting is ctx, ended with ErrClosed by Close.
func (c *Client) waiting(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.closing, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// observation is a holder that was seen without a renewal for a whole lease.
type observation struct {
	nonce string
	beat  int64
}

// try sends the acquiring update, again where that helps, until it is clear who holds the
// lock. ended is a holder that may be taken for dead, if there is one.
func (a *acquisition) try(ctx context.Context, ended *observation) (*Lease, error) {
	c := a.client
	var lease *Lease
	err := c.attempts(ctx, a.length/3, func(attempt context.Context, start instant) error {
		item, err := c.table.Apply(table.WithoutRetry(attempt), a.op(start, ended), table.ReturnNew)
		var failed *table.ConditionError
		switch {
		case err == nil:
			lease, err = a.granted(ctx, item, start)
			return err
		case !errors.As(err, &failed):
			if a.unclear.mono.IsZero() && mayHaveBeenApplied(err) {
				a.unclear = start
			}
			return err
		}
		r, err := c.recordOf(failed.Item)
		switch {
		case err != nil:
			return err
		case r.Nonce == a.nonce:
			// An earlier attempt was applied and its answer lost: this is our own lock.
			began := a.unclear
			if began.mono.IsZero() {
				began = start
			}
			lease, err = a.granted(ctx, failed.Item, began)
			return err
		case !r.Held():
			return errFreed
		}
		a.seen = r
		return heldError(a.target, &r)
	})
	return lease, err
}

// op is the acquiring update.
func (a *acquisition) op(start instant, ended *observation) table.Op {
	c := a.client
	s := &c.scheme
	how, by := c.clock.measure(c.config.Skew)
	if how == skewBeyond {
		c.clockIsOff(by)
	}
	var (
		nonce   = table.Attr(attrNonce)
		expires = table.Attr(attrExpires)
		beat    = table.Attr(attrBeat)
	)
	// A row of this package, with a fence to go on from; and not the row that this very
	// acquisition has released again, or an attempt that comes in late would take it.
	takeable := []table.Cond{table.And(nonce.NotExists(), table.Attr(attrReleasedNonce).NotEqual(a.nonce))}
	whole := []table.Cond{nonce.IsType("S"), beat.IsType("N"), table.Attr(attrLease).IsType("N"), table.Attr(attrSession).NotExists()}
	if how == skewWithin && c.config.Expiry == RecordedOrObserved {
		takeable = append(takeable, table.And(append(whole[:len(whole):len(whole)],
			expires.Less(start.wall.Add(-c.config.Skew).UnixMilli()))...))
	}
	if ended != nil {
		takeable = append(takeable, table.And(append(whole[:len(whole):len(whole)],
			nonce.Equal(ended.nonce), beat.Equal(ended.beat))...))
	}
	cond := table.Or(
		table.Attr(s.PK).NotExists(),
		table.And(table.Attr(s.Type).Equal(recordType), table.Attr(attrFence).IsType("N"), table.Or(takeable...)),
	)
	fence := table.Attr(attrFence)
	changes := make([]table.Change, 0, 12)
	changes = append(changes,
		table.Attr(s.Type).Set(recordType),
		fence.Set(fence.OrElse(c.clock.fenceSeed()).Plus(1)),
		nonce.Set(a.nonce),
		table.Attr(attrOwner).Set(c.config.Owner),
		table.Attr(attrLease).Set(a.length.Milliseconds()),
		beat.Set(0),
		table.Attr(attrAcquired).Set(start.wall.UnixMilli()),
		table.Attr(s.TTL).Set(c.deleteAfter(start, a.length)),
		table.Attr(attrReleased).Remove(),
		table.Attr(attrSession).Remove(),
	)
	if how == skewWithin {
		changes = append(changes, expires.Set(start.wall.Add(a.length).UnixMilli()))
	} else {
		changes = append(changes, expires.Remove())
	}
	return table.Update(a.key, changes...).If(cond)
}

// deleteAfter is the time to live of a row, in epoch seconds.
func (c *Client) deleteAfter(start instant, lease time.Duration) int64 {
	return start.wall.Add(lease+c.config.Retention).Unix() + 1
}

// granted makes a lease of a row that names this acquisition. start lies before the
// request was sent that wrote it.
func (a *acquisition) granted(ctx context.Context, item table.Item, start instant) (*Lease, error) {
	c := a.client
	r, err := c.recordOf(item)
	if err != nil {
		return nil, err
	}
	l := &Lease{client: c, target: a.target, key: a.key, nonce: a.nonce, fence: r.Fence, length: a.length, turn: make(chan struct{}, 1)}
	l.beat.Store(r.Beat)
	l.term = newTerm(ctx, c.clock, start, a.length-c.config.margin(a.length))
	switch {
	case ctx.Err() != nil: // nobody is waiting for it any more
		err = causeOf(ctx)
	case l.term.remaining() == 0: // the answer took longer than the lease
		err = ErrExpired
	case !c.adopt(l), !a.fixed && !c.run(l.keep):
		err = ErrClosed
	default:
		l.term.begin(l.ended)
		return l, nil
	}
	return nil, errors.Join(err, l.giveBack(ctx))
}

// errFreed says that the row was refused and yet names nobody, as a duplicate of a
// request that the network delivered twice can find it: there is nothing to wait for.
var errFreed = errors.New("the acquisition was applied and released before its answer came")

// abandon takes back what an attempt without a clear answer may have acquired.
func (a *acquisition) abandon(ctx context.Context) {
	if a.unclear.mono.IsZero() {
		return
	}
	c := a.client
	release := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), detachedTimeout)
		defer cancel()
		// Nobody is left to hear of a failure; the row frees itself with its lease.
		err := c.table.Write(ctx, c.releaseOp(a.key, a.nonce))
		c.config.Logger.Debug("lock: took back an acquisition without an answer", "key", a.key, "error", err)
	}
	if !c.run(release) {
		release()
	}
}

// mayHaveBeenApplied says that a failed request tells nothing about its effect.
func mayHaveBeenApplied(err error) bool {
	for _, kind := range []error{
		table.ErrThrottled, table.ErrConflict, table.ErrInvalid, table.ErrNoTable, table.ErrDenied, table.ErrCredentials,
	} {
		if errors.Is(err, kind) {
			return false
		}
	}
	return true
}

// attempts calls f until it succeeds, fails for good, or ctx or the table's retry policy
// ends. Each call has a timeout of its own and learns when it began.
func (c *Client) attempts(ctx context.Context, timeout time.Duration, f func(ctx context.Context, start instant) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	wait := lazyBackoff{table: c.table}
	for {
		bounded, cancel := context.WithTimeout(ctx, timeout)
		err := f(bounded, c.clock.now())
		timedOut := bounded.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return joinCause(ctx, err)
		case !timedOut && !c.table.Retryable(err):
			return err
		}
		if stop := wait.sleep(ctx); stop != nil {
			if ctx.Err() != nil {
				return joinCause(ctx, err)
			}
			return err
		}
	}
}
