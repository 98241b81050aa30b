package attr

import "unicode/utf16"

// Overheads of documents (Developer Guide, "DynamoDB item sizes and formats").
const (
	documentOverhead = 3
	elementOverhead  = 1
)

// Size returns the bytes that DynamoDB counts for the value.
func (v *Value) Size() int {
	switch v.Kind {
	case S, B:
		return len(v.Str)
	case N:
		return v.Num.size()
	case BOOL, NULL:
		return 1
	case M:
		size := documentOverhead
		for name, e := range v.Map {
			size += len(name) + e.Size() + elementOverhead
		}
		return size
	case L:
		size := documentOverhead
		for _, e := range v.List {
			size += e.Size() + elementOverhead
		}
		return size
	}
	size := 0
	for _, e := range v.List {
		size += e.Size()
	}
	return size
}

// Size returns the bytes that DynamoDB counts for the item: names and values.
func (it Item) Size() int {
	size := 0
	for name, v := range it {
		size += len(name) + v.Size()
	}
	return size
}

// Length returns the value of the function size(): UTF-16 code units, bytes or elements. It returns false for kinds without a length.
func (v *Value) Length() (int, bool) {
	switch v.Kind {
	case S:
		n := 0
		for _, r := range v.Str {
			n += utf16.RuneLen(r)
		}
		return n, true
	case B:
		return len(v.Str), true
	case L, SS, NS, BS:
		return len(v.List), true
	case M:
		return len(v.Map), true
	}
	return 0, false
}
