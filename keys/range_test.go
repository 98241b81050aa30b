package keys_test

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/keys"
)

func TestPrefix_EndsAtADelimiter(t *testing.T) {
	for _, tc := range []struct {
		text   string
		values []any
		want   string
	}{
		{"ORDER#{id}#LINE#{no:uint4}", nil, "ORDER#"},
		{"ORDER#{id}#LINE#{no:uint4}", []any{"1"}, "ORDER#1#LINE#"},
		{"ORDER#{id}#LINE#{no:uint4}", []any{"1", 2}, "ORDER#1#LINE#0002#"},
		{"ORDER#{id}#L{no:uint4}", []any{"1"}, "ORDER#1#"},
		{"ORDER#{id}#{x}#END", []any{"1#"}, "ORDER#1$0#"},
		{"ORDER#{id}#{x}#END", []any{"1", "2"}, "ORDER#1#2#END#"},
		{"ORDER-{id}", nil, "ORDER-"},
		{"{id}", nil, ""},
		{"{id}#{x}", []any{keys.Values{"id": "7"}}, "7#"},
		{"{id}#{x}", []any{keys.Values{}}, ""},
		{"META", nil, "META"},
		{"ORDER#{id}#", []any{"1"}, "ORDER#1#"},
		{"{a:rest}", []any{"1#"}, "1#"},
		{"{t}#{id:shard4}", []any{"7"}, "7#"},
	} {
		got, err := keys.MustTemplate(tc.text).Prefix(tc.values...)
		require.NoError(t, err)
		assert.Equal(t, tc.want, got)
	}
}

func TestPrefix_OfOrder1DoesNotMatchOrder10(t *testing.T) {
	line := keys.MustTemplate("ORDER#{id}#LINE#{no:uint4}")
	prefix, err := line.Prefix("1")
	require.NoError(t, err)
	one, err := line.Format("1", 1)
	require.NoError(t, err)
	ten, err := line.Format("10", 1)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(one, prefix))
	assert.False(t, strings.HasPrefix(ten, prefix))
	assert.False(t, keys.PrefixRange(prefix).Contains(ten))

	order := keys.MustTemplate("ORDER#{id}")
	prefix, err = order.Prefix("1")
	require.NoError(t, err)
	assert.Equal(t, "ORDER#1#", prefix, "also where nothing follows")
	r, err := order.Range("1")
	require.NoError(t, err)
	assert.True(t, r.Contains("ORDER#1"))
	for _, other := range []string{"ORDER#10", "ORDER#1#", "ORDER#1#LINE#0001", "ORDER#0", "ORDER#"} {
		assert.False(t, r.Contains(other), other)
	}
}

// For any values, a key has the prefix made of some of its leading values exactly if it has those values.
func TestRange_SelectsByValue(t *testing.T) {
	tpl := keys.MustTemplate("A#{a}#B#{b:uint2}#{c}")
	word := rapid.StringOfN(rapid.RuneFrom([]rune("#$01B a")), 1, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		x := []any{word.Draw(t, "a"), rapid.Uint64Range(0, 12).Draw(t, "b"), word.Draw(t, "c")}
		y := []any{word.Draw(t, "a'"), rapid.Uint64Range(0, 12).Draw(t, "b'"), word.Draw(t, "c'")}
		for i := range rapid.IntRange(0, 3).Draw(t, "same") {
			y[i] = x[i]
		}
		key, err := tpl.Format(y...)
		require.NoError(t, err)
		equal := true
		for n := range 4 {
			if n > 0 {
				equal = equal && x[n-1] == y[n-1]
			}
			r, err := tpl.Range(x[:n]...)
			require.NoError(t, err)
			require.Equal(t, equal, r.Contains(key))
			if n < 3 {
				prefix, err := tpl.Prefix(x[:n]...)
				require.NoError(t, err)
				require.Equal(t, equal, strings.HasPrefix(key, prefix))
				require.Equal(t, equal, keys.PrefixRange(prefix).Contains(key))
			}
		}
	})
}

