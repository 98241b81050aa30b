package lock

import (
	"slices"

	"github.com/mortise-go/mortise/keys"
)

// onlooker waits in the room until each of several locks could be had, without ever taking
// one alone: nothing is handed to it, so it holds nothing while it waits and cannot
// deadlock. It stands beside the queues, not in them: a lock for which goroutines of this
// process queue is theirs, and an onlooker hears of it when it is freed for everybody. All
// of it but done is guarded by the room's mu.
type onlooker struct {
	left   map[keys.Key]bool   // the locks that still stand in the way
	nonces map[keys.Key]string // what their rows say where the onlooker has got them after all
	ended  map[keys.Key]*ended // of the others, the holders that may be taken for dead
	err    error
	done   chan struct{} // closed when nothing stands in the way any more, or with err
}

// observe has somebody wait for locks that a write has just met held. alive are sessions
// that have just proved to live.
func (r *room) observe(held []*acquisition, alive map[string]*sessionRow) *onlooker {
	o := &onlooker{left: map[keys.Key]bool{}, nonces: map[keys.Key]string{}, ended: map[keys.Key]*ended{}, done: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, row := range alive {
		r.watch(id).proved(row)
	}
	for _, a := range held {
		c := r.contest(a.key)
		c.onlookers = append(c.onlookers, o)
		o.left[a.key], o.nonces[a.key] = true, a.nonce
		if !c.see(&a.seen) || a.again {
			c.pause = true // as in refused
		}
		c.stale = true
	}
	r.changed()
	return o
}

// ignore ends an onlooker's waiting.
func (r *room) ignore(o *onlooker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range o.left {
		c := r.contests[key]
		if c == nil {
			continue
		}
		c.onlookers = slices.DeleteFunc(c.onlookers, func(other *onlooker) bool { return other == o })
		if c.empty() {
			delete(r.contests, key)
		}
	}
	clear(o.left)
	r.changed()
}

// clear tells one onlooker, the first as a rule, that a lock could be had, and no other: they
// would all try at once, and one can succeed. The next hears of it a poll later, should that
// be still so. It is called with mu held.
func (r *room) clear(c *contest, at int, e *ended) {
	o := c.onlookers[at]
	c.onlookers = slices.Delete(slices.Clone(c.onlookers), at, at+1)
	c.pause, c.stale = true, true
	delete(o.left, c.key)
	if e != nil {
		o.ended[c.key] = e
	}
	if len(o.left) == 0 && o.err == nil {
		close(o.done)
	}
	if c.empty() {
		delete(r.contests, c.key)
	}
}

// fail ends the waiting with an error; the first counts. It is called with mu held.
func (o *onlooker) fail(err error) {
	if o.err == nil && len(o.left) > 0 {
		o.err = err
		close(o.done)
	}
}

// outcome is what an onlooker was told, once it is done.
func (r *room) outcome(o *onlooker) (map[keys.Key]*ended, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return o.ended, o.err
}
