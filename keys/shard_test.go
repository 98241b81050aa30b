package keys_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
)

// TestShard_IsFNV1a computes the number as REFERENCE.md describes, with the standard library's hash.
func TestShard_IsFNV1a(t *testing.T) {
	want := func(text string, n uint64) string {
		h := fnv.New64a()
		h.Write([]byte(text))
		sum := h.Sum64()
		return fmt.Sprintf("%0*d", len(strconv.FormatUint(n-1, 10)), uint64(uint32(sum>>32)^uint32(sum))%n)
	}
	at := time.Date(2024, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	for _, tc := range []struct {
		value any
		text  string
	}{
		{"e-1", "e-1"},
		{named("a#b$"), "a#b$"},
		{"é\x00", "é\x00"},
		{42, "42"},
		{uint8(42), "42"},
		{int64(-42), "-42"},
		{int64(math.MinInt64), "-9223372036854775808"},
		{uint64(math.MaxUint64), "18446744073709551615"},
		{1.5, "1.5"},
		{celsius(0.1), "0.10000000149011612"},
		{math.Copysign(0, -1), "0"},
		{1e300, "1e+300"},
		{true, "true"},
		{flag(false), "false"},
		{at, "2024-01-02T02:04:05.000000006Z"},
	} {
		for _, n := range []uint64{2, 10, 11, 16, 100, 1000} {
			tpl := keys.MustTemplate(fmt.Sprintf("{v:shard%d}", n))
			key, err := tpl.Format(tc.value)
			require.NoError(t, err)
			assert.Equal(t, want(tc.text, n), key, "%v", tc.value)
			values, err := tpl.Parse(key)
			require.NoError(t, err)
			assert.Empty(t, values)
		}
	}
}

func TestShard_IsVerifiedWhenItsFieldIsThere(t *testing.T) {
	for _, tc := range []struct {
		codec string
		value any
	}{
		{"string", "x#y"},
		{"raw", "x"},
		{"id2", "$#"},
		{"uint9", 42},
		{"int9", -42},
		{"int9:desc", uint16(42)},
		{"float", celsius(0.1)},
		{"bool", true},
		{"date:desc", time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"time", time.Unix(1, 5)},
	} {
		for _, text := range []string{"{v:shard10}#{v:" + tc.codec + "}", "{v:" + tc.codec + "}#{v:shard10}"} {
			tpl := keys.MustTemplate(text)
			key, err := tpl.Format(tc.value)
			require.NoError(t, err)
			require.Len(t, tpl.Fields(), 1)
			values, err := tpl.Parse(key)
			require.NoError(t, err)
			require.Len(t, values, 1)
			again, err := tpl.Format(values...)
			require.NoError(t, err)
			assert.Equal(t, key, again, "canonical values have the shard of the original")

			at := 0
			if strings.HasSuffix(text, "shard10}") {
				at = len(key) - 1
			}
			matching := 0
			for d := '0'; d <= '9'; d++ {
				if tpl.Matches(key[:at] + string(d) + key[at+1:]) {
					matching++
				}
			}
			assert.Equal(t, 1, matching, "any other number is a forgery")
		}
	}
}

func TestShards_CoverAllKeys(t *testing.T) {
	for _, tc := range []struct {
		text   string
		values []any
		want   []string
	}{
		{"T#{t}#{id:shard3}", []any{"x"}, []string{"T#x#0", "T#x#1", "T#x#2"}},
		{"T#{t}#{id:shard3}", nil, []string{"T#"}},
		{"T#{t}#{id:shard3}#{r}", []any{"x"}, []string{"T#x#0#", "T#x#1#", "T#x#2#"}},
		{"T#{t}#{id:shard3}#{r}", []any{"x", "y"}, []string{"T#x#0#y", "T#x#1#y", "T#x#2#y"}},
		{"T#{t}#{id:shard3}#{r}", []any{keys.Values{"t": "x"}}, []string{"T#x#0#", "T#x#1#", "T#x#2#"}},
		{"T#{t}#{id:shard3}#{r}", []any{keys.Values{"t": "x", "id": "e-1"}}, []string{"T#x#1#"}},
		{"{id:shard2}#{t}#{id}", []any{"x"}, []string{"0#x#", "1#x#"}},
		{"{id:shard2}#{t}#{id}", nil, []string{"0#", "1#"}},
		{"{id:shard2}#{id}", []any{"e-1"}, nil}, // one, the key itself
		{"{id:shard2}", nil, []string{"0", "1"}},
		{"A#{a}#{b}", []any{"x"}, []string{"A#x#"}},
		{"META", nil, []string{"META"}},
	} {
		tpl := keys.MustTemplate(tc.text)
		got, err := tpl.Shards(tc.values...)
		require.NoError(t, err)
		if tc.want == nil {
			key, err := tpl.Format(tc.values...)
			require.NoError(t, err)
			tc.want = []string{key}
		}
		assert.Equal(t, tc.want, got, tc.text)
	}

	tpl := keys.MustTemplate("{id:shard16}#{t}#{id}")
	all, err := tpl.Shards("acme")
	require.NoError(t, err)
	require.Len(t, all, 16)
	hits := make([]int, 16)
	for i := range 16000 {
		key, err := tpl.Format("acme", strconv.Itoa(i))
		require.NoError(t, err)
		found := 0
		for s, prefix := range all {
			if strings.HasPrefix(key, prefix) {
				hits[s]++
				found++
			}
		}
		require.Equal(t, 1, found)
	}
	for s, n := range hits {
		assert.InDelta(t, 1000, n, 200, "shard %d of sequential ids", s)
	}
}

func TestShards_RefuseWhatHasNone(t *testing.T) {
	tpl := keys.MustTemplate("T#{t}#{id:shard3}#{r}")
	for _, tc := range []struct {
		values []any
		field  string
		cause  error
	}{
		{[]any{"x", "y", "z"}, "", keys.ErrCount},
		{[]any{""}, "t", keys.ErrEmpty},
		{[]any{1}, "t", keys.ErrType},
		{[]any{keys.Values{"r": "x"}}, "t", keys.ErrMissing},
		{[]any{keys.Values{"t": "x", "q": "x"}}, "q", keys.ErrUnknownField},
		{[]any{keys.Values{"t": "x", "id": ""}}, "id", keys.ErrEmpty},
	} {
		_, err := tpl.Shards(tc.values...)
		require.ErrorIs(t, err, tc.cause)
		var ke *keys.Error
		require.ErrorAs(t, err, &ke)
		assert.Equal(t, tc.field, ke.Field)
	}
	_, err := keys.MustTemplate("{d:date}{id:shard4}x#{a}").Shards(time.Unix(0, 0))
	require.NoError(t, err)
	_, err = keys.MustTemplate("{d:date}{id:shard4}x{a}").Shards(time.Unix(0, 0))
	require.ErrorIs(t, err, keys.ErrNoPrefix)
	_, err = keys.MustTemplate("A#{a}").Shards("")
	require.ErrorIs(t, err, keys.ErrEmpty)
}
