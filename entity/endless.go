package entity

import (
	"reflect"
	"slices"

	"github.com/mortise-go/mortise/entity/internal/codec"
)

// endless finds a type, in t or below it, that contains itself without a struct in between, like type L []L. The
// encoder would recurse on it until the stack overflows, which a program cannot recover from. Types that encode
// themselves are not checked.
func endless(t reflect.Type) reflect.Type {
	done := map[reflect.Type]bool{}
	var find func(t reflect.Type, trail []reflect.Type) reflect.Type
	find = func(t reflect.Type, trail []reflect.Type) reflect.Type {
		if codec.EncodesItself(t) {
			return nil
		}
		switch t.Kind() {
		case reflect.Slice, reflect.Array, reflect.Pointer, reflect.Map:
			if slices.Contains(trail, t) {
				return t
			}
			return find(t.Elem(), append(trail, t))
		case reflect.Struct:
			if done[t] {
				return nil
			}
			done[t] = true
			for i := range t.NumField() {
				if bad := find(t.Field(i).Type, nil); bad != nil {
					return bad
				}
			}
		}
		return nil
	}
	return find(t, nil)
}
