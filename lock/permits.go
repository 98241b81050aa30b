package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// Bounds of a number of permits.
const (
	MinPermits = lockrow.MinPermits // 2
	MaxPermits = lockrow.Cap        // 100, the places of a line
)

// Permits lets n callers hold at the same time, 2 to 100: a counting semaphore. Use it for example to allow at most ten
// exports at a time, over all instances.
//
//	lease, err := locks.Acquire(ctx, lock.Name("exports"), lock.Permits(10))
//
// The first n tickets in the line hold one permit each. First come, first served. If a process dies, its permits are
// free again after its lease; the other permits are not affected.
//
// All clients have to name the same n. A call with another number is refused ([*PermitsError]); [Client.SetPermits]
// changes the number for all. A target is either a lock or has permits: a call of the other kind gets the same error.
//
// Guarded writes ([Lease.Write], [Lease.Commit], [Lease.Guard]) are applied only while the permit is held. Holders hold
// at the same time, so their writes can be applied in any order. Writes of one lease are applied in the order of the
// calls, with one exception: a write whose answer was lost may be applied after a later one. All who enter, leave and
// write touch the same row. DynamoDB refuses requests that conflict there, and they are repeated.
//
// A call takes one permit. Callers that take several, one after the other, can wait for each other for ever.
//
// The goroutines of a client enter the line one by one, and do not pass a permit on. Permits cannot be combined with
// [Shared], [Fixed] and [WithData], nor with [Client.AcquireAll], [Client.Lead] and [Client.Every].
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

// PermitsError means that a call has named another number of permits than the row has, or that one of the two is a
// lock, which has the number 0. Nothing was acquired.
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

// SetPermits changes the number of permits of a target, for all clients, to 2 to 100. If the number grows, those who
// wait get a permit with their next look. If it shrinks, no holder loses its permit: the next permit is given when
// fewer than n are held.
//
// From then on, calls with the old number are refused: the field Row of [*PermitsError] has the new one. Calls that
// already wait in the line go on waiting. If nobody has acquired the target with [Permits], the error matches
// [table.ErrNotFound]; if it is a lock, it is a [*PermitsError]. Of two calls at the same time, the later one counts.
//
// Cost: one consistent read and one conditional write; only the read if the number is n already. Both are sent again if the
// number gets smaller, and the line of waiters becomes empty or stops being empty between them. The first call of a client
// without [Config.HomeRegion] sends one DescribeTable, as [Client.Acquire] does.
func (c *Client) SetPermits(ctx context.Context, target Target, n int) error {
	if err := Permits(n)(&request{}); err != nil {
		return wrap("set permits", err)
	}
	return wrap("set permits", c.operateAtHome(ctx, target, func(ctx context.Context, key keys.Key) error {
		_, err := c.repeater.Do(ctx, attempt.MaxTimeout, func(ctx context.Context) error {
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
				return attempt.ErrAgain // the row has changed since it was read
			}
			return err
		})
		return err
	}))
}
