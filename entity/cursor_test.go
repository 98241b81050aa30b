package entity_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

func TestCursor_OfAnotherQueryIsRefused(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		entities, _ := visits(t, f)
		other := define(t, f.Table, entity.Spec[Visit]{Type: "Other", PK: "SITE#{site}", SK: "OTHER#{day:uint2}#{guest}"})
		s := schema(f.Name() + "-2")
		second, err := table.Open(e.Client(f.faults.Options), s)
		require.NoError(t, err)
		elsewhere := define(t, second, visitSpec())

		third, err := table.Open(e.Client(f.faults.Options), f.Schema())
		require.NoError(t, err)
		renamed := visitSpec()
		renamed.Type = "Renamed"
		sameKeys := define(t, third, renamed)
		twins := define(t, f.Table, entity.Spec[Visit]{Type: "Twin", PK: "TWIN#{site}", SK: "TWIN#{day:uint2}#{guest}", Indexes: []entity.Index[Visit]{
			{Name: "gsi1", PK: "TWINS#{kind}", SK: "{rank:uint2}"}, {Name: "gsi2", PK: "TWINS#{kind}", SK: "{rank:uint2}"},
		}})
		_, err = twins.PutAll(t.Context(), []Visit{{Site: "a", Day: 1, Guest: "g", Kind: "x"}, {Site: "a", Day: 2, Guest: "g", Kind: "x"}})
		require.NoError(t, err)
		twin, err := twins.Page(t.Context(), keys.Values{"kind": "x"}, entity.On("gsi1"), entity.Limit(1))
		require.NoError(t, err)
		require.NotEmpty(t, twin.Next)

		type v = keys.Values
		rank := table.Attr("rank")
		match, opts := v{"site": "a"}, []entity.ReadOption{entity.Filter(rank.Greater(0)), entity.From("day", 1)}
		query := func(o ...entity.ReadOption) []entity.ReadOption { return append(slices.Clip(o), entity.Limit(2)) }
		page, err := entities.Page(t.Context(), match, query(opts...)...)
		require.NoError(t, err)
		next := page.Next
		require.NotEmpty(t, next)
		assert.Equal(t, string(next), strings.Map(func(r rune) rune {
			if r < 0x80 && (r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
				return r
			}
			return -1
		}, string(next)), "safe in a URL")

		// What may change from page to page.
		_, err = entities.Page(t.Context(), match, entity.Filter(rank.Greater(2)), entity.From("day", 1), entity.After(next),
			entity.Limit(5), entity.PageSize(3), entity.Consistent(), entity.WithExpired())
		require.NoError(t, err)

		f.faults.Script()
		refused := func(name string, err error) {
			t.Helper()
			var refusal *entity.CursorError
			require.ErrorAs(t, err, &refusal, name)
			require.ErrorIs(t, err, entity.ErrCursor, name)
			require.ErrorIs(t, err, entity.ErrInvalid, name)
			assert.NotContains(t, err.Error(), string(next), name)
		}
		for name, c := range map[string]struct {
			e     *entity.Entity[Visit]
			match v
			opts  []entity.ReadOption
		}{
			"another entity":        {other, match, opts},
			"another type":          {sameKeys, match, opts},
			"another table":         {elsewhere, match, opts},
			"another partition key": {entities, v{"site": "b"}, opts},
			"a forger's key":        {entities, v{"site": "a#VISIT#01"}, opts},
			"another range":         {entities, match, []entity.ReadOption{opts[0], entity.From("day", 2)}},
			"a smaller range":       {entities, match, []entity.ReadOption{opts[0], entity.From("day", 1), entity.Until("day", 9)}},
			"no range":              {entities, match, opts[:1]},
			"an index":              {entities, match, []entity.ReadOption{opts[0], entity.On("lsi1")}},
			"another direction":     {entities, match, append(slices.Clip(opts), entity.Descending())},
			"no filter":             {entities, match, opts[1:]},
			"another comparison":    {entities, match, []entity.ReadOption{entity.Filter(rank.AtLeast(0)), opts[1]}},
			"another attribute":     {entities, match, []entity.ReadOption{entity.Filter(table.Attr("day").Greater(0)), opts[1]}},
			"two filters":           {entities, match, append(slices.Clip(opts), entity.Filter(rank.Exists()))},
		} {
			_, err := c.e.Page(t.Context(), c.match, append(query(c.opts...), entity.After(next))...)
			refused(name, err)
			for _, err := range c.e.Query(t.Context(), c.match, append(query(c.opts...), entity.After(next))...) {
				refused(name, err)
			}
		}
		_, err = twins.Page(t.Context(), v{"kind": "x"}, entity.On("gsi2"), entity.Limit(1), entity.After(twin.Next))
		refused("another index", err)
		raw, err := base64.RawURLEncoding.DecodeString(string(next))
		require.NoError(t, err)
		texts := map[string]string{
			"text": "hello", "spaces": " " + string(next), "a line break": string(next[:4]) + "\n" + string(next[4:]),
			"padding": string(next) + "==", "other alphabet": base64.RawStdEncoding.EncodeToString([]byte{0xff, 0xfe, 0xfd}),
			"huge": strings.Repeat("A", 1<<20), "nothing": "A", "cut off": string(next[:len(next)-4]), "longer": string(next) + "AAAA",
		}
		for i := range raw {
			changed := append([]byte(nil), raw...)
			changed[i] ^= 0x10
			texts[fmt.Sprintf("byte %d", i)] = base64.RawURLEncoding.EncodeToString(changed)
		}
		neighbour := append([]byte(nil), raw...) // a key that the query could have
		neighbour[len(raw)-1]++
		texts["a neighbour"] = base64.RawURLEncoding.EncodeToString(neighbour)
		for name, text := range texts {
			_, err := entities.Page(t.Context(), match, append(query(opts...), entity.After(entity.Cursor(text)))...)
			refused(name, err)
		}
		assert.Empty(t, f.faults.Sent())
		_, err = entities.Page(t.Context(), match, append(query(opts...), entity.After(next))...)
		require.NoError(t, err, "and is good all the same")
	})
}
