package entity

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/entity/internal/codec"
	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

var (
	// ErrNotFound reports that the row does not exist or has expired.
	ErrNotFound = table.ErrNotFound
	// ErrExists reports that [Entity.Create] found a row at the key.
	ErrExists = errors.New("row exists already")
	// ErrStale reports that the row has changed since it was read.
	ErrStale = errors.New("row was changed by somebody else")
	// ErrType reports that the row at the key belongs to another type.
	ErrType = errors.New("row is of another type")
	// ErrNewer reports that the row has a newer schema than this program knows ([Spec.Upgrades]).
	ErrNewer = errors.New("row is of a newer schema than this program knows")
	// ErrOlder reports that an operation in a transaction found a row of an older schema. Only [Entity.Update],
	// [Entity.Modify], [Entity.Upsert] and [Entity.Put] bring such a row to the current schema.
	ErrOlder = errors.New("row is of an older schema")
	// ErrMatch reports a write that would create a row that does not match [Spec.Match]. Other programs do not know the
	// type attribute and would take the row for one of another type. Nothing was written. It matches [ErrInvalid].
	ErrMatch = fmt.Errorf("%w: the row would not match Spec.Match", ErrInvalid)
	// ErrInvalid reports an invalid specification, value or change.
	ErrInvalid = table.ErrInvalid
)

// SpecError lists all problems of a specification. It matches [ErrInvalid].
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

// Is reports whether target is [ErrInvalid].
func (e *SpecError) Is(target error) bool { return target == ErrInvalid }

// Unwrap returns the problems.
func (e *SpecError) Unwrap() []error { return e.Problems }

// DecodeError reports that a row could not be decoded. Its text names the attribute and the types. It contains neither the
// key nor an error of a type's own method, which may quote the row: see Key and Err.
type DecodeError struct {
	Type      string // type of the entity
	Key       keys.Key
	Attribute string // attribute that does not fit its field; empty if it is unknown or not a single one
	Err       error

	reason string // the cause, if it quotes nothing of the row
}

func (e *DecodeError) Error() string {
	switch {
	case errors.Is(e.Err, ErrType):
		return fmt.Sprintf("entity: decode %s: %v", e.Type, e.Err)
	case e.Attribute != "":
		text := fmt.Sprintf("entity: decode %s: attribute %q does not fit", e.Type, e.Attribute)
		if e.reason != "" {
			text += ": " + e.reason
		}
		return text
	}
	return fmt.Sprintf("entity: decode %s: row does not fit", e.Type)
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Err }

// reason returns the text of a cause that quotes nothing of the row, or "".
func reason(err error) string {
	if err == ErrNewer { //nolint:errorlint // an upgrade may wrap it in a text that quotes the row
		return err.Error()
	}
	var misfit misfitError
	if !errors.As(err, &misfit) {
		return ""
	}
	if reason := codec.Reason(misfit.error); reason != "" {
		return reason
	}
	return misfit.Error()
}

// UnknownTypeError reports that [Collect] or [Sort] found a row that none of its sinks takes. It matches [ErrType].
type UnknownTypeError struct {
	Type string // type of the row; empty if it has none
	Key  keys.Key
}

func (e *UnknownTypeError) Error() string {
	if e.Type == "" {
		return "entity: no sink for a row without a type: its key and attributes fit none"
	}
	return fmt.Sprintf("entity: no sink for a row of type %q", e.Type)
}

// Is reports whether target is [ErrType].
func (e *UnknownTypeError) Is(target error) bool { return target == ErrType }

// ForeignTypeError reports a row whose key fits the entity and for which [Spec.Match] holds, but whose type attribute
// is not a type of this table: no entity on this *[table.Table] has that type, or the value is not a string. Usually
// another program uses an attribute of that name for something else. It matches [ErrType]. Its text contains neither
// the value nor the key.
//
// There are three remedies. If the attribute means something else, set another name in [keys.Scheme.Type]. If such rows
// belong to another program, exclude them with Spec.Match: Not(AttrEquals("type", "premium")), or Not(HasAttr("type"))
// for every row of another type. If the value is an older name of Type, rename it in the rows, by a migration.
type ForeignTypeError struct {
	Type      string               // type of the entity
	Attribute string               // the type attribute
	Value     types.AttributeValue // value of that attribute
	Key       keys.Key             // key of the row
}

func (e *ForeignTypeError) Error() string {
	return fmt.Sprintf("%v: its key fits %s, but its attribute %q holds no type that is defined for this table: "+
		"if the attribute means something else, give keys.Scheme.Type another name; if it holds an older name of the type, "+
		"rename it in the rows; otherwise exclude such rows with Spec.Match", ErrType, e.Type, e.Attribute)
}

// Is reports whether target is [ErrType].
func (e *ForeignTypeError) Is(target error) bool { return target == ErrType }

func (e *core) fail(operation string, err error) error {
	if err == nil {
		return nil
	}
	if decode, ok := err.(*DecodeError); ok { //nolint:errorlint // as in bare
		return decode
	}
	return &errs.OperationError{Package: "entity", Operation: operation + " " + e.typ, Err: bare(err)}
}

// bare strips the prefix with package and operation from an error, for a text that already has such a prefix.
func bare(err error) error {
	if f, ok := err.(*errs.OperationError); ok && f.Package == "entity" { //nolint:errorlint // only the outermost error has the prefix
		return f.Err
	}
	return err
}
