package entity_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Visit is in every kind of index, with many equal sort keys in some.
type Visit struct {
	Site    string    `dynamo:"site"`
	Guest   string    `dynamo:"guest"`
	Day     int       `dynamo:"day"`
	Kind    string    `dynamo:"kind"`
	Rank    int       `dynamo:"rank"`
	Expires time.Time `dynamo:"expires,omitempty"`
}

func visitSpec() entity.Spec[Visit] {
	return entity.Spec[Visit]{
		Type: "Visit", PK: "SITE#{site}", SK: "VISIT#{day:uint2}#{guest}", TTL: "expires",
		Indexes: []entity.Index[Visit]{
			{Name: "gsi1", PK: "KIND#{kind}", SK: "{rank:uint2:desc}"},
			{Name: "gsi3", PK: "ALL#{kind}"},
			{Name: "lsi1", SK: "{rank:uint2}"},
			{Name: "inverted"},
		},
	}
}

// visits fills a table with rows, some of which have expired or are of another type.
func visits(t *testing.T, f fixture) (*entity.Entity[Visit], []Visit) {
	t.Helper()
	e := define(t, f.Table, visitSpec())
	define(t, f.Table, entity.Spec[Plain]{Type: "Visitor", PK: "VISITOR#{id}", SK: "VISITOR"})
	random := rand.New(rand.NewPCG(1, 2))
	var list []Visit
	var ops []table.Op
	for _, site := range []string{"a", "b", "a#VISIT#01"} {
		for i := range 40 {
			v := Visit{Site: site, Guest: fmt.Sprintf("g%02d", i%4), Day: i / 4, Kind: []string{"x", "y"}[random.IntN(2)], Rank: random.IntN(4)}
			switch random.IntN(4) {
			case 0:
				v.Expires = f.clock.now().Add(-time.Hour).UTC().Truncate(time.Second)
			case 1:
				v.Expires = f.clock.now().Add(time.Hour).UTC().Truncate(time.Second)
			}
			item := e.PutOp(v).Item()
			if random.IntN(5) == 0 {
				item["_t"], _ = table.Encode("Visitor")
			} else {
				list = append(list, v)
			}
			ops = append(ops, table.Put(item))
		}
	}
	require.NoError(t, f.raw.BatchWrite(t.Context(), ops))
	return e, list
}

