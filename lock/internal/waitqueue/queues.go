package waitqueue

import (
	"container/list"
	"sync"

	"github.com/mortise-go/mortise/keys"
)

// Queues orders the goroutines of one process that want the same lock: first come, first served.
//
// At most one of them has the process's [Place] in the lock's line. The first to [Queues.Join] gets the place at once. The others wait
// behind it. When the place is over, the next one enters the line. A place can also be passed on without leaving the line: its owner
// hands it to the first waiter, together with a grant.
//
// R is what a waiter requests; the owner that passes the place on can read it. G is the grant that is handed over. The zero value is
// ready for use. All methods may be called from many goroutines, and none blocks.
type Queues[R, G any] struct {
	mu     sync.Mutex // guards the field below, and all places and waiters
	places map[keys.Key]*Place[R, G]
}

// Place is the process's place in the line of one key. It begins when a waiter gets its turn to enter the line, goes on while it is
// passed from one goroutine of the process to the next, and ends with [Place.Over].
type Place[R, G any] struct {
	queues  *Queues[R, G]
	key     keys.Key
	ticket  string
	waiters *list.List // of *Waiter; the place that follows takes over the list
	passes  int        // passes in a row while others stood in the line; not guarded: it is the present owner's
}

// Waiter is one goroutine's wait for a lock.
type Waiter[R, G any] struct {
	// Request is what the waiter wants.
	Request R

	queues  *Queues[R, G]
	waiters *list.List
	element *list.Element // in waiters; nil when it does not wait any more
	turn    chan Turn[R, G]
}

// Turn is what a waiter gets in the end.
type Turn[R, G any] struct {
	// Place belongs to the waiter from now on, until the waiter has handed it on or called [Place.Over].
	Place *Place[R, G]

	// Grant is what was handed over with the place. It is zero if the waiter has to enter the line itself.
	Grant G
}

// Join adds a waiter for the lock of a key, behind all that joined before. The waiter must take its turn, or leave.
func (q *Queues[R, G]) Join(key keys.Key, request R) *Waiter[R, G] {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := &Waiter[R, G]{Request: request, queues: q, turn: make(chan Turn[R, G], 1)}
	if p := q.places[key]; p != nil {
		w.waiters = p.waiters
		w.element = p.waiters.PushBack(w)
	} else {
		w.give(Turn[R, G]{Place: q.begin(key, list.New())})
	}
	return w
}

// Take gives the caller the place of a key, or nil if another goroutine of this process has it.
func (q *Queues[R, G]) Take(key keys.Key) *Place[R, G] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.places[key] != nil {
		return nil
	}
	return q.begin(key, list.New())
}

func (q *Queues[R, G]) begin(key keys.Key, waiters *list.List) *Place[R, G] {
	p := &Place[R, G]{queues: q, key: key, waiters: waiters}
	if q.places == nil {
		q.places = map[keys.Key]*Place[R, G]{}
	}
	q.places[key] = p
	return p
}

// Waiting returns how many goroutines wait behind the place of a key. The owner of the place is not counted.
func (q *Queues[R, G]) Waiting(key keys.Key) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := q.places[key]; p != nil {
		return p.waiters.Len()
	}
	return 0
}

// Ticket returns the ticket with which the place of a key stands in the line; "" if there is no place.
func (q *Queues[R, G]) Ticket(key keys.Key) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := q.places[key]; p != nil {
		return p.ticket
	}
	return ""
}

// Stand records the ticket with which the place stands in the line.
func (p *Place[R, G]) Stand(ticket string) {
	p.queues.mu.Lock()
	defer p.queues.mu.Unlock()
	p.ticket = ticket
}

// Turn returns a channel from which the waiter receives its turn, once. From then on the waiter answers for the place.
func (w *Waiter[R, G]) Turn() <-chan Turn[R, G] { return w.turn }

// Leave gives up waiting, for example when the caller's context has ended. came is true if the turn has come and was not received: the
// caller then answers for the place. A second call does nothing.
func (w *Waiter[R, G]) Leave() (t Turn[R, G], came bool) {
	w.queues.mu.Lock()
	defer w.queues.mu.Unlock()
	if w.remove() {
		return t, false
	}
	select {
	case t = <-w.turn:
		return t, true
	default:
		return t, false
	}
}

// remove reports whether the waiter was still waiting. It is called with mu held.
func (w *Waiter[R, G]) remove() bool {
	if w.element == nil {
		return false
	}
	w.waiters.Remove(w.element)
	w.element = nil
	return true
}

// give ends the wait with the turn. It is called with mu held.
func (w *Waiter[R, G]) give(t Turn[R, G]) {
	w.remove()
	select {
	case w.turn <- t:
	default: // a turn comes only once, so there is room
	}
}

// First returns the first waiter behind the place, which goes on waiting. It returns nil if nobody waits, or the place is over.
func (p *Place[R, G]) First() *Waiter[R, G] {
	p.queues.mu.Lock()
	defer p.queues.mu.Unlock()
	if p.queues.places[p.key] != p {
		return nil
	}
	return p.first()
}

func (p *Place[R, G]) first() *Waiter[R, G] {
	if e := p.waiters.Front(); e != nil {
		return e.Value.(*Waiter[R, G])
	}
	return nil
}

// Hand hands the place on to its first waiter, with a grant. It returns false if the place is over, or if that waiter is not the first
// any more, since it has left. The caller then keeps the place and the grant.
func (p *Place[R, G]) Hand(to *Waiter[R, G], g G) bool {
	p.queues.mu.Lock()
	defer p.queues.mu.Unlock()
	if p.queues.places[p.key] != p || p.first() != to {
		return false
	}
	to.give(Turn[R, G]{p, g})
	return true
}

// Over ends the place, and the next waiter gets its turn to enter the line. Call it for a place that has left the line (released, lost),
// or that never got into it. If the next one entered earlier, it would stand in the line beside this place. Only the first call counts.
func (p *Place[R, G]) Over() {
	p.queues.mu.Lock()
	defer p.queues.mu.Unlock()
	if p.queues.places[p.key] != p {
		return
	}
	w := p.first()
	if w == nil {
		delete(p.queues.places, p.key)
		return
	}
	w.give(Turn[R, G]{Place: p.queues.begin(p.key, p.waiters)})
}

// MayPass reports whether the place may be passed on once more: at most limit times in a row while others stand in the line, and without
// limit while nobody does. others is whether the last answer showed others in the line. Only the place's owner may call it.
func (p *Place[R, G]) MayPass(limit int, others bool) bool { return !others || p.passes < limit }

// Passed counts a pass. others reports whether anybody else stood in the line, as the answer to the pass showed. The place's owner calls
// it before it hands the place on.
func (p *Place[R, G]) Passed(others bool) {
	if p.passes++; !others {
		p.passes = 0
	}
}
