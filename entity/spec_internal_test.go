package entity

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSpec_ErasedLeavesNothingOut(t *testing.T) {
	spec := Spec[struct{ ID string }]{Indexes: make([]Index[struct{ ID string }], 1), Unique: make([]Unique[struct{ ID string }], 1)}
	fillAll(t, reflect.ValueOf(&spec).Elem())
	assertFull(t, reflect.ValueOf(spec.erased()))
}

// fillAll gives every exported field below v a value.
func fillAll(t *testing.T, v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Type() == reflect.TypeFor[Match]():
			f.Set(reflect.ValueOf(HasAttr("kind")))
		case f.Kind() == reflect.String:
			f.SetString("x")
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.Kind() == reflect.Func:
			f.Set(reflect.MakeFunc(f.Type(), nil))
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Func:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case f.Kind() == reflect.Slice:
			fillAll(t, f.Index(0))
		default:
			t.Fatalf("%s: a kind of field that this test does not know", v.Type().Field(i).Name)
		}
	}
}

func assertFull(t *testing.T, v reflect.Value) {
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		assert.False(t, f.IsZero(), name)
		if f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct && f.Len() > 0 {
			assertFull(t, f.Index(0))
		}
	}
}
