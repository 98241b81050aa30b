package keys_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
)

// No way of printing a key, alone or inside of something else, tells what is in it.
func TestFormat_KeysAndRangesDoNotPrintTheirText(t *testing.T) {
	const canary = "canary"
	key := keys.NewKey("P#"+canary, "S#"+canary)
	r := keys.PrefixRange("R#" + canary)
	type row struct {
		Key   keys.Key
		Range keys.Range
	}
	for name, v := range map[string]any{
		"key": key, "pointer": &key, "list": []keys.Key{key}, "map": map[keys.Key]int{key: 1}, "row": row{key, r}, "row pointer": &row{key, r},
		"range": r, "range pointer": &r, "invalid": keys.InvalidKey(errors.New(canary)), "unbounded": keys.Range{Lo: canary},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
			assert.NotContains(t, fmt.Sprintf(verb, v), canary, "%s %s", name, verb)
			assert.NotContains(t, fmt.Sprintf(verb, v), fmt.Sprintf("%x", canary), "%s %s", name, verb)
		}
		assert.NotContains(t, fmt.Sprint(v), canary, name)
	}
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var b bytes.Buffer
		slog.New(handler(&b)).Info("row", "key", key, "range", r)
		assert.NotContains(t, b.String(), canary, name)
		assert.Contains(t, b.String(), "PK of 8 bytes", name)
	}

	// What is left tells keys that were never set from those that were.
	assert.Equal(t, "key (PK of 8 bytes, SK of 8 bytes)", key.String())
	assert.Equal(t, "key (zero)", keys.Key{}.String())
	assert.Equal(t, "key (invalid)", keys.InvalidKey(nil).String())
	assert.Equal(t, "range (from 8 bytes to 8 bytes)", r.String())
	assert.Equal(t, "range (from 6 bytes on)", keys.Range{Lo: canary}.String())
	require.Equal(t, "P#"+canary, key.PK, "to those who ask it is a string like any other")
}
