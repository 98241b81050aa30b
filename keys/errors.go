package keys

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Causes of an [Error], for [errors.Is].
var (
	// ErrSyntax reports template text, a codec name or scheme JSON that cannot be read.
	ErrSyntax = errors.New("syntax error")
	// ErrAmbiguous reports a template in which the end of a variable-width field is ambiguous.
	ErrAmbiguous = errors.New("ambiguous template")
	// ErrDuplicate reports a name that is used twice.
	ErrDuplicate = errors.New("duplicate name")
	// ErrDelimiter reports a byte that cannot be a delimiter, or a raw value that contains the delimiter.
	ErrDelimiter = errors.New("delimiter not allowed")
	// ErrEmpty reports an empty value, name, template or key.
	ErrEmpty = errors.New("empty")
	// ErrInvalidUTF8 reports text that is not valid UTF-8. DynamoDB refuses such string keys.
	ErrInvalidUTF8 = errors.New("invalid UTF-8")
	// ErrTooLong reports a key over its limit in bytes, or a name over 255 bytes.
	ErrTooLong = errors.New("too long")
	// ErrRange reports a number, time or length that the codec cannot hold, or a range whose bounds are in the wrong
	// order.
	ErrRange = errors.New("out of range")
	// ErrPrecision reports a time that is finer than its codec.
	ErrPrecision = errors.New("more precise than the codec")
	// ErrType reports a Go value of a type that the codec does not accept, such as nil.
	ErrType = errors.New("wrong type")
	// ErrCount reports too few or too many values.
	ErrCount = errors.New("wrong number of values")
	// ErrMissing reports a field without a value in [Values].
	ErrMissing = errors.New("missing value")
	// ErrUnknownField reports a name that the template does not have.
	ErrUnknownField = errors.New("unknown field")
	// ErrNoMatch reports a key that the template cannot have produced, or a text that a pattern excludes.
	ErrNoMatch = errors.New("key does not match")
	// ErrNoPrefix reports that the given fields do not determine a prefix or range.
	ErrNoPrefix = errors.New("no such prefix or range")
)

// Error is the type of all errors of this package. It contains no value and no key of the application.
type Error struct {
	Op       string // the operation, such as "format" or "parse"
	Template string // text of the template; empty if no template is involved
	Field    string // field of the template, of [Scheme] or of [Key]; empty if the cause concerns the whole
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
	fmt.Fprintf(&b, ": %v", e.Err)
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// typeError names the Go type of v, but not its value.
func typeError(want string, v any) error {
	got := "nil"
	if v != nil {
		got = reflect.TypeOf(v).String()
	}
	return fmt.Errorf("%w: want %s, got %s", ErrType, want, got)
}
