package attr

import (
	"sort"
	"strings"
)

// Comparable reports whether a kind has an order: strings, numbers and binary.
func (k Kind) Comparable() bool { return k == S || k == N || k == B }

// Compare orders two values of the same comparable kind. For all other values ok is false.
func Compare(a, b *Value) (c int, ok bool) {
	if a.Kind != b.Kind {
		return 0, false
	}
	switch a.Kind {
	case S, B:
		return strings.Compare(a.Str, b.Str), true
	case N:
		return a.Num.Compare(b.Num), true
	}
	return 0, false
}

// Equal reports whether two values are equal. Documents are compared by their contents, and sets without order.
func Equal(a, b *Value) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || a.Kind != b.Kind {
		return false
	}
	switch a.Kind {
	case S, B:
		return a.Str == b.Str
	case N:
		return a.Num == b.Num
	case BOOL:
		return a.Bool == b.Bool
	case NULL:
		return true
	case M:
		return EqualItems(a.Map, b.Map)
	}
	if len(a.List) != len(b.List) {
		return false
	}
	for i := range a.List {
		if !Equal(a.List[i], b.List[i]) {
			return false
		}
	}
	return true
}

// EqualItems reports whether two items have the same attributes.
func EqualItems(a, b Item) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		w, ok := b[name]
		if !ok || !Equal(v, w) {
			return false
		}
	}
	return true
}

// Contains reports whether a set has the element.
func (v *Value) Contains(element *Value) bool {
	if element.Kind != v.Kind.Element() {
		return false
	}
	i := sort.Search(len(v.List), func(i int) bool {
		c, _ := Compare(v.List[i], element)
		return c >= 0
	})
	return i < len(v.List) && Equal(v.List[i], element)
}

// Union returns the union of two sets of the same kind.
func Union(a, b *Value) *Value {
	out := make([]*Value, 0, len(a.List)+len(b.List))
	out = append(out, a.List...)
	for _, e := range b.List {
		if !a.Contains(e) {
			out = append(out, e)
		}
	}
	sortSet(out)
	return &Value{Kind: a.Kind, List: out}
}

// Subtract returns the set of the elements of a that are not in b, or nil if there are none.
func Subtract(a, b *Value) *Value {
	out := make([]*Value, 0, len(a.List))
	for _, e := range a.List {
		if !b.Contains(e) {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return &Value{Kind: a.Kind, List: out}
}

func sortSet(list []*Value) {
	sort.Slice(list, func(i, j int) bool {
		c, _ := Compare(list[i], list[j])
		return c < 0
	})
}

// Sortable encodes a key value. For values of one kind, the bytewise order of encodings is the order of values, and equal values have
// equal encodings.
func (v *Value) Sortable() string {
	if v.Kind == N {
		return v.Num.sortable()
	}
	return v.Str
}
