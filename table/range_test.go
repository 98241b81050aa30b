package table

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/keys"
)

func TestRange_BecomesAKeyCondition(t *testing.T) {
	long := string(make([]byte, keys.MaxSK-1))
	for _, c := range []struct {
		name string
		r    keys.Range
		want string
		drop string
		err  error
	}{
		{"all", keys.Range{}, "", "", nil},
		{"prefix", keys.PrefixRange("ORDER#"), "begins_with(#0, :0)", "", nil},
		{"one key", keys.Range{Lo: "k", Hi: "k\x00"}, "#0 = :0", "", nil},
		{"from", keys.Range{Lo: "k"}, "#0 >= :0", "", nil},
		{"until", keys.Range{Hi: "k"}, "#0 < :0", "", nil},
		{"between", keys.Range{Lo: "a", Hi: "k"}, "#0 BETWEEN :0 AND :1", "k", nil},
		{"empty", keys.Range{Lo: "k", Hi: "k"}, "", "", errEmptyRange},
		{"below every key", keys.Range{Hi: "\x00"}, "", "", errEmptyRange},
		{"reversed", keys.Range{Lo: "k", Hi: "a"}, "", "", ErrInvalid},
		{"longest key", keys.Range{Lo: long + "x", Hi: long + "x\x00"}, "#0 = :0", "", nil},
		{"upper end too long", keys.Range{Lo: "a", Hi: "b" + long + "é"}, "#0 BETWEEN :0 AND :1", "b" + long[:len(long)-1] + "\x01", nil},
		{"both ends too long", keys.Range{Lo: long + "é", Hi: long + "ü"}, "", "", errEmptyRange},
		{"above everything", keys.Range{Lo: string(make([]byte, keys.MaxSK)) + "\x00"}, "#0 >= :0", "", nil},
		{"from above every key", keys.Range{Lo: strings.Repeat("\U0010ffff", keys.MaxSK/4+1)}, "", "", errEmptyRange},
		{"until above every key", keys.Range{Hi: strings.Repeat("\U0010ffff", keys.MaxSK/4+1)}, "", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cond, drop, err := rangeCond(c.r, "sk")
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
				return
			}
			require.NoError(t, err)
			text, _, _ := expression(cond)
			assert.Equal(t, c.want, text)
			assert.Equal(t, c.drop, drop)
		})
	}
	_, _, err := rangeCond(keys.Range{Lo: "a"}, "")
	require.ErrorIs(t, err, ErrInvalid, "an index without a sort key")
}

// The greatest sort keys DynamoDB takes are 1024 bytes long; no key may change sides
// when a longer bound is replaced.
func TestRange_BoundsThatAreTooLongKeepEveryKeyOnItsSide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		head := string(make([]byte, keys.MaxSK-3))
		tail := rapid.StringOfN(rapid.RuneFrom([]rune{'a', 'z', 0x7f, 'é', 0x7ff, 0xffff, 0x10ffff}), 1, 4, -1)
		bound, key := head+tail.Draw(t, "bound"), head+tail.Draw(t, "key")
		if len(key) > keys.MaxSK {
			t.Skip("no key")
		}
		got := possible(bound)
		require.LessOrEqual(t, len(got), keys.MaxSK)
		require.Equal(t, key < bound, got == "" || key < got)
	})
}
