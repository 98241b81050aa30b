package entity_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// member is a row of a table in which another program keeps the plan that somebody pays for in "type".
type member struct {
	Club string `dynamo:"-"`
	No   int    `dynamo:"-"`
	Name string `dynamo:"name,omitempty"`
}

func memberSpec(m entity.Match) entity.Spec[member] {
	return entity.Spec[member]{
		Type: "Member", PK: "CLUB#{club}", SK: "MEMBER#{no:uint2}", Match: m,
		Indexes: []entity.Index[member]{{Name: "by-name"}},
	}
}

// clubs fills a table through the SDK: of ten members each, with plans, and without.
func clubs(t *testing.T, e *engines.Engine) func(scheme keys.Scheme) *table.Table {
	t.Helper()
	s := table.Schema{Name: e.TableName(t), NoTTL: true, Indexes: []table.Index{{Name: "by-name", PK: "name"}}}
	open := func(scheme keys.Scheme) *table.Table {
		s := s
		s.Keys = scheme
		tbl, err := table.Open(e.Client(), s, eager(2))
		require.NoError(t, err)
		return tbl
	}
	tbl := open(keys.Scheme{})
	require.NoError(t, tbl.Ensure(t.Context()))
	var ops []table.Op
	for i := range 10 {
		row := func(club string, typ types.AttributeValue) {
			item := table.Item{"pk": strf("CLUB#%s", club), "sk": strf("MEMBER#%02d", i), "name": strf("m%d", i)}
			if typ != nil {
				item["type"] = typ
			}
			ops = append(ops, table.Put(item))
		}
		row("plans", strf("%s", []string{"premium", "basic"}[i%2]))
		row("numbers", &types.AttributeValueMemberN{Value: strconv.Itoa(i)})
		row("none", nil)
		row("old", strf("OldMember"))
	}
	ops = append(ops, table.Put(table.Item{"pk": strf("CLUB#none"), "sk": strf("NOTE"), "type": strf("note")}),
		table.Put(table.Item{"pk": strf("CLUB#none"), "sk": strf("MEMBER#x"), "type": strf("note")}))
	require.NoError(t, tbl.BatchWrite(t.Context(), ops))
	return open
}

func lastOf[T any](seq func(func(T, error) bool)) (n int, last error) {
	for _, err := range seq {
		if last = err; err == nil {
			n++
		}
	}
	return n, last
}

