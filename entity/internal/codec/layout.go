package codec

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// flags are the options of a tag.
type flags uint8

const (
	asSet flags = 1 << iota
	omitEmpty
	omitEmptyElem
	allowEmpty
	allowEmptyElem
	asNull
	unixTime
)

// tag reads a field's tag. The name is "-" for a field that is not encoded.
func tag(f reflect.StructField) (name string, fl flags) {
	parts := strings.Split(f.Tag.Get("dynamo"), ",")
	name = parts[0]
	if name == "" {
		name = f.Name
	}
	for _, part := range parts[1:] {
		switch part {
		case "set":
			fl |= asSet
		case "omitempty":
			fl |= omitEmpty
		case "omitemptyelem":
			fl |= omitEmptyElem
		case "allowempty":
			fl |= allowEmpty
		case "allowemptyelem":
			fl |= allowEmptyElem
		case "null":
			fl |= asNull
		case "unixtime":
			fl |= unixTime
		}
	}
	return name, fl
}

// place is the path to a field in a struct, through embedded structs.
type place struct{ index []int }

// of returns the field in v. It returns the invalid value if an embedded pointer on the path is nil.
func (p *place) of(v reflect.Value) reflect.Value {
	if len(p.index) == 1 {
		return v.Field(p.index[0])
	}
	for i, n := range p.index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return reflect.Value{}
			}
			v = v.Elem()
		}
		v = v.Field(n)
	}
	return v
}

// layout is the list of a struct type's attributes, in the order of its fields.
type layout struct {
	members  []member
	hidden   []member // fields that a field of the same name hides
	embedded []*place
	problems []error // fields that are lost

	unexported bool // it has fields that are not exported and not tagged "-"
	excluded   bool // it has exported fields that are tagged "-"
}

type member struct {
	place
	name  string
	flags flags
	typ   reflect.Type
}

// layoutOf lists a struct's fields, with those of embedded structs in their place. A field hides those with the same attribute name
// that come later and are deeper in embedded structs, as Go selects fields. Any other field with the name of an earlier one is an
// error, since it would not be stored although Go selects it, or neither of them.
func layoutOf(t reflect.Type) (*layout, error) {
	l := &layout{}
	err := l.walk(t, nil, nil, map[string]reflect.StructField{})
	return l, errors.Join(append(l.problems, err)...)
}

// walk adds the fields of t. seen has the first field of each name, with its path from the outermost struct.
func (l *layout) walk(t reflect.Type, trail []int, within []reflect.Type, seen map[string]reflect.StructField) error {
	if slices.Contains(within, t) {
		return fmt.Errorf("%s embeds itself", t)
	}
	within = append(slices.Clip(within), t)
	for i := range t.NumField() {
		f := t.Field(i)
		name, fl := tag(f)
		if name == "-" {
			l.excluded = l.excluded || f.IsExported()
			continue
		}
		at := place{index: append(slices.Clip(trail), i)}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Anonymous && inner.Kind() == reflect.Struct:
			if EncodesItself(inner) {
				return fmt.Errorf("embedded %s encodes itself, which an embedded struct cannot: give the field a name", f.Type)
			}
			have := len(l.members)
			if f.Type.Kind() == reflect.Pointer {
				l.embedded = append(l.embedded, &at)
			}
			if err := l.walk(inner, at.index, within, seen); err != nil {
				return err
			}
			if f.Type.Kind() == reflect.Pointer && !f.IsExported() && len(l.members) > have {
				return fmt.Errorf("embedded %s is not exported and could not be read back: embed the struct without a pointer, or export it", f.Type)
			}
		case !f.IsExported():
			l.unexported = l.unexported || f.Name != "_"
		case seen[name].Index != nil:
			if first := seen[name]; len(first.Index) >= len(at.index) {
				l.problems = append(l.problems, fmt.Errorf("fields %s and %s are both attribute %q", first.Name, f.Name, name))
			}
			l.hidden = append(l.hidden, member{place: at, name: name, flags: fl, typ: f.Type})
		default:
			f.Index = at.index
			seen[name] = f
			l.members = append(l.members, member{place: at, name: name, flags: fl, typ: f.Type})
		}
	}
	return nil
}

// opaque reports whether a struct has fields and none of them is exported, like url.Userinfo. If all exported ones are tagged "-",
// its author wants an empty map.
func (l *layout) opaque() bool { return l.unexported && !l.excluded && len(l.members) == 0 }

// allocate sets nil embedded pointers to new structs. It skips unexported types, whose pointers reflection cannot set: these
// have no attributes.
func allocate(embedded []*place, v reflect.Value) {
	for _, p := range embedded {
		if pv := p.of(v); pv.IsValid() && pv.CanSet() && pv.IsNil() {
			pv.Set(reflect.New(pv.Type().Elem()))
		}
	}
}
