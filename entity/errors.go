package entity

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

var (
	// ErrNotFound says that there is no such row, or that it has expired.
	ErrNotFound = table.ErrNotFound
	// ErrExists says that Create found a row at the key.
	ErrExists = errors.New("row exists already")
	// ErrStale says that the row has changed since it was read.
	ErrStale = errors.New("row was changed by somebody else")
	// ErrType says that the row at the key belongs to something else.
	ErrType = errors.New("row is of another type")
	// ErrNewer says that the row is of a newer schema than this program knows (Spec.Upgrades).
	ErrNewer = errors.New("row is of a newer schema than this program knows")
	// ErrOlder says that an operation in a transaction met a row of an older schema. Only
	// Update, Modify and Put bring such a row to the current one.
	ErrOlder = errors.New("row is of an older schema")
	// ErrInvalid says that a specification, a value or a change is not acceptable.
	ErrInvalid = table.ErrInvalid
)

// SpecError lists everything that is wrong with a specification. It matches ErrInvalid.
type SpecError struct {
	Type     string
	Problems []error
}

func (e *SpecError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.Error()
	}
	return fmt.Sprintf("entity: define %q: %s", e.Type, strings.Join(texts, "; "))
}

// Is matches ErrInvalid.
func (e *SpecError) Is(target error) bool { return target == ErrInvalid }

// Unwrap returns the problems.
func (e *SpecError) Unwrap() []error { return e.Problems }

// DecodeError says that a row could not be decoded. Its text leaves out the key and the
// cause, which may quote the row: both are the application's, and errors end in logs.
type DecodeError struct {
	Type      string // the entity's
	Key       keys.Key
	Attribute string // that does not fit its field; empty where it is not known or not one alone
	Err       error
}

func (e *DecodeError) Error() string {
	switch {
	case errors.Is(e.Err, ErrType):
		return fmt.Sprintf("entity: decode %s: %v", e.Type, ErrType)
	case e.Attribute != "":
		return fmt.Sprintf("entity: decode %s: attribute %q does not fit", e.Type, e.Attribute)
	}
	return fmt.Sprintf("entity: decode %s: row does not fit", e.Type)
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Err }

// UnknownTypeError says that Collect or Sort met a row that none of its sinks takes. It matches
// ErrType.
type UnknownTypeError struct {
	Type string // the row's; empty when it has none
	Key  keys.Key
}

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("entity: no sink for a row of type %q", e.Type)
}

// Is matches ErrType.
func (e *UnknownTypeError) Is(target error) bool { return target == ErrType }

func (e *Entity[T]) fail(operation string, err error) error {
	if err == nil {
		return nil
	}
	if decode, ok := err.(*DecodeError); ok { //nolint:errorlint // as in bare
		return decode
	}
	return &failure{operation, e.typ, bare(err)}
}

// bare is an error without the name of this package and the operation in front of it, for a
// text that says them already.
func bare(err error) error {
	if f, ok := err.(*failure); ok { //nolint:errorlint // only what stands outermost says the same twice
		return f.err
	}
	return err
}

// failure is an operation of an entity that failed.
type failure struct {
	operation, typ string
	err            error
}

func (f *failure) Error() string {
	return fmt.Sprintf("entity: %s %s: %s", f.operation, f.typ, errs.Within("entity", f.err))
}

func (f *failure) Unwrap() error { return f.err }
