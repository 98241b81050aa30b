package keys_test

import (
	"cmp"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/keys"
)

// checkOrder requires that keys of two values compare like the values, and the other way with desc.
func checkOrder[T any](t *rapid.T, codec string, a, b T, compare func(a, b T) int) {
	for _, variant := range []struct {
		suffix string
		sign   int
	}{{"", 1}, {":desc", -1}} {
		tpl := keys.MustTemplate("{v:" + codec + variant.suffix + "}")
		ka, err := tpl.Format(a)
		require.NoError(t, err)
		kb, err := tpl.Format(b)
		require.NoError(t, err)
		require.Equal(t, compare(a, b)*variant.sign, cmp.Compare(ka, kb), "%s%s: %v %v", codec, variant.suffix, a, b)
		require.Len(t, ka, tpl.Fields()[0].Width)
		require.Len(t, kb, tpl.Fields()[0].Width)
		for i := range len(ka) {
			require.True(t, ka[i] > ' ' && ka[i] < 0x7f, "keys of numbers stay readable")
		}
		back, err := tpl.Parse(ka)
		require.NoError(t, err)
		require.Zero(t, compare(a, back[0].(T)))
	}
}

func TestCodec_ByteOrderIsValueOrder(t *testing.T) {
	t.Run("uint", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			checkOrder(t, "uint20", rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b"), cmp.Compare[uint64])
			small := rapid.Uint64Range(0, 9999)
			checkOrder(t, "uint4", small.Draw(t, "c"), small.Draw(t, "d"), cmp.Compare[uint64])
		})
	})
	t.Run("int", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			checkOrder(t, "int19", rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b"), cmp.Compare[int64])
			small := rapid.Int64Range(-99, 99)
			checkOrder(t, "int2", small.Draw(t, "c"), small.Draw(t, "d"), cmp.Compare[int64])
		})
	})
	t.Run("float", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			special := rapid.SampledFrom([]float64{
				0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.MaxFloat64,
				-math.MaxFloat64, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64,
			})
			any := rapid.OneOf(special, rapid.Float64())
			checkOrder(t, "float", any.Draw(t, "a"), any.Draw(t, "b"), cmp.Compare[float64])
		})
	})
	t.Run("bool", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			number := map[bool]int{true: 1}
			checkOrder(t, "bool", rapid.Bool().Draw(t, "a"), rapid.Bool().Draw(t, "b"), func(a, b bool) int {
				return cmp.Compare(number[a], number[b])
			})
		})
	})
	t.Run("time", func(t *testing.T) {
		first := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		end := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		rapid.Check(t, func(t *rapid.T) {
			a := time.Unix(rapid.Int64Range(first, end-1).Draw(t, "a"), rapid.Int64Range(0, 1e9-1).Draw(t, "nano a"))
			near := rapid.Int64Range(-3e9, 3e9).Draw(t, "near")
			b := a.Add(time.Duration(near))
			if b.Unix() < first || b.Unix() >= end || rapid.Bool().Draw(t, "far") {
				b = time.Unix(rapid.Int64Range(first, end-1).Draw(t, "b"), rapid.Int64Range(0, 1e9-1).Draw(t, "nano b"))
			}
			compare := func(a, b time.Time) int { return a.Compare(b) }
			checkOrder(t, "time", a, b, compare)
			checkOrder(t, "time-ms", a.Truncate(time.Millisecond), b.Truncate(time.Millisecond), compare)
			checkOrder(t, "time-s", a.Truncate(time.Second), b.Truncate(time.Second), compare)
			checkOrder(t, "date", a.Truncate(24*time.Hour), b.Truncate(24*time.Hour), compare)
		})
	})
	t.Run("id", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			for _, delim := range []byte("#/|") {
				tpl := keys.MustTemplate("{v:id3}", keys.WithDelimiter(delim))
				word := rapid.StringOfN(rapid.RuneFrom([]rune("#$./|}0a ~")), 3, 3, -1)
				a, b := word.Draw(t, "a"), word.Draw(t, "b")
				ka, err := tpl.Format(a)
				require.NoError(t, err)
				kb, err := tpl.Format(b)
				require.NoError(t, err)
				require.Equal(t, cmp.Compare(a, b), cmp.Compare(ka, kb))
			}
		})
	})
}

// A template with every codec, so that the fields' ends are found whatever stands beside them.
func TestCodec_AllSideBySideRoundTrip(t *testing.T) {
	tpl := keys.MustTemplate("X{u:uint5}{i:int7:desc}{f:float}{b:bool}{t:time}{d:date:desc}{c:id4}{s}#{r:raw}#{z}#{last:rest}")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(1, 20, -1)
		raw := text.Filter(func(s string) bool {
			for i := range len(s) {
				if s[i] == '#' {
					return false
				}
			}
			return true
		})
		day := time.Unix(rapid.Int64Range(-60000000000, 250000000000).Draw(t, "t"), 0).UTC()
		values := []any{
			rapid.Uint64Range(0, 99999).Draw(t, "u"), rapid.Int64Range(-9999999, 9999999).Draw(t, "i"),
			rapid.Float64().Draw(t, "f") + 0, rapid.Bool().Draw(t, "b"), day, day.Truncate(24 * time.Hour),
			rapid.StringOfN(rapid.RuneFrom([]rune("#$ab0")), 4, 4, -1).Draw(t, "c"),
			text.Draw(t, "s"), raw.Draw(t, "r"), text.Draw(t, "z"), text.Draw(t, "last"),
		}
		key, err := tpl.Format(values...)
		require.NoError(t, err)
		back, err := tpl.Parse(key)
		require.NoError(t, err)
		require.Equal(t, values, back)
	})
}

func TestCodec_ReadersOfOneTemplateDoNotDisturbEachOther(t *testing.T) {
	tpl := keys.MustTemplate("{a}#{n:uint4}")
	done := make(chan string)
	for i := range 4 {
		go func() {
			for n := range 500 {
				key, err := tpl.Format("x#"+string(rune('a'+i)), n)
				values, err2 := tpl.Parse(key)
				if err != nil || err2 != nil || values[1] != uint64(n) {
					done <- key
					return
				}
			}
			done <- ""
		}()
	}
	for range 4 {
		require.Empty(t, <-done)
	}
}
