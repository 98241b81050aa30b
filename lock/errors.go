package lock

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/table"
)

var (
	// ErrLost says that the lock is not held any more; ErrExpired, ErrStolen and ErrMaxHold match it.
	ErrLost = errors.New("lock lost")

	// ErrExpired is the cause of a lease's context when the lease ended without a renewal.
	// Until somebody else acquires, guarded writes still go through.
	ErrExpired = fmt.Errorf("%w: the lease ended without a renewal", ErrLost)

	// ErrStolen is the cause when the lock row was found to be somebody else's, or gone.
	ErrStolen = fmt.Errorf("%w: the row does not name this holder any more", ErrLost)

	// ErrMaxHold is the cause when the lock was held for longer than it may be
	// (Config.MaxHold): it is being released.
	ErrMaxHold = fmt.Errorf("%w: held for longer than it may be", ErrLost)

	// ErrMultiRegion says that the table has replicas in other regions, which could grant
	// the same lock, and that Config.HomeRegion does not say which region does.
	ErrMultiRegion = errors.New("the table has replicas in other regions, and Config.HomeRegion names none")

	// ErrRevoked is the cause when the lock was asked back (Client.Revoke). It is still
	// held: guarded writes go through until it is released. It does not match ErrLost.
	ErrRevoked = errors.New("lock asked back")

	// ErrReleased is the cause after Release, Commit or Close, and the error of writing
	// under a lease that was released. It is no loss and does not match ErrLost.
	ErrReleased = errors.New("lock released")

	// ErrHeld says that somebody else holds the lock; the error is a *HeldError.
	ErrHeld = errors.New("lock is held")

	// ErrNotHeld says that nobody holds the lock.
	ErrNotHeld = errors.New("lock is not held")

	// ErrNoSession says that the holder cannot be asked: its lease is one of its own
	// (Fixed), or its session has ended. Where it has, the lock can be acquired.
	ErrNoSession = errors.New("the lock's holder has no live session")

	// ErrNotLock says that the row at the lock's key is not a lock. It was not touched.
	ErrNotLock = errors.New("the row at the lock's key is not a lock")

	// ErrMalformed says that the lock row lacks an attribute or has one of a wrong type.
	// It was not touched.
	ErrMalformed = errors.New("malformed lock row")

	// ErrClosed says that the client was closed.
	ErrClosed = errors.New("lock client closed")

	// ErrInvalid says that an argument or a setting is not acceptable; nothing was sent.
	ErrInvalid = table.ErrInvalid
)

// HeldError says who holds a lock. It matches ErrHeld. Its text leaves the target out:
// names and keys are the application's, and errors end in logs.
type HeldError struct {
	Target Target
	Owner  string    // what the holder's Config.Owner says
	Fence  int64     // the holder's
	Since  time.Time // when it acquired, by its clock
	Until  time.Time // when it says its lease ends unless renewed; zero if it does not say
	Nonce  string    // of the acquisition
	Data   Data      // payload of the lock
}

func (e *HeldError) Error() string {
	owner := e.Owner
	if len(owner) > MaxOwner { // by another program
		owner = owner[:MaxOwner]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v by %q", ErrHeld, owner)
	if !e.Since.IsZero() {
		fmt.Fprintf(&b, " since %s", e.Since.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(&b, " (fence %d)", e.Fence)
	if !e.Until.IsZero() {
		fmt.Fprintf(&b, ", until %s unless renewed", e.Until.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// Is matches ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return &failure{operation, err}
}

// failure is an operation of this package that failed.
type failure struct {
	operation string
	err       error
}

func (f *failure) Error() string {
	return fmt.Sprintf("lock: %s: %s", f.operation, errs.Within("lock", f.err))
}

func (f *failure) Unwrap() error { return f.err }
