package entity_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Word stands in an index whose sort key is its text, and in one that is made of it.
type Word struct {
	ID   string    `dynamo:"id"`
	Lang string    `dynamo:"lang"`
	Text string    `dynamo:"text"`
	Seen time.Time `dynamo:"seen"`
	Rank int       `dynamo:"rank"`
}

func newWords(t *testing.T, e *engines.Engine) (fixture, *entity.Entity[Word]) {
	t.Helper()
	f := fixture{faults: &faulty.Client{}, clock: newClock()}
	tbl, err := table.Open(e.Client(f.faults.Options), table.Schema{
		Name: e.TableName(t), NoTTL: true, Indexes: []table.Index{
			{Name: "by-text", PK: "lang", SK: "text"},
			{Name: "by-seen", PK: "lang", SK: "seen"},
			{Name: "by-rank", PK: "lang", SK: "rank", SKType: table.Number},
			{Name: "made", PK: "mpk", SK: "msk"},
			{Name: "shards", PK: "spk", SK: "ssk"},
			{Name: "bare", PK: "text"},
		},
	}, eager(5))
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	f.faults.Script()
	f.Table = tbl
	return f, define(t, tbl, entity.Spec[Word]{
		Type: "Word", PK: "WORDS", SK: "{id}", Indexes: []entity.Index[Word]{
			{Name: "by-text"},
			{Name: "by-seen"},
			{Name: "by-rank"},
			{Name: "bare"},
			{Name: "made", PK: "LANG#{lang}", SK: "{text}#{rank:uint4}"},
			{Name: "shards", PK: "S#{id:shard4}", SK: "{text}#{id}"},
		},
	})
}

func TestPrefix_OfASortKey(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		_, words := newWords(t, e)
		ctx := context.Background()
		var all []Word
		for i, text := range []string{"a", "ab", "ab#", "ab#c", "ab$", "ab\U0010ffff", "abé", "ac", "b", "A", "#", "#a", "ab c"} {
			w, err := words.Create(ctx, Word{ID: fmt.Sprintf("%02d", i), Lang: "de", Text: text, Rank: i, Seen: time.Date(2026, time.Month(i%3+1), 1, 0, 0, i, 0, time.UTC)})
			require.NoError(t, err)
			all = append(all, w)
		}
		texts := func(opts ...entity.ReadOption) (list []string) {
			for w, err := range words.Query(ctx, keys.Values{"lang": "de"}, opts...) {
				require.NoError(t, err)
				list = append(list, w.Text)
			}
			slices.Sort(list)
			return list
		}
		rapid.Check(t, func(rt *rapid.T) {
			runes := []rune(rapid.SampledFrom(all).Draw(rt, "word").Text)
			prefix := string(runes[:rapid.IntRange(1, len(runes)).Draw(rt, "n")])
			if rapid.IntRange(0, 4).Draw(rt, "other") == 0 {
				prefix += rapid.SampledFrom([]string{"0", "x", "#", "\U0010ffff"}).Draw(rt, "more")
			}
			var want []string
			for _, w := range all {
				if strings.HasPrefix(w.Text, prefix) {
					want = append(want, w.Text)
				}
			}
			slices.Sort(want)
			opts := []entity.ReadOption{entity.Prefix("text", prefix)}
			if rapid.Bool().Draw(rt, "descending") {
				opts = append(opts, entity.Descending())
			}
			for _, index := range []string{"by-text", "made"} {
				require.Equal(rt, want, texts(append(opts, entity.On(index))...), "%q on %s", prefix, index)
			}
			var got []string
			for w, err := range words.Query(ctx, nil, append(opts, entity.On("shards"))...) {
				require.NoError(rt, err)
				got = append(got, w.Text)
			}
			slices.Sort(got)
			require.Equal(rt, want, got, "%q in shards", prefix)
		})
		assert.Len(t, texts(entity.On("by-seen"), entity.Prefix("Seen", "2026-02")), 4, "of a time that is text")

		lang := keys.Values{"lang": "de"}
		var paged []string
		var next entity.Cursor
		for {
			page, err := words.Page(ctx, lang, entity.On("by-text"), entity.Prefix("text", "ab"), entity.Limit(2), entity.After(next))
			require.NoError(t, err)
			for _, w := range page.Items {
				paged = append(paged, w.Text)
			}
			if next = page.Next; next == "" {
				break
			}
			_, err = words.Page(ctx, lang, entity.On("by-text"), entity.Prefix("text", "a"), entity.After(next))
			require.ErrorIs(t, err, entity.ErrCursor, "of another prefix")
		}
		slices.Sort(paged)
		assert.Equal(t, texts(entity.On("by-text"), entity.Prefix("text", "ab")), paged)
	})
}

