// Package settings reads fields of a configuration from JSON and from the environment, and writes them as JSON. It does not depend on the
// type of the configuration.
//
// A setting has one name, such as max_hold, in three spellings: max_hold is the member of a JSON object, APP_MAX_HOLD with the prefix APP
// is the variable of the environment, and Config.MaxHold is the field in Go. Reading is strict. The error names everything that is wrong,
// so that all of it can be corrected at once.
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

// Setting is a field of one configuration that can be read and written.
type Setting struct {
	Name  string        // in lower case, with underscores between words
	Field any           // points to a time.Duration, a string, an int, or a float64
	Check func() string // returns what is wrong with the field's value, or ""
}

// Set describes the settings of configurations of type C.
type Set[C any] struct {
	Invalid  error                // every error matches it
	Settings func(c *C) []Setting // returns the settings, which point into c
	Defaults func(c C) C          // fills in what is not set; Check sees the result
}

// naming returns the name of a setting for errors, in the spelling of the place where it was set.
type naming func(name string) string

// FieldName returns the name of a setting's field: MaxHold for max_hold.
func FieldName(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

func configField(name string) string { return "Config." + FieldName(name) }

// Check returns an error that names everything that is wrong with a configuration. Its defaults must be filled in.
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

// FromJSON returns c with the settings of a JSON object. Durations are strings with a unit ("20s"). Settings that are missing or null stay
// as they are. If it returns an error, the configuration must not be used.
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

// FromEnviron returns the settings of an environment, in the form of os.Environ. An empty variable counts as not set. A variable that
// begins with the prefix and is not a setting is an error.
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

// reading is a configuration that is being read, with all errors so far.
type reading[C any] struct {
	set    Set[C]
	config C
	name   naming
	seen   map[string]bool
	failed []error
}

func (r *reading[C]) fail(name, why string) { r.failed = append(r.failed, r.set.wrong(name, why)) }

// read finds the setting with the name, and calls value to set its field.
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

// done returns the configuration and all errors. It checks the values even if some of them could not be read.
func (r *reading[C]) done() (C, error) {
	return r.config, errs.Join(append(r.failed, r.set.check(r.set.Defaults(r.config), r.name))...)
}

// object reads the members of a JSON object, and returns false if data is none. It reads token by token, since decoding into a map or a
// struct would accept repeated members.
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

// fromText sets the field from a text: a JSON string without quotes, a JSON number, or the value of a variable.
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

// parseFloat refuses NaN and infinities, since JSON cannot represent them.
func parseFloat(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
		err = strconv.ErrRange
	}
	return f, err
}

// fromJSON sets the field from the value of a member. A null changes nothing.
func (x *Setting) fromJSON(raw json.RawMessage) (wrong string) {
	if string(raw) == "null" {
		return ""
	}
	switch x.Field.(type) {
	case *int, *float64:
		return x.fromText(string(raw)) // a JSON string still has its quotes, so it is refused
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return x.want()
	}
	return x.fromText(text)
}

// want tells what the value must be, for an error about a value that could not be read.
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

// JSON returns the settings that are not zero, in the form that FromJSON reads. Check must accept the configuration.
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
