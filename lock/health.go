package lock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// HealthError tells why a Client is not healthy.
type HealthError struct {
	Remaining time.Duration // until the session ends unless it is renewed; 0 when the client is closed
	Cause     error         // of the last renewal, when it failed; ErrClosed after Close
}

func (e *HealthError) Error() string {
	if errors.Is(e.Cause, ErrClosed) {
		return e.Cause.Error()
	}
	return fmt.Sprintf("the session ends in %v unless renewed: %v", e.Remaining.Round(time.Millisecond), e.Cause)
}

// Unwrap gives the cause.
func (e *HealthError) Unwrap() error { return e.Cause }

// errOverdue is the cause where no renewal has failed yet: one hangs, or the process stood still.
var errOverdue = errors.New("the renewal is overdue")

// Healthy reports whether the client can keep what it holds: nil while it is open and more
// than half of its session's lease is left, otherwise a *HealthError. A client without a
// session is healthy: it holds nothing but Fixed leases, which nothing renews, and the next
// acquisition opens a session. That DynamoDB answers is not asked, so that its outage does
// not fail the checks of processes which hold nothing. Where ctx has ended the error
// matches its Err.
//
// Cost: none.
func (c *Client) Healthy(ctx context.Context) error {
	ctx = checked(ctx)
	if ctx.Err() != nil {
		return wrap("healthy", causeOf(ctx))
	}
	if c.work.closing.Err() != nil {
		return wrap("healthy", &HealthError{Cause: ErrClosed})
	}
	s := c.keeper.Current()
	if s == nil {
		return nil
	}
	left, failed := s.Remaining(), s.Failure()
	if left > c.config.Lease/2 {
		return nil
	}
	if failed == nil {
		failed = errOverdue
	}
	return wrap("healthy", &HealthError{Remaining: left, Cause: failed})
}

// Remaining is how long the client's session lasts unless it is renewed, by the more
// pessimistic of the wall and the monotonic clock; false where there is none. Right after a
// renewal that is the lease less the margin.
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
