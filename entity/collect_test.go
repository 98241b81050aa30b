package entity_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Parcel and Stop share item collections.
type Parcel struct {
	No      string    `dynamo:"no"`
	Expires time.Time `dynamo:"expires,omitempty"`
}

type Stop struct {
	Parcel string `dynamo:"-"`
	Seq    int    `dynamo:"-"`
	Note   string `dynamo:"note,omitempty"`
}

func parcels(t *testing.T, f fixture) (*entity.Entity[Parcel], *entity.Entity[Stop]) {
	t.Helper()
	return define(t, f.Table, entity.Spec[Parcel]{Type: "Parcel", PK: "PARCEL#{no}", SK: "PARCEL", TTL: "expires"}),
		define(t, f.Table, entity.Spec[Stop]{Type: "Stop", PK: "PARCEL#{parcel}", SK: "STOP#{seq:uint3}"})
}

func TestCollect_ReadsOn(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		_, stops := parcels(t, f)
		ctx := t.Context()
		for i := range 9 {
			_, err := stops.Create(ctx, Stop{"1", i, strings.Repeat("x", 250<<10)})
			require.NoError(t, err)
		}
		var list []Stop
		f.faults.Script()
		require.NoError(t, entity.Collect(ctx, f.Table, stops.Key(Stop{"1", 0, ""}).PK, entity.Into(stops, &list)))
		assert.Greater(t, len(f.faults.Sent()), 1, "2.2 MB")
		require.Len(t, list, 9)
		for i, s := range list {
			assert.Equal(t, i, s.Seq)
		}
	})
}

func TestCollectQuery_ReadsARange(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		parcels, stops := parcels(t, f)
		ctx := t.Context()
		require.NoError(t, f.Write(ctx, parcels.CreateOp(Parcel{No: "1"}), stops.CreateOp(Stop{"1", 1, ""}), stops.CreateOp(Stop{"1", 2, ""}), stops.CreateOp(Stop{"1", 10, ""})))
		pk := parcels.Key(Parcel{No: "1"}).PK
		tpl, err := f.Scheme().SKTemplate("STOP#{seq:uint3}")
		require.NoError(t, err)
		until, err := tpl.Until(10)
		require.NoError(t, err)
		for name, c := range map[string]struct {
			in   keys.Range
			want []int
		}{
			"prefix": {keys.PrefixRange("STOP#"), []int{1, 2, 10}}, "until": {until, []int{1, 2}},
			"nothing": {keys.PrefixRange("STORE"), nil}, "a part of a key": {keys.PrefixRange("STOP#00"), []int{1, 2}},
		} {
			var got []int
			require.NoError(t, entity.CollectQuery(ctx, f.Table, table.Query{PK: pk, SK: c.in}, entity.Each(stops, func(s Stop) error {
				got = append(got, s.Seq)
				return nil
			})), name)
			assert.Equal(t, c.want, got, name)
		}
		assert.ErrorIs(t, entity.CollectQuery(ctx, f.Table, table.Query{PK: pk, SK: keys.Range{Lo: "b", Hi: "a"}}, entity.SkipUnknown()), entity.ErrInvalid)
	})
}

// An index on the type attribute cannot be named in a specification. CollectQuery reads it.
func TestCollectQuery_ReadsAnIndexOnTheType(t *testing.T) {
	ctx := t.Context()
	scheme := keys.Scheme{}.WithDefaults()
	tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{
		Name: "app", Indexes: []table.Index{{Name: "by-type", PK: scheme.Type, SK: scheme.SK}},
	})
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(ctx))
	customers := define(t, tbl, entity.Spec[Customer]{Type: "Customer", PK: "CUSTOMER#{id}", SK: "CUSTOMER"})
	purchases := define(t, tbl, entity.Spec[Purchase]{Type: "Purchase", PK: "CUSTOMER#{customer}", SK: "PURCHASE#{at:time-s}"})
	bought := Purchase{Customer: "1", At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	require.NoError(t, tbl.Write(ctx, customers.CreateOp(Customer{ID: "1"}), purchases.CreateOp(bought)))
	var got []Purchase
	require.NoError(t, entity.CollectQuery(ctx, tbl, table.Query{Index: "by-type", PK: "Purchase"}, entity.Into(purchases, &got)))
	assert.Equal(t, []Purchase{bought}, got)
}

// Customer and Purchase share item collections, in the table and in an index.
type Customer struct {
	ID     string `dynamo:"-"`
	Region string `dynamo:"region"`
	Name   string `dynamo:"name"`
}

type Purchase struct {
	Customer string    `dynamo:"-"`
	At       time.Time `dynamo:"-"`
	Region   string    `dynamo:"region"`
	Total    int       `dynamo:"total"`
}