func TestPrefix_RefusesWhatCannotBe(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f, words := newWords(t, e)
		lang := keys.Values{"lang": "de"}
		for name, c := range map[string]struct {
			match keys.Values
			opts  []entity.ReadOption
		}{
			"empty":               {lang, []entity.ReadOption{entity.On("by-text"), entity.Prefix("text", "")}},
			"no text":             {lang, []entity.ReadOption{entity.On("by-text"), entity.Prefix("text", "\xff")}},
			"no text, made":       {lang, []entity.ReadOption{entity.On("made"), entity.Prefix("text", "\xff")}},
			"too long":            {lang, []entity.ReadOption{entity.On("by-text"), entity.Prefix("text", strings.Repeat("secret", 400))}},
			"too long, made":      {lang, []entity.ReadOption{entity.On("made"), entity.Prefix("text", strings.Repeat("secret", 400))}},
			"a number":            {lang, []entity.ReadOption{entity.On("by-rank"), entity.Prefix("rank", "1")}},
			"a number, made":      {keys.Values{"lang": "de", "text": "a"}, []entity.ReadOption{entity.On("made"), entity.Prefix("rank", "1")}},
			"another field":       {lang, []entity.ReadOption{entity.On("by-text"), entity.Prefix("seen", "a")}},
			"a later field":       {lang, []entity.ReadOption{entity.On("made"), entity.Prefix("rank", "a")}},
			"no sort key":         {keys.Values{"text": "a"}, []entity.ReadOption{entity.On("bare"), entity.Prefix("text", "a")}},
			"and a value":         {keys.Values{"lang": "de", "text": "a"}, []entity.ReadOption{entity.On("by-text"), entity.Prefix("text", "a")}},
			"and all values":      {keys.Values{"lang": "de", "text": "a", "rank": 1}, []entity.ReadOption{entity.On("made"), entity.Prefix("rank", "1")}},
			"and a bound":         {lang, []entity.ReadOption{entity.On("by-text"), entity.Prefix("text", "a"), entity.From("text", "ab")}},
			"and another bound":   {lang, []entity.ReadOption{entity.On("by-text"), entity.Until("text", "ab"), entity.Prefix("text", "a")}},
			"a field that is not": {lang, []entity.ReadOption{entity.On("by-text"), entity.Prefix("nope", "a")}},
		} {
			n := 0
			for _, err := range words.Query(t.Context(), c.match, c.opts...) {
				require.ErrorIs(t, err, entity.ErrInvalid, name)
				assert.NotContains(t, err.Error(), "secret", name)
				n++
			}
			assert.Equal(t, 1, n, name)
		}
		for _, err := range words.Scan(t.Context(), entity.Prefix("text", "a")) {
			require.ErrorIs(t, err, entity.ErrInvalid)
			require.ErrorContains(t, err, "options that do not apply to this call: Prefix")
		}
		_, err := words.Get(t.Context(), Word{ID: "1"}, entity.Prefix("text", "a"))
		require.ErrorContains(t, err, "options that do not apply to this call: Prefix")
		assert.Empty(t, f.faults.Sent())
	})
}

func TestOn_RefusesAnIndexThatLacksWhatTheReadNeeds(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := schema(e.TableName(t))
		s.Indexes[0].Include, s.Indexes[1].Include = []string{"schema", "total"}, []string{"_ttl", "total"}
		clock := newClock()
		tbl, err := table.Open(e.Client(), s, table.WithClock(clock.now))
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		spec := orderSpec()
		spec.Upgrades = []func(table.Item) (table.Item, error){func(item table.Item) (table.Item, error) {
			item["total"] = &types.AttributeValueMemberN{Value: "0"}
			return item, nil
		}}
		orders := define(t, tbl, spec)
		ctx := t.Context()
		_, err = orders.Create(ctx, Order{Tenant: "acme", ID: "1", Status: "open", Placed: clock.now(), Total: 500, Expires: clock.now().Add(time.Minute)})
		require.NoError(t, err)
		clock.advance(time.Hour)
		by := map[string]keys.Values{"gsi1": {"status": "open"}, "gsi2": {"tenant": "acme"}}
		read := func(index string, opts ...entity.ReadOption) []error {
			opts = append(opts, entity.On(index))
			_, queried := lastOf(orders.Query(ctx, by[index], opts...))
			_, paged := orders.Page(ctx, by[index], opts...)
			_, scanned := lastOf(orders.Scan(ctx, opts...))
			return []error{queried, paged, scanned}
		}
		for _, err := range read("gsi1") {
			require.ErrorIs(t, err, entity.ErrInvalid)
			require.ErrorContains(t, err, `index "gsi1" does not hold attribute "_ttl", which a read of Order needs for TTL`)
		}
		for _, err := range slices.Concat(read("gsi2"), read("gsi2", entity.WithExpired())) {
			require.ErrorIs(t, err, entity.ErrInvalid)
			require.ErrorContains(t, err, `index "gsi2" does not hold attribute "schema", which a read of Order needs for Schema`)
		}
		require.Eventually(t, func() bool {
			list := collect(t, orders.Query(ctx, by["gsi1"], entity.On("gsi1"), entity.WithExpired()))
			return len(list) == 1 && list[0].Total == 500
		}, 10*time.Second, 10*time.Millisecond)

		// A collection would show the expired row, and upgrade a row that is current.
		var list []Order
		for lacks, q := range map[string]table.Query{
			`index "gsi1" does not hold attribute "_ttl"`:   {Index: "gsi1", PK: "shop/STATUS#open"},
			`index "gsi2" does not hold attribute "schema"`: {Index: "gsi2", PK: "shop/BIG#acme"},
		} {
			err := entity.CollectQuery(ctx, tbl, q, entity.Into(orders, &list), entity.SkipUnknown())
			require.ErrorIs(t, err, entity.ErrInvalid)
			require.ErrorContains(t, err, lacks)
			require.NoError(t, entity.CollectQuery(ctx, tbl, q, entity.SkipUnknown()))
		}
		require.Empty(t, list)

		// An image of keys alone is not upgraded either.
		var unknown *entity.UnknownTypeError
		require.ErrorAs(t, entity.Sort(tbl, tbl.KeyItem(orders.Key(Order{Tenant: "acme", ID: "1"})), entity.Into(orders, &list)), &unknown)
	})
}
