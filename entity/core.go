package entity

import (
	"reflect"

	"github.com/mortise-go/mortise/table"
)

// core is an entity without its type parameter, so that the compiler compiles this code once and not for each T. It
// represents a value of T as an addressable reflect.Value of the struct. The zero reflect.Value stands for no value. The
// methods of [Entity] only convert between T and reflect.Value, since the compiler makes a copy of them for each T, and inlines
// into it the small functions that they call.
//
// A method of core does not modify a value that it is given, unless its comment says so.
type core struct {
	table  *table.Table
	typ    string
	goType reflect.Type
	plan   *plan

	cond       table.Cond // condition of every write
	anyVersion bool       // writes do not check versions
}

// zero returns a new, addressable zero value of T.
func (e *core) zero() reflect.Value { return reflect.New(e.goType).Elem() }

func copyOf(o reflect.Value) reflect.Value {
	c := reflect.New(o.Type()).Elem()
	c.Set(o)
	return c
}

// valueOf returns the T to which p points, as core represents it.
func valueOf(p any) reflect.Value { return reflect.ValueOf(p).Elem() }

// pointer returns the *T to a value, or nil if o is no value.
func pointer(o reflect.Value) any {
	if !o.IsValid() {
		return nil
	}
	return o.Addr().Interface()
}

// done ends a call that returns a row: it sets the T to which p points to the row, unless the call failed.
func (e *core) done(operation string, p any, row reflect.Value, err error) error {
	if err == nil {
		valueOf(p).Set(row)
	}
	return e.fail(operation, err)
}

// typed returns a T that core represents as o. If o is no value, it returns the zero T.
func typed[T any](o reflect.Value) (v T) {
	if p, ok := pointer(o).(*T); ok {
		v = *p
	}
	return v
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

// changing adapts a caller's function that changes a T. It returns nil for nil.
func changing[T any](f func(*T) error) func(reflect.Value) error {
	if f == nil {
		return nil
	}
	return func(o reflect.Value) error { return f(pointer(o).(*T)) }
}
