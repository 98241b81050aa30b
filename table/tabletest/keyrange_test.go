package tabletest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/expr"
)

// drawValue returns a value from a space in which prefixes, zero bytes and the highest byte meet.
func drawValue(t *rapid.T, a keyAttr) *attr.Value {
	if a.kind == attr.N {
		n, err := attr.ParseNumber(fmt.Sprint(rapid.IntRange(-11, 11).Draw(t, a.name)))
		require.NoError(t, err)
		return attr.Numeric(n)
	}
	text := string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 'a', 0xfe, 0xff}), 1, 3).Draw(t, a.name))
	return &attr.Value{Kind: a.kind, Str: text}
}

func drawItem(t *rapid.T, attrs []keyAttr) attr.Item {
	item := attr.Item{}
	for _, a := range attrs {
		item[a.name] = drawValue(t, a)
	}
	return item
}

func drawSort(t *rapid.T) keySchema {
	var s keySchema
	for i := range rapid.IntRange(1, maxRole).Draw(t, "attributes") {
		kind := rapid.SampledFrom([]attr.Kind{attr.S, attr.N, attr.B}).Draw(t, "kind")
		s.all = append(s.all, keyAttr{fmt.Sprint("r", i), kind})
	}
	return s
}

func encoded(s keySchema, item attr.Item) string {
	return composite(s.sort(), func(a keyAttr) *attr.Value { return item[a.name] })
}

// Encodings of several values compare as the values do, one after the other.
func TestComposite_KeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSort(t)
		x, y := drawItem(t, s.sort()), drawItem(t, s.sort())
		want := 0
		for _, a := range s.sort() {
			c, ok := attr.Compare(x[a.name], y[a.name])
			require.True(t, ok)
			want = cmp.Or(want, c)
		}
		assert.Equal(t, want, strings.Compare(encoded(s, x), encoded(s, y)))
	})
}

// A range holds the keys that satisfy its conditions, and no others.
func TestKeyRange_HoldsWhatSatisfiesItsConditions(t *testing.T) {
	operators := []expr.KeyOp{expr.KeyEq, expr.KeyLt, expr.KeyLe, expr.KeyGt, expr.KeyGe, expr.KeyBetween, expr.KeyBeginsWith}
	rapid.Check(t, func(t *rapid.T) {
		s := drawSort(t)
		item := drawItem(t, s.sort())
		conditions := map[string]expr.KeyTerm{}
		given := rapid.IntRange(0, len(s.sort())).Draw(t, "given")
		want := true
		for i, a := range s.sort()[:given] {
			v := drawValue(t, a)
			if rapid.Bool().Draw(t, "near") {
				v = item[a.name]
			}
			term := expr.KeyTerm{Name: a.name, Op: expr.KeyEq, Values: []*attr.Value{v}}
			if i == given-1 {
				term.Op = rapid.SampledFrom(operators).Draw(t, "operator")
			}
			if term.Op == expr.KeyBeginsWith && a.kind == attr.N {
				term.Op = expr.KeyGe
			}
			if term.Op == expr.KeyBetween {
				term.Values = append(term.Values, drawValue(t, a))
				slices.SortFunc(term.Values, func(x, y *attr.Value) int { c, _ := attr.Compare(x, y); return c })
			}
			conditions[a.name] = term
			want = want && satisfies(item[a.name], term)
		}
		key, r := encoded(s, item), s.rangeOf(conditions)
		assert.Equal(t, want, !r.below(key) && !r.above(key), "%q in %q", key, r)
	})
}

func satisfies(v *attr.Value, t expr.KeyTerm) bool {
	c, _ := attr.Compare(v, t.Values[0])
	switch t.Op {
	case expr.KeyEq:
		return c == 0
	case expr.KeyLt:
		return c < 0
	case expr.KeyLe:
		return c <= 0
	case expr.KeyGt:
		return c > 0
	case expr.KeyGe:
		return c >= 0
	case expr.KeyBetween:
		upper, _ := attr.Compare(v, t.Values[1])
		return c >= 0 && upper <= 0
	}
	return strings.HasPrefix(v.Str, t.Values[0].Str)
}