func TestCollectQuery_ReadsTheNewestOfAnIndexToo(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		customers := define(t, f.Table, entity.Spec[Customer]{
			Type: "Customer", PK: "CUSTOMER#{id}", SK: "PURCHASE$", Indexes: []entity.Index[Customer]{{Name: "gsi1", PK: "REGION#{region}", SK: "~{id}"}},
		})
		purchases := define(t, f.Table, entity.Spec[Purchase]{
			Type: "Purchase", PK: "CUSTOMER#{customer}", SK: "PURCHASE#{at:time-s}",
			Indexes: []entity.Index[Purchase]{{Name: "gsi1", PK: "REGION#{region}", SK: "{at:time-s}#{customer}"}},
		})
		ctx, at := t.Context(), func(day int) time.Time { return time.Date(2026, 3, day, 12, 0, 0, 0, time.UTC) }
		ann, bob := Customer{"1", "north", "Ann"}, Customer{"2", "north", "Bob"}
		ops := []table.Op{customers.PutOp(ann), customers.PutOp(bob)}
		for day := range 9 {
			ops = append(ops, purchases.PutOp(Purchase{ann.ID, at(1 + day), "north", day}), purchases.PutOp(Purchase{bob.ID, at(11 + day), "south", day}))
		}
		require.NoError(t, f.Write(ctx, ops...))
		region, err := f.Scheme().PKTemplate("REGION#{region}")
		require.NoError(t, err)
		north, err := region.Format(keys.Values{"region": "north"})
		require.NoError(t, err)

		for name, c := range map[string]struct {
			query     table.Query
			customers []Customer
			totals    []int
		}{
			"a customer and the newest purchases": {
				table.Query{PK: customers.Key(ann).PK, SK: keys.Range{Lo: "PURCHASE#"}, Descending: true, Limit: 3, Consistent: true}, []Customer{ann}, []int{8, 7},
			},
			"all of a region, newest first": {
				table.Query{Index: "gsi1", PK: north, Descending: true, Limit: 4}, []Customer{bob, ann}, []int{8, 7},
			},
			"the purchases of some days": {
				table.Query{Index: "gsi1", PK: north, SK: keys.Range{Hi: "2026-03-03"}}, nil, []int{0, 1},
			},
			"only large ones": {
				table.Query{PK: customers.Key(bob).PK, Filter: table.Or(table.Attr("total").AtLeast(7), table.Attr("name").Exists())}, []Customer{bob}, []int{7, 8},
			},
		} {
			var who []Customer
			var totals []int
			each := entity.Each(purchases, func(p Purchase) error { totals = append(totals, p.Total); return nil })
			require.NoError(t, entity.CollectQuery(ctx, f.Table, c.query, entity.Into(customers, &who), each), name)
			assert.Equal(t, c.customers, who, name)
			assert.Equal(t, c.totals, totals, name)
		}
		err = entity.CollectQuery(ctx, f.Table, table.Query{Index: "gsi9", PK: "x"}, entity.SkipUnknown())
		require.ErrorIs(t, err, table.ErrInvalid)
	})
}

func TestCollect_Policies(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		parcels, stops := parcels(t, f)
		ctx := t.Context()
		gone := Parcel{No: "1", Expires: f.clock.now().Add(-time.Minute)}
		bare := stops.PutOp(Stop{"1", 5, "by hand"}).Item() // as another program writes it
		delete(bare, "_t")
		odd := f.KeyItem(parcels.Key(gone))
		odd["SK"], _ = table.Encode("WEIGHT")
		odd["_t"], _ = table.Encode(7)
		require.NoError(t, f.Write(ctx, parcels.PutOp(gone), stops.PutOp(Stop{"1", 1, ""}), table.Put(bare), table.Put(odd)))
		pk := parcels.Key(gone).PK

		var ps []Parcel
		var ss []Stop
		var raw []table.Item
		err := entity.Collect(ctx, f.Table, pk, entity.Into(parcels, &ps), entity.Into(stops, &ss))
		var unknown *entity.UnknownTypeError
		require.ErrorAs(t, err, &unknown)
		assert.Empty(t, unknown.Type)
		assert.Equal(t, "WEIGHT", unknown.Key.SK)
		assert.Equal(t, []Stop{{"1", 1, ""}, {"1", 5, "by hand"}}, ss)
		assert.Empty(t, ps, "expired, and not unknown")

		ss = nil
		require.NoError(t, entity.Collect(ctx, f.Table, pk, entity.Into(stops, &ss), entity.Raw(&raw)))
		assert.Len(t, ss, 2)
		assert.Len(t, raw, 2, "what is raw is not hidden")

		stop := errors.New("enough")
		n := 0
		err = entity.Collect(ctx, f.Table, pk, entity.Each(stops, func(Stop) error { n++; return stop }), entity.SkipUnknown())
		assert.Equal(t, stop, err, "as it is")
		assert.Equal(t, 1, n)

		f.faults.Script()
		for name, sink := range map[string]entity.Sink{
			"nil": nil, "Into": entity.Into[Stop](stops, nil), "entity": entity.Into[Stop](nil, &ss), "Raw": entity.Raw(nil),
			"function": entity.Each[Stop](stops, nil), "Each": entity.Each(nil, func(Stop) error { return nil }),
		} {
			err := entity.Collect(ctx, f.Table, pk, entity.SkipUnknown(), sink)
			require.ErrorIs(t, err, entity.ErrInvalid, name)
			assert.ErrorContains(t, err, "sink 1")
			assert.ErrorContains(t, err, name)
			require.ErrorIs(t, entity.Sort(f.Table, bare, sink), entity.ErrInvalid, name)
		}
		require.ErrorIs(t, entity.Collect(ctx, nil, pk), entity.ErrInvalid)
		assert.Empty(t, f.faults.Sent(), "refused before anything is sent")
	})
}

