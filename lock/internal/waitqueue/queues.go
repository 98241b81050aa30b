package waitqueue

import (
	"container/list"
	"sync"

	"github.com/mortise-go/mortise/keys"
)

// Queues orders the goroutines of one process that want the same lock: first come, first served.
//
// At most one of them has the process's [Place] in the lock's line. The first to [Queues.Join] gets it at once, the others
// wait behind it. When the place is over, it is the next one's turn to enter the line. A place can also be passed on
// without leaving the line: its owner claims the first waiter by [Place.Claim] and hands it what it waits for.
//
// R is what a waiter requests, which the one who passes the place on can read. G is what a grant hands over. The zero
// value is ready for use. All methods may be called from many goroutines, and none blocks.
type Queues[R, G any] struct {
	mu    sync.Mutex // guards all places, claims and waiters, too
	lines map[keys.Key]*line[R, G]
}

// line is what the process has to do with one key. A line without a place and without waiters is deleted.
type line[R, G any] struct {
	key     keys.Key
	place   *Place[R, G]
	waiters list.List // of *Waiter, behind the owner of the place
}

// Join adds a waiter for the lock of a key, behind all that joined before. It has to be ended by [Waiter.Place],
// [Waiter.Grant] or [Waiter.Leave].
func (q *Queues[R, G]) Join(key keys.Key, request R) *Waiter[R, G] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lines == nil {
		q.lines = map[keys.Key]*line[R, G]{}
	}
	l := q.lines[key]
	if l == nil {
		l = &line[R, G]{key: key}
		q.lines[key] = l
	}
	w := &Waiter[R, G]{queues: q, line: l, request: request, ready: make(chan struct{})}
	w.element = l.waiters.PushBack(w)
	if l.place == nil {
		q.next(l)
	}
	return w
}

// Waiting returns how many goroutines wait behind the place of a key. Its owner is not among them.
func (q *Queues[R, G]) Waiting(key keys.Key) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lines[key]; l != nil {
		return l.waiters.Len()
	}
	return 0
}

// next makes it the first waiter's turn to enter the line. It is called with mu held.
func (q *Queues[R, G]) next(l *line[R, G]) {
	l.place = nil
	if l.waiters.Len() == 0 {
		delete(q.lines, l.key)
		return
	}
	l.place = &Place[R, G]{queues: q, line: l}
	l.waiters.Front().Value.(*Waiter[R, G]).end(itsTurn, l.place)
}

// Waiter is one goroutine's wait for a lock.
type Waiter[R, G any] struct {
	queues  *Queues[R, G]
	line    *line[R, G]
	element *list.Element // of the line's waiters
	request R
	ready   chan struct{}
	state   state
	taken   bool         // the caller knows how the wait ended, and answers for it
	place   *Place[R, G] // nil while it waits, and after it left
	grant   G
}

// state is how far a waiter has come.
type state int

const (
	waits   state = iota
	itsTurn       // to enter the line itself
	granted       // something was handed to it
	left
)

// end ends the wait. It is called with mu held.
func (w *Waiter[R, G]) end(how state, p *Place[R, G]) {
	w.line.waiters.Remove(w.element)
	w.state, w.place = how, p
	if how != left {
		close(w.ready)
	}
}

// Ready returns a channel that is closed when the wait is over: it is the waiter's turn to enter the line itself, or a
// grant was handed to it.
func (w *Waiter[R, G]) Ready() <-chan struct{} { return w.ready }

// Grant returns what was handed to the waiter. It reports false if it is the waiter's turn to enter the line itself,
// or if the wait is not over. After true, the caller answers for the grant.
func (w *Waiter[R, G]) Grant() (g G, ok bool) {
	w.queues.mu.Lock()
	defer w.queues.mu.Unlock()
	w.taken = w.taken || w.state == granted
	return w.grant, w.state == granted
}

// Place returns the process's place: after a grant the one that was passed on, otherwise a new one. It returns nil if the
// wait is not over, or was given up. The caller answers for the place, until it has passed it on or called [Place.Over].
func (w *Waiter[R, G]) Place() *Place[R, G] {
	w.queues.mu.Lock()
	defer w.queues.mu.Unlock()
	w.taken = w.taken || w.place != nil
	return w.place
}

