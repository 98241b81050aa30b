package attr

import (
	"fmt"
	"maps"
)

// Kind is the type of a value.
type Kind uint8

// DynamoDB's ten types.
const (
	S Kind = iota + 1
	N
	B
	BOOL
	NULL
	M
	L
	SS
	NS
	BS
)

// String returns the short name, which the JSON protocol uses.
func (k Kind) String() string {
	switch k {
	case S:
		return "S"
	case N:
		return "N"
	case B:
		return "B"
	case BOOL:
		return "BOOL"
	case NULL:
		return "NULL"
	case M:
		return "M"
	case L:
		return "L"
	case SS:
		return "SS"
	case NS:
		return "NS"
	case BS:
		return "BS"
	}
	return "?"
}

// Long returns the long name that a few error messages use.
func (k Kind) Long() string {
	switch k {
	case S:
		return "STRING"
	case N:
		return "NUMBER"
	case B:
		return "BINARY"
	case BOOL:
		return "BOOLEAN"
	case NULL:
		return "NULL"
	case M:
		return "MAP"
	case L:
		return "LIST"
	case SS:
		return "STRING_SET"
	case NS:
		return "NUMBER_SET"
	case BS:
		return "BINARY_SET"
	}
	return "?"
}

// KindOf returns the kind with that short name, or 0.
func KindOf(name string) Kind {
	for k := S; k <= BS; k++ {
		if k.String() == name {
			return k
		}
	}
	return 0
}

// IsSet reports whether the kind is one of the three sets.
func (k Kind) IsSet() bool { return k >= SS }

// nests reports whether values of the kind contain values of any kind.
func (k Kind) nests() bool { return k == M || k == L }

// Element returns the kind of a set's elements, or 0.
func (k Kind) Element() Kind {
	if k.IsSet() {
		return k - SS + S
	}
	return 0
}

// Value is one attribute value. Which fields are set depends on Kind.
type Value struct {
	Kind Kind
	Bool bool
	Str  string // S: text. B: raw bytes
	Num  Number
	List []*Value // L: elements. Sets: elements in ascending order, without duplicates
	Map  Item
}

// Item is an item, or the content of a map.
type Item map[string]*Value

// Clone returns a copy that shares the values.
func (it Item) Clone() Item {
	out := make(Item, len(it)+1)
	maps.Copy(out, it)
	return out
}

// InvalidError is a violation of a rule. DynamoDB reports its text as a ValidationException.
type InvalidError string

// Error returns the message.
func (e InvalidError) Error() string { return string(e) }

// Invalidf formats an InvalidError.
func Invalidf(format string, args ...any) error { return InvalidError(fmt.Sprintf(format, args...)) }

// MalformedError is a request that does not have the shape of the protocol; DynamoDB reports it as a SerializationException.
type MalformedError string

// Error returns the message.
func (e MalformedError) Error() string { return string(e) }

// String returns a new string value.
func String(s string) *Value { return &Value{Kind: S, Str: s} }

// Binary returns a new binary value.
func Binary(b string) *Value { return &Value{Kind: B, Str: b} }

// Numeric returns a new number value.
func Numeric(n Number) *Value { return &Value{Kind: N, Num: n} }

// Document returns a new map value.
func Document(m Item) *Value { return &Value{Kind: M, Map: m} }

// Sequence returns a new list value.
func Sequence(l []*Value) *Value { return &Value{Kind: L, List: l} }

// Brief returns a scalar in the form that error messages quote, such as S:text.
func (v *Value) Brief() string {
	text := v.Str
	if v.Kind == N {
		text = v.Num.String()
	}
	return v.Kind.String() + ":" + text
}

// CheckDepth refuses an updated item that nests deeper than MaxDepth.
func (it Item) CheckDepth() error {
	for _, v := range it {
		if v.deeper(MaxDepth) {
			return errDeepUpdate
		}
	}
	return nil
}

// deeper reports whether the value has more than levels levels, or a list or map on the last of them.
func (v *Value) deeper(levels int) bool {
	if levels == 1 && v.Kind.nests() {
		return true
	}
	switch v.Kind {
	case M:
		for _, e := range v.Map {
			if e.deeper(levels - 1) {
				return true
			}
		}
	case L:
		for _, e := range v.List {
			if e.deeper(levels - 1) {
				return true
			}
		}
	}
	return false
}