func TestPage_AllTogetherAreTheQuery(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		entities, list := visits(t, f)
		now := f.clock.now()
		seen := 0
		rapid.Check(t, func(rt *rapid.T) {
			pick := func(label string) bool { return rapid.Bool().Draw(rt, label) }
			site, kind := rapid.SampledFrom([]string{"a", "b", "a#VISIT#01", "c"}).Draw(rt, "site"), rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "kind")
			day, rank := rapid.IntRange(0, 9).Draw(rt, "day"), rapid.IntRange(0, 3).Draw(rt, "rank")
			index := rapid.SampledFrom([]string{"", "gsi1", "gsi3", "lsi1", "inverted"}).Draw(rt, "index")
			var match keys.Values
			var in func(Visit) bool
			var order func(a, b Visit) int
			opts := []entity.ReadOption{}
			if index != "" {
				opts = append(opts, entity.On(index))
			}
			bounded := pick("bounded")
			from, until := min(day, rank), max(day, rank)
			if bounded && index != "gsi3" && index != "inverted" {
				field := "rank"
				if index == "" {
					field = "day"
				}
				opts = append(opts, entity.From(field, from), entity.Until(field, until))
			}
			within := func(n int) bool { return !bounded || from <= n && n < until }
			switch index {
			case "":
				match = keys.Values{"site": site}
				in = func(v Visit) bool { return v.Site == site && within(v.Day) }
				order = func(a, b Visit) int { return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Guest, b.Guest)) }
			case "gsi1":
				match = keys.Values{"kind": kind}
				in = func(v Visit) bool { return v.Kind == kind && within(v.Rank) }
				order = func(a, b Visit) int { return cmp.Compare(b.Rank, a.Rank) }
			case "gsi3":
				match = keys.Values{"kind": kind}
				in = func(v Visit) bool { return v.Kind == kind }
				order = func(Visit, Visit) int { return 0 }
			case "lsi1":
				match = keys.Values{"site": site}
				in = func(v Visit) bool { return v.Site == site && within(v.Rank) }
				order = func(a, b Visit) int { return cmp.Compare(a.Rank, b.Rank) }
			case "inverted":
				match = keys.Values{"day": day, "guest": "g01"}
				in = func(v Visit) bool { return v.Day == day && v.Guest == "g01" }
				order = func(a, b Visit) int { return cmp.Compare(a.Site, b.Site) }
			}
			expired := pick("expired")
			if expired {
				opts = append(opts, entity.WithExpired())
			}
			least := rapid.IntRange(0, 4).Draw(rt, "least")
			if least > 0 {
				opts = append(opts, entity.Filter(table.Attr("rank").AtLeast(least)))
			}
			down := pick("descending")
			if down {
				opts = append(opts, entity.Descending())
			}
			if (index == "" || index == "lsi1") && pick("consistent") {
				opts = append(opts, entity.Consistent())
			}

			want := map[Visit]int{}
			n := 0
			for _, v := range list {
				if in(v) && v.Rank >= least && (expired || v.Expires.IsZero() || v.Expires.After(now)) {
					want[v]++
					n++
				}
			}
			all := collect(rt, entities.Query(t.Context(), match, opts...))
			got := map[Visit]int{}
			for _, v := range all {
				got[v]++
			}
			require.Equal(rt, want, got)
			seen += n
			require.True(rt, slices.IsSortedFunc(all, func(a, b Visit) int {
				if down {
					a, b = b, a
				}
				return order(a, b)
			}))

			limit := rapid.IntRange(1, 9).Draw(rt, "limit")
			if size := rapid.IntRange(0, 5).Draw(rt, "page size"); size > 0 {
				opts = append(opts, entity.PageSize(size))
			}
			var paged []Visit
			for cursor, pages := entity.Cursor(""), 0; ; pages++ {
				require.LessOrEqual(rt, pages, len(all)/limit+1, "pages without end")
				page, err := entities.Page(t.Context(), match, append(opts, entity.Limit(limit), entity.After(cursor))...)
				require.NoError(rt, err)
				paged = append(paged, page.Items...)
				if page.Next == "" {
					break
				}
				require.Len(rt, page.Items, limit, "only the last page may be short")
				rest := collect(rt, entities.Query(t.Context(), match, append(opts, entity.After(page.Next))...))
				require.Equal(rt, all[len(paged):], append([]Visit{}, rest...))
				cursor = page.Next
			}
			require.Equal(rt, all, paged)
		})
		assert.Greater(t, seen, testkit.IfSmall(0, 100), "the property was tested on next to nothing")
	})
}

func TestPage_EndsExactlyWithoutAnotherRequest(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		readings := define(t, f.Table, readingSpec)
		ctx := t.Context()
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for i := range 150 {
			_, err := readings.Create(ctx, Reading{"a", 1, at.Add(time.Duration(i) * time.Minute), i})
			require.NoError(t, err)
		}
		match := keys.Values{"site": "a"}
		f.faults.Script()
		page, err := readings.Page(ctx, match)
		require.NoError(t, err)
		assert.Len(t, page.Items, 100, "the default")
		page, err = readings.Page(ctx, match, entity.After(page.Next), entity.Limit(50))
		require.NoError(t, err)
		assert.Len(t, page.Items, 50)
		assert.Empty(t, page.Next)
		assert.Equal(t, []string{"Query", "Query"}, f.faults.Sent())

		empty, err := readings.Page(ctx, keys.Values{"site": "b"})
		require.NoError(t, err)
		assert.Empty(t, empty)

		// What follows is read already, and invisible.
		visits := define(t, f.Table, visitSpec())
		_, err = visits.PutAll(ctx, []Visit{{Site: "a", Day: 1, Guest: "g"}, {Site: "a", Day: 2, Guest: "g", Expires: f.clock.now().Add(-time.Hour)}})
		require.NoError(t, err)
		last, err := visits.Page(ctx, keys.Values{"site": "a"}, entity.Limit(1), entity.PageSize(10))
		require.NoError(t, err)
		assert.Len(t, last.Items, 1)
		assert.Empty(t, last.Next)
	})
}

