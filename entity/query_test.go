package entity_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

type Reading struct {
	Site   string    `dynamo:"site"`
	Sensor int       `dynamo:"sensor"`
	At     time.Time `dynamo:"at"`
	Value  int       `dynamo:"value"`
}

var readingSpec = entity.Spec[Reading]{
	Type: "Reading", PK: "SITE#{site}", SK: "SENSOR#{sensor:uint4}#{at:time-s}",
	Indexes: []entity.Index[Reading]{
		{Name: "gsi1", PK: "SENSOR#{sensor:uint4}", SK: "{at:time-s:desc}"},
		{Name: "gsi3", PK: "ALL#{site}"},
	},
}

func TestQuery_ReadsTheRowsThatMatch(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		readings := define(t, f.Table, readingSpec)
		ctx := t.Context()
		var ops []table.Op
		for _, site := range []string{"a", "a#SENSOR#0001", "b"} {
			for _, sensor := range []int{1, 10, 100} {
				for d := 1; d <= 8; d++ {
					op := readings.PutOp(Reading{site, sensor, day(d), d})
					require.NoError(t, op.Err())
					ops = append(ops, table.Put(op.Item()))
				}
			}
		}
		require.NoError(t, f.BatchWrite(ctx, ops))
		// A row of another type amid them, which a query has to step over.
		define(t, f.Table, entity.Spec[Plain]{Type: "Calibration", PK: "CALIBRATION#{id}", SK: "CALIBRATION"})
		foreign := f.KeyItem(readings.Key(Reading{"a", 1, day(3).Add(time.Hour), 0}))
		foreign["_t"], _ = table.Encode("Calibration")
		foreign["g1pk"], _ = table.Encode("shop/SENSOR#0001")
		foreign["g1sk"], _ = table.Encode("x")
		require.NoError(t, f.Write(ctx, table.Put(foreign)))

		type v = keys.Values
		at := table.Attr("value")
		for _, c := range []struct {
			name  string
			match v
			opts  []entity.ReadOption
			want  []int // values
		}{
			{"a partition", v{"site": "a"}, nil, slices.Repeat([]int{1, 2, 3, 4, 5, 6, 7, 8}, 3)},
			{"by Go name", v{"Site": "a", "Sensor": 1}, nil, []int{1, 2, 3, 4, 5, 6, 7, 8}},
			{"a leading field ends at its boundary", v{"site": "a", "sensor": 10}, nil, []int{1, 2, 3, 4, 5, 6, 7, 8}},
			{"one row", v{"site": "a", "sensor": 1, "at": day(4)}, nil, []int{4}},
			{"no row", v{"site": "c"}, nil, nil},
			{"From", v{"site": "a", "sensor": 1}, []entity.ReadOption{entity.From("at", day(6))}, []int{6, 7, 8}},
			{"Until", v{"site": "a", "sensor": 1}, []entity.ReadOption{entity.Until("at", day(3))}, []int{1, 2}},
			{"From and Until", v{"site": "a", "sensor": 1}, []entity.ReadOption{entity.From("at", day(2)), entity.Until("At", day(5))}, []int{2, 3, 4}},
			{"From equal Until", v{"site": "a", "sensor": 1}, []entity.ReadOption{entity.From("at", day(2)), entity.Until("at", day(2))}, nil},
			{"From of the first field", v{"site": "a"}, []entity.ReadOption{entity.From("sensor", 100)}, []int{1, 2, 3, 4, 5, 6, 7, 8}},
			{"Descending", v{"site": "a", "sensor": 1}, []entity.ReadOption{entity.Descending(), entity.From("at", day(6))}, []int{8, 7, 6}},
			{"Limit", v{"site": "a"}, []entity.ReadOption{entity.Limit(3)}, []int{1, 2, 3}},
			{"Limit steps over another type", v{"site": "a", "sensor": 1}, []entity.ReadOption{entity.Limit(4)}, []int{1, 2, 3, 4}},
			{"Limit with a filter", v{"site": "a"}, []entity.ReadOption{entity.Limit(2), entity.Filter(at.Greater(6)), entity.PageSize(3)}, []int{7, 8}},
			{"Filters together", v{"site": "a", "sensor": 1}, []entity.ReadOption{entity.Filter(at.Greater(3)), entity.Filter(at.Less(6))}, []int{4, 5}},
			{"small pages", v{"site": "a", "sensor": 1}, []entity.ReadOption{entity.PageSize(1)}, []int{1, 2, 3, 4, 5, 6, 7, 8}},
			{"Consistent", v{"site": "a", "sensor": 1}, []entity.ReadOption{entity.Consistent(), entity.Limit(1), entity.Descending()}, []int{8}},
			{"index, descending template", v{"sensor": 1}, []entity.ReadOption{entity.On("gsi1"), entity.Limit(3), entity.From("at", day(7))}, []int{8, 8, 8}},
			{"index between", v{"sensor": 10}, []entity.ReadOption{entity.On("gsi1"), entity.From("at", day(2)), entity.Until("at", day(3))}, []int{2, 2, 2}},
			{"index without sort key", v{"site": "b"}, []entity.ReadOption{entity.On("gsi3"), entity.Filter(at.Equal(5))}, []int{5, 5, 5}},
		} {
			t.Run(c.name, func(t *testing.T) {
				var got []int
				for _, r := range collect(t, readings.Query(ctx, c.match, c.opts...)) {
					got = append(got, r.Value)
				}
				assert.Equal(t, c.want, got)
			})
		}
		for r, err := range readings.Query(ctx, v{"site": "a"}) {
			require.NoError(t, err)
			assert.Equal(t, 1, r.Value)
			break
		}

		f.faults.Script()
		for name, c := range map[string]struct {
			match v
			opts  []entity.ReadOption
		}{
			"missing partition field": {v{"sensor": 1}, nil},
			"gap":                     {v{"site": "a", "at": day(1)}, nil},
			"unknown field":           {v{"site": "a", "value": 1}, nil},
			"twice":                   {v{"site": "a", "Site": "a"}, nil},
			"wrong type":              {v{"site": 1}, nil},
			"empty":                   {v{"site": ""}, nil},
			"nil":                     {v{"site": nil}, nil},
			"unknown index":           {v{"site": "a"}, []entity.ReadOption{entity.On("nope")}},
			"index not used":          {v{"site": "a"}, []entity.ReadOption{entity.On("gsi2")}},
			"limit":                   {v{"site": "a"}, []entity.ReadOption{entity.Limit(0)}},
			"page size":               {v{"site": "a"}, []entity.ReadOption{entity.PageSize(0)}},
			"not the next field":      {v{"site": "a"}, []entity.ReadOption{entity.From("at", day(1))}},
			"no field left":           {v{"site": "a", "sensor": 1, "at": day(1)}, []entity.ReadOption{entity.From("at", day(1))}},
			"different fields":        {v{"site": "a", "sensor": 1}, []entity.ReadOption{entity.From("at", day(1)), entity.Until("sensor", 2)}},
			"reversed":                {v{"site": "a", "sensor": 1}, []entity.ReadOption{entity.From("at", day(2)), entity.Until("at", day(1))}},
			"range of nothing":        {v{"site": "a"}, []entity.ReadOption{entity.On("gsi3"), entity.From("at", day(1))}},
			"consistent index":        {v{"sensor": 1}, []entity.ReadOption{entity.On("gsi1"), entity.Consistent()}},
			"too large":               {v{"site": "a", "sensor": 10_000}, nil},
			"too long":                {v{"site": strings.Repeat("x", 3000)}, nil},
		} {
			n := 0
			for _, err := range readings.Query(ctx, c.match, c.opts...) {
				n++
				assert.ErrorIs(t, err, entity.ErrInvalid, name)
			}
			assert.Equal(t, 1, n, name)
		}
		for name, opt := range map[string]entity.ReadOption{
			"On": entity.On("gsi1"), "Limit": entity.Limit(1), "Descending": entity.Descending(), "PageSize": entity.PageSize(1),
			"Filter": entity.Filter(at.Equal(1)), "From": entity.From("at", day(1)), "Until": entity.Until("at", day(1)),
		} {
			_, err := readings.Get(ctx, Reading{"a", 1, day(1), 0}, opt)
			assert.ErrorIs(t, err, entity.ErrInvalid, name)
		}
		assert.Empty(t, f.faults.Sent())
	})
}

