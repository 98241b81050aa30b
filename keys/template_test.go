package keys_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
)

type (
	named   string
	code    uint16
	celsius float32
	flag    bool
)

func TestTemplate_FormatAndParseAreInverse(t *testing.T) {
	at := time.Date(2024, 2, 29, 23, 59, 58, 123456789, time.UTC)
	zone := time.FixedZone("x", 2*3600)
	for _, tc := range []struct {
		text   string
		values []any
		key    string
		back   []any // nil if the same as values
	}{
		{"PROFILE", nil, "PROFILE", []any{}},
		{"{{x}}#{a}", []any{"1"}, "{x}#1", nil},
		{"{a}", []any{"a#b$c"}, "a$0b$1c", nil},
		{"{a}", []any{"\x00\x7f"}, "\x00\x7f", nil},
		{"{a}#{b.c-d_e}", []any{"x", named("é")}, "x#é", []any{"x", "é"}},
		{"{a:raw}#{b:raw}", []any{"x$0", "y"}, "x$0#y", nil},
		{"{a:id3}{b:id2}", []any{"a#b", "$$"}, "a$0b$1$1", nil},
		{"{a:id3}", []any{"日"}, "日", nil},
		{"{n:uint4}", []any{code(42)}, "0042", []any{uint64(42)}},
		{"{n:uint4}", []any{int8(7)}, "0007", []any{uint64(7)}},
		{"{n:uint4:desc}", []any{42}, "9957", []any{uint64(42)}},
		{"{n:uint20}", []any{uint64(math.MaxUint64)}, "18446744073709551615", nil},
		{"{n:uint20:desc}", []any{uint64(math.MaxUint64)}, "81553255926290448384", nil},
		{"{n:int4}", []any{int64(-1)}, "09999", nil},
		{"{n:int4}", []any{int64(42)}, "10042", nil},
		{"{n:int4}", []any{uint8(42)}, "10042", []any{int64(42)}},
		{"{n:int4:desc}", []any{int64(-1)}, "90000", nil},
		{"{n:int19}", []any{int64(math.MinInt64)}, "00776627963145224192", nil},
		{"{n:int19}", []any{int64(math.MaxInt64)}, "19223372036854775807", nil},
		{"{n:int19:desc}", []any{int64(math.MinInt64)}, "99223372036854775807", nil},
		{"{f:float}", []any{0.0}, "8000000000000000", nil},
		{"{f:float}", []any{math.Copysign(0, -1)}, "8000000000000000", []any{0.0}},
		{"{f:float}", []any{celsius(1.5)}, "bff8000000000000", []any{1.5}},
		{"{f:float}", []any{-1.0}, "400fffffffffffff", nil},
		{"{f:float:desc}", []any{-1.0}, "bff0000000000000", nil},
		{"{f:float}", []any{math.Inf(-1)}, "000fffffffffffff", nil},
		{"{b:bool}", []any{flag(true)}, "1", []any{true}},
		{"{b:bool:desc}", []any{true}, "0", nil},
		{"{t:time}", []any{at}, "2024-02-29T23:59:58.123456789Z", nil},
		{"{t:time}", []any{at.In(zone)}, "2024-02-29T23:59:58.123456789Z", []any{at}},
		{"{t:time-ms}", []any{at.Truncate(time.Millisecond)}, "2024-02-29T23:59:58.123Z", nil},
		{"{t:time-s}", []any{at.Truncate(time.Second)}, "2024-02-29T23:59:58Z", nil},
		{"{t:time-s:desc}", []any{at.Truncate(time.Second)}, "7975-97-70T76:40:41Z", nil},
		{"{t:date}", []any{at.Truncate(24 * time.Hour)}, "2024-02-29", nil},
		{"{t:date}", []any{time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)}, "0000-01-01", nil},
		{"{t:date}", []any{time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}, "9999-12-31", nil},
		{"{t:date}T{n:uint2}{a}", []any{at.Truncate(24 * time.Hour), uint64(3), "x"}, "2024-02-29T03x", nil},
		{"{a}", []any{keys.Values{"a": "x", "other": 1}}, "x", []any{"x"}},
		{"{id:shard7}#{tenant}#{id}", []any{"acme", "e-1"}, "", nil},
		{"{n:uint4}#{n:shard100}", []any{42}, "", []any{uint64(42)}},
		{"{day:date}#{n:shard10}", []any{at.Truncate(24 * time.Hour), 42}, "", []any{at.Truncate(24 * time.Hour)}},
	} {
		t.Run(fmt.Sprintf("%s/%s", tc.text, tc.key), func(t *testing.T) {
			tpl, err := keys.NewTemplate(tc.text)
			require.NoError(t, err)
			assert.Equal(t, tc.text, tpl.String())
			key, err := tpl.Format(tc.values...)
			require.NoError(t, err)
			if tc.key != "" { // TestShard_IsFNV1a is about the others
				assert.Equal(t, tc.key, key)
			}
			assert.True(t, tpl.Matches(key))
			back, err := tpl.Parse(key)
			require.NoError(t, err)
			if tc.back == nil {
				tc.back = tc.values
			}
			assert.Equal(t, tc.back, back)
			buf, err := tpl.Append([]byte("before:"), tc.values...)
			require.NoError(t, err)
			assert.Equal(t, "before:"+key, string(buf))
			named, err := tpl.ParseValues(key)
			require.NoError(t, err)
			assert.Len(t, named, len(back))
			for _, f := range tpl.Fields() {
				_, ok := named[f.Name]
				assert.Equal(t, !f.Computed, ok, f.Name)
			}
		})
	}
}

