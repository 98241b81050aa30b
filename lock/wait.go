package lock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// minPoll is the shortest time between two looks at a lock, whatever the backoff says.
const minPoll = 10 * time.Millisecond

// Acquire takes the lock, and waits while somebody else holds it: until ctx ends, the
// client is closed, or Config.Backoff stops. The error then says who held it (*HeldError)
// beside why the waiting ended. The lease is not bound to ctx.
//
// Goroutines of one client are served first come, first served; between processes there is
// no order. Locks are not reentrant: whoever holds the lock and acquires it again waits
// for itself. Pass the lease down.
//
// Cost: one conditional write if the lock is free. While waiting, however many goroutines
// wait, half a read unit per look at the lock and at its holder's session each, and one
// write when it can be taken; nothing when a lease of this client hands it over.
func (c *Client) Acquire(ctx context.Context, target Target, opts ...Option) (*Lease, error) {
	lease, err := c.acquire(ctx, target, opts, (*acquisition).wait)
	return lease, wrap("acquire", err)
}

func (a *acquisition) wait(ctx context.Context) (lease *Lease, err error) {
	room := a.client.room
	if ctx.Err() != nil {
		return nil, causeOf(ctx)
	}
	w, first := room.enter(a)
	defer func() { // also where something of the application's has panicked: others wait behind
		if handed := room.leave(w); handed != nil {
			// Handed over just as the waiting ended: pass it on, or free it.
			err = join(err, handed.giveBack(ctx))
		}
	}()
	if first {
		lease, err = a.tryOnce(ctx)
	}
	switch {
	case lease != nil:
		room.acquired(w, lease)
	case errors.Is(err, ErrHeld):
		room.refused(w, &a.seen)
		lease, err = a.listen(ctx, w)
	case err == nil:
		lease, err = a.listen(ctx, w)
	}
	if err != nil {
		if holder, ok := room.holder(w); ok && (ctx.Err() != nil || errors.Is(err, errGivenUp)) {
			err = fmt.Errorf("%w: %w", err, heldError(a.target, &holder))
		}
	}
	return lease, err
}

// listen does as the room says, until there is a lease or an error.
func (a *acquisition) listen(ctx context.Context, w *waiter) (*Lease, error) {
	room := a.client.room
	for {
		var n news
		select {
		case n = <-w.news:
		case <-ctx.Done():
			return nil, causeOf(ctx)
		}
		if n.lease != nil || n.err != nil {
			return n.lease, n.err
		}
		lease, err := a.takeOver(ctx, n.ended)
		switch {
		case err == nil:
			room.acquired(w, lease)
			return lease, nil
		case !errors.Is(err, ErrHeld):
			return nil, err
		case a.alive != nil:
			room.lives(w, n.ended.session, a.alive)
		default:
			room.refused(w, &a.seen)
		}
	}
}

var errGivenUp = errors.New("waiting was given up")
