package tty_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/tty"
)

func TestCut_LeavesCleanTextThatFits(t *testing.T) {
	assert.Equal(t, "a b \uFFFD[0m", tty.Clean("a\nb\t\x1b[0m"))
	assert.Equal(t, "abcdef", tty.Cut("abcdef", 6))
	assert.Equal(t, "abcd…", tty.Cut("abcdef", 5))
	assert.Equal(t, "…", tty.Cut("abcdef", 1))
	assert.Empty(t, tty.Cut("abcdef", 0))
	assert.Equal(t, 5, tty.Columns("日本e\u0301"))
	assert.Equal(t, "日…", tty.Cut("日本語", 4))
	marks := strings.Repeat("\u0301", 300_000)
	assert.LessOrEqual(t, utf8.RuneCountInString(tty.Cut("a"+marks, 10)), 82, "marks cover other lines")
	assert.Equal(t, "xyze\u0301", tty.Cut("xyze\u0301", 4), "some are part of the text")
}

func TestWidth_IsThatOfATerminalAlone(t *testing.T) {
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { require.NoError(t, null.Close()) }()
	for _, stream := range []any{null, &bytes.Buffer{}, nil} {
		width, ok := tty.Width(stream)
		assert.False(t, ok)
		assert.Zero(t, width)
	}
}

// A document is shown on terminals, too. Some control characters need no escape in JSON, and encoding/json leaves them.
func TestJSON_HasNoCharactersThatControlATerminal(t *testing.T) {
	in := map[string]string{"a": "\x1b\x7f\u009b31m\u202e\u2028\U000E0001\xff<é日👩"}
	for indent, want := range map[string]string{
		"":   `{"a":"\u001b\u007f\u009b31m\u202e\u2028\udb40\udc01\ufffd<é日👩"}` + "\n",
		"  ": "{\n" + `  "a": "\u001b\u007f\u009b31m\u202e\u2028\udb40\udc01\ufffd<é日👩"` + "\n}\n",
	} {
		var b bytes.Buffer
		require.NoError(t, tty.JSON(&b, in, indent))
		assert.Equal(t, want, b.String())
		var out map[string]string
		require.NoError(t, json.Unmarshal(b.Bytes(), &out))
		assert.Equal(t, "\x1b\x7f\u009b31m\u202e\u2028\U000E0001\ufffd<é日👩", out["a"])
	}
}

// A time that JSON does not have would end its document.
func TestMoment_IsATimeThatJSONHas(t *testing.T) {
	for want, at := range map[string]time.Time{
		"null":                   {},
		`"0000-01-01T00:00:00Z"`: time.UnixMilli(math.MinInt64),
		`"9999-12-31T23:59:59Z"`: time.UnixMilli(math.MaxInt64),
		`"1970-01-01T00:00:00Z"`: time.Unix(0, 0).In(time.FixedZone("", 3600)),
		`"0001-01-01T00:00:01Z"`: time.Time{}.Add(time.Second),
	} {
		text, err := json.Marshal(tty.Moment(at))
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}
