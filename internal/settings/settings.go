// Package settings reads fields of a configuration from JSON and from the environment, and writes them as JSON. It knows
// nothing of whose fields they are.
//
// A setting has one name, such as max_hold. That is a member of a JSON object; in capitals and behind a prefix it is a
// variable of the environment, APP_MAX_HOLD; and in Go's manner it is the field, Config.MaxHold. Reading is strict. One error
// names everything that is wrong, so that it can be mended at once.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mortise-go/mortise/internal/errs"
)

// Setting is a field that has a value to write down.
type Setting struct {
	Name  string        // in lower case, its words joined by underscores
	Field any           // points to a time.Duration, a string, an int, or a float64
	Check func() string // what is wrong with the field's value; empty where nothing is
}

// Set is all settings of configurations of type C.
type Set[C any] struct {
	Invalid  error                // every error matches it
	Settings func(c *C) []Setting // of one configuration
	Defaults func(c C) C          // fills in what is not set: values are checked with that
}

// naming is what a setting is called where it was set.
type naming func(name string) string

// FieldName is the name of a setting's field: MaxHold for max_hold.
func FieldName(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

func configField(name string) string { return "Config." + FieldName(name) }

// Check reports everything that is wrong with a configuration whose defaults are filled in.
func (s Set[C]) Check(c C) error { return s.check(c, configField) }

func (s Set[C]) check(c C, name naming) error {
	var failed []error
	for _, x := range s.Settings(&c) {
		if wrong := x.Check(); wrong != "" {
			failed = append(failed, s.wrong(name(x.Name), wrong))
		}
	}
	return errs.Join(failed...)
}

func (s Set[C]) wrong(name, why string) error { return fmt.Errorf("%w: %s: %s", s.Invalid, name, why) }

// FromJSON returns c with the settings of a JSON object. Durations are strings with a unit ("20s"). What is not mentioned,
// or null, stays as it is. What it returns beside an error is of no use.
func (s Set[C]) FromJSON(c C, data []byte) (C, error) {
	if string(bytes.TrimSpace(data)) == "null" {
		return c, nil
	}
	r := reading[C]{set: s, config: c, name: strconv.Quote}
	if !r.object(data) {
		return c, fmt.Errorf("%w: want a JSON object", s.Invalid)
	}
	return r.done()
}

// FromEnviron returns the settings of an environment, in the form of os.Environ. An empty variable is not set. Variables
// behind the prefix that are no settings are wrong.
func (s Set[C]) FromEnviron(prefix string, environ []string) (C, error) {
	prefix = strings.TrimSuffix(prefix, "_")
	r := reading[C]{set: s}
	if prefix == "" || strings.ContainsAny(prefix, "=\x00") {
		return r.config, s.wrong("prefix", "want the beginning of a variable's name")
	}
	prefix += "_"
	r.name = func(name string) string { return prefix + strings.ToUpper(name) }
	for _, entry := range environ {
		variable, value, _ := strings.Cut(entry, "=")
		name, ok := strings.CutPrefix(variable, prefix)
		if !ok {
			continue
		}
		lower := strings.ToLower(name)
		if name != strings.ToUpper(lower) {
			r.fail(variable, "unknown setting")
			continue
		}
		r.read(lower, func(x *Setting) string {
			if value == "" {
				return ""
			}
			return x.fromText(value)
		})
	}
	return r.done()
}

// reading takes settings in, and everything that is wrong with them.
type reading[C any] struct {
	set    Set[C]
	config C
	name   naming
	seen   map[string]bool
	failed []error
}

func (r *reading[C]) fail(name, why string) { r.failed = append(r.failed, r.set.wrong(name, why)) }

// read finds the setting and has its value read.
func (r *reading[C]) read(name string, value func(*Setting) (wrong string)) {
	for _, x := range r.set.Settings(&r.config) {
		if x.Name != name {
			continue
		}
		if r.seen == nil {
			r.seen = map[string]bool{}
		}
		if r.seen[name] {
			r.fail(r.name(name), "set twice")
		} else if wrong := value(&x); wrong != "" {
			r.fail(r.name(name), wrong)
		}
		r.seen[name] = true
		return
	}
	r.fail(r.name(name), "unknown setting")
}

// done is the configuration. It is checked also where some of it could not be read.
func (r *reading[C]) done() (C, error) {
	return r.config, errs.Join(append(r.failed, r.set.check(r.set.Defaults(r.config), r.name))...)
}

// object reads the members of an object; false where the text is none. It goes by token, since decoding into a map or a
// struct accepts repeated members.
func (r *reading[C]) object(data []byte) (ok bool) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') || !utf8.Valid(data) {
		return false
	}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		var raw json.RawMessage
		if err != nil || !ok || dec.Decode(&raw) != nil {
			return false
		}
		r.read(name, func(x *Setting) string { return x.fromJSON(raw) })
	}
	_, end := dec.Token()
	_, after := dec.Token()
	return end == nil && errors.Is(after, io.EOF)
}

// fromText reads what is in quotes in JSON, and everything in the environment.
func (x *Setting) fromText(text string) (wrong string) {
	var err error
	switch p := x.Field.(type) {
	case *string:
		*p = text
	case *time.Duration:
		err = set(p, text, time.ParseDuration)
	case *int:
		err = set(p, text, strconv.Atoi)
	case *float64:
		err = set(p, text, parseFloat)
	}
	if err != nil {
		return x.want()
	}
	return ""
}

func set[T any](p *T, text string, parse func(string) (T, error)) error {
	v, err := parse(text)
	if err == nil {
		*p = v
	}
	return err
}

// parseFloat refuses what JSON has no number for.
func parseFloat(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
		err = strconv.ErrRange
	}
	return f, err
}

// fromJSON reads the value of a member.
func (x *Setting) fromJSON(raw json.RawMessage) (wrong string) {
	if string(raw) == "null" {
		return ""
	}
	switch x.Field.(type) {
	case *int, *float64:
		return x.fromText(string(raw)) // a string keeps its quotes, and is no number
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return x.want()
	}
	return x.fromText(text)
}

// want is what a value has to be that could not be read.
func (x *Setting) want() string {
	switch x.Field.(type) {
	case *time.Duration:
		return `want a duration with its unit, such as "20s"`
	case *int:
		return "want a whole number"
	case *float64:
		return "want a number"
	}
	return "want a string"
}

// JSON writes the settings that are not zero, as FromJSON reads them. It expects a configuration that Check accepts.
func (s Set[C]) JSON(c C) ([]byte, error) {
	b := []byte{'{'}
	for _, x := range s.Settings(&c) {
		field := reflect.ValueOf(x.Field).Elem()
		if field.IsZero() {
			continue
		}
		value := field.Interface()
		if d, ok := value.(time.Duration); ok {
			value = d.String()
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(strconv.AppendQuote(b, x.Name), ':'), text...)
	}
	return append(b, '}'), nil
}
