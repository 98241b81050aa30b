package keys

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

type kind uint8

const (
	// The text kinds come first, and kindID is the last of them. parseCodec and BeginsWith compare kinds with kindID.
	kindString kind = iota
	kindRaw
	kindRest
	kindKey
	kindID
	kindUint
	kindInt
	kindFloat
	kindBool
	kindTime
	kindTimeMS
	kindTimeS
	kindDate
	kindShard
)

// codec switches over its kind instead of being an interface. Calls through an interface would move every argument of
// Format to the heap.
type codec struct {
	kind kind
	desc bool
	// width is the number of bytes in the key, or 0 if it varies. For an id it is the number of bytes before escaping.
	width int
	// max is the greatest magnitude of a number, or the number of shards.
	max uint64
}

func (c codec) variable() bool { return c.width == 0 }

// parseCodec reads the part of a field after its name: a codec's name, optionally followed by ":desc".
func parseCodec(text string) (codec, error) {
	name, variant, hasVariant := strings.Cut(text, ":")
	c, err := codecByName(name)
	if err != nil || !hasVariant {
		return c, err
	}
	if variant != "desc" {
		return codec{}, fmt.Errorf("%w: unknown variant %q of a codec, want desc", ErrSyntax, variant)
	}
	if c.kind <= kindID || c.kind == kindShard {
		return codec{}, fmt.Errorf("%w: codec %s has no descending variant", ErrSyntax, name)
	}
	c.desc = true
	return c, nil
}

func codecByName(name string) (codec, error) {
	switch name {
	case "string":
		return codec{kind: kindString}, nil
	case "raw":
		return codec{kind: kindRaw}, nil
	case "rest":
		return codec{kind: kindRest}, nil
	case "key":
		return codec{kind: kindKey}, nil
	case "float":
		return codec{kind: kindFloat, width: 16}, nil
	case "bool":
		return codec{kind: kindBool, width: 1}, nil
	case "time":
		return codec{kind: kindTime, width: len("2006-01-02T15:04:05.000000000Z")}, nil
	case "time-ms":
		return codec{kind: kindTimeMS, width: len("2006-01-02T15:04:05.000Z")}, nil
	case "time-s":
		return codec{kind: kindTimeS, width: len("2006-01-02T15:04:05Z")}, nil
	case "date":
		return codec{kind: kindDate, width: len("2006-01-02")}, nil
	}
	for _, f := range [...]struct {
		name     string
		kind     kind
		min, max int
	}{
		{"uint", kindUint, 1, 20}, {"int", kindInt, 1, 19}, {"id", kindID, 1, MaxPK}, {"shard", kindShard, 2, 1000},
	} {
		digits, ok := strings.CutPrefix(name, f.name)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(digits)
		if err != nil || strconv.Itoa(n) != digits || n < f.min || n > f.max {
			return codec{}, fmt.Errorf("%w: codec %s takes a number from %d to %d after its name", ErrSyntax, f.name, f.min, f.max)
		}
		c := codec{kind: f.kind, width: n}
		switch f.kind {
		case kindUint:
			c.max = pow10(n) - 1
			if n == 20 { // 10^20 exceeds 64 bits, and every uint64 has at most 20 digits
				c.max = math.MaxUint64
			}
		case kindInt:
			c.width = n + 1
			c.max = pow10(n) - 1
		case kindShard:
			c.width = len(strconv.Itoa(n - 1))
			c.max = uint64(n)
		}
		return c, nil
	}
	return codec{}, fmt.Errorf("%w: unknown codec %q", ErrSyntax, name)
}

func pow10(n int) uint64 {
	p := uint64(1)
	for ; n > 0; n-- {
		p *= 10
	}
	return p
}

