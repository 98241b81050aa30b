package lock

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// look is the goroutine: it runs until nobody waits any more.
func (r *room) look() {
	for open := r.settle(); open; {
		r.plan()
		locks, sessions, pause, idle := r.due()
		switch {
		case idle:
			return
		case len(locks) > 0:
			r.read(locks, sessions)
			open = r.settle() // whoever was told an error leaves, and the next one's turn comes
			continue
		}
		timer := r.client.clock.NewTimer(pause)
		select {
		case <-r.wake:
			open = r.settle()
		case <-timer.C():
		case <-r.client.closing.Done():
			open = false // the waiters hear of it themselves
		}
		timer.Stop()
	}
}

// moment is how long what has changed may take to settle: a lock that is handed over to somebody
// whose lease is over already is handed to the next one at once, and who comes with a hundred
// others is planned for with them.
const moment = time.Millisecond

// settle waits a moment, after which all that has changed is planned for; false when the client is
// closed.
func (r *room) settle() bool {
	timer := r.client.clock.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-r.client.closing.Done():
		return false
	}
	select {
	case <-r.wake:
	default:
	}
	return true
}

// oneLook is how many rows one request reads: no lock is looked at early that does not fit.
const oneLook = 100

// due lists the locks to look at now, with the sessions that their holders hang on, and how
// long to wait where there are none. Locks that can be taken are not looked at: their first
// waiters are told to try.
func (r *room) due() (locks []keys.Key, sessions []string, pause time.Duration, idle bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.contests) == 0 {
		r.looking = false
		clear(r.sessions)
		return nil, nil, 0, true
	}
	now := r.client.clock.Now()
	pause = 24 * time.Hour
	wanted := map[string]bool{}
	var along []*contest // not due, but far enough on their way to share a request with those that are
	for _, c := range r.inOrder() {
		wanted[c.holder.Session] = true
		if c.trying != nil || c.empty() || c.leaving() {
			continue
		}
		if c.stale { // since it was planned
			pause = 0
			continue
		}
		if left := c.next.Sub(now); left > 0 {
			pause = min(pause, left)
			if !c.pause && !now.Before(c.early) {
				along = append(along, c)
			}
			continue
		}
		if e := r.takeable(c); e != nil {
			r.start(c, e)
			if c.stale { // an onlooker was told, and there are others
				pause = 0
			}
			continue
		}
		locks, sessions = r.lookAt(c, locks, sessions)
	}
	for _, c := range along {
		if n := len(locks) + len(sessions); n == 0 || n+2 > oneLook {
			break
		}
		locks, sessions = r.lookAt(c, locks, sessions)
	}
	for id := range r.sessions {
		if !wanted[id] {
			delete(r.sessions, id)
		}
	}
	return locks, sessions, pause, false
}

// lookAt adds a lock to those that are read next, with the session that its holder hangs on. It is
// called with mu held.
func (r *room) lookAt(c *contest, locks []keys.Key, sessions []string) ([]keys.Key, []string) {
	c.pause, c.stale = false, true
	if id := c.holder.Session; id != "" && !slices.Contains(sessions, id) && !r.client.owns(id) {
		sessions = append(sessions, id)
		r.watch(id)
	}
	return append(locks, c.key), sessions
}

// inOrder lists the contests by their keys: maps have no order, and the same run should send the
// same. It is called with mu held.
func (r *room) inOrder() []*contest {
	return slices.SortedFunc(maps.Values(r.contests), func(a, b *contest) int { return byKey(a.key, b.key) })
}

// start tells the first waiter to try, or the first onlooker where nobody waits. It is
// called with mu held.
func (r *room) start(c *contest, e *ended) {
	if len(c.queue) == 0 {
		r.clear(c, 0, e)
		return
	}
	w := c.queue[0]
	if w.tell(news{ended: e}) {
		c.trying = w
	}
}

// read looks at rows and draws the conclusions.
func (r *room) read(locks []keys.Key, sessions []string) {
	c := r.client
	list := append([]keys.Key(nil), locks...)
	for _, id := range sessions {
		list = append(list, c.sessionKey(id))
	}
	var items []table.Item
	var busy *table.UnprocessedError // some rows are on a partition that is too busy: they are for the next poll
	err := c.attempts(c.closing, maxAttempt, func(ctx context.Context, _ instant) (err error) {
		items, err = c.table.BatchGet(ctx, list, false)
		if errors.Is(err, table.ErrThrottled) && errors.As(err, &busy) {
			return nil
		}
		return err
	})
	if c.closing.Err() != nil {
		return
	}
	unread := map[keys.Key]bool{}
	if busy != nil {
		for _, key := range busy.Keys {
			unread[key] = true
		}
	}
	vain := r.impatient(locks, unread)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		for i, id := range sessions {
			if !unread[list[len(locks)+i]] {
				r.sawSession(id, items[len(locks)+i])
			}
		}
	}
	var dubious []*contest
	for i, key := range locks {
		contest := r.contests[key]
		switch {
		case contest == nil, contest.trying != nil, contest.empty():
		case err != nil:
			contest.fail(err)
		case vain[contest]:
			contest.fail(busy)
		case unread[key]:
		case r.sawLock(contest, items[i]):
			dubious = append(dubious, contest)
		}
		if contest != nil && (unread[key] || unread[c.sessionKey(contest.holder.Session)]) && r.isBlind(contest) {
			contest.pause = true // or it would be looked at again at once
		}
	}
	r.ask(dubious)
}

