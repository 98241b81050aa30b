package waitqueue

// Place is the process's place in the line of one key. It begins when it is a waiter's turn to enter the line, goes on
// while it is passed from one goroutine of the process to the next, and ends with [Place.Over].
type Place[R, G any] struct {
	// Handoffs counts how often the place was passed on. It belongs to the present owner of the place.
	Handoffs Handoffs

	queues *Queues[R, G]
	line   *line[R, G]
	claim  *Claim[R, G] // that is not settled
}

// Over ends the place: it is the next waiter's turn to enter the line. It is for a place that has left the line
// (released, lost), and for one that never got into it. The caller calls it after the line was left: one that enters
// before would stand in the line beside its predecessor.
//
// Only the first call counts. A later one does nothing, also when the process has another place for the key by then. A
// claim that is not settled is void: it is the claimed waiter's turn.
func (p *Place[R, G]) Over() {
	p.queues.mu.Lock()
	defer p.queues.mu.Unlock()
	p.queues.end(p)
}

// Claim reserves the first waiter behind the place, for a pass under way: it keeps its position and waits on. Claim
// returns nil if nobody waits, if the place is over, or if there is a claim already. The caller has to settle the claim
// by [Claim.Hand] or [Claim.Cancel].
func (p *Place[R, G]) Claim() *Claim[R, G] {
	p.queues.mu.Lock()
	defer p.queues.mu.Unlock()
	if p.line.place != p || p.claim != nil || p.line.first == nil {
		return nil
	}
	p.claim = &Claim[R, G]{place: p, waiter: p.line.first}
	return p.claim
}

// Claim is a waiter to which a place is about to be passed.
type Claim[R, G any] struct {
	place  *Place[R, G]
	waiter *Waiter[R, G]
}

// Request returns what the claimed waiter requests.
func (c *Claim[R, G]) Request() R { return c.waiter.request }

// Hand settles the claim: the waiter gets the grant, and answers for the place from now on. It reports false if the
// waiter has left, or if the claim was settled or is void. The caller then still has the grant, and passes it on to the
// next waiter or releases it.
func (c *Claim[R, G]) Hand(g G) bool {
	q, w := c.place.queues, c.waiter
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.place.claim != c {
		return false
	}
	c.place.claim = nil
	if w.state != waits {
		return false
	}
	w.line.remove(w)
	w.state, w.grant, w.place = granted, g, c.place
	close(w.ready)
	return true
}

// Cancel settles the claim: the pass did not happen. The waiter waits on, and the place is still the caller's. It does
// nothing if the claim was settled or is void.
func (c *Claim[R, G]) Cancel() {
	c.place.queues.mu.Lock()
	defer c.place.queues.mu.Unlock()
	if c.place.claim == c {
		c.place.claim = nil
	}
}

// Handoffs bounds how often in a row a place is passed on within the process while other processes stand in the line.
// The zero value is that of a new place. It is not safe for concurrent use.
type Handoffs struct{ inRow int }

// May reports whether the place may be passed on once more: at most limit times in a row while others stand in the
// line, and without limit while nobody does. others is what the last answer showed of the line.
func (h *Handoffs) May(limit int, others bool) bool { return !others || h.inRow < limit }

// Passed counts a pass. others reports whether anybody else stood in the line, as the answer to the pass showed it.
func (h *Handoffs) Passed(others bool) {
	if others {
		h.inRow++
	} else {
		h.inRow = 0
	}
}
