package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/internal/nilctx"
	"github.com/mortise-go/mortise/table"
)

const (
	// detachedTimeout bounds what has to be sent although the caller's context has ended.
	detachedTimeout = 5 * time.Second

	// maxAttempt bounds a single request, so that one that hangs leaves time for others.
	maxAttempt = 3 * time.Second
)

// attemptTimeout bounds a request under a lease of the given length.
func attemptTimeout(lease time.Duration) time.Duration { return min(lease/3, maxAttempt) }

// attempts calls f until it succeeds, fails for good, or ctx or the table's retry policy
// ends. Each call has a timeout of its own and learns when it began.
func (c *Client) attempts(ctx context.Context, timeout time.Duration, f func(ctx context.Context, start instant) error) error {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	if ctx.Err() != nil {
		return causeOf(ctx)
	}
	wait := lazyBackoff{client: c}
	for {
		bounded, cancel := c.clock.WithTimeout(ctx, timeout)
		err := f(table.WithoutRetry(bounded), c.clock.instant())
		timedOut := bounded.Err() != nil && errors.Is(err, context.DeadlineExceeded)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return joinCause(ctx, err)
		case errors.Is(err, errAgain):
			continue
		case !timedOut && !c.table.Retryable(err):
			return err
		}
		if stop := wait.sleep(ctx); stop != nil {
			if errors.Is(stop, errStopped) {
				c.instruments.gaveUp(ctx)
			}
			return joinCause(ctx, err)
		}
		c.instruments.again()
	}
}

// lazyBackoff makes its backoff when it is first needed, which is rarely.
type lazyBackoff struct {
	client *Client
	wait   backoff.BackOff
}

// sleep waits for the next attempt; an error means that there should be none.
func (b *lazyBackoff) sleep(ctx context.Context) error {
	if b.wait == nil {
		b.wait = b.client.table.Backoff()
	}
	d := b.wait.NextBackOff()
	if d == backoff.Stop {
		return errStopped
	}
	return b.client.clock.sleep(ctx, d)
}

// errAgain asks attempts for another attempt at once.
var errAgain = errors.New("again")

var errStopped = errors.New("retries are exhausted")

// sleep returns early, with the cause, when ctx ends.
func (c clock) sleep(ctx context.Context, d time.Duration) error {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return causeOf(ctx)
	}
}

// causeOf is why ctx ended, with ctx.Err() in sight.
func causeOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	switch {
	case cause == nil: // of a context of somebody else's making, which tells its children later
		return ctx.Err()
	case errors.Is(cause, ctx.Err()):
		return cause
	}
	return fmt.Errorf("%w: %w", cause, ctx.Err())
}

// joinCause adds to the error of a request why its context ended, if it did.
func joinCause(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case ctx.Err() == nil || errors.Is(err, ctx.Err()) && errors.Is(err, cause):
		return err
	case errors.Is(cause, err): // which says nothing more
		return causeOf(ctx)
	}
	return fmt.Errorf("%w; last attempt: %w", causeOf(ctx), err)
}

// join is both errors in one line.
func join(first, second error) error { return errs.Join(first, second) }

// detach returns ctx, or a context with a bound of its own where ctx has ended already:
// giving a lock back must not depend on it.
func (c clock) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	if ctx.Err() == nil {
		return context.WithCancel(ctx)
	}
	return c.detached(ctx)
}

// detached returns a context that does not end with ctx, but after a bound of its own.
func (c clock) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	return c.WithTimeout(context.WithoutCancel(ctx), detachedTimeout)
}
