package keys

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
)

// scalar is a value in its canonical type. Its kind is kindString, kindUint, kindInt, kindFloat, kindBool or kindTime. It avoids the
// allocation of an interface.
type scalar struct {
	kind kind
	text string    // of a string
	bits uint64    // of a number; 1 for true
	when time.Time // of a time
}

// value returns the canonical Go value.
func (s scalar) value() any {
	switch s.kind {
	case kindString:
		return s.text
	case kindUint:
		return s.bits
	case kindInt:
		return int64(s.bits)
	case kindFloat:
		return math.Float64frombits(s.bits)
	case kindBool:
		return s.bits == 1
	default:
		return s.when
	}
}

// scalarOf converts a value of any type that some codec accepts. Equal integers have the same shard, whatever their Go types.
func scalarOf(v any) (scalar, error) {
	if s, ok := stringOf(v); ok {
		return scalar{kind: kindString, text: s}, checkText(s, MaxPK)
	}
	if n, negative, ok := integerOf(v); ok {
		if negative {
			return scalar{kind: kindInt, bits: -n}, nil
		}
		return scalar{kind: kindUint, bits: n}, nil
	}
	if f, ok := floatOf(v); ok {
		if math.IsNaN(f) {
			return scalar{}, fmt.Errorf("%w: not a number", ErrRange)
		}
		if f == 0 {
			f = 0 // turns negative zero into zero, as appendFloat does
		}
		return scalar{kind: kindFloat, bits: math.Float64bits(f)}, nil
	}
	if b, ok := boolOf(v); ok {
		s := scalar{kind: kindBool}
		if b {
			s.bits = 1
		}
		return s, nil
	}
	if t, ok := timeOf(v); ok {
		return scalar{kind: kindTime, when: t}, nil
	}
	return scalar{}, typeError("a string, integer, float, bool or time.Time", v)
}

// shard returns the shard of s, from 0 to n-1. The documentation promises that the computation never changes.
func (s scalar) shard(n uint64) (uint64, error) {
	var buf [32]byte
	var text []byte
	switch s.kind {
	case kindString: // hashed below, without a copy
	case kindUint:
		text = strconv.AppendUint(buf[:0], s.bits, 10)
	case kindInt:
		text = strconv.AppendInt(buf[:0], int64(s.bits), 10)
	case kindFloat:
		text = strconv.AppendFloat(buf[:0], math.Float64frombits(s.bits), 'g', -1, 64)
	case kindBool:
		text = strconv.AppendBool(buf[:0], s.bits == 1)
	default:
		var err error
		if text, err = (codec{kind: kindTime}).appendTime(buf[:0], s.when); err != nil {
			return 0, err
		}
	}
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(s.text) {
		h = (h ^ uint64(s.text[i])) * prime
	}
	for _, b := range text {
		h = (h ^ uint64(b)) * prime
	}
	// The low bits of FNV depend only on the low bits of the input. Folding mixes in the high bits.
	return (h>>32 ^ h&math.MaxUint32) % n, nil
}

// The functions below try the built-in types first and use reflect for named types; timeOf accepts time.Time only. None of them lets v
// escape to the heap.

func stringOf(v any) (string, bool) {
	if s, ok := v.(string); ok {
		return s, true
	}
	if r := reflect.ValueOf(v); r.Kind() == reflect.String {
		return r.String(), true
	}
	return "", false
}

// integerOf returns the magnitude of an integer and whether it is negative.
func integerOf(v any) (magnitude uint64, negative, ok bool) {
	var n int64
	switch x := v.(type) {
	case uint64:
		return x, false, true
	case int64:
		n = x
	case int:
		n = int64(x)
	default:
		switch r := reflect.ValueOf(v); r.Kind() {
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			n = r.Int()
		case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
			return r.Uint(), false, true
		default:
			return 0, false, false
		}
	}
	if n < 0 {
		return -uint64(n), true, true
	}
	return uint64(n), false, true
}

func floatOf(v any) (float64, bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	if r := reflect.ValueOf(v); r.Kind() == reflect.Float64 || r.Kind() == reflect.Float32 {
		return r.Float(), true
	}
	return 0, false
}

func boolOf(v any) (value, ok bool) {
	if b, ok := v.(bool); ok {
		return b, true
	}
	if r := reflect.ValueOf(v); r.Kind() == reflect.Bool {
		return r.Bool(), true
	}
	return false, false
}

func timeOf(v any) (time.Time, bool) {
	t, ok := v.(time.Time)
	return t, ok
}
