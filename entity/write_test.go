package entity_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

func TestWrite_OfAVersionedEntity(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders := define(t, f.Table, orderSpec())
		ctx := t.Context()
		placed := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		in := Order{Tenant: "acme", ID: "1", Status: "open", Placed: placed, Total: 5, Tags: []string{"a"}, Version: 77, Expires: f.clock.now().Add(time.Hour)}

		created, err := orders.Create(ctx, in)
		require.NoError(t, err)
		want := in
		want.Version, want.Created, want.Updated = 1, f.clock.now(), f.clock.now()
		want.Expires = in.Expires.Truncate(time.Second).Add(time.Second)
		assert.Equal(t, want, created, "what is returned is what is kept")
		got, err := orders.Get(ctx, Order{Tenant: "acme", ID: "1"}, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, created, got)
		row := f.row(t, orders.Key(in))
		assert.Equal(t, "shop/TENANT#acme", text(row, "PK"))
		assert.Equal(t, "ORDER#1", text(row, "SK"))
		assert.Equal(t, "Order", text(row, "_t"))
		assert.Equal(t, "1", string(number(row, "_v")))
		assert.Equal(t, "shop/STATUS#open", text(row, "g1pk"))
		assert.Equal(t, "2026-01-01T00:00:00Z#1", text(row, "g1sk"))
		assert.NotContains(t, row, "g2pk")
		assert.NotContains(t, row, "version")
		assert.NotContains(t, row, "expires")
		assert.NotContains(t, row, "Tenant")

		_, err = orders.Create(ctx, in)
		require.ErrorIs(t, err, entity.ErrExists)

		f.clock.advance(time.Minute)
		created.Total = 200
		put, err := orders.Put(ctx, created)
		require.NoError(t, err)
		assert.Equal(t, int64(2), put.Version)
		assert.Equal(t, created.Created, put.Created)
		assert.Equal(t, f.clock.now(), put.Updated)
		assert.Equal(t, "shop/BIG#acme", text(f.row(t, orders.Key(in)), "g2pk"), "the predicate holds now")
		_, err = orders.Put(ctx, created)
		require.ErrorIs(t, err, entity.ErrStale, "version 1 is history")
		_, err = orders.Put(ctx, in)
		require.ErrorIs(t, err, entity.ErrStale)
		_, err = orders.Put(ctx, Order{Tenant: "acme", ID: "2", Version: 3})
		require.ErrorIs(t, err, entity.ErrNotFound)
		fresh, err := orders.Put(ctx, Order{Tenant: "acme", ID: "2"})
		require.NoError(t, err)
		assert.Equal(t, int64(1), fresh.Version)

		updated, err := orders.Update(ctx, put, entity.Set("status", "paid"), entity.Set("total", 50), entity.Add("tags", []string{"b"}))
		require.NoError(t, err)
		assert.Equal(t, int64(3), updated.Version)
		assert.Equal(t, []string{"a", "b"}, updated.Tags)
		assert.Equal(t, "acme", updated.Tenant)
		row = f.row(t, orders.Key(in))
		assert.Equal(t, "shop/STATUS#paid", text(row, "g1pk"))
		assert.NotContains(t, row, "g2pk", "the predicate does not hold any more")
		_, err = orders.Update(ctx, put, entity.Set("status", "late"))
		require.ErrorIs(t, err, entity.ErrStale)
		_, err = orders.Update(ctx, Order{Tenant: "acme", ID: "none"}, entity.Set("note", "x"))
		require.ErrorIs(t, err, entity.ErrNotFound)
		_, err = orders.Update(ctx, Order{Tenant: "acme", ID: "none", Version: 1}, entity.Set("note", "x"))
		require.ErrorIs(t, err, entity.ErrNotFound)

		_, err = orders.Update(ctx, Order{Tenant: "acme", ID: "1"}, entity.Set("total", 1000))
		require.ErrorIs(t, err, entity.ErrStale, "version 0 is not the row's")
		require.ErrorIs(t, orders.Delete(ctx, Order{Tenant: "acme", ID: "1"}), entity.ErrStale)
		again, err := orders.AnyVersion().Update(ctx, Order{Tenant: "acme", ID: "1", Version: 2}, entity.Set("total", 1000))
		require.NoError(t, err, "the row as it is")
		assert.Equal(t, int64(4), again.Version)
		assert.Equal(t, "shop/BIG#acme", text(f.row(t, orders.Key(in)), "g2pk"))

		require.ErrorIs(t, orders.Delete(ctx, put), entity.ErrStale)
		require.NoError(t, orders.Delete(ctx, again))
		require.ErrorIs(t, orders.Delete(ctx, again), entity.ErrNotFound)
		require.ErrorIs(t, orders.Delete(ctx, Order{Tenant: "acme", ID: "1"}), entity.ErrNotFound)
		require.NoError(t, orders.AnyVersion().Delete(ctx, Order{Tenant: "acme", ID: "1"}))
		_, err = orders.Get(ctx, in, entity.Consistent())
		require.ErrorIs(t, err, entity.ErrNotFound)
	})
}

