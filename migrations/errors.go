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
	// ErrInvalid reports an invalid argument or migration, or a request that DynamoDB refuses as invalid.
	ErrInvalid = table.ErrInvalid

	// ErrDrift reports that the revision of an applied migration has changed. The error is a *[DriftError].
	ErrDrift = errors.New("an applied migration was changed")

	// ErrOutOfOrder reports that a pending migration comes before one that has begun. The error is an *[OrderError].
	ErrOutOfOrder = errors.New("a pending migration comes before one that has begun")

	// ErrUnknown reports that the table has records of migrations that this program does not have. The error is an
	// *[UnknownError].
	ErrUnknown = errors.New("the table has records of unknown migrations")

	// ErrUnfinished reports that a migration was interrupted or has failed before, and that an operator has to decide
	// how to continue. The error is an *[UnfinishedError].
	ErrUnfinished = errors.New("a migration was not finished")

	// ErrIrreversible reports that a migration has no Down.
	ErrIrreversible = errors.New("the migration has no Down")

	// ErrRecorded reports that a [Run] was used after [Run.Atomic], which finishes its migration.
	ErrRecorded = errors.New("the migration is recorded as finished already")

	// ErrSegments reports that an interrupted backfill had another number of segments, so its positions cannot be used.
	ErrSegments = errors.New("the number of segments changed during a backfill")

	// ErrStepKind reports that an earlier attempt has begun a backfill under the name of a step that is no backfill now, or
	// the other way round. So what is recorded under that name is not about this step.
	ErrStepKind = errors.New("the name of the step belongs to one of another kind")

	// ErrPanic reports that a migration panicked. The error is a *[PanicError].
	ErrPanic = errors.New("panic")

	// ErrMalformed reports that the row of a migration or checkpoint is invalid, or of a newer version of this package.
	// Nothing was run, except for the finished migrations of a *[PartialError].
	ErrMalformed = errors.New("malformed record")

	// errExited reports a function that ended its goroutine (runtime.Goexit).
	errExited = errors.New("the function ended its goroutine")

	// errNoReturn reports a step that had not returned when its migration did. Either the migration has recovered a
	// panic of the step, or the step still runs in another goroutine.
	errNoReturn = errors.New("the step did not return")
)

// DriftError lists the migrations that were changed after they had been applied. It matches [ErrDrift].
type DriftError struct{ Drifted []Drift }

// Drift is a migration that was changed. Applied and Now are its revisions.
type Drift struct{ ID, Applied, Now string }

func (e *DriftError) Error() string {
	texts := make([]string, len(e.Drifted))
	for i, d := range e.Drifted {
		texts[i] = fmt.Sprintf("%s (applied %q, now %q)", d.ID, d.Applied, d.Now)
	}
	return fmt.Sprintf("%v: %s", ErrDrift, strings.Join(texts, ", "))
}

// Is reports whether target is [ErrDrift].
func (e *DriftError) Is(target error) bool { return target == ErrDrift }

// OrderError lists pending migrations that come before the last one that has begun, whether it was applied or has
// failed. It matches [ErrOutOfOrder].
type OrderError struct {
	Pending []string
	Begun   string // ID of the last one that has begun
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("%v: %s before %s", ErrOutOfOrder, strings.Join(e.Pending, ", "), e.Begun)
}

// Is reports whether target is [ErrOutOfOrder].
func (e *OrderError) Is(target error) bool { return target == ErrOutOfOrder }

// UnknownError lists records of migrations that this program does not have. It matches [ErrUnknown].
type UnknownError struct{ IDs []string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%v: %s", ErrUnknown, strings.Join(e.IDs, ", "))
}

// Is reports whether target is [ErrUnknown].
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }

// UnfinishedError names the migration that needs a decision: [Migrator.Repair] or, if it was being taken back,
// [Migrator.Down]. [Migrator.Baseline] also returns it for one that [Migrator.Up] continues. It matches [ErrUnfinished].
type UnfinishedError struct {
	Record Record

	resumable bool // Up continues it, or Down if it was being taken back
}

func (e *UnfinishedError) Error() string {
	how, next := "was cut off", "Repair decides"
	if e.Record.State == Failed {
		how = "failed"
	}
	if e.Record.Down {
		how += " while it was taken back"
	}
	switch {
	case e.resumable && e.Record.Down:
		next = "Down goes on with it, or Repair decides"
	case e.resumable:
		next = "Up goes on with it"
	}
	return fmt.Sprintf("%v: %s %s: %s", ErrUnfinished, e.Record.ID, how, next)
}

// Is reports whether target is [ErrUnfinished].
func (e *UnfinishedError) Is(target error) bool { return target == ErrUnfinished }

// PartialError reports how far a call has come. Migrations in Done are finished and recorded.
type PartialError struct {
	Done   []Record // in the order in which they were run or taken back
	Failed string   // ID of the migration that failed
	Step   string   // the step that failed; empty outside of steps
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

// ItemError reports the item on which a backfill failed. Its text does not contain the key, which is the application's.
// The [PartialError] around it names the migration and the step. The item is unchanged, unless [table.MayBeApplied] is true of the error.
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

// PanicError is a panic in a migration. It matches [ErrPanic].
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("%v: %v", ErrPanic, e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Is reports whether target is [ErrPanic].
func (e *PanicError) Is(target error) bool { return target == ErrPanic }

// safely runs an author's function and turns a panic into an error. So it does with an error whose text panics, such as a nil pointer that
// was returned as an error.
func safely(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	if err = f(); err != nil {
		_ = err.Error()
	}
	return err
}

func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("migrations: %s: %w", operation, err)
}