// BeginsWith selects exactly the keys whose next value begins with the text, wherever values have delimiters and escapes.
func TestBeginsWith_SelectsByTheBeginningOfAValue(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("#$01a é\U0010ffff")), 1, 4, -1)
	for _, tc := range []struct {
		text  string
		delim byte
		raw   bool
		width int
	}{
		{text: "A#{a}#{b}#END", delim: '#'},
		{text: "A#{a}#{b}", delim: '#'},
		{text: "A/{a}/{b}/{c:uint2}", delim: '/'},
		{text: "A|{a}|{b}", delim: '|'},
		{text: "{a:raw}#{b:raw}#x", delim: '#', raw: true},
		{text: "{a}#{b:rest}", delim: '#'},
		{text: "{a}#{b:id4}x{c:uint2}", delim: '#', width: 4},
	} {
		tpl := keys.MustTemplate(tc.text, keys.WithDelimiter(tc.delim))
		rapid.Check(t, func(t *rapid.T) {
			draw := func(name string) string {
				s := word.Draw(t, name)
				if tc.raw {
					s = strings.ReplaceAll(s, "#", "0")
				}
				return s
			}
			a, b, text := draw("a"), draw("b"), draw("text")
			if tc.width > 0 {
				b = (b + "0000")[:tc.width]
				text = text[:1]
				if !utf8.ValidString(b) || !utf8.ValidString(text) {
					t.Skip("cut a rune")
				}
			}
			if rapid.Bool().Draw(t, "begins") {
				runes := []rune(b)
				text = string(runes[:rapid.IntRange(1, len(runes)).Draw(t, "n")])
			}
			other := rapid.SampledFrom([]string{a, draw("other")}).Draw(t, "leading")
			r, err := tpl.BeginsWith(text, other)
			require.NoError(t, err)
			key, err := tpl.Format(keys.Values{"a": a, "b": b, "c": 7})
			require.NoError(t, err)
			require.Equal(t, other == a && strings.HasPrefix(b, text), r.Contains(key), "%q in %q", key, r.Lo)
		})
	}
}

func TestBeginsWith_RefusesWhatHasNoBeginning(t *testing.T) {
	for _, tc := range []struct {
		text    string
		begin   string
		leading []any
		field   string
		cause   error
	}{
		{"{a}#{b}", "", nil, "a", keys.ErrEmpty},
		{"{a}#{b}", "\xff", nil, "a", keys.ErrInvalidUTF8},
		{"{a}#{b}", "x", []any{"1", "2"}, "", keys.ErrCount},
		{"{a}#{b}", "x", []any{keys.Values{"b": "2"}}, "a", keys.ErrMissing},
		{"{a}#{b:raw}", "x#", []any{"1"}, "b", keys.ErrDelimiter},
		{"{a:uint4}", "1", nil, "a", keys.ErrType},
		{"{a:time-s}", "2024", nil, "a", keys.ErrType},
		{"{a:id2}", "123", nil, "a", keys.ErrRange},
		{"{a:shard4}#{a}", "x", nil, "a", keys.ErrNoPrefix},
		{"{a}", strings.Repeat("#", 1025), nil, "a", keys.ErrTooLong},
	} {
		_, err := keys.MustTemplate(tc.text).BeginsWith(tc.begin, tc.leading...)
		require.ErrorIs(t, err, tc.cause, tc.text)
		var ke *keys.Error
		require.ErrorAs(t, err, &ke)
		assert.Equal(t, tc.field, ke.Field)
	}
	_, err := (*keys.Template)(nil).BeginsWith("x")
	require.Error(t, err)
}