func TestWrite_OpsDoTheSameInATransaction(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders, plain := define(t, f.Table, orderSpec()), define(t, f.Table, plainSpec())
		ctx := t.Context()
		a, b := Order{Tenant: "acme", ID: "a"}, Order{Tenant: "acme", ID: "b"}
		require.NoError(t, f.Write(ctx, orders.CreateOp(a), orders.PutOp(b), plain.PutOp(Plain{ID: "p", Count: 1})))
		err := f.Write(ctx, orders.CreateOp(a), orders.PutOp(b), plain.UpdateOp(Plain{ID: "none"}, entity.Add("count", 1)))
		list := table.Conditions(err)
		require.Len(t, list, 3)
		assert.ErrorIs(t, list[0], entity.ErrExists)
		assert.ErrorIs(t, list[1], entity.ErrStale)
		assert.ErrorIs(t, list[2], entity.ErrNotFound)

		a, err = orders.Get(ctx, a, entity.Consistent())
		require.NoError(t, err)
		require.NoError(t, f.Write(ctx,
			orders.UpdateOp(a, entity.Set("status", "open"), entity.Set("placed", f.clock.now().Truncate(time.Second))),
			orders.AnyVersion().DeleteOp(b), plain.UpdateOp(Plain{ID: "p"}, entity.Add("count", 2))))
		row := f.row(t, orders.Key(a))
		assert.Equal(t, "shop/STATUS#open", text(row, "g1pk"))
		assert.Nil(t, f.row(t, orders.Key(b)))
		p, err := plain.Get(ctx, Plain{ID: "p"}, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, 3, p.Count)

		op := orders.AnyVersion().UpdateOp(Order{Tenant: "acme", ID: "a"}, entity.Set("note", "x"))
		require.ErrorIs(t, f.Write(ctx, op), entity.ErrInvalid, "a predicate needs the row, and an Op cannot read")
	})
}

func TestWrite_NeverTouchesARowOfAnotherType(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders, plain := define(t, f.Table, orderSpec()), define(t, f.Table, plainSpec())
		ctx := t.Context()
		for _, version := range []int64{0, 1} {
			o := Order{Tenant: "acme", ID: "1", Version: version}
			foreign := f.KeyItem(orders.Key(o))
			foreign["_t"] = &types.AttributeValueMemberS{Value: "Invoice"}
			if version > 0 {
				foreign["_v"] = &types.AttributeValueMemberN{Value: "1"}
			}
			foreign["_ttl"] = &types.AttributeValueMemberN{Value: "1"} // expired, too
			require.NoError(t, f.Write(ctx, table.Put(foreign)))
			_, err := orders.Put(ctx, o)
			assert.ErrorIs(t, err, entity.ErrType)
			_, err = orders.Create(ctx, o)
			assert.ErrorIs(t, err, entity.ErrExists)
			_, err = orders.Update(ctx, o, entity.Set("note", "x"))
			assert.ErrorIs(t, err, entity.ErrType)
			assert.ErrorIs(t, orders.Delete(ctx, o), entity.ErrType)
			_, err = orders.Get(ctx, o)
			assert.ErrorIs(t, err, entity.ErrType)
			assert.True(t, attrvalue.SameItem(foreign, f.row(t, orders.Key(o))))
		}
		p := Plain{ID: "1"}
		foreign := f.KeyItem(plain.Key(p))
		foreign["_t"] = &types.AttributeValueMemberN{Value: "1"} // a type attribute of another program
		require.NoError(t, f.Write(ctx, table.Put(foreign)))
		_, err := plain.Put(ctx, p)
		assert.ErrorIs(t, err, entity.ErrType)
		assert.ErrorIs(t, plain.Delete(ctx, p), entity.ErrType)
		_, err = plain.Update(ctx, p, entity.Set("other", "x"))
		assert.ErrorIs(t, err, entity.ErrType)
		assert.True(t, attrvalue.SameItem(foreign, f.row(t, plain.Key(p))))
	})
}

