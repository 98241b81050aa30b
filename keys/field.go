package keys

import (
	"reflect"
	"time"
)

// Field describes a field of a template.
type Field struct {
	Name  string
	Codec string // as written in the template, such as "uint10" or "time-s:desc"; "string" if the template names none

	// Width is the number of bytes that a value occupies in the key, or 0 if it varies. For idN it is N, the number
	// before escaping.
	Width int

	// Computed reports that the field occurs only in a shard: [Template.Format] needs its value, but [Template.Parse]
	// does not return it.
	Computed bool
}

// Accepts reports whether the field's codec takes values of Go type typ. It allows a caller to refuse a type before
// there are values. A single value can still be refused for its length or range.
func (f Field) Accepts(typ reflect.Type) bool {
	c, err := parseCodec(f.Codec)
	if err != nil || typ == nil {
		return false
	}
	var k kind
	switch typ.Kind() {
	case reflect.String:
		k = kindString
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		k = kindInt
	case reflect.Float32, reflect.Float64:
		k = kindFloat
	case reflect.Bool:
		k = kindBool
	default:
		if typ != reflect.TypeFor[time.Time]() {
			return false
		}
		k = kindTime
	}
	switch c.kind {
	case kindShard:
		return true
	case kindRaw:
		return k == kindString || k == kindInt
	case kindString, kindRest, kindKey, kindID:
		return k == kindString
	case kindUint, kindInt:
		return k == kindInt
	case kindFloat, kindBool:
		return k == c.kind
	default:
		return k == kindTime
	}
}
