package lock

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/table"
)

// Lead runs f while this process holds the lock, and campaigns again whenever it was lost:
// one of the instances that call it leads. f's context ends with ctx and with the lease,
// whose cause it then has; f has to return then, and is waited for: it never runs twice at
// once in one call. While f of a leader that has lost the lock, and does not know yet, still
// runs, f of the next one may run too: what it writes through its lease is exclusive all the
// same.
//
// Lead returns when
//   - f returns while the lease goes on, or after f has released it, or after a Commit of f's
//     has succeeded, whatever was heard of the lease before: with f's error, nil included, and
//     the lock released;
//   - ctx ends, or the client is closed: with an error that matches ctx.Err() or ErrClosed,
//     joined with f's, after f has returned and the lock was released;
//   - campaigning again cannot help: ErrInvalid, ErrNotLock, ErrMalformed, ErrMultiRegion, a
//     missing table or permission.
//
// Where else the lease was lost or asked back (ErrLost, ErrRevoked) f's error is not looked at.
// After ErrRevoked others get the first turn. Requests that fail for other reasons are logged
// and repeated, with waits of up to half of Config.Lease, for as long as ctx lasts. A panic
// of f releases the lock and goes on.
//
// Cost: that of Acquire, waiting included, and of Release.
func (c *Client) Lead(ctx context.Context, target Target, f func(ctx context.Context, lease *Lease) error, opts ...Option) error {
	if f == nil {
		return wrap("lead", invalid("nil function"))
	}
	p := c.campaign(ctx)
	defer p.stop()
	for {
		lease, err := one(c.acquire(ctx, []Target{target}, opts, (*acquisition).wait))
		if err == nil {
			var over bool
			if over, err = p.lead(ctx, lease, f); over {
				return wrap("lead", err)
			}
		}
		if err := p.again(err); err != nil {
			return wrap("lead", err)
		}
	}
}

// campaign is what Lead and Every go by: it repeats what heals until ctx ends or the client
// is closed.
type campaign struct {
	client *Client
	open   context.Context // the caller's, which Close ends, too
	stop   func()
	waits  backoff.BackOff
}

// afterRevoke is how long a campaign pauses whose lock was asked back.
const afterRevoke = 1500 * time.Millisecond

// minWait is the first wait after a campaign that has failed.
const minWait = 100 * time.Millisecond

func (c *Client) campaign(ctx context.Context) *campaign {
	p := &campaign{client: c}
	p.open, p.stop = c.open(ctx)
	p.waits = machine.Backoff(c.clk(),
		backoff.WithInitialInterval(minWait),
		backoff.WithMaxInterval(max(c.config.Lease/2, minWait)),
		backoff.WithMaxElapsedTime(0),
	)
	return p
}

// heals reports whether campaigning again can help against err.
func heals(err error) bool {
	for _, final := range []error{
		ErrInvalid, ErrNotLock, ErrMalformed, ErrClosed, ErrMultiRegion, errNoTime,
		table.ErrNoTable, table.ErrDenied, table.ErrSchema,
	} {
		if errors.Is(err, final) {
			return false
		}
	}
	return true
}

// again waits for the next attempt after err, which may be the cause of a lease's end; an
// error means that there should be none.
func (p *campaign) again(err error) error {
	c := p.client
	switch {
	case p.open.Err() != nil:
		return attempt.WithCause(p.open, err)
	case !heals(err):
		return err
	case errors.Is(err, ErrRevoked):
		return c.clk().Sleep(p.open, afterRevoke) // an operator may want it
	}
	c.config.Logger.Warn("lock: campaigning again", "error", err)
	return p.client.clk().Sleep(p.open, p.waits.NextBackOff())
}

// lead runs f under a lease and releases it. over means that the campaign ends with err;
// otherwise err is why the lease ended before f did.
func (p *campaign) lead(ctx context.Context, l *Lease, f func(context.Context, *Lease) error) (over bool, err error) {
	cause, err := p.hold(ctx, l, f)
	ctx, cancel := p.client.clk().Detached(ctx)
	defer cancel()
	released := l.release(ctx)
	switch {
	case p.open.Err() != nil:
		if errors.Is(released, ErrLost) {
			released = nil
		}
		return true, join(p.ended(err), released)
	case l.committed.Load(), cause == nil, errors.Is(cause, ErrReleased):
		return true, join(err, released)
	}
	if released != nil && !errors.Is(released, ErrLost) {
		p.client.config.Logger.Warn("lock: could not release between two campaigns", "error", released)
	}
	return false, cause
}

// hold runs f, and returns how the lease ended, if it had when f returned. Where f panics the
// lock is released.
func (p *campaign) hold(ctx context.Context, l *Lease, f func(context.Context, *Lease) error) (cause, err error) {
	began := p.client.clk().Now()
	inside, stop := until(ctx, context.Cause, l.ctx)
	defer stop()
	returned := false
	defer func() {
		if !returned { // a panic, or runtime.Goexit
			ctx, cancel := p.client.clk().Detached(ctx)
			defer cancel()
			if err := l.release(ctx); err != nil {
				p.client.config.Logger.Warn("lock: could not release after a panic", "error", err)
			}
		}
	}()
	err = f(inside, l)
	returned = true
	if p.client.clk().Ago(began) > p.client.config.Lease {
		p.waits.Reset()
	}
	return l.cause(), err
}

// ended is why the campaign ended, and what f said to it.
func (p *campaign) ended(err error) error {
	ctx := p.open
	if err != nil && errors.Is(err, ctx.Err()) && errors.Is(err, context.Cause(ctx)) {
		return err // says so already
	}
	return join(causeOf(ctx), err)
}
