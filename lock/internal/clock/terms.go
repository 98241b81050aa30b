package clock

import (
	"container/heap"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-go/mortise/internal/machine"
)

// ErrEnded is the cause with which a term ends that was not extended in time.
var ErrEnded = errors.New("the lease ended without a renewal")

// Bounds of how often the clocks are compared while a term goes on: the timers of a suspended
// machine stand still with its monotonic clock.
const (
	minTick = 50 * time.Millisecond
	maxTick = time.Second
)

// Terms watches the ends of any number of terms, with one timer. It is safe for concurrent use. It
// does no I/O, so that no request that hangs can delay an end.
type Terms struct {
	clock Clock

	mu    sync.Mutex // guards the following, and the terms in the heap
	heap  termHeap   // by when they are looked at next
	tick  time.Duration
	last  Instant // when the clocks were compared last
	timer machine.Timer
	due   time.Time // when the timer goes off
}

// NewTerms returns one that watches nothing yet.
func NewTerms(c Clock) *Terms { return &Terms{clock: c} }

// Term is the time for which something is held: from the last request that is known to have
// extended it, for a length. It is safe for concurrent use.
type Term struct {
	terms  *Terms
	length time.Duration
	risk   time.Duration
	onEnd  func(cause error)
	onRisk func(atRisk bool)

	// Guarded by terms.mu.
	start  Instant
	next   time.Time // when it is looked at
	at     int       // in the heap; -1 when it is not
	atRisk bool
	ended  bool
	cause  error
	failed error // of the last attempt to extend it; nil after a success
}

// Watch says what becomes of a term.
type Watch struct {
	// End is called once, when the term ends, with the cause. It must not block.
	End func(cause error)
	// Risk is called when less than Part of the length is left, and when more is left again.
	// nil for none. It must not block.
	Risk func(atRisk bool)
	Part float64
}

// Begin starts a term that counts from start, the moment before the request was sent that began it.
func (t *Terms) Begin(start Instant, length time.Duration, w Watch) *Term {
	term := &Term{terms: t, length: length, onEnd: w.End, start: start, at: -1}
	if w.Risk != nil {
		term.risk, term.onRisk = time.Duration(float64(length)*w.Part), w.Risk
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.heap) == 0 {
		t.tick, t.last = maxTick, t.clock.Instant()
	}
	t.tick = min(t.tick, max(length/20, minTick))
	term.plan()
	heap.Push(&t.heap, term)
	t.arm()
	return term
}

// left is how long the term goes on unless extended.
func (t *Term) left() time.Duration { return t.length - t.terms.clock.Age(t.start) }

// plan says when the term has to be looked at: when it comes to be at risk, or ends.
func (t *Term) plan() {
	wait := t.left()
	if t.onRisk != nil && !t.atRisk {
		wait -= t.risk
	}
	t.next = t.terms.clock.Now().Add(wait)
}

// arm sets the timer to the next term's turn, and no further ahead than a tick.
func (t *Terms) arm() {
	if len(t.heap) == 0 {
		if t.timer != nil {
			t.timer.Stop()
		}
		t.due = time.Time{}
		return
	}
	now := t.clock.Now()
	due := now.Add(t.tick)
	if first := t.heap[0].next; first.Before(due) {
		due = first
	}
	if !t.due.IsZero() && !due.Before(t.due) {
		return // it goes off early enough, and arms itself
	}
	t.due = due
	wait := max(due.Sub(now), 0)
	if t.timer == nil {
		t.timer = t.clock.AfterFunc(wait, t.check)
		return
	}
	t.timer.Reset(wait)
}

