package keys

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// NewTemplate compiles a template; the package documentation describes its text. The *[Error] names the field, if the
// cause concerns one:
//
//   - [ErrSyntax], [ErrEmpty], [ErrInvalidUTF8], [ErrDuplicate]: the text is malformed
//   - [ErrAmbiguous]: neither the delimiter nor the end follows a variable-width field
//   - [ErrDelimiter], [ErrRange], [ErrEmpty]: an option is invalid, or nil
//   - [ErrTooLong]: even the shortest key would exceed the limit
func NewTemplate(text string, opts ...Option) (*Template, error) {
	o := options{delim: '#', limit: MaxPK}
	fail := func(field string, cause error) (*Template, error) {
		return nil, &Error{Op: "template", Template: text, Field: field, Err: cause}
	}
	for _, opt := range opts {
		if opt == nil {
			return fail("", fmt.Errorf("%w: nil option", ErrEmpty))
		}
		opt(&o)
	}
	esc, err := newEscaper(o.delim)
	switch {
	case err != nil:
		return fail("", err)
	case o.limit < 1 || o.limit > MaxPK:
		return fail("", fmt.Errorf("%w: the limit is %d bytes, want 1 to %d", ErrRange, o.limit, MaxPK))
	case text == "":
		return fail("", ErrEmpty)
	case !utf8.ValidString(text):
		return nil, &Error{Op: "template", Err: ErrInvalidUTF8}
	case !utf8.ValidString(o.prefix):
		return fail("", fmt.Errorf("prefix: %w", ErrInvalidUTF8))
	}
	t := &Template{text: text, esc: esc, limit: o.limit, shard: -1}
	names, err := t.scan(text)
	if err != nil {
		return nil, err
	}
	switch i := slices.IndexFunc(t.parts, func(p part) bool { return p.codec.kind == kindKey }); {
	case i < 0:
		t.begin(o.prefix)
	case len(t.parts) > 1 || t.parts[0].literal != "" || t.tail != "":
		return fail(names[i], fmt.Errorf("%w: a field that is a whole key has to stand alone", ErrSyntax))
	}
	if err := t.link(names); err != nil {
		return nil, err
	}
	return t, nil
}

// MustTemplate is [NewTemplate] for templates that are part of a program. It panics on an error.
func MustTemplate(text string, opts ...Option) *Template {
	t, err := NewTemplate(text, opts...)
	if err != nil {
		panic(err)
	}
	return t
}

// scan splits text into parts and the tail. It returns the name of each part's field.
func (t *Template) scan(text string) (names []string, err error) {
	syntax := func(at int, what string) error {
		return &Error{Op: "template", Template: text, Err: fmt.Errorf("%w at byte %d: %s", ErrSyntax, at, what)}
	}
	var literal strings.Builder
	for i := 0; i < len(text); {
		next := strings.IndexAny(text[i:], "{}")
		if next < 0 {
			literal.WriteString(text[i:])
			break
		}
		literal.WriteString(text[i : i+next])
		i += next
		if i+1 < len(text) && text[i+1] == text[i] {
			literal.WriteByte(text[i])
			i += 2
			continue
		}
		if text[i] == '}' {
			return nil, syntax(i, "'}' without '{'; write }} for a brace")
		}
		end := strings.IndexAny(text[i+1:], "{}")
		if end < 0 || text[i+1+end] == '{' {
			return nil, syntax(i, "'{' without '}'; write {{ for a brace")
		}
		name, codecText, explicit := strings.Cut(text[i+1:i+1+end], ":")
		if !fieldName(name) {
			return nil, syntax(i+1, "want a name of letters, digits, '_', '-' and single dots between them")
		}
		if !explicit {
			codecText = "string"
		}
		c, err := parseCodec(codecText)
		if err != nil {
			return nil, &Error{Op: "template", Template: text, Field: name, Err: err}
		}
		t.parts = append(t.parts, part{literal: literal.String(), codec: c, text: codecText})
		names = append(names, name)
		literal.Reset()
		i += end + 2
	}
	t.tail = literal.String()
	return names, nil
}

func fieldName(s string) bool {
	for element := range strings.SplitSeq(s, ".") {
		if element == "" {
			return false
		}
		for _, r := range element {
			if r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				return false
			}
		}
	}
	return true
}

// begin puts the prefix before the first literal.
func (t *Template) begin(prefix string) {
	if len(t.parts) > 0 {
		t.parts[0].literal = prefix + t.parts[0].literal
	} else {
		t.tail = prefix + t.tail
	}
}

// link numbers the fields in the order of their values, and checks the rules that concern several parts.
func (t *Template) link(names []string) error {
	fail := func(field string, cause error) error {
		return &Error{Op: "template", Template: t.text, Field: field, Err: cause}
	}
	valueOf := make(map[string]int, len(names)) // from name to the index of the part with the value
	for i, name := range names {
		if t.parts[i].codec.kind == kindShard {
			if t.shard >= 0 {
				return fail(name, fmt.Errorf("%w: a template has at most one shard", ErrDuplicate))
			}
			t.shard = i
			continue
		}
		if _, ok := valueOf[name]; ok {
			return fail(name, ErrDuplicate)
		}
		valueOf[name] = i
	}
	number := make(map[string]int, len(names)) // from name to the index of the field
	for i, name := range names {
		p := &t.parts[i]
		computed := p.codec.kind == kindShard
		if home, ok := valueOf[name]; ok && home != i {
			continue // a shard of a field that has its value elsewhere in the key
		}
		number[name] = len(t.fields)
		if !computed {
			t.stored = append(t.stored, len(t.fields))
		}
		t.fields = append(t.fields, Field{Name: name, Codec: p.text, Width: p.codec.width, Computed: computed})
		t.home = append(t.home, i)
	}
	least := len(t.tail)
	for i, name := range names {
		p := &t.parts[i]
		p.field = number[name]
		least += len(p.literal) + max(p.codec.width, 1)
		if !p.codec.variable() {
			continue
		}
		following, neighbor := t.tail, "the text after it"
		if i+1 < len(names) {
			following, neighbor = t.parts[i+1].literal, fmt.Sprintf("field %q", names[i+1])
			if following != "" {
				neighbor = "the text before " + neighbor
			}
		} else if following == "" {
			continue
		}
		if p.codec.kind == kindRest {
			return fail(name, fmt.Errorf("%w: it takes the rest of the key, so nothing can stand after it", ErrAmbiguous))
		}
		if following == "" || following[0] != t.esc.delim {
			return fail(name, fmt.Errorf("%w: its width varies, so the delimiter %q has to be between it and %s",
				ErrAmbiguous, t.esc.delim, neighbor))
		}
	}
	if least > t.limit {
		return fail("", tooLong(least, t.limit))
	}
	return nil
}

// check returns an error for a template that NewTemplate did not create. Without it, a Template that somebody forgot to compile would
// give an empty key.
func (t *Template) check(op string) error {
	if t == nil || t.text == "" {
		return &Error{Op: op, Err: errors.New("template was not compiled by NewTemplate")}
	}
	return nil
}
