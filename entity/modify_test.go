package entity_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/table"
)

func TestModify_ChangesTheNewestRow(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders, others := define(t, f.Table, orderSpec()), define(t, f.raw, orderSpec())
		ctx := t.Context()
		key := Order{Tenant: "acme", ID: "1"}
		never := func(*Order) error { t.Error("called without a row"); return nil }
		_, err := orders.Modify(ctx, key, never)
		require.ErrorIs(t, err, entity.ErrNotFound)
		created, err := orders.Create(ctx, Order{Tenant: "acme", ID: "1", Status: "open", Placed: time.Unix(1e9, 0), Total: 5, Tags: []string{"a"}, Lines: []string{"l"}})
		require.NoError(t, err)
		row := f.row(t, orders.Key(key))
		row["unknown"] = &types.AttributeValueMemberS{Value: "kept"}
		require.NoError(t, f.raw.Write(ctx, table.Put(row)))

		f.clock.advance(time.Minute)
		f.faults.Script()
		races, calls := 2, 0
		f.faults.Before(func(op string) {
			if op == "UpdateItem" && races > 0 {
				races--
				_, err := others.AnyVersion().Update(ctx, key, entity.Add("total", 10))
				require.NoError(t, err)
			}
		})
		soon := f.clock.now().Add(time.Hour)
		got, err := orders.Modify(ctx, key, func(o *Order) error {
			calls++
			o.Total *= 10
			o.Tags = append(o.Tags, "b")
			o.Lines[0] = "in place"
			o.Status = "paid"
			o.Expires = soon
			return nil
		})
		f.faults.Before(nil)
		require.NoError(t, err)
		want := created
		want.Total, want.Tags, want.Lines, want.Status, want.Version = 250, []string{"a", "b"}, []string{"in place"}, "paid", 4
		want.Expires, want.Updated = soon.Truncate(time.Second).Add(time.Second), f.clock.now()
		want.Placed = want.Placed.UTC()
		got.Placed = got.Placed.UTC()
		assert.Equal(t, want, got)
		assert.Equal(t, 3, calls, "once per race")
		row = f.row(t, orders.Key(key))
		assert.Equal(t, "kept", text(row, "unknown"))
		assert.Equal(t, "shop/STATUS#paid", text(row, "g1pk"))
		assert.Equal(t, "shop/BIG#acme", text(row, "g2pk"))
		assertKeysFit(t, orders, row)

		f.clock.advance(time.Minute)
		f.faults.Script()
		same, err := orders.Modify(ctx, key, func(o *Order) error { o.Lines = []string{"in place"}; return nil })
		require.NoError(t, err)
		same.Placed = same.Placed.UTC()
		assert.Equal(t, got, same)
		assert.Equal(t, []string{"GetItem"}, f.faults.Sent(), "nothing changed, nothing written")
		got, err = orders.Modify(ctx, key, func(o *Order) error { o.Lines, o.Status, o.Expires = nil, "", time.Time{}; return nil })
		require.NoError(t, err)
		assert.Equal(t, int64(5), got.Version)
		row = f.row(t, orders.Key(key))
		for _, attr := range []string{"lines", "status", "_ttl", "g1pk", "g1sk"} {
			assert.NotContains(t, row, attr)
		}

		mine := errors.New("mine")
		_, err = orders.Modify(ctx, key, func(*Order) error { return mine })
		require.ErrorIs(t, err, mine)
		calls = 0
		_, err = orders.Modify(ctx, key, func(*Order) error { calls++; return entity.ErrStale })
		require.ErrorIs(t, err, entity.ErrStale)
		assert.Equal(t, 1, calls, "an error of the function's own ends it, whatever it is")
		for name, f := range map[string]func(*Order) error{
			"key":     func(o *Order) error { o.ID = "2"; return nil },
			"tenant":  func(o *Order) error { o.Tenant = ""; return nil },
			"version": func(o *Order) error { o.Version++; return nil },
			"created": func(o *Order) error { o.Created = time.Time{}; return nil },
			"updated": func(o *Order) error { o.Updated = soon; return nil },
			"nil":     nil,
		} {
			_, err = orders.Modify(ctx, key, f)
			require.ErrorIs(t, err, entity.ErrInvalid, name)
		}
		now, err := orders.Get(ctx, key, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, int64(5), now.Version)

		f.clock.advance(time.Hour)
		_, err = orders.Modify(ctx, key, func(o *Order) error { o.Expires = f.clock.now(); return nil })
		require.NoError(t, err)
		f.clock.advance(time.Second)
		_, err = orders.Modify(ctx, key, never)
		require.ErrorIs(t, err, entity.ErrNotFound, "expired")
		spec := orderSpec()
		spec.ReadOnly = true
		_, err = define(t, f.Table, spec).Modify(ctx, key, never)
		require.ErrorIs(t, err, entity.ErrInvalid)
	})
}

