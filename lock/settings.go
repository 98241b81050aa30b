package lock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mortise-go/mortise/keys"
)

// setting is a field of Config that has a value to write down. One name serves all ways to
// set it: a member of JSON, in capitals behind a prefix a variable of the environment, and
// the field, in Go's manner.
type setting struct {
	name  string
	field func(c *Config) any           // points to a time.Duration, a string, an int or an Expiry
	check func(c *Config) (want string) // with the defaults filled in; empty where it is acceptable
}

// settings are all of them: a field is made one by a row here.
var settings = [...]setting{
	{"lease", func(c *Config) any { return &c.Lease }, func(c *Config) string {
		return within(c.Lease, MinLease, MaxLease)
	}},
	{"owner", func(c *Config) any { return &c.Owner }, func(c *Config) string {
		return wantUnless(len(c.Owner) <= MaxOwner && utf8.ValidString(c.Owner), "want at most %d bytes of UTF-8", MaxOwner)
	}},
	{"retention", func(c *Config) any { return &c.Retention }, func(c *Config) string {
		return within(c.Retention, minRetention, maxRetention)
	}},
	{"skew", func(c *Config) any { return &c.Skew }, func(c *Config) string {
		return within(c.Skew, time.Second, time.Hour)
	}},
	{"expiry", func(c *Config) any { return &c.Expiry }, func(c *Config) string {
		_, ok := c.Expiry.text()
		return wantUnless(ok, "%d is unknown", int(c.Expiry))
	}},
	{"margin", func(c *Config) any { return &c.Margin }, func(c *Config) string {
		return wantUnless(c.Margin >= 0 && c.Margin <= c.Lease/2, "%v: want 0 to half the lease", c.Margin)
	}},
	{"max_hold", func(c *Config) any { return &c.MaxHold }, func(c *Config) string {
		return wantUnless(c.MaxHold == 0 || c.MaxHold >= MinFixed, "%v: want 0 or at least %v", c.MaxHold, MinFixed)
	}},
	{"home_region", func(c *Config) any { return &c.HomeRegion }, func(c *Config) string {
		return wantUnless(len(c.HomeRegion) <= MaxOwner && utf8.ValidString(c.HomeRegion), "want the name of a region")
	}},
	{"standalone_key", func(c *Config) any { return &c.StandaloneKey }, func(c *Config) string {
		return oneField(c.StandaloneKey, "name")
	}},
	{"row_key", func(c *Config) any { return &c.RowKey }, func(c *Config) string {
		return oneField(c.RowKey, "of")
	}},
	{"session_key", func(c *Config) any { return &c.SessionKey }, func(c *Config) string {
		return oneField(c.SessionKey, "id")
	}},
	{"attribute_prefix", func(c *Config) any { return &c.AttributePrefix }, func(c *Config) string {
		return wantUnless(len(c.AttributePrefix) <= maxPrefix && utf8.ValidString(c.AttributePrefix), "want at most %d bytes of UTF-8", maxPrefix)
	}},
	{"index", func(c *Config) any { return &c.Index }, func(c *Config) string {
		return wantUnless(len(c.Index) <= maxIndexName && utf8.ValidString(c.Index), "want the name of an index")
	}},
	{"handoffs", func(c *Config) any { return &c.Handoffs }, func(c *Config) string {
		return wantUnless(c.Handoffs <= maxHandoffs, "%d: want at most %d", c.Handoffs, maxHandoffs)
	}},
}

func wantUnless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func within(d, least, most time.Duration) string {
	return wantUnless(d >= least && d <= most, "%v: want %v to %v", d, least, most)
}

// oneField says what is wrong with a template whatever the delimiter; New compiles it with
// that of its table.
func oneField(text, field string) string {
	_, err := template(func(text string) (*keys.Template, error) { return keys.NewTemplate(text) }, text, field)
	if err != nil {
		return err.Error()
	}
	return ""
}

// naming is how a setting is called where it was set.
type naming func(name string) string

