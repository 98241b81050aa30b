package entity

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
	// ErrMatch is the error of a write that would make a row which does not match Spec.Match. Other programs, which do not know the
	// type attribute, would take it for a row of another type. Nothing was written. It matches ErrInvalid.
	ErrMatch = fmt.Errorf("%w: the row would not match Spec.Match", ErrInvalid)
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
		return fmt.Sprintf("entity: decode %s: %v", e.Type, e.Err)
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

// ForeignTypeError is the error of a row whose key fits the entity, and Spec.Match holds, but whose type attribute holds no
// type of this table. No entity was defined with that type on this *table.Table, or the value is not a string. Usually
// another program uses an attribute of that name for something else. It matches ErrType. Its text leaves out the value
// and the key.
//
// There are two ways out. If the attribute means something else, give keys.Scheme.Type another name. If such rows belong
// to another program, exclude them with Spec.Match: Not(AttrEquals("type", "premium")), or Not(HasAttr("type")) for every
// row of another type.
type ForeignTypeError struct {
	Type      string               // the entity's
	Attribute string               // the type attribute
	Value     types.AttributeValue // of the row
	Key       keys.Key             // of the row
}

func (e *ForeignTypeError) Error() string {
	return fmt.Sprintf("%v: its key fits %s, but its attribute %q holds no type that is defined for this table: "+
		"if the attribute means something else, give keys.Scheme.Type another name; otherwise exclude such rows with Spec.Match", ErrType, e.Type, e.Attribute)
}

// Is matches ErrType.
func (e *ForeignTypeError) Is(target error) bool { return target == ErrType }

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
