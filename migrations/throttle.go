package migrations

import (
	"context"
	"sync"
	"time"
)

// throttle spaces the requests of a backfill while DynamoDB refuses some of them, so that a table with little capacity has some left for
// the renewals of the backfill's own lock, and for the application. The gap doubles if a request is throttled, and shrinks with each
// request that is not.
type throttle struct {
	turn chan struct{} // has one element, which the next request to begin takes

	mu     sync.Mutex // guards the following
	gap    time.Duration
	last   time.Time // when the last request began
	raised time.Time // when gap was doubled
}

func newThrottle() *throttle {
	t := &throttle{turn: make(chan struct{}, 1)}
	t.turn <- struct{}{}
	return t
}

const (
	leastGap = time.Millisecond
	mostGap  = 10 * time.Second
	settling = 100 * time.Millisecond // at least: until then, and two gaps, refusals are still due to the gap before
)

// wait returns when a request can begin. One at a time waits for the gap to pass, and the others for their turn, so that each one finds
// the gap of that time.
func (t *throttle) wait(ctx context.Context) error {
	select {
	case <-t.turn:
	case <-ctx.Done():
		return endOf(ctx, ctx)
	}
	defer func() { t.turn <- struct{}{} }()
	for {
		d := t.left()
		if d <= 0 {
			return nil
		}
		if err := sleep(ctx, d); err != nil {
			return err
		}
	}
}

// left returns how much of the gap is left. If nothing is, a request begins.
func (t *throttle) left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	d := t.gap - now.Sub(t.last)
	if t.gap == 0 || d <= 0 {
		t.last = now
		return 0
	}
	return d
}

// throttled is called after a request that was refused. It reports whether it is the first one.
func (t *throttle) throttled() (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first = t.raised.IsZero()
	if now := time.Now(); t.gap == 0 || now.Sub(t.raised) >= max(settling, 2*t.gap) {
		t.gap = min(max(2*t.gap, leastGap), mostGap)
		t.raised = now
	}
	return first
}

// passed is called after a request that was not throttled.
func (t *throttle) passed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gap -= t.gap / 10; t.gap < leastGap {
		t.gap = 0
	}
}
