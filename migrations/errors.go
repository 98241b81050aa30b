package migrations

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

var (
	// ErrInvalid reports that an argument or a migration is not acceptable; nothing was sent.
	ErrInvalid = table.ErrInvalid

	// ErrDrift reports that an applied migration has another revision now: a *DriftError.
	ErrDrift = errors.New("an applied migration was changed")

	// ErrOutOfOrder reports that a pending migration comes before one that is applied: an
	// *OrderError.
	ErrOutOfOrder = errors.New("a pending migration comes before an applied one")

	// ErrUnknown reports that the table has records of migrations that this program does not
	// have: an *UnknownError.
	ErrUnknown = errors.New("the table has records of unknown migrations")

	// ErrUnfinished reports that a migration was cut off or has failed before, and that going
	// on with it is not safe without somebody's decision: an *UnfinishedError.
	ErrUnfinished = errors.New("a migration was not finished")

	// ErrIrreversible reports that a migration has no Down.
	ErrIrreversible = errors.New("the migration has no Down")

	// ErrRecorded reports that a Run was used after Atomic, which finishes its migration.
	ErrRecorded = errors.New("the migration is recorded as finished already")

	// ErrSegments reports that a backfill that was cut off had another number of segments,
	// whose positions mean nothing to this one.
	ErrSegments = errors.New("the number of segments changed during a backfill")

	// ErrPanic reports that a migration panicked: a *PanicError.
	ErrPanic = errors.New("panic")

	// ErrMalformed reports that the row of a migration or of a checkpoint is not in order, as
	// one of a newer version of this package may seem to be. Nothing was run.
	ErrMalformed = errors.New("malformed record")

	// errExited stands for a function that ended its goroutine (runtime.Goexit).
	errExited = errors.New("the function ended its goroutine")

	// errNoReturn stands for a step that has not returned when its migration does: its panic
	// was recovered outside of it, or it still runs in a goroutine.
	errNoReturn = errors.New("the step did not return")
)

// DriftError lists migrations that were changed after they had been applied. It matches ErrDrift.
type DriftError struct{ Drifted []Drift }

// Drift is one migration that was changed.
type Drift struct{ ID, Applied, Now string } // the revisions

func (e *DriftError) Error() string {
	texts := make([]string, len(e.Drifted))
	for i, d := range e.Drifted {
		texts[i] = fmt.Sprintf("%s (applied %q, now %q)", d.ID, d.Applied, d.Now)
	}
	return fmt.Sprintf("%v: %s", ErrDrift, strings.Join(texts, ", "))
}

// Is matches ErrDrift.
func (e *DriftError) Is(target error) bool { return target == ErrDrift }

// OrderError lists pending migrations that come before the last applied one. It matches
// ErrOutOfOrder.
type OrderError struct {
	Pending []string
	Applied string // the last one that is applied
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("%v: %s before %s", ErrOutOfOrder, strings.Join(e.Pending, ", "), e.Applied)
}

// Is matches ErrOutOfOrder.
func (e *OrderError) Is(target error) bool { return target == ErrOutOfOrder }

// UnknownError lists records of migrations that this program does not have. It matches ErrUnknown.
type UnknownError struct{ IDs []string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%v: %s", ErrUnknown, strings.Join(e.IDs, ", "))
}

// Is matches ErrUnknown.
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }

// UnfinishedError says which migration waits for a decision: for Repair, or for Down where
// it was being taken back. It matches ErrUnfinished.
type UnfinishedError struct{ Record Record }

func (e *UnfinishedError) Error() string {
	how, next := "was cut off", "Repair decides"
	if e.Record.State == Failed {
		how = "failed"
	}
	if e.Record.Down {
		how, next = how+" while it was taken back", "Down goes on with it, or Repair decides"
	}
	return fmt.Sprintf("%v: %s %s: %s", ErrUnfinished, e.Record.ID, how, next)
}

// Is matches ErrUnfinished.
func (e *UnfinishedError) Is(target error) bool { return target == ErrUnfinished }

// PartialError says how far a call has come. What is applied stays applied, and is recorded.
type PartialError struct {
	Done   []Record // in the order in which they were run, or taken back
	Failed string   // the ID of the migration that failed
	Step   string   // in which step; empty outside of steps
	Err    error
}

func (e *PartialError) Error() string {
	where := e.Failed
	if e.Step != "" {
		where += ": step " + fmt.Sprintf("%q", e.Step)
	}
	return fmt.Sprintf("%s: %v (%d before it done)", where, e.Err, len(e.Done))
}

// Unwrap returns the cause.
func (e *PartialError) Unwrap() error { return e.Err }

// ItemError says on which item a backfill failed. Its text leaves the key out, which is the
// application's, and the migration and its step, which the PartialError around it names.
type ItemError struct {
	Migration string
	Step      string
	Key       keys.Key
	Err       error
}

func (e *ItemError) Error() string {
	return fmt.Sprintf("an item could not be migrated: %v", e.Err)
}

// Unwrap returns the cause.
func (e *ItemError) Unwrap() error { return e.Err }

// PanicError is a panic in a migration. It matches ErrPanic.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("%v: %v", ErrPanic, e.Value) }

// Unwrap returns the value, where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Is matches ErrPanic.
func (e *PanicError) Is(target error) bool { return target == ErrPanic }

// safely runs an author's function, whose panic is an error like others.
func safely(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("migrations: %s: %w", operation, err)
}