func TestTemplate_EverySingleDelimiterWorks(t *testing.T) {
	accepted := 0
	at := time.Date(2024, 2, 29, 23, 59, 58, 0, time.UTC)
	for d := range 256 {
		delim := byte(d)
		alnum := delim >= '0' && delim <= '9' || delim >= 'a' && delim <= 'z' || delim >= 'A' && delim <= 'Z'
		want := delim > ' ' && delim < 0x7f && !alnum && delim != '{' && delim != '}'
		text := "{a}" + string(rune(delim)) + "{t:time-s}" + string(rune(delim)) + "{b}"
		if !want {
			text = "A"
		}
		tpl, err := keys.NewTemplate(text, keys.WithDelimiter(delim))
		if !want {
			require.ErrorIs(t, err, keys.ErrDelimiter, "%q", delim)
			continue
		}
		require.NoError(t, err, "%q", delim)
		accepted++
		var all strings.Builder
		for c := range 128 {
			all.WriteByte(byte(c))
		}
		key, err := tpl.Format(all.String(), at, string(rune(delim)))
		require.NoError(t, err)
		values, err := tpl.Parse(key)
		require.NoError(t, err)
		require.Equal(t, []any{all.String(), at, string(rune(delim))}, values)
	}
	require.Equal(t, 0x7e-0x21+1-62-2, accepted)
}

