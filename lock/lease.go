package lock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Lease is a lock that was acquired. It is safe for concurrent use.
type Lease struct {
	client *Client
	target Target
	key    keys.Key
	nonce  string
	fence  int64
	length time.Duration
	fixed  bool // nobody renews it in the background
	term   *term

	mu   sync.Mutex // guards the following; never held across I/O
	beat int64      // the last one used

	// turn is held while a guarded write or the release is under way: two transactions
	// that check one row conflict with each other.
	turn chan struct{}
	// idle is set when nobody is to renew the lease any more.
	idle atomic.Bool
	// released is set when the row no longer names this lease because it gave it back.
	released atomic.Bool
}

// Context ends no later than the lease: when it is lost, with a cause that matches
// ErrLost, or released, with ErrReleased. It carries the values of the context that
// Acquire got, but does not end with it.
func (l *Lease) Context() context.Context { return l.term.ctx }

// whenEnded calls f with the cause when the lease ends, unless stopped before.
func (l *Lease) whenEnded(f func(cause error)) (stop func() bool) {
	return context.AfterFunc(l.term.ctx, func() { f(context.Cause(l.term.ctx)) })
}

// Fence is the fencing token: a number that is greater for every later holder of this
// lock. A resource outside the table can refuse smaller numbers than it has seen.
func (l *Lease) Fence() int64 { return l.fence }

// Target is what was acquired.
func (l *Lease) Target() Target { return l.target }

// Key is the key of the lock's row.
func (l *Lease) Key() keys.Key { return l.key }

// Remaining is how long the lease lasts unless renewed, by the more pessimistic of the
// wall and the monotonic clock; 0 when it has ended.
func (l *Lease) Remaining() time.Duration { return l.term.remaining() }

// Release gives the lock up. It may be called again after an error, and does nothing after
// success. Where ctx has ended already the request is sent all the same, bounded by 5 s.
// It waits for guarded writes under way. After an error other than ErrLost the row may
// still be held: it is not renewed any more, so that a caller who leaves it at that holds
// it for one lease at most. ErrLost means that the lock had been lost before.
//
// Cost: one conditional write.
func (l *Lease) Release(ctx context.Context) error {
	ctx, cancel := detach(ctx)
	defer cancel()
	return l.release(ctx)
}

func (l *Lease) release(ctx context.Context) error {
	if err := l.takeTurn(ctx); err != nil {
		return wrap("release", err)
	}
	defer l.endTurn()
	if l.released.Load() {
		return nil
	}
	err := l.client.giveUp(ctx, l.key, l.nonce, l.length)
	var failed *table.ConditionError
	switch {
	case err == nil:
	case !errors.As(err, &failed):
		l.idle.Store(true)
		return wrap("release", err)
	case errors.Is(failed.Err, ErrReleased):
		// An earlier attempt was applied and its answer lost.
	default:
		l.stolen()
		return wrap("release", failed.Err)
	}
	l.gaveBack()
	return nil
}

// gaveBack books that the row does not name this lease any more.
func (l *Lease) gaveBack() {
	l.released.Store(true)
	l.term.end(ErrReleased)
	l.client.forget(l)
}

// stolen books that the row names somebody else, or is gone.
func (l *Lease) stolen() {
	l.term.end(ErrStolen)
	l.client.forget(l)
}

// giveBack releases a lease that its acquirer never got to see.
func (l *Lease) giveBack(ctx context.Context) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	err := l.release(ctx)
	l.term.end(ErrReleased)
	l.client.forget(l)
	return err
}

func (l *Lease) takeTurn(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return causeOf(ctx)
	}
}

func (l *Lease) endTurn() { <-l.turn }

// ended is called once, when the term ends.
func (l *Lease) ended(cause error) {
	c := l.client
	if l.fixed {
		// Nobody has to release a lease that ends by itself: do not keep it for Close.
		c.forget(l)
	}
	if !errors.Is(cause, ErrLost) || l.idle.Load() {
		return // given up, not lost
	}
	c.config.Logger.Warn("lock: lost", "fence", l.fence, "cause", cause)
	if c.config.OnLost != nil {
		// Not one of the client's goroutines: the application may well close it there.
		go c.config.OnLost(l, cause)
	}
}
