package keys_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
)

func TestOverlap_TellsWhetherTemplatesShareAKey(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"ORDER#{id}", "ORDER#{id}", true},
		{"ORDER#{id}", "ORDER#{other:uint4}", true},
		{"ORDER#{id}", "CUSTOMER#{id}", false},
		{"ORDER#{id}", "ORDERS#{id}", false},
		{"ORDER#{id}", "ORDER", false},
		{"ORDER#{id}", "ORDER#", false},
		{"ORDER#{id}", "ORDER#META", true},
		{"ORDER#{id}", "ORDER#{id}#LINE#{no:uint4}", false},
		{"ORDER#{id:raw}", "ORDER#{id}#LINE#{no:uint4}", false},
		{"ORDER#{id:raw}", "ORDER#x$", true},
		{"ORDER#{id}", "ORDER#x$", false},
		{"ORDER#{id:rest}", "ORDER#{id}#LINE#{no:uint4}", true},
		{"ORDER#{id}#{r:rest}", "ORDER#{id:raw}", false},
		{"ORDER#{r:rest}", "LINE#{r:rest}", false},
		{"{a:raw}#{r:rest}", "{a:raw}", false},
		{"ORDER#{id}", "ORDER#x$0", true},
		{"{kind}#{id}", "ORDER#{id}", true},
		{"{kind}#{id}", "{a}#{b}#{c}", false},
		{"A#{n:uint4}", "A#{n:uint5}", false},
		{"A#{n:uint4}", "A#{n:int3}", true},
		{"A#{n:uint4}", "A#META", false},
		{"A#{n:uint4}", "A#2024", true},
		{"A#{n:int4}", "A#2024x", false},
		{"A#{n:int3}", "A#2024", false},
		{"A#{n:int3:desc}", "A#2024", false},
		{"A#{n:int3:desc}", "A#9024", true},
		{"A#{d:date}", "A#{n:uint10}", false},
		{"A#{d:date}", "A#{d:time}", false},
		{"A#{d:date}T{n:uint2}", "A#{d:date:desc}T{x}", true},
		{"A#{t:time-s}", "A#{t:time-ms}", false},
		{"A#{t:time-s}", "A#{t:time-s:desc}", true},
		{"A#{i:id3}", "A#{i:id4}", false},
		{"A#{i:id3}", "A#abc", true},
		{"A#{i:id3}", "A#a$0c", true},
		{"A#{i:id3}", "A#abcd", false},
		{"A#{f:float}", "A#{n:uint16}", true},
		{"A#{f:float}", "A#GGGGGGGGGGGGGGGG", false},
		{"A#{b:bool}", "A#2", false},
		{"A#{b:bool}", "A#{x:shard10}", true},
		{"A#{x:shard10}", "A#{x:shard11}", false},
		{"META", "META", true},
		{"META", "{{META}}", false},
	} {
		a, b := keys.MustTemplate(tc.a), keys.MustTemplate(tc.b)
		assert.Equal(t, tc.want, keys.Overlap(a, b), "%s and %s", a, b)
		assert.Equal(t, tc.want, keys.Overlap(b, a), "%s and %s", b, a)
	}
	// Prefixes and delimiters are part of the keys.
	mine := keys.MustTemplate("A#{a}", keys.WithPrefix("mine/"))
	yours := keys.MustTemplate("A#{a}", keys.WithPrefix("yours/"))
	assert.False(t, keys.Overlap(mine, yours))
	assert.True(t, keys.Overlap(keys.MustTemplate("A#{a}"), keys.MustTemplate("A#{a}|{b}", keys.WithDelimiter('|'))))
	// The text of a time has delimiters that are no structure if the delimiter is one of its punctuation marks.
	colon := keys.WithDelimiter(':')
	assert.True(t, keys.Overlap(keys.MustTemplate("{t:time-s}", colon), keys.MustTemplate("{a}:{b}:{c}", colon)))
	assert.False(t, keys.Overlap(keys.MustTemplate("{t:time-s}", colon), keys.MustTemplate("{a}:{b}", colon)))
	assert.True(t, keys.Overlap(keys.MustTemplate("{at:key}"), mine), "a whole key can be any")
	assert.True(t, keys.Overlap(nil, mine))
}

