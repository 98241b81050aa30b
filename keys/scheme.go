package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxName is the greatest length of the name of a key attribute.
//
// Source: "Constraints in Amazon DynamoDB", Attribute names: 255 bytes for names of key attributes.
const maxName = 255

// Scheme is the naming of a table: its attribute names, the delimiter within keys, and a prefix for partition keys. All
// other packages take names from it. The zero value stands for the defaults.
//
// As JSON it is an object of strings:
//
//	{"pk":"PK","sk":"SK","type":"_t","ttl":"expiresAt","version":"_v","delimiter":"|","prefix":"shop/"}
type Scheme struct {
	PK      string // attribute of the partition key. Defaults to "pk"
	SK      string // attribute of the sort key. Defaults to "sk"
	Type    string // attribute of an item's entity type. Defaults to "type"
	TTL     string // attribute of the time to live, in seconds since 1970. Defaults to "ttl"
	Version string // attribute of an item's version number. Defaults to "version"

	// Delimiter ends variable-width fields in keys; see [WithDelimiter]. If the table's keys use a longer delimiter,
	// such as "::", set its first byte here and spell it out in the templates. Defaults to '#'.
	Delimiter byte

	// Prefix is literal text before every partition key, of the table and of indexes, that is built from a template. It
	// allows several applications to share a table. No application's prefix may begin with another one's: end each with
	// a byte that occurs in none of them, such as the delimiter. Defaults to none.
	Prefix string
}

// WithDefaults returns s with the default in place of every zero field.
func (s Scheme) WithDefaults() Scheme {
	def := func(name *string, value string) {
		if *name == "" {
			*name = value
		}
	}
	def(&s.PK, "pk")
	def(&s.SK, "sk")
	def(&s.Type, "type")
	def(&s.TTL, "ttl")
	def(&s.Version, "version")
	if s.Delimiter == 0 {
		s.Delimiter = '#'
	}
	return s
}

// Validate checks s with its defaults. Names must be distinct and have at most 255 bytes of UTF-8. Delimiter must be as
// in [WithDelimiter]. Prefix must be UTF-8 and shorter than [MaxPK]. The *[Error] names the field.
func (s Scheme) Validate() error {
	s = s.WithDefaults()
	names := [...]struct{ field, name string }{
		{"PK", s.PK}, {"SK", s.SK}, {"Type", s.Type}, {"TTL", s.TTL}, {"Version", s.Version},
	}
	for i, n := range names {
		if err := checkText(n.name, maxName); err != nil {
			return &Error{Op: "scheme", Field: n.field, Err: err}
		}
		for _, m := range names[:i] {
			if n.name == m.name {
				return &Error{Op: "scheme", Field: n.field, Err: fmt.Errorf("%w: %s has the same name", ErrDuplicate, m.field)}
			}
		}
	}
	if _, err := newEscaper(s.Delimiter); err != nil {
		return &Error{Op: "scheme", Field: "Delimiter", Err: err}
	}
	if s.Prefix != "" {
		if err := checkText(s.Prefix, MaxPK-1); err != nil {
			return &Error{Op: "scheme", Field: "Prefix", Err: err}
		}
	}
	return nil
}

// PKTemplate compiles a template for the partition keys of the table or an index. It uses the delimiter and prefix of s
// and a limit of [MaxPK] bytes.
func (s Scheme) PKTemplate(text string) (*Template, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return NewTemplate(text, WithDelimiter(s.WithDefaults().Delimiter), WithPrefix(s.Prefix), WithLimit(MaxPK))
}

// SKTemplate compiles a template for the sort keys of the table or an index. It uses the delimiter of s and a limit of
// [MaxSK] bytes.
func (s Scheme) SKTemplate(text string) (*Template, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return NewTemplate(text, WithDelimiter(s.WithDefaults().Delimiter), WithLimit(MaxSK))
}

// ParseScheme reads a scheme from JSON, sets the defaults and validates it. It refuses unknown members, repeated
// members and empty names.
func ParseScheme(data []byte) (Scheme, error) {
	var s Scheme
	if err := s.UnmarshalJSON(data); err != nil {
		return Scheme{}, err
	}
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		return Scheme{}, err
	}
	return s, nil
}