// append appends the text of v to dst. If it fails, dst may end with a part of the text. Shards need appendShard instead.
func (c codec) append(dst []byte, v any, esc escaper) ([]byte, error) {
	switch c.kind {
	case kindString, kindRaw, kindRest, kindKey, kindID:
		if s, ok := stringOf(v); ok {
			return c.appendString(dst, s, esc)
		}
		if c.kind != kindRaw {
			return dst, typeError("a string", v)
		}
		n, negative, ok := integerOf(v)
		if !ok {
			return dst, typeError("a string or an integer", v)
		}
		return appendDecimal(dst, n, negative, esc)
	case kindUint:
		n, negative, ok := integerOf(v)
		if !ok {
			return dst, typeError("an integer", v)
		}
		return c.appendUint(dst, n, negative)
	case kindInt:
		n, negative, ok := integerOf(v)
		if !ok {
			return dst, typeError("an integer", v)
		}
		return c.appendInt(dst, n, negative)
	case kindFloat:
		f, ok := floatOf(v)
		if !ok {
			return dst, typeError("a float64 or float32", v)
		}
		return c.appendFloat(dst, f)
	case kindBool:
		b, ok := boolOf(v)
		if !ok {
			return dst, typeError("a bool", v)
		}
		return c.appendBool(dst, b), nil
	default:
		t, ok := timeOf(v)
		if !ok {
			return dst, typeError("a time.Time", v)
		}
		return c.appendTime(dst, t)
	}
}

func (c codec) appendString(dst []byte, s string, esc escaper) ([]byte, error) {
	if s == "" {
		return dst, ErrEmpty
	}
	switch {
	case c.kind == kindID && len(s) != c.width:
		return dst, fmt.Errorf("%w: %d bytes, want exactly %d", ErrRange, len(s), c.width)
	case len(s) > MaxPK: // no key can be that long, so do not even copy it
		return dst, tooLong(len(s), MaxPK)
	case c.kind != kindString && c.kind != kindID:
		if c.kind == kindRaw && strings.IndexByte(s, esc.delim) >= 0 {
			return dst, fmt.Errorf("%w: a raw value contains %q", ErrDelimiter, esc.delim)
		}
		if err := checkText(s, MaxPK); err != nil {
			return dst, err
		}
		return append(dst, s...), nil
	}
	return esc.append(dst, s)
}

func tooLong(n, limit int) error {
	return fmt.Errorf("%w: at least %d bytes, the limit is %d", ErrTooLong, n, limit)
}

// decode reads a value at the beginning of s. It returns the value and the number of bytes read, or false if no value is there. For a
// shard, the value is its number.
func (c codec) decode(s string, esc escaper) (scalar, int, bool) {
	n := c.width
	switch c.kind {
	case kindString, kindRaw:
		if n = strings.IndexByte(s, esc.delim); n < 0 {
			n = len(s)
		}
	case kindRest, kindKey:
		n = len(s)
	case kindID:
		n = esc.units(s, c.width)
	}
	if n <= 0 || n > len(s) {
		return scalar{}, 0, false
	}
	var v scalar
	var ok bool
	switch s = s[:n]; c.kind {
	case kindString, kindID:
		v.kind = kindString
		v.text, ok = esc.unescape(s)
	case kindRaw, kindRest, kindKey:
		v.kind = kindString
		v.text, ok = s, checkText(s, MaxPK) == nil
	case kindUint:
		v.kind = kindUint
		v.bits, ok = parseDigits(s, c.desc)
	case kindInt:
		v, ok = c.decodeInt(s)
	case kindFloat:
		v, ok = c.decodeFloat(s)
	case kindBool:
		v.kind = kindBool
		v.bits, ok = parseDigits(s, false)
		ok = ok && v.bits <= 1
		if c.desc {
			v.bits ^= 1
		}
	case kindShard:
		v.kind = kindUint
		v.bits, ok = parseDigits(s, false)
		ok = ok && v.bits < c.max
	default:
		v, ok = c.decodeTime(s)
	}
	return v, n, ok
}