func TestCollect_SortsAnItemCollection(t *testing.T) {
	type Line struct {
		Order string `dynamo:"order"`
		No    int    `dynamo:"no"`
	}
	type Head struct {
		Order string `dynamo:"order"`
		Note  string `dynamo:"note"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		heads := define(t, f.Table, entity.Spec[Head]{Type: "Head", PK: "ORDER#{order}", SK: "#HEAD"})
		lines := define(t, f.Table, entity.Spec[Line]{Type: "Line", PK: "ORDER#{order}", SK: "LINE#{no:uint3}"})
		ctx := t.Context()
		pk := heads.Key(Head{Order: "1"}).PK
		ops := []table.Op{heads.CreateOp(Head{Order: "1", Note: "n"})}
		for i := range 5 {
			ops = append(ops, lines.CreateOp(Line{"1", i}))
		}
		require.NoError(t, f.Write(ctx, ops...))
		var hs []Head
		var ls []Line
		f.faults.Script()
		require.NoError(t, entity.Collect(ctx, f.Table, pk, entity.Into(heads, &hs), entity.Into(lines, &ls)))
		assert.Equal(t, []string{"Query"}, f.faults.Sent())
		assert.Equal(t, []Head{{"1", "n"}}, hs)
		assert.Equal(t, []Line{{"1", 0}, {"1", 1}, {"1", 2}, {"1", 3}, {"1", 4}}, ls)

		err := entity.Collect(ctx, f.Table, pk, entity.Into(heads, &hs))
		var unknown *entity.UnknownTypeError
		require.ErrorAs(t, err, &unknown)
		require.ErrorIs(t, err, entity.ErrType)
		assert.Equal(t, "Line", unknown.Type)
		assert.Equal(t, lines.Key(Line{"1", 0}), unknown.Key)

		var raw []table.Item
		ls = nil
		require.NoError(t, entity.Collect(ctx, f.Table, pk, entity.Into(lines, &ls), entity.Raw(&raw)))
		assert.Len(t, raw, 1)
		assert.Len(t, ls, 5)
		require.NoError(t, entity.Collect(ctx, f.Table, pk, entity.SkipUnknown()))
		require.NoError(t, entity.Collect(ctx, f.Table, "nothing here"))
		for name, sink := range map[string]entity.Sink{
			"nil": nil, "nil slice": entity.Into[Line](lines, nil), "nil entity": entity.Into[Line](nil, &ls), "nil raw": entity.Raw(nil),
		} {
			assert.ErrorIs(t, entity.Collect(ctx, f.Table, pk, sink), entity.ErrInvalid, name)
		}
		assert.ErrorIs(t, entity.Collect(ctx, f.Table, ""), entity.ErrInvalid)

		broken := f.KeyItem(lines.Key(Line{"1", 2}))
		broken["_t"], _ = table.Encode("Line")
		broken["no"], _ = table.Encode("cAnArY")
		require.NoError(t, f.Write(ctx, table.Put(broken)))
		ls = nil
		err = entity.Collect(ctx, f.Table, pk, entity.Into(lines, &ls), entity.SkipUnknown())
		var decode *entity.DecodeError
		require.ErrorAs(t, err, &decode)
		assert.Equal(t, lines.Key(Line{"1", 2}), decode.Key)
		assert.Equal(t, "no", decode.Attribute)
		assert.EqualError(t, err, `entity: decode Line: attribute "no" does not fit: wrong type: S for int`)
		n := 0
		for _, err := range lines.Query(ctx, keys.Values{"order": "1"}) {
			if err != nil {
				require.ErrorAs(t, err, &decode)
				n++
			}
		}
		assert.Equal(t, 1, n, "a query ends with the row that does not decode")
	})
}

// Team stands in keys in lower case, whatever the case in which people write it.
type Team string

func (t Team) MarshalText() ([]byte, error) { return []byte(strings.ToLower(string(t))), nil }

func (t *Team) UnmarshalText(b []byte) error {
	*t = Team(b)
	return nil
}

// Tier stands in keys as a word.
type Tier int

func (t Tier) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "tier-%d", int(t)), nil }

func (t *Tier) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "tier-%d", (*int)(t))
	return err
}

// Active stands in keys as a word.
type Active bool

func (a Active) MarshalText() ([]byte, error) { return strconv.AppendBool(nil, bool(a)), nil }

func (a *Active) UnmarshalText(b []byte) (err error) {
	active, err := strconv.ParseBool(string(b))
	*a = Active(active)
	return err
}

func TestQuery_TakesValuesAsUpdateDoes(t *testing.T) {
	type player struct {
		ID   string  `dynamo:"id"`
		Team Team    `dynamo:"team"`
		Tier Tier    `dynamo:"tier"`
		Here Active  `dynamo:"here"`
		Rate float64 `dynamo:"rate"`
		Rank uint8   `dynamo:"rank"`
	}
	engines.Run(t, func(t *testing.T, on *engines.Engine) {
		ctx, tbl := t.Context(), newFixture(t, on).Table
		players := define(t, tbl, entity.Spec[player]{
			Type: "Player", PK: "PLAYER#{id}", SK: "PLAYER",
			Indexes: []entity.Index[player]{
				{Name: "gsi1", PK: "TEAM#{team}", SK: "{tier}#{here}"},
				{Name: "gsi2", PK: "RANK#{rank:uint3}", SK: "{rate:float}"},
			},
		})
		p, err := players.Create(ctx, player{ID: "1", Team: "blue", Tier: 1})
		require.NoError(t, err)
		p, err = players.Update(ctx, p, entity.Set("team", "Red"), entity.Set("tier", 3), entity.Set("here", true), entity.Set("rate", 2), entity.Set("rank", 7.0))
		require.NoError(t, err)
		team := "RED"
		for _, match := range []keys.Values{
			{"team": "Red"},
			{"team": Team("Red")},
			{"team": &team},
			{"team": "red"},
			{"team": "Red", "tier": 3},
			{"team": "Red", "tier": Tier(3)},
			{"team": "Red", "tier": "tier-3"},
			{"team": "Red", "tier": 3, "here": true},
			{"team": "Red", "tier": 3, "here": Active(true)},
			{"team": "Red", "tier": 3, "here": "true"},
		} {
			assert.Equal(t, []player{p}, collect(t, players.Query(ctx, match, entity.On("gsi1"))), "%v", match)
		}
		for _, bounds := range [][]entity.ReadOption{
			{entity.From("tier", 3)}, {entity.From("tier", Tier(2)), entity.Until("tier", 4)}, {entity.Until("tier", "tier-4")},
		} {
			got := collect(t, players.Query(ctx, keys.Values{"team": "Red"}, append(bounds, entity.On("gsi1"))...))
			assert.Equal(t, []player{p}, got)
		}
		for _, match := range []keys.Values{{"rank": 7}, {"rank": 7.0}, {"rank": uint8(7), "rate": 2}} {
			assert.Equal(t, []player{p}, collect(t, players.Query(ctx, match, entity.On("gsi2"))), "%v", match)
		}
		bounds := []entity.ReadOption{entity.On("gsi2"), entity.From("rate", 2), entity.Until("rate", 3)}
		assert.Equal(t, []player{p}, collect(t, players.Query(ctx, keys.Values{"rank": 7}, bounds...)))
		assert.Empty(t, collect(t, players.Query(ctx, keys.Values{"rank": 700}, bounds...)), "the key of no row")
	})
}

func TestQuery_OfAFieldThatEndsTheSortKeyToo(t *testing.T) {
	type Member struct {
		Team string `dynamo:"g3pk"`
		User string `dynamo:"user"`
		Role string `dynamo:"role"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := schema(e.TableName(t))
		s.Indexes[2].SK = "g3sk"
		tbl, err := table.Open(e.Client(), s)
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		members := define(t, tbl, entity.Spec[Member]{
			Type: "Member", PK: "TEAM#{team}", SK: "ROLE#{role}#USER#{user}#TEAM#{team}",
			Indexes: []entity.Index[Member]{
				{Name: "gsi1", PK: "USER#{user}", SK: "ROLE#{role}#USER#{user}"},
				{Name: "gsi3", SK: "{role}#{team}#{user}"}, // the partition key is the field
			},
		})
		for _, m := range []Member{{"red", "ann", "lead"}, {"red", "bob", "dev"}, {"blue", "ann", "dev"}} {
			_, err := members.Create(t.Context(), m)
			require.NoError(t, err)
		}
		type v = keys.Values
		for name, c := range map[string]struct {
			match v
			opts  []entity.ReadOption
			want  []Member
		}{
			"all":                {v{"team": "red"}, nil, []Member{{"red", "bob", "dev"}, {"red", "ann", "lead"}}},
			"some":               {v{"team": "red", "role": "dev"}, nil, []Member{{"red", "bob", "dev"}}},
			"one":                {v{"team": "red", "role": "dev", "user": "bob"}, nil, []Member{{"red", "bob", "dev"}}},
			"From":               {v{"team": "red"}, []entity.ReadOption{entity.From("role", "e")}, []Member{{"red", "ann", "lead"}}},
			"Prefix":             {v{"team": "red", "role": "dev"}, []entity.ReadOption{entity.Prefix("user", "b")}, []Member{{"red", "bob", "dev"}}},
			"index":              {v{"user": "ann"}, []entity.ReadOption{entity.On("gsi1")}, []Member{{"blue", "ann", "dev"}, {"red", "ann", "lead"}}},
			"index on the field": {v{"team": "red"}, []entity.ReadOption{entity.On("gsi3")}, []Member{{"red", "bob", "dev"}, {"red", "ann", "lead"}}},
		} {
			require.EventuallyWithT(t, func(t *assert.CollectT) {
				assert.Equal(t, c.want, collect(t, members.Query(context.Background(), c.match, c.opts...)))
			}, 10*time.Second, 10*time.Millisecond, name)
		}
		for _, err := range members.Query(t.Context(), v{"team": "red", "user": "bob"}) {
			require.ErrorIs(t, err, entity.ErrInvalid, "a gap that leaves out what the partition key does not have")
		}
	})
}
