package keys

import (
	"reflect"
	"time"
)

// Field describes a field of a template.
type Field struct {
	Name  string
	Codec string // as in the template's text, such as "uint10" or "time-s:desc"; "string" where none is given

	// Width is the number of bytes that a value takes in the key, or 0 where that varies. For idN it is N, the number before
	// escaping.
	Width int

	// Computed is true of a field that only a shard refers to: Format needs its value, Parse does not return it.
	Computed bool
}

// Accepts reports whether values of Go type typ suit the field's codec. It lets a caller refuse a struct field once,
// before there are values; single values can still be refused, by length or range.
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
	case kindString, kindRaw, kindRest, kindKey, kindID:
		return k == kindString
	case kindUint, kindInt:
		return k == kindInt
	case kindFloat, kindBool:
		return k == c.kind
	default:
		return k == kindTime
	}
}