func TestWrite_AdoptsRowsOfOlderPrograms(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders := define(t, f.Table, orderSpec())
		ctx := t.Context()
		o := Order{Tenant: "acme", ID: "1"}
		old := func() table.Item {
			item := f.KeyItem(orders.Key(o))
			item["total"] = &types.AttributeValueMemberN{Value: "150"}
			item["status"] = &types.AttributeValueMemberS{Value: ""}
			item["unknown"] = &types.AttributeValueMemberS{Value: "kept"}
			return item
		}
		require.NoError(t, f.Write(ctx, table.Put(old())))
		got, err := orders.Get(ctx, o)
		require.NoError(t, err)
		assert.Equal(t, Order{Tenant: "acme", ID: "1", Total: 150}, got, "without type or version, the id from the key")

		_, err = orders.Create(ctx, o)
		require.ErrorIs(t, err, entity.ErrExists)
		updated, err := orders.Update(ctx, got, entity.Set("note", "seen"))
		require.NoError(t, err)
		assert.Equal(t, int64(1), updated.Version)
		row := f.row(t, orders.Key(o))
		assert.Equal(t, "kept", text(row, "unknown"), "what the struct does not know survives")
		assert.Equal(t, "shop/BIG#acme", text(row, "g2pk"))
		assert.NotContains(t, row, "_t", "nothing is written that was not asked for")

		require.NoError(t, f.Write(ctx, table.Put(old())))
		_, err = orders.Put(ctx, got)
		require.ErrorIs(t, err, entity.ErrStale, "it cannot tell what was read")
		got.Total = 1
		put, err := orders.AnyVersion().Put(ctx, got)
		require.NoError(t, err)
		assert.Equal(t, int64(1), put.Version)

		// A versioned update by a caller who holds the whole row, of which some was never written.
		require.NoError(t, f.Write(ctx, table.Put(old())))
		updated, err = orders.AnyVersion().Update(ctx, o, entity.Set("note", "x"))
		require.NoError(t, err)
		updated, err = orders.Update(ctx, updated, entity.Set("status", "open"))
		require.NoError(t, err)
		assert.NotContains(t, f.row(t, orders.Key(o)), "g1pk", "placed is empty still")
		_, err = orders.Update(ctx, updated, entity.Set("placed", time.Unix(1e9, 0)))
		require.NoError(t, err)
		assert.Equal(t, "shop/STATUS#open", text(f.row(t, orders.Key(o)), "g1pk"))
	})
}

func TestWrite_OfUnversionedEntities(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		plain := define(t, f.Table, plainSpec())
		ctx := t.Context()
		p := Plain{ID: "1", Group: "g", Rank: 5}
		_, err := plain.Create(ctx, p)
		require.NoError(t, err)
		_, err = plain.Create(ctx, p)
		require.ErrorIs(t, err, entity.ErrExists)
		p.Other = "x"
		_, err = plain.Put(ctx, p)
		require.NoError(t, err)
		_, err = plain.Put(ctx, p)
		require.NoError(t, err, "the last writer wins")
		f.faults.Script()
		_, err = plain.Update(ctx, Plain{ID: "1"}, entity.Add("count", 1))
		require.NoError(t, err)
		assert.Equal(t, []string{"UpdateItem"}, f.faults.Sent(), "no index is touched: nothing to read")
		require.ErrorIs(t, f.Write(ctx, plain.UpdateOp(Plain{ID: "1"})), entity.ErrInvalid, "an operation without changes")
		f.faults.Script()
		same, err := plain.Update(ctx, Plain{ID: "1"})
		require.NoError(t, err)
		p.Count = 1
		assert.Equal(t, p, same)
		assert.Equal(t, []string{"GetItem"}, f.faults.Sent(), "nothing changes: nothing is written")
		_, err = plain.Update(ctx, Plain{ID: "2"})
		require.ErrorIs(t, err, entity.ErrNotFound)
		require.NoError(t, plain.Delete(ctx, p))
		require.NoError(t, plain.Delete(ctx, p))
		_, err = plain.Update(ctx, p, entity.Set("group", "h"))
		require.ErrorIs(t, err, entity.ErrNotFound)
		assert.Nil(t, f.row(t, plain.Key(p)))
	})
}

