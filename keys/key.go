package keys

import (
	"cmp"
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

// Key is the primary key of one item. It is comparable and can be a map key.
//
// A Key can carry the error that prevented it from being built. This allows functions that build keys to return a Key
// alone. Call [Key.Validate] before you send one.
type Key struct {
	PK, SK string

	// A pointer, because comparing two Keys would panic if they held errors of an uncomparable type.
	err *deferred
}

type deferred struct{ err error }

// NewKey returns the key with the given values. It does not check them; [Key.Validate] does.
func NewKey(pk, sk string) Key { return Key{PK: pk, SK: sk} }

// InvalidKey returns a key that carries err. If err is nil, the key is still invalid. Keys of two calls are never
// equal.
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

// Compare returns -1, 0 or 1: it orders keys by their partition keys, and those with the same one by their sort keys.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.PK, other.PK), cmp.Compare(k.SK, other.SK))
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

// checkText applies the rules that all names and key values share.
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
