package keys

import (
	"fmt"
	"unicode/utf8"
)

// Range is a half-open range of keys in byte order: it includes Lo and excludes Hi. An empty Hi means that there is no
// upper bound.
//
// DynamoDB's BETWEEN includes both ends. A caller that uses it has to drop an item whose key equals Hi.
//
// Lo and Hi are valid UTF-8, but need not be keys of the template. Hi can be one byte longer than the limit.
type Range struct {
	Lo, Hi string
}

// Contains reports whether key is in r.
func (r Range) Contains(key string) bool {
	return key >= r.Lo && (r.Hi == "" || key < r.Hi)
}

// PrefixRange returns the range of all valid UTF-8 strings that begin with prefix. An empty prefix gives an unbounded
// range. A prefix that is not valid UTF-8 gives a range of byte strings.
func PrefixRange(prefix string) Range {
	return Range{Lo: prefix, Hi: after(prefix)}
}

// after returns the least string that is greater than all strings with the prefix, or "" if there is none. It
// increments runes, since an incremented byte could give invalid UTF-8, which DynamoDB refuses. Runes and bytes sort
// alike.
func after(prefix string) string {
	valid := utf8.ValidString(prefix)
	for prefix != "" {
		if !valid {
			last := len(prefix) - 1
			if c := prefix[last]; c < 0xff {
				return prefix[:last] + string([]byte{c + 1})
			}
			prefix = prefix[:last]
			continue
		}
		r, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		switch r {
		case utf8.MaxRune:
			continue
		case 0xd7ff: // the surrogates follow, which UTF-8 does not encode
			r = 0xdfff
		}
		return prefix + string(r+1)
	}
	return ""
}

// Range returns the range of all keys of t with the given values in their first fields. With all values it contains
// only that key. It returns [ErrNoPrefix] if a shard of a later field comes first.
func (t *Template) Range(values ...any) (Range, error) {
	const op = "range"
	if err := t.check(op); err != nil {
		return Range{}, err
	}
	src := sourceOf(values)
	n, err := t.leading(op, src)
	if err != nil {
		return Range{}, err
	}
	if n == len(t.fields) {
		key, err := t.prefix(op, src, n, -1)
		if err != nil {
			return Range{}, err
		}
		return Range{Lo: key, Hi: key + "\x00"}, nil
	}
	head, _, err := t.head(op, src, n)
	if err != nil {
		return Range{}, err
	}
	return PrefixRange(string(head)), nil
}

// Between returns the range of all keys of t whose first fields have the leading values and whose next field has a
// value v with lo <= v < hi. Pass the bounds in the order of values for a descending field too. lo = hi gives an empty
// range; lo > hi is [ErrRange].
//
// It returns [ErrNoPrefix] for a computed field, and if a shard of a later field comes first. It also returns
// [ErrNoPrefix] if a bound is a string or raw value that contains, after its first byte, a byte below the delimiter,
// unless the field ends the key, or if it is an integer for a raw field: such keys do not sort as their values do (see
// REFERENCE.md).
func (t *Template) Between(lo, hi any, leading ...any) (Range, error) {
	s, err := t.span("between", leading)
	if err != nil {
		return Range{}, err
	}
	from, err := s.edge(lo)
	if err != nil {
		return Range{}, err
	}
	until, err := s.edge(hi)
	if err != nil {
		return Range{}, err
	}
	if s.part.codec.desc {
		from, until = after(until), after(from)
	}
	if from > until {
		return Range{}, t.fail(s.op, s.part.field, fmt.Errorf("%w: the lower bound is above the upper one", ErrRange))
	}
	return Range{Lo: from, Hi: until}, nil
}

// From is [Template.Between] without an upper bound: lo <= v.
func (t *Template) From(lo any, leading ...any) (Range, error) {
	s, err := t.span("from", leading)
	if err != nil {
		return Range{}, err
	}
	edge, err := s.edge(lo)
	if err != nil {
		return Range{}, err
	}
	if s.part.codec.desc {
		return Range{Lo: s.head, Hi: after(edge)}, nil
	}
	return Range{Lo: edge, Hi: after(s.head)}, nil
}