func TestModify_WritesOnlyWhatChanged(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		plain := define(t, f.Table, plainSpec())
		ctx := t.Context()
		key := plain.Key(Plain{ID: "1"})
		// As another program wrote it: without a type, with forms that this one would not use.
		old := f.KeyItem(key)
		old["rank"] = &types.AttributeValueMemberN{Value: "5.0"}
		old["group"] = &types.AttributeValueMemberNULL{Value: true}
		old["count"] = &types.AttributeValueMemberN{Value: "1"}
		require.NoError(t, f.raw.Write(ctx, table.Put(old)))
		old = f.row(t, key)
		p, err := plain.Modify(ctx, Plain{ID: "1"}, func(p *Plain) error { p.Count++; return nil })
		require.NoError(t, err)
		assert.Equal(t, 2, p.Count)
		old["count"] = &types.AttributeValueMemberN{Value: "2"}
		assert.True(t, attrvalue.SameItem(old, f.row(t, key)), "%v", f.row(t, key))

		// Without a version, whatever T knows has to be as it was read.
		for _, change := range []table.Change{table.Attr("other").Set("x"), table.Attr("group").Remove(), table.Attr("count").Add(5)} {
			once := true
			f.faults.Before(func(op string) {
				if op == "UpdateItem" && once {
					once = false
					require.NoError(t, f.raw.Write(ctx, table.Update(key, change)))
				}
			})
			calls := 0
			_, err = plain.Modify(ctx, Plain{ID: "1"}, func(p *Plain) error { calls++; p.Count++; return nil })
			require.NoError(t, err)
			assert.Equal(t, 2, calls, change.Target())
		}
		f.faults.Before(nil)
		p, err = plain.Get(ctx, Plain{ID: "1"}, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, Plain{ID: "1", Rank: 5, Count: 10, Other: "x"}, p)

		is := p
		is.Group, is.Count = "g", 0
		require.NoError(t, f.Write(ctx, plain.ModifyOp(p, is)))
		row := f.row(t, key)
		assert.Equal(t, "shop/GROUP#g", text(row, "g1pk"))
		require.ErrorIs(t, f.Write(ctx, plain.ModifyOp(p, is)), entity.ErrStale)

		f.faults.Script(faulty.Pass, faulty.DropReply)
		p, err = plain.Modify(ctx, p, func(p *Plain) error { p.Count++; return nil })
		require.NoError(t, err)
		assert.Equal(t, 1, p.Count, "counted once, although the answer was lost")
	})
}

// Embedded is encoded where it is not nil, but its fields cannot be named.
type Embedded struct {
	Colour string `dynamo:"colour,omitempty"`
	Sizes  []int  `dynamo:"sizes,omitempty"`
}

type Wrapped struct {
	*Embedded
	ID   string `dynamo:"id"`
	Note string `dynamo:"note,omitempty"`
}

func TestModify_SeesFieldsThatCannotBeNamed(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		wrapped := define(t, f.Table, entity.Spec[Wrapped]{Type: "Wrapped", PK: "W#{id}", SK: "W"})
		ctx := t.Context()
		_, err := wrapped.Create(ctx, Wrapped{ID: "1", Embedded: &Embedded{Colour: "red", Sizes: []int{1}}})
		require.NoError(t, err)
		w, err := wrapped.Modify(ctx, Wrapped{ID: "1"}, func(w *Wrapped) error {
			w.Colour, w.Sizes[0] = "blue", 2
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, Wrapped{ID: "1", Embedded: &Embedded{Colour: "blue", Sizes: []int{2}}}, w)
		once := true
		f.faults.Before(func(op string) {
			if op == "UpdateItem" && once {
				once = false
				require.NoError(t, f.raw.Write(ctx, table.Update(wrapped.Key(w), table.Attr("colour").Set("green"))))
			}
		})
		w, err = wrapped.Modify(ctx, w, func(w *Wrapped) error { w.Colour += "ish"; return nil })
		require.NoError(t, err)
		assert.Equal(t, "greenish", w.Colour)
	})
}