func TestFormat_RefusesNamingFieldAndCause(t *testing.T) {
	var nilString *string
	at := time.Date(2024, 2, 29, 12, 0, 0, 1, time.UTC)
	for _, tc := range []struct {
		text   string
		values []any
		field  string
		cause  error
	}{
		{"{a}#{b}", []any{"x", ""}, "b", keys.ErrEmpty},
		{"{a:raw}", []any{""}, "a", keys.ErrEmpty},
		{"{a:id2}", []any{""}, "a", keys.ErrEmpty},
		{"{a}", []any{"\xff"}, "a", keys.ErrInvalidUTF8},
		{"{a}", []any{"#\xc3"}, "a", keys.ErrInvalidUTF8},
		{"{a:raw}", []any{"\xff"}, "a", keys.ErrInvalidUTF8},
		{"{a:id1}", []any{"\xff"}, "a", keys.ErrInvalidUTF8},
		{"{a:raw}", []any{"x#y"}, "a", keys.ErrDelimiter},
		{"{a:id2}", []any{"x"}, "a", keys.ErrRange},
		{"{a:id2}", []any{"xyz"}, "a", keys.ErrRange},
		{"{a}", []any{1}, "a", keys.ErrType},
		{"{a}", []any{nil}, "a", keys.ErrType},
		{"{a}", []any{nilString}, "a", keys.ErrType},
		{"{a}", []any{[]byte("x")}, "a", keys.ErrType},
		{"{n:uint2}", []any{"1"}, "n", keys.ErrType},
		{"{n:uint2}", []any{1.0}, "n", keys.ErrType},
		{"{n:uint2}", []any{nil}, "n", keys.ErrType},
		{"{n:uint2}", []any{100}, "n", keys.ErrRange},
		{"{n:uint2}", []any{-1}, "n", keys.ErrRange},
		{"{n:uint20}", []any{int64(math.MinInt64)}, "n", keys.ErrRange},
		{"{n:int2}", []any{100}, "n", keys.ErrRange},
		{"{n:int2}", []any{-100}, "n", keys.ErrRange},
		{"{n:int19}", []any{uint64(math.MaxInt64) + 1}, "n", keys.ErrRange},
		{"{n:int18}", []any{int64(math.MinInt64)}, "n", keys.ErrRange},
		{"{n:int2}", []any{true}, "n", keys.ErrType},
		{"{f:float}", []any{math.NaN()}, "f", keys.ErrRange},
		{"{f:float}", []any{1}, "f", keys.ErrType},
		{"{b:bool}", []any{1}, "b", keys.ErrType},
		{"{t:time}", []any{"2024-02-29"}, "t", keys.ErrType},
		{"{t:time}", []any{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "t", keys.ErrRange},
		{"{t:date}", []any{time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)}, "t", keys.ErrRange},
		{"{t:time-ms}", []any{at}, "t", keys.ErrPrecision},
		{"{t:time-s}", []any{at}, "t", keys.ErrPrecision},
		{"{t:date}", []any{at.Truncate(time.Second)}, "t", keys.ErrPrecision},
		{"{t:date}", []any{time.Date(2024, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600))}, "t", keys.ErrPrecision},
		{"{a}#{b}", []any{"x"}, "", keys.ErrCount},
		{"{a}#{b}", []any{"x", "y", "z"}, "", keys.ErrCount},
		{"{a}", []any{keys.Values{"a": "x"}, keys.Values{}}, "", keys.ErrCount},
		{"{a}#{b}", []any{keys.Values{"a": "x"}}, "b", keys.ErrMissing},
		{"{a}", []any{keys.Values(nil)}, "a", keys.ErrMissing},
		{"{a}#{id:shard4}", []any{"x", nil}, "id", keys.ErrType},
		{"{a}#{id:shard4}", []any{"x", ""}, "id", keys.ErrEmpty},
		{"{a}#{id:shard4}", []any{"x", "\xff"}, "id", keys.ErrInvalidUTF8},
		{"{a}#{id:shard4}", []any{"x", math.NaN()}, "id", keys.ErrRange},
		{"{a}#{id:shard4}", []any{"x", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "id", keys.ErrRange},
	} {
		t.Run(fmt.Sprintf("%s/%v", tc.text, tc.cause), func(t *testing.T) {
			tpl := keys.MustTemplate(tc.text)
			key, err := tpl.Format(tc.values...)
			require.ErrorIs(t, err, tc.cause)
			assert.Empty(t, key)
			var ke *keys.Error
			require.ErrorAs(t, err, &ke)
			assert.Equal(t, tc.field, ke.Field)
			assert.Equal(t, tc.text, ke.Template)
			dst, err := tpl.Append([]byte("kept"), tc.values...)
			require.ErrorIs(t, err, tc.cause)
			assert.Equal(t, "kept", string(dst))
		})
	}
}