// A prefix may end anywhere, as those of existing tables do. What separates is not the delimiter but that neither
// prefix begins with the other.
func TestOverlap_PrefixesSeparateUnlessOneBeginsWithAnother(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"shop", "shop2", true}, // {id} of the first can be "2…"
		{"shop#", "shop2#", false},
		{"shop#", "shop2", false},
		{"shop/", "shop2/", false},
		{"shop", "store", false},
		{"", "shop#", false}, // a value has no delimiter inside
		{"", "shop", true},
	} {
		a, err := keys.Scheme{Prefix: tc.a}.PKTemplate("{id}")
		require.NoError(t, err)
		b, err := keys.Scheme{Prefix: tc.b}.PKTemplate("{id}")
		require.NoError(t, err)
		assert.Equal(t, tc.want, keys.Overlap(a, b), "%q and %q", tc.a, tc.b)
		for _, value := range []string{"x", "#", "2x", "2#x"} {
			key, err := a.Format(value)
			require.NoError(t, err)
			if b.Matches(key) {
				assert.True(t, tc.want, "both have %q", key)
			}
			back, err := a.Parse(key)
			require.NoError(t, err)
			assert.Equal(t, []any{value}, back, "within a template a prefix is literal text like any other")
		}
	}
}

func TestOverlap_OfLongTemplatesIsQuick(t *testing.T) {
	long := keys.MustTemplate("{a:id2047}x")
	assert.True(t, keys.Overlap(long, keys.MustTemplate("{a:id2047}x")))
	assert.False(t, keys.Overlap(long, keys.MustTemplate("{a:id2047}y")))
}

// A key that two templates both accept refutes a claim that they are disjoint. The keys are made to collide: they are
// drawn from one template and offered to the other.
func TestOverlap_NeverDeniesACommonKey(t *testing.T) {
	part := rapid.SampledFrom([]string{"A", "0", "1#", "#", "$0", "{{", "{s}#", "{r:raw}#", "{g:rest}", "{i:id1}", "{j:id2}", "{n:uint1}", "{m:int1}", "{b:bool}", "{d:date}", "{h:shard4}"})
	value := func(t *rapid.T, codec string) any {
		text := rapid.SampledFrom([]string{"0", "1", "A", "#", "$", "{", "01", "A1", "$0", "#0", "10#"})
		switch {
		case codec == "string" || codec == "rest" || strings.HasPrefix(codec, "shard"):
			return text.Draw(t, "string")
		case codec == "raw":
			return strings.ReplaceAll(text.Draw(t, "raw"), "#", "0")
		case codec == "id1":
			return rapid.SampledFrom([]string{"0", "1", "A", "#", "$"}).Draw(t, "id1")
		case codec == "id2":
			return rapid.SampledFrom([]string{"00", "01", "A1", "#0", "$0"}).Draw(t, "id2")
		case codec == "bool":
			return rapid.Bool().Draw(t, "bool")
		case codec == "date":
			return time.Unix(0, 0)
		default:
			return rapid.IntRange(0, 2).Draw(t, "number")
		}
	}
	compile := func(t *rapid.T, label string) (*keys.Template, []string) {
		for {
			parts := rapid.SliceOfN(part, 1, 4).Draw(t, label)
			if tpl, err := keys.NewTemplate(strings.Join(parts, "")); err == nil {
				return tpl, parts
			}
		}
	}
	// like compiles a template that differs in one part: such templates often have keys in common.
	like := func(t *rapid.T, parts []string) *keys.Template {
		for {
			other := slices.Clone(parts)
			other[rapid.IntRange(0, len(parts)-1).Draw(t, "differs")] = part.Draw(t, "in")
			if tpl, err := keys.NewTemplate(strings.Join(other, "")); err == nil {
				return tpl
			}
		}
	}
	common := 0
	rapid.Check(t, func(t *rapid.T) {
		a, parts := compile(t, "a")
		b, _ := compile(t, "b")
		if rapid.Bool().Draw(t, "alike") {
			b = like(t, parts)
		}
		overlap := keys.Overlap(a, b)
		require.Equal(t, overlap, keys.Overlap(b, a))
		require.True(t, keys.Overlap(a, a))
		for range 8 {
			values := []any{}
			for _, f := range a.Fields() {
				values = append(values, value(t, f.Codec))
			}
			key, err := a.Format(values...)
			require.NoError(t, err)
			if b.Matches(key) {
				common++
				require.True(t, overlap, "%s and %s both have %q", a, b, key)
			}
		}
	})
	testkit.Met(t, common, "a key of both") // it is some hundred
}