// No reader passes over a row in silence that has the entity's key and a type that means nothing here.
func TestForeignType_IsReported(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		open := clubs(t, e)
		tbl := open(keys.Scheme{})
		members := define(t, tbl, memberSpec(entity.Match{}))
		ctx := t.Context()
		foreign := func(err error, value types.AttributeValue, why string) {
			t.Helper()
			var got *entity.ForeignTypeError
			require.ErrorAs(t, err, &got, why)
			require.ErrorIs(t, err, entity.ErrType, why)
			assert.Equal(t, "Member", got.Type, why)
			assert.Equal(t, "type", got.Attribute, why)
			assert.Contains(t, got.Key.SK, "MEMBER#", why)
			if value != nil {
				assert.Equal(t, value, got.Value, why)
			}
			for _, what := range []string{`"type"`, "keys.Scheme.Type", "Spec.Match", "Member"} {
				assert.ErrorContains(t, err, what, why)
			}
			for _, what := range []string{"premium", "CLUB", "plans"} {
				assert.NotContains(t, err.Error(), what, why)
			}
		}
		plan := member{Club: "plans", No: 0}
		premium := strf("premium")

		n, err := lastOf(members.Query(ctx, keys.Values{"club": "plans"}))
		assert.Zero(t, n)
		foreign(err, premium, "Query")
		_, err = lastOf(members.Query(ctx, keys.Values{"club": "numbers"}))
		foreign(err, &types.AttributeValueMemberN{Value: "0"}, "a number")
		_, err = lastOf(members.Query(ctx, keys.Values{"club": "old"}, entity.Descending(), entity.Limit(3)))
		foreign(err, strf("OldMember"), "a type of days gone by")
		_, err = lastOf(members.Query(ctx, keys.Values{"name": "m3"}, entity.On("by-name")))
		foreign(err, nil, "an index")
		_, err = members.Page(ctx, keys.Values{"club": "plans"})
		foreign(err, premium, "Page")
		for _, opts := range [][]entity.ReadOption{nil, {entity.Segments(4)}, {entity.On("by-name")}, {entity.PageSize(1)}} {
			_, err = lastOf(members.Scan(ctx, opts...))
			foreign(err, nil, "Scan")
		}
		_, err = members.Get(ctx, plan)
		foreign(err, premium, "Get")
		_, err = members.BatchGet(ctx, []member{plan})
		foreign(err, premium, "BatchGet")
		var list []member
		err = entity.Collect(ctx, tbl, "CLUB#plans", entity.Into(members, &list))
		foreign(err, premium, "Collect")
		foreign(entity.Collect(ctx, tbl, "CLUB#plans", entity.Into(members, &list), entity.SkipUnknown()), premium, "Collect that skips")
		var rest []table.Item
		foreign(entity.Collect(ctx, tbl, "CLUB#plans", entity.Raw(&rest), entity.Into(members, &list)), premium, "Collect of what is left")
		image, err := tbl.Get(ctx, members.Key(plan), true)
		require.NoError(t, err)
		foreign(entity.Sort(tbl, image, entity.Into(members, &list), entity.SkipUnknown()), premium, "Sort")
		assert.Empty(t, list)
		assert.Empty(t, rest)
		_, err = members.Update(ctx, plan, entity.Set("name", "x"))
		foreign(err, premium, "Update")
		_, err = members.Put(ctx, plan)
		foreign(err, premium, "Put")
		foreign(members.Delete(ctx, plan), premium, "Delete")
		_, err = members.Create(ctx, plan)
		require.ErrorIs(t, err, entity.ErrExists)
		_, err = members.Modify(ctx, plan, func(m *member) error { m.Name = "x"; return nil })
		foreign(err, premium, "Modify")

		// Rows of other keys are stepped over, whatever they are.
		n, err = lastOf(members.Query(ctx, keys.Values{"club": "none"}))
		require.NoError(t, err)
		assert.Equal(t, 10, n)

		// A page that ends before such a row is not the last one, also if nothing else follows.
		require.NoError(t, tbl.Write(ctx, table.Put(table.Item{"pk": strf("CLUB#none"), "sk": strf("MEMBER#99"), "type": premium})))
		page, err := members.Page(ctx, keys.Values{"club": "none"}, entity.Limit(10), entity.PageSize(100))
		require.NoError(t, err)
		assert.Len(t, page.Items, 10)
		require.NotEmpty(t, page.Next)
		_, err = members.Page(ctx, keys.Values{"club": "none"}, entity.After(page.Next))
		foreign(err, premium, "Page after the last row of the type")
	})
}

func TestForeignType_HasWaysOut(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		open := clubs(t, e)
		ctx := t.Context()
		count := func(scheme keys.Scheme, m entity.Match, club string) int {
			t.Helper()
			tbl := open(scheme)
			members := define(t, tbl, memberSpec(m))
			n, err := lastOf(members.Query(ctx, keys.Values{"club": club}))
			require.NoError(t, err)
			var list []member
			require.NoError(t, entity.Collect(ctx, tbl, "CLUB#"+club, entity.Into(members, &list), entity.SkipUnknown()))
			assert.Len(t, list, n)
			return n
		}
		own := keys.Scheme{Type: "_t"}
		for _, club := range []string{"plans", "numbers", "none", "old"} {
			assert.Equal(t, 10, count(own, entity.Match{}, club), "an attribute of one's own")
			assert.Equal(t, map[bool]int{true: 10}[club == "none"], count(keys.Scheme{}, entity.Not(entity.HasAttr("type")), club), "all types are other programs'")
			assert.Zero(t, count(keys.Scheme{}, entity.AttrEquals("type", "Member"), club), "and so are rows without a type")
		}
		assert.Zero(t, count(keys.Scheme{}, entity.Not(entity.AttrEquals("type", "premium", "basic")), "plans"))
		tbl := open(keys.Scheme{})
		members := define(t, tbl, memberSpec(entity.Not(entity.AttrEquals("type", "premium", "basic"))))
		var foreign *entity.ForeignTypeError
		_, err := lastOf(members.Query(ctx, keys.Values{"club": "old"}))
		require.ErrorAs(t, err, &foreign, "types that are not named")
		_, err = lastOf(members.Scan(ctx))
		require.ErrorAs(t, err, &foreign)
		m, err := members.Create(ctx, member{Club: "new", No: 1})
		require.NoError(t, err, "rows of one's own have their type")
		_, err = members.Get(ctx, m)
		require.NoError(t, err)
	})
}

