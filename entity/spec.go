package entity

import (
	"fmt"

	"github.com/mortise-go/mortise/table"
)

// Spec says how values of T are kept in a table. Fields of T are named by their attribute
// name (the dynamo tag) or their Go name.
type Spec[T any] struct {
	// Type marks the rows: it is the value of the scheme's type attribute.
	Type string

	// PK and SK are the templates of the table's keys: "TENANT#{tenant}", "ORDER#{id}".
	PK, SK string

	// Match tells the entity's rows from rows of other types whose keys have the same form. It is for tables that another
	// program laid out. A row without a type attribute belongs to the entity if its key fits PK and SK, and Match holds. A
	// row with a type attribute belongs to the entity if that is Type. A write that would make a row that does not match is
	// refused with ErrMatch. See the package comment, Rows of other programs. Defaults to the zero Match, which always holds.
	Match Match

	// Indexes are the keys that rows have in the table's indexes.
	Indexes []Index[T]

	// Version names an int64 field that counts the row's writes, from 1. With it a write of a
	// row is refused with ErrStale unless the row is the one that the value was read from: it has
	// the version of the value. Version 0 is that of a row that another program wrote, without a
	// version: it must have none still, and the attributes that the value has. For Create and Put,
	// version 0 is that of a row that does not exist. AnyVersion writes without having read.
	// The package comment says what programs mean that count no versions. The version is kept in
	// the scheme's version attribute. Defaults to "": no versions, and the last write wins.
	Version string

	// TTL names a time.Time field at which the row expires; zero means never. It is kept in the
	// scheme's TTL attribute, in whole seconds, rounded up. Expired rows are invisible,
	// also before DynamoDB deletes them. Defaults to "": rows do not expire.
	TTL string

	// Untyped keeps the type attribute out of the rows that are written: their keys are all
	// the type they have. It is for tables whose other programs would not expect the
	// attribute. Defaults to false: Create and Put write it; Update never does.
	Untyped bool

	// AttributePrefix begins the names of the attributes that T's fields are kept in, for a table in
	// which one of them is something else, such as the key of an index. Fields are named without it
	// everywhere else; attributes that the scheme or Schema names are kept without it. Defaults to "".
	AttributePrefix string

	// ReadOnly refuses every write: for rows that something else maintains.
	ReadOnly bool

	// Created and Updated name time.Time fields that are set when a row is first and last
	// written. Default to "": none.
	Created, Updated string

	// Unique are the values that no two rows may share. Defaults to none.
	Unique []Unique[T]

	// Upgrades bring rows that were written by older programs to today's schema: the i-th
	// makes of a row of schema i one of schema i+1, so their number is that of the current
	// schema, which every write keeps in the attribute Schema. Rows without it are of schema
	// 0. Rows are upgraded whenever they are read, and written back only with a write that
	// is made anyway; a row of a schema above the current one is ErrNewer and is never
	// overwritten. A function gets a copy that it may change and return. It must give the
	// same for the same row, and leave keys, unique values, type, version, TTL and what Match looks at alone; indexes
	// hold a row under its old keys until it is written. Defaults to none: rows have no schema.
	Upgrades []func(table.Item) (table.Item, error)

	// Schema names the attribute of the schema's number. With it, and no Upgrades, rows of
	// newer schemas are recognised. Defaults to "schema" where there are Upgrades.
	Schema string
}

// Index says which keys rows of an entity have in one index of the table. A row has them
// only if every field that its templates name has a value (a string that is not empty, a
// pointer that is not nil, a time that is not zero) and When agrees: the index is sparse.
//
// A field without an attribute (tagged "-") may be part of one of these templates, and of no key
// of the table: it is kept in that key alone, and read back from it. See the package comment.
//
// A key of the index that is an attribute of T's own has no template: the field is the key, as
// the row holds it, string or number. A value that is not written, or empty, keeps the row out of
// the index: see the package comment.
type Index[T any] struct {
	// Name of an index in the table's schema.
	Name string

	// PK and SK are the templates of the index's keys. SK is empty where the index has no
	// sort key, and each is where the key is a key of the table or the attribute of a field.
	PK, SK string

	// When says which rows are in the index. It needs a Version, since an update that does
	// not know the whole row could not tell, and a key that is made of a template, since it is that
	// which is left out. Defaults to nil: all rows.
	When func(T) bool
}

// Entity reads and writes values of T in a table. It is safe for concurrent use.
type Entity[T any] struct {
	table *table.Table
	typ   string
	plan  *plan
	when  []func(T) bool // by index
	only  []func(T) bool // by unique constraint

	upgrades []func(table.Item) (table.Item, error)
	cond     table.Cond // of every write

	anyVersion bool // writes do not look at versions
}

// Table returns the table that the entity lives in.
func (e *Entity[T]) Table() *table.Table { return e.table }

// Type returns the value of the type attribute.
func (e *Entity[T]) Type() string { return e.typ }

// If returns the entity with a condition on the row of every write, in addition to its own:
// orders.If(orders.Field("status").Equal("open")).Delete(ctx, o). A row for which it does not
// hold is ErrCondition; where something else is in the way too, that is the error. Reads are
// not affected.
func (e *Entity[T]) If(conds ...table.Cond) *Entity[T] {
	conditional := *e
	conditional.cond = table.And(append([]table.Cond{e.cond}, conds...)...)
	return &conditional
}

// Field returns a field's attribute, for conditions and filters. Fields are named as in Spec;
// what uses an unknown one is refused with ErrInvalid. Values that it is compared with are
// encoded by their own type, not by the field's tag: a time that is kept as a number is
// compared as a number.
func (e *Entity[T]) Field(name string) table.Operand {
	f := resolve(e.plan.fields, name)
	switch {
	case f == nil:
		return table.InvalidOperand(fmt.Errorf("%w: %s has no field %q", ErrInvalid, e.typ, name))
	case f == e.plan.version:
		return table.Attr(e.plan.scheme.Version)
	case f == e.plan.ttl:
		return table.Attr(e.plan.scheme.TTL)
	case f.attr == "":
		return table.InvalidOperand(fmt.Errorf("%w: %q is not kept in an attribute", ErrInvalid, name))
	}
	return table.Attr(f.attr)
}
