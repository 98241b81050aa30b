package lock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mortise-go/mortise/internal/nilctx"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// MaxTargets is how many locks AcquireAll takes at most: as many actions as fit into one
// transaction.
const MaxTargets = table.MaxOps

// AcquireAll takes 1 to 100 locks or none of them, and waits while somebody else holds one:
// until ctx ends, the client is closed, or Config.Backoff stops. The error then lists who
// stood in the way (*HeldAllError). All are taken in one transaction and nothing is held
// while waiting, so targets need no order and there is no deadlock.
//
// It waits for all of the locks to be free at the same moment. Where several of them are
// hardly ever free, those who acquire a single one can keep it waiting for long. Goroutines
// that wait in this process for one of the locks go first, until Config.Handoffs have had it
// in a row. Two targets that mean one lock, none, and more than 100 are ErrInvalid. Options
// apply to each lock.
//
// Cost, for n locks of which all are free: a transaction of 2n write units, and n read units
// in one request, since a transaction returns no fences. A single lock costs what Acquire
// costs. Where they are Fixed, and no answer has told the client the time before, a write for each
// records when they end. While waiting, half a read unit per look at each lock that stands in
// the way and at its holder's session; and a transaction once each of them could be had.
func (c *Client) AcquireAll(ctx context.Context, targets []Target, opts ...Option) (*Bundle, error) {
	b, err := c.acquireAll(ctx, targets, opts, (*acquisition).wait, (*gathering).wait)
	return b, wrap("acquire all", err)
}

// TryAcquireAll is AcquireAll without waiting: where somebody holds one of the locks it
// returns a *HeldAllError, which lists all that stand in the way.
//
// Cost: a transaction of 2n write units for n locks, whether it succeeds or not, and n read
// units where it does, and a write for each where AcquireAll sends these. Once more, after a
// write per session, where all that stand in the way may be long dead.
func (c *Client) TryAcquireAll(ctx context.Context, targets []Target, opts ...Option) (*Bundle, error) {
	b, err := c.acquireAll(ctx, targets, opts, (*acquisition).tryOnce, (*gathering).once)
	return b, wrap("try acquire all", err)
}

type (
	howOne func(*acquisition, context.Context) (*Lease, error)
	howAll func(*gathering, context.Context) (*Bundle, error)
)

