package lock

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/internal/nilctx"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Lease is a lock that was acquired. It is safe for concurrent use.
type Lease struct {
	client  *Client
	target  Target
	key     keys.Key
	nonce   string
	fence   int64
	length  time.Duration
	since   time.Time // when it was acquired, by the wall clock
	maxHold time.Duration
	path    path      // how the lock came to this holder
	written time.Time // monotonic: when the request began that the lease is counted from
	began   time.Time // monotonic: when the holder got it; zero while it has not
	handed  int       // how often in a row the lock was handed over within the process
	data    Data      // when it began

	run     *run     // of an interval (Every); nil for others
	session *session // nil for a lease of its own
	term    *term    // the session's, or its own
	ctx     context.Context
	cancel  context.CancelCauseFunc
	over    atomic.Int32 // how far it has come to its end: asked back, or over

	mu       sync.Mutex    // guards the following; never held across I/O
	beat     int64         // of a lease of its own: the last one used
	deletion deletion      // of the row
	limit    machine.Timer // of the maximum hold; nil without one
	loss     error         // why it was lost, where it had been asked back before
	left     leftData

	// turn is held while a guarded write or the release is under way: two transactions
	// that check one row conflict with each other.
	turn chan struct{}
	// parted says that a release, or a commit, may have been applied whose answer was lost;
	// it is read and written with the turn taken.
	parted bool
	// orphaned says that a release has failed for good, after which whoever waits in this
	// process may take the row: it is not to be handed over any more, or somebody who waits
	// would be taken out of the line for nothing. It goes by the turn, too.
	orphaned bool
	// parting is set when Release has tried to give the lock up: then its end is no loss.
	parting atomic.Bool
	// released is set when the row no longer names this lease because it gave it back.
	released atomic.Bool
	// overdue says that it was given back in the holder's place, or may have been, since it had
	// been held for too long; it counts once released is set.
	overdue atomic.Bool
	// unsure says that a commit may have been applied whose answer was lost; it goes by the turn.
	unsure bool
	// forestalled says that Close gave the lock up, or may have, after such a commit, which the
	// holder must not take for applied then; it counts once released is set.
	forestalled atomic.Bool
	// taken says that the row was found to name somebody else, whatever it says since.
	taken atomic.Bool
	// committed says that a commit is known to have succeeded.
	committed atomic.Bool
	// measured says that the hold time was.
	measured atomic.Bool
}

// lease is what this acquisition makes of a row that names it. It begins with begin.
func (a *acquisition) lease(fence int64, start instant, s *session) *Lease {
	c := a.client
	l := &Lease{
		client: c, target: a.target, key: a.key, nonce: a.nonce, fence: fence, length: a.length,
		session: s, since: start.wall, written: start.mono, turn: make(chan struct{}, 1), maxHold: a.maxHold, run: a.run,
	}
	l.ctx, l.cancel = context.WithCancelCause(a.values)
	if s != nil {
		l.term = s.term
	} else {
		l.term = newTerm(c.clock, start, a.length-c.config.margin(a.length))
	}
	return l
}

// begin makes the client own the lease, unless it is over already.
func (l *Lease) begin() error {
	if l.term.remaining() == 0 { // the answer took longer than the lease
		if cause := l.term.cause(); cause != nil {
			return cause
		}
		return ErrExpired
	}
	l.began = l.client.clock.Now()
	if !l.client.adopt(l) {
		l.began = time.Time{}
		return ErrClosed
	}
	if l.session == nil {
		l.term.begin(l.end)
	} else {
		l.session.add(l)
	}
	l.limitHold()
	l.client.instruments.acquired(l)
	l.client.tellAcquired(l)
	if l.session == nil {
		return nil
	}
	// The session may have ended before it knew of this lease.
	return l.term.cause()
}

// Context ends no later than the lease: when it is lost, with a cause that matches
// ErrLost, released, with ErrReleased, or asked back, with ErrRevoked. It carries the
// values of the context that Acquire got, but does not end with it.
func (l *Lease) Context() context.Context { return l.ctx }

// Fence is the fencing token: a number that is greater for every later holder of this
// lock. A resource outside the table can refuse smaller numbers than it has seen.
func (l *Lease) Fence() int64 { return l.fence }

// Target is what was acquired.
func (l *Lease) Target() Target { return l.target }

// Owner is what the lock's row says of its holder: Config.Owner.
func (l *Lease) Owner() string { return l.client.config.Owner }

// Key is the key of the lock's row.
func (l *Lease) Key() keys.Key { return l.key }

// Remaining is how long the lease lasts unless renewed, by the more pessimistic of the
// wall and the monotonic clock; 0 when it has ended. One that was asked back goes on.
func (l *Lease) Remaining() time.Duration {
	if l.over.Load() == isOver {
		return 0
	}
	return l.term.remaining()
}

// kept is when the row is deleted, as far as is known.
func (l *Lease) kept() deletion {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deletion
}

// keep takes in that its deletion was put off.
func (l *Lease) keep(d deletion) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deletion = d
}

