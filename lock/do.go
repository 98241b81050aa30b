package lock

import (
	"context"
	"errors"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/table"
)

// Do acquires a lock, runs f, and releases the lock. It waits for the lock as [Client.Acquire] does, and takes the same
// options. The context that f gets ends when ctx ends or when the lease ends; [context.Cause] tells why.
//
// f can end the lease itself, with [Lease.Commit]: then there is nothing left to release. A panic in f releases the
// lock. It is not recovered.
//
// The error is that of f, joined with that of the release. If the lock was lost while f ran, the error matches
// [ErrLost], also if f returned nil: f may have written before. If it is not known whether a [Lease.Commit] was applied, the
// error matches [table.ErrUnreachable] instead. If f has succeeded and the release has failed, [table.MayBeApplied] is true of the error.
// The release is sent even if ctx has ended; it then takes at most 5 s.
//
// Cost: that of [Client.Acquire] and of [Lease.Release], which is nothing after a commit.
func (c *Client) Do(ctx context.Context, target Target, f func(ctx context.Context, lease *Lease) error, opts ...Option) error {
	if f == nil {
		return wrap("do", invalid("nil function"))
	}
	lease, err := c.Acquire(ctx, target, opts...)
	if err != nil {
		return err
	}
	return lease.finish(ctx, lease.hold(ctx, f))
}

// TryDo is [Client.Do] without waiting: it runs f if nobody holds the lock or waits for it. Otherwise f does not run, and held
// tells who holds the lock. That is not an error.
//
//	held, err := locks.TryDo(ctx, lock.Name("report"), report)
//	if held != nil {
//		log.Print("skipped: ", held) // another instance does it
//	}
//
// If f itself returns an [ErrHeld], about another lock, err is that error and held is nil.
//
// Cost: that of [Client.TryAcquire] and of [Lease.Release], which is nothing after a commit.
func (c *Client) TryDo(ctx context.Context, target Target, f func(ctx context.Context, lease *Lease) error, opts ...Option) (held *HeldError, err error) {
	if f == nil {
		return nil, wrap("try do", invalid("nil function"))
	}
	lease, err := c.TryAcquire(ctx, target, opts...)
	switch {
	case errors.As(err, &held):
		return held, nil
	case err != nil:
		return nil, err
	}
	return nil, lease.finish(ctx, lease.hold(ctx, f))
}

// hold runs f under the lease. If f panics, hold releases the lock.
func (l *Lease) hold(ctx context.Context, f func(context.Context, *Lease) error) (err error) {
	inside, stop := until(ctx, l.ctx)
	defer stop()
	l.orGiveBack(func() { err = f(inside, l) })
	return err
}

func (l *Lease) finish(ctx context.Context, err error) error {
	lost := l.cause()
	if l.committed.Load() || l.is().Over() && !errors.Is(lost, ErrLost) {
		return err // f has ended the lease itself
	}
	released := wrap("release", l.giveBack(ctx))
	switch {
	case released == nil && errors.Is(lost, ErrLost) && !errors.Is(err, ErrLost):
		released = wrap("do", lost)
	case errors.Is(released, ErrLost) && errors.Is(err, ErrLost):
		released = nil // err says it already
	}
	doubt, err := l.outcome(err, released)
	if doubt {
		return wrap("do", err)
	}
	return err
}

// outcome joins the error of a function, which has run under the lease, with that of the release. doubt means that a commit of the
// function may have been applied, although the lock was lost: then the error does not match ErrLost.
func (l *Lease) outcome(err, released error) (doubt bool, _ error) {
	if err = joinRelease(err, released); l.inDoubt() && errors.Is(err, ErrLost) {
		return true, unknown(errs.Kind(table.ErrUnreachable, err))
	}
	return false, err
}

// joinRelease joins the error of a function, which has run under a lease, with that of the release. If the function has succeeded, it may
// have written, even if the release was refused for certain: see [table.MayBeApplied].
func joinRelease(err, released error) error {
	if err == nil {
		return errs.WithOutcome(released, true)
	}
	return join(err, released)
}
