package jsontree

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string with quotes. Invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = append(dst, `\ufffd`...)
			i++
			start = i
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// Append appends the node as JSON.
func (n *Node) Append(dst []byte) []byte { return n.append(dst, false) }

// AppendSorted appends the node as JSON with the members of every object sorted by name, so that equal documents have equal texts. It
// omits members that are null.
func (n *Node) AppendSorted(dst []byte) []byte { return n.append(dst, true) }

func (n *Node) append(dst []byte, sorted bool) []byte {
	switch n.Kind {
	case Bool:
		return strconv.AppendBool(dst, n.Bool)
	case Number:
		return append(dst, n.Text...)
	case String:
		return AppendString(dst, n.Text)
	case Array:
		dst = append(dst, '[')
		for i := range n.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = n.Items[i].append(dst, sorted)
		}
		return append(dst, ']')
	case Object:
		members := n.Members
		if sorted {
			members = slices.SortedFunc(slices.Values(members), func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
			members = slices.DeleteFunc(members, func(m Member) bool { return m.Value.IsNull() })
		}
		dst = append(dst, '{')
		for i := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendString(dst, members[i].Name)
			dst = append(dst, ':')
			dst = members[i].Value.append(dst, sorted)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}
