package entity_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

var indexAttrs = []string{"g1pk", "g1sk", "g2pk", "g2sk", "g3pk", "l1sk"}

// assertKeysFit checks a row's index keys against those that a fresh row of the same value
// would have.
func assertKeysFit[T any](t require.TestingT, e *entity.Entity[T], row table.Item) {
	o, err := e.Decode(row)
	require.NoError(t, err)
	op := e.PutOp(o)
	require.NoError(t, op.Err())
	for _, attr := range indexAttrs {
		require.Equal(t, text(op.Item(), attr), text(row, attr), "%s of %+v", attr, o)
	}
}

func TestUpdate_IndexKeysFollow(t *testing.T) {
	type step struct {
		name    string
		changes []entity.Change
		group   string // g1pk afterwards
		reads   int
	}
	steps := []step{
		{"untouched", []entity.Change{entity.Set("other", "x")}, "shop/GROUP#g", 0},
		{"one field of two", []entity.Change{entity.Set("group", "h")}, "shop/GROUP#h", 1},
		{"both fields", []entity.Change{entity.Set("group", "i"), entity.Set("rank", 7)}, "shop/GROUP#i", 0},
		{"a computed field", []entity.Change{entity.Add("rank", -3)}, "shop/GROUP#i", 1},
		{"emptied", []entity.Change{entity.Set("group", "")}, "", 1},
		{"set again", []entity.Change{entity.Set("group", "j")}, "shop/GROUP#j", 1},
		{"removed", []entity.Change{entity.Remove("group")}, "", 1},
		{"while out of the index", []entity.Change{entity.Set("rank", 1)}, "", 1},
		{"back with both", []entity.Change{entity.Set("group", "k"), entity.Set("rank", 2)}, "shop/GROUP#k", 0},
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		plain := define(t, f.Table, plainSpec())
		_, err := plain.Create(t.Context(), Plain{ID: "1", Group: "g", Rank: 5})
		require.NoError(t, err)
		for _, s := range steps {
			f.faults.Script()
			_, err := plain.Update(t.Context(), Plain{ID: "1"}, s.changes...)
			require.NoError(t, err, s.name)
			row := f.row(t, plain.Key(Plain{ID: "1"}))
			assert.Equal(t, s.group, text(row, "g1pk"), s.name)
			assertKeysFit(t, plain, row)
			assert.Len(t, f.faults.Sent(), s.reads+1, "%s: requests", s.name)
		}
	})
}

// change draws changes that may touch anything an index depends on.
func drawChanges(t *rapid.T) []entity.Change {
	all := []entity.Change{
		entity.Set("status", rapid.SampledFrom([]string{"", "open", "paid"}).Draw(t, "status")),
		entity.Set("placed", rapid.SampledFrom([]time.Time{{}, time.Unix(1e9, 0), time.Unix(2e9, 0)}).Draw(t, "placed")),
		entity.Set("note", rapid.SampledFrom([]string{"", "n"}).Draw(t, "note")),
	}
	if rapid.Bool().Draw(t, "add") {
		all = append(all, entity.Add("total", rapid.Int64Range(-150, 150).Draw(t, "delta")))
	} else {
		all = append(all, entity.Set("total", rapid.Int64Range(0, 200).Draw(t, "total")))
	}
	perm := rapid.Permutation(all).Draw(t, "order")
	return perm[:rapid.IntRange(1, len(perm)).Draw(t, "n")]
}

func TestUpdate_IndexKeysAreNeverStale(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders := define(t, f.Table, orderSpec())
		others := define(t, f.raw, orderSpec())
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			ctx := context.Background()
			n++
			key := Order{Tenant: "acme", ID: fmt.Sprint(n)}
			o, err := orders.Create(ctx, key)
			require.NoError(rt, err)
			for range rapid.IntRange(1, 6).Draw(rt, "steps") {
				f.clock.advance(time.Second)
				// Somebody may write between any read and its write.
				races := rapid.IntRange(0, 2).Draw(rt, "races")
				between := drawChanges(rt)
				f.faults.Before(func(op string) {
					if op == "UpdateItem" && races > 0 {
						races--
						_, err := others.AnyVersion().Update(ctx, key, between...)
						require.NoError(rt, err)
					}
				})
				from, writer := key, orders.AnyVersion()
				if rapid.Bool().Draw(rt, "versioned") {
					from, writer = o, orders
				}
				updated, err := writer.Update(ctx, from, drawChanges(rt)...)
				f.faults.Before(nil)
				switch {
				case err == nil:
					o = updated
				case errors.Is(err, entity.ErrStale) && from.Version > 0:
					o, err = orders.Get(ctx, key, entity.Consistent())
					require.NoError(rt, err)
				default:
					require.NoError(rt, err)
				}
				assertKeysFit(rt, orders, f.row(t, orders.Key(key)))
			}
		})
	})
}

