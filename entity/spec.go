package entity

import (
	"fmt"
	"reflect"

	"github.com/mortise-go/mortise/table"
)

// Spec describes how values of T are stored in a table. Fields of T are named by their attribute name (the dynamo tag)
// or by their Go name.
type Spec[T any] struct {
	// Type is the value of the type attribute in the entity's rows.
	Type string

	// PK and SK are the templates of the table's keys: "TENANT#{tenant}", "ORDER#{id}".
	PK, SK string

	// Match distinguishes the entity's rows from rows of other types whose keys have the same form, in tables that
	// another program designed. A row without a type attribute belongs to the entity if its key fits PK and SK and
	// Match holds. A row with the Type of an entity belongs to that entity, whether Match holds or not. A write that would
	// create a row that does not match is refused with [ErrMatch]. See REFERENCE.md, Rows of other programs. Defaults to
	// the zero Match, which always holds.
	Match Match

	// Indexes are the keys of rows in the table's indexes.
	Indexes []Index[T]

	// Version names an int64 field that counts the row's writes, from 1. A write then applies only to a row that has
	// the version of the value; otherwise it is refused with [ErrStale]. For [Entity.Create] and [Entity.Put], version
	// 0 stands for a row that does not exist. [Entity.AnyVersion] writes without having read. The scheme's version
	// attribute stores the version. Defaults to "": no versions, and the last write wins.
	//
	// For other writes, version 0 stands for a row that another program wrote without a version. Such a row must still
	// have none, and must have the attributes of the value. See REFERENCE.md, Versions, for programs that do not count
	// versions.
	Version string

	// TTL names a time.Time field at which the row expires; a zero time means never. The scheme's TTL attribute stores
	// it in whole seconds, rounded up. Expired rows are invisible even before DynamoDB deletes them. Defaults to "":
	// rows do not expire.
	TTL string

	// Untyped writes rows without the type attribute. Only their keys then tell their type. It is for tables whose
	// other programs do not expect the attribute. Defaults to false: Create and Put write it; Update never does.
	Untyped bool

	// AttributePrefix begins the attribute names of T's fields. It is for tables in which a field's name has another
	// meaning, such as the key of an index. Fields are named without the prefix everywhere else. Attributes named by
	// the scheme or by Schema do not have it. Defaults to "".
	AttributePrefix string

	// ReadOnly refuses every write. It is for rows that another component maintains. Defaults to false.
	ReadOnly bool

	// Created and Updated name time.Time fields that are set when a row is written first and last. Default to "": none.
	Created, Updated string

	// Unique lists the values that no two rows may share. Defaults to none.
	Unique []Unique[T]

	// Upgrades convert rows that older programs wrote. The i-th function converts a row of schema i to schema i+1, so
	// their number is the current schema. Every write stores that number in the attribute Schema. Rows without it have
	// schema 0. Defaults to none: rows have no schema.
	//
	// Rows are upgraded whenever they are read, and stored by the next write that is made anyway. A row of a later
	// schema is [ErrNewer] and is never overwritten.
	//
	// A function gets a copy of the row, which it may change and return. It must return the same for the same row. It
	// must not change keys, unique values, type, version, TTL and the attributes that Match names, nor give a row a unique
	// value that it did not have. Indexes contain a row under its old keys until it is written. A row of an index that does not
	// project all attributes lacks the others when a function gets it, too.
	Upgrades []func(table.Item) (table.Item, error)

	// Schema names the attribute of the schema number. Set it without Upgrades to refuse rows of later schemas.
	// Defaults to "schema" if there are Upgrades.
	Schema string
}

// Index describes the keys of an entity's rows in one index of the table. The index is sparse: a row has the keys only
// if every field in their templates has a value (a string that is not empty, a pointer that is not nil, a time that is
// not zero) and [Index.When], if set, returns true.
//
// A key of the index that is an attribute of T has no template. The field is the key, as the row stores it, string or
// number. A row whose value is empty or not written is not in the index.
//
// A field tagged "-" may occur in these templates only, and not in a key of the table. It is then stored in the index key
// alone, and read back from it. See REFERENCE.md, Indexes on fields.
type Index[T any] struct {
	// Name is the name of an index in the table's schema.
	Name string

	// PK and SK are the templates of the index's keys. SK is empty if the index has no sort key. Either is empty if the
	// key is a key of the table or the attribute of a field.
	PK, SK string

	// When reports whether a row is in the index. It needs a Version, since an update may not know the whole row, and a
	// key that is made by a template, since When omits that key. It must not depend on that version, nor on anything
	// outside of the row. Defaults to nil: all rows.
	When func(T) bool
}

// erased adapts the functions of the specification to the form in which core calls them.
func (s *Spec[T]) erased() (e Spec[reflect.Value]) {
	erase(valueOf(&e), valueOf(s), func(f any) func(reflect.Value) bool { return erased(f.(func(T) bool)) })
	return e
}

// erase sets the fields of a specification, or of one of its parts, to those of another T. adapt adapts a When.
func erase(to, from reflect.Value, adapt func(any) func(reflect.Value) bool) {
	for i := range from.NumField() {
		switch t, f := to.Field(i), from.Field(i); {
		case t.Type() == f.Type():
			t.Set(f)
		case f.Kind() == reflect.Func:
			t.Set(reflect.ValueOf(adapt(f.Interface())))
		default: // Indexes, Unique
			t.Set(reflect.MakeSlice(t.Type(), f.Len(), f.Len()))
			for j := range f.Len() {
				erase(t.Index(j), f.Index(j), adapt)
			}
		}
	}
}

// Entity reads and writes values of T in a table. It is safe for concurrent use.
type Entity[T any] struct{ core *core }

// Table returns the entity's table.
func (e *Entity[T]) Table() *table.Table { return e.core.table }

// Type returns the value of the type attribute.
func (e *Entity[T]) Type() string { return e.core.typ }

// If returns the entity with an additional condition on the row of every write:
// orders.If(orders.Field("status").Equal("open")).Delete(ctx, o). If the condition does not hold, the error is
// [table.ErrCondition]. If the write fails for another reason too, the error is that one. Reads are not affected.
func (e *Entity[T]) If(conds ...table.Cond) *Entity[T] { return &Entity[T]{e.core.conditional(conds)} }

func (e *core) conditional(conds []table.Cond) *core {
	conditional := *e
	conditional.cond = table.And(append([]table.Cond{e.cond}, conds...)...)
	return &conditional
}

// Field returns a field's attribute, for conditions and filters. Fields are named as in [Spec]. A condition with an
// unknown name is refused with [ErrInvalid].
//
// Operands are encoded by their own type, not by the field's tag: compare a time that is stored as a number with a
// number.
func (e *Entity[T]) Field(name string) table.Operand { return e.core.field(name) }

func (e *core) field(name string) table.Operand {
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
