package entity

import (
	"reflect"

	"github.com/mortise-go/mortise/table"
)

// core is an entity without its type parameter, so that the compiler compiles this code once and not for each T. It
// represents a value of T as an addressable reflect.Value of the struct. The zero reflect.Value stands for no value. The
// methods of [Entity] only convert between T and reflect.Value.
//
// A method of core does not modify a value that it is given, unless its comment says so.
type core struct {
	table  *table.Table
	typ    string
	goType reflect.Type
	plan   *plan
	when   []func(reflect.Value) bool // Index.When, parallel to plan.indexes; an element can be nil
	only   []func(reflect.Value) bool // Unique.When, parallel to plan.uniques; an element can be nil

	upgrades []func(table.Item) (table.Item, error)
	cond     table.Cond // condition of every write

	anyVersion bool // writes do not check versions
}

// zero returns a new, addressable zero value of T.
func (e *core) zero() reflect.Value { return reflect.New(e.goType).Elem() }

func copyOf(o reflect.Value) reflect.Value {
	c := reflect.New(o.Type()).Elem()
	c.Set(o)
	return c
}

// valueOf returns the T to which o points, as core represents it.
func valueOf[T any](o *T) reflect.Value { return reflect.ValueOf(o).Elem() }

// typed returns a T that core represents as o. If o is no value, it returns the zero T.
func typed[T any](o reflect.Value) T {
	if !o.IsValid() {
		var zero T
		return zero
	}
	return *o.Addr().Interface().(*T)
}

// erased adapts a caller's function of a T to core's representation of a T. It returns nil for nil.
func erased[T, R any](f func(T) R) func(reflect.Value) R {
	if f == nil {
		return nil
	}
	return func(o reflect.Value) R { return f(typed[T](o)) }
}

// yielding adapts a caller's yield function to core's representation of a T.
func yielding[T any](yield func(T, error) bool) func(reflect.Value, error) bool {
	return func(o reflect.Value, err error) bool { return yield(typed[T](o), err) }
}