func TestUpdate_AnUnversionedOneThatLosesARaceReadsAgain(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		plain, others := define(t, f.Table, plainSpec()), define(t, f.raw, plainSpec())
		ctx := t.Context()
		_, err := plain.Create(ctx, Plain{ID: "1", Group: "g", Rank: 1})
		require.NoError(t, err)
		races := 3
		f.faults.Before(func(op string) {
			if op == "UpdateItem" && races > 0 {
				races--
				_, err := others.Update(ctx, Plain{ID: "1"}, entity.Add("rank", 1))
				require.NoError(t, err)
			}
		})
		p, err := plain.Update(ctx, Plain{ID: "1"}, entity.Set("group", "h"))
		require.NoError(t, err)
		assert.Equal(t, 4, p.Rank)
		row := f.row(t, plain.Key(p))
		assert.Equal(t, "shop/GROUP#h", text(row, "g1pk"))
		assertKeysFit(t, plain, row)

		races = 1000
		_, err = plain.Update(ctx, Plain{ID: "1"}, entity.Set("group", "i"))
		require.ErrorIs(t, err, entity.ErrStale, "the policy ends it")
		assertKeysFit(t, plain, f.row(t, plain.Key(p)))

		// An Op cannot read: it depends on what its caller knew.
		op := plain.UpdateOp(Plain{ID: "1", Rank: 1}, entity.Set("group", "j"))
		require.ErrorIs(t, f.raw.Write(ctx, op), entity.ErrStale)
		now, err := plain.Get(ctx, p, entity.Consistent())
		require.NoError(t, err)
		require.NoError(t, f.raw.Write(ctx, plain.UpdateOp(now, entity.Set("group", "j"))))
		assertKeysFit(t, plain, f.row(t, plain.Key(p)))
	})
}

func TestUpdate_ARowWithoutAVersionIsGuardedByHavingNone(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders, others := define(t, f.Table, orderSpec()), define(t, f.raw, orderSpec())
		key := Order{Tenant: "acme", ID: "1"}
		require.NoError(t, f.raw.Write(t.Context(), table.Put(f.KeyItem(orders.Key(key))))) // an older program's
		f.faults.Before(func(op string) {
			if op == "UpdateItem" {
				f.faults.Before(nil)
				_, err := others.AnyVersion().Update(t.Context(), key, entity.Set("total", 500))
				require.NoError(t, err)
			}
		})
		o, err := orders.AnyVersion().Update(t.Context(), key, entity.Set("note", "x"))
		require.NoError(t, err)
		assert.Equal(t, int64(500), o.Total)
		row := f.row(t, orders.Key(key))
		assert.Equal(t, "shop/BIG#acme", text(row, "g2pk"))
		assertKeysFit(t, orders, row)
	})
}

// A status in the sort key is frequent in tables of other programs. A row with another status is another row.
func TestUpdate_OfTheKeyIsRefusedWithTheRemedy(t *testing.T) {
	type item struct {
		Customer string `dynamo:"-"`
		Status   string `dynamo:"-"`
		SKU      string `dynamo:"sku"`
		Version  int64  `dynamo:"version"`
	}
	const remedy = `"Status" is part of the key: delete the row and create another one, in a transaction`
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		ctx := t.Context()
		items := define(t, f.Table, entity.Spec[item]{Type: "Item", PK: "CART#{customer}", SK: "{status}#{sku}", Version: "version"})
		saved, err := items.Create(ctx, item{Customer: "ann", Status: "saved", SKU: "7"})
		require.NoError(t, err)
		_, err = items.Update(ctx, saved, entity.Set("Status", "active"))
		require.ErrorIs(t, err, entity.ErrInvalid)
		require.ErrorContains(t, err, remedy)
		_, err = items.Modify(ctx, saved, func(i *item) error { i.Status = "active"; return nil })
		require.ErrorContains(t, err, remedy)

		active := saved
		active.Status, active.Version = "active", 0
		require.NoError(t, f.Write(ctx, items.DeleteOp(saved), items.CreateOp(active)))
		active.Version = 1
		assert.Equal(t, []item{active}, collect(t, items.Query(ctx, keys.Values{"customer": "ann"})))
	})
}

