package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

var (
	// ErrLost means that the lock is not held any more. [ErrExpired], [ErrStolen] and [ErrMaxHold] match it.
	ErrLost = errors.New("lock lost")

	// ErrExpired is the cause of a lease's context if the lease ended without a renewal. Guarded writes still go
	// through until somebody else acquires the lock.
	ErrExpired = fmt.Errorf("%w: the lease ended without a renewal", ErrLost)

	// ErrStolen is the cause if the lock's row does not name this holder any more: somebody else took the lock, or the
	// row was deleted.
	ErrStolen = fmt.Errorf("%w: the row does not name this holder any more", ErrLost)

	// ErrMaxHold is the cause if the lock was held for longer than [MaxHold] or [Config.MaxHold] allows. The lock is
	// released then.
	ErrMaxHold = fmt.Errorf("%w: held for longer than MaxHold allows", ErrLost)

	// ErrMultiRegion means that the table has replicas in other regions, where the same lock could be granted again.
	// Name the one region that acquires locks in [Config.HomeRegion].
	ErrMultiRegion = errors.New("the table has replicas in other regions, and Config.HomeRegion names none")

	// ErrRevoked is the cause if somebody asked for the lock with [Client.Revoke]. The lock is still held: guarded
	// writes go through until it is released. It does not match [ErrLost].
	ErrRevoked = errors.New("asked to release the lock")

	// ErrReleased is the cause after Release, Commit or Close. It is also the error of a write under a lease that was
	// released. It does not match [ErrLost].
	ErrReleased = errors.New("lock released")

	// ErrHeld means that somebody else holds the lock or waits for it. The error is a *[HeldError].
	ErrHeld = errors.New("lock is held")

	// ErrNotHeld means that nobody holds the lock.
	ErrNotHeld = errors.New("lock is not held")

	// ErrNoSession means that [Client.Revoke] cannot reach the holder: it has a [Fixed] lease, or its session has
	// ended.
	ErrNoSession = errors.New("the lock's holder has no live session")

	// ErrNoTime means that DynamoDB's answers have no Date header, as behind a proxy that removes it. [Client.Every] needs
	// DynamoDB's time.
	ErrNoTime = errors.New("DynamoDB's answers do not tell its time")

	// ErrNotLock means that the row at the lock's key is not a lock. The row was not changed.
	ErrNotLock = lockrow.ErrNotLock

	// ErrMalformed means that the row of the lock, or of its holder's session, has content that no client of this
	// package writes, or that a client with another [Config.AttributePrefix] or [Config.SessionKey] has written. In the first
	// case, nobody can acquire the lock until an operator resets it with [Client.ForceRelease].
	ErrMalformed = lockrow.ErrMalformed

	// ErrClosed means that the client was closed.
	ErrClosed = errors.New("lock client closed")

	// ErrInvalid means that an argument or a setting is not acceptable. Nothing was written.
	ErrInvalid = table.ErrInvalid
)

// HeldError describes who holds a lock and who waits for it. It matches [ErrHeld]. Its text does not contain the lock's
// name or key, since errors are logged.
type HeldError struct {
	Target Target
	Owner  string    // the first 64 bytes of the holder's [Config.Owner]
	Ticket string    // of the holder, for [Client.ForceRelease]
	Fence  int64     // of the holder
	Since  time.Time // since when the holder's process has held the lock, also if its goroutines have passed on a lease that is not Fixed
	Until  time.Time // when a [Fixed] lease ends unless it is renewed; zero for any other
	Line   []Place   // in order: the first holds the lock, the others wait
	Data   Data      // payload of the lock
	Own    bool      // this client is the holder, or one of the holders: locks are not reentrant

	Permits int // how many can hold at once ([Permits]); 0 for a lock
	Holding int // how many of Line hold: 1, or more with [Permits] or [Shared]. The other fields, except Own, describe the first holder
}

func (c *Client) heldError(t Target, r *lockrow.Row) *HeldError {
	e := &HeldError{
		Target: t, Fence: r.Fence, Since: fromMillis(r.HeldSince(0)), Until: fromMillis(r.Ends()), Data: Data{r.Data},
		Permits: int(r.Permits), Holding: r.Holders(),
	}
	for _, t := range r.Line {
		e.Line = append(e.Line, placeOf(t))
	}
	if first, held := r.First(); held {
		e.Owner, e.Ticket, e.Fence = first.Owner, first.ID, r.Holding(0).Fence
	}
	e.Own = slices.ContainsFunc(r.Line[:r.Holders()], func(t lockrow.Ticket) bool { return c.tickets.find(t.ID) != nil })
	return e
}

// Waiting is the number of places that wait behind those that hold, with the caller's own if it was in the line. With
// [Permits] and [Shared], one process can have several places.
func (e *HeldError) Waiting() int { return max(len(e.Line)-max(e.Holding, 1), 0) }

func (e *HeldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v by %q", ErrHeld, e.Owner)
	more := max(e.Holding-1, 0)
	if more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	switch {
	case e.Own && more > 0:
		b.WriteString(", this client itself among them,")
	case e.Own:
		b.WriteString(", which is this client itself,")
	}
	if !e.Since.IsZero() {
		fmt.Fprintf(&b, " since %s", e.Since.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(&b, " (fence %d)", e.Fence)
	if !e.Until.IsZero() {
		fmt.Fprintf(&b, ", until %s unless renewed", e.Until.UTC().Format(time.RFC3339))
	}
	if n := e.Waiting(); n > 0 {
		fmt.Fprintf(&b, ", %d waiting", n)
	}
	return b.String()
}

// Is reports whether target is [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// heldTold is how many holders the text of a HeldAllError names at most.
const heldTold = 3

// HeldAllError lists the holders of those locks that a call could not get, in the order of the call's targets. It
// matches [ErrHeld]. [errors.As] finds the first *[HeldError] in it.
type HeldAllError struct {
	Held []*HeldError // at least one
}

// heldBy returns the error of a call that these holders block; nil if there are none.
func heldBy(list ...*HeldError) error {
	if list == nil {
		return nil
	}
	return &HeldAllError{list}
}

func (e *HeldAllError) Error() string {
	var texts []string
	for _, held := range e.Held[:min(len(e.Held), heldTold)] {
		texts = append(texts, held.Error())
	}
	if n := len(e.Held) - len(texts); n > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the holders.
func (e *HeldAllError) Unwrap() []error {
	list := make([]error, len(e.Held))
	for i, held := range e.Held {
		list[i] = held
	}
	return list
}

func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return &errs.OperationError{Package: "lock", Operation: operation, Err: err}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// join joins errors. The text of the result is one line.
func join(list ...error) error { return errs.Join(list...) }

func causeOf(ctx context.Context) error { return clock.Cause(ctx) }

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
