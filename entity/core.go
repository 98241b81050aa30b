package entity

import (
	"reflect"

	"github.com/mortise-go/mortise/table"
)

// core is an entity without its type parameter. In it, a value of T is an addressable reflect.Value of the struct, and
// the zero reflect.Value stands for no value. The methods of [Entity] only convert between the two. So the compiler makes
// this code once, and not for each T.
//
// A function of core does not change a value that it is given, unless its comment says so.
type core struct {
	table  *table.Table
	typ    string
	goType reflect.Type
	plan   *plan
	when   []func(reflect.Value) bool // by index
	only   []func(reflect.Value) bool // by unique constraint

	upgrades []func(table.Item) (table.Item, error)
	cond     table.Cond // condition of every write

	anyVersion bool // writes do not check versions
}

// zero returns a new value of T.
func (e *core) zero() reflect.Value { return reflect.New(e.goType).Elem() }

func copyOf(o reflect.Value) reflect.Value {
	c := reflect.New(o.Type()).Elem()
	c.Set(o)
	return c
}

// valueOf returns the value to which o points.
func valueOf[T any](o *T) reflect.Value { return reflect.ValueOf(o).Elem() }

// typed returns a value of core as a T: the zero T for no value.
func typed[T any](o reflect.Value) T {
	if !o.IsValid() {
		var zero T
		return zero
	}
	return *o.Addr().Interface().(*T)
}

// erased returns a function of the caller's in the form in which core calls it; nil for nil.
func erased[T, R any](f func(T) R) func(reflect.Value) R {
	if f == nil {
		return nil
	}
	return func(o reflect.Value) R { return f(typed[T](o)) }
}

// yielding returns the caller's yield in the form in which core calls it.
func yielding[T any](yield func(T, error) bool) func(reflect.Value, error) bool {
	return func(o reflect.Value, err error) bool { return yield(typed[T](o), err) }
}
