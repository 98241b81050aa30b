// Package toolkit names the types of this module's own rows in a table: locks, sessions, records of migrations, sentinels of unique
// values. The type attribute of each such row begins with [Prefix]. So every program recognises the row, even a program that uses no
// locks, or that is older than this type of row.
package toolkit

import (
	"strings"

	"github.com/mortise-go/mortise/table"
)

// Prefix is the beginning of all these types. No type of an application begins with it.
const Prefix = "mortise."

// The types.
const (
	Lock       = Prefix + "Lock"
	Session    = Prefix + "LockSession"
	Migration  = Prefix + "Migration"
	Checkpoint = Prefix + "MigrationCheckpoint"
	Unique     = Prefix + "Unique." // followed by the entity's type, ".", and the constraint's name
)

// Has reports whether a type is one of the module's own.
func Has(typ string) bool { return strings.HasPrefix(typ, Prefix) }

// Registry is the part of a table that keeps names which must not conflict in the table.
type Registry interface {
	Register(name string, value any, check func(name string, other any) error) error
	Registered() map[string]any
}

// claim is registered for each type that a package of this module may define. Packages outside of the module cannot make a claim.
type claim struct{}

// Claim allows types to be defined in a table. Without it, package entity refuses types that begin with Prefix.
func Claim(r Registry, types ...string) {
	for _, typ := range types {
		_ = r.Register("claim of "+typ, claim{}, func(string, any) error { return nil }) // conflicts with nothing
	}
}

// Claimed reports whether a package of this module may define the type.
func Claimed(r Registry, typ string) bool {
	_, ok := r.Registered()["claim of "+typ].(claim)
	return ok
}

// Conflict returns the first of the attributes of the module's rows that has another meaning in the table, and that meaning. If there is
// none, name is "". For example, an index of the application whose key is such an attribute would contain the module's rows among those of
// the application.
func Conflict(schema table.Schema, attributes []string) (name, meaning string) {
	taken := map[string]string{}
	for _, x := range schema.Indexes {
		taken[x.PK], taken[x.SK] = "a key of index "+x.Name, "a key of index "+x.Name
	}
	s := schema.Keys
	taken[s.PK], taken[s.SK], taken[s.Type], taken[s.TTL] = "the partition key", "the sort key", "the type", "the time to live"
	for _, name := range attributes {
		if meaning, ok := taken[name]; ok {
			return name, meaning
		}
	}
	return "", ""
}
