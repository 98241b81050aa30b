package keys_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
)

func TestKey_CarriesItsError(t *testing.T) {
	cause := errors.New("cause")
	bad := keys.InvalidKey(cause)
	require.ErrorIs(t, bad.Err(), cause)
	require.ErrorIs(t, bad.Validate(), cause)
	assert.False(t, bad.IsZero())
	require.Error(t, keys.InvalidKey(nil).Validate())
	assert.True(t, keys.Key{}.IsZero())
	require.ErrorIs(t, keys.Key{}.Validate(), keys.ErrEmpty)
	assert.Equal(t, keys.Key{PK: "a", SK: "b"}, keys.NewKey("a", "b"))
	require.NoError(t, keys.NewKey("a", "b").Err())
}

type list []error

func (list) Error() string { return "list" }

func TestKey_IsComparableWhateverErrorItCarries(t *testing.T) {
	key := keys.InvalidKey(list{}) // comparing a list panics
	same, other := key, keys.InvalidKey(list{})
	set := map[keys.Key]int{key: 1, other: 2, keys.NewKey("a", "b"): 3, keys.NewKey("a", "c"): 4}
	assert.Len(t, set, 4)
	assert.Equal(t, 1, set[same])
}

// TestKey_HasLimits is about lengths in bytes after encoding and about what is text at all.
func TestKey_HasLimits(t *testing.T) {
	scheme := keys.Scheme{}
	pk, err := scheme.PKTemplate("{v}")
	require.NoError(t, err)
	sk, err := scheme.SKTemplate("{v}")
	require.NoError(t, err)
	raw, err := scheme.SKTemplate("{v:raw}")
	require.NoError(t, err)
	id, err := scheme.SKTemplate("{v:id1024}")
	require.NoError(t, err)
	x := func(n int) string { return strings.Repeat("x", n) }
	e := func(n int) string { return strings.Repeat("é", n) } // two bytes each
	cases := []struct {
		name  string
		tpl   *keys.Template
		value string
		want  error
	}{
		{"pk 0", pk, "", keys.ErrEmpty},
		{"pk 1", pk, "x", nil},
		{"pk 1024", pk, x(1024), nil},
		{"pk 1025", pk, x(1025), nil},
		{"pk 2048", pk, x(2048), nil},
		{"pk 2049", pk, x(2049), keys.ErrTooLong},
		{"pk 1 MB", pk, x(1 << 20), keys.ErrTooLong},
		{"pk 2048 of two bytes", pk, e(1024), nil},
		{"pk 2049 with two bytes at the edge", pk, x(2047) + "é", keys.ErrTooLong},
		{"pk 2047 and an escape", pk, x(2046) + "#", nil},
		{"pk 2048 and an escape", pk, x(2047) + "#", keys.ErrTooLong},
		{"pk 1024 escapes", pk, strings.Repeat("#", 1024), nil},
		{"pk 1025 escapes", pk, strings.Repeat("$", 1025), keys.ErrTooLong},
		{"sk 0", sk, "", keys.ErrEmpty},
		{"sk 1", sk, "x", nil},
		{"sk 1024", sk, x(1024), nil},
		{"sk 1025", sk, x(1025), keys.ErrTooLong},
		{"sk 2048", sk, x(2048), keys.ErrTooLong},
		{"sk 2049", sk, x(2049), keys.ErrTooLong},
		{"sk 1024 of four bytes", sk, strings.Repeat("\U0010ffff", 256), nil},
		{"sk 1025 with four bytes at the edge", sk, x(1021) + "\U0010ffff", keys.ErrTooLong},
		{"sk cut within a rune", sk, e(5)[:9], keys.ErrInvalidUTF8},
		{"sk overlong encoding", sk, "\xc0\x80", keys.ErrInvalidUTF8},
		{"sk surrogate", sk, "\xed\xa0\x80", keys.ErrInvalidUTF8},
		{"sk lone continuation", sk, "a\x80", keys.ErrInvalidUTF8},
		{"sk NUL", sk, "\x00", nil},
		{"sk 1024 NUL", sk, strings.Repeat("\x00", 1024), nil},
		{"sk control bytes", sk, "\x01\x1f\x7f\t\r\n", nil},
		{"sk byte order mark", sk, "\ufeff", nil},
		{"raw 1024", raw, x(1024), nil},
		{"raw 1025", raw, x(1025), keys.ErrTooLong},
		{"raw NUL", raw, "\x00", nil},
		{"id 1024", id, x(1024), nil},
		{"id 1024 and an escape", id, x(1023) + "#", keys.ErrTooLong},
		{"id of a cut rune", id, x(1023) + "\xc3", keys.ErrInvalidUTF8},
	}
	refused := 0
	for _, tc := range cases {
		if tc.want != nil {
			refused++
		}
		t.Run(tc.name, func(t *testing.T) {
			key, err := tc.tpl.Format(tc.value)
			if tc.want != nil {
				require.ErrorIs(t, err, tc.want)
				var ke *keys.Error
				require.ErrorAs(t, err, &ke)
				assert.Equal(t, "v", ke.Field)
				return
			}
			require.NoError(t, err)
			values, err := tc.tpl.Parse(key)
			require.NoError(t, err)
			assert.Equal(t, []any{tc.value}, values)
		})
	}

	t.Logf("%d keys: %d refused with a typed error, %d accepted and read back", len(cases), refused, len(cases)-refused)

	t.Run("text after the last field counts", func(t *testing.T) {
		tpl, err := scheme.SKTemplate("{v}#END")
		require.NoError(t, err)
		_, err = tpl.Format(x(1020))
		require.NoError(t, err)
		_, err = tpl.Format(x(1021))
		require.ErrorIs(t, err, keys.ErrTooLong)
		require.ErrorContains(t, err, `field "v"`)
		assert.False(t, tpl.Matches(x(1021)+"#END"))
	})
	t.Run("the field that crosses the limit is named", func(t *testing.T) {
		tpl, err := scheme.SKTemplate("{a}#{b}#{c}")
		require.NoError(t, err)
		_, err = tpl.Format("x", x(1023), "y")
		require.ErrorContains(t, err, `field "b"`)
	})
	for _, tc := range []struct {
		pk, sk, field string
		want          error
	}{
		{x(2048), x(1024), "", nil},
		{x(2049), "x", "PK", keys.ErrTooLong},
		{"x", x(1025), "SK", keys.ErrTooLong},
		{"", "x", "PK", keys.ErrEmpty},
		{"x", "", "SK", keys.ErrEmpty},
		{"\xff", "x", "PK", keys.ErrInvalidUTF8},
		{"x", "\xff", "SK", keys.ErrInvalidUTF8},
		{"\x00", "\x00", "", nil},
	} {
		err := keys.NewKey(tc.pk, tc.sk).Validate()
		if tc.want == nil {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, tc.want)
		var ke *keys.Error
		require.ErrorAs(t, err, &ke)
		assert.Equal(t, tc.field, ke.Field)
	}
}
