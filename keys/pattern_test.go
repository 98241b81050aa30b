package keys_test

import (
	"errors"
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
)

func only(t require.TestingT, tpl *keys.Template, field, pattern string) *keys.Template {
	narrow, err := tpl.Only(field, pattern)
	require.NoError(t, err)
	return narrow
}

func except(t require.TestingT, tpl *keys.Template, field, pattern string) *keys.Template {
	narrow, err := tpl.Except(field, pattern)
	require.NoError(t, err)
	return narrow
}

func TestOnly_NarrowsATemplate(t *testing.T) {
	wide := keys.MustTemplate("A#{id}#{n:uint3}")
	digits := only(t, wide, "id", "[0-9]{1,3}")
	assert.Equal(t, "A#{id}#{n:uint3}", digits.String())
	assert.Equal(t, wide.Fields(), digits.Fields())
	for _, tc := range []struct {
		tpl  *keys.Template
		id   string
		want bool
	}{
		{wide, "x", true},
		{digits, "123", true},
		{digits, "1234", false},
		{digits, "x", false},
		{digits, "12x", false},
		{except(t, wide, "id", "[0-9]{1,3}"), "123", false},
		{except(t, wide, "id", "[0-9]{1,3}"), "1234", true},
		{except(t, digits, "id", "0+"), "000", false},
		{except(t, digits, "id", "0+"), "100", true},
		{only(t, wide, "id", `a\$0b`), "a#b", true}, // as it is escaped
		{only(t, wide, "id", "a#b"), "a#b", false},
		{only(t, wide, "n", "00[0-4]"), "x", true},
		{only(t, wide, "n", "[1-9]..?.?"), "x", false},
		{only(t, wide, "id", "(?i)order|ß+"), "oRdEr", true},
		{only(t, wide, "id", "(?i)order|ß+"), "ßßß", true},
		{only(t, wide, "id", "(?i)k"), "\u212a", true},
		{only(t, wide, "id", "a.c"), "a\nc", false},
		{only(t, wide, "id", "(?s)a.c"), "a\nc", true},
		{only(t, wide, "id", ""), "x", false},
		{except(t, wide, "id", ""), "x", true},
	} {
		key, err := wide.Format(tc.id, 3)
		require.NoError(t, err)
		assert.Equal(t, tc.want, tc.tpl.Matches(key), "%q", tc.id)
		values, parseErr := tc.tpl.Parse(key)
		formatted, formatErr := tc.tpl.Format(tc.id, 3)
		prefix, prefixErr := tc.tpl.Prefix(tc.id)
		if tc.want {
			require.NoError(t, errors.Join(parseErr, formatErr, prefixErr), "%q", tc.id)
			assert.Equal(t, []any{tc.id, uint64(3)}, values)
			assert.Equal(t, key, formatted)
			assert.Equal(t, key[:len(key)-3], prefix)
			continue
		}
		require.ErrorIs(t, parseErr, keys.ErrNoMatch, "%q", tc.id)
		require.ErrorIs(t, formatErr, keys.ErrNoMatch, "%q", tc.id)
	}
	var refused *keys.Error
	_, err := digits.Format("secret", 3)
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "id", refused.Field)
	assert.NotContains(t, err.Error(), "secret")
	assert.True(t, wide.Matches("A#x#003"), "the template that was narrowed stays as it is")
}

func TestOnly_RefusesPatternsThatCannotBe(t *testing.T) {
	tpl := keys.MustTemplate("{id}#{of:shard8}")
	for _, tc := range []struct {
		field, pattern string
		want           error
	}{
		{"id", "[", keys.ErrSyntax},
		{"id", "^a", keys.ErrSyntax},
		{"id", "a$", keys.ErrSyntax},
		{"id", `\ba`, keys.ErrSyntax},
		{"id", `\z`, keys.ErrSyntax},
		{"id", "a(?m:^b)?", keys.ErrSyntax},
		{"other", "a", keys.ErrUnknownField},
		{"of", "a", keys.ErrUnknownField},
		{"", "a", keys.ErrUnknownField},
		{"id", "(a|b)*a(a|b){12}", keys.ErrRange},
		{"id", `\pL{200}`, keys.ErrRange},
		{"id", "[0-9]{1000}", keys.ErrRange},
	} {
		_, err := tpl.Only(tc.field, tc.pattern)
		require.ErrorIs(t, err, tc.want, tc.pattern)
		_, err = tpl.Except(tc.field, tc.pattern)
		require.ErrorIs(t, err, tc.want, tc.pattern)
	}
	_, err := (*keys.Template)(nil).Only("id", "a")
	require.Error(t, err)
}