// A hold of a seat that has expired is no hold any more, also if DynamoDB has not deleted its row yet: what depends on its deletion
// fails.
func TestDelete_AnExpiredRowIsNotFound(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders := define(t, f.Table, orderSpec())
		ctx := t.Context()
		o, err := orders.Create(ctx, Order{Tenant: "acme", ID: "1", Expires: f.clock.now().Add(time.Minute)})
		require.NoError(t, err)
		f.clock.advance(2 * time.Minute)

		require.ErrorIs(t, orders.Delete(ctx, o), entity.ErrNotFound)
		require.ErrorIs(t, orders.Delete(ctx, Order{Tenant: "acme", ID: "1"}), entity.ErrNotFound, "without a version")
		require.ErrorIs(t, f.Write(ctx, orders.DeleteOp(o), orders.CreateOp(Order{Tenant: "acme", ID: "2"})), entity.ErrNotFound)
		_, err = orders.Get(ctx, Order{Tenant: "acme", ID: "2"}, entity.Consistent())
		require.ErrorIs(t, err, entity.ErrNotFound, "nothing of the transaction was written")

		require.NoError(t, orders.AnyVersion().Delete(ctx, o), "nobody asked for a row that has not expired")
		_, err = orders.Get(ctx, o, entity.Consistent(), entity.WithExpired())
		require.ErrorIs(t, err, entity.ErrNotFound)
	})
}

func TestWrite_ExpiredRowsAreInvisible(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders := define(t, f.Table, orderSpec())
		ctx := t.Context()
		o := Order{Tenant: "acme", ID: "1", Expires: f.clock.now().Add(time.Minute)}
		created, err := orders.Create(ctx, o)
		require.NoError(t, err)
		kept, err := orders.Create(ctx, Order{Tenant: "acme", ID: "2"})
		require.NoError(t, err)
		f.clock.advance(created.Expires.Sub(f.clock.now()) - time.Nanosecond)
		_, err = orders.Get(ctx, o, entity.Consistent())
		require.NoError(t, err, "until the last moment")
		_, err = orders.Create(ctx, o)
		require.ErrorIs(t, err, entity.ErrExists)
		f.clock.advance(time.Nanosecond)

		_, err = orders.Get(ctx, o, entity.Consistent())
		require.ErrorIs(t, err, entity.ErrNotFound)
		seen, err := orders.Get(ctx, o, entity.Consistent(), entity.WithExpired())
		require.NoError(t, err)
		assert.Equal(t, created, seen)
		assert.Equal(t, []Order{kept}, collect(t, orders.Query(ctx, keys.Values{"tenant": "acme"}, entity.Consistent())))
		assert.Len(t, collect(t, orders.Query(ctx, keys.Values{"tenant": "acme"}, entity.Consistent(), entity.WithExpired())), 2)
		var into []Order
		require.NoError(t, entity.Collect(ctx, f.Table, orders.Key(o).PK, entity.Into(orders, &into)))
		assert.Equal(t, []Order{kept}, into)

		for _, version := range []int64{0, 1} {
			_, err = orders.Update(ctx, Order{Tenant: "acme", ID: "1", Version: version}, entity.Set("note", "x"))
			require.ErrorIs(t, err, entity.ErrNotFound)
		}
		later := created
		later.Expires = f.clock.now().Add(time.Minute)
		for _, version := range []int64{1, 9} {
			later.Version = version
			_, err = orders.Put(ctx, later)
			require.ErrorIs(t, err, entity.ErrNotFound)
			require.ErrorIs(t, f.Write(ctx, orders.PutOp(later)), entity.ErrNotFound)
		}
		f.faults.Script(faulty.DropReply)
		kept.Expires = f.clock.now()
		_, err = orders.Put(ctx, kept)
		require.NoError(t, err, "a row that is written as expired is recognised")
		put, err := orders.Put(ctx, Order{Tenant: "acme", ID: "1", Expires: f.clock.now().Add(time.Minute)})
		require.NoError(t, err, "what nobody sees is not in the way")
		assert.Equal(t, int64(1), put.Version)
		f.clock.advance(2 * time.Minute)
		again, err := orders.Create(ctx, Order{Tenant: "acme", ID: "1"})
		require.NoError(t, err)
		assert.Equal(t, int64(1), again.Version)

		soon := f.clock.now().Add(time.Minute + time.Nanosecond)
		u, err := orders.Update(ctx, again, entity.Set("expires", soon))
		require.NoError(t, err)
		assert.Equal(t, soon.Truncate(time.Second).Add(time.Second), u.Expires, "rounded up")
		u, err = orders.Update(ctx, u, entity.Remove("expires"))
		require.NoError(t, err)
		assert.True(t, u.Expires.IsZero())
		assert.NotContains(t, f.row(t, orders.Key(o)), "_ttl")
		u, err = orders.Update(ctx, u, entity.Set("expires", time.Time{}))
		require.NoError(t, err)
		assert.NotContains(t, f.row(t, orders.Key(o)), "_ttl")
		_, err = orders.Update(ctx, u, entity.Add("expires", 1))
		require.ErrorIs(t, err, entity.ErrInvalid)
	})
}

