package lock

import (
	"errors"

	"github.com/mortise-go/mortise/table"
)

// parting is how a lease gives the lock up: it frees the row or, where somebody in this
// process waits, hands it over with the same single write.
type parting struct {
	lease  *Lease
	op     table.Op
	heir   *waiter // nil when the row is freed
	start  instant
	under  *session // of the heir's lease, reserved
	nonce  string   // the heir's: it may take another one as soon as it is back in the line
	data   Data     // what the row has then
	kept   deletion // and when it is deleted
	handed int      // how often in a row the lock is handed over then
	commit bool     // the holder has asked for it, with what it has written

	counted bool // Close waits for it
	settled bool // done or keep was called
}

// part decides which it is; commits says that a commit does it. It is called with the lease's turn
// taken, and followed by done or keep; by abort in any case.
func (l *Lease) part(commits bool) *parting {
	c := l.client
	p := &parting{lease: l, start: c.clock.instant(), handed: l.handed + 1, commit: commits}
	planned := false
	defer func() {
		if !planned { // a panic of something of the application's: nothing was sent
			p.keep(false)
		}
	}()
	stolen := errors.Is(l.cause(), ErrStolen) // there is nothing to hand over
	if l.handed < c.config.Handoffs && l.fence < maxFence && l.run == nil && !stolen && !l.orphaned {
		p.heir = c.room.heir(l)
	}
	if p.heir != nil && !p.reserve() {
		c.room.back(p.heir, nil) // where it has left meanwhile it was not handed anything
		p.heir = nil
	}
	ttl := c.deleteAfter(l.run.told(), l.fence)
	switch {
	case p.heir != nil:
		g := p.heir.acquisition.grant(p.start, p.under, c.offset(), l.fence+1)
		p.kept = deletionAt(g.ttl, p.start.mono)
		p.op = c.rows.handOver(l.key, l.nonce, l.fence, &g)
	case l.began.IsZero(): // nobody got to see it, and what fence the row has may not be known
		p.op = c.rows.release(l.key, l.nonce, p.start.wall, ttl)
	default:
		p.op = c.rows.part(l.key, l.nonce, l.fence, p.start.wall, ttl)
	}
	if l.run != nil { // which is never handed over
		p.op = l.run.end(p.op, l.nonce, commits)
	}
	planned = true
	return p
}

// reserve finds the session for the heir's lease, which it does not open, and its payload.
// What is handed over is work that Close waits for, whoever's goroutine it is: the next lease
// may have to be taken back.
func (p *parting) reserve() bool {
	c, a := p.lease.client, p.heir.acquisition
	var known bool
	if p.data, known = p.lease.leaves(a.data); !known {
		return false // nobody knows what the heir would find: it acquires, and sees
	}
	if p.counted = c.enter(); !p.counted {
		return false
	}
	p.nonce = a.nonce
	a.sending(p.request(), a.length)
	if a.fixed {
		return true
	}
	s := c.currentSession()
	if s == nil || !s.reserve(a.nonce) {
		p.counted = false
		c.work.Done()
		return false
	}
	p.under = s
	return true
}

// recognise says that a row names the heir by a request that it knows of, from which its lease is
// counted then: by an attempt of this hand-over whose answer was lost, by one of an earlier call, or by
// a request of the heir's own that has found the row free.
func (p *parting) recognise(item table.Item) bool {
	if p.heir == nil || !isString(p.lease.client.of(item, attrNonce), p.nonce) || !isNumber(p.lease.client.of(item, attrFence), p.lease.fence+1) {
		return false
	}
	if p.under != nil && !isString(p.lease.client.of(item, attrSession), p.under.id) {
		return false
	}
	by, known := p.heir.acquisition.knows(p.lease.client.of(item, attrAcquired))
	if known {
		p.start, p.handed = by.instant, by.handed
		p.kept = p.lease.client.deletionOf(item, p.start.mono)
	}
	return known
}

// request is what the heir knows of the hand-over, should the row name it.
func (p *parting) request() doubt { return doubt{instant: p.start, handed: p.handed} }

// abort is keep, where a panic has come before that and done.
func (p *parting) abort() {
	if !p.settled {
		p.keep(true)
	}
}

// failed takes in that a commit has failed.
func (p *parting) failed(err error) {
	unclear := mayHaveApplied(err)
	p.lease.parted = p.lease.parted || unclear
	p.lease.unsure = p.lease.unsure || unclear
	p.keep(unclear)
}

// keep takes in that the write failed, or that nobody knows (unclear): the heir goes back to
// its place.
func (p *parting) keep(unclear bool) {
	p.settled = true
	if p.heir == nil {
		return
	}
	c, a := p.lease.client, p.heir.acquisition
	if p.counted {
		defer c.work.Done()
	}
	var left []doubt
	if unclear {
		left = []doubt{p.request()}
	}
	if c.room.back(p.heir, p.under, left...) {
		return // where it may have been applied, the heir will recognise it
	}
	p.unreserve()
	if !unclear {
		return
	}
	take := func() {
		a.takeBack(c.closing, p.nonce)
		c.room.gone(a.key, p.lease.nonce) // which may be who holds it for those who wait yet
	}
	if !c.run(take) {
		take()
	}
}

// done takes in that the row does not name the lease any more.
func (p *parting) done() {
	p.settled = true
	l := p.lease
	if p.commit { // what was tried in the holder's place has not been applied
		l.committed.Store(true)
		l.overdue.Store(false)
		l.forestalled.Store(false)
	}
	if p.heir == nil {
		l.client.room.freed(l)
		l.gaveBack()
		return
	}
	defer l.client.work.Done()
	defer p.unreserve()
	next := p.heir.acquisition.lease(l.fence+1, p.start, p.under).with(p.data)
	next.handed, next.path, next.deletion = p.handed, pathFree, p.kept
	if p.handed > 0 {
		next.path = pathHandedOver
	}
	l.client.room.handed(next)
	l.gaveBack() // told before the next one is
	begun := false
	defer func() {
		if !begun { // a panic of something of the application's: the heir goes back to its place
			_ = next.giveBack(next.ctx) // the session goes on trying
			l.client.room.back(p.heir, nil)
		}
	}()
	err := next.begin()
	begun = true
	if err == nil && l.client.room.deliver(p.heir, next) {
		return
	}
	// The heir has left, or its lease was over before it began: the next one, or everybody.
	released := next.giveBack(next.ctx)
	if errors.Is(err, ErrLost) {
		// The session has ended meanwhile, or it took longer than the heir wants to hold the lock for:
		// it has held nothing, and waits on.
		var left []doubt
		if released != nil {
			left = []doubt{p.request()}
		}
		l.client.room.back(p.heir, nil, left...)
		return
	}
	if err != nil {
		l.client.room.fail(p.heir, join(err, released))
	}
}

func (p *parting) unreserve() {
	if p.under != nil {
		p.under.unreserve(p.nonce)
	}
}