func TestOverlap_KnowsPatterns(t *testing.T) {
	id, order, contact := keys.MustTemplate("{id}"), keys.MustTemplate("ORDER"), keys.MustTemplate("{contact}")
	digits, letters := only(t, id, "id", "[0-9]+"), only(t, id, "id", "[A-Z]{5}")
	for _, tc := range []struct {
		name string
		a, b *keys.Template
		want bool
	}{
		{"neither", id, id, true},
		{"one", id, digits, true},
		{"digits and letters", digits, letters, false},
		{"a pattern and the rest", digits, except(t, id, "id", "[0-9]+"), false},
		{"a literal and the rest", order, except(t, contact, "contact", "ORDER"), false},
		{"a literal and too little of the rest", order, except(t, contact, "contact", "ORDERS"), true},
		{"a number's digits", keys.MustTemplate("{n:uint5}"), digits, true},
		{"a number's digits and letters", keys.MustTemplate("{n:uint5}"), letters, false},
		{"what both want", except(t, only(t, id, "id", "[a-c]+"), "id", "a+"), except(t, only(t, id, "id", "[b-d]+"), "id", "c+"), true},
		{"what is left", except(t, only(t, id, "id", "[ab]"), "id", "a"), except(t, only(t, id, "id", "[bc]"), "id", "c"), true},
		{"no text at all", id, except(t, id, "id", "(?s:.*)"), false},
		{"without what has a delimiter", id, except(t, keys.MustTemplate("{at:key}"), "at", "[^#]*"), false},
		{"nothing is left", except(t, only(t, id, "id", "b"), "id", "b"), id, false},
		{"beyond ASCII", only(t, id, "id", "[à-ö]+"), only(t, id, "id", "[ø-\U0001F600]+"), false},
		{"beyond ASCII, with one in common", only(t, id, "id", "[à-ö]+"), only(t, id, "id", "[ö-\U0001F600]+"), true},
		{"inside of a key", only(t, keys.MustTemplate("A#{id}#B"), "id", "x+"), keys.MustTemplate("A#xx#{b}"), true},
		{"inside of a key, another", only(t, keys.MustTemplate("A#{id}#B"), "id", "x+"), keys.MustTemplate("A#xy#{b}"), false},
		{"a whole key", only(t, keys.MustTemplate("{at:key}"), "at", "employees#[0-9]+"), keys.MustTemplate("SUPPLIER"), false},
		{"a whole key, of a template", only(t, keys.MustTemplate("{at:key}"), "at", "employees#[0-9]+"), keys.MustTemplate("employees#{id}"), true},
		{"an id", only(t, keys.MustTemplate("{i:id3}"), "i", "a.*"), keys.MustTemplate("b{i:id2}"), false},
		{"an id, in common", only(t, keys.MustTemplate("{i:id3}"), "i", "a.*"), keys.MustTemplate("ab{i:id1}"), true},
	} {
		assert.Equal(t, tc.want, keys.Overlap(tc.a, tc.b), tc.name)
		assert.Equal(t, tc.want, keys.Overlap(tc.b, tc.a), tc.name)
	}
	long := keys.MustTemplate("{i:id2000}")
	assert.True(t, keys.Overlap(only(t, long, "i", "[a-z]{900}.*"), only(t, long, "i", "[0-9]{900}.*")), "too large to look at: no proof")
	less := keys.MustTemplate("{i:id100}")
	assert.False(t, keys.Overlap(only(t, less, "i", "[a-z].*"), only(t, less, "i", "[0-9].*")))
}

// pattern draws what regexp understands, of few letters so that patterns have texts in common.
func pattern(t *rapid.T, depth int) string {
	atom := []string{"a", "b", `\$0`, "ä", "[ab]", "[^a]", "[a-ü]", ".", "(?s:.)", `\d`, "(?i:A)", "(?:)", `\p{Greek}`, `[^\x00-\x{FFFF}]`}
	form := rapid.IntRange(0, 6).Draw(t, "form")
	if depth == 0 || form == 6 {
		return rapid.SampledFrom(atom).Draw(t, "atom")
	}
	a, b := pattern(t, depth-1), pattern(t, depth-1)
	return [...]string{a + b, "(?:" + a + "|" + b + ")", "(" + a + ")*" + b, "(?:" + a + ")+?", "(?:" + a + "){0,2}" + b, "(?:" + a + ")?" + b}[form]
}

var letters = rapid.StringOfN(rapid.SampledFrom([]rune("aAbc0$#äüÄλ\n€\U0001F600\u212aé")), 0, 6, -1)

// A pattern matches what package regexp says that it matches, as a whole.
func TestOnly_PatternsAreThoseOfRegexp(t *testing.T) {
	tpl := keys.MustTemplate("{whole:key}")
	matched := 0
	rapid.Check(t, func(t *rapid.T) {
		p := pattern(t, 3)
		narrow, err := tpl.Only("whole", p)
		if errors.Is(err, keys.ErrRange) {
			t.Skip()
		}
		require.NoError(t, err)
		rest := except(t, tpl, "whole", p)
		reference := regexp.MustCompile(`\A(?:` + p + `)\z`)
		for range 10 {
			text := letters.Draw(t, "text")
			if text == "" || !utf8.ValidString(text) {
				continue
			}
			want := reference.MatchString(text)
			if want {
				matched++
			}
			require.Equal(t, want, narrow.Matches(text), "%q and %q", p, text)
			require.Equal(t, !want, rest.Matches(text), "%q and %q", p, text)
		}
	})
	testkit.Met(t, matched, "a text that matches")
}

// What Overlap denies has no key in common, with patterns and without them.
func TestOverlap_OfPatternsNeverDeniesACommonKey(t *testing.T) {
	common := 0
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) *keys.Template {
			tpl := keys.MustTemplate(rapid.SampledFrom([]string{"{f}", "{f:raw}", "{f:key}", "{f:id2}", "a{f}", "{f}#{g}", "{f:raw}#b", "{f:uint2}"}).Draw(t, label))
			for range rapid.IntRange(0, 2).Draw(t, "rules") {
				p := pattern(t, 2)
				narrow, err := tpl.Only("f", p)
				if rapid.Bool().Draw(t, "except") {
					narrow, err = tpl.Except("f", p)
				}
				if errors.Is(err, keys.ErrRange) {
					continue
				}
				require.NoError(t, err)
				tpl = narrow
			}
			return tpl
		}
		a, b := draw("a"), draw("b")
		overlap := keys.Overlap(a, b)
		require.Equal(t, overlap, keys.Overlap(b, a))
		for range 20 {
			key := letters.Draw(t, "key")
			if a.Matches(key) && b.Matches(key) {
				common++
				require.True(t, overlap, "%s and %s both have %q", a, b, key)
			}
		}
	})
	testkit.Met(t, common, "a key of both")
}