func fieldName(name string) string {
	var b strings.Builder
	b.WriteString("Config.")
	for part := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

func memberName(name string) string { return fmt.Sprintf("%q", name) }

func variableName(prefix string) naming {
	return func(name string) string { return prefix + strings.ToUpper(name) }
}

// Validate says everything that is wrong with the settings, defaults filled in, in one
// error that matches ErrInvalid. It needs no table: New checks, beyond this, what depends
// on one, which is how templates and attributes go together with its keys.
func (c Config) Validate() error {
	c = c.WithDefaults(keys.Scheme{}.WithDefaults().Delimiter)
	return wrap("config", c.validate(fieldName))
}

// validate expects that defaults are filled in.
func (c *Config) validate(name naming) error {
	var all error
	for i := range settings {
		if want := settings[i].check(c); want != "" {
			all = join(all, wrong(name(settings[i].name), want))
		}
	}
	return all
}

func wrong(name, want string) error { return fmt.Errorf("%w: %s: %s", ErrInvalid, name, want) }

// reading takes settings in from outside, and all that is wrong with them.
type reading struct {
	config Config
	name   naming
	seen   []string
	failed error
}

func (r *reading) fail(name, want string) { r.failed = join(r.failed, wrong(name, want)) }

// set finds the setting and has it read; unknown and repeated ones are wrong.
func (r *reading) set(name string, read func(field any) (want string)) {
	i := slices.IndexFunc(settings[:], func(s setting) bool { return s.name == name })
	switch {
	case i < 0:
		r.fail(r.name(name), "unknown setting")
	case slices.Contains(r.seen, name):
		r.fail(r.name(name), "set twice")
	default:
		r.seen = append(r.seen, name)
		if want := read(settings[i].field(&r.config)); want != "" {
			r.fail(r.name(name), want)
		}
	}
}

// done is the configuration, validated also where some of it could not be read: whoever
// has to mend it hears of everything at once.
func (r *reading) done() (Config, error) {
	complete := r.config.WithDefaults(keys.Scheme{}.WithDefaults().Delimiter)
	return r.config, join(r.failed, complete.validate(r.name))
}

// readText reads what stands in quotes in JSON, and everything in the environment.
func readText(field any, text string) (want string) {
	switch p := field.(type) {
	case *string:
		*p = text
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return wantDuration
		}
		*p = d
	case *int:
		if json.Unmarshal([]byte(text), p) != nil {
			return wantNumber
		}
	case *Expiry:
		if p.UnmarshalText([]byte(text)) != nil {
			return wantExpiry
		}
	}
	return ""
}

const (
	wantDuration = `want a duration with its unit, such as "20s"`
	wantNumber   = "want a whole number"
	wantExpiry   = `want "` + textRecorded + `" or "` + textObserved + `"`
)

// readJSON reads the value of a member.
func readJSON(field any, raw json.RawMessage) (want string) {
	if string(raw) == "null" {
		return "" // not set, as everywhere in encoding/json
	}
	if _, ok := field.(*int); ok {
		return readText(field, string(raw))
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return readText(field, text)
	}
	switch field.(type) {
	case *time.Duration:
		return wantDuration
	case *Expiry:
		return wantExpiry
	}
	return "want a string"
}

// UnmarshalJSON reads settings from an object, whose members are called like the fields, in
// lower case with underscores: lease, max_hold. Durations are strings with a unit ("20s"),
// Expiry is "recorded-or-observed" or "observed-only". What is not mentioned stays as it
// is. One error names everything that is wrong (also unknown and repeated members, and
// values that Validate refuses) and then c stays as it is.
func (c *Config) UnmarshalJSON(data []byte) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return nil
	}
	r := reading{config: *c, name: memberName}
	if err := r.object(data); err != nil {
		return wrap("config", err)
	}
	config, err := r.done()
	if err != nil {
		return wrap("config", err)
	}
	*c = config
	return nil
}

// object goes by token, since decoding into a map or a struct accepts repeated members.
func (r *reading) object(data []byte) error {
	syntax := fmt.Errorf("%w: want a JSON object", ErrInvalid)
	dec := json.NewDecoder(bytes.NewReader(data))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') || !utf8.Valid(data) {
		return syntax
	}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		var raw json.RawMessage
		if err != nil || !ok || dec.Decode(&raw) != nil {
			return syntax
		}
		r.set(name, func(field any) string { return readJSON(field, raw) })
	}
	if _, err := dec.Token(); err != nil {
		return syntax
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return syntax
	}
	return nil
}

// MarshalJSON writes the settings that are set, which UnmarshalJSON reads as they were. It
// refuses what Validate refuses. Functions, Logger and MeterProvider are no settings.
func (c Config) MarshalJSON() ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b := []byte{'{'}
	for i := range settings {
		var value any
		switch p := settings[i].field(&c).(type) {
		case *string:
			value = *p
		case *time.Duration:
			value = p.String()
			if *p == 0 {
				continue
			}
		case *int:
			value = *p
		case *Expiry:
			value, _ = p.text()
			if *p == 0 {
				continue
			}
		}
		if value == "" || value == 0 {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, wrap("config", err)
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, memberName(settings[i].name)...), ':'), text...)
	}
	return append(b, '}'), nil
}

// ConfigFromEnv reads settings from the environment: those that UnmarshalJSON knows, in
// capitals behind the prefix and an underscore (with MORTISE_LOCK as the prefix:
// MORTISE_LOCK_LEASE=20s). An empty variable is not set. One error names everything that is
// wrong, also variables behind the prefix that are no settings.
func ConfigFromEnv(prefix string) (Config, error) {
	return ConfigFromEnviron(prefix, os.Environ())
}

// ConfigFromEnviron is ConfigFromEnv for a given environment, in the form of os.Environ.
func ConfigFromEnviron(prefix string, environ []string) (Config, error) {
	prefix = strings.TrimSuffix(prefix, "_")
	if prefix == "" || strings.ContainsAny(prefix, "=\x00") {
		return Config{}, wrap("config", fmt.Errorf("%w: prefix: want the beginning of a variable's name", ErrInvalid))
	}
	prefix += "_"
	r := reading{name: variableName(prefix)}
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
		r.set(lower, func(field any) string {
			if value == "" {
				return ""
			}
			return readText(field, value)
		})
	}
	config, err := r.done()
	if err != nil {
		return Config{}, wrap("config", err)
	}
	return config, nil
}