func TestPage_GoesOnWhereRowsCameAndWent(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		readings := define(t, f.Table, readingSpec)
		ctx := t.Context()
		at := func(i int) time.Time { return time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC) }
		for i := range 10 {
			_, err := readings.Create(ctx, Reading{"a", 1, at(2 * i), 2 * i})
			require.NoError(t, err)
		}
		for _, index := range []string{"", "gsi1"} {
			match, opts := keys.Values{"site": "a"}, []entity.ReadOption{entity.Limit(3)}
			if index != "" {
				match, opts = keys.Values{"sensor": 1}, append(opts, entity.On(index), entity.Descending()) // the template descends too
			}
			page, err := readings.Page(ctx, match, opts...)
			require.NoError(t, err)
			last := page.Items[2]
			assert.Equal(t, 4, last.Value)
			require.NoError(t, readings.Delete(ctx, last))
			before, behind := Reading{"a", 1, at(1), 1}, Reading{"a", 1, at(5), 5}
			require.NoError(t, f.Write(ctx, readings.PutOp(before), readings.PutOp(behind)))
			page, err = readings.Page(ctx, match, append(opts, entity.After(page.Next))...)
			require.NoError(t, err)
			var values []int
			for _, r := range page.Items {
				values = append(values, r.Value)
			}
			assert.Equal(t, []int{5, 6, 8}, values)
			require.NoError(t, f.Write(ctx, readings.PutOp(last), readings.DeleteOp(before), readings.DeleteOp(behind)))
		}
	})
}

func TestPage_ReportsARowThatDoesNotDecode(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		readings := define(t, f.Table, readingSpec)
		op := readings.PutOp(Reading{"a", 1, time.Unix(0, 0).UTC(), 1})
		op.Item()["value"], _ = table.Encode("cAnArY")
		require.NoError(t, f.Write(t.Context(), op))
		page, err := readings.Page(t.Context(), keys.Values{"site": "a"})
		var decode *entity.DecodeError
		require.ErrorAs(t, err, &decode)
		assert.Equal(t, "value", decode.Attribute)
		assert.NotContains(t, err.Error(), "cAnArY")
		assert.Empty(t, page)
		f.faults.Script()
		_, err = readings.Page(t.Context(), keys.Values{"site": "a"}, entity.Segments(2))
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.ErrorContains(t, err, "Segments")
		assert.Empty(t, f.faults.Sent())
	})
}

func TestLimit_OfAFewRowsBehindManyThatAreLeftOutTakesFewRequests(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		visits := define(t, f.Table, visitSpec())
		var ops []table.Op
		for i := range 200 {
			visit := Visit{Site: "a", Day: i / 10, Guest: fmt.Sprint(i % 10)}
			if i < 199 {
				visit.Expires = f.clock.now().Add(-time.Hour)
			}
			op := visits.PutOp(visit)
			require.NoError(t, op.Err())
			ops = append(ops, table.Put(op.Item()))
		}
		require.NoError(t, f.BatchWrite(t.Context(), ops))
		match := keys.Values{"site": "a"}

		ctx, cost := table.WithUsage(t.Context())
		assert.Len(t, collect(t, visits.Query(ctx, match, entity.Limit(1))), 1)
		assert.LessOrEqual(t, cost.Totals().Requests, int64(9), "1, 2, 4 and so on, up to 128 rows, and the rest")

		ctx, cost = table.WithUsage(t.Context())
		page, err := visits.Page(ctx, match, entity.Limit(1))
		require.NoError(t, err)
		assert.Len(t, page.Items, 1)
		assert.LessOrEqual(t, cost.Totals().Requests, int64(9))

		ctx, cost = table.WithUsage(t.Context())
		assert.Len(t, collect(t, visits.Query(ctx, match, entity.Limit(1), entity.PageSize(20))), 1)
		assert.EqualValues(t, 10, cost.Totals().Requests, "a size that the caller has set stays")
	})
}