// prolong puts off the deletion of the row.
func (l *Lease) prolong(ctx context.Context) error {
	d := l.client.putOff(l.kept(), l.length, l.fence)
	err := l.client.table.Write(ctx, l.client.rows.prolong(l.key, l.nonce, l.fence, d.epoch()))
	if err == nil {
		l.keep(d)
	}
	return err
}

// complete writes what a client could not know whose first request has granted a lease of its own, and
// the answer has told: when the lease ends, without which nobody who has not seen it could ever tell, and
// when to delete the row, if the clock is slow. Nothing else writes these unless the holder does.
func (l *Lease) complete(ctx context.Context, row table.Item) error {
	c := l.client
	send := l.prolong
	switch ends := c.of(row, attrExpires) != nil; {
	case !ends && c.until(c.offset(), c.clock.instant(), l.length) > 0:
		send = func(ctx context.Context) error {
			_, err := l.writeBeat(ctx)
			return err
		}
	case !c.isShort(l.kept(), c.calendar(), l.length, l.fence):
		return nil
	}
	return c.attempts(ctx, attemptTimeout(l.length), func(ctx context.Context, _ instant) error { return send(ctx) })
}

// cause is why the lease ended; nil while it goes on. One that was asked back first, and lost then,
// has both.
func (l *Lease) cause() error {
	if err := l.term.cause(); err != nil && l.ctx.Err() == nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return join(context.Cause(l.ctx), l.loss)
}

// Release gives the lock up: to the next one who waits for it in this process, or to
// everybody. It may be called again after an error, and does nothing after success. Where ctx
// has ended already the request is sent all the same, bounded by 5 s. It waits for guarded
// writes under way. After an error other than ErrLost the row may still be held; should the
// caller leave it at that, the session goes on trying. ErrLost means that the lock had been
// lost before.
//
// Cost: one conditional write.
func (l *Lease) Release(ctx context.Context) error {
	ctx, cancel := l.client.clock.detach(ctx)
	defer cancel()
	return l.release(ctx)
}

func (l *Lease) release(ctx context.Context) error {
	if err := l.takeTurn(ctx); err != nil {
		l.parting.Store(true)
		l.orphan(false)
		return wrap("release", err)
	}
	defer l.endTurn()
	return l.releaseInTurn(ctx, false)
}

// releaseInTurn is release with the turn taken. unasked says that the holder has not asked for it.
func (l *Lease) releaseInTurn(ctx context.Context, unasked bool) (outcome error) {
	if l.released.Load() {
		if l.overdue.Load() {
			return l.gone("release")
		}
		return nil
	}
	defer func() { l.client.instruments.releaseFailed(ctx, outcome) }()
	l.parting.Store(true)
	p := l.part(false)
	defer p.abort()
	unclear := false
	err := l.client.attempts(ctx, attemptTimeout(l.length), func(ctx context.Context, _ instant) error {
		err := l.client.table.Write(ctx, p.op)
		unclear = unclear || table.MayHaveApplied(err)
		return err
	})
	l.parted = l.parted || unclear
	if unasked && unclear {
		l.overdue.Store(true)
	}
	if l.unsure && (err == nil || unclear) && l.client.closing.Err() != nil {
		l.forestalled.Store(true)
	}
	var failed *table.ConditionError
	if errors.As(err, &failed) && l.isOvertaken(failed.Item) {
		// Should this fail, whoever waits has it freed.
		_ = l.client.giveUp(ctx, l.key, l.nonce, l.length)
	}
	if failed != nil {
		failed.Err = cmp.Or(l.wasTaken(), failed.Err)
	}
	switch {
	case err == nil: // the row has named the lease until now, whatever was tried before
		l.overdue.Store(unasked)
		p.done()
	case !errors.As(err, &failed):
		// The row may still be held, or not: the caller can try again, and the session
		// will.
		p.keep(unclear)
		l.orphaned = l.session != nil
		l.orphan(true)
		return wrap("release", err)
	case !errors.Is(failed.Err, ErrReleased) && l.goneSince(failed.Item):
		p.keep(false)
		l.gaveBack()
	case !errors.Is(failed.Err, ErrReleased):
		p.keep(false)
		l.stolen()
		return wrap("release", failed.Err)
	case p.recognise(failed.Item):
		p.done()
	case p.heir == nil:
		p.done() // by an earlier attempt, whoever may have acquired since
	default:
		// Should the row name the heir all the same, it looks, and finds out what that means.
		p.keep(isString(l.client.of(failed.Item, attrNonce), p.nonce))
		l.gaveBack()
	}
	if !unasked && l.overdue.Load() { // by an attempt whose answer was lost
		return l.gone("release")
	}
	return nil
}

// orphan has the session go on trying to give up what the holder could not. alone says that
// whoever waits in this process may take the row, too: no write is under way.
func (l *Lease) orphan(alone bool) {
	if l.session != nil && !l.released.Load() {
		l.session.orphan(l, alone)
	}
}

