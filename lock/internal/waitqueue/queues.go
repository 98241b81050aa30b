package waitqueue

import (
	"maps"
	"sync"

	"github.com/mortise-go/mortise/keys"
)

// Queues orders the goroutines of one process that want the same lock: first come, first served.
//
// At most one of them has the process's [Place] in the lock's line. The first to [Queues.Join] gets the place at once:
// it is its turn to enter the line. The others wait behind it. When the place is over, it is the next one's turn. A
// place can also be passed on without leaving the line: its owner claims the first waiter by [Place.Claim] and hands it
// what it waits for.
//
// R is what a waiter requests, which the one who passes the place on can read. G is what a grant hands over.
//
// The zero value is ready for use. All methods may be called from many goroutines, and none blocks.
type Queues[R, G any] struct {
	mu    sync.Mutex // guards everything below it, and in the lines, places, claims and waiters
	lines map[keys.Key]*line[R, G]
	most  int           // lines at once since the map was made
	ready chan struct{} // closed: of all whose turn comes when they join
}

// line is what the process has to do with one key: the owner of its place, and the waiters behind it.
type line[R, G any] struct {
	key         keys.Key
	place       *Place[R, G] // never nil: a line without a place and without waiters is deleted
	first, last *Waiter[R, G]
	waiting     int
}

// Join adds a waiter for the lock of a key, behind all that joined before. It has to be ended by [Waiter.Place],
// [Waiter.Grant] or [Waiter.Leave].
func (q *Queues[R, G]) Join(key keys.Key, request R) *Waiter[R, G] {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := &Waiter[R, G]{queues: q, request: request}
	l := q.lines[key]
	if l == nil {
		l = q.add(key)
		w.line, w.ready = l, q.ready
		q.turn(w)
		return w
	}
	w.line, w.ready = l, make(chan struct{})
	l.push(w)
	return w
}

// Waiting returns how many goroutines wait behind the place of a key. Its owner is not among them.
func (q *Queues[R, G]) Waiting(key keys.Key) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lines[key]; l != nil {
		return l.waiting
	}
	return 0
}

// add begins the line of a key. It is called with mu held.
func (q *Queues[R, G]) add(key keys.Key) *line[R, G] {
	if q.lines == nil {
		q.lines = map[keys.Key]*line[R, G]{}
		q.ready = make(chan struct{})
		close(q.ready)
	}
	l := &line[R, G]{key: key}
	q.lines[key] = l
	q.most = max(q.most, len(q.lines))
	return l
}

// turn gives a new place to a waiter that is in no list. It is called with mu held.
func (q *Queues[R, G]) turn(w *Waiter[R, G]) {
	w.state, w.place = itsTurn, &Place[R, G]{queues: q, line: w.line}
	w.line.place = w.place
}

// end ends a place, and it is the next waiter's turn. It is called with mu held.
func (q *Queues[R, G]) end(p *Place[R, G]) {
	l := p.line
	if l.place != p {
		return // it has ended before
	}
	if w := l.first; w != nil {
		l.remove(w)
		q.turn(w)
		close(w.ready)
		return
	}
	delete(q.lines, l.key)
	if l.place = nil; q.most > manyLines && len(q.lines) < q.most/4 {
		q.shrink()
	}
}

// manyLines is how many lines a map may have had without being made anew.
const manyLines = 1000

// shrink makes the map anew, since maps never give memory back. It is called with mu held.
func (q *Queues[R, G]) shrink() {
	lines := make(map[keys.Key]*line[R, G], len(q.lines))
	maps.Copy(lines, q.lines)
	q.lines, q.most = lines, len(lines)
}

func (l *line[R, G]) push(w *Waiter[R, G]) {
	l.waiting++
	if w.before = l.last; w.before != nil {
		w.before.after = w
	} else {
		l.first = w
	}
	l.last = w
}

func (l *line[R, G]) remove(w *Waiter[R, G]) {
	l.waiting--
	if w.before != nil {
		w.before.after = w.after
	} else {
		l.first = w.after
	}
	if w.after != nil {
		w.after.before = w.before
	} else {
		l.last = w.before
	}
	w.before, w.after = nil, nil
}

// Waiter is one goroutine's wait for a lock.
type Waiter[R, G any] struct {
	queues  *Queues[R, G]
	line    *line[R, G]
	request R
	ready   chan struct{}

	state         state
	taken         bool // the caller knows how the wait ended, and answers for it
	place         *Place[R, G]
	grant         G
	before, after *Waiter[R, G]
}

// state is how far a waiter has come.
type state int

const (
	waits   state = iota
	itsTurn       // to enter the line itself
	granted       // something was handed to it
	left
)

// Ready returns a channel that is closed when the wait is over: it is the waiter's turn to enter the line itself, or a
// grant was handed to it.
func (w *Waiter[R, G]) Ready() <-chan struct{} { return w.ready }

// Grant returns what was handed to the waiter. It reports false if it is the waiter's turn to enter the line itself,
// or if the wait is not over. After true, the caller answers for the grant.
func (w *Waiter[R, G]) Grant() (G, bool) {
	w.queues.mu.Lock()
	defer w.queues.mu.Unlock()
	if w.state != granted {
		var none G
		return none, false
	}
	w.taken = true
	return w.grant, true
}

// Place returns the process's place: after a grant the one that was passed on, otherwise a new one, with which the
// caller enters the line. It returns nil if the wait is not over, or was given up. The caller answers for the place,
// until it has passed it on or called [Place.Over].
func (w *Waiter[R, G]) Place() *Place[R, G] {
	w.queues.mu.Lock()
	defer w.queues.mu.Unlock()
	if w.state == itsTurn || w.state == granted {
		w.taken = true
		return w.place
	}
	return nil
}

// Leave gives up waiting, for instance since the caller's context has ended. Those behind move up.
//
// If a grant was handed over meanwhile, Leave returns it, and the caller has to give it back: release it, or pass it
// on. If it was the waiter's turn meanwhile, it becomes the next one's turn, as by [Place.Over]. A second call does
// nothing, and neither does a call after [Waiter.Grant] reported true or [Waiter.Place] returned a place.
func (w *Waiter[R, G]) Leave() (G, bool) {
	var none G
	w.queues.mu.Lock()
	defer w.queues.mu.Unlock()
	switch {
	case w.taken:
	case w.state == waits:
		w.line.remove(w)
		w.state = left
	case w.state == itsTurn:
		w.state = left
		w.queues.end(w.place)
	case w.state == granted:
		w.taken = true
		return w.grant, true
	}
	return none, false
}
