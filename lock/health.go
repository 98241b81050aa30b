package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errOverdue is the reason if no renewal has failed yet: a renewal hangs, or the process was paused.
var errOverdue = errors.New("the renewal is overdue")

// Healthy reports whether the client can keep the locks that it holds. It is nil while the client is open and more than half of the time
// that a renewal gives ([Config.Lease] less [Config.Margin]) is left. Otherwise the error matches the reason: why the last renewal
// failed, [ErrClosed], or the end of ctx. If no renewal has failed, but one hangs, the error says so and matches none of the exported ones.
//
// A client without a session is healthy: it holds nothing that needs a renewal. Healthy does not send a request. So an
// outage of DynamoDB does not fail the health checks of processes that hold no lock.
//
// Cost: none.
func (c *Client) Healthy(ctx context.Context) error {
	ctx = checked(ctx)
	s := c.keeper.Current()
	switch {
	case ctx.Err() != nil:
		return wrap("healthy", causeOf(ctx))
	case c.closing.Err() != nil:
		return wrap("healthy", ErrClosed)
	case s == nil:
		return nil
	}
	left, failed := s.Remaining(), s.Failure()
	if left > c.config.own(c.config.Lease)/2 {
		return nil
	}
	return wrap("healthy", fmt.Errorf("the session ends in %v unless renewed: %w", left.Round(time.Millisecond), cmp.Or(failed, errOverdue)))
}

// Remaining returns how long the client's session lasts without another renewal, by the wall clock or the monotonic
// clock, whichever is less. It is false if there is no session. Right after a renewal it is [Config.Lease] less
// [Config.Margin].
//
// Cost: none.
func (c *Client) Remaining() (time.Duration, bool) {
	s := c.keeper.Current()
	if s == nil {
		return 0, false
	}
	left := s.Remaining()
	return left, left > 0
}

// risks is whether the session is at risk, what OnAtRisk was told last, and whether a call of it is under way.
type risks struct {
	mu                sync.Mutex // guards the following; not held while OnAtRisk runs
	is, told, telling bool
}

// risk calls OnAtRisk when the session gets at risk, and when it is safe again or a new session has followed it. There is one call at
// a time, and the last call tells the present state.
func (c *Client) risk(atRisk bool) {
	r := &c.risks
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.is = atRisk; r.telling || c.config.OnAtRisk == nil {
		return
	}
	defer func() { r.telling = false }()
	for r.telling = true; r.told != r.is; {
		r.told = r.is
		func() {
			r.mu.Unlock()
			defer r.mu.Lock() // also if OnAtRisk panics
			c.config.OnAtRisk(r.told)
		}()
	}
}
