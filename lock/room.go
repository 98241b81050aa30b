package lock

import (
	"sync"

	"github.com/mortise-go/mortise/keys"
)

// room is where a process waits. However many goroutines wait for however many locks, one
// goroutine looks at the rows, in batches, and it runs only while somebody waits.
type room struct {
	client *Client
	wake   chan struct{} // of capacity 1: the schedule has changed

	mu       sync.Mutex // guards the following; never held across I/O
	contests map[keys.Key]*contest
	sessions map[string]*sessionWatch // of the holders that are waited for
	looking  bool                     // the goroutine runs
}

func newRoom(c *Client) *room {
	return &room{client: c, contests: map[keys.Key]*contest{}, sessions: map[string]*sessionWatch{}, wake: make(chan struct{}, 1)}
}

// enter queues an acquisition. first says that nobody of this process stands before it: it
// is its turn to try at once, and others wait for what comes of that.
func (r *room) enter(a *acquisition) (w *waiter, first bool) {
	w = &waiter{acquisition: a, news: make(chan news, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	first = r.contests[a.key] == nil
	c := r.contest(a.key)
	if !first && c.leaving() {
		c.stale = true // what was planned was for those who leave
	}
	c.queue = append(c.queue, w)
	if first {
		c.trying = w
	} else {
		r.changed()
	}
	return w, first
}

// contest finds or makes the contest for a key. It is called with mu held.
func (r *room) contest(key keys.Key) *contest {
	c := r.contests[key]
	if c == nil {
		c = &contest{clock: r.client.clock, key: key, next: r.client.clock.Now()}
		r.contests[key] = c
	}
	return c
}

// changed has the goroutine look at the schedule again, and starts it where it does not
// run. It is called with mu held.
func (r *room) changed() {
	if !r.looking && len(r.contests) > 0 && r.client.run(r.look) {
		r.looking = true
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// holder is who was last seen to hold the lock that w waits for.
func (r *room) holder(w *waiter) (Record, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.heirOf.Held() {
		return w.heirOf, true
	}
	if c := r.contests[w.acquisition.key]; c != nil && c.holder.Held() {
		return c.holder, true
	}
	return Record{}, false
}

// leave ends w's waiting. If it was w's turn, the next in line gets it. It returns a lease
// that was handed to w and not taken in.
func (r *room) leave(w *waiter) *Lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.gone = true
	key := w.acquisition.key
	if c := r.contests[key]; c != nil {
		if c.remove(w) && c.trying == w {
			c.trying = nil
			c.next = r.client.clock.Now()
		}
		if c.empty() {
			delete(r.contests, key)
		}
		r.changed()
	}
	select {
	case n := <-w.news:
		return n.lease
	default:
		return nil
	}
}

// refused takes in that w's try met a holder, which is how things are: also where that is
// less than what was read before, as after a table was restored.
func (r *room) refused(w *waiter, holder *Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.contests[w.acquisition.key]
	if c == nil {
		return
	}
	c.trying = nil
	if !c.see(holder) {
		c.pause = true // nothing has changed and yet it was refused: never spin on that
	}
	c.stale = true
	r.changed()
}

// lives takes in that the session that w took for dead has proved to live.
func (r *room) lives(w *waiter, session string, row *sessionRow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch(session).proved(row)
	if c := r.contests[w.acquisition.key]; c != nil {
		c.trying = nil
		c.stale = true
		r.changed()
	}
}

// watch finds or makes what is known of a session. It is called with mu held.
func (r *room) watch(id string) *sessionWatch {
	w := r.sessions[id]
	if w == nil {
		w = &sessionWatch{clock: r.client.clock}
		r.sessions[id] = w
	}
	return w
}

// acquired takes in that the waiter who was told to try has got the lock. It is nobody's heir any
// more, though it has yet to leave: what would be handed to it is what it holds.
func (r *room) acquired(w *waiter, l *Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.contests[l.key]
	if c == nil {
		return
	}
	c.trying = nil
	if c.remove(w); c.empty() {
		delete(r.contests, l.key)
		r.changed()
		return
	}
	r.held(l)
}

// handed takes in that the row names the lease of an heir now. The next in line may be
// trying meanwhile, and hears from its own try.
func (r *room) handed(l *Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held(l)
}

// held is for a lease of this client that holds the lock now. It is called with mu held.
func (r *room) held(l *Lease) {
	c := r.contests[l.key]
	if c == nil {
		return
	}
	row := Record{
		Fence: l.fence, Nonce: l.nonce, Owner: r.client.config.Owner,
		Lease: l.length.Milliseconds(), Acquired: l.since.UnixMilli(), Data: l.lastData(),
	}
	if l.session != nil {
		row.Session = l.session.id
	}
	c.see(&row)
	c.stale = true
	r.changed()
}

// heir takes the first waiter out of the queue, to be handed l's lock; nil where nobody
// waits, or the first is trying already, or has seen a later holder.
func (r *room) heir(l *Lease) *waiter {
	if r.client.closing.Err() != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.contests[l.key]
	if c == nil || c.trying != nil || len(c.queue) == 0 || c.holder.Fence > l.fence || c.queue[0].acquisition.run != nil {
		return nil // who is to run an interval, the row decides
	}
	w := c.queue[0]
	w.heirOf = c.holder
	c.queue = c.queue[1:]
	if c.empty() {
		delete(r.contests, l.key)
		r.changed()
	}
	return w
}

// back puts an heir that could not be served back to where it was; false when it has left. left is
// by what it may have been handed the lock, if it may, and under the session that knows its nonce.
func (r *room) back(w *waiter, under *session, left ...doubt) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.gone {
		return false
	}
	a := w.acquisition
	for _, d := range left {
		a.doubt(d)
	}
	a.keep(under, a.nonce)
	w.heirOf = Record{}
	c := r.contest(a.key)
	c.queue = append([]*waiter{w}, c.queue...)
	c.next = r.client.clock.Now()
	r.changed()
	return true
}

// deliver hands a lease to a waiter that was taken out of its queue; false when it has left.
func (r *room) deliver(w *waiter, l *Lease) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !w.gone && w.tell(news{lease: l})
}

// fail tells a waiter that was taken out of its queue that it waits in vain.
func (r *room) fail(w *waiter, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.dismiss(err)
}

// freed takes in that a lock was freed although somebody here may wait for it, since it has
// been handed over often enough in a row: others get their turn, so wait a little.
func (r *room) freed(l *Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.contests[l.key]
	if c == nil || c.trying != nil {
		return
	}
	c.stale, c.fresh, c.pause = true, true, true
	c.holder = Record{Fence: l.fence, ReleasedNonce: l.nonce}
	c.since = r.client.clock.Now()
	if len(c.onlookers) > 0 {
		r.clear(c, 0, nil)
	}
	r.changed()
}

// gone takes in that what this client had under a nonce is over, however that came about: whoever
// waits for it to be handed over looks at once.
func (r *room) gone(key keys.Key, nonce string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.contests[key]
	if c == nil || c.trying != nil || c.holder.Nonce != nonce {
		return
	}
	c.next = r.client.clock.Now()
	r.changed()
}
