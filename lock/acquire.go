package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
)

// Acquire takes the lock. If somebody else holds it, Acquire waits in the lock's line until it has the lock, until ctx
// ends or until the client is closed. An outage of DynamoDB does not end a wait that has begun. If the wait ends without
// the lock, the error matches the reason, and a *[HeldError] in it describes the holder.
//
// The lease does not depend on ctx: it goes on when ctx ends. End it with [Lease.Release] or [Lease.Commit], or use
// [Client.Do].
//
// Order: first come, first served, in all processes. The goroutines of one client share a place in the line. They pass
// the lock to each other at most [Config.Handoffs] times in a row while other processes wait. A goroutine whose
// context ends leaves the place to the next one.
//
// Locks are not reentrant: a goroutine that holds the lock and acquires it again waits for itself. Pass the [*Lease] as
// an argument instead.
//
// Cost: one conditional write, whether the lock is free or not. One more write if the client has no session yet (none
// with [Fixed]). While it waits, looks of half a read unit each: 1 to 4 in all if up to 20 processes wait and nobody holds the
// lock for more than 0.2 s. In a longer wait, the next in the line looks at least every 0.75 s, and every other process at
// least every 5 s (or every quarter of [Config.Lease], if that is less). Before a deadline, some 10 more
// (REFERENCE.md, Waiting). To take the lock from a dead holder: at most two more writes.
func (c *Client) Acquire(ctx context.Context, target Target, opts ...Option) (*Lease, error) {
	l, err := one(c.acquire(ctx, []Target{target}, opts, (*acquisition).wait))
	return l, wrap("acquire", err)
}

// TryAcquire takes the lock if it is free. It does not wait: if somebody holds the lock or waits for it, the error is a
// *[HeldError]. (Goroutines of this client that are about to enter the line do not count.) Holders that died long ago do
// not count either; REFERENCE.md tells what that means.
//
// Cost: one conditional write, whether it succeeds or not. One more write if the client has no session yet (none with
// [Fixed]), and one for each process that holds, to ask it, if the client has seen it hold for longer than a lease; again each
// time that this time has doubled. To take the lock from a dead holder: at most two more writes. To take it from several ([Shared], [Permits]): one
// write for each of their sessions, one for each 25 tickets that are removed, and one to enter the line again.
func (c *Client) TryAcquire(ctx context.Context, target Target, opts ...Option) (*Lease, error) {
	l, err := one(c.acquire(ctx, []Target{target}, opts, (*acquisition).try))
	return l, wrap("try acquire", err)
}

