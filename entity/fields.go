package entity

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"
)

// field is a field of T, by the rules of guregu/dynamo's tags.
type field struct {
	goName string
	attr   string // attribute name; "" for a field that is not encoded ("-")
	index  []int
	typ    reflect.Type
	alone  reflect.Type // a struct of only this field, to encode it by its own tag
}

var (
	timeType            = reflect.TypeFor[time.Time]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// fieldsOf lists the fields of a struct, those of embedded structs in their place.
func fieldsOf(t reflect.Type) []*field {
	var list []*field
	seen := map[string]bool{}
	var walk func(t reflect.Type, trail []int)
	walk = func(t reflect.Type, trail []int) {
		var embedded []reflect.StructField
		for i := range t.NumField() {
			f := t.Field(i)
			f.Index = append(append([]int(nil), trail...), f.Index...)
			ft := f.Type
			if ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			if f.Anonymous && ft.Kind() == reflect.Struct && f.Tag.Get("dynamo") != "-" {
				if f.Type.Kind() == reflect.Struct {
					embedded = append(embedded, f)
				}
				continue
			}
			if !f.IsExported() || seen[f.Name] {
				continue
			}
			seen[f.Name] = true
			list = append(list, newField(f))
		}
		for _, f := range embedded { // outer fields win over embedded ones
			walk(f.Type, f.Index)
		}
	}
	walk(t, nil)
	return list
}

func newField(f reflect.StructField) *field {
	name, _, _ := strings.Cut(f.Tag.Get("dynamo"), ",")
	switch name {
	case "":
		name = f.Name
	case "-":
		name = ""
	}
	fd := &field{goName: f.Name, attr: name, index: f.Index, typ: f.Type}
	if name != "" {
		fd.alone = reflect.StructOf([]reflect.StructField{{Name: "F", Type: f.Type, Tag: f.Tag}})
		if tag := f.Tag.Get("dynamo"); tag == "" || tag[0] == ',' {
			fd.alone = reflect.StructOf([]reflect.StructField{{Name: f.Name, Type: f.Type, Tag: f.Tag}})
		}
	}
	return fd
}

func (f *field) of(v reflect.Value) reflect.Value { return v.FieldByIndex(f.index) }

// encode is the attribute value that a whole value of T would have for v in this field;
// nil where the field would be left out.
func (f *field) encode(v reflect.Value) (types.AttributeValue, error) {
	alone := reflect.New(f.alone).Elem()
	alone.Field(0).Set(v)
	item, err := dynamo.MarshalItem(alone.Interface())
	if err != nil {
		return nil, fmt.Errorf("%w: attribute %q: %w", ErrInvalid, f.attr, err)
	}
	return item[f.attr], nil
}

// decode sets the field of a value of T, addressed by target, from an attribute value.
func (f *field) decode(target reflect.Value, av types.AttributeValue) error {
	alone := reflect.New(f.alone)
	if err := dynamo.UnmarshalItem(dynamo.Item{f.attr: av}, alone.Interface()); err != nil {
		return err
	}
	target.Set(alone.Elem().Field(0))
	return nil
}

// convert makes v assignable to the field, where that loses nothing.
func (f *field) convert(v any) (reflect.Value, error) {
	rv := reflect.ValueOf(v)
	if !rv.IsValid() {
		return reflect.Zero(f.typ), nil
	}
	if rv.Type().AssignableTo(f.typ) {
		return rv, nil
	}
	target := f.typ
	if target.Kind() == reflect.Pointer && rv.Type().AssignableTo(target.Elem()) {
		p := reflect.New(target.Elem())
		p.Elem().Set(rv)
		return p, nil
	}
	if sameClass(rv.Kind(), target.Kind()) && rv.CanConvert(target) {
		c := rv.Convert(target)
		if c.CanConvert(rv.Type()) && c.Convert(rv.Type()).Equal(rv) && negative(c) == negative(rv) {
			return c, nil
		}
		return reflect.Value{}, fmt.Errorf("%w: value for %q does not fit %s", ErrInvalid, f.goName, f.typ)
	}
	return reflect.Value{}, fmt.Errorf("%w: %q is %s, not %T", ErrInvalid, f.goName, f.typ, v)
}

func sameClass(a, b reflect.Kind) bool {
	numeric := func(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Float64 && k != reflect.Uintptr }
	return numeric(a) && numeric(b) || a == reflect.String && b == reflect.String
}

func negative(v reflect.Value) bool {
	switch {
	case v.CanInt():
		return v.Int() < 0
	case v.CanFloat():
		return v.Float() < 0
	}
	return false
}

// resolve finds the field that a specification or a caller names: by attribute, by Go
// name, or by either without regard to case where that is unambiguous.
func resolve(fields []*field, name string) *field {
	for _, f := range fields {
		if f.attr == name && name != "" {
			return f
		}
	}
	for _, f := range fields {
		if f.goName == name {
			return f
		}
	}
	var found *field
	for _, f := range fields {
		if strings.EqualFold(f.attr, name) && f.attr != "" || strings.EqualFold(f.goName, name) {
			if found != nil {
				return nil
			}
			found = f
		}
	}
	return found
}

// keyValue is a field's value as key templates take it; false means that it has none.
func keyValue(v reflect.Value) (any, bool, error) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, false, nil
		}
		v = v.Elem()
	}
	if v.Type() == timeType {
		t := v.Interface().(time.Time)
		return t, !t.IsZero(), nil
	}
	if v.Type().Implements(textMarshalerType) {
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		return string(text), len(text) > 0, err
	}
	if v.Kind() == reflect.String {
		return v.String(), v.Len() > 0, nil
	}
	return v.Interface(), true, nil
}

// plainValue is a value of a caller's as key templates take it; what they cannot take is
// left for them to refuse.
func plainValue(v any) any {
	rv := reflect.ValueOf(v)
	if !rv.IsValid() {
		return v
	}
	if plain, ok, err := keyValue(rv); ok && err == nil {
		return plain
	}
	return v
}

// setKeyValue puts what a template parsed from a key into a field.
func setKeyValue(v reflect.Value, parsed any) error {
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		if err := setKeyValue(p.Elem(), parsed); err != nil {
			return err
		}
		v.Set(p)
		return nil
	}
	rv := reflect.ValueOf(parsed)
	if rv.Kind() == reflect.String && v.Type() != timeType && reflect.PointerTo(v.Type()).Implements(textUnmarshalerType) {
		return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(rv.String()))
	}
	f := field{goName: "key field", typ: v.Type()}
	c, err := f.convert(parsed)
	if err != nil {
		return err
	}
	v.Set(c)
	return nil
}