func (c *Client) acquireAll(ctx context.Context, targets []Target, opts []Option, one howOne, all howAll) (b *Bundle, err error) {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	began := c.clock.Now()
	g, err := c.gathering(ctx, targets, opts)
	if err == nil && len(targets) == 1 { // takes its place in the line, and costs less
		lease, err := c.acquire(ctx, targets[0], opts, one)
		var held *HeldError
		switch {
		case err == nil:
			return c.bundle(context.WithoutCancel(ctx), []*Lease{lease}), nil
		case errors.As(err, &held):
			return nil, &heldOneError{err, &HeldAllError{Held: []*HeldError{held}}}
		}
		return nil, err
	}
	defer func() { c.instruments.asked(ctx, c.clock.ago(began), err) }()
	if err != nil {
		return nil, err
	}
	waiting, leave, err := c.admit(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	defer func() {
		if b == nil {
			g.abandon(ctx)
		}
		g.letGo()
	}()
	return all(g, waiting)
}

// gathering is one call of AcquireAll or TryAcquireAll for several locks.
type gathering struct {
	client *Client
	list   []*acquisition      // each with a nonce of its own
	ended  map[keys.Key]*ended // holders that may be taken for dead
	held   []*acquisition      // of list: what the last refusal has met held

	stake // of all nonces
}

func (c *Client) gathering(ctx context.Context, targets []Target, opts []Option) (*gathering, error) {
	if len(targets) == 0 || len(targets) > MaxTargets {
		return nil, fmt.Errorf("%w: %d targets: want 1 to %d", ErrInvalid, len(targets), MaxTargets)
	}
	g := &gathering{client: c, list: make([]*acquisition, len(targets)), ended: map[keys.Key]*ended{}}
	at := make(map[keys.Key]int, len(targets))
	for i, target := range targets {
		a, err := c.acquisition(ctx, target, opts)
		if err != nil {
			return nil, fmt.Errorf("target %d: %w", i, err)
		}
		if first, ok := at[a.key]; ok {
			return nil, fmt.Errorf("%w: targets %d and %d are one lock", ErrInvalid, first, i)
		}
		at[a.key], g.list[i] = i, a
	}
	return g, nil
}

// fixed says that the leases are not to hang on the session. Options are the same for all.
func (g *gathering) fixed() bool { return g.list[0].fixed }

func (g *gathering) length() time.Duration { return g.list[0].length }

func (g *gathering) keys() []keys.Key {
	list := make([]keys.Key, len(g.list))
	for i, a := range g.list {
		list[i] = a.key
	}
	return list
}

// heldError lists what the last refusal has met.
func (g *gathering) heldError() *HeldAllError {
	e := &HeldAllError{Held: make([]*HeldError, len(g.held))}
	for i, a := range g.held {
		e.Held[i] = heldError(a.target, &a.seen)
	}
	return e
}

// once tries and, where all holders that stand in the way may have died long ago, tries to
// take over from them.
func (g *gathering) once(ctx context.Context) (*Bundle, error) {
	b, err := g.try(ctx)
	if !errors.Is(err, ErrHeld) || ctx.Err() != nil || !g.mayBeLongDead() {
		return b, err
	}
	gone := map[keys.Key]*ended{}
	for _, a := range g.held {
		gone[a.key] = &ended{nonce: a.seen.Nonce, fence: a.seen.Fence, beat: -1, session: a.seen.Session, seen: -1}
	}
	alive, failed := g.bury(ctx, gone)
	switch {
	case failed != nil:
		return nil, failed
	case len(alive) > 0:
		return nil, err
	}
	return g.try(ctx)
}

func (g *gathering) mayBeLongDead() bool {
	for _, a := range g.held {
		if a.seen.Session != "" {
			if !g.client.mayBeLongDead(&a.seen) {
				return false
			}
			continue
		}
		// The first request of a client cannot use its clock; its answer measures it.
		if left, ok := g.client.untilTakeable(a.seen.Until()); !ok || left > 0 {
			return false
		}
	}
	return true
}

// bury takes in who may be dead, and declares their sessions so, each once. It returns those
// that have proved to live.
//
// Cost: one conditional write per session.
func (g *gathering) bury(ctx context.Context, gone map[keys.Key]*ended) (map[string]*sessionRow, error) {
	alive, dead := map[string]*sessionRow{}, map[string]bool{}
	for _, key := range slices.SortedFunc(maps.Keys(gone), byKey) { // the same run should send the same
		e := gone[key]
		if e.session != "" && !e.dead && !dead[e.session] && alive[e.session] == nil {
			row, err := g.client.declareDead(ctx, e.session, e.seen)
			if err != nil {
				return nil, err
			}
			if row != nil {
				alive[e.session] = row
				g.client.sawAlive(e.session, row)
			}
			dead[e.session] = row == nil
		}
		if alive[e.session] == nil {
			g.ended[key] = e
		}
	}
	return alive, nil
}

// wait tries whenever each lock that stood in the way could be had since.
func (g *gathering) wait(ctx context.Context) (*Bundle, error) {
	if ctx.Err() != nil {
		return nil, causeOf(ctx)
	}
	b, err := g.once(ctx)
	for errors.Is(err, ErrHeld) && ctx.Err() == nil {
		if err := g.standBy(ctx); err != nil {
			if ctx.Err() != nil || errors.Is(err, errGivenUp) {
				err = fmt.Errorf("%w: %w", err, g.heldError())
			}
			return nil, err
		}
		b, err = g.try(ctx)
	}
	if err = joinCause(ctx, err); ctx.Err() != nil && err != nil && !errors.Is(err, ErrHeld) && len(g.held) > 0 {
		err = fmt.Errorf("%w: %w", err, g.heldError()) // of the last refusal
	}
	return b, err
}

// standBy waits until each of the locks that stood in the way could be had.
func (g *gathering) standBy(ctx context.Context) error {
	room := g.client.room
	held, alive := g.held, map[string]*sessionRow(nil)
	var enough <-chan time.Time
	if len(g.doubts()) > 0 {
		// What may come in late is not all stood by, and must not be kept from others for as
		// long as this one waits for the rest.
		timer := g.client.clock.NewTimer(g.length())
		defer timer.Stop()
		enough = timer.C()
	}
	for len(held) > 0 {
		o := room.observe(held, alive)
		select {
		case <-o.done:
		case <-ctx.Done():
			room.ignore(o)
			return causeOf(ctx)
		case <-enough:
			room.ignore(o)
			g.rename(ctx)
			return nil
		}
		gone, err := room.outcome(o)
		if err == nil {
			alive, err = g.bury(ctx, gone)
		}
		if err != nil {
			room.ignore(o)
			return err
		}
		held = nil
		for _, a := range g.held {
			if e := gone[a.key]; e != nil && alive[e.session] != nil {
				held = append(held, a)
			}
		}
	}
	return nil
}

// errScattered says that only some of the rows name this gathering: others have been taken
// away meanwhile.
var errScattered = fmt.Errorf("%w while several were being acquired", ErrStolen)

// try is for several locks what acquisition.try is for one.
func (g *gathering) try(ctx context.Context) (*Bundle, error) {
	for again := 0; ; again++ {
		b, err := g.tryNonces(ctx)
		anew := errors.Is(err, errScattered) || errors.Is(err, errFreed) || errors.Is(err, ErrLost) && !g.fixed()
		if !anew || again == maxRenames || ctx.Err() != nil {
			return b, err
		}
		g.rename(ctx)
	}
}

// rename begins anew under other nonces. What the old ones may hold is freed first, or it
// would stand in the way.
func (g *gathering) rename(ctx context.Context) {
	select {
	case <-g.abandon(ctx):
	case <-ctx.Done():
	}
	g.letGo()
	for _, a := range g.list {
		a.nonce, a.seeds = g.client.newNonce(), nil
	}
}

func (g *gathering) nonces() []string {
	list := make([]string, len(g.list))
	for i, a := range g.list {
		list[i] = a.nonce
	}
	return list
}

// reserve finds the session for all of the leases.
func (g *gathering) reserve(ctx context.Context) (*session, error) {
	for {
		s, err := g.client.session(ctx, g.list[0].nonce)
		if err != nil {
			return nil, err
		}
		n := 1
		for n < len(g.list) && s.reserve(g.list[n].nonce) {
			n++
		}
		if n == len(g.list) {
			return s, nil
		}
		for _, a := range g.list[:n] {
			s.unreserve(a.nonce)
		}
	}
}

// transaction is one logical write of all the locks: its attempts have one token and the
// same operations, so DynamoDB applies it once, however late one of them arrives.
type transaction struct {
	token string
	ops   []table.Op
	start instant
}

func (g *gathering) transaction(start instant, s *session) *transaction {
	t := &transaction{token: g.client.clock.Text(), ops: make([]table.Op, len(g.list)), start: start}
	g.sending(doubt{instant: start}, g.length())
	for i, a := range g.list {
		a.from = g.ended[a.key]
		t.ops[i] = a.op(start, s, a.from)
	}
	return t
}

// old says that another transaction should take its place: the leases would have begun long
// ago, and DynamoDB knows a token for 10 minutes.
func (t *transaction) old(now instant, lease time.Duration) bool {
	return max(now.mono.Sub(t.start.mono), now.wall.Sub(t.start.wall)) > min(lease/2, 5*time.Minute)
}

// tryNonces sends the transaction, again where that helps, until it is clear who holds the
// locks.
func (g *gathering) tryNonces(ctx context.Context) (*Bundle, error) {
	c := g.client
	var s *session
	if !g.fixed() {
		var err error
		if s, err = g.reserve(ctx); err != nil {
			return nil, err
		}
		defer func() { g.keep(s, g.nonces()...) }()
	}
	var t *transaction
	reclaimed := false
	err := c.attempts(ctx, attemptTimeout(g.length()), func(attempt context.Context, start instant) error {
		if t == nil || t.old(start, g.length()) {
			t = g.transaction(start, s)
		}
		err := c.table.WriteOnce(attempt, t.token, t.ops...)
		failed := table.Conditions(err)
		if len(failed) == 0 {
			if err == nil || table.MayHaveApplied(err) {
				g.doubt(doubt{instant: t.start})
			}
			return err
		}
		own, ghosts, err := g.refused(failed, s)
		switch {
		case own:
			// An earlier attempt was applied and its answer lost: these are our own locks.
			g.doubt(doubt{instant: t.start})
			return nil
		case len(ghosts) > 0 && !reclaimed:
			reclaimed, t = true, nil
			for _, a := range ghosts {
				if !c.reclaim(attempt, a.key, a.seen.Nonce, a.length) {
					return err
				}
			}
			return errAgain
		}
		t = nil
		return err
	})
	if err != nil {
		return nil, err
	}
	return g.granted(ctx, s)
}

// refused takes in whom a refused transaction has met. own says that a row names this very
// gathering, and ghosts are those that name nobody in this process although they say so.
func (g *gathering) refused(failed []*table.ConditionError, s *session) (own bool, ghosts []*acquisition, err error) {
	var held []*acquisition
	for _, f := range failed {
		a := g.list[f.Index]
		switch {
		case isString(g.client.of(f.Item, attrNonce), a.nonce):
			own = true
			continue
		case f.Item == nil && !a.blind:
			a.blind = true // see acquisition
			err = errAgain
			continue
		}
		r, broken := g.client.recordOf(f.Item)
		switch {
		case broken != nil:
			return own, nil, broken
		case !r.Held():
			err = errFreed
			continue
		}
		a.again = a.seen.Nonce == r.Nonce && a.seen.Fence == r.Fence && a.seen.Beat == r.Beat
		a.seen = r
		held = append(held, a)
		delete(g.ended, a.key)
		if g.client.isGhost(s, &r) {
			ghosts = append(ghosts, a)
		}
	}
	if (err == nil || errors.Is(err, errAgain)) && !own && len(held) > 0 {
		g.held = held
		err = g.heldError()
	}
	return own, ghosts, err
}

// granted makes leases of rows that name this gathering. Their fences are read.
//
// Cost: n read units for n locks, in one request, and what settling them takes.
func (g *gathering) granted(ctx context.Context, s *session) (b *Bundle, err error) {
	c := g.client
	var items []table.Item
	err = c.attempts(ctx, attemptTimeout(g.length()), func(ctx context.Context, _ instant) (err error) {
		items, err = c.table.BatchGet(ctx, g.keys(), true)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, a := range g.list {
		if !isString(c.of(items[i], attrNonce), a.nonce) || s != nil && !isString(c.of(items[i], attrSession), s.id) {
			return nil, errScattered
		}
	}
	began := g.written(c.of(items[0], attrAcquired))
	leases := make([]*Lease, 0, len(g.list))
	defer func() {
		if b != nil {
			return
		}
		// The others are nobody's yet: abandon takes them back with one request.
		begun := slices.DeleteFunc(leases, func(l *Lease) bool { return l.began.IsZero() })
		for _, failed := range each(begun, func(l *Lease) error { return l.giveBack(ctx) }) {
			err = join(err, failed)
		}
	}()
	at := map[*Lease]int{}
	for i, a := range g.list {
		l := a.named(items[i], began, s)
		leases, at[l] = append(leases, l), i
	}
	for _, err := range each(leases, func(l *Lease) error { return g.list[at[l]].settle(ctx, l, items[at[l]]) }) {
		if err != nil {
			return nil, err
		}
	}
	for _, l := range leases {
		if err := l.beginFor(ctx); err != nil {
			return nil, err
		}
	}
	for _, l := range leases {
		c.room.handed(l)
	}
	return c.bundle(context.WithoutCancel(ctx), leases), nil
}

// abandon takes back what a transaction without a clear answer may have acquired. What it
// returns is closed in the end.
func (g *gathering) abandon(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	if len(g.doubts()) == 0 {
		close(done)
		return done
	}
	left := make([]named, len(g.list))
	for i, a := range g.list {
		left[i] = named{a.key, a.nonce}
	}
	g.client.work.Go(func() { // which Close waits for
		defer close(done)
		g.takeBack(ctx, left)
	})
	return done
}

// named is a row and whom it may name.
type named struct {
	key   keys.Key
	nonce string
}

// takeBack frees the rows that name this gathering. Most often those are all or none, which
// one transaction finds out.
func (g *gathering) takeBack(ctx context.Context, left []named) {
	ctx, cancel := g.client.clock.detached(ctx)
	defer cancel()
	c := g.client
	for len(left) > 0 {
		var failed []*table.ConditionError
		err := c.attempts(ctx, attemptTimeout(g.length()), func(ctx context.Context, start instant) error {
			ops := make([]table.Op, len(left))
			for i, a := range left {
				ops[i] = c.rows.release(a.key, a.nonce, start.wall, 0)
			}
			err := c.table.Write(ctx, ops...)
			failed = table.Conditions(err)
			return err
		})
		if len(failed) == 0 {
			// Nobody is left to hear of a failure; whoever waits for the rows has them freed.
			for _, a := range left {
				c.room.gone(a.key, a.nonce)
			}
			if err == nil {
				c.preserveAll(ctx, left)
			}
			c.config.Logger.Debug("lock: took back an acquisition of several locks", "error", err)
			return
		}
		other := make(map[int]bool, len(failed)) // what does not name it
		for _, f := range failed {
			other[f.Index] = true
		}
		var rest []named
		for i, a := range left {
			if !other[i] {
				rest = append(rest, a)
			}
		}
		left = rest
	}
}

// preserveAll is preserve for rows that one transaction has freed, which does not tell what they keep.
//
// Cost: n read units for n rows.
func (c *Client) preserveAll(ctx context.Context, freed []named) {
	list := make([]keys.Key, len(freed))
	for i, a := range freed {
		list[i] = a.key
	}
	rows, err := c.table.BatchGet(ctx, list, true)
	if err != nil {
		return
	}
	for i, row := range rows {
		c.preserve(ctx, list[i], row)
	}
}