func TestWrite_RecognisesLostAnswers(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders, plain := define(t, f.Table, orderSpec()), define(t, f.Table, plainSpec())
		ctx := t.Context()
		lose := func() { f.faults.Script(faulty.DropReply) }
		lose()
		o, err := orders.Create(ctx, Order{Tenant: "acme", ID: "1", Total: 5})
		require.NoError(t, err)
		lose()
		o.Note = "put"
		o, err = orders.Put(ctx, o)
		require.NoError(t, err)
		lose()
		o, err = orders.Update(ctx, o, entity.Set("note", "set"), entity.Add("total", 5), entity.Add("tags", []string{"x"}), entity.Append("lines", []string{"l"}), entity.Remove("status"))
		require.NoError(t, err)
		assert.Equal(t, int64(10), o.Total)
		assert.Equal(t, int64(3), o.Version)
		lose()
		o, err = orders.Update(ctx, o, entity.RemoveFrom("tags", []string{"x", "y"}))
		require.NoError(t, err)
		assert.Empty(t, o.Tags)
		lose()
		o, err = orders.Update(ctx, o, entity.Add("total", 1))
		require.NoError(t, err, "a sum is recognised too")
		assert.Equal(t, int64(11), o.Total)
		f.faults.Script(faulty.Pass, faulty.DropReply)
		o, err = orders.AnyVersion().Update(ctx, Order{Tenant: "acme", ID: "1"}, entity.Add("total", 1))
		require.NoError(t, err)
		assert.Equal(t, int64(12), o.Total, "added once: the row was read, so there is a version to tell by")
		assert.Len(t, f.faults.Sent(), 3)
		got, err := orders.Get(ctx, o, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, o, got)
		lose()
		require.NoError(t, orders.Delete(ctx, o))
		assert.Nil(t, f.row(t, orders.Key(o)))

		lose()
		_, err = plain.Create(ctx, Plain{ID: "1", Group: "g", Rank: 1})
		require.NoError(t, err)
		f.faults.Script(faulty.Pass, faulty.DropReply)
		p, err := plain.Update(ctx, Plain{ID: "1"}, entity.Set("group", "h"))
		require.NoError(t, err)
		assert.Equal(t, "h", p.Group)
	})
}

