package attr

import (
	"encoding/base64"
	"slices"

	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

// Append appends the wire form of the value.
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

// Append appends the wire form of the item, attributes in the order of their names so that equal items have equal
// texts.
func (it Item) Append(dst []byte) []byte {
	var room [16]string // most items are small: keep their names off the heap
	names := room[:0]
	for name := range it {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontree.AppendString(dst, name)
		dst = append(dst, ':')
		dst = it[name].Append(dst)
	}
	return append(dst, '}')
}
