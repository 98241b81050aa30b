package entity

import (
	"github.com/mortise-go/mortise/table"
)

// Spec says how values of T are kept in a table. Fields of T are named by their attribute
// name (the dynamo tag) or their Go name.
type Spec[T any] struct {
	// Type marks the rows: it is the value of the scheme's type attribute.
	Type string

	// PK and SK are the templates of the table's keys: "TENANT#{tenant}", "ORDER#{id}".
	PK, SK string

	// Indexes are the keys that rows have in the table's indexes.
	Indexes []Index[T]

	// Version names an int64 field that counts the row's writes, from 1. With it Put and
	// Update refuse to overwrite what they have not seen. It is kept in the scheme's
	// version attribute. Defaults to "": no versions.
	Version string

	// TTL names a time.Time field at which the row expires; zero means never. It is kept in the
	// scheme's TTL attribute, in whole seconds, rounded up. Expired rows are invisible,
	// also before DynamoDB deletes them. Defaults to "": rows do not expire.
	TTL string

	// Untyped keeps the type attribute out of the rows that are written: their keys are all
	// the type they have. It is for tables whose other programs would not expect the
	// attribute. Defaults to false: Create and Put write it; Update never does.
	Untyped bool

	// ReadOnly refuses every write: for rows that something else maintains.
	ReadOnly bool

	// Created and Updated name time.Time fields that are set when a row is first and last
	// written. Default to "": none.
	Created, Updated string
}

// Index says which keys rows of an entity have in one index of the table. A row has them
// only if every field that its templates name has a value (a string that is not empty, a
// pointer that is not nil, a time that is not zero) and When agrees: the index is sparse.
type Index[T any] struct {
	// Name of an index in the table's schema.
	Name string

	// PK and SK are the templates of the index's keys. SK is empty where the index has no
	// sort key.
	PK, SK string

	// When says which rows are in the index. It needs a Version, since an update that does
	// not know the whole row could not tell. Defaults to nil: all rows.
	When func(T) bool
}

// Entity reads and writes values of T in a table. It is safe for concurrent use.
type Entity[T any] struct {
	table *table.Table
	typ   string
	plan  *plan
	when  []func(T) bool // by index
}

// Table is the table that the entity lives in.
func (e *Entity[T]) Table() *table.Table { return e.table }

// Type is the value of the type attribute.
func (e *Entity[T]) Type() string { return e.typ }
