package entity

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/table"
)

// Facet returns the entity as a facet of a NoSQL Workbench model, for [table.Schema.Workbench]: its key templates, and
// its other attributes by name, including those that the entity adds. The type of an attribute is that of an encoded
// sample value. It is S if a type with its own encoding encodes nothing.
func (e *Entity[T]) Facet() table.Facet { return e.core.facet() }

func (e *core) facet() table.Facet {
	p := e.plan
	f := table.Facet{Name: e.typ, PK: p.pk.tpl.String(), SK: p.sk.tpl.String()}
	kinds := map[string]string{}
	if !p.untyped {
		kinds[p.scheme.Type] = "S"
	}
	for _, fd := range p.fields {
		if fd.attr != "" && fd != p.version && fd != p.ttl {
			kinds[fd.attr] = fd.attributeType()
		}
	}
	if p.version != nil {
		kinds[p.scheme.Version] = "N"
	}
	if p.ttl != nil {
		kinds[p.scheme.TTL] = "N"
	}
	for _, x := range p.indexes {
		for _, k := range []keyPlan{x.pk, x.sk} {
			if k.tpl != nil && !k.inherited { // a natural key is among the fields
				kinds[k.attr] = "S"
			}
		}
	}
	for name, kind := range kinds {
		f.Attributes = append(f.Attributes, table.FacetAttribute{Name: name, Type: kind})
	}
	slices.SortFunc(f.Attributes, func(a, b table.FacetAttribute) int { return strings.Compare(a.Name, b.Name) })
	return f
}

// attributeType returns the DynamoDB type to which the field is encoded, such as "S".
func (f *field) attributeType() string {
	kind, known := f.sample()
	switch {
	case known:
		return kind
	case f.natural != nil: // a value of another type could not be written
		return string(f.natural.kind)
	}
	return "S"
}

// sample encodes a sample value and returns its DynamoDB type, or false if nothing is encoded, or NULL.
func (f *field) sample() (kind string, known bool) {
	v := reflect.New(f.typ).Elem()
	fill(v, 8)
	av, err := f.codec.Encode(v)
	if err != nil {
		return "", false
	}
	kind = attrvalue.Kind(av)
	return kind, kind != "" && kind != "NULL"
}

// fill sets v to a value that is not empty, so that the encoder does not omit it. depth limits types that contain themselves.
func fill(v reflect.Value, depth int) {
	switch {
	case depth == 0:
		return
	case v.Type() == timeType:
		v.Set(reflect.ValueOf(time.Unix(1, 0).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth-1)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), depth-1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth-1)
		fill(value, depth-1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	default:
		switch {
		case v.CanInt():
			v.SetInt(1)
		case v.CanUint():
			v.SetUint(1)
		}
	}
}