// Released has a field in the attribute that the scheme names for versions, and no version.
type Released struct {
	ID    string `dynamo:"id"`
	Label string `dynamo:"_v"`
}

func TestModify_AFieldInTheAttributeOfVersions(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		released := define(t, f.Table, entity.Spec[Released]{Type: "Released", PK: "R#{id}", SK: "R"})
		ctx := t.Context()
		was, err := released.Create(ctx, Released{ID: "1", Label: "a"})
		require.NoError(t, err)
		is, err := released.Modify(ctx, was, func(r *Released) error { r.Label = "b"; return nil })
		require.NoError(t, err)
		assert.Equal(t, "b", is.Label)
		assert.Equal(t, "b", text(f.row(t, released.Key(was)), "_v"))
		require.ErrorIs(t, f.Write(ctx, released.ModifyOp(was, Released{ID: "1", Label: "c"})), entity.ErrStale)
		require.NoError(t, f.Write(ctx, released.ModifyOp(is, Released{ID: "1", Label: "c"})))
	})
}

// A row that is deleted and created again has the version that its predecessor had.
func TestModify_ARowThatCameBackIsNotTakenForTheOneRead(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		ctx := t.Context()
		users, others := define(t, f.Table, userSpec()), define(t, f.raw, userSpec())
		key := User{Tenant: "acme", ID: "ann"}
		for name, write := range map[string]func() error{
			"delete": func() error { return users.AnyVersion().Delete(ctx, key) },
			"update": func() error { return second(users.AnyVersion().Update(ctx, key, entity.Set("email", "c"))) },
			"modify": func() error {
				return second(users.Modify(ctx, key, func(u *User) error { u.Logins += 10; return nil }))
			},
			"put": func() error {
				return second(users.Put(ctx, User{Tenant: "acme", ID: "ann", Email: "p", Version: 1}))
			},
		} {
			first, err := others.Create(ctx, User{Tenant: "acme", ID: "ann", Email: "a", Logins: 1})
			require.NoError(t, err)
			f.faults.Before(func(op string) {
				if op == "GetItem" {
					f.faults.Before(func(string) {
						f.faults.Before(nil)
						require.NoError(t, others.Delete(ctx, first))
						_, err := others.Create(ctx, User{Tenant: "acme", ID: "ann", Email: "b", Logins: 5})
						require.NoError(t, err)
					})
				}
			})
			err = write()
			if name == "put" {
				require.ErrorIs(t, err, entity.ErrStale)
			} else {
				require.NoError(t, err, name)
			}
			if name == "modify" {
				u, err := users.Get(ctx, key, entity.Consistent())
				require.NoError(t, err)
				assert.Equal(t, 15, u.Logins)
			}
			f.assertUnique(t, users)
			require.NoError(t, others.AnyVersion().Delete(ctx, key))
			assert.Empty(t, f.sentinels(t), name)
		}

		orders, otherOrders := define(t, f.Table, orderSpec()), define(t, f.raw, orderSpec())
		o, err := orders.Create(ctx, Order{Tenant: "acme", ID: "1", Total: 1})
		require.NoError(t, err)
		f.faults.Before(func(op string) {
			if op == "UpdateItem" {
				f.faults.Before(nil)
				f.clock.advance(time.Nanosecond)
				require.NoError(t, otherOrders.Delete(ctx, o))
				_, err := otherOrders.Create(ctx, Order{Tenant: "acme", ID: "1", Total: 5})
				require.NoError(t, err)
			}
		})
		o, err = orders.Modify(ctx, o, func(o *Order) error { o.Total *= 2; return nil })
		require.NoError(t, err)
		assert.Equal(t, int64(10), o.Total, "the time of creation tells them apart")
	})
}

