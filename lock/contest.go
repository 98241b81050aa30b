package lock

import (
	"math"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/keys"
)

// forever is a time that something else will cut short.
const forever = time.Duration(math.MaxInt64)

// ended is a holder that may be taken for dead, as far as was seen; the writes re-check it.
type ended struct {
	nonce   string
	fence   int64
	beat    int64  // of a lease of its own that was silent for all of it; otherwise negative
	session string // of others
	seen    int64  // beat of a session that was silent for a whole lease; otherwise negative
	dead    bool   // the session is known to be dead
}

// contest is one lock that goroutines of this process wait for, first come first served.
// Only the first of them ever sends a write. All of it is guarded by the room's mu.
type contest struct {
	clock    clock
	key      keys.Key
	queue    []*waiter
	trying   *waiter         // has been told to try, and has not reported yet; others may stand before it by now
	holder   Record          // as last seen
	since    time.Time       // monotonic: when this beat of this holder was seen first
	polls    backoff.BackOff // of the room's goroutine alone, and without mu: it may be the application's
	patience backoff.BackOff // likewise: how long to go on where the row cannot be read; nil where it was
	next     time.Time       // when to look, or to try, again; does not count while stale
	early    time.Time       // from when on a look at others takes this one along
	stale    bool            // has changed since next was set
	fresh    bool            // polls begin anew
	pause    bool            // a try of this very state was refused: wait a poll in any case
	asked    bool            // whether the holder was asked about this nonce

	onlookers []*onlooker // who wait for the lock to come free, without taking it
}

// empty says that nobody waits here.
func (c *contest) empty() bool { return len(c.queue) == 0 && len(c.onlookers) == 0 }

// remove takes a waiter out of the queue; false where it is not in it.
func (c *contest) remove(w *waiter) bool {
	n := len(c.queue)
	c.queue = slices.DeleteFunc(c.queue, func(other *waiter) bool { return other == w })
	return len(c.queue) < n
}

// fail tells the first in line that looking at the lock has failed.
func (c *contest) fail(err error) {
	if len(c.queue) > 0 {
		c.queue[0].dismiss(err)
		return
	}
	c.onlookers[0].fail(err)
}

// leaving says that whoever is first here was told an error and has not left yet: looking at
// the lock for them once more would be in vain.
func (c *contest) leaving() bool {
	if len(c.queue) > 0 {
		return c.queue[0].leaving
	}
	return c.onlookers[0].err != nil
}

// waiter is one call of Acquire that waits.
type waiter struct {
	acquisition *acquisition
	news        chan news // of capacity 1
	leaving     bool      // was told an error; guarded by the room's mu
	gone        bool      // has left; guarded by the room's mu
	heirOf      Record    // who is about to hand over to it, as last seen; guarded by the room's mu
}

// news is what a waiter waits for: its turn to try, a lease that was handed over, or an error.
type news struct {
	ended *ended
	lease *Lease
	err   error
}

// tell never blocks: a waiter is told one thing at a time, and the first counts.
func (w *waiter) tell(n news) bool {
	select {
	case w.news <- n:
		return true
	default:
		return false
	}
}

// dismiss tells a waiter that it waits in vain. It is called with the room's mu held.
func (w *waiter) dismiss(err error) {
	if w.tell(news{err: err}) {
		w.leaving = true
	}
}

// newer says whether r comes after what was seen last, or is an older sighting of a read
// that lags behind.
func (c *contest) newer(r *Record) bool {
	switch {
	case c.since.IsZero(), r.Fence > c.holder.Fence, r.Fence < c.holder.Fence && c.aged():
		return true
	case r.Fence < c.holder.Fence, r.Held() && r.Nonce == c.holder.ReleasedNonce:
		return false
	}
	return r.Nonce != c.holder.Nonce || r.Beat > c.holder.Beat
}

// see takes in who holds the lock, and says whether that is news.
func (c *contest) see(r *Record) bool {
	same := !c.since.IsZero() && r.Nonce == c.holder.Nonce && r.Fence == c.holder.Fence && r.Beat == c.holder.Beat
	c.holder = *r
	if same {
		return false
	}
	c.since, c.pause, c.asked = c.clock.Now(), false, false
	return true
}