func TestPrefix_RefusesNamingTheField(t *testing.T) {
	for _, tc := range []struct {
		text   string
		values []any
		field  string
		cause  error
	}{
		{"{d:date}T{x}", []any{time.Unix(0, 0)}, "d", keys.ErrNoPrefix},
		{"{i:id2}{x}", []any{"ab"}, "i", keys.ErrNoPrefix},
		{"{x:shard4}#{t}#{x}", []any{"acme"}, "x", keys.ErrNoPrefix},
		{"{a}#{b}", []any{"x", "y", "z"}, "", keys.ErrCount},
		{"{a}#{b}", []any{""}, "a", keys.ErrEmpty},
		{"{a}#{b}", []any{1}, "a", keys.ErrType},
		{"{a}#{b}", []any{keys.Values{"b": "x"}}, "a", keys.ErrMissing},
		{"{a}#{b}", []any{keys.Values{"a": "x", "c": "x", "d": "x"}}, "c", keys.ErrUnknownField},
		{"{a}#LONG#{b}", []any{strings.Repeat("x", 2044)}, "b", keys.ErrTooLong},
		{"{a}#{b}", []any{strings.Repeat("x", 2046), "y"}, "b", keys.ErrTooLong}, // the key fits, but not the delimiter after it
	} {
		tpl := keys.MustTemplate(tc.text)
		_, err := tpl.Prefix(tc.values...)
		require.ErrorIs(t, err, tc.cause)
		var ke *keys.Error
		require.ErrorAs(t, err, &ke)
		assert.Equal(t, tc.field, ke.Field)
		if _, noKey := tpl.Format(tc.values...); noKey != nil && !errors.Is(tc.cause, keys.ErrNoPrefix) {
			_, err = tpl.Range(tc.values...)
			require.ErrorIs(t, err, tc.cause)
		}
	}
	_, err := keys.MustTemplate("{x:shard4}#{t}#{x}").Range("acme")
	require.ErrorIs(t, err, keys.ErrNoPrefix)
}

func TestPrefixRange_HoldsAllStringsWithThePrefixAndNoOthers(t *testing.T) {
	for prefix, hi := range map[string]string{
		"":                     "",
		"a#":                   "a$",
		"a\x7f":                "a\u0080",
		"a\ud7ff":              "a\ue000",
		"a\U0010ffff":          "b",
		"\U0010ffff\U0010ffff": "",
		"é":                    "ê",
		"\u07ff":               "\u0800",
		"\uffff":               "\U00010000",
		"a\xff":                "b",
		"\xff":                 "",
		"\x80":                 "\x81",
	} {
		assert.Equal(t, keys.Range{Lo: prefix, Hi: hi}, keys.PrefixRange(prefix), "%q", prefix)
	}
	rapid.Check(t, func(t *rapid.T) {
		prefix, s := rapid.String().Draw(t, "prefix"), rapid.String().Draw(t, "s")
		r := keys.PrefixRange(prefix)
		require.True(t, utf8.ValidString(r.Hi))
		require.True(t, r.Contains(prefix+s))
		require.Equal(t, strings.HasPrefix(s, prefix), r.Contains(s))
	})
	require.True(t, keys.PrefixRange("").Contains(""))
}

// TestRange_IsHalfOpen compares ranges with comparing values, for a field that is last, in the middle, ascending
// and descending, between neighbors that must not be caught.
func TestRange_IsHalfOpen(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	words := []string{"a", "ab", "a#", "a$", "a0", "b", "B", "a#b", "é", "a~", "\x00", " a"}
	number := func() any { return rng.Int64N(12) - 6 }
	for _, tc := range []struct {
		text string
		draw func() any
		all  func(a, b any) int
	}{
		{"K#{k}#{v}", func() any { return words[rng.IntN(len(words))] }, compareStrings},
		{"K#{k}#{v}#{z}", func() any { return words[rng.IntN(len(words))] }, compareStrings},
		{"K#{k}#{v:raw}#END", func() any { return strings.ReplaceAll(words[rng.IntN(len(words))], "#", "%") }, compareStrings},
		{"K#{k}#{v:id2}{z}", func() any { return words[1:5][rng.IntN(4)] }, compareStrings},
		{"K#{k}#{v:int1}", number, compareNumbers},
		{"K#{k}#{v:int1:desc}", number, compareNumbers},
		{"K#{k}#{v:int1}#{z}", number, compareNumbers},
		{"K#{k}#{v:int1:desc}{z}", number, compareNumbers},
	} {
		t.Run(tc.text, func(t *testing.T) {
			tpl := keys.MustTemplate(tc.text)
			inside := 0
			for range 3000 {
				lo, hi, v := tc.draw(), tc.draw(), tc.draw()
				if tc.all(lo, hi) > 0 {
					lo, hi = hi, lo
				}
				values := []any{[]string{"j", "k", "k", "k", "k0", "l"}[rng.IntN(6)], v, "#z"}
				key, err := tpl.Format(values[:len(tpl.Fields())]...)
				require.NoError(t, err)
				ours, above, below := values[0] == "k", tc.all(v, lo) >= 0, tc.all(v, hi) < 0

				between, err := tpl.Between(lo, hi, "k")
				require.NoError(t, err)
				require.Equal(t, ours && above && below, between.Contains(key), "%q in [%v, %v)", key, lo, hi)
				from, err := tpl.From(lo, "k")
				require.NoError(t, err)
				require.Equal(t, ours && above, from.Contains(key), "%q from %v", key, lo)
				until, err := tpl.Until(hi, keys.Values{"k": "k"})
				require.NoError(t, err)
				require.Equal(t, ours && below, until.Contains(key), "%q until %v", key, hi)
				if ours && above && below {
					inside++
				}
				if tc.all(lo, hi) < 0 {
					_, err = tpl.Between(hi, lo, "k")
					require.ErrorIs(t, err, keys.ErrRange)
				}
			}
			require.Greater(t, inside, 100)
		})
	}
}

