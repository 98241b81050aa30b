package attr

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

// Append appends the value as JSON, in the form of the protocol.
func (v *Value) Append(dst []byte) []byte {
	dst = append(dst, '{', '"')
	dst = append(dst, v.Kind.String()...)
	dst = append(dst, '"', ':')
	switch v.Kind {
	case BOOL:
		if v.Bool {
			dst = append(dst, "true"...)
		} else {
			dst = append(dst, "false"...)
		}
	case NULL:
		dst = append(dst, "true"...)
	case M:
		dst = v.Map.Append(dst)
	case L:
		dst = append(dst, '[')
		for i, e := range v.List {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.Append(dst)
		}
		dst = append(dst, ']')
	case SS, NS, BS:
		dst = append(dst, '[')
		for i, e := range v.List {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.appendScalar(dst)
		}
		dst = append(dst, ']')
	default:
		dst = v.appendScalar(dst)
	}
	return append(dst, '}')
}

func (v *Value) appendScalar(dst []byte) []byte {
	switch v.Kind {
	case N:
		dst = append(dst, '"')
		dst = v.Num.append(dst)
		return append(dst, '"')
	case B:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, []byte(v.Str))
		return append(dst, '"')
	}
	return jsontree.AppendString(dst, v.Str)
}

// placed is an attribute's name and its bucket in a Java map.
type placed struct {
	bucket uint32
	name   string
}

// Append appends the item as JSON. Equal items have equal texts. The service promises no order of attributes. This is the order of the
// Java map that DynamoDB Local writes, so that a program that depends on an order finds the same one.
func (it Item) Append(dst []byte) []byte {
	var room [16]placed // most items are small: keep their names off the heap
	order := room[:0]
	last := javaTable(len(it)) - 1
	for name := range it {
		h := javaHash(name)
		order = append(order, placed{(h ^ h>>16) & last, name})
	}
	slices.SortFunc(order, func(a, b placed) int {
		if a.bucket != b.bucket {
			return cmp.Compare(a.bucket, b.bucket)
		}
		return strings.Compare(a.name, b.name)
	})
	dst = append(dst, '{')
	for i, p := range order {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontree.AppendString(dst, p.name)
		dst = append(dst, ':')
		dst = it[p.name].Append(dst)
	}
	return append(dst, '}')
}

// javaTable returns the number of buckets of a Java HashMap of n entries: a power of two, at most three quarters full.
func javaTable(n int) uint32 {
	size := uint32(16)
	for uint32(n) > size/4*3 {
		size *= 2
	}
	return size
}

// javaHash is Java's String.hashCode, over UTF-16 code units.
func javaHash(s string) uint32 {
	var h uint32
	for _, r := range s {
		if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
			h = h*31 + uint32(hi)
			r = lo
		}
		h = h*31 + uint32(r)
	}
	return h
}