// aged says that what was seen last was first seen so long ago that no read lags behind it any
// more: a row that says less is one of a table that was restored.
func (c *contest) aged() bool {
	return c.clock.ago(c.since) > max(time.Duration(c.holder.Lease)*time.Millisecond, time.Second)
}

// silent says that the holder of a lease of its own has shown no life for all of it.
func (c *contest) silent() bool {
	return c.clock.ago(c.since) >= time.Duration(c.holder.Lease)*time.Millisecond
}

// dubious says that a session's lock has been held for so long that its holder is asked
// whether it knows: the answer takes a period (a quarter of a lease) and its jitter, and a
// ghost has to be gone a lease and a period after it came.
func (c *contest) dubious() bool {
	return c.clock.ago(c.since) >= time.Duration(c.holder.Lease)*time.Millisecond/4*3
}

// question is whether the holder that was seen knows that it holds.
func (c *contest) question() question {
	return question{kind: askOwned, nonce: c.holder.Nonce, key: c.key}
}

// newPolls makes the times between looks.
func (c *Client) newPolls() backoff.BackOff {
	if b := c.config.Backoff(); b != nil {
		return b
	}
	return &backoff.StopBackOff{}
}

// plan sets when the locks are looked at, or tried, next of which something has changed. Of
// the room's goroutine only.
func (r *room) plan() {
	again, anew := r.stale()
	for _, c := range again {
		if c.polls == nil {
			c.polls = r.client.newPolls()
		}
		r.schedule(c, c.polls.NextBackOff())
	}
	for _, c := range anew {
		c.polls = r.client.newPolls()
		r.schedule(c, 2*min(max(c.polls.NextBackOff(), 0), forever/2))
	}
}

// stale lists the contests to plan, those apart whose polls begin anew.
func (r *room) stale() (again, anew []*contest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.inOrder() {
		switch {
		case c.stale && c.fresh:
			c.fresh = false
			anew = append(anew, c)
		case c.stale:
			again = append(again, c)
		}
	}
	return again, anew
}

// schedule sets when c is looked at, or tried, next: after d, or earlier where it can be
// taken then.
func (r *room) schedule(c *contest, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d == backoff.Stop {
		for _, w := range c.queue {
			w.dismiss(errGivenUp)
		}
		for _, o := range c.onlookers {
			o.fail(errGivenUp)
		}
		c.polls = nil // whoever comes next has not waited yet
		d = forever
	}
	d = max(d, minPoll)
	if r.client.handsOver(&c.holder) {
		d = max(d, r.client.config.Lease/4) // look only whether it still holds
	}
	if !c.pause {
		d = min(d, max(r.until(c), 0))
	}
	c.next, c.early, c.stale = c.clock.soon(d), c.clock.soon(d/2), false
}

func (c clock) soon(d time.Duration) time.Time { return c.Now().Add(min(d, 24*time.Hour)) }

// until is how long until the lock could be taken without being released. It is called
// with mu held.
func (r *room) until(c *contest) time.Duration {
	id := c.holder.Session
	switch {
	case !c.holder.Held():
		return 0 // not seen yet
	case id == "":
		d := time.Duration(c.holder.Lease)*time.Millisecond - c.clock.ago(c.since)
		if left, ok := r.client.untilTakeable(c.holder.Until()); ok {
			d = min(d, left)
		}
		return d
	case r.client.owns(id):
		return forever // a release hands over
	}
	w := r.sessions[id]
	if w == nil {
		return 0 // not seen yet: look at once
	}
	return w.wait(r.client)
}

// isBlind says that nothing was seen yet by which to tell when the lock could be taken. It is called
// with mu held.
func (r *room) isBlind(c *contest) bool { return r.until(c) <= 0 && r.takeable(c) == nil }

// takeable is what is known of a holder that may be dead; nil while it may be alive. It is
// called with mu held.
func (r *room) takeable(c *contest) *ended {
	if c.pause || !c.holder.Held() || r.until(c) > 0 {
		return nil
	}
	e := &ended{nonce: c.holder.Nonce, fence: c.holder.Fence, beat: -1, session: c.holder.Session, seen: -1}
	if e.session == "" {
		if c.silent() {
			e.beat = c.holder.Beat
		}
		return e
	}
	w := r.sessions[e.session]
	if w == nil || !w.known() {
		return nil
	}
	if w.silent() {
		e.seen = w.row.Beat
	}
	e.dead = w.dead
	return e
}