// goneSince says that a row which shows no trace of this lease any more was released by an
// attempt without an answer, and that others have come and gone since: nobody takes a lock
// whose lease goes on, unless by force. A holder that was found to have lost it has, whatever
// its clocks say.
func (l *Lease) goneSince(item table.Item) bool {
	fence, err := l.client.fenceOf(item)
	forced, ok := numberOf(l.client.of(item, attrForcedFence))
	return l.parted && err == nil && fence > l.fence && (!ok || forced < l.fence) &&
		l.term.cause() == nil && !errors.Is(l.cause(), ErrLost)
}

// isOvertaken says that a row names this lease's nonce under a later fence: its acquisition has
// come in late once more, after others have held the lock.
func (l *Lease) isOvertaken(item table.Item) bool {
	fence, err := l.client.fenceOf(item)
	return isString(l.client.of(item, attrNonce), l.nonce) && err == nil && fence > l.fence
}

// isNamed says that a row says that this lease holds the lock.
func (l *Lease) isNamed(item table.Item) bool {
	return isString(l.client.of(item, attrNonce), l.nonce) && isNumber(l.client.of(item, attrFence), l.fence)
}

// overtaken books that its row was another acquisition's since; false where a write is under way, which
// may hear of that itself.
func (l *Lease) overtaken(item table.Item) bool {
	select {
	case l.turn <- struct{}{}:
		defer l.endTurn()
	default:
		return false
	}
	if l.goneSince(item) {
		l.gaveBack()
	} else {
		l.stolen()
	}
	return true
}

// gaveBack books that the row does not name this lease any more.
func (l *Lease) gaveBack() {
	if !l.released.Swap(true) {
		l.client.instruments.released(l)
	}
	l.end(ErrReleased)
	l.forget()
}

// stolen books that the row names somebody else, or is gone.
func (l *Lease) stolen() {
	l.taken.Store(true)
	l.end(ErrStolen)
	l.forget()
}

// revoke tells the holder that the lock is wanted; it goes on holding it.
func (l *Lease) revoke() { l.end(ErrRevoked) }

func (l *Lease) forget() {
	l.client.instruments.held(l)
	if l.session != nil {
		l.session.remove(l.nonce)
	}
	l.client.forget(l)
	l.client.room.gone(l.key, l.nonce)
}

// giveBack releases a lease that its acquirer never got to see. Where that fails the session
// goes on trying.
func (l *Lease) giveBack(ctx context.Context) error {
	ctx, cancel := l.client.clock.detached(ctx)
	defer cancel()
	l.parting.Store(true)
	err := l.release(ctx)
	l.end(ErrReleased)
	if err == nil || errors.Is(err, ErrLost) || l.session == nil {
		l.forget()
	} else {
		l.client.forget(l)
	}
	return err
}

func (l *Lease) takeTurn(ctx context.Context) error {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	if ctx.Err() != nil { // select would choose either way
		return causeOf(ctx)
	}
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return causeOf(ctx)
	}
}

func (l *Lease) endTurn() { <-l.turn }

const (
	isAskedBack = iota + 1
	isOver
)

// end ends the lease's context; the first cause counts.
func (l *Lease) end(cause error) {
	if l.stop(cause) {
		l.book(cause)
	}
}

// stop ends the lease's context, and says whether it had not ended before: then book follows.
func (l *Lease) stop(cause error) bool {
	next := int32(isOver)
	if errors.Is(cause, ErrRevoked) {
		next = isAskedBack
	}
	for {
		was := l.over.Load()
		if was >= next {
			return false
		}
		if l.over.CompareAndSwap(was, next) {
			l.lostAfter(was, cause)
			break
		}
	}
	l.cancel(cause)
	if next == isOver { // one that was asked back is held, and not for longer than it may be
		l.stopLimit()
	}
	l.client.room.gone(l.key, l.nonce) // it does not hand over any more unless it is released
	return true
}

// lostAfter keeps why a lease was lost whose context has told of a revocation already.
func (l *Lease) lostAfter(was int32, cause error) {
	if was == isAskedBack && errors.Is(cause, ErrLost) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.loss = cause
	}
}

// book tells everybody but the holder that the lease has ended.
func (l *Lease) book(cause error) {
	c := l.client
	if l.session == nil {
		l.term.end(cause)
		// Nobody has to release a lease that ends by itself: do not keep it for Close.
		if !errors.Is(cause, ErrMaxHold) {
			c.forget(l)
		}
	}
	if errors.Is(cause, ErrRevoked) {
		c.instruments.revoked(l)
		c.tellRevoked(l)
		return // it is held all the same
	}
	c.instruments.held(l)
	if !errors.Is(cause, ErrLost) || l.parting.Load() {
		return // given up, not lost
	}
	c.instruments.lost(l, cause)
	c.tellLost(l, cause)
	if c.config.OnLost != nil {
		// Not one of the client's goroutines: the application may well close it there.
		go c.config.OnLost(l, cause)
	}
}