func TestParse_RefusesWhatFormatCannotProduce(t *testing.T) {
	for text, bad := range map[string][]string{
		"PROFILE":          {"", "PROFIL", "PROFILES"},
		"ORDER#{id}":       {"ORDER#", "ORDER", "order#1", "ORDER#1#", "ORDER#1#2", "ORDER#$", "ORDER#$2", "ORDER#a$", "ORDER#\xff", "ORDER#$0\xff"},
		"{a}#END":          {"#END", "x#EN", "x#ENDE", "x"},
		"{a:raw}#":         {"#", "x", "x##", "\xff#"},
		"{a:id2}":          {"a", "abc", "a$", "a#", "a$2", "é\xff"},
		"{a:id1}{b}":       {"é", "a", "$0"},
		"{n:uint3}":        {"12", "1234", "-12", "12a", "１２"},
		"{n:uint20}":       {"18446744073709551616", "99999999999999999999"},
		"{n:uint20:desc}":  {"81553255926290448383", "00000000000000000000"},
		"{n:int2}":         {"000", "200", "1-1", "10"},
		"{n:int2:desc}":    {"999", "799"},
		"{n:int19}":        {"19223372036854775808", "00776627963145224191", "00000000000000000000"},
		"{f:float}":        {"BFF0000000000000", "7fffffffffffffff", "fff8000000000000", "0007ffffffffffff", "bff000000000000", "bff000000000000g"},
		"{b:bool}":         {"2", "", "t", "/"},
		"{t:date}":         {"2024-02-30", "2023-02-29", "2024-13-01", "2024-00-01", "2024-01-00", "2024/01/01", "2024-01-1", "+024-01-01"},
		"{t:time-s}":       {"2024-01-01T24:00:00Z", "2024-01-01T23:60:00Z", "2024-01-01T23:00:60Z", "2024-01-01t00:00:00Z", "2024-01-01T00:00:00z", "2024-01-01 00:00:00Z"},
		"{t:time-ms}":      {"2024-01-01T00:00:00.00Z", "2024-01-01T00:00:00,000Z"},
		"{t:time}":         {"2024-01-01T00:00:00Z"},
		"{t:date:desc}":    {"2024-01-01", "7975-97-68"},
		"{id:shard4}#{id}": {"0#e-1", "1#e-1", "3#e-1", "4#e-1", "#e-1"},
		"T#{id:shard12}":   {"T#12", "T#1", "T#001", "T#"},
	} {
		tpl := keys.MustTemplate(text)
		for _, key := range bad {
			values, err := tpl.Parse(key)
			require.ErrorIs(t, err, keys.ErrNoMatch, "%s accepts %q", text, key)
			require.Nil(t, values)
			require.False(t, tpl.Matches(key))
			named, err := tpl.ParseValues(key)
			require.ErrorIs(t, err, keys.ErrNoMatch)
			require.Nil(t, named)
		}
	}
}

func TestTemplate_ATenantCannotForgeAnotherTenantsOrder(t *testing.T) {
	order := keys.MustTemplate("TENANT#{tenant}#ORDER#{seq}")
	tenant := keys.MustTemplate("TENANT#{tenant}")
	victim, err := order.Format("a", "1")
	require.NoError(t, err)
	for _, forged := range []string{"a#ORDER#1", "a$0ORDER$01", "a$", "#", "$", "$0", "a#ORDER#1$", "\x00#", "a#ORDER"} {
		key, err := tenant.Format(forged)
		require.NoError(t, err)
		assert.NotEqual(t, victim, key)
		assert.False(t, order.Matches(key), forged)
		for _, seq := range []string{"1", "#1", "ORDER#1", "x"} {
			key, err := order.Format(forged, seq)
			require.NoError(t, err)
			assert.NotEqual(t, victim, key)
			values, err := order.Parse(key)
			require.NoError(t, err)
			assert.Equal(t, []any{forged, seq}, values)
		}
	}
}

