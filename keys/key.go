package keys

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Greatest lengths of key values in DynamoDB, in bytes of UTF-8.
//
// Source: "Constraints in Amazon DynamoDB", Partition key and sort key length.
const (
	MaxPK = 2048
	MaxSK = 1024
)

// Key is the primary key of one item. It is comparable and may be used as a map key.
//
// A Key can carry the error that prevented it from being built, so that builders of keys fit into expressions;
// whoever sends a Key calls Validate before.
type Key struct {
	PK, SK string

	// A pointer, since comparing an error of an uncomparable type would panic.
	err *deferred
}

type deferred struct{ err error }

// NewKey returns the key of the given values; they are checked by Validate, not here.
func NewKey(pk, sk string) Key { return Key{PK: pk, SK: sk} }

// InvalidKey returns a key that stands for err. A nil err still gives an invalid key. Keys of two calls are never equal.
func InvalidKey(err error) Key {
	if err == nil {
		err = &Error{Op: "key", Err: errors.New("invalid without a reason given")}
	}
	return Key{err: &deferred{err}}
}

// Err returns the error that the key carries, or nil.
func (k Key) Err() error {
	if k.err == nil {
		return nil
	}
	return k.err.err
}

// IsZero reports whether k is the zero Key: no values and no error.
func (k Key) IsZero() bool { return k == Key{} }

// Validate returns the error that k carries, or an *[Error] if PK or SK is empty ([ErrEmpty]), longer than [MaxPK] or
// [MaxSK] ([ErrTooLong]), or not valid UTF-8 ([ErrInvalidUTF8]).
func (k Key) Validate() error {
	if err := k.Err(); err != nil {
		return err
	}
	if err := checkText(k.PK, MaxPK); err != nil {
		return &Error{Op: "key", Field: "PK", Err: err}
	}
	if err := checkText(k.SK, MaxSK); err != nil {
		return &Error{Op: "key", Field: "SK", Err: err}
	}
	return nil
}

// checkText applies the rules that hold for all names and key values.
func checkText(s string, limit int) error {
	switch {
	case s == "":
		return ErrEmpty
	case len(s) > limit:
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLong, len(s), limit)
	case !utf8.ValidString(s):
		return ErrInvalidUTF8
	}
	return nil
}
