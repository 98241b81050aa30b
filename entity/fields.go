package entity

import (
	"encoding"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/entity/internal/codec"
	"github.com/mortise-go/mortise/table"
)

// field is a field of T, as guregu/dynamo reads its tag.
type field struct {
	goName string
	tag    string // the name in its tag, or goName if the tag has none; "" for a field that is not encoded ("-")
	attr   string // its attribute: AttributePrefix and tag; "" for a field that is not encoded
	index  []int  // its path in T; nil in a stand-in for a field that T does not have
	typ    reflect.Type
	codec  *codec.Field // its encoder and decoder; nil for a field that is not encoded
	own    bool         // methods of the type decide what is stored, which can be another value

	// seconds rounds a time to whole seconds, in the way in which the attribute stores it. It is nil if the attribute keeps fractions.
	seconds func(time.Time) time.Time

	natural *naturalKey // set if the attribute is a key of an index
	home    *keyPlan    // for a field without an attribute: the index key that stores it
}

var (
	timeType            = reflect.TypeFor[time.Time]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	zeroerType          = reflect.TypeFor[interface{ IsZero() bool }]()
)

// fieldsOf lists the fields of a struct that a caller can name, the outer ones first. It follows the encoder's rules:
// fields in the order of declaration, embedded structs in their place, and of several fields with the same attribute the
// first. Fields of embedded pointers are encoded, but a caller cannot name them.
func fieldsOf(t reflect.Type, prefix string) (list []*field) {
	seen := map[string]bool{}
	var walk func(t reflect.Type, trail []int, within []reflect.Type, named bool)
	walk = func(t reflect.Type, trail []int, within []reflect.Type, named bool) {
		if slices.Contains(within, t) {
			return // the encoder refuses a struct that embeds itself
		}
		within = append(slices.Clip(within), t)
		for i := range t.NumField() {
			f := t.Field(i)
			f.Index = append(append([]int(nil), trail...), f.Index...)
			ft := f.Type
			if ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			skip := f.Tag.Get("dynamo") == "-" || strings.HasPrefix(f.Tag.Get("dynamo"), "-,")
			if f.Anonymous && ft.Kind() == reflect.Struct {
				if !skip {
					walk(ft, f.Index, within, named && f.Type.Kind() == reflect.Struct)
				}
				continue
			}
			if !f.IsExported() {
				continue
			}
			fd := newField(f, prefix)
			if !skip && seen[fd.attr] {
				continue
			}
			seen[fd.attr] = true
			if named {
				list = append(list, fd)
			}
		}
	}
	walk(t, nil, nil, true)
	slices.SortStableFunc(list, func(a, b *field) int { return len(a.index) - len(b.index) })
	return list
}

func newField(f reflect.StructField, prefix string) *field {
	name, flags, _ := strings.Cut(f.Tag.Get("dynamo"), ",")
	switch name {
	case "":
		name = f.Name
	case "-":
		name, prefix = "", ""
	}
	fd := &field{goName: f.Name, tag: name, attr: prefix + name, index: f.Index, typ: f.Type}
	if slices.Contains(strings.Split(flags, ","), "unixtime") {
		fd.seconds = func(at time.Time) time.Time { return at.Truncate(time.Second) }
	}
	return fd
}

// stamp returns a time with the precision with which the field stores it.
func (f *field) stamp(now time.Time) time.Time {
	now = now.UTC().Round(0) // drop the monotonic reading, which a row cannot store
	if f.seconds != nil {
		now = f.seconds(now)
	}
	return now
}

func (f *field) of(v reflect.Value) reflect.Value { return v.FieldByIndex(f.index) }

// encode returns the attribute value for v, a value of the field's type. It is nil if the tag omits v, or for an empty index key.
func (f *field) encode(v reflect.Value) (types.AttributeValue, error) {
	av, err := f.codec.Encode(v)
	if err != nil {
		return nil, &table.EncodeError{What: fmt.Sprintf("attribute %q", f.attr), Err: err}
	}
	if f.natural != nil {
		return f.natural.fit(av)
	}
	return av, nil
}

// decode sets target, a value of the field's type, from an attribute value. After an error target is unchanged.
func (f *field) decode(target reflect.Value, av types.AttributeValue) error {
	fresh := reflect.New(f.typ).Elem()
	if err := f.codec.Decode(av, fresh); err != nil {
		return err
	}
	target.Set(fresh)
	return nil
}