func one(list []*Lease, err error) (*Lease, error) {
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// acquisition is one call that acquires one lock, or several together. It enters the line of each lock with one ticket. Each time that
// it has to start over, it takes new tickets, since no ticket is used twice.
type acquisition struct {
	client *Client
	request
	entries []*entry
	began   time.Time     // monotonic
	place   *place        // the process's place in the line; nil if the call does not have it (any more)
	heir    *waiter       // of a ticket that a pass puts into the line: who gets it; nil for any other
	wake    chan struct{} // capacity 1: a look has come, or a ticket was removed by force

	taken   bool             // the entries have tickets, and this call answers for them
	session *session.Session // the session of the tickets; nil if they have Fixed leases
	start   clock.Instant    // just before the tickets were taken or last renewed: MaxHold and Fixed leases count from it
	inDoubt bool             // the tickets may be in their lines, or a late request may still enter them
	behind  bool             // the call has waited behind another goroutine of this process
	waited  bool             // the call has waited in a line, or was refused because a lock was held or a line was full
	back    bool             // the call enters again after it has lost its places, perhaps along with all calls of this process
	turn    chan struct{}    // closed when it is this call's turn to enter again; guarded by returns.mu
}

func (c *Client) acquisition(ctx context.Context, targets []Target, opts []Option) (*acquisition, error) {
	r, err := c.request(ctx, opts)
	if err != nil {
		return nil, err
	}
	if len(targets) == 0 || len(targets) > MaxTargets {
		return nil, invalid("%d targets: want 1 to %d", len(targets), MaxTargets)
	}
	a := &acquisition{client: c, request: r, began: c.clk().Now(), wake: make(chan struct{}, 1)}
	for i, t := range targets {
		key, err := c.key(t)
		if err != nil && len(targets) > 1 {
			err = fmt.Errorf("target %d: %w", i, err)
		}
		if err != nil {
			return nil, err
		}
		if j := slices.IndexFunc(a.entries, func(e *entry) bool { return e.key == key }); j >= 0 {
			return nil, invalid("targets %d and %d are the same lock", j, i)
		}
		e := &entry{client: c, target: t, key: key, wake: a.wake}
		e.row.Store(&unseen)
		if c.config.Backoff != nil {
			e.patience = c.config.Backoff()
		}
		a.entries = append(a.entries, e)
	}
	return a, nil
}

func (c *Client) acquire(ctx context.Context, targets []Target, opts []Option, how func(*acquisition, context.Context) ([]*Lease, error)) (list []*Lease, err error) {
	ctx = checked(ctx)
	began := c.clk().Now()
	defer func() { c.metrics.record(ctx, waitDuration, c.clk().Ago(began), failureOf(ctx, err)...) }()
	a, err := c.acquisition(ctx, targets, opts)
	if err != nil {
		return nil, err
	}
	open, leave, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := cmp.Or(c.checkRegion(open), causeOf(open)); err != nil {
		return nil, err
	}
	defer a.leave(open) // also where a function of Config has panicked
	return how(a, open)
}

// queued reports whether the call queues behind other goroutines of this process: it does for a single lock that it holds alone.
// Permits and readers each enter the line themselves, since holders that hold at once pass nothing to each other.
func (a *acquisition) queued() bool { return len(a.entries) == 1 && a.permits == 0 && !a.shared }

type (
	// The process's place in the line is handed over together with a ticket: that of a pass, or of a call that gave up.
	place  = waitqueue.Place[*acquisition, *acquisition]
	waiter = waitqueue.Waiter[*acquisition, *acquisition]
	turnOf = waitqueue.Turn[*acquisition, *acquisition]
)

// wait queues behind the goroutines of this process that want the same lock, then waits in the line.
func (a *acquisition) wait(ctx context.Context) ([]*Lease, error) {
	a.client.sessions.wait(1) // also behind other goroutines: a call that takes over a place goes on with the looks that are due
	defer a.client.sessions.wait(-1)
	if !a.queued() {
		return a.line(ctx)
	}
	w := a.client.queues.Join(a.entries[0].key, a)
	a.behind = len(w.Turn()) == 0
	select {
	case t := <-w.Turn():
		return a.inTurn(ctx, t, a.line)
	case <-ctx.Done():
	}
	if t, came := w.Leave(); came {
		return a.inTurn(ctx, t, a.line)
	}
	return nil, a.gaveUp(ctx)
}

// try enters the lines if nobody is in them, or only holders that died long ago. A reader also joins other readers.
func (a *acquisition) try(ctx context.Context) ([]*Lease, error) {
	if a.queued() {
		if p := a.client.queues.Take(a.entries[0].key); p != nil {
			return a.inTurn(ctx, turnOf{Place: p}, a.tryLine)
		} // otherwise another goroutine of this process has the place, and the try enters the line without it
	}
	return a.tryLine(ctx)
}

// inTurn runs how with the process's place, and with the ticket that was handed over with the turn, if any.
func (a *acquisition) inTurn(ctx context.Context, t turnOf, how func(context.Context) ([]*Lease, error)) (list []*Lease, err error) {
	a.place = t.Place
	defer func() { // also runs if a Logger panics
		if list != nil {
			list[0].keepPlace(a.place)
			return
		}
		a.leave(ctx) // before the next goroutine of this process enters the line
		if a.place != nil {
			a.place.Over()
		}
	}()
	if t.Grant != nil {
		a.inherit(t.Grant)
	}
	if ctx.Err() != nil {
		return nil, a.gaveUp(ctx)
	}
	return how(ctx)
}

func (a *acquisition) tryLine(ctx context.Context) ([]*Lease, error) {
	err := a.replaceDead(ctx, a.enter(ctx, true))
	if err == nil {
		err = a.allFirst()
	}
	if errors.Is(err, ErrHeld) {
		a.askHolders()
	}
	if err != nil {
		return nil, attempt.WithCause(ctx, err)
	}
	return a.granted(ctx)
}

// gaveUp is the error of a wait that ended early: the cause, and an error that tells who held the locks.
func (a *acquisition) gaveUp(ctx context.Context) error {
	if a.waited || a.behind {
		a.client.vain.Store(int64(a.client.clk().Ago(a.began)))
	}
	cause := causeOf(ctx)
	if held := a.heldBy(); held != nil {
		return fmt.Errorf("%w: %w", cause, held)
	}
	return cause
}

// heldBy is the error that tells who holds the locks that the call wants; nil if nobody else does.
func (a *acquisition) heldBy() error {
	var held []*HeldError
	for _, e := range a.entries {
		row := e.last()
		switch {
		case row == nil:
			row = a.client.seen(e.key)
		case row.Granted(e.ticket.ID): // this call itself holds
			row = nil
		}
		if row != nil {
			held = append(held, a.client.heldError(e.target, row))
		}
	}
	return heldBy(held...)
}

// take makes new tickets. This process answers for them from now on.
//
// Cost: none, or one conditional write to open a session, or half a read unit if DynamoDB's time is not known.
func (a *acquisition) take(ctx context.Context) error {
	c := a.client
	a.inDoubt = false
	if a.fixed == 0 {
		s, err := c.keeper.Use(ctx)
		if err != nil {
			return err
		}
		a.session = s
	}
	if err := c.learnTime(ctx, a.entries[0].key); err != nil {
		return err
	}
	if a.back {
		if err := c.returns.turn(ctx, a); err != nil {
			return err
		}
	}
	a.start = c.clk().Instant()
	a.taken = true
	for _, e := range a.entries {
		e.stale.Store(false) // it concerned the previous ticket
		e.standing = standing{ticket: c.newTicket(&a.request, a.session), path: pathFree, since: a.start.Mono}
		c.tickets.set(e.ticket.ID, e)
		if a.place != nil {
			a.place.Stand(e.ticket.ID)
		}
	}
	return nil
}

// granted is called when all entries hold. It makes a lease of each, and begins it. If one of them cannot begin, all are given back.
func (a *acquisition) granted(ctx context.Context) (_ []*Lease, err error) {
	list := make([]*Lease, len(a.entries))
	for i, e := range a.entries {
		list[i] = a.newLease(e)
		if i > 0 && a.session != nil {
			a.session.Use() // the first lease takes over the use of the acquisition; each other lease needs one of its own
		}
	}
	a.taken, a.session = false, nil
	begun := false
	defer func() {
		if !begun {
			// With the place, the release passes the lock to the next goroutine of this process. A call that goes on needs the place itself.
			// After any other error the release may fail as well, and those behind would wait for it.
			if ctx.Err() != nil || errors.Is(err, errSettled) {
				list[0].keepPlace(a.place)
				a.place = nil
			}
			ctx, cancel := a.client.clk().Detached(ctx)
			defer cancel()
			_ = eachLease(list, func(l *Lease) error { return l.release(ctx) })
		}
	}()
	// In parallel: one after the other, the payloads could take longer than a lease.
	if err := attempt.Each(list, func(l *Lease) error { return l.writeFirst(ctx) }); err != nil {
		return nil, err
	}
	for _, l := range list {
		if err := l.begin(ctx); err != nil {
			return nil, err
		}
	}
	begun = true
	return list, nil
}
