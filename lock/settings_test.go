package lock_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// noSettings are the fields of Config that are no settings.
var noSettings = []string{"Backoff", "OnAtRisk", "OnLost", "Logger", "MeterProvider"}

// A new field has to be a setting, with a row in the table of settings and in the reference, or to be named here.
func TestSettings_HaveEveryFieldOfConfig(t *testing.T) {
	reference, err := os.ReadFile("REFERENCE.md")
	require.NoError(t, err)
	names, fields := lock.Settings()
	for _, name := range names {
		assert.Contains(t, string(reference), "\n| `"+name+"` | `…_"+strings.ToUpper(name)+"` | ")
	}
	var all []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[lock.Config]()) {
		all = append(all, field.Name)
	}
	assert.ElementsMatch(t, all, append(fields, noSettings...))
}

// full has a value in every setting.
func full() lock.Config {
	return lock.Config{
		Lease: 10500 * time.Millisecond, Owner: "settler \"1\" ü", Retention: 48 * time.Hour, Skew: 3 * time.Second, Expiry: lock.ObservedOnly,
		Margin: 200 * time.Millisecond, AtRisk: .25, MaxHold: 5 * time.Minute, HomeRegion: "eu-west-1", StandaloneKey: "MUTEX#{name}", RowKey: "~LOCK#{of}",
		SessionKey: "PROCESS#{id}", AttributePrefix: "lock_", Index: "gsi1", Handoffs: -1,
	}
}

func TestSettings_AreTheSameFromEverySource(t *testing.T) {
	const text = `{"lease":"10.5s","owner":"settler \"1\" ü","retention":"48h0m0s","skew":"3s","expiry":"observed-only","margin":"200ms",` +
		`"at_risk":0.25,"max_hold":"5m0s","home_region":"eu-west-1","standalone_key":"MUTEX#{name}","row_key":"~LOCK#{of}","session_key":"PROCESS#{id}","attribute_prefix":"lock_","index":"gsi1","handoffs":-1}`
	var read lock.Config
	require.NoError(t, json.Unmarshal([]byte(text), &read))
	assert.Equal(t, full(), read)
	written, err := json.Marshal(read)
	require.NoError(t, err)
	assert.JSONEq(t, text, string(written))

	var environ []string
	var members map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &members))
	for name, value := range members {
		environ = append(environ, fmt.Sprintf("APP_LOCK_%s=%v", strings.ToUpper(name), value))
	}
	read, err = lock.ConfigFromEnviron("APP_LOCK", environ)
	require.NoError(t, err)
	assert.Equal(t, full(), read)
	require.NoError(t, full().Validate())
}

// A configuration from outside is accepted by New.
func TestSettings_MakeAClient(t *testing.T) {
	tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app", Indexes: []table.Index{byTime}})
	require.NoError(t, err)
	config := full()
	config.HomeRegion = tbl.Region()
	_, err = lock.New(tbl, config)
	require.NoError(t, err)
}

