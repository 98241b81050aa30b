package tabletest

import (
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/expr"
)

// endOfValue ends every value of an encoding except the last. It sorts before all bytes with which a longer value can continue.
const endOfValue = "\x00\x01"

// escaped escapes zero bytes within a value, so that they differ from endOfValue.
func escaped(v string) string { return strings.ReplaceAll(v, "\x00", "\x00\xff") }

// composite encodes the values of key attributes so that encodings sort as the lists of values do. A single value is
// its own encoding.
func composite(attrs []keyAttr, value func(keyAttr) *attr.Value) string {
	switch len(attrs) {
	case 0:
		return ""
	case 1:
		return value(attrs[0]).Sortable()
	}
	var b strings.Builder
	last := len(attrs) - 1
	for _, a := range attrs[:last] {
		b.WriteString(escaped(value(a).Sortable()))
		b.WriteString(endOfValue)
	}
	b.WriteString(value(attrs[last]).Sortable())
	return b.String()
}

// keyRange is a half-open range of encoded sort keys. An empty to means that there is no upper bound.
type keyRange struct {
	from, to string
	closed   bool // by <=, >= or BETWEEN, which include their bounds
}

// below reports whether a sort key is before the range; above reports whether it is after it.
func (r keyRange) below(key string) bool { return key < r.from }
func (r keyRange) above(key string) bool { return r.to != "" && key >= r.to }

// endsAt reports whether a key of the table is the closed bound at which a query ends.
func (r keyRange) endsAt(key string, forward bool) bool {
	end := r.from
	if forward {
		end = strings.TrimSuffix(r.to, "\x00") // to is the first key after the bound
	}
	return r.closed && key == end
}

// rangeOf returns the sort keys that satisfy the conditions: equality for some attributes from the left, then at most
// one other comparison.
func (s keySchema) rangeOf(conditions map[string]expr.KeyTerm) keyRange {
	at := element{}
	for i, a := range s.sort() {
		t, ok := conditions[a.name]
		if !ok {
			break
		}
		at.last = i == len(s.sort())-1
		if t.Op != expr.KeyEq || at.last {
			return at.satisfying(t)
		}
		at.prefix = at.start(t.Values[0])
	}
	return keyRange{from: at.prefix, to: afterPrefix(at.prefix)}
}

// element is one attribute of a sort key. prefix is the encoding of the attributes before it.
type element struct {
	prefix string
	last   bool
}

// start returns the first sort key with the value.
func (e element) start(v *attr.Value) string {
	if e.last {
		return e.prefix + v.Sortable()
	}
	return e.prefix + escaped(v.Sortable()) + endOfValue
}

// after returns the first sort key after those with the value.
func (e element) after(v *attr.Value) string {
	if e.last {
		return e.start(v) + "\x00"
	}
	return afterPrefix(e.start(v))
}

func (e element) satisfying(t expr.KeyTerm) keyRange {
	v := t.Values[0]
	switch t.Op {
	case expr.KeyEq:
		return keyRange{from: e.start(v), to: e.after(v)}
	case expr.KeyLt:
		return keyRange{from: e.prefix, to: e.start(v)}
	case expr.KeyLe:
		return keyRange{e.prefix, e.after(v), true}
	case expr.KeyGt:
		return keyRange{from: e.after(v), to: afterPrefix(e.prefix)}
	case expr.KeyGe:
		return keyRange{e.start(v), afterPrefix(e.prefix), true}
	case expr.KeyBetween:
		return keyRange{e.start(v), e.after(t.Values[1]), true}
	}
	begins := e.start(v)
	if !e.last {
		begins = strings.TrimSuffix(begins, endOfValue)
	}
	return keyRange{from: begins, to: afterPrefix(begins)}
}

// afterPrefix returns the first text after all texts that begin with prefix, or "" if there is none.
func afterPrefix(prefix string) string {
	for last := len(prefix) - 1; last >= 0; last-- {
		if prefix[last] < 0xff {
			return prefix[:last] + string([]byte{prefix[last] + 1})
		}
	}
	return ""
}