// What an answer that was lost has done cannot be told from a row that others have changed
// since: it is neither refused nor done again.
func TestWrite_LostAnswersThatNothingTellsAreNoRefusal(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders, others := define(t, f.Table, orderSpec()), define(t, f.raw, orderSpec())
		ctx := t.Context()
		key := Order{Tenant: "acme", ID: "1"}
		// between has something happen between the lost answer and the second attempt.
		between := func(do func() error) {
			writes := 0
			f.faults.Before(func(op string) {
				if op != "GetItem" {
					writes++
				}
				if writes == 2 {
					f.faults.Before(nil)
					require.NoError(t, do())
				}
			})
		}
		add := func() error {
			_, err := others.AnyVersion().Update(ctx, key, entity.Add("total", 10))
			return err
		}
		remove := func() error { return others.AnyVersion().Delete(ctx, key) }

		f.faults.Script(faulty.DropReply)
		between(add)
		_, err := orders.Create(ctx, key)
		require.ErrorIs(t, err, table.ErrUnreachable)
		require.NotErrorIs(t, err, entity.ErrExists)

		// Created, deleted, and created by somebody else: that row says nothing of the first one.
		require.NoError(t, remove())
		f.faults.Script(faulty.DropReply)
		between(func() error {
			if err := remove(); err != nil {
				return err
			}
			_, err := others.Create(ctx, Order{Tenant: "acme", ID: "1", Total: 10})
			return err
		})
		_, err = orders.Create(ctx, key)
		require.ErrorIs(t, err, table.ErrUnreachable)
		require.NotErrorIs(t, err, entity.ErrExists)

		calls := 0
		f.faults.Script(faulty.Pass, faulty.DropReply)
		between(add)
		_, err = orders.Modify(ctx, key, func(o *Order) error {
			calls++
			o.Total++
			return nil
		})
		require.ErrorIs(t, err, table.ErrUnreachable)
		assert.Equal(t, 1, calls)
		o, err := others.Get(ctx, key, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, int64(21), o.Total, "added once")

		for name, write := range map[string]func() error{
			"update": func() error { _, err := orders.Update(ctx, o, entity.Add("total", 1)); return err },
			"put":    func() error { _, err := orders.Put(ctx, o); return err },
		} {
			for _, do := range []func() error{add, remove} {
				f.faults.Script(faulty.DropReply)
				between(do)
				err = write()
				require.ErrorIs(t, err, table.ErrUnreachable, name)
				require.NotErrorIs(t, err, entity.ErrStale, name)
				require.NotErrorIs(t, err, entity.ErrNotFound, name)
				o, err = others.Upsert(ctx, key, func(o *Order) error { o.Total = 1; return nil })
				require.NoError(t, err)
			}
		}

		// One version further is somebody else's in its place: the write was not applied.
		f.faults.Script(faulty.DropRequest)
		between(add)
		_, err = orders.Update(ctx, o, entity.Add("total", 1))
		require.ErrorIs(t, err, entity.ErrStale)

		plain := define(t, f.Table, plainSpec())
		_, err = plain.Create(ctx, Plain{ID: "1"})
		require.NoError(t, err)
		f.faults.Script(faulty.Pass, faulty.DropReply)
		between(func() error {
			_, err := define(t, f.raw, plainSpec()).Update(ctx, Plain{ID: "1"}, entity.Add("count", 10))
			return err
		})
		_, err = plain.Modify(ctx, Plain{ID: "1"}, func(p *Plain) error { p.Count++; return nil })
		require.ErrorIs(t, err, table.ErrUnreachable, "without versions nothing tells")
		p, err := plain.Get(ctx, Plain{ID: "1"}, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, 11, p.Count)

		raw := define(t, f.raw, plainSpec())
		gone := func() error { return raw.Delete(ctx, Plain{ID: "1"}) }
		anew := func() error {
			if err := gone(); err != nil {
				return err
			}
			_, err := raw.Create(ctx, Plain{ID: "1", Count: 5})
			return err
		}
		few := plain.If(table.Attr("count").Less(5))
		for name, c := range map[string]struct {
			before, between, write func() error
			refusal                error
		}{
			"create": {gone, anew, func() error { _, err := plain.Create(ctx, Plain{ID: "1"}); return err }, entity.ErrExists},
			"put":    {gone, anew, func() error { _, err := few.Put(ctx, Plain{ID: "1", Count: 6}); return err }, table.ErrCondition},
			"update": {anew, gone, func() error { _, err := plain.Update(ctx, Plain{ID: "1"}, entity.Add("count", 1)); return err }, entity.ErrNotFound},
			"delete": {func() error { _, err := raw.Put(ctx, Plain{ID: "1"}); return err }, anew, func() error { return few.Delete(ctx, Plain{ID: "1"}) }, table.ErrCondition},
		} {
			require.NoError(t, c.before(), name)
			f.faults.Script(faulty.DropReply)
			between(c.between)
			err := c.write()
			require.ErrorIs(t, err, table.ErrUnreachable, name)
			require.NotErrorIs(t, err, c.refusal, name)
			require.ErrorIs(t, c.write(), c.refusal, name)
		}
	})
}

// Without the old number, an Add cannot recognise its sum. The next version is not known to be somebody else's then.
func TestWrite_ALostAdditionToANumberThatTheValueLacks(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		stock := define(t, f.Table, entity.Spec[Stock]{Type: "Stock", PK: "STOCK#{id}", SK: "STOCK", Version: "version"})
		ctx := t.Context()
		s, err := stock.Create(ctx, Stock{ID: "1", Count: 5})
		require.NoError(t, err)
		f.faults.Script(faulty.DropReply)
		_, err = stock.Update(ctx, Stock{ID: "1", Version: s.Version}, entity.Add("count", 1))
		require.ErrorIs(t, err, table.ErrUnreachable)
		require.NotErrorIs(t, err, entity.ErrStale, "nobody else has changed the row")
		s, err = stock.Get(ctx, s, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, Stock{ID: "1", Count: 6, Version: 2}, s)
		f.faults.Script(faulty.DropReply)
		s, err = stock.Update(ctx, s, entity.Add("count", 1))
		require.NoError(t, err, "the row as it was read")
		assert.EqualValues(t, 7, s.Count)
	})
}

