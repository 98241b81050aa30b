package settings_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/settings"
)

var errInvalid = errors.New("invalid")

// config has a field of each type.
type config struct {
	Lease  time.Duration
	Owner  string
	Count  int
	AtRisk float64
	hidden func()
}

func set() settings.Set[config] {
	return settings.Set[config]{Invalid: errInvalid, Settings: func(c *config) []settings.Setting {
		return []settings.Setting{
			{Name: "lease", Field: &c.Lease, Check: func() string { return unless(c.Lease > 0, "%v: want more than 0", c.Lease) }},
			{Name: "owner", Field: &c.Owner, Check: func() string { return unless(len(c.Owner) < 20, "want less than 20 bytes") }},
			{Name: "count", Field: &c.Count, Check: func() string { return unless(c.Count < 100, "want less than 100") }},
			{Name: "at_risk", Field: &c.AtRisk, Check: func() string { return unless(c.AtRisk < 1, "want less than 1") }},
		}
	}, Defaults: func(c config) config {
		if c.Lease == 0 {
			c.Lease = time.Second
		}
		return c
	}}
}

func unless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func TestSettings_AreTheSameFromEverywhere(t *testing.T) {
	const text = `{"lease":"1m30s","owner":"a \"b\" ü","count":-3,"at_risk":0.25}`
	want := config{Lease: 90 * time.Second, Owner: `a "b" ü`, Count: -3, AtRisk: .25}

	read, err := set().FromJSON(config{}, []byte(text))
	require.NoError(t, err)
	assert.Equal(t, want, read)

	written, err := set().JSON(read)
	require.NoError(t, err)
	assert.JSONEq(t, text, string(written))

	environ := []string{
		"APP_LEASE=90s", `APP_OWNER=a "b" ü`, "APP_COUNT=-3", "APP_AT_RISK=0.25",
		"PATH=/bin", "APPLE=x", "=strange", "APP=1",
	}
	for _, prefix := range []string{"APP", "APP_"} {
		read, err := set().FromEnviron(prefix, environ)
		require.NoError(t, err)
		assert.Equal(t, want, read)
	}
	assert.Equal(t, "AtRisk", settings.FieldName("at_risk"))
}

func TestSettings_LeaveWhatIsNotSet(t *testing.T) {
	before := config{Owner: "before", Count: 7, hidden: func() {}}
	for _, text := range []string{"null", " null\n", "{}", `{"owner": null, "lease": null, "count": null, "at_risk": null}`} {
		after, err := set().FromJSON(before, []byte(text))
		require.NoError(t, err, text)
		assert.NotNil(t, after.hidden)
		after.hidden, before.hidden = nil, nil
		assert.Equal(t, before, after, text)
		before.hidden = func() {}
	}
	written, err := set().JSON(config{})
	require.NoError(t, err)
	assert.Equal(t, "{}", string(written), "no default is written")

	read, err := set().FromEnviron("APP", []string{"APP_LEASE=", "APP_COUNT=", "APP_OWNER="})
	require.NoError(t, err)
	assert.Equal(t, config{}, read, "an empty variable is not set")
}

func TestSettings_NameWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		`{"lease": 20}`:                    `"lease": want a duration with its unit, such as "20s"`,
		`{"lease": "20"}`:                  `"lease": want a duration with its unit`,
		`{"lease": ""}`:                    `"lease": want a duration`,
		`{"lease": true}`:                  `"lease": want a duration`,
		`{"lease": "-1s"}`:                 `"lease": -1s: want more than 0`,
		`{"Lease": "20s"}`:                 `"Lease": unknown setting`,
		`{"leese": "20s"}`:                 `"leese": unknown setting`,
		`{"lease": "5s", "lease": "6s"}`:   `"lease": set twice`,
		`{"lease": null, "lease": "6s"}`:   `"lease": set twice`,
		`{"owner": 1}`:                     `"owner": want a string`,
		`{"owner": {}}`:                    `"owner": want a string`,
		`{"count": "16"}`:                  `"count": want a whole number`,
		`{"count": 1.5}`:                   `"count": want a whole number`,
		`{"count": 1e2}`:                   `"count": want a whole number`,
		`{"count": 100000000000000000000}`: `"count": want a whole number`,
		`{"at_risk": "0.5"}`:               `"at_risk": want a number`,
		`{"at_risk": 1e999}`:               `"at_risk": want a number`,
		`{"at_risk": []}`:                  `"at_risk": want a number`,
		`[]`:                               "want a JSON object",
		`"20s"`:                            "want a JSON object",
		`{`:                                "want a JSON object",
		`{"lease"`:                         "want a JSON object",
		`{"lease": }`:                      "want a JSON object",
		`{} {}`:                            "want a JSON object",
		``:                                 "want a JSON object",
		"{\"owner\": \"\xff\"}":            "want a JSON object",
	} {
		_, err := set().FromJSON(config{}, []byte(text))
		require.ErrorIs(t, err, errInvalid, text)
		require.ErrorContains(t, err, want)
	}
	_, err := set().FromEnviron("APP", []string{
		"APP_LEASE=20", "APP_OWNER=" + strings.Repeat("x", 20), "APP_LEESE=20s", "APP_lease=20s", "APP_COUNT=null", "APP_AT_RISK=NaN", "APP_=x",
	})
	require.ErrorIs(t, err, errInvalid)
	for _, want := range []string{
		"APP_LEASE: want a duration", "APP_OWNER: want less than 20 bytes", "APP_LEESE: unknown setting", "APP_lease: unknown setting",
		"APP_COUNT: want a whole number", "APP_AT_RISK: want a number", "APP_: unknown setting",
	} {
		require.ErrorContains(t, err, want, "all at once")
	}
	for _, prefix := range []string{"", "_", "A=B"} {
		_, err = set().FromEnviron(prefix, nil)
		require.ErrorIs(t, err, errInvalid)
		require.ErrorContains(t, err, "prefix")
	}
}

func TestCheck_NamesTheFields(t *testing.T) {
	require.NoError(t, set().Check(config{Lease: 1}))
	err := set().Check(config{AtRisk: 1, Count: 100})
	require.ErrorIs(t, err, errInvalid)
	assert.EqualError(t, err, "invalid: Config.Lease: 0s: want more than 0; Config.Count: want less than 100; Config.AtRisk: want less than 1")
}

// What is read is written again as it was.
func FuzzFromJSON(f *testing.F) {
	for _, seed := range []string{
		`{"lease":"1m30s","owner":"a","count":-3,"at_risk":0.25}`, `{}`, `null`, `{"owner": "\ud800"}`, `{"owner": "\u0000<"}`,
		`{"count": -0}`, `{"at_risk": -0.0}`, `{"at_risk": 1e-300}`, `{"lease": ".5h"}`, `[{}]`, "{\"\xff\": 1}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := set().FromJSON(config{}, data)
		if err != nil {
			require.ErrorIs(t, err, errInvalid)
			return
		}
		text, err := set().JSON(c)
		require.NoError(t, err)
		again, err := set().FromJSON(config{}, text)
		require.NoError(t, err, "%s", text)
		assert.Equal(t, c, again)
	})
}