// impatient lists those of the locks, some of which could not be read, that have not been read for as
// long as the table's retry policy goes on. Of the room's goroutine only.
func (r *room) impatient(locks []keys.Key, unread map[keys.Key]bool) map[*contest]bool {
	r.mu.Lock()
	looked := make([]*contest, 0, len(locks))
	for _, key := range locks {
		if c := r.contests[key]; c != nil {
			looked = append(looked, c)
		}
	}
	r.mu.Unlock()
	vain := map[*contest]bool{}
	for _, c := range looked {
		switch {
		case !unread[c.key]:
			c.patience = nil
		case c.patience == nil:
			c.patience = r.client.table.Backoff()
			fallthrough
		default:
			vain[c] = c.patience.NextBackOff() == backoff.Stop
		}
	}
	return vain
}

func (r *room) sawSession(id string, item table.Item) {
	w := r.watch(id)
	row, err := r.client.sessionOf(item)
	switch {
	case r.client.isDead(item):
		w.dead, w.missing = true, false
	case item == nil, err != nil:
		w.missing = true // whoever declares it dead is told what stands there
	default:
		w.see(&row)
	}
}

// sawLock draws conclusions from a lock row, as an eventually consistent read saw it.
// Anything but a holder is for the next try to judge: it sees the row as it is. It says whether
// the holder should be asked.
func (r *room) sawLock(c *contest, item table.Item) (dubious bool) {
	row, err := r.client.recordOf(item)
	if item != nil && err == nil && len(c.queue) > 0 && c.queue[0].acquisition.run.settled(&row) {
		c.queue[0].dismiss(errSettled)
		return false
	}
	if item == nil || err != nil || !row.Held() && (row.Fence >= c.holder.Fence || c.aged()) {
		r.start(c, r.takeable(c))
		return false
	}
	if row.Held() && c.newer(&row) {
		c.see(&row)
	}
	if !c.holder.Held() {
		c.pause = true // the read lags behind: look again after a poll, not at once
	}
	if c.holder.Held() && r.recognise(c) {
		return false
	}
	if r.client.isGhost(nil, &c.holder) {
		// A request that came in late has acquired for nobody, or a hand-over without
		// an answer for somebody in this queue. Whoever tries finds out, and nobody
		// else would: a waiter leaves its own session's locks to their holders.
		r.start(c, nil)
		return false
	}
	return c.holder.Session != "" && !c.asked && !r.client.owns(c.holder.Session) && c.dubious()
}

// recognise tells whoever waits here to try that the row names already: a request of its own
// or a hand-over, without an answer, was applied. Nobody is trying, so nobody renames itself.
func (r *room) recognise(c *contest) bool {
	for _, w := range c.queue {
		if w.acquisition.nonce == c.holder.Nonce {
			if w.tell(news{}) {
				c.trying = w
			}
			return true
		}
	}
	for i, o := range c.onlookers {
		if o.nonces[c.key] == c.holder.Nonce {
			r.clear(c, i, nil)
			return true
		}
	}
	return false
}

// ask asks holders whether they really hold what they were seen to hold for so long: no ghost
// outlives one lease and a period. One request asks a session for several locks. One that has
// enough questions to answer already is asked again when it has renewed. It is called with mu
// held.
func (r *room) ask(dubious []*contest) {
	var order []*sessionWatch // maps have none, and the same run should send the same
	about := map[*sessionWatch][]*contest{}
	now := r.client.clock.Now()
	for _, c := range dubious {
		w := r.watch(c.holder.Session)
		if now.Before(w.busy) || len(about[w]) == maxAsked {
			continue // with one of the next looks
		}
		c.asked = true
		if !c.question().askable() {
			continue // a nonce that somebody has made up: it is for the others to be asked about
		}
		if len(about[w]) == 0 {
			order = append(order, w)
		}
		about[w] = append(about[w], c)
	}
	for _, w := range order {
		r.askSession(w, about[w])
	}
}

// askSession asks one session for locks that it was seen to hold. It is called with mu held.
func (r *room) askSession(w *sessionWatch, about []*contest) {
	c, id := r.client, about[0].holder.Session
	period := time.Duration(about[0].holder.Lease) * time.Millisecond / 4
	list := make([]question, len(about))
	for i, one := range about {
		list[i] = one.question()
	}
	c.run(func() {
		ctx, cancel := c.clock.detached(c.closing)
		defer cancel()
		busy := false
		err := c.attempts(ctx, maxAttempt, func(ctx context.Context, _ instant) error {
			_, err := c.ask(ctx, id, list...)
			busy = errors.Is(err, errAskedEnough)
			if busy {
				return nil
			}
			return err
		})
		if !busy && (err == nil || errors.Is(err, table.ErrCondition)) {
			return
		}
		r.mu.Lock()
		if busy {
			w.busy = c.clock.soon(period)
		}
		for i, one := range about {
			if one.holder.Nonce == list[i].nonce {
				one.asked = false // with one of the next looks
			}
		}
		r.mu.Unlock()
		c.config.Logger.Debug("lock: could not ask a holder", "error", err)
	})
}