// convert converts v to the field's type. It refuses a value that the type cannot hold unchanged.
func (f *field) convert(v any) (reflect.Value, error) {
	rv := reflect.ValueOf(v)
	if !rv.IsValid() {
		switch f.typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
			return reflect.Zero(f.typ), nil
		}
		return reflect.Value{}, fmt.Errorf("%w: %q is %s, not nil: use Remove", ErrInvalid, f.goName, f.typ)
	}
	if rv.Type().AssignableTo(f.typ) {
		return rv.Convert(f.typ), nil // such as a string for a field of type any: the encoder needs a value of the field's own type
	}
	target := f.typ
	if target.Kind() == reflect.Pointer && rv.Type().AssignableTo(target.Elem()) {
		p := reflect.New(target.Elem())
		p.Elem().Set(rv)
		return p, nil
	}
	if sameClass(rv.Kind(), target.Kind()) && rv.CanConvert(target) {
		if c := rv.Convert(target); equal(c, rv) {
			return c, nil
		}
		return reflect.Value{}, fmt.Errorf("%w: value for %q does not fit %s", ErrInvalid, f.goName, f.typ)
	}
	return reflect.Value{}, fmt.Errorf("%w: %q is %s, not %T", ErrInvalid, f.goName, f.typ, v)
}

func sameClass(a, b reflect.Kind) bool {
	numeric := func(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Float64 }
	return numeric(a) && numeric(b) || a == b && (a == reflect.String || a == reflect.Bool)
}

// equal compares a value with what it was converted to. Numbers are not converted back, since the result is another one on another
// processor if a number does not fit.
func equal(a, b reflect.Value) bool {
	x, y := exact(a), exact(b)
	if x == nil || y == nil {
		return a.Kind() == b.Kind() && a.Convert(b.Type()).Equal(b)
	}
	return x.Cmp(y) == 0
}

// exact returns a number as it is; nil for NaN, and for values that are no numbers.
func exact(v reflect.Value) *big.Float {
	switch {
	case v.CanInt():
		return new(big.Float).SetInt64(v.Int())
	case v.CanUint():
		return new(big.Float).SetUint64(v.Uint())
	case v.CanFloat() && !math.IsNaN(v.Float()):
		return new(big.Float).SetFloat64(v.Float())
	}
	return nil
}

// resolve finds the field that a specification or caller names, or returns nil. It tries the name in the tag, then the Go
// name, then both without regard to case. If the last step finds several fields, it returns nil.
func resolve(fields []*field, name string) *field {
	for _, f := range fields {
		if f.tag == name && name != "" {
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
		if strings.EqualFold(f.tag, name) && f.tag != "" || strings.EqualFold(f.goName, name) {
			if found != nil && found != f {
				return nil
			}
			found = f
		}
	}
	return found
}

// keyValue returns the value of the field in v, a T, for a key template, or false if the field is empty.
func (f *field) keyValue(v reflect.Value) (any, bool, error) {
	stored, err := f.stored(f.of(v))
	if err != nil {
		return nil, false, err
	}
	part, ok, err := keyValue(stored)
	return f.whole(part), ok, err
}

// stored returns v, a value of the field's type, as it will be read from the row. A key is made of that, since methods of
// the type can store another value, such as an address in lower case. Otherwise the value that is read would give another key
// than the row has, and two rows could have the same unique value.
func (f *field) stored(v reflect.Value) (reflect.Value, error) {
	if !f.own {
		return v, nil
	}
	av, err := f.encode(v)
	back := reflect.New(f.typ).Elem()
	if err == nil && av != nil && f.decode(back, av) != nil {
		err = fmt.Errorf("%w: a %s cannot be read back", ErrInvalid, f.typ)
	}
	return back, err
}

// storesOther reports whether methods of a type decide what is stored of a value: its own encoding, or IsZero, by which a tag
// omits it. MarshalText is not among them, since keys have the same text.
func storesOther(t reflect.Type) bool {
	t = pointee(t)
	return t != timeType && (codec.MakesAttribute(t) || reflect.PointerTo(t).Implements(zeroerType))
}

// whole rounds a time for a key as the field's attribute does. Otherwise the value that is read from a row would give another key than
// the row has.
func (f *field) whole(part any) any {
	if at, ok := part.(time.Time); ok && f.seconds != nil {
		return f.seconds(at)
	}
	return part
}

// keyValue returns a field's value for a key template, or false if the field is empty: nil, a zero time or an empty text.
func keyValue(v reflect.Value) (any, bool, error) {
	v = pointed(v)
	if v.Kind() == reflect.Pointer { // nil
		return nil, false, nil
	}
	if v.Type() == timeType {
		t := v.Interface().(time.Time)
		return t, !t.IsZero(), nil
	}
	if makesText(v.Type()) {
		// Call it on a copy: the method may have a pointer receiver, and change the value.
		text, err := copyOf(v).Addr().Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			return nil, false, &table.EncodeError{What: "a " + v.Type().String(), Err: err}
		}
		return string(text), len(text) > 0, nil
	}
	if v.Kind() == reflect.String {
		return v.String(), v.Len() > 0, nil
	}
	return v.Interface(), true, nil
}

