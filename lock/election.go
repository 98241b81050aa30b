package lock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/table"
)

// Lead elects a leader among all instances that call it with the same target, and runs f in the leader. The leader is
// the holder of the lock. If an instance loses the lock, another one becomes the leader, and the first one waits for
// its next turn. Lead returns when f returns as the leader, or when ctx ends.
//
// The context that f gets ends when ctx ends or when the lease ends; [context.Cause] tells why. f has to return then.
// Lead waits for it and never runs f twice at the same time. For a moment, f of an old leader that has not noticed its
// loss can run beside f of the new one. Write through the lease ([Lease.Write]): such writes are exclusive even then.
//
// Lead returns in these cases:
//
//   - f returns, and until then the lock was neither lost nor asked for ([Client.Revoke]). Or f has committed
//     ([Lease.Commit]). The error is that of f, or nil. The lock is released. After a commit without an answer, the error
//     can match [table.ErrUnreachable] also if f has returned nil: see [Client.Do].
//   - ctx ends or the client is closed. The error matches ctx.Err() or [ErrClosed], joined with that of f. f has
//     returned, and the lock is released.
//   - Another attempt cannot help: [ErrInvalid], [ErrNotLock], [ErrMalformed], [ErrMultiRegion], a [*PermitsError], a
//     lock without a row and the option [Existing] ([table.ErrNotFound]), a missing table ([table.ErrNoTable]), keys that
//     differ from the schema ([table.ErrSchema]), a missing permission ([table.ErrDenied]).
//
// In all other cases Lead campaigns again. If the lock was lost ([ErrLost]) or asked for ([ErrRevoked]) while f ran, what f
// returns is ignored, also nil. After [ErrRevoked], Lead pauses for 1.5 s, so that others can get the lock first. After a
// loss or an error, Lead logs that and waits for some 100 ms. If that repeats, the wait grows to at most three quarters of
// [Config.Lease]. A panic in f releases the lock. It is not recovered.
//
// Cost: that of [Client.Acquire], with its wait, and of [Lease.Release].
func (c *Client) Lead(ctx context.Context, target Target, f func(ctx context.Context, lease *Lease) error, opts ...Option) error {
	if f == nil {
		return wrap("lead", invalid("nil function"))
	}
	opts = slices.Concat(opts, []Option{heldAlone("Lead")})
	p := c.campaign(ctx, c.config.Lease/2)
	return wrap("lead", p.run(func() (over bool, err error) {
		l, err := one(c.acquire(ctx, []Target{target}, opts, (*acquisition).wait))
		if err != nil {
			return false, err
		}
		err = p.hold(ctx, l, f)
		cause := l.cause()
		released := l.giveBack(ctx)
		switch {
		case p.open.Err() != nil:
			return true, p.ended(err, released)
		case cause == nil && errors.Is(released, ErrLost) && !l.inDoubt(): // the release was the first to notice the loss
			return false, released
		case l.committed.Load():
			return true, err // as in Do
		case cause == nil, errors.Is(cause, ErrReleased):
			_, err = l.outcome(err, released)
			return true, err
		}
		return false, cause // if the release has failed, renewals repeat it
	}))
}

// campaign is what Lead and Every have in common: they repeat an attempt that may still succeed, until ctx ends or the client is
// closed.
type campaign struct {
	client *Client
	open   context.Context // the caller's context, which Close ends, too
	stop   func()
	waits  backoff.BackOff
}

// afterRevoke is how long a campaign pauses after a Revoke, so that others get the lock.
const afterRevoke = 1500 * time.Millisecond

func (c *Client) campaign(ctx context.Context, longest time.Duration) *campaign {
	p := &campaign{client: c}
	p.open, p.stop = until(ctx, c.closing)
	p.waits = machine.Backoff(c.clk(),
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(longest), // spread by half, up or down
		backoff.WithMaxElapsedTime(0),
	)
	return p
}

// run calls once until that reports over, or another attempt cannot help. It returns the last error.
func (p *campaign) run(once func() (over bool, err error)) error {
	defer p.stop()
	for {
		over, err := once()
		if over {
			return err
		}
		if err := p.again(err); err != nil {
			return err
		}
	}
}

// again waits until the next attempt is due. err is the error of the last attempt, or the cause of its lease's end. If again returns an
// error, there is no next attempt.
func (p *campaign) again(err error) error {
	c := p.client
	switch {
	case err == nil:
		p.waits.Reset()
		return nil
	case p.open.Err() != nil:
		return attempt.WithCause(p.open, err)
	case errors.Is(err, errSettled):
		return nil
	case errors.Is(err, ErrRevoked):
		return c.clk().Sleep(p.open, afterRevoke) // an operator may want the lock
	}
	if !again(err) || errors.As(err, new(*PermitsError)) {
		return err
	}
	for _, final := range []error{ErrNotLock, ErrMalformed, ErrClosed, ErrMultiRegion, ErrNoTime, table.ErrNotFound} {
		if errors.Is(err, final) {
			return err
		}
	}
	c.config.Logger.Warn("lock: campaigning again", "error", err)
	return c.clk().Sleep(p.open, p.waits.NextBackOff())
}

// hold runs f under a lease. If that lasts longer than a lease, the waits between attempts begin short again.
func (p *campaign) hold(ctx context.Context, l *Lease, f func(context.Context, *Lease) error) error {
	clk := p.client.clk()
	began := clk.Now()
	err := l.hold(ctx, f)
	if clk.Ago(began) > p.client.config.Lease {
		p.waits.Reset()
	}
	return err
}

// orGiveBack runs f. It releases the lock if f panics or ends its goroutine (runtime.Goexit).
func (l *Lease) orGiveBack(f func()) {
	returned := false
	defer func() {
		if !returned {
			_ = l.giveBack(context.Background())
		}
	}()
	f()
	returned = true
}

// ended returns the cause of the campaign's end, joined with err of f, and with the release's error unless that is ErrLost.
func (p *campaign) ended(err, released error) error {
	if errors.Is(released, ErrLost) {
		released = nil
	}
	if err == nil {
		return join(causeOf(p.open), joinRelease(nil, released))
	}
	if !errors.Is(err, p.open.Err()) || !errors.Is(err, context.Cause(p.open)) {
		err = join(causeOf(p.open), err)
	}
	return join(err, released)
}
