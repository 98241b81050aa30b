package lock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-go/mortise/internal/machine"
)

// term is the time for which something is held: from the last proven renewal to the end
// of the lease, with a context that ends no later. It does no I/O; a timer of its own
// watches the end, so no request that hangs can delay the signal.
type term struct {
	clock  clock
	length time.Duration // what the holder counts on: the lease less the margin
	tick   time.Duration // how often the wall clock is looked at
	ctx    context.Context
	cancel context.CancelCauseFunc
	onEnd  func(cause error)

	mu      sync.Mutex
	start   instant // of the last request that is known to have been applied
	timer   machine.Timer
	ended   bool
	renewal error // of the last renewal, when it failed
}

// newTerm makes a term that began at start, before the request that began it was sent.
// Nobody watches it before begin.
func newTerm(clk clock, start instant, length time.Duration) *term {
	t := &term{clock: clk, length: length, tick: min(max(length/20, 50*time.Millisecond), time.Second), start: start}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	return t
}

// begin has the end watched; onEnd is called once, when it comes.
func (t *term) begin(onEnd func(cause error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.onEnd = onEnd
	t.timer = t.clock.AfterFunc(t.wait(), t.check)
}

// left is how long the term goes on unless extended. It is called with mu held.
func (t *term) left() time.Duration { return t.length - t.clock.since(t.start) }

// wait is how long the timer may sleep. A suspended machine's timers stand still with its
// monotonic clock, hence the tick.
func (t *term) wait() time.Duration { return max(min(t.left(), t.tick), 0) }

func (t *term) check() {
	t.mu.Lock()
	if t.ended {
		t.mu.Unlock()
		return
	}
	if t.left() > 0 {
		if t.timer != nil {
			t.timer.Reset(t.wait())
		}
		t.mu.Unlock()
		return
	}
	renewal := t.renewal
	t.mu.Unlock()
	cause := ErrExpired
	if renewal != nil {
		cause = fmt.Errorf("%w; last renewal: %w", ErrExpired, renewal)
	}
	t.end(cause)
}

// remaining is how long the term goes on unless extended; 0 when it has ended.
func (t *term) remaining() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return 0
	}
	return max(t.left(), 0)
}

// age is how long ago the term was begun or renewed last.
func (t *term) age() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clock.ago(t.start.mono)
}

// extend tells of a renewal whose request was sent at start and applied. It returns false
// when the term had ended before: it stays ended.
func (t *term) extend(start instant) bool {
	t.check()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	if start.mono.After(t.start.mono) {
		t.start = start
	}
	t.renewal = nil
	return true
}

// failed remembers why the last renewal failed, to say so when the term ends by it.
func (t *term) failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewal = err
}

// end ends the term; the first cause counts.
func (t *term) end(cause error) {
	t.mu.Lock()
	if t.ended {
		t.mu.Unlock()
		return
	}
	t.ended = true
	if t.timer != nil {
		t.timer.Stop()
	}
	onEnd := t.onEnd
	t.mu.Unlock()
	t.cancel(cause)
	if onEnd != nil {
		onEnd(cause)
	}
}

// cause is why the term ended; nil while it goes on.
func (t *term) cause() error {
	t.check()
	return context.Cause(t.ctx)
}