// Types that an entity of the table has are no news, also where their rows have odd keys.
func TestForeignType_IsThatOfNobody(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tbl := clubs(t, e)(keys.Scheme{})
		members := define(t, tbl, memberSpec(entity.Match{}))
		ctx := t.Context()
		_, err := lastOf(members.Query(ctx, keys.Values{"club": "old"}))
		require.ErrorIs(t, err, entity.ErrType)
		define(t, tbl, entity.Spec[member]{Type: "OldMember", PK: "OLD#{club}", SK: "{no:uint2}"})
		n, err := lastOf(members.Query(ctx, keys.Values{"club": "old"}))
		require.NoError(t, err)
		assert.Zero(t, n)
		// Types of a kind each at the same keys, where all rows have one.
		var plans []*entity.Entity[member]
		for _, typ := range []string{"premium", "basic"} {
			plans = append(plans, define(t, tbl, entity.Spec[member]{Type: typ, PK: "CLUB#{club}", SK: "MEMBER#{no:uint2}", Match: entity.HasAttr("type")}))
		}
		for _, plan := range plans {
			n, err := lastOf(plan.Query(ctx, keys.Values{"club": "plans"}))
			require.NoError(t, err)
			assert.Equal(t, 5, n)
		}
		n, err = lastOf(members.Query(ctx, keys.Values{"club": "plans"}))
		require.NoError(t, err)
		assert.Zero(t, n)
	})
}

// A program that defines a part of what there is does not stumble over the rest, as long as one program could define all.
func TestForeignType_OfOtherProcesses(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		_, name, _ := nwFill(t, e)
		all := nwDefine(t, e, name, northwindRules["attributes"])
		ctx := t.Context()
		typed := func(rules nwRules) nwEntities { // as a program that writes types
			tbl, _ := nwTable(t, e, name)
			n := nwEntities{Table: tbl}
			n.customers = define(t, tbl, entity.Spec[nwCustomer]{Type: "customer", PK: "{id}", SK: "{contact}", Match: rules.customer})
			n.orders = define(t, tbl, entity.Spec[nwOrder]{Type: "order", PK: "{id}", SK: "ORDER", Match: rules.order})
			return n
		}(northwindRules["attributes"])
		_, err := typed.orders.Create(ctx, nwOrder{ID: "CUSTA", Freight: "1"}) // in a customer's partition
		require.NoError(t, err)
		_, err = typed.customers.Create(ctx, nwCustomer{ID: "10248", Contact: "x", Title: "t"})
		require.NoError(t, err)

		tbl, _ := nwTable(t, e, name)
		customers := define(t, tbl, entity.Spec[nwCustomer]{Type: "customer", PK: "{id}", SK: "{contact}", Match: northwindRules["attributes"].customer})
		assert.Len(t, collect(t, customers.Scan(ctx)), nwCount+1)
		assert.Len(t, collect(t, customers.Query(ctx, keys.Values{"id": "CUSTA"})), 1, "beside an order of a type that is not defined here")
		tbl, _ = nwTable(t, e, name)
		orders := define(t, tbl, entity.Spec[nwOrder]{Type: "order", PK: "{id}", SK: "ORDER", Match: northwindRules["attributes"].order})
		assert.Len(t, collect(t, orders.Scan(ctx)), nwCount+1)
		assert.Len(t, collect(t, all.customers.Scan(ctx)), nwCount+1)
	})
}