// Two values of a field that only a shard of the key depends on can give the same key. So the key does not tell the field of its row.
func TestUpdate_IndexKeysDoNotTakeAFieldFromAShard(t *testing.T) {
	type Visit struct {
		User    string `dynamo:"user"`
		Minute  int    `dynamo:"minute"`
		Page    int    `dynamo:"page"`
		Version int64  `dynamo:"version"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		for name, version := range map[string]string{"versioned": "version", "unversioned": ""} {
			visits := define(t, newFixture(t, e).Table, entity.Spec[Visit]{
				Type: "Visit", PK: "VISIT#{user:shard2}", SK: "{minute:uint2}", Version: version,
				Indexes: []entity.Index[Visit]{{Name: "gsi1", PK: "PAGE#{page:uint4}", SK: "{user}"}},
				Unique:  []entity.Unique[Visit]{{Name: "page", Key: "{user}#{page:uint4}"}},
			})
			ctx := t.Context()
			ann, err := visits.Create(ctx, Visit{User: "ann", Minute: 1, Page: 1})
			require.NoError(t, err, name)
			bob := ann
			for bob.User = "bob"; visits.Key(bob) != visits.Key(ann); bob.User += "!" {
			}
			updated, err := visits.Update(ctx, bob, entity.Set("page", 2))
			require.NoError(t, err, name)
			assert.Equal(t, "ann", updated.User, name)
			row, err := visits.Table().Get(ctx, visits.Key(ann), true)
			require.NoError(t, err)
			assert.Equal(t, []string{"shop/PAGE#0002", "ann"}, []string{text(row, "g1pk"), text(row, "g1sk")}, name)

			bob.Version = updated.Version
			require.ErrorIs(t, visits.Table().Write(ctx, visits.UpdateOp(bob, entity.Set("page", 3))), entity.ErrStale, name)
			updated.User, updated.Minute, updated.Version = "ann", 2, 0
			_, err = visits.Create(ctx, updated)
			var unique *entity.UniqueError
			require.ErrorAs(t, err, &unique, name)
		}
	})
}

type Dated struct {
	ID      string    `dynamo:"id"`
	Email   string    `dynamo:"email,omitempty"`
	Note    string    `dynamo:"note,omitempty"`
	Version int64     `dynamo:"version"`
	Created time.Time `dynamo:"created,omitempty"`
}

// A caller whose value lacks the time of creation has not the whole row.
func TestUpdate_CreatedIsThatOfTheRow(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		ctx := t.Context()
		cut := f.clock.now().Add(-time.Hour)
		stamped := define(t, f.Table, entity.Spec[Dated]{
			Type: "Dated", PK: "STAMPED#{id}", SK: "STAMPED", Version: "version", Created: "created",
			Indexes: []entity.Index[Dated]{{Name: "gsi1", PK: "NEW", SK: "{id}", When: func(s Dated) bool { return s.Created.After(cut) }}},
			Unique:  []entity.Unique[Dated]{{Name: "email", Key: "{email}"}},
		})
		s, err := stamped.Create(ctx, Dated{ID: "1", Email: "a"})
		require.NoError(t, err)
		u, err := stamped.Update(ctx, Dated{ID: "1", Email: "a", Version: 1}, entity.Set("email", "b"))
		require.NoError(t, err)
		assert.Equal(t, s.Created, u.Created)
		assert.NotEmpty(t, text(f.row(t, stamped.Key(s)), "g1pk"))
		u, err = stamped.Update(ctx, Dated{ID: "1", Email: "b", Version: 2}, entity.Set("note", "b"))
		require.NoError(t, err)
		assert.Equal(t, "b", u.Note)
		assert.NotEmpty(t, text(f.row(t, stamped.Key(s)), "g1pk"))
	})
}

// Stock is in an index by its count, and its count is unique within a place.
type Stock struct {
	ID      string `dynamo:"id"`
	Place   string `dynamo:"place,omitempty"`
	Count   uint   `dynamo:"count"`
	Delta   int    `dynamo:"delta"`
	Version int64  `dynamo:"version"`
}

// Only the key fields and the version of the value count, also if it has another number than the row.
func TestUpdate_AddsToTheNumberOfTheRow(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		stock := define(t, f.Table, entity.Spec[Stock]{
			Type: "Stock", PK: "STOCK#{id}", SK: "STOCK", Version: "version",
			Indexes: []entity.Index[Stock]{{Name: "gsi1", PK: "ALL", SK: "{count:uint6}"}, {Name: "gsi2", PK: "ALL", SK: "{delta:uint6}"}},
			Unique:  []entity.Unique[Stock]{{Name: "count", Key: "{place}#{count:uint6}"}},
		})
		ctx := t.Context()
		s, err := stock.Create(ctx, Stock{ID: "1", Place: "a", Count: 5, Delta: 7})
		require.NoError(t, err)
		s, err = stock.Update(ctx, Stock{ID: "1", Version: s.Version}, entity.Add("count", -1))
		require.NoError(t, err)
		s, err = stock.Update(ctx, Stock{ID: "1", Version: s.Version}, entity.Add("delta", -2))
		require.NoError(t, err)
		assert.Equal(t, Stock{ID: "1", Place: "a", Count: 4, Delta: 5, Version: 3}, s)
		_, err = stock.Update(ctx, s, entity.Add("count", -5))
		require.ErrorIs(t, err, entity.ErrInvalid)
		_, err = stock.Update(ctx, Stock{ID: "1", Version: 1}, entity.Add("count", -1))
		require.ErrorIs(t, err, entity.ErrStale, "not that the sum does not fit")
	})
}
