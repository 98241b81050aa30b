package lock

import (
	"fmt"
	"os"
	"time"
	"unicode/utf8"

	"github.com/mortise-go/mortise/internal/settings"
	"github.com/mortise-go/mortise/keys"
)

// settings lists the fields of Config that JSON and the environment can set. A field becomes one of them by a row here.
func (c *Config) settings() []settings.Setting {
	return []settings.Setting{
		{Name: "lease", Field: &c.Lease, Check: within(&c.Lease, MinLease, MaxLease)},
		{Name: "owner", Field: &c.Owner, Check: short(&c.Owner, MaxOwner)},
		{Name: "retention", Field: &c.Retention, Check: within(&c.Retention, minRetention, maxRetention)},
		{Name: "skew", Field: &c.Skew, Check: within(&c.Skew, time.Second, time.Hour)},
		{Name: "expiry", Field: (*string)(&c.Expiry), Check: func() string {
			return wantUnless(c.Expiry == RecordedOrObserved || c.Expiry == ObservedOnly, "want %q or %q", RecordedOrObserved, ObservedOnly)
		}},
		{Name: "margin", Field: &c.Margin, Check: func() string {
			return wantUnless(c.Margin >= 0 && c.Margin <= c.Lease/2, "%v: want 0 to half the lease", c.Margin)
		}},
		{Name: "at_risk", Field: &c.AtRisk, Check: func() string {
			return wantUnless(c.AtRisk > 0 && c.AtRisk < 1, "%v: want more than 0 and less than 1", c.AtRisk)
		}},
		{Name: "max_hold", Field: &c.MaxHold, Check: func() string {
			return wantUnless(c.MaxHold == 0 || c.MaxHold >= MinFixed, "%v: want 0 or at least %v", c.MaxHold, MinFixed)
		}},
		{Name: "home_region", Field: &c.HomeRegion, Check: short(&c.HomeRegion, MaxOwner)},
		{Name: "standalone_key", Field: &c.StandaloneKey, Check: oneField(&c.StandaloneKey, "name")},
		{Name: "row_key", Field: &c.RowKey, Check: oneField(&c.RowKey, "of")},
		{Name: "session_key", Field: &c.SessionKey, Check: oneField(&c.SessionKey, "id")},
		{Name: "attribute_prefix", Field: &c.AttributePrefix, Check: short(&c.AttributePrefix, maxPrefix)},
		{Name: "index", Field: &c.Index, Check: short(&c.Index, maxIndexName)},
		{Name: "handoffs", Field: &c.Handoffs, Check: func() string {
			return wantUnless(c.Handoffs <= maxHandoffs, "%d: want at most %d", c.Handoffs, maxHandoffs)
		}},
	}
}

func wantUnless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func within(d *time.Duration, least, most time.Duration) func() string {
	return func() string { return wantUnless(*d >= least && *d <= most, "%v: want %v to %v", *d, least, most) }
}

func short(text *string, most int) func() string {
	return func() string {
		return wantUnless(len(*text) <= most && utf8.ValidString(*text), "want at most %d bytes of UTF-8", most)
	}
}

// oneField reports what is wrong with a template, with any delimiter. New compiles it again, with the delimiter of its table.
func oneField(text *string, field string) func() string {
	return func() string {
		_, err := template(func(text string) (*keys.Template, error) { return keys.NewTemplate(text) }, *text, field)
		if err != nil {
			return err.Error()
		}
		return ""
	}
}

func allSettings() settings.Set[Config] {
	return settings.Set[Config]{Invalid: ErrInvalid, Settings: (*Config).settings, Defaults: func(c Config) Config {
		return c.withDefaults(keys.Scheme{}.WithDefaults().Delimiter)
	}}
}

// Validate checks all settings, with defaults filled in, and reports everything that is wrong in one error that matches
// [ErrInvalid]. It needs no table. [New] also checks that templates and attribute names fit those of its table.
func (c Config) Validate() error {
	all := allSettings()
	return wrap("config", all.Check(all.Defaults(c)))
}

// UnmarshalJSON reads settings from a JSON object. The names are those of the fields in lower case with underscores:
// lease, max_hold. A duration is a string with a unit ("20s"). A setting that is not in the object does not change. One
// error names everything that is wrong, including names that are unknown or occur twice, and values that
// [Config.Validate] refuses. After an error c has not changed.
func (c *Config) UnmarshalJSON(data []byte) error {
	config, err := allSettings().FromJSON(*c, data)
	if err != nil {
		return wrap("config", err)
	}
	*c = config
	return nil
}

// MarshalJSON writes the settings that are set, in the form that [Config.UnmarshalJSON] reads. It refuses what
// [Config.Validate] refuses. It leaves out functions, Logger and MeterProvider.
func (c Config) MarshalJSON() ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	text, err := allSettings().JSON(c)
	return text, wrap("config", err)
}

// ConfigFromEnv reads settings from environment variables: the prefix, an underscore, and the name that
// [Config.UnmarshalJSON] has for the setting, in capitals. With the prefix MORTISE_LOCK: MORTISE_LOCK_LEASE=20s. An
// empty variable counts as not set. One error names everything that is wrong, including variables with the prefix that
// are no settings.
func ConfigFromEnv(prefix string) (Config, error) { return ConfigFromEnviron(prefix, os.Environ()) }

// ConfigFromEnviron does the same as [ConfigFromEnv] for a given environment, in the form of [os.Environ].
func ConfigFromEnviron(prefix string, environ []string) (Config, error) {
	config, err := allSettings().FromEnviron(prefix, environ)
	if err != nil {
		return Config{}, wrap("config", err)
	}
	return config, nil
}