// The result of an Add or Append can be in the row in another form than the field would be written: a zero that the tag omits, an empty
// list, a number with more digits than a float has.
func TestWrite_RecognisesAResultThatTheFieldWouldWriteDifferently(t *testing.T) {
	type Tally struct {
		ID      string   `dynamo:"id"`
		Count   int      `dynamo:"count,omitempty"`
		Ratio   float64  `dynamo:"ratio"`
		Lines   []string `dynamo:"lines,omitempty"`
		Version int64    `dynamo:"version"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		tallies := define(t, f.Table, entity.Spec[Tally]{Type: "Tally", PK: "TALLY#{id}", SK: "TALLY", Version: "version"})
		for name, change := range map[string]entity.Change{
			"zero": entity.Add("count", -1), "digits": entity.Add("ratio", 1), "empty": entity.Append("lines", []string{}),
		} {
			was, err := tallies.Create(t.Context(), Tally{ID: name, Count: 1, Ratio: 1e20})
			require.NoError(t, err)
			f.faults.Script(faulty.DropReply)
			is, err := tallies.Update(t.Context(), was, change)
			require.NoError(t, err, name)
			assert.Equal(t, was.Version+1, is.Version, name)
		}
	})
}

func TestWrite_AnothersIsNotTakenForOnesOwn(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders, others := define(t, f.Table, orderSpec()), define(t, f.raw, orderSpec())
		ctx := t.Context()
		key := Order{Tenant: "acme", ID: "1"}
		for _, first := range []faulty.Outcome{faulty.DropRequest, faulty.Throttle()} {
			o, err := others.Put(ctx, Order{Tenant: "acme", ID: "1"})
			require.NoError(t, err)
			once := true
			f.faults.Script(first)
			f.faults.Before(func(string) {
				if once {
					once = false
					f.clock.advance(time.Nanosecond)
					_, err := others.Update(ctx, o, entity.Set("status", "claimed"))
					require.NoError(t, err)
				}
			})
			_, err = orders.Update(ctx, o, entity.Set("status", "claimed"))
			require.ErrorIs(t, err, entity.ErrStale, "the same change, by somebody else")
			f.faults.Before(nil)
			require.NoError(t, others.AnyVersion().Delete(ctx, key))
		}

		spec := orderSpec()
		spec.Type, spec.SK, spec.Updated, spec.Indexes = "Bare", "BARE#{id}", "", nil
		bare, others2 := define(t, f.Table, spec), define(t, f.raw, spec)
		o, err := others2.Create(ctx, key)
		require.NoError(t, err)
		f.faults.Script(faulty.Throttle())
		f.faults.Before(func(string) {
			f.faults.Before(nil)
			_, err := others2.Update(ctx, o, entity.Set("status", "claimed"))
			require.NoError(t, err)
		})
		_, err = bare.Update(ctx, o, entity.Set("status", "claimed"))
		require.ErrorIs(t, err, entity.ErrStale, "a clear refusal cannot have been applied")

		// Without any lost answer even an identical row is somebody else's.
		f.faults.Script(faulty.Throttle())
		f.faults.Before(func(string) {
			f.faults.Before(nil)
			_, err := others.Create(ctx, key)
			require.NoError(t, err)
		})
		_, err = orders.Create(ctx, key)
		require.ErrorIs(t, err, entity.ErrExists)
	})
}

func TestWrite_ReturnsWhatWillBeRead(t *testing.T) {
	type stamps struct {
		ID      string    `dynamo:"id"`
		Created time.Time `dynamo:"created,unixtime"`
		Updated time.Time `dynamo:"updated"`
		Rev     int64     `dynamo:"rev"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tbl, err := table.Open(e.Client(), schema(e.TableName(t))) // with the process's own clock
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		entities := define(t, tbl, entity.Spec[stamps]{Type: "Stamps", PK: "S#{id}", SK: "S", Created: "created", Updated: "updated", Version: "rev"})
		wrote, err := entities.Create(t.Context(), stamps{ID: "1"})
		require.NoError(t, err)
		read, err := entities.Get(t.Context(), stamps{ID: "1"}, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, wrote, read)
		assert.Equal(t, wrote.Created, wrote.Created.Truncate(time.Second))
		wrote, err = entities.Put(t.Context(), read)
		require.NoError(t, err)
		read, err = entities.Get(t.Context(), stamps{ID: "1"}, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, wrote, read)
	})
}

func TestUpdate_EndsWithItsContextWhereItReadsFirst(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		plain := define(t, f.Table, plainSpec())
		_, err := plain.Create(t.Context(), Plain{ID: "1", Group: "g"})
		require.NoError(t, err)
		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		f.faults.Before(func(op string) {
			if op == "UpdateItem" {
				cancel(cause)
			}
		})
		_, err = plain.Update(ctx, Plain{ID: "1"}, entity.Set("group", "h"))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, cause)
		f.faults.Script()
		_, err = plain.Update(ctx, Plain{ID: "1"}, entity.Set("group", "h"))
		require.ErrorIs(t, err, context.Canceled)
		assert.Empty(t, f.faults.Sent())
	})
}