func TestModify_EndsWithItsContext(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		plain := define(t, f.Table, plainSpec())
		_, err := plain.Create(t.Context(), Plain{ID: "1"})
		require.NoError(t, err)
		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err = plain.Modify(ctx, Plain{ID: "1"}, func(p *Plain) error {
			cancel(cause)
			p.Count++
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, cause)
		p, err := plain.Get(t.Context(), Plain{ID: "1"}, entity.Consistent())
		require.NoError(t, err)
		assert.Zero(t, p.Count)

		f.faults.Before(func(op string) { // somebody who never rests
			if op == "UpdateItem" {
				require.NoError(t, f.raw.Write(t.Context(), table.Update(plain.Key(p), table.Attr("count").Add(1))))
			}
		})
		calls := 0
		_, err = plain.Modify(t.Context(), p, func(p *Plain) error { calls++; p.Rank = 1; return nil })
		require.ErrorIs(t, err, entity.ErrStale, "the table's policy ends it")
		assert.Equal(t, 6, calls)
	})
}

func TestUpsert_CreatesOrModifies(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders, others := define(t, f.Table, orderSpec()), define(t, f.raw, orderSpec())
		ctx := t.Context()
		key := Order{Tenant: "acme", ID: "1", Note: "first"}
		count := func(o *Order) error { o.Total++; return nil }
		o, err := orders.Upsert(ctx, key, count)
		require.NoError(t, err)
		assert.Equal(t, Order{Tenant: "acme", ID: "1", Note: "first", Total: 1, Version: 1, Created: f.clock.now(), Updated: f.clock.now()}, o)
		o, err = orders.Upsert(ctx, Order{Tenant: "acme", ID: "1", Note: "second"}, count)
		require.NoError(t, err)
		assert.Equal(t, "first", o.Note)
		assert.Equal(t, int64(2), o.Total)

		// Created, changed, and deleted by somebody else between a read and its write.
		steps := []func() error{
			func() error { _, err := others.Create(ctx, Order{Tenant: "acme", ID: "2", Total: 10}); return err },
			func() error {
				_, err := others.AnyVersion().Update(ctx, Order{Tenant: "acme", ID: "2"}, entity.Add("total", 10))
				return err
			},
			func() error { return others.AnyVersion().Delete(ctx, Order{Tenant: "acme", ID: "2"}) },
		}
		f.faults.Before(func(op string) {
			if op != "GetItem" && len(steps) > 0 {
				require.NoError(t, steps[0]())
				steps = steps[1:]
			}
		})
		o, err = orders.Upsert(ctx, Order{Tenant: "acme", ID: "2"}, count)
		require.NoError(t, err)
		assert.Equal(t, int64(1), o.Total)
		assert.Empty(t, steps)
		f.faults.Before(nil)

		_, err = orders.Upsert(ctx, Order{Tenant: "acme", ID: "3"}, func(o *Order) error { o.Expires = f.clock.now(); return nil })
		require.NoError(t, err)
		f.clock.advance(time.Second)
		o, err = orders.Upsert(ctx, Order{Tenant: "acme", ID: "3"}, count)
		require.NoError(t, err, "an expired row is none")
		assert.Equal(t, int64(1), o.Version)
		assert.True(t, o.Expires.IsZero())
		f.faults.Script(faulty.Pass, faulty.DropReply)
		o, err = orders.Upsert(ctx, Order{Tenant: "acme", ID: "4"}, count)
		require.NoError(t, err)
		assert.Equal(t, int64(1), o.Total)
		_, err = orders.Upsert(ctx, Order{Tenant: "acme", ID: "5"}, func(o *Order) error { o.ID = "6"; return nil })
		require.ErrorIs(t, err, entity.ErrInvalid)
	})
}