// Rows of the toolkit's own are stepped over, also by programs that never made one, and also those of kinds that do not
// exist yet, unless somebody asks for what is left.
func TestForeignType_OfTheToolkitInAnAdoptedTable(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tbl := clubs(t, e)(keys.Scheme{})
		ctx := t.Context()
		own := []string{"mortise.Lock", "mortise.LockSession", "mortise.Migration", "mortise.MigrationCheckpoint", "mortise.Unique.User.email", "mortise.Something"}
		for i, typ := range own {
			for _, sk := range []string{"LOCK#" + strconv.Itoa(i), "MEMBER#9" + strconv.Itoa(i)} { // at a member's key, too
				require.NoError(t, tbl.Write(ctx, table.Put(table.Item{"pk": strf("CLUB#none"), "sk": strf("%s", sk), "type": strf("%s", typ), "name": strf("m3")})))
			}
		}
		for _, sk := range []string{"NOTE", "MEMBER#x"} {
			require.NoError(t, tbl.Write(ctx, table.Delete(keys.NewKey("CLUB#none", sk))))
		}
		members := define(t, tbl, memberSpec(entity.Match{}))
		var list []member
		require.NoError(t, entity.Collect(ctx, tbl, "CLUB#none", entity.Into(members, &list)))
		assert.Len(t, list, 10)
		var rest []table.Item
		require.NoError(t, entity.Collect(ctx, tbl, "CLUB#none", entity.Into(members, &list), entity.Raw(&rest)))
		assert.Len(t, rest, 2*len(own), "whoever asks for what is left gets all")
		for _, row := range rest {
			require.NoError(t, entity.Sort(tbl, row, entity.Into(members, &list)))
			require.NoError(t, entity.Sort(tbl, row))
		}
		require.NoError(t, entity.Collect(ctx, tbl, "CLUB#none", entity.SkipUnknown()))
		assert.Len(t, list, 20)
		n, err := lastOf(members.Query(ctx, keys.Values{"club": "none"}))
		require.NoError(t, err)
		assert.Equal(t, 10, n)
		n, err = lastOf(members.Query(ctx, keys.Values{"name": "m3"}, entity.On("by-name"), entity.Filter(table.Attr("pk").Equal("CLUB#none"))))
		if err == nil { // a filter on the table's key is one on an index
			assert.Equal(t, 1, n)
		}
		_, err = members.Get(ctx, member{Club: "none", No: 90})
		require.ErrorIs(t, err, entity.ErrType)
		var unknown *entity.UnknownTypeError
		require.NoError(t, tbl.Write(ctx, table.Put(table.Item{"pk": strf("CLUB#none"), "sk": strf("Z"), "type": strf("Lock")})))
		require.ErrorAs(t, entity.Collect(ctx, tbl, "CLUB#none", entity.Into(members, &list)), &unknown, "an application's")
		assert.Equal(t, "Lock", unknown.Type)
		require.ErrorAs(t, entity.Sort(tbl, table.Item{"pk": strf("CLUB#none"), "sk": strf("LOCK#1")}, entity.Into(members, &list)), &unknown, "keys alone")
	})
}

func TestDefine_ReservesTheTypesOfTheToolkit(t *testing.T) {
	for _, typ := range []string{"mortise.Lock", "mortise.", "mortise.Mine"} {
		spec := memberSpec(entity.Match{})
		spec.Type, spec.Indexes = typ, nil
		_, err := entity.Define(offline(t, table.Schema{Name: "app"}), spec)
		require.ErrorIs(t, err, entity.ErrInvalid)
		require.ErrorContains(t, err, `names that begin with "mortise." are the toolkit's own`)
	}
	for _, typ := range []string{"Lock", "LockSession", "Migration", "mortise", "Mortise.Lock"} {
		spec := memberSpec(entity.Match{})
		spec.Type, spec.Indexes = typ, nil
		_, err := entity.Define(offline(t, table.Schema{Name: "app"}), spec)
		require.NoError(t, err, typ)
	}
}

// What Match looks at has to be there to be looked at.
func TestMatch_NeedsItsAttributes(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		type row struct {
			ID   string `dynamo:"id"`
			Kind string `dynamo:"kind,omitempty"`
			Team string `dynamo:"team,omitempty"`
		}
		s := table.Schema{Name: e.TableName(t), NoTTL: true, Indexes: []table.Index{
			{Name: "keys", PK: "team", Include: []string{}}, {Name: "some", PK: "team", Include: []string{"kind"}}, {Name: "all", PK: "team"},
		}}
		tbl, err := table.Open(e.Client(), s)
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		rows := define(t, tbl, entity.Spec[row]{
			Type: "row", PK: "R#{id}", SK: "R", Match: entity.Not(entity.AttrEquals("kind", "other")), Untyped: true,
			Indexes: []entity.Index[row]{{Name: "keys"}, {Name: "some"}, {Name: "all"}},
		})
		ctx := t.Context()
		_, err = rows.Create(ctx, row{"1", "own", "red"})
		require.NoError(t, err)
		require.NoError(t, tbl.Write(ctx, table.Put(table.Item{"pk": strf("R#2"), "sk": strf("R"), "kind": strf("other"), "team": strf("red")})))
		for _, index := range []string{"some", "all"} {
			assert.Eventually(t, func() bool {
				return len(collect(t, rows.Query(ctx, keys.Values{"team": "red"}, entity.On(index)))) == 1
			}, 10*time.Second, 10*time.Millisecond)
			assert.Len(t, collect(t, rows.Scan(ctx, entity.On(index))), 1)
		}
		_, err = lastOf(rows.Query(ctx, keys.Values{"team": "red"}, entity.On("keys")))
		require.ErrorIs(t, err, entity.ErrInvalid)
		require.ErrorContains(t, err, `index "keys" does not hold attribute "kind", which a read of row needs for Match`)
		_, err = lastOf(rows.Scan(ctx, entity.On("keys")))
		require.ErrorIs(t, err, entity.ErrInvalid)

		// So it is with images of keys alone: all rows look as if they had no attributes.
		var list []row
		var unknown *entity.UnknownTypeError
		require.ErrorAs(t, entity.Sort(tbl, tbl.KeyItem(rows.Key(row{ID: "2"})), entity.Into(rows, &list)), &unknown)
		byKey := define(t, tbl, entity.Spec[row]{Type: "by key", PK: "K#{id}", SK: "K", Match: entity.KeyPart("id", "[0-9]+")})
		require.NoError(t, entity.Sort(tbl, tbl.KeyItem(keys.NewKey("K#2", "K")), entity.Into(byKey, &list)))
		require.ErrorAs(t, entity.Sort(tbl, tbl.KeyItem(keys.NewKey("K#x", "K")), entity.Into(byKey, &list)), &unknown)
		assert.Equal(t, []row{{ID: "2"}}, list)
	})
}