// folded changes its receiver when it is written.
type folded string

func (f *folded) MarshalText() ([]byte, error) {
	*f = folded(strings.ToLower(string(*f)))
	return []byte(*f), nil
}

func (f *folded) UnmarshalText(b []byte) error {
	*f = folded(b)
	return nil
}

func TestWrite_MethodsOfAValueDoNotChangeIt(t *testing.T) {
	type member struct {
		ID      string `dynamo:"id"`
		Name    folded `dynamo:"name"`
		Version int64  `dynamo:"version"`
	}
	engines.Run(t, func(t *testing.T, on *engines.Engine) {
		ctx, tbl := t.Context(), newFixture(t, on).Table
		e := define(t, tbl, entity.Spec[member]{
			Type: "Member", PK: "MEMBER#{id}", SK: "MEMBER", Version: "version", Unique: []entity.Unique[member]{{Name: "name", Key: "{name}"}},
		})
		created, err := e.Create(ctx, member{ID: "1", Name: "ANN"})
		require.NoError(t, err)
		assert.Equal(t, member{ID: "1", Name: "ANN", Version: 1}, created)
		got, err := e.Get(ctx, created)
		require.NoError(t, err)
		assert.Equal(t, member{ID: "1", Name: "ann", Version: 1}, got)
		require.NoError(t, tbl.Write(ctx, e.DeleteOp(created)))

		made, err := e.Create(ctx, member{ID: "2", Name: "BEN"})
		require.NoError(t, err)
		require.NoError(t, tbl.Write(ctx, table.Delete(e.Key(made)))) // which leaves its sentinel, so that the next write is made twice
		made, err = e.Create(ctx, member{ID: "3", Name: "BEN"})
		require.NoError(t, err)
		assert.Equal(t, member{ID: "3", Name: "BEN", Version: 1}, made)
		assert.NoError(t, tbl.Write(ctx, e.UpdateOp(made, entity.Set("name", folded("CID")))))
	})
}

// After an error a caller still has its value: o, err = orders.Update(ctx, o, …) does not lose it.
func TestWrite_ReturnsTheCallersValueAfterAnError(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders := define(t, f.Table, orderSpec())
		ctx := t.Context()
		stale, err := orders.Create(ctx, Order{Tenant: "acme", ID: "1", Status: "open"})
		require.NoError(t, err)
		_, err = orders.Update(ctx, stale, entity.Set("status", "paid"))
		require.NoError(t, err)
		change := func(o *Order) error {
			o.Status = "lost"
			return errors.New("no")
		}
		for call, write := range map[string]func() (Order, error){
			"Create": func() (Order, error) { return orders.Create(ctx, stale) },
			"Put":    func() (Order, error) { return orders.Put(ctx, stale) },
			"Update": func() (Order, error) { return orders.Update(ctx, stale, entity.Set("status", "sent")) },
			"Modify": func() (Order, error) { return orders.Modify(ctx, stale, change) },
			"Upsert": func() (Order, error) { return orders.Upsert(ctx, stale, change) },
		} {
			o, err := write()
			require.Error(t, err, call)
			assert.Equal(t, stale, o, call)
		}
	})
}

func TestUpdate_WithoutChangesCountsTheVersionAndSetsUpdated(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders := define(t, f.Table, orderSpec())
		ctx := t.Context()
		o, err := orders.Create(ctx, Order{Tenant: "acme", ID: "1", Status: "open"})
		require.NoError(t, err)
		f.clock.advance(time.Minute)
		touched, err := orders.Update(ctx, o)
		require.NoError(t, err)
		want := o
		want.Version, want.Updated = 2, f.clock.now()
		assert.Equal(t, want, touched)

		type Dated struct {
			ID      string    `dynamo:"id"`
			Updated time.Time `dynamo:"updated"`
		}
		dated := define(t, f.Table, entity.Spec[Dated]{Type: "Dated", PK: "DATED#{id}", SK: "DATED", Updated: "updated"})
		d, err := dated.Create(ctx, Dated{ID: "1"})
		require.NoError(t, err)
		f.clock.advance(time.Minute)
		later, err := dated.Update(ctx, d)
		require.NoError(t, err)
		assert.Equal(t, f.clock.now(), later.Updated)
	})
}