// MarshalJSON writes the fields of s that are not zero. It refuses text that is not valid UTF-8, and an invalid delimiter.
func (s Scheme) MarshalJSON() ([]byte, error) {
	doc := struct {
		PK        string `json:"pk,omitempty"`
		SK        string `json:"sk,omitempty"`
		Type      string `json:"type,omitempty"`
		TTL       string `json:"ttl,omitempty"`
		Version   string `json:"version,omitempty"`
		Delimiter string `json:"delimiter,omitempty"`
		Prefix    string `json:"prefix,omitempty"`
	}{PK: s.PK, SK: s.SK, Type: s.Type, TTL: s.TTL, Version: s.Version, Prefix: s.Prefix}
	if s.Delimiter != 0 {
		if _, err := newEscaper(s.Delimiter); err != nil {
			return nil, &Error{Op: "scheme", Field: "Delimiter", Err: err}
		}
		doc.Delimiter = string(rune(s.Delimiter))
	}
	for _, f := range []struct{ field, text string }{
		{"PK", s.PK}, {"SK", s.SK}, {"Type", s.Type}, {"TTL", s.TTL}, {"Version", s.Version}, {"Prefix", s.Prefix},
	} {
		if !utf8.ValidString(f.text) { // package json would replace the invalid bytes
			return nil, &Error{Op: "scheme", Field: f.field, Err: ErrInvalidUTF8}
		}
	}
	return json.Marshal(doc)
}

// UnmarshalJSON replaces s. It refuses the members that [ParseScheme] refuses, but does not set defaults and does not
// validate. A JSON null leaves s unchanged.
func (s *Scheme) UnmarshalJSON(data []byte) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return nil
	}
	read, err := readScheme(data)
	if err != nil {
		return err
	}
	*s = read
	return nil
}

// readScheme reads token by token. Decoding into a struct would accept repeated members, and member names in another case.
func readScheme(data []byte) (Scheme, error) {
	fail := func(field string, cause error) (Scheme, error) {
		return Scheme{}, &Error{Op: "scheme", Field: field, Err: cause}
	}
	if !utf8.Valid(data) {
		return fail("", ErrInvalidUTF8)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return fail("", fmt.Errorf("%w: want a JSON object of strings", ErrSyntax))
	}
	var s Scheme
	var delim string
	targets := map[string]*string{
		"pk": &s.PK, "sk": &s.SK, "type": &s.Type, "ttl": &s.TTL, "version": &s.Version, "delimiter": &delim, "prefix": &s.Prefix,
	}
	seen := make(map[string]bool, len(targets))
	for dec.More() {
		tok, err := dec.Token()
		name, ok := tok.(string)
		if err != nil || !ok {
			return fail("", fmt.Errorf("%w: malformed JSON", ErrSyntax))
		}
		target := targets[name]
		switch {
		case target == nil:
			return fail(name, ErrUnknownField)
		case seen[name]:
			return fail(name, ErrDuplicate)
		}
		seen[name] = true
		tok, err = dec.Token()
		value, ok := tok.(string)
		switch {
		case err != nil:
			return fail(name, fmt.Errorf("%w: malformed JSON", ErrSyntax))
		case !ok:
			return fail(name, fmt.Errorf("%w: want a JSON string", ErrType))
		case value == "" && name != "prefix":
			return fail(name, ErrEmpty)
		}
		*target = value
	}
	if _, err := dec.Token(); err != nil {
		return fail("", fmt.Errorf("%w: malformed JSON", ErrSyntax))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fail("", fmt.Errorf("%w: text after the JSON object", ErrSyntax))
	}
	if delim != "" {
		if len(delim) != 1 || delim[0] == 0 { // the zero byte would stand for the default
			return fail("delimiter", fmt.Errorf("%w: want one ASCII character", ErrDelimiter))
		}
		s.Delimiter = delim[0]
	}
	return s, nil
}