// Expired rows of others are theirs to be replaced, and those of one's own are one's own.
func TestMatch_OfRowsThatHaveExpired(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		type row struct {
			ID    string    `dynamo:"id"`
			Kind  string    `dynamo:"kind,omitempty"`
			Email string    `dynamo:"email,omitempty"`
			Until time.Time `dynamo:"-"`
		}
		f := newFixture(t, e)
		ctx := t.Context()
		own := define(t, f.Table, entity.Spec[row]{
			Type: "Own", PK: "R#{id}", SK: "R", TTL: "Until", Untyped: true, Match: entity.AttrEquals("kind", "own"),
			Unique: []entity.Unique[row]{{Name: "email", Key: "{email}"}},
		})
		past := &types.AttributeValueMemberN{Value: strconv.FormatInt(f.clock.now().Add(-time.Hour).Unix(), 10)}
		put := func(id, kind string) row {
			item := f.KeyItem(own.Key(row{ID: id}))
			item["id"], item["kind"], item["_ttl"] = strf("%s", id), strf("%s", kind), past
			require.NoError(t, f.raw.Write(ctx, table.Put(item)))
			return row{ID: id, Kind: "own", Email: "a@x"}
		}
		_, err := own.Create(ctx, put("1", "other"))
		require.ErrorIs(t, err, entity.ErrExists)
		_, err = own.Put(ctx, put("1", "other"))
		require.ErrorIs(t, err, entity.ErrType)
		_, err = own.Create(ctx, put("2", "own"))
		require.NoError(t, err)
		_, err = own.Create(ctx, row{ID: "3", Kind: "own", Email: "a@x"})
		require.ErrorIs(t, err, entity.ErrUnique)
		// The value's owner has become somebody else's row, which is not there to own it.
		require.NoError(t, f.raw.Write(ctx, table.Update(own.Key(row{ID: "2"}), table.Attr("kind").Set("other"), table.Attr("_ttl").Set(past))))
		_, err = own.Create(ctx, row{ID: "3", Kind: "own", Email: "a@x"})
		require.ErrorIs(t, err, entity.ErrUnique, "an expired row of another type does not give it up")
	})
}

// Upgrades leave alone what tells whose the row is.
func TestMatch_IsNotForUpgradesToChange(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		type row struct {
			ID   string `dynamo:"id"`
			Kind string `dynamo:"kind,omitempty"`
			Name string `dynamo:"name,omitempty"`
		}
		f := newFixture(t, e)
		ctx := t.Context()
		upgrade := "name"
		rows := define(t, f.Table, entity.Spec[row]{
			Type: "Row", PK: "R#{id}", SK: "R", Match: entity.AttrEquals("kind", "own"),
			Upgrades: []func(table.Item) (table.Item, error){func(item table.Item) (table.Item, error) {
				item[upgrade] = strf("new")
				return item, nil
			}},
		})
		key := rows.Key(row{ID: "1"})
		item := f.KeyItem(key)
		item["id"], item["kind"] = strf("1"), strf("own")
		require.NoError(t, f.raw.Write(ctx, table.Put(item)))
		o, err := rows.Get(ctx, row{ID: "1"})
		require.NoError(t, err)
		assert.Equal(t, row{"1", "own", "new"}, o)
		_, err = rows.Update(ctx, o, entity.Set("kind", "other"))
		require.ErrorIs(t, err, entity.ErrMatch)
		upgrade = "kind"
		_, err = rows.Get(ctx, row{ID: "1"})
		require.ErrorIs(t, err, entity.ErrInvalid)
		_, err = rows.Update(ctx, row{ID: "1"}, entity.Set("name", "x"))
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.Equal(t, item, f.row(t, key))
	})
}
