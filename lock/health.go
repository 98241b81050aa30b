package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// errOverdue is the cause where no renewal has failed yet: one hangs, or the process stood still.
var errOverdue = errors.New("the renewal is overdue")

// Healthy reports whether the client can keep what it holds: nil while it is open and more than half of its session's
// lease is left. Otherwise the error matches why the last renewal failed, or [ErrClosed], or what ctx has ended with. A client
// without a session is healthy: it holds nothing but Fixed leases, which nothing renews, and the next acquisition opens a
// session. That DynamoDB answers is not asked, so that its outage does not fail the checks of processes which hold nothing.
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
	if left > c.config.Lease/2 {
		return nil
	}
	return wrap("healthy", fmt.Errorf("the session ends in %v unless renewed: %w", left.Round(time.Millisecond), cmp.Or(failed, errOverdue)))
}

// Remaining is how long the client's session lasts unless it is renewed, by the more pessimistic of the wall and the
// monotonic clock; false where there is none. Right after a renewal that is the lease less the margin.
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
