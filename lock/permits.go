package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// Bounds of a number of permits.
const (
	MinPermits = lockrow.MinPermits
	MaxPermits = lockrow.Cap
)

// Permits lets n callers hold at once, 2 to 100: a counting semaphore, such as for no more than ten exports at a time over all
// instances. The first n tickets in the line hold, each of them one permit. Permits are given first come, first served, and the permit
// of a process that died is free again once its session is dead, without a cleanup of anybody's.
//
//	lease, err := locks.Acquire(ctx, lock.Name("exports"), lock.Permits(10))
//
// All clients have to name the same n: another one is refused ([*PermitsError]). [Client.SetPermits] changes it. A target is
// either a lock or has permits, and the row refuses the other (the same error).
//
// Guarded writes ([Lease.Write], [Lease.Commit], [Lease.Guard]) are applied only while the permit has not left the line. Holders hold
// at once, so their writes have no order among each other. Those of one lease are in the order of the calls, but for one that was
// given up without an answer, which may still be applied after a later one. All of them, and all who enter and leave, touch one
// row: DynamoDB refuses requests that meet, which are repeated.
//
// Goroutines of one client enter one by one, and none passes its permit on. Not with [Shared], [Fixed] and [WithData], and not in
// AcquireAll, Lead and Every.
func Permits(n int) Option {
	return func(r *request) error {
		switch {
		case n == 1:
			return invalid("Permits(1): one permit is a lock, which is acquired without this option")
		case n < MinPermits || n > MaxPermits:
			return invalid("Permits(%d): want %d to %d", n, MinPermits, MaxPermits)
		}
		r.permits = int64(n)
		return nil
	}
}

// PermitsError means that a call has named another number of permits than the row has, or that one of both is a lock, whose
// number is 0. Nothing was acquired.
type PermitsError struct {
	Named int // by the call
	Row   int // that the row has
}

func (e *PermitsError) Error() string {
	switch {
	case e.Row == 0:
		return fmt.Sprintf("the row is that of a lock, and the call names %d permits", e.Named)
	case e.Named == 0:
		return fmt.Sprintf("the row has %d permits, and the call names none", e.Row)
	}
	return fmt.Sprintf("the row has %d permits, and the call names %d: all clients have to name the same number (SetPermits changes it)", e.Row, e.Named)
}

// SetPermits changes the number of permits of a target for all clients, to 2 to 100. Where it grows, those who wait hold with their
// next look. Where it shrinks, nobody loses a permit: the next one is given once fewer than n are held.
//
// Calls that name the number of before are refused from then on ([*PermitsError], whose Row is the new one). Those that wait in
// the line wait on, by the new number. A target that nobody has acquired with [Permits] is table.ErrNotFound, and a lock a
// [*PermitsError]. Of two calls at the same time the later one counts.
//
// Cost: one consistent read and one conditional write; only the read where the number is n.
func (c *Client) SetPermits(ctx context.Context, target Target, n int) error {
	return wrap("set permits", c.operate(ctx, target, func(ctx context.Context, key keys.Key) error {
		if err := Permits(n)(&request{}); err != nil {
			return err
		}
		if err := c.checkRegion(ctx); err != nil {
			return err
		}
		var h attempt.History
		return c.repeater.Do(ctx, attempt.MaxTimeout, &h, func(ctx context.Context, _ clock.Instant) error {
			row, err := c.read(ctx, key)
			switch {
			case err != nil:
				return err
			case row.Permits == 0:
				return &PermitsError{Named: n}
			case row.Permits == int64(n):
				return nil
			}
			err = c.table.Write(ctx, c.layout.rows.SetPermits(key, &row, int64(n), c.ttl(0)))
			if errors.Is(err, table.ErrCondition) {
				return attempt.ErrAgain // somebody else has changed it
			}
			return err
		})
	}))
}