func TestError_NeverContainsValues(t *testing.T) {
	const canary = "CANARY77"
	at := time.Date(7777, 7, 7, 7, 7, 7, 777777777, time.UTC)
	tpl := keys.MustTemplate("{a}#{i:id3}{n:uint2}{t:date}{r:raw}#{s:shard5}", keys.WithLimit(40))
	date := at.Truncate(24 * time.Hour)
	ok := func() []any { return []any{canary, "abc", 1, date, "x", canary} }
	var failures []error
	for i, bad := range [][]any{
		{canary + "\xff", strings.Repeat(canary, 10), 777777, struct{ S string }{canary}, nil},
		{canary, canary + "\xff"},
		{777777, -777777, canary, 7777.77},
		{at, canary},
		{canary + "#", canary + "\xff", 7777.77},
		{canary + "\xff", &at, []string{canary}},
	} {
		for _, v := range bad {
			values := ok()
			values[i] = v
			_, err := tpl.Format(values...)
			failures = append(failures, err)
			_, err = tpl.From(v, ok()[:i]...)
			failures = append(failures, err)
			_, err = tpl.Prefix(values[:i+1]...)
			failures = append(failures, err)
		}
	}
	for _, key := range []string{canary, canary + "#abc77", canary + "#abc777777-77-77x#1", canary + "#\xff"} {
		_, err := tpl.Parse(key)
		failures = append(failures, err)
	}
	failures = append(failures, keys.NewKey(canary, canary+"\xff").Validate(), keys.NewKey(canary, strings.Repeat(canary, 200)).Validate())
	for _, err := range failures {
		require.Error(t, err)
		var ke *keys.Error
		require.ErrorAs(t, err, &ke)
		assert.NotContains(t, err.Error(), canary)
		assert.NotContains(t, err.Error(), "7777")
		assert.True(t, strings.HasPrefix(err.Error(), "keys: "), err.Error())
		assert.ErrorIs(t, err, ke.Err)
	}
}

func TestTemplate_TheZeroValueIsAnErrorAndNotAnEmptyKey(t *testing.T) {
	for _, tpl := range []*keys.Template{nil, {}} {
		calls := map[string]error{}
		_, calls["Format"] = tpl.Format()
		_, calls["Append"] = tpl.Append(nil)
		_, calls["Parse"] = tpl.Parse("")
		_, calls["ParseValues"] = tpl.ParseValues("")
		_, calls["Prefix"] = tpl.Prefix()
		_, calls["Range"] = tpl.Range()
		_, calls["Between"] = tpl.Between(1, 2)
		_, calls["From"] = tpl.From(1)
		_, calls["Until"] = tpl.Until(1)
		_, calls["Shards"] = tpl.Shards()
		for name, err := range calls {
			assert.Error(t, err, name)
		}
		assert.False(t, tpl.Matches(""))
		assert.Empty(t, tpl.Fields())
		assert.Empty(t, tpl.String())
		assert.True(t, keys.Overlap(tpl, keys.MustTemplate("A")))
	}
}

func TestTemplate_AWholeKeyStandsAlone(t *testing.T) {
	t.Parallel()
	scheme := keys.Scheme{Prefix: "shop/"}
	tpl, err := scheme.PKTemplate("{at:key}")
	require.NoError(t, err)
	key, err := tpl.Format("shop/TENANT#a$b#ORDER#1")
	require.NoError(t, err)
	assert.Equal(t, "shop/TENANT#a$b#ORDER#1", key, "neither escaped nor prefixed")
	values, err := tpl.Parse(key)
	require.NoError(t, err)
	assert.Equal(t, []any{key}, values)
	_, err = tpl.Format("")
	require.ErrorIs(t, err, keys.ErrEmpty)
	assert.True(t, keys.Overlap(tpl, keys.MustTemplate("ORDER#{id:uint4}")))
	for _, text := range []string{"X{at:key}", "{at:key}X", "{a}#{at:key}", "{at:key:desc}"} {
		_, err := keys.NewTemplate(text)
		require.ErrorIs(t, err, keys.ErrSyntax, text)
	}
}

