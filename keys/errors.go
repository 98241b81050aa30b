package keys

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Causes of an [Error], for errors.Is.
var (
	// ErrSyntax: template text, a codec name or scheme JSON that cannot be read.
	ErrSyntax = errors.New("syntax error")
	// ErrAmbiguous: a template in which the end of a variable-width field could not be told.
	ErrAmbiguous = errors.New("ambiguous template")
	// ErrDuplicate: a name that is used twice.
	ErrDuplicate = errors.New("duplicate name")
	// ErrDelimiter: a byte that cannot be a delimiter, or a raw value that contains the delimiter.
	ErrDelimiter = errors.New("delimiter not allowed")
	// ErrEmpty: an empty value, name, template or key.
	ErrEmpty = errors.New("empty")
	// ErrInvalidUTF8: text that is not valid UTF-8, which DynamoDB refuses in string keys.
	ErrInvalidUTF8 = errors.New("invalid UTF-8")
	// ErrTooLong: a key over its limit in bytes, or a name over 255 bytes.
	ErrTooLong = errors.New("too long")
	// ErrRange: a number, time or length that the codec cannot hold, or a range whose bounds are in the wrong order.
	ErrRange = errors.New("out of range")
	// ErrPrecision: a time that is finer than its codec.
	ErrPrecision = errors.New("more precise than the codec")
	// ErrType: a Go value that the codec does not take, nil included.
	ErrType = errors.New("wrong type")
	// ErrCount: too few or too many values.
	ErrCount = errors.New("wrong number of values")
	// ErrMissing: a field without a value in [Values].
	ErrMissing = errors.New("missing value")
	// ErrUnknownField: a name in [Values] that the template does not have.
	ErrUnknownField = errors.New("unknown field")
	// ErrNoMatch: a key that the template cannot have produced.
	ErrNoMatch = errors.New("key does not match")
	// ErrNoPrefix: the given fields do not determine a safe prefix or range.
	ErrNoPrefix = errors.New("no such prefix or range")
)

// Error is the type of all errors of this package. It never holds a value or a key of the application.
type Error struct {
	Op       string // what was being done, such as "format" or "parse"
	Template string // text of the template; empty outside of templates
	Field    string // field of the template, or of [Scheme] or [Key]; empty if the cause concerns the whole
	Err      error  // cause, never nil
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("keys: ")
	b.WriteString(e.Op)
	if e.Template != "" {
		fmt.Fprintf(&b, " %q", e.Template)
	}
	if e.Field != "" {
		fmt.Fprintf(&b, ": field %q", e.Field)
	}
	b.WriteString(": ")
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// typeError describes a value by its Go type only.
func typeError(want string, v any) error {
	got := "nil"
	if v != nil {
		got = reflect.TypeOf(v).String()
	}
	return fmt.Errorf("%w: want %s, got %s", ErrType, want, got)
}
