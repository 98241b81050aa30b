// Package toolkit names the types of the rows that this module keeps for itself in a table: locks, sessions, records of
// migrations, sentinels of unique values. A row says by its type attribute that it is one of them, so that every program
// recognises it, also one that has never made a lock, or that is older than the kind of row.
package toolkit

import (
	"errors"
	"strings"
)

// Prefix begins the types of all of them, and no type of an application.
const Prefix = "mortise."

// The types.
const (
	Lock       = Prefix + "Lock"
	Session    = Prefix + "LockSession"
	Migration  = Prefix + "Migration"
	Checkpoint = Prefix + "MigrationCheckpoint"
	Unique     = Prefix + "Unique." // and the entity's type, ".", and the constraint's name
)

// Has reports whether a type is one of the module's own.
func Has(typ string) bool { return strings.HasPrefix(typ, Prefix) }

// Registry is a table, as far as it keeps what must not clash within it.
type Registry interface {
	Register(name string, value any, check func(name string, other any) error) error
}

// claim is registered under the name of a type that a package of this module may define. No package outside of it can make one.
type claim struct{}

// Claim lets the types be defined in a table: without it package entity refuses names that begin with Prefix.
func Claim(r Registry, types ...string) error {
	for _, typ := range types {
		if err := r.Register("claim of "+typ, claim{}, func(string, any) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// Claimed reports whether a package of this module may define the type.
func Claimed(r Registry, typ string) bool {
	found := errors.New("claimed")
	err := r.Register("", nil, func(name string, other any) error {
		if _, ok := other.(claim); ok && name == "claim of "+typ {
			return found
		}
		return nil
	})
	return errors.Is(err, found)
}
