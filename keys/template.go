package keys

import (
	"slices"
	"strings"
	"sync"
)

// Template is a compiled key template; [NewTemplate] and [MustTemplate] create one. It is immutable and safe for
// concurrent use. All operations on a nil *Template or the zero Template return an error.
type Template struct {
	text   string
	esc    escaper
	limit  int
	parts  []part
	tail   string // literal text after the last part
	fields []Field
	home   []int // by field: index of the part with its value, or of its shard if it is computed
	stored []int // indexes of the fields that are not computed
	shard  int   // index of the part that is a shard, or -1

	once    sync.Once
	regular *automaton // for Overlap; set by language under once
}

// part is a field and the literal text before it.
type part struct {
	literal string
	codec   codec
	field   int    // index of the field in Template.fields
	text    string // codec as written in the template
	rules   []rule // of Only and Except
}

// String returns the text of the template, without the prefix.
func (t *Template) String() string {
	if t == nil {
		return ""
	}
	return t.text
}

// Fields returns the fields in the order in which [Template.Format] takes their values. This is the order in which the
// values occur in the text. If a field also occurs in a shard, the place of its value counts.
func (t *Template) Fields() []Field {
	if t == nil {
		return nil
	}
	return slices.Clone(t.fields)
}

// Format returns the key for the given values, one for each of [Template.Fields]. A single [Values] replaces the list;
// Format ignores names in it that the template does not have.
//
// The key is valid UTF-8, not empty, and within the limit. Otherwise Format returns an *[Error] that names the field,
// with one of [ErrEmpty], [ErrInvalidUTF8], [ErrTooLong], [ErrRange], [ErrPrecision], [ErrType], [ErrDelimiter] (raw
// only), [ErrNoMatch] ([Template.Only] and [Template.Except]), [ErrCount] and [ErrMissing].
func (t *Template) Format(values ...any) (string, error) {
	var buf [128]byte
	key, err := t.Append(buf[:0], values...)
	if err != nil {
		return "", err
	}
	return string(key), nil
}

// Append appends the key to dst, as [Template.Format] builds it, and returns the extended slice. On failure it returns
// dst.
func (t *Template) Append(dst []byte, values ...any) ([]byte, error) {
	const op = "format"
	if err := t.check(op); err != nil {
		return dst, err
	}
	src := sourceOf(values)
	if src.names == nil && len(values) != len(t.fields) {
		return dst, t.countError(op, len(values), len(t.fields))
	}
	key, _, err := t.appendParts(op, dst, src, len(t.fields), -1)
	if err != nil {
		return dst, err
	}
	key, err = t.appendTail(op, key, len(key)-len(dst))
	if err != nil {
		return dst, err
	}
	return key, nil
}

// appendParts appends parts until it reaches one whose field is not among the first n. It returns the index of that part, or the number
// of parts if there is none. The literal of that part is not appended. If shard is not negative, the shard part is written with that
// number if its field is not among the first n, or has no value.
func (t *Template) appendParts(op string, dst []byte, src source, n, shard int) ([]byte, int, error) {
	start := len(dst)
	for i := range t.parts {
		p := &t.parts[i]
		var v any
		ok := false
		if p.field < n {
			v, ok = src.get(t, p.field)
		}
		free := !ok && shard >= 0 && p.codec.kind == kindShard
		if p.field >= n && !free {
			return dst, i, nil
		}
		dst = append(dst, p.literal...)
		from := len(dst)
		var err error
		switch {
		case free:
			dst = appendDigits(dst, uint64(shard), p.codec.width, false)
		case !ok:
			err = ErrMissing
		case p.codec.kind == kindShard:
			dst, err = p.codec.appendShard(dst, v)
		default:
			dst, err = p.codec.append(dst, v, t.esc)
		}
		switch {
		case err != nil:
		case len(dst)-start > t.limit:
			err = tooLong(len(dst)-start, t.limit)
		case len(p.rules) > 0 && !p.admits(string(dst[from:])):
			err = ErrNoMatch
		}
		if err != nil {
			return dst, i, t.fail(op, p.field, err)
		}
	}
	return dst, len(t.parts), nil
}

// appendTail appends the text after the last field to a key of the given length. If that makes the key too long, the
// error names the last field.
func (t *Template) appendTail(op string, dst []byte, length int) ([]byte, error) {
	if length += len(t.tail); length > t.limit {
		last := -1
		if len(t.parts) > 0 {
			last = t.parts[len(t.parts)-1].field
		}
		return dst, t.fail(op, last, tooLong(length, t.limit))
	}
	return append(dst, t.tail...), nil
}

// Parse returns the values of a key in the order of [Template.Fields], without computed fields. They are of type
// string, uint64, int64, float64, bool or time.Time (in UTC).
//
// It accepts exactly the keys that [Template.Format] returns. Any other key is [ErrNoMatch]; the *[Error] names the
// first field that does not fit.
func (t *Template) Parse(key string) ([]any, error) {
	const op = "parse"
	if err := t.check(op); err != nil {
		return nil, err
	}
	values := make([]any, len(t.fields))
	field, ok := t.walk(key, values)
	if !ok {
		return nil, t.fail(op, field, ErrNoMatch)
	}
	if len(t.stored) == len(t.fields) {
		return values, nil
	}
	computed := t.parts[t.shard].field
	return slices.Delete(values, computed, computed+1), nil
}

// ParseValues is [Template.Parse] with the values by name.
func (t *Template) ParseValues(key string) (Values, error) {
	list, err := t.Parse(key)
	if err != nil {
		return nil, err
	}
	values := make(Values, len(list))
	for i, v := range list {
		values[t.fields[t.stored[i]].Name] = v
	}
	return values, nil
}

// Matches reports whether [Template.Parse] accepts key. It is cheaper than Parse.
func (t *Template) Matches(key string) bool {
	if t.check("parse") != nil {
		return false
	}
	_, ok := t.walk(key, nil)
	return ok
}

// walk decodes key into values, which has one element per field or is nil. On a mismatch, field is the one that does not fit, or -1.
func (t *Template) walk(key string, values []any) (field int, ok bool) {
	if len(key) > t.limit {
		return -1, false
	}
	var shard, want uint64
	verify := false
	for i := range t.parts {
		p := &t.parts[i]
		if !strings.HasPrefix(key, p.literal) {
			return p.field, false
		}
		key = key[len(p.literal):]
		v, n, ok := p.codec.decode(key, t.esc)
		if !ok || !p.admits(key[:n]) {
			return p.field, false
		}
		key = key[n:]
		if i == t.shard {
			shard = v.bits
			continue
		}
		if values != nil {
			values[p.field] = v.value()
		}
		if t.shard >= 0 && p.field == t.parts[t.shard].field {
			var err error
			if want, err = v.shard(t.parts[t.shard].codec.max); err != nil {
				return p.field, false
			}
			verify = true
		}
	}
	if verify && shard != want {
		return t.parts[t.shard].field, false
	}
	return -1, key == t.tail
}

func (t *Template) fail(op string, field int, cause error) error {
	e := &Error{Op: op, Template: t.text, Err: cause}
	if field >= 0 {
		e.Field = t.fields[field].Name
	}
	return e
}