func TestIf_IsAConditionOnEveryWrite(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders := define(t, f.Table, orderSpec())
		ctx := t.Context()
		o, err := orders.Create(ctx, Order{Tenant: "acme", ID: "1", Status: "open", Placed: time.Unix(1e9, 0)})
		require.NoError(t, err)
		key := Order{Tenant: "acme", ID: "1"}
		paid := orders.If(orders.Field("status").Equal("paid"))
		touch := func(o *Order) error { o.Note += "x"; return nil }
		for name, err := range map[string]error{
			"update":        second(paid.Update(ctx, o, entity.Set("note", "x"))),
			"update by key": second(paid.AnyVersion().Update(ctx, key, entity.Set("total", 500))),
			"put":           second(paid.Put(ctx, o)),
			"modify":        second(paid.Modify(ctx, key, touch)),
			"upsert":        second(paid.Upsert(ctx, key, touch)),
			"delete":        paid.Delete(ctx, o),
			"delete by key": paid.AnyVersion().Delete(ctx, key),
			"updateOp":      f.Write(ctx, paid.UpdateOp(o, entity.Set("note", "x"))),
			"added to op":   f.Write(ctx, orders.UpdateOp(o, entity.Set("note", "x")).If(orders.Field("total").Greater(5))),
			"both":          f.Write(ctx, paid.If(orders.Field("version").Equal(1)).DeleteOp(o)),
		} {
			require.ErrorIs(t, err, table.ErrCondition, name)
			require.NotErrorIs(t, err, entity.ErrStale, name)
		}
		stale := o
		stale.Version = 7
		require.ErrorIs(t, paid.Delete(ctx, stale), entity.ErrStale, "what the entity itself asks goes first")
		require.ErrorIs(t, second(paid.Create(ctx, o)), entity.ErrExists)
		require.ErrorIs(t, second(paid.Create(ctx, Order{Tenant: "acme", ID: "2"})), table.ErrCondition)
		open := orders.If(orders.Field("status").Equal("open"), orders.Field("Expires").NotExists())
		o, err = open.Update(ctx, o, entity.Set("status", "paid"))
		require.NoError(t, err)
		require.NoError(t, paid.Delete(ctx, o))

		for _, name := range []string{"nope", "tenant"} {
			err := orders.If(orders.Field(name).Exists()).Delete(ctx, key)
			require.ErrorIs(t, err, entity.ErrInvalid)
			require.ErrorContains(t, err, `"`+name+`"`)
			_, err = orders.Update(ctx, Order{Tenant: "acme", ID: "1"}, entity.Set("total", 1))
			require.ErrorIs(t, err, entity.ErrNotFound, "the entity itself has no condition")
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestErrors_NameTheirPackageOnce(t *testing.T) {
	tbl := offline(t, schema("app"))
	orders, users := define(t, tbl, orderSpec()), define(t, tbl, userSpec())
	ctx := t.Context()
	for want, err := range map[string]error{
		`entity: update Order: invalid request: field "Tenant" of the key is empty`: second(orders.Update(ctx, Order{ID: "1"}, entity.Set("note", "x"))),
		`entity: update Order: invalid request: no field "nope"`:                    second(orders.Update(ctx, Order{Tenant: "a", ID: "1"}, entity.Set("nope", "x"))),
		`entity: create Order: invalid request: field "ID" of the key is empty`:     second(orders.Create(ctx, Order{Tenant: "a"})),
		`entity: put User: invalid request: field "ID" of the key is empty`:         second(users.Put(ctx, User{Tenant: "a"})),
		`entity: put Order: invalid request: negative version`:                      second(orders.Put(ctx, Order{Tenant: "a", ID: "1", Version: -7})),
		`entity: delete Order: invalid request: negative version`:                   orders.Delete(ctx, Order{Tenant: "a", ID: "1", Version: -1}),
		`entity: get Order: invalid request: field "Tenant" of the key is empty`:    second(orders.Get(ctx, Order{ID: "1"})),
		`entity: modify Order: invalid request: nil function`:                       second(orders.Modify(ctx, Order{ID: "1"}, nil)),
		`entity: key of Order: invalid request: field "Tenant" of the key is empty`: orders.Key(Order{ID: "1"}).Err(),
		`entity: decode Order: row is of another type`:                              second(orders.Decode(table.Item{})),
	} {
		assert.EqualError(t, err, want)
	}
}

// The time of creation does not identify a row that has none, since its program did not know that field.
func TestModify_ARowOlderThanCreatedThatCameBack(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		ctx := t.Context()
		stamped := define(t, f.Table, entity.Spec[Dated]{
			Type: "Dated", PK: "STAMPED#{id}", SK: "STAMPED", Version: "version", Created: "created",
		})
		key := stamped.Key(Dated{ID: "1"})
		put := func(note string) {
			item := f.KeyItem(key)
			item["_v"], item["note"] = &types.AttributeValueMemberN{Value: "1"}, &types.AttributeValueMemberS{Value: note}
			require.NoError(t, f.raw.Write(ctx, table.Put(item)))
		}
		put("a")
		f.faults.Before(func(op string) {
			if op == "UpdateItem" {
				f.faults.Before(nil)
				put("b")
			}
		})
		s, err := stamped.Modify(ctx, Dated{ID: "1"}, func(s *Dated) error { s.Note += "!"; return nil })
		require.NoError(t, err)
		assert.Equal(t, "b!", s.Note)
	})
}
