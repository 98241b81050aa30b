package lock

import (
	"context"
	"slices"
	"time"

	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
)

// drop forgets the tickets. They are in no line any more, or are ghosts where they come late.
func (a *acquisition) drop() {
	if a.taken {
		for _, e := range a.entries {
			a.client.tickets.drop(e.ticket.ID)
		}
	}
	if a.session != nil {
		a.session.Unuse()
	}
	a.taken, a.session = false, nil
}

// leaving is how long a call waits for tickets to be out of their lines before it returns.
const leaving = 100 * time.Millisecond

// leave takes the tickets out of their lines: they may be there, or may yet come. It goes on in the background
// where DynamoDB does not answer at once, and the session lasts until then.
func (a *acquisition) leave(ctx context.Context) {
	if !a.inDoubt || !a.taken {
		a.drop()
		return
	}
	c := a.client
	gone := &acquisition{client: c, session: a.session, taken: true}
	for _, e := range a.entries { // which may get new tickets meanwhile
		left := &entry{client: c, key: e.key, standing: e.standing}
		left.row.Store(e.row.Load())
		gone.entries = append(gone.entries, left)
	}
	a.taken, a.session = false, nil
	done := make(chan struct{})
	c.work.Go(func() {
		defer close(done)
		defer gone.drop()
		gone.withdraw(ctx)
	})
	c.moment(done)
}

// moment waits until done is closed, but not for long.
func (c *Client) moment(done <-chan struct{}) {
	t := c.clk().NewTimer(leaving)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C():
	}
}

// withdraw takes the tickets out of their lines, and tries again while their session lasts: others, who do not wait, would not ask for
// them. Those that have leases of their own would stay for as long. It goes in rounds, in which each is tried once: rows that
// fail keep no other.
func (a *acquisition) withdraw(ctx context.Context) {
	c, list := a.client, slices.Clone(a.entries)
	c.withdraw(ctx, a.session, func(ctx context.Context) (done bool) {
		_ = attempt.Each(list, func(e *entry) error {
			ctx, cancel := c.clk().Detached(ctx) // a time of its own
			defer cancel()
			var row *lockrow.Row
			if r := e.row.Load(); r.Place(e.ticket.ID) >= 0 {
				row = r
			}
			e.left = !c.passes(c.remove(ctx, e.key, e.ticket.ID, row, e.malformed))
			return nil
		})
		list = slices.DeleteFunc(list, func(e *entry) bool { return e.left })
		return len(list) == 0
	})
}

// withdraw calls remove until it is done: for tickets of a session while that lasts, for others until Close begins, and once more
// then.
func (c *Client) withdraw(ctx context.Context, s *session.Session, remove func(context.Context) (done bool)) {
	done := c.repeat(ctx, c.config.Lease/8, func(ctx context.Context) bool { return remove(ctx) || s != nil && s.Cause() != nil })
	if !done && s == nil {
		ctx, cancel := c.clk().Detached(ctx)
		defer cancel()
		remove(ctx)
	}
}