// Keys that other programs concatenated by hand come out byte for byte, and what they could not have
// told apart is refused instead of being written in another form.
func TestTemplate_ReproducesKeysMadeByHand(t *testing.T) {
	at := time.Date(2024, 3, 1, 12, 0, 0, 5e6, time.UTC)
	for name, tc := range map[string]struct {
		scheme  keys.Scheme
		text    string
		values  []any
		byHand  string
		refused []any // in place of the first value
	}{
		"raw keeps the escape byte": {
			keys.Scheme{}, "USER#{id:raw}", []any{"a$0b"}, "USER#" + "a$0b", []any{"a#b", "#", ""},
		},
		"a slash": {
			keys.Scheme{Delimiter: '/', Prefix: "acme/"},
			"users/{id:raw}/orders/{no:raw}",
			[]any{"u.1", "7"},
			"acme/" + "users/" + "u.1" + "/orders/" + "7",
			[]any{"a/b", "/"},
		},
		"two bytes": {
			keys.Scheme{Delimiter: ':'},
			"ORG::{org:raw}::USER::{user:raw}",
			[]any{"o-1", "ann@example.org"},
			"ORG::" + "o-1" + "::USER::" + "ann@example.org",
			[]any{"a::b", "a:b", ":"},
		},
		"no delimiter at the end of the prefix": {
			keys.Scheme{Delimiter: '_', Prefix: "v2"}, "cust_{id:raw}", []any{"77"}, "v2cust_" + "77", []any{"7_7"},
		},
		"an address with the delimiter": {
			keys.Scheme{},
			"{country:raw}#{city:raw}#{address:rest}",
			[]any{"VE", "San Cristóbal", "Carrera 22 #8-35"},
			"VE" + "#" + "San Cristóbal" + "#" + "Carrera 22 #8-35",
			[]any{"V#E", ""},
		},
		"a number": {
			keys.Scheme{}, "e#{no:raw}#v{version:raw}", []any{7, uint64(math.MaxUint64)}, fmt.Sprintf("e#%d#v%d", 7, uint64(math.MaxUint64)), []any{7.5, true},
		},
		"a number below 0": {
			keys.Scheme{}, "{no:raw}", []any{int64(math.MinInt64)}, fmt.Sprint(int64(math.MinInt64)), nil,
		},
		"a number and a delimiter that could be its sign": {
			keys.Scheme{Delimiter: '-'}, "e-{no:raw}-{b:raw}", []any{int8(7), "x"}, "e-7-x", []any{-7, int8(-7)},
		},
		"an ISO time, a padded number": {
			keys.Scheme{Delimiter: '|'},
			"{at:time-ms}|{no:uint6}",
			[]any{at, 42},
			at.Format("2006-01-02T15:04:05.000Z") + "|" + fmt.Sprintf("%06d", 42),
			[]any{at.Add(1), "x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tpl, err := tc.scheme.PKTemplate(tc.text)
			require.NoError(t, err)
			key, err := tpl.Format(tc.values...)
			require.NoError(t, err)
			assert.Equal(t, tc.byHand, key)
			assert.True(t, tpl.Matches(tc.byHand))
			back, err := tpl.Parse(tc.byHand)
			require.NoError(t, err)
			assert.Len(t, back, len(tc.values))
			again, err := tpl.Format(back...)
			require.NoError(t, err)
			assert.Equal(t, tc.byHand, again)
			for i, v := range tc.refused {
				_, err := tpl.Format(append([]any{v}, tc.values[1:]...)...)
				var refused *keys.Error
				require.ErrorAs(t, err, &refused, "value %d", i)
				assert.NotEmpty(t, refused.Field)
			}
		})
	}
}