// Leave gives up waiting, for instance since the caller's context has ended. If a grant was handed over meanwhile, Leave
// returns it, and the caller has to give it back: release it, or pass it on. If it was the waiter's turn meanwhile, it
// becomes the next one's, as by [Place.Over]. A second call does nothing, and neither does a call after [Waiter.Grant]
// reported true or [Waiter.Place] returned a place.
func (w *Waiter[R, G]) Leave() (g G, ok bool) {
	w.queues.mu.Lock()
	defer w.queues.mu.Unlock()
	switch {
	case w.taken:
	case w.state == waits:
		w.end(left, nil)
	case w.state == itsTurn:
		p := w.place
		w.state, w.place = left, nil
		p.over()
	case w.state == granted:
		w.taken = true
		return w.grant, true
	}
	return g, false
}

// Place is the process's place in the line of one key. It begins when it is a waiter's turn to enter the line, goes on
// while it is passed from one goroutine of the process to the next, and ends with [Place.Over].
type Place[R, G any] struct {
	// Handoffs counts how often the place was passed on. It belongs to the present owner of the place.
	Handoffs Handoffs

	queues *Queues[R, G]
	line   *line[R, G]
	claim  *Claim[R, G] // that is not settled
}

// Over ends the place: it is the next waiter's turn to enter the line. It is for a place that has left the line (released,
// lost), and for one that never got into it: one that enters before would stand in the line beside its predecessor. Only
// the first call counts. A claim that is not settled is void: it is the claimed waiter's turn.
func (p *Place[R, G]) Over() {
	p.queues.mu.Lock()
	defer p.queues.mu.Unlock()
	p.over()
}

// over is called with mu held.
func (p *Place[R, G]) over() {
	if p.line.place == p {
		p.queues.next(p.line)
	}
}

// Claim reserves the first waiter behind the place, for a pass under way: it waits on. Claim returns nil if nobody waits,
// if the place is over, or if there is a claim already. The caller settles it by [Claim.Hand] or [Claim.Cancel].
func (p *Place[R, G]) Claim() *Claim[R, G] {
	p.queues.mu.Lock()
	defer p.queues.mu.Unlock()
	if p.line.place != p || p.claim != nil || p.line.waiters.Len() == 0 {
		return nil
	}
	p.claim = &Claim[R, G]{place: p, waiter: p.line.waiters.Front().Value.(*Waiter[R, G])}
	return p.claim
}

// Claim is a waiter to which a place is about to be passed.
type Claim[R, G any] struct {
	place  *Place[R, G]
	waiter *Waiter[R, G]
}

// Request returns what the claimed waiter requests.
func (c *Claim[R, G]) Request() R { return c.waiter.request }

// Hand settles the claim: the waiter gets the grant, and answers for the place from now on. It reports false if the waiter
// has left, or if the claim was settled or is void. The caller then still has the grant.
func (c *Claim[R, G]) Hand(g G) bool {
	c.place.queues.mu.Lock()
	defer c.place.queues.mu.Unlock()
	if !c.settle() || c.waiter.state != waits {
		return false
	}
	c.waiter.grant = g
	c.waiter.end(granted, c.place)
	return true
}

// Cancel settles the claim: the pass did not happen. It does nothing if the claim was settled or is void.
func (c *Claim[R, G]) Cancel() {
	c.place.queues.mu.Lock()
	defer c.place.queues.mu.Unlock()
	c.settle()
}

// settle reports whether the claim was not settled before. It is called with mu held.
func (c *Claim[R, G]) settle() bool {
	open := c.place.claim == c
	if open {
		c.place.claim = nil
	}
	return open
}

// Handoffs bounds how often in a row a place is passed on within the process while other processes stand in the line. The
// zero value is that of a new place. It is not safe for concurrent use.
type Handoffs struct{ inRow int }

// May reports whether the place may be passed on once more: at most limit times in a row while others stand in the
// line, and without limit while nobody does. others is what the last answer showed of the line.
func (h *Handoffs) May(limit int, others bool) bool { return !others || h.inRow < limit }

// Passed counts a pass. others reports whether anybody else stood in the line, as the answer to the pass showed it.
func (h *Handoffs) Passed(others bool) {
	if h.inRow++; !others {
		h.inRow = 0
	}
}