func TestCollect_RefusesAnEntityOfAnotherTable(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		_, stops := parcels(t, f)
		ctx := t.Context()
		_, err := stops.Create(ctx, Stop{"1", 1, ""})
		require.NoError(t, err)
		f.faults.Script()
		other := f
		other.Table = offline(t, schema("other"))
		_, others := parcels(t, other)
		pk := stops.Key(Stop{"1", 1, ""}).PK
		var list []Stop
		for name, err := range map[string]error{
			"Collect":      entity.Collect(ctx, f.Table, pk, entity.SkipUnknown(), entity.Into(others, &list)),
			"CollectQuery": entity.CollectQuery(ctx, f.Table, table.Query{PK: pk}, entity.SkipUnknown(), entity.Into(others, &list)),
		} {
			require.ErrorIs(t, err, entity.ErrInvalid, name)
			assert.ErrorContains(t, err, "sink 1", name)
			assert.ErrorContains(t, err, "an entity of table other", name)
		}
		assert.Empty(t, list)
		assert.Empty(t, f.faults.Sent(), "refused before anything is sent")
	})
}

func TestSort_TakesImages(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		parcels, stops := parcels(t, f)
		var ps []Parcel
		var ss []Stop
		sinks := []entity.Sink{entity.Into(parcels, &ps), entity.Into(stops, &ss)}
		// What a function gets for a row that DynamoDB deleted when it had expired.
		image, err := table.ItemFromJSON([]byte(`{"PK":{"S":"shop/PARCEL#1"},"SK":{"S":"PARCEL"},"_t":{"S":"Parcel"},"no":{"S":"1"},"_ttl":{"N":"1000"}}`))
		require.NoError(t, err)
		require.NoError(t, entity.Sort(f.Table, image, sinks...))
		assert.Equal(t, []Parcel{{No: "1", Expires: time.Unix(1000, 0).UTC()}}, ps, "not hidden")

		// What was written comes back from its own image.
		_, err = stops.Create(t.Context(), Stop{"1", 3, "n"})
		require.NoError(t, err)
		require.NoError(t, entity.Sort(f.Table, f.row(t, stops.Key(Stop{"1", 3, ""})), sinks...))
		// A record with keys only.
		require.NoError(t, entity.Sort(f.Table, f.KeyItem(stops.Key(Stop{"1", 4, ""})), sinks...))
		assert.Equal(t, []Stop{{"1", 3, "n"}, {"1", 4, ""}}, ss)

		lock := f.KeyItem(keys.NewKey("shop/PARCEL#1", "LOCK"))
		lock["_t"], _ = table.Encode("Latch")
		err = entity.Sort(f.Table, lock, sinks...)
		var unknown *entity.UnknownTypeError
		require.ErrorAs(t, err, &unknown)
		assert.Equal(t, "Latch", unknown.Type)
		require.NoError(t, entity.Sort(f.Table, lock, append(sinks, entity.SkipUnknown())...))
		image["no"], _ = table.Encode(5)
		var decode *entity.DecodeError
		require.ErrorAs(t, entity.Sort(f.Table, image, append(sinks, entity.SkipUnknown())...), &decode)
		assert.Equal(t, "PARCEL", decode.Key.SK)
		require.ErrorIs(t, entity.Sort(f.Table, nil, sinks...), entity.ErrInvalid)
		require.ErrorIs(t, entity.Sort(nil, image, sinks...), entity.ErrInvalid)
	})
}
