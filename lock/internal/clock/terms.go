package clock

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mortise-go/mortise/internal/machine"
)

// ErrEnded is the cause with which a term ends if it was not extended in time.
var ErrEnded = errors.New("the lease ended without a renewal")

// Each term is looked at every twentieth of its length, within these bounds. A timer for the end is not enough: while a machine is
// suspended, timers stand still with its monotonic clock, and only the wall clock shows that the term has ended.
const (
	minTick = 50 * time.Millisecond
	maxTick = time.Second
)

// Terms watches the ends of any number of terms. It is safe for concurrent use. It does no I/O, so a request that hangs cannot delay an
// end.
//
// There is one timer, for the next end or the next look. Each time that it goes off, all terms are looked at in the order in which they
// began. So terms that end at the same moment end in that order.
type Terms struct {
	clock Clock

	mu    sync.Mutex // guards the fields below, and the terms; never held during a callback
	list  []*Term    // also terms that have ended since the last look
	timer machine.Timer
	due   time.Time // monotonic: when the timer goes off; zero if it is not set
}

// NewTerms returns a Terms that watches nothing yet.
func NewTerms(c Clock) *Terms { return &Terms{clock: c} }

// Term is the time for which something is held: a length, counted from the last request that is known to have extended it. It is safe for
// concurrent use.
type Term struct {
	terms  *Terms
	length time.Duration
	watch  Watch

	// Guarded by terms.mu.
	start  Instant
	cause  error // why the term has ended; nil while it goes on
	failed error // error of the last attempt to extend it; nil after a success
}

// Watch is what is called for a term. The functions must not block.
type Watch struct {
	// Tell is called once, when the term ends, with the cause. If several terms end at the same moment, Tell is called for all of them
	// before End is called for any. It may be nil.
	Tell func(cause error)
	// End is called once, after Tell, with the cause.
	End func(cause error)
	// Low is called when LowAt or less is left, and again with each look while that is so. It may be nil.
	Low   func()
	LowAt time.Duration
}

// Begin starts a term that counts from start: a moment before the request was sent that began it.
func (t *Terms) Begin(start Instant, length time.Duration, w Watch) *Term {
	term := &Term{terms: t, length: length, watch: w, start: start}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(t.list, term)
	t.arm(term.wait(t.clock.Instant()))
	return term
}

// arm makes the timer go off after wait, unless it goes off earlier anyway. It is called with mu held.
func (t *Terms) arm(wait time.Duration) {
	due := t.clock.Now().Add(wait)
	switch {
	case !t.due.IsZero() && !due.Before(t.due):
		return
	case t.timer == nil:
		t.timer = t.clock.AfterFunc(wait, t.look)
	default:
		t.timer.Reset(wait)
	}
	t.due = due
}

func (t *Terms) look() {
	var calls, ends []func()
	t.mu.Lock()
	now, next := t.clock.Instant(), maxTick
	t.list = slices.DeleteFunc(t.list, func(term *Term) bool {
		if term.finish(now, nil) {
			calls = append(calls, func() { term.watch.tell(term.cause) })
			ends = append(ends, func() { term.watch.End(term.cause) })
		}
		if term.cause != nil {
			return true
		}
		if term.watch.Low != nil && term.left(now) <= term.watch.LowAt {
			calls = append(calls, term.watch.Low)
		}
		next = min(next, term.wait(now))
		return false
	})
	if t.due = (time.Time{}); len(t.list) > 0 {
		t.arm(next)
	}
	t.mu.Unlock()
	for _, call := range append(calls, ends...) {
		call()
	}
}

func (w *Watch) tell(cause error) {
	if w.Tell != nil {
		w.Tell(cause)
	}
}

func (t *Term) left(now Instant) time.Duration {
	if t.cause != nil {
		return 0
	}
	return max(t.length-now.Since(t.start), 0)
}

// wait returns how long it takes until the term has to be looked at. It is called with mu held.
func (t *Term) wait(now Instant) time.Duration {
	left := t.left(now)
	if left > t.watch.LowAt {
		left -= t.watch.LowAt
	}
	return min(left, max(t.length/20, minTick), maxTick)
}

// finish ends the term if its time is over, or else for cause, if that is not nil. It reports whether this call has ended the term: if
// so, the caller must call Tell and End of watch after it has released mu. It is called with mu held.
func (t *Term) finish(now Instant, cause error) bool {
	switch {
	case t.cause != nil:
		return false
	case t.left(now) > 0:
		t.cause = cause
	case t.failed != nil:
		t.cause = fmt.Errorf("%w; last renewal: %w", ErrEnded, t.failed)
	default:
		t.cause = ErrEnded
	}
	return t.cause != nil
}

// Extend records that a request sent at start has extended the term. It returns false if the term has ended before: such a term stays
// ended.
func (t *Term) Extend(start Instant) bool { return t.update(start, nil) == nil }

// End ends the term. The first cause counts.
func (t *Term) End(cause error) { _ = t.update(Instant{}, cause) }

// Cause returns why the term has ended; nil while it goes on. If its time is over and nobody has noticed, the term ends with this call.
func (t *Term) Cause() error { return t.update(Instant{}, nil) }

// update ends the term if its time is over or there is a cause. Otherwise it extends the term. It returns why the term has ended.
func (t *Term) update(start Instant, cause error) error {
	t.terms.mu.Lock()
	ends := t.finish(t.terms.clock.Instant(), cause)
	if cause = t.cause; cause == nil && start.Mono.After(t.start.Mono) {
		t.start, t.failed = start, nil
	}
	t.terms.mu.Unlock()
	if ends {
		t.watch.tell(cause)
		t.watch.End(cause)
	}
	return cause
}

// Failed records why the term could not be extended. The cause of its end will contain that.
func (t *Term) Failed(err error) {
	t.terms.mu.Lock()
	defer t.terms.mu.Unlock()
	t.failed = err
}

// Failure returns why the last attempt to extend the term failed; nil after a success.
func (t *Term) Failure() error {
	t.terms.mu.Lock()
	defer t.terms.mu.Unlock()
	return t.failed
}

// Remaining returns how long the term goes on unless it is extended; 0 if it has ended.
func (t *Term) Remaining() time.Duration {
	t.terms.mu.Lock()
	defer t.terms.mu.Unlock()
	return t.left(t.terms.clock.Instant())
}