// Until is [Template.Between] without a lower bound: v < hi.
func (t *Template) Until(hi any, leading ...any) (Range, error) {
	s, err := t.span("until", leading)
	if err != nil {
		return Range{}, err
	}
	edge, err := s.edge(hi)
	if err != nil {
		return Range{}, err
	}
	if s.part.codec.desc {
		return Range{Lo: after(edge), Hi: after(s.head)}, nil
	}
	return Range{Lo: s.head, Hi: edge}, nil
}

// BeginsWith returns the range of all keys of t whose first fields have the leading values and whose next field begins
// with text. Unlike [Template.Prefix], it can end within a value.
//
// The field must have the codec string, raw, rest, key or idN; otherwise it returns [ErrType]. An empty text is
// [ErrEmpty]. A shard of a later field that comes first is [ErrNoPrefix].
func (t *Template) BeginsWith(text string, leading ...any) (Range, error) {
	s, err := t.span("begins with", leading)
	if err != nil {
		return Range{}, err
	}
	c := s.part.codec
	switch {
	case c.kind > kindID:
		err = fmt.Errorf("%w: values of codec %s are not text that has a beginning", ErrType, s.part.text)
	case c.kind == kindID && len(text) > c.width:
		err = fmt.Errorf("%w: %d bytes, want at most %d", ErrRange, len(text), c.width)
	case c.kind == kindID:
		c = codec{kind: kindString} // the id codec refuses a text of fewer bytes
	}
	var prefix []byte
	if err == nil {
		prefix, err = c.append([]byte(s.head), text, t.esc)
	}
	if err == nil && len(prefix) > t.limit {
		err = tooLong(len(prefix), t.limit)
	}
	if err != nil {
		return Range{}, t.fail(s.op, s.part.field, err)
	}
	return PrefixRange(string(prefix)), nil
}

// head returns the text of a key before the next field, given values for the first n fields, and the part of that next field.
func (t *Template) head(op string, src source, n int) ([]byte, *part, error) {
	head, stop, err := t.appendParts(op, nil, src, n, -1)
	if err != nil {
		return nil, nil, err
	}
	if err := t.reached(op, n, stop); err != nil {
		return nil, nil, err
	}
	next := &t.parts[stop]
	if head = append(head, next.literal...); len(head) > t.limit {
		return nil, nil, t.fail(op, next.field, tooLong(len(head), t.limit))
	}
	return head, next, nil
}

// span is the field whose values a range bounds, with the text before it.
type span struct {
	t    *Template
	op   string
	head string
	part *part
	last bool // nothing follows the field
}

func (t *Template) span(op string, leading []any) (span, error) {
	if err := t.check(op); err != nil {
		return span{}, err
	}
	src := sourceOf(leading)
	n, err := t.leading(op, src)
	if err != nil {
		return span{}, err
	}
	if n == len(t.fields) {
		return span{}, t.fail(op, -1, fmt.Errorf("%w: all %d fields have leading values, none is left", ErrCount, n))
	}
	head, next, err := t.head(op, src, n)
	if err != nil {
		return span{}, err
	}
	if next.codec.kind == kindShard {
		return span{}, t.fail(op, next.field, fmt.Errorf("%w: a shard has no order", ErrNoPrefix))
	}
	last := next == &t.parts[len(t.parts)-1] && t.tail == ""
	return span{t: t, op: op, head: string(head), part: next, last: last}, nil
}

// edge returns the text with which keys of v begin. All keys of lower values sort before it or, with desc, all keys of higher values.
func (s span) edge(v any) (string, error) {
	if _, _, integer := integerOf(v); integer && s.part.codec.kind == kindRaw {
		return "", s.t.fail(s.op, s.part.field, fmt.Errorf("%w: integers in a raw field do not sort as numbers", ErrNoPrefix))
	}
	edge, err := s.part.codec.append([]byte(s.head), v, s.t.esc)
	if err == nil && len(edge) > s.t.limit {
		err = tooLong(len(edge), s.t.limit)
	}
	if err != nil {
		return "", s.t.fail(s.op, s.part.field, err)
	}
	if s.part.codec.variable() && !s.last && !s.t.esc.ordered(v) {
		return "", s.t.fail(s.op, s.part.field, fmt.Errorf("%w: the bound contains a byte that sorts before the delimiter %q",
			ErrNoPrefix, s.t.esc.delim))
	}
	return string(edge), nil
}