func compareStrings(a, b any) int { return cmp.Compare(a.(string), b.(string)) }
func compareNumbers(a, b any) int { return cmp.Compare(a.(int64), b.(int64)) }

func TestRange_RefusesNamingTheField(t *testing.T) {
	for _, tc := range []struct {
		text    string
		delim   byte
		lo      any
		leading []any
		field   string
		cause   error
	}{
		{"{a}#{b}", '#', "x", []any{"1", "2"}, "", keys.ErrCount},
		{"{a}#{b}", '#', "x", []any{"1", "2", "3"}, "", keys.ErrCount},
		{"META", '#', "x", nil, "", keys.ErrCount},
		{"{a}#{b}", '#', 1, nil, "a", keys.ErrType},
		{"{a}#{b}", '#', "", nil, "a", keys.ErrEmpty},
		{"{a}#{b}", '#', "x", []any{""}, "a", keys.ErrEmpty},
		{"{a}#{b}", '#', "John Smith", nil, "a", keys.ErrNoPrefix},
		{"{a:raw}#{b}", '#', "John Smith", nil, "a", keys.ErrNoPrefix},
		{"{a}/{b}", '/', "x/", nil, "a", keys.ErrNoPrefix},
		{"v{a:raw}", '#', 9, nil, "a", keys.ErrNoPrefix},
		{"{a}#{x:shard4}", '#', "x", []any{"1"}, "x", keys.ErrNoPrefix},
		{"{x:shard4}#{a}#{x}", '#', "x", nil, "x", keys.ErrNoPrefix},
		{"{x:shard4}#{x}", '#', "x", nil, "x", keys.ErrNoPrefix},
		{"{a}#{b}", '#', strings.Repeat("x", 2049), nil, "a", keys.ErrTooLong},
		{"{a}#{b}", '#', strings.Repeat("#", 1025), nil, "a", keys.ErrTooLong},
		{"{a}#LONG#{b}", '#', "x", []any{strings.Repeat("x", 2044)}, "b", keys.ErrTooLong},
	} {
		tpl := keys.MustTemplate(tc.text, keys.WithDelimiter(tc.delim))
		calls := map[string]error{}
		_, calls["from"] = tpl.From(tc.lo, tc.leading...)
		_, calls["until"] = tpl.Until(tc.lo, tc.leading...)
		_, calls["between"] = tpl.Between(tc.lo, tc.lo, tc.leading...)
		for op, err := range calls {
			require.ErrorIs(t, err, tc.cause, "%s %s", tc.text, op)
			var ke *keys.Error
			require.ErrorAs(t, err, &ke)
			assert.Equal(t, op, ke.Op)
			assert.Equal(t, tc.field, ke.Field, "%s %s", tc.text, op)
		}
	}
	_, err := keys.MustTemplate("{a}#{b}").Between("x", 1)
	require.ErrorIs(t, err, keys.ErrType)
	// A first byte below the delimiter, a last field, and an escape whose second byte is low are all fine.
	for text, bound := range map[string]string{"{a}#{b}": " x", "{a}": "John Smith", "{a}|{b}": "x|}"} {
		_, err := keys.MustTemplate(text, keys.WithDelimiter("#|"[strings.Count(text, "|")])).From(bound)
		require.NoError(t, err, text)
	}
}