func TestSettings_FromJSON(t *testing.T) {
	written, err := json.Marshal(lock.Config{})
	require.NoError(t, err)
	assert.Equal(t, "{}", string(written))

	c := lock.Config{Lease: time.Minute, Owner: "before", Backoff: func() backoff.BackOff { return nil }}
	require.NoError(t, json.Unmarshal([]byte(`{"owner": "after", "skew": null}`), &c))
	assert.Equal(t, "after", c.Owner)
	assert.Equal(t, time.Minute, c.Lease, "what is not mentioned stays")
	assert.NotNil(t, c.Backoff)
	require.NoError(t, json.Unmarshal([]byte(`null`), &c))
	assert.Equal(t, "after", c.Owner)

	var app struct {
		Locks lock.Config `json:"locks"`
	}
	require.NoError(t, json.Unmarshal([]byte(`{"locks": {"lease": "5s"}}`), &app))
	assert.Equal(t, 5*time.Second, app.Locks.Lease)

	for text, want := range map[string]string{
		`{"lease": 20}`:                   `"lease": want a duration with its unit, such as "20s"`,
		`{"lease": "1ms"}`:                `"lease": 1ms: want 1s to 1h0m0s`,
		`{"retention": "23h"}`:            `"retention": 23h0m0s: want 24h0m0s to`,
		`{"max_hold": "-1s"}`:             `"max_hold": -1s: want 0 or at least 100ms`,
		`{"handoffs": 1001}`:              `"handoffs": 1001: want at most 1000`,
		`{"at_risk": 1}`:                  `"at_risk": 1: want more than 0 and less than 1`,
		`{"expiry": "never"}`:             `"expiry": want "recorded-or-observed" or "observed-only"`,
		`{"expiry": 1}`:                   `"expiry": want a string`,
		`{"row_key": "LOCK"}`:             `"row_key": want the one field of`,
		`{"margin": "3s", "lease": "5s"}`: `"margin": 3s: want 0 to half the lease`,
		`{"Lease": "20s"}`:                `"Lease": unknown setting`,
		`[]`:                              "want a JSON object",
	} {
		c := lock.Config{Owner: "before"}
		err := json.Unmarshal([]byte(text), &c)
		require.ErrorIs(t, err, lock.ErrInvalid, text)
		require.ErrorContains(t, err, "lock: config: ")
		require.ErrorContains(t, err, want)
		assert.Equal(t, lock.Config{Owner: "before"}, c, "it stays as it was")
	}
	err = json.Unmarshal([]byte(`{"lease": 20, "skew": "1ms", "nope": 1, "handoffs": 5000}`), &c)
	for _, name := range []string{`"lease"`, `"skew"`, `"nope"`, `"handoffs"`} {
		require.ErrorContains(t, err, name, "all at once")
	}
	_, err = json.Marshal(lock.Config{Expiry: "never"})
	require.ErrorIs(t, err, lock.ErrInvalid)
}

func TestSettings_FromTheEnvironment(t *testing.T) {
	t.Setenv("MORTISE_TEST_LOCK_LEASE", "30s")
	t.Setenv("MORTISE_TEST_LOCK_OWNER", "")
	t.Setenv("MORTISE_TEST_LOCK_SKEW", "") // as good as not set
	c, err := lock.ConfigFromEnv("MORTISE_TEST_LOCK")
	require.NoError(t, err)
	assert.Equal(t, lock.Config{Lease: 30 * time.Second}, c)

	_, err = lock.ConfigFromEnviron("APP", []string{"APP_LEASE=20", "APP_SKEW=1ms", "APP_LEESE=20s"})
	require.ErrorIs(t, err, lock.ErrInvalid)
	for _, text := range []string{"lock: config: ", "APP_LEASE: want a duration with its unit", "APP_SKEW: 1ms: want 1s to 1h", "APP_LEESE: unknown"} {
		require.ErrorContains(t, err, text)
	}
	_, err = lock.ConfigFromEnviron("", nil)
	require.ErrorIs(t, err, lock.ErrInvalid)
}

func TestValidate_NeedsNoTable(t *testing.T) {
	require.NoError(t, lock.Config{}.Validate())
	err := lock.Config{Lease: time.Millisecond, RowKey: "{no}", MaxHold: 1}.Validate()
	require.ErrorIs(t, err, lock.ErrInvalid)
	for _, name := range []string{"Config.Lease", "Config.RowKey", "Config.MaxHold"} {
		require.ErrorContains(t, err, name)
	}
}

// A configuration that was read is valid, and is the same when it is written and read again.
func FuzzConfigJSON(f *testing.F) {
	whole, err := json.Marshal(full())
	require.NoError(f, err)
	for _, seed := range []string{
		string(whole), `{}`, `null`, `{"lease": "20s"}`, `{"lease": 20}`, `{"lease": "1h", "lease": "1h"}`, `{"handoffs": 1e2}`, `{"handoffs": 100000000000000000000}`,
		`{"owner": "\ud800"}`, `{"owner": "\u0000"}`, `{"expiry": null}`, `{"lease": "1000000001ns"}`, `{"skew": ".5h"}`, `{"row_key": "{of}$#"}`, `[{}]`, "{\"\xff\": 1}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c lock.Config
		if err := c.UnmarshalJSON(data); err != nil {
			require.ErrorIs(t, err, lock.ErrInvalid)
			assert.Equal(t, lock.Config{}, c)
			return
		}
		require.NoError(t, c.Validate())
		text, err := json.Marshal(c)
		require.NoError(t, err)
		var again lock.Config
		require.NoError(t, json.Unmarshal(text, &again), "%s", text)
		assert.Equal(t, c, again)
	})
}