// check ends what is over. Where the local clocks have moved apart, every term is looked at.
func (t *Terms) check() {
	var calls []func()
	t.mu.Lock()
	t.due = time.Time{}
	now := t.clock.Instant()
	if apart := now.Wall.Sub(t.last.Wall) - now.Mono.Sub(t.last.Mono); apart > 0 {
		for _, term := range t.heap {
			term.plan()
		}
		heap.Init(&t.heap)
	}
	t.last = now
	for len(t.heap) > 0 && !t.heap[0].next.After(now.Mono) {
		if call := t.heap[0].look(); call != nil {
			calls = append(calls, call)
		}
	}
	t.arm()
	t.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// look takes a term whose turn has come to its next state, and returns what is to be called.
func (t *Term) look() func() {
	left := t.left()
	switch {
	case left <= 0:
		cause := ErrEnded
		if t.failed != nil {
			cause = fmt.Errorf("%w; last renewal: %w", ErrEnded, t.failed)
		}
		return t.finish(cause)
	case t.onRisk != nil && !t.atRisk && left <= t.risk:
		t.atRisk = true
		t.plan()
		heap.Fix(&t.terms.heap, t.at)
		return func() { t.onRisk(true) }
	}
	t.plan() // the clocks have been set, or it was extended
	heap.Fix(&t.terms.heap, t.at)
	return nil
}

// finish ends the term, for good.
func (t *Term) finish(cause error) func() {
	t.ended, t.cause = true, cause
	if t.at >= 0 {
		heap.Remove(&t.terms.heap, t.at)
	}
	return func() { t.onEnd(cause) }
}

// Extend says that a request sent at start has extended the term. It returns false when the term
// has ended before: it stays ended.
func (t *Term) Extend(start Instant) bool {
	call, ok := t.extend(start)
	if call != nil {
		call()
	}
	return ok
}

func (t *Term) extend(start Instant) (call func(), ok bool) {
	t.terms.mu.Lock()
	defer t.terms.mu.Unlock()
	if t.ended {
		return nil, false
	}
	if t.left() <= 0 { // nobody has looked yet
		return t.look(), false
	}
	if start.Mono.After(t.start.Mono) {
		t.start = start
	}
	t.failed = nil
	if t.atRisk && t.left() > t.risk {
		t.atRisk = false
		call = func() { t.onRisk(false) }
	}
	t.plan()
	heap.Fix(&t.terms.heap, t.at)
	t.terms.arm()
	return call, true
}

// Failed keeps why the term could not be extended, for the cause of its end.
func (t *Term) Failed(err error) {
	t.terms.mu.Lock()
	defer t.terms.mu.Unlock()
	t.failed = err
}

// End ends the term. The first cause counts.
func (t *Term) End(cause error) {
	t.terms.mu.Lock()
	var call func()
	if !t.ended {
		call = t.finish(cause)
		t.terms.arm()
	}
	t.terms.mu.Unlock()
	if call != nil {
		call()
	}
}

// Remaining is how long the term goes on unless extended; 0 when it has ended.
func (t *Term) Remaining() time.Duration {
	t.terms.mu.Lock()
	defer t.terms.mu.Unlock()
	if t.ended {
		return 0
	}
	return max(t.left(), 0)
}

// Age is how long ago the last request was sent that has extended the term.
func (t *Term) Age() time.Duration {
	t.terms.mu.Lock()
	defer t.terms.mu.Unlock()
	return t.terms.clock.Age(t.start)
}

// Cause is why the term has ended; nil while it goes on. A term whose end was not noticed yet ends
// with this call.
func (t *Term) Cause() error {
	t.terms.mu.Lock()
	var call func()
	if !t.ended && t.left() <= 0 {
		call = t.look()
		t.terms.arm()
	}
	cause := t.cause
	t.terms.mu.Unlock()
	if call != nil {
		call()
	}
	return cause
}

// Failure is why the last attempt to extend the term failed; nil after a success.
func (t *Term) Failure() error {
	t.terms.mu.Lock()
	defer t.terms.mu.Unlock()
	return t.failed
}

// termHeap is for package container/heap.
type termHeap []*Term

func (h termHeap) Len() int           { return len(h) }
func (h termHeap) Less(i, j int) bool { return h[i].next.Before(h[j].next) }
func (h termHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push is for package container/heap.
func (h *termHeap) Push(x any) {
	t := x.(*Term)
	t.at = len(*h)
	*h = append(*h, t)
}

// Pop is for package container/heap.
func (h *termHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.at = -1
	return t
}
