package keys_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
)

// splitTemplates take two strings in different surroundings. The last two have an escape byte below and a brace.
var splitTemplates = []struct {
	text  string
	delim byte
}{
	{"{a}#{b}", '#'},
	{"T#{a}#O#{b}", '#'},
	{"{a}#0{b}#", '#'},
	{"{a}/$1#{b}", '/'},
	{"{a}|{b}", '|'},
}

// TestEscape_KeysResplit cuts strings of hostile bytes in two at every place. No two cuts may give one key, every key
// must give its own cut back, and the order of keys must be the order of values wherever the package promises it.
func TestEscape_KeysResplit(t *testing.T) {
	strs := testkit.IfSmall(100_000, 1_000_000)
	templates := make([]*keys.Template, len(splitTemplates))
	singles := make([]*keys.Template, len(splitTemplates))
	for i, s := range splitTemplates {
		templates[i] = keys.MustTemplate(s.text, keys.WithDelimiter(s.delim))
		singles[i] = keys.MustTemplate("{a}", keys.WithDelimiter(s.delim))
	}
	alphabet := []string{"#", "$", "0", "1", "/", ".", "|", "}", "{", "T#", "#O#", "a", "b", " ", "\x00", "~", "\u00e9", "\u65e5", "\U0010ffff"}
	rng := rand.New(rand.NewPCG(1, 2))
	type cut struct{ a, b, key string }
	var cases, orders, tuples, collisions, breaks int
	var cuts []cut
	previous := make([]struct{ value, key string }, len(templates))
	var b strings.Builder
	for n := range strs {
		b.Reset()
		for range 2 + rng.IntN(6) {
			b.WriteString(alphabet[rng.IntN(len(alphabet))])
		}
		s := b.String()
		which := n % len(templates)
		tpl, delim := templates[which], splitTemplates[which].delim

		// The order of single values has no conditions.
		key, err := singles[which].Format(s)
		require.NoError(t, err)
		if p := previous[which]; p.key != "" {
			orders++
			if cmp.Compare(s, p.value) != cmp.Compare(key, p.key) {
				breaks++
			}
		}
		previous[which].value, previous[which].key = s, key

		cuts = cuts[:0]
		for i := range s {
			if i == 0 {
				continue
			}
			c := cut{a: s[:i], b: s[i:]}
			c.key, err = tpl.Format(c.a, c.b)
			require.NoError(t, err)
			for _, other := range cuts {
				if other.key == c.key {
					collisions++
				}
				// The order of tuples has one.
				if sortsAbove(other.a, delim) && sortsAbove(c.a, delim) && sortsAbove(c.b, delim) && sortsAbove(other.b, delim) {
					tuples++
					if cmp.Or(cmp.Compare(c.a, other.a), cmp.Compare(c.b, other.b)) != cmp.Compare(c.key, other.key) {
						breaks++
					}
				}
			}
			cuts = append(cuts, c)
			back, err := tpl.Parse(c.key)
			require.NoError(t, err)
			if !slices.Equal(back, []any{c.a, c.b}) {
				collisions++
			}
			cases++
		}
	}
	require.Zero(t, collisions)
	require.Zero(t, breaks)
	require.Greater(t, tuples, cases/100, "the condition of tuple order must not exclude all")
	t.Logf("%d strings, %d splits, %d collisions; %d value orders and %d tuple orders compared, %d breaks",
		strs, cases, collisions, orders, tuples, breaks)
}

// sortsAbove is the condition in REFERENCE.md for the order of composite keys.
func sortsAbove(s string, delim byte) bool {
	escapeBelow := delim == '/' // of the delimiters above
	for i := range len(s) {
		if s[i] < delim || escapeBelow && s[i] == delim {
			return false
		}
	}
	return true
}

// All pairs of short strings of the bytes that matter, not a sample: no two pairs share a key.
func TestEscape_KeysOfShortStringsAreAllDifferent(t *testing.T) {
	alphabet := []string{"#", "$", "0", "1", "a"}
	words := []string{}
	level := []string{""}
	for range 3 {
		var next []string
		for _, w := range level {
			for _, c := range alphabet {
				next = append(next, w+c)
			}
		}
		words = append(words, next...)
		level = next
	}
	for _, text := range []string{"{a}#{b}", "{a}#0{b}", "{a:id2}{b}", "$1{a}#$0{b}#"} {
		tpl := keys.MustTemplate(text)
		seen := map[string][2]string{}
		for _, a := range words {
			if strings.Contains(text, "id2") && len(a) != 2 {
				continue
			}
			for _, b := range words {
				key, err := tpl.Format(a, b)
				require.NoError(t, err)
				other, dup := seen[key]
				require.False(t, dup, "%s: %q and %q", text, other, [2]string{a, b})
				seen[key] = [2]string{a, b}
			}
		}
		require.GreaterOrEqual(t, len(seen), 25*155)
	}
}