// keyType returns the type of the values that keyValue returns for a field.
func keyType(t reflect.Type) reflect.Type {
	if t = pointee(t); makesText(t) {
		return reflect.TypeFor[string]()
	}
	return t
}

// restorable reports whether setKeyValue can undo keyValue.
func restorable(t reflect.Type) bool {
	t = pointee(t)
	return !makesText(t) || reflect.PointerTo(t).Implements(textUnmarshalerType)
}

// pointee returns the type that t is or points to, through any number of pointers. A type that points to itself has none: Define
// refuses it in the end, and until then any of the pointers will do.
func pointee(t reflect.Type) reflect.Type {
	for hops := 0; t.Kind() == reflect.Pointer && hops < codec.MaxDepth; hops++ {
		t = t.Elem()
	}
	return t
}

// pointed returns the value that v is or points to, through any number of pointers. A nil pointer stays one.
func pointed(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	return v
}

// keyPart converts a caller's value for a key template: to the field's type, as Set does, and then as keyValue does. What cannot be
// converted is left to the template, which decides on it: an empty value, a bound outside of the type's range, the text that the type makes.
func (f *field) keyPart(v any) (any, error) {
	rv := pointed(reflect.ValueOf(v))
	if !rv.IsValid() {
		return v, nil
	}
	if !makesText(rv.Type()) {
		own := field{goName: f.goName, typ: pointee(f.typ)}
		c, err := own.convert(rv.Interface())
		if err == nil {
			rv, v = c, c.Interface()
		} else if rv.Kind() == reflect.String && isInteger(own.typ) { // which a raw field of the template would take
			return nil, err
		}
	}
	if f.own {
		if c, err := f.convert(v); err == nil {
			if c, err = f.stored(c); err != nil {
				return nil, err
			}
			rv, v = c, c.Interface()
		}
	}
	part, ok, err := keyValue(rv)
	if err == nil && !ok {
		part = v
	}
	return part, err
}

// makesText reports whether values of a type make their own text for a key.
func makesText(t reflect.Type) bool {
	return t != timeType && reflect.PointerTo(t).Implements(textMarshalerType)
}

// setKeyValue sets a field to a value that a template parsed from a key.
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
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(rv.String())); err != nil {
			return fmt.Errorf("%w: a %s cannot be read from the key", ErrInvalid, v.Type())
		}
		return nil
	}
	if rv.Kind() == reflect.String && (v.CanInt() || v.CanUint()) { // of a raw field
		return setDigits(v, rv.String())
	}
	f := field{goName: "key field", typ: v.Type()}
	c, err := f.convert(parsed)
	if err != nil {
		return err
	}
	v.Set(c)
	return nil
}

// isInteger reports whether keys contain values of a type as integers.
func isInteger(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr && !makesText(t)
}

// setDigits sets an integer to the one of which a key contains the digits. Another text of the number, such as 007, is an
// error, since the number would be written as another key.
func setDigits(v reflect.Value, digits string) error {
	var text string
	if v.CanInt() {
		n, _ := strconv.ParseInt(digits, 10, v.Type().Bits())
		v.SetInt(n)
		text = strconv.FormatInt(n, 10)
	} else {
		n, _ := strconv.ParseUint(digits, 10, v.Type().Bits())
		v.SetUint(n)
		text = strconv.FormatUint(n, 10)
	}
	if text != digits {
		return fmt.Errorf("%w: the text in the key is not the digits of a %s", ErrInvalid, v.Type())
	}
	return nil
}
