package entity_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Whatever tells the rows apart, each entity reads its own and no others.
func TestMatch_ReadsAnAdoptedTable(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		_, name, rows := nwFill(t, e)
		for how, rules := range northwindRules {
			t.Run(how, func(t *testing.T) {
				n := nwDefine(t, e, name, rules)
				before := n.raw(t)
				ctx := t.Context()

				customers := collect(t, n.customers.Scan(ctx))
				assert.Len(t, customers, nwCount, "and not the orders, whose keys fit too")
				assert.Len(t, collect(t, n.customers.Scan(ctx, entity.On("gsi_1"), entity.Segments(3))), nwCount)
				assert.Len(t, collect(t, n.orders.Scan(ctx, entity.Segments(3))), nwCount)
				assert.Len(t, collect(t, n.details.Scan(ctx)), nwCount)
				assert.Len(t, collect(t, n.employees.Scan(ctx)), nwCount)
				assert.Len(t, collect(t, n.suppliers.Scan(ctx)), nwCount)
				for _, c := range customers {
					assert.Equal(t, "Owner", c.Title)
					again, err := n.customers.Get(ctx, c)
					require.NoError(t, err)
					assert.Equal(t, c, again)
				}

				assert.Equal(t, []nwCustomer{{"CUSTC", "Contact 2", "Company 2", "Owner", "Germany#NULL#Berlin#Street 2"}},
					collect(t, n.customers.Query(ctx, keys.Values{"id": "CUSTC"})))
				assert.Empty(t, collect(t, n.customers.Query(ctx, keys.Values{"id": "10248"})), "an order, and its details")
				orders := collect(t, n.orders.Query(ctx, nil, entity.On("gsi_1"), entity.Descending(), entity.Limit(2)))
				assert.Equal(t, []nwOrder{
					{"10259", "CUSTL", "employees#11", "11.38", "1996-07-12 00:00:00.000"},
					{"10258", "CUSTK", "employees#10", "10.38", "1996-07-11 00:00:00.000"},
				}, orders)
				team := collect(t, n.employees.Query(ctx, keys.Values{"of": "employees#2"}, entity.On("gsi_1")))
				assert.Equal(t, []nwThing{{"employees#4", "employees#2", "1992-05-05 00:00:00.000"}, {"employees#5", "employees#2", "1992-05-06 00:00:00.000"}}, team)
				page, err := n.employees.Page(ctx, keys.Values{"of": "NULL"}, entity.On("gsi_1"))
				require.NoError(t, err)
				assert.Len(t, page.Items, 1)

				var cs []nwCustomer
				var os []nwOrder
				var ds []nwDetail
				var es, ss []nwThing
				sinks := []entity.Sink{
					entity.Into(n.customers, &cs), entity.Into(n.orders, &os), entity.Into(n.details, &ds), entity.Into(n.employees, &es), entity.Into(n.suppliers, &ss),
				}
				require.NoError(t, entity.Collect(ctx, n.Table, "10250", sinks...))
				assert.Len(t, os, 1)
				assert.Len(t, ds, 1)
				for kind, list := range rows {
					for _, row := range list {
						err := entity.Sort(n.Table, row, sinks...)
						switch kind {
						case "category", "shipper", "product":
							require.ErrorIs(t, err, entity.ErrType, kind)
						default:
							require.NoError(t, err, kind)
						}
					}
				}
				assert.Equal(t, []int{nwCount, nwCount + 1, nwCount + 1, nwCount, nwCount}, []int{len(cs), len(os), len(ds), len(es), len(ss)})
				assert.Equal(t, before, n.raw(t), "reading changes nothing")
			})
		}
	})
}

// Without rules there is no telling: Define says so, and how it can be told.
func TestMatch_DefineRefusesWhatCannotBeTold(t *testing.T) {
	type row struct {
		ID   string `dynamo:"-"`
		Sub  string `dynamo:"-"`
		Note string `dynamo:"note"`
	}
	has, equals, part, not, and := entity.HasAttr, entity.AttrEquals, entity.KeyPart, entity.Not, entity.And
	for name, c := range map[string]struct {
		a, b entity.Match
		ok   bool
	}{
		"no rules":                               {},
		"a rule, and all rows":                   {has("x"), entity.Match{}, false},
		"a rule, and what it leaves":             {has("x"), not(has("x")), true},
		"two attributes that a row may have":     {has("x"), has("y"), false},
		"two values":                             {equals("x", "1"), equals("x", "2"), true},
		"a number and a string":                  {equals("x", 1), equals("x", "1"), true},
		"one number, written twice":              {equals("x", 1), equals("x", 1.0), false},
		"values with one in common":              {equals("x", "1", "2"), equals("x", "2", "3"), false},
		"a value and none":                       {equals("x", "1"), not(has("x")), true},
		"a value and some":                       {equals("x", "1"), has("x"), false},
		"a value and another or none":            {equals("x", "1"), not(equals("x", "1")), true},
		"another or none, twice":                 {not(equals("x", "1")), not(equals("x", "2")), false},
		"one of two, and neither":                {equals("x", 1, 2), and(not(equals("x", 1)), not(equals("x", 2))), true},
		"all and the rest":                       {and(has("x"), has("y")), not(and(has("x"), has("y"))), true},
		"all and a part of the rest":             {and(has("x"), has("y")), not(has("y")), true},
		"not all, twice":                         {not(and(has("x"), has("y"))), not(and(has("x"), has("z"))), false},
		"patterns":                               {part("id", "[0-9]+"), part("id", "[A-Z]+"), true},
		"patterns with a text in common":         {part("id", "[0-9A-F]+"), part("id", "[A-Z]+"), false},
		"a pattern and the rest":                 {part("id", "[0-9]+"), not(part("id", "[0-9]+")), true},
		"a literal and the rest":                 {part("sub", "ORDER"), not(part("Sub", "ORDER")), true},
		"patterns of two parts":                  {part("id", "[0-9]+"), part("sub", "[A-Z]+"), false},
		"a part or an attribute, and the rest":   {not(and(part("id", "a"), has("x"))), and(part("id", "a"), has("x")), true},
		"a part and an attribute":                {part("id", "a"), has("x"), false},
		"the type attribute":                     {has("type"), entity.Match{}, true},
		"of a type of one's own":                 {equals("type", "a"), equals("type", "b"), true},
		"without a type, twice":                  {not(has("type")), not(has("type")), false},
		"Go names and attributes are the same":   {has("Note"), not(has("note")), true},
		"attributes that differ in case":         {has("X"), not(has("x")), false},
		"a rule under two negations is the rule": {not(not(has("x"))), not(has("x")), true},
	} {
		tbl := offline(t, table.Schema{Name: "app"})
		_, err := entity.Define(tbl, entity.Spec[row]{Type: "a", PK: "{id}", SK: "{sub}", Match: c.a})
		require.NoError(t, err, name)
		_, err = entity.Define(tbl, entity.Spec[row]{Type: "a", PK: "{id}", SK: "{sub}", Match: c.a})
		require.NoError(t, err, "%s: the same again", name)
		_, err = entity.Define(tbl, entity.Spec[row]{Type: "b", PK: "{id}", SK: "{sub}", Match: c.b})
		if c.ok {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, entity.ErrInvalid, name)
			require.ErrorContains(t, err, `could be the key of a "a"`, name)
			require.ErrorContains(t, err, "Match", name)
			require.ErrorContains(t, err, "Not", name)
		}
		_, err = entity.Define(tbl, entity.Spec[row]{Type: "a", PK: "{id}", SK: "{sub}", Match: and(c.a, has("another"))})
		require.ErrorContains(t, err, `Type "a" is taken`, name)
	}
	tbl := offline(t, table.Schema{Name: "app"})
	_, err := entity.Define(tbl, entity.Spec[row]{Type: "order", PK: "{id}", SK: "ORDER"})
	require.NoError(t, err)
	_, err = entity.Define(tbl, entity.Spec[row]{Type: "customer", PK: "{id}", SK: "{sub}"})
	require.EqualError(t, err, `entity: define "customer": PK "{id}" with SK "{sub}" could be the key of a "order", whose templates are "{id}" and "ORDER": `+
		`a Match in both specifications can tell their rows apart: HasAttr in one and Not(HasAttr) in the other, a KeyPart in each, `+
		`or AttrEquals of the type attribute and the own type in each, if no row lacks it`)
	_, err = entity.Define(tbl, entity.Spec[row]{Type: "customer", PK: "{id}", SK: "{sub}", Match: has("title")})
	require.ErrorContains(t, err, `one row could be both, by Match HasAttr("title") here and none there`)
	_, err = entity.Define(tbl, entity.Spec[row]{Type: "customer", PK: "{id}", SK: "{sub}", Match: not(part("sub", "ORDER"))})
	require.NoError(t, err, "a literal of the other's is enough")
}

func TestMatch_RefusesRulesThatCannotBe(t *testing.T) {
	type row struct {
		ID      string    `dynamo:"-"`
		Sub     string    `dynamo:"-"`
		At      time.Time `dynamo:"at"`
		Note    string    `dynamo:"note"`
		Email   string    `dynamo:"email"`
		Rev     int64     `dynamo:"rev"`
		Expires time.Time `dynamo:"expires"`
	}
	type custom struct{ X chan int }
	nested := entity.HasAttr("a0")
	for i := range 8 { // 2^8 cases
		nested = entity.And(nested, entity.Not(entity.And(entity.HasAttr(fmt.Sprint("b", i)), entity.HasAttr(fmt.Sprint("c", i)))))
	}
	for want, m := range map[string]entity.Match{
		"an attribute without a name":                 entity.HasAttr(""),
		`attribute "pk" is a key: KeyPart`:            entity.AttrEquals("pk", "x"),
		`attribute "sk" is a key: KeyPart`:            entity.Not(entity.HasAttr("sk")),
		`field "Sub" has no attribute: KeyPart`:       entity.HasAttr("Sub"),
		`attribute "rev" is maintained`:               entity.HasAttr("note2"),
		`attribute "g1pk" is maintained`:              entity.HasAttr("g1pk"),
		`attribute "schema" is maintained`:            entity.HasAttr("schema"),
		`KeyPart("note"): no such field in PK or SK`:  entity.KeyPart("note", "x"),
		`KeyPart("other"): no such field in PK or SK`: entity.KeyPart("other", "x"),
		`syntax error`:          entity.KeyPart("id", "["),
		`more than 1000 states`: entity.KeyPart("id", "[0-9]{1000}"),
		`AttrEquals("note"): want 1 to 100 values, not 0`:            entity.AttrEquals("note"),
		`AttrEquals("note"): want a string, a number`:                entity.AttrEquals("note", []string{"x"}),
		`AttrEquals("note"): invalid request: <nil>`:                 entity.AttrEquals("note", nil),
		"more than 100 cases":                                        nested,
		`no row matches And(HasAttr("x"), Not(HasAttr("x")))`:        entity.And(entity.HasAttr("x"), entity.Not(entity.HasAttr("x"))),
		`no row matches Not(And())`:                                  entity.Not(entity.Match{}),
		`no row matches AttrEquals("type", "other")`:                 entity.AttrEquals("type", "other"),
		`no row matches KeyPart("id", "")`:                           entity.KeyPart("id", ""),
		`no row matches And(KeyPart("id", "a"), KeyPart("id", "b"))`: entity.And(entity.KeyPart("id", "a"), entity.KeyPart("id", "b")),
		`encode`: entity.AttrEquals("note", custom{}),
	} {
		spec := entity.Spec[row]{
			Type: "row", PK: "{id}", SK: "{sub}", Match: m, Version: "rev", TTL: "expires", Schema: "schema",
			Indexes: []entity.Index[row]{{Name: "gsi1", PK: "E#{email}", SK: "{id}"}},
		}
		if strings.Contains(want, `"rev"`) {
			spec.Match = entity.HasAttr("rev")
		}
		_, err := entity.Define(offline(t, table.Schema{Name: "app", Indexes: []table.Index{{Name: "gsi1", PK: "g1pk", SK: "g1sk"}}}), spec)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, entity.ErrInvalid)
	}
	for _, name := range []string{"version", "ttl", "expires", "Rev"} {
		_, err := entity.Define(offline(t, table.Schema{Name: "app"}), entity.Spec[row]{
			Type: "row", PK: "{id}", SK: "{sub}", Version: "rev", TTL: "expires", Match: entity.HasAttr(name),
		})
		require.ErrorContains(t, err, "is maintained by the entity", name)
	}
	_, err := entity.Define(offline(t, table.Schema{Name: "app"}), entity.Spec[row]{Type: "row", PK: "{id", SK: "{sub}", Match: entity.KeyPart("id", "x")})
	require.ErrorContains(t, err, "syntax error", "and no panic")
}

// A value whose row would not be its entity's is refused before anything is sent.
func TestMatch_RefusesRowsThatWouldNotMatch(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		_, name, _ := nwFill(t, e)
		for how, rules := range northwindRules {
			t.Run(how, func(t *testing.T) {
				n := nwDefine(t, e, name, rules)
				before := n.raw(t)
				ctx := t.Context()
				n.faults.Script()
				odd := nwCustomer{ID: "10248", Contact: "ORDER", Company: "c"} // neither a name, nor letters, nor a title
				_, err := n.customers.Create(ctx, odd)
				require.ErrorIs(t, err, entity.ErrMatch)
				require.ErrorIs(t, err, entity.ErrInvalid)
				assert.NotContains(t, err.Error(), "10248")
				_, err = n.customers.Put(ctx, odd)
				require.ErrorIs(t, err, entity.ErrMatch)
				_, err = n.customers.PutAll(ctx, []nwCustomer{odd})
				require.ErrorIs(t, err, entity.ErrMatch)
				require.ErrorIs(t, n.customers.CreateOp(odd).Err(), entity.ErrMatch)
				require.ErrorIs(t, n.Write(ctx, n.customers.PutOp(odd)), entity.ErrMatch)
				if how == "attributes" {
					order := nwOrder{ID: "10248"}
					for what, change := range map[string]entity.Change{
						"removed": entity.Remove("freight"), "set to nothing": entity.Set("freight", ""),
					} {
						_, err = n.orders.Update(ctx, order, change)
						require.ErrorIs(t, err, entity.ErrMatch, what)
						require.ErrorIs(t, n.orders.UpdateOp(order, change).Err(), entity.ErrMatch, what)
					}
					require.ErrorIs(t, n.orders.ModifyOp(nwOrder{ID: "10248", Freight: "1"}, order).Err(), entity.ErrMatch)
				}
				assert.Empty(t, n.faults.Sent())
				if how == "attributes" { // which reads before
					_, err = n.orders.Modify(ctx, nwOrder{ID: "10248"}, func(o *nwOrder) error {
						o.Freight = ""
						return nil
					})
					require.ErrorIs(t, err, entity.ErrMatch)
					_, err = n.orders.Upsert(ctx, nwOrder{ID: "99999"}, func(o *nwOrder) error {
						o.Data = "today"
						return nil
					})
					require.ErrorIs(t, err, entity.ErrMatch)
				}
				assert.Equal(t, before, n.raw(t))
			})
		}
	})
}

// What another kind of row stands at a key is neither overwritten nor changed nor deleted, whatever tells it.
func TestMatch_LeavesOtherRowsAlone(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		client, name, _ := nwFill(t, e)
		for how, rules := range northwindRules {
			t.Run(how, func(t *testing.T) {
				n := nwDefine(t, e, name, rules)
				before := n.raw(t)
				ctx := t.Context()
				// Where an order stands, and a supplier.
				order := nwCustomer{ID: "10249", Contact: "ORDER", Company: "c", Title: "Owner"}
				supplier := nwThing{ID: "suppliers#1", Of: "SUPPLIER", Data: "x"}
				_, err := n.customers.Get(ctx, order)
				require.ErrorIs(t, err, entity.ErrType)
				_, err = n.employees.Get(ctx, supplier)
				require.ErrorIs(t, err, entity.ErrType)
				_, err = n.customers.BatchGet(ctx, []nwCustomer{order})
				require.ErrorIs(t, err, entity.ErrType)
				_, err = n.customers.Update(ctx, order, entity.Set("companyName", "x"))
				require.ErrorIs(t, err, entity.ErrType)
				_, err = n.employees.Update(ctx, supplier, entity.Set("data", "x"))
				require.ErrorIs(t, err, entity.ErrType)
				require.ErrorIs(t, n.Write(ctx, n.employees.UpdateOp(supplier, entity.Set("data", "x")), n.customers.CreateOp(nwCustomer{ID: "NEWCU", Contact: "x", Title: "t"})), entity.ErrType)
				_, err = n.customers.Modify(ctx, order, func(c *nwCustomer) error { c.Company = "x"; return nil })
				require.ErrorIs(t, err, entity.ErrType)
				require.ErrorIs(t, n.customers.Delete(ctx, order), entity.ErrType)
				require.ErrorIs(t, n.employees.Delete(ctx, supplier), entity.ErrType)
				_, err = n.customers.Put(ctx, order)
				if how == "attributes" {
					require.ErrorIs(t, err, entity.ErrType, "a customer, by its attributes")
					_, err = n.customers.Create(ctx, order)
					require.ErrorIs(t, err, entity.ErrExists)
				} else {
					require.ErrorIs(t, err, entity.ErrMatch)
				}
				assert.Equal(t, before, n.raw(t))

				// One's own rows are written as ever, in the other program's form.
				c := nwCustomer{ID: "NEWCU", Contact: "New " + how, Title: "Owner", Data: "x"}
				c, err = n.customers.Create(ctx, c)
				require.NoError(t, err)
				c, err = n.customers.Update(ctx, c, entity.Set("companyName", "New"))
				require.NoError(t, err)
				c.Company = "Newer"
				_, err = n.customers.Put(ctx, c)
				require.NoError(t, err)
				assert.Equal(t, table.Item{
					"pk": strf("NEWCU"), "sk": strf("New %s", how), "contactTitle": strf("Owner"), "companyName": strf("Newer"), "data": strf("x"),
				}, n.raw(t)[n.customers.Key(c)])
				_, err = n.orders.Update(ctx, nwOrder{ID: "10249"}, entity.Set("freight", "7.00"))
				require.NoError(t, err)
				require.NoError(t, n.customers.Delete(ctx, c))
				require.NoError(t, n.customers.Delete(ctx, c), "none is there")
				row := before[keys.NewKey("10249", "ORDER")]
				_, err = client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &name, Item: row})
				require.NoError(t, err)
				assert.Equal(t, before, n.raw(t))
			})
		}
	})
}

// A row that has the type attribute is told by it: rules are for the rows that have none.
func TestMatch_IsAboutRowsWithoutAType(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		type row struct {
			ID   string `dynamo:"id"`
			Kind string `dynamo:"kind,omitempty"`
			N    int    `dynamo:"n,omitempty"`
		}
		f := newFixture(t, e)
		ctx := t.Context()
		things := define(t, f.Table, entity.Spec[row]{Type: "Thing", PK: "T#{id}", SK: "T", Match: entity.AttrEquals("kind", "thing")})
		others := define(t, f.Table, entity.Spec[row]{Type: "Other", PK: "T#{id}", SK: "T", Match: entity.AttrEquals("kind", "other", "others")})
		put := func(id string, typ, kind types.AttributeValue) row {
			item := f.KeyItem(things.Key(row{ID: id}))
			item["id"] = strf("%s", id)
			attrs := table.Item{"_t": typ, "kind": kind}
			for name, av := range attrs {
				if av != nil {
					item[name] = av
				}
			}
			require.NoError(t, f.raw.Write(ctx, table.Put(item)))
			return row{ID: id}
		}
		for _, c := range []struct {
			id         string
			typ, kind  types.AttributeValue
			thing, own bool // whose it is
		}{
			{"1", nil, strf("thing"), true, false},
			{"2", nil, strf("other"), false, true},
			{"3", nil, strf("others"), false, true},
			{"4", nil, nil, false, false},
			{"5", nil, strf("third"), false, false},
			{"6", strf("Thing"), nil, true, false},
			{"7", strf("Thing"), strf("other"), true, false},
			{"8", strf("Other"), strf("thing"), false, true},
		} {
			at := put(c.id, c.typ, c.kind)
			item := f.row(t, things.Key(at))
			assert.Equal(t, c.thing, things.Owns(item), c.id)
			assert.Equal(t, c.own, others.Owns(item), c.id)
			_, err := things.Update(ctx, at, entity.Add("n", 1))
			if c.thing {
				require.NoError(t, err, c.id)
			} else {
				require.ErrorIs(t, err, entity.ErrType, c.id)
			}
			_, err = others.Update(ctx, at, entity.Add("n", 1))
			if c.own {
				require.NoError(t, err, c.id)
			} else {
				require.ErrorIs(t, err, entity.ErrType, c.id)
			}
		}
		var ids []string
		for o, err := range things.Scan(ctx) {
			require.NoError(t, err)
			ids = append(ids, o.ID)
		}
		assert.ElementsMatch(t, []string{"1", "6", "7"}, ids)
		o, err := things.Create(ctx, row{ID: "9", Kind: "thing"})
		require.NoError(t, err)
		assert.Equal(t, "Thing", text(f.row(t, things.Key(o)), "_t"))
		_, err = things.Create(ctx, row{ID: "10", Kind: "other"})
		require.ErrorIs(t, err, entity.ErrMatch, "a program that does not know the type attribute would take it for the other's")

		f.faults.Script()
		_, err = things.Update(ctx, o, entity.Set("kind", "other"))
		require.ErrorIs(t, err, entity.ErrMatch)
		_, err = things.Update(ctx, o, entity.Append("kind", "x"))
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.Empty(t, f.faults.Sent())
		_, err = things.Update(ctx, o, entity.Set("kind", "thing"), entity.Add("n", 1))
		require.NoError(t, err)
	})
}

// A row that has no version yet is told by its attributes, and by the rule.
func TestMatch_OfRowsOfVersionZero(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		type row struct {
			ID   string `dynamo:"id"`
			Kind string `dynamo:"kind,omitempty"`
			N    int    `dynamo:"n,omitempty"`
			Rev  int64  `dynamo:"-"`
		}
		f := newFixture(t, e)
		ctx := t.Context()
		things := define(t, f.Table, entity.Spec[row]{Type: "Thing", PK: "T#{id}", SK: "T", Version: "Rev", Match: entity.AttrEquals("kind", "thing")})
		put := func(id, kind string) row {
			item := f.KeyItem(things.Key(row{ID: id}))
			item["id"], item["kind"] = strf("%s", id), strf("%s", kind)
			require.NoError(t, f.raw.Write(ctx, table.Put(item)))
			return row{ID: id, Kind: "thing"}
		}
		for _, write := range []func(row) error{
			func(o row) error { _, err := things.Update(ctx, o, entity.Set("n", 1)); return err },
			func(o row) error { return f.Write(ctx, things.UpdateOp(o, entity.Set("n", 1))) },
			func(o row) error { is := o; is.N = 1; return f.Write(ctx, things.ModifyOp(o, is)) },
			func(o row) error { return things.Delete(ctx, o) },
			func(o row) error { return f.Write(ctx, things.DeleteOp(o)) },
			func(o row) error { _, err := things.AnyVersion().Put(ctx, o); return err },
		} {
			require.ErrorIs(t, write(put("1", "other")), entity.ErrType)
			assert.Equal(t, "other", text(f.row(t, things.Key(row{ID: "1"})), "kind"))
			require.NoError(t, write(put("1", "thing")))
		}
		_, err := things.Put(ctx, put("2", "other"))
		require.ErrorIs(t, err, entity.ErrType)
		_, err = things.Put(ctx, put("2", "thing"))
		require.ErrorIs(t, err, entity.ErrStale)
		o := put("3", "thing")
		_, err = things.Update(ctx, o, entity.Set("kind", "other"))
		require.ErrorIs(t, err, entity.ErrMatch)
		o, err = things.Update(ctx, o, entity.Set("n", 1))
		require.NoError(t, err)
		assert.EqualValues(t, 1, o.Rev)
	})
}

// ruled is what random rules are about: two attributes, and a part of the key.
type ruled struct {
	ID string `dynamo:"-"`
	N  int    `dynamo:"n,omitempty"`
	A  string `dynamo:"a,omitempty"`
	B  any    `dynamo:"b,omitempty"`
}

// drawRule draws a rule, and what it means.
func drawRule(t *rapid.T, depth int) (entity.Match, func(table.Item) bool) {
	attr := func() string { return rapid.SampledFrom([]string{"a", "b", "a", "b", "type"}).Draw(t, "attribute") }
	last := 6
	if depth == 0 {
		last = 3
	}
	switch rapid.IntRange(0, last).Draw(t, "rule") {
	case 0:
		name := attr()
		return entity.HasAttr(name), func(row table.Item) bool { _, ok := row[name]; return ok }
	case 1:
		name, values := attr(), rapid.SliceOfNDistinct(rapid.SampledFrom([]any{"1", "2", 3}), 1, 2, rapid.ID).Draw(t, "values")
		return entity.AttrEquals(name, values...), func(row table.Item) bool {
			switch have := row[name].(type) {
			case *types.AttributeValueMemberS:
				return slices.Contains(values, any(have.Value))
			case *types.AttributeValueMemberN:
				return have.Value == "3" && slices.Contains(values, any(3))
			}
			return false
		}
	case 2:
		pattern := rapid.SampledFrom([]string{"x", "y", "[xy]", "x+"}).Draw(t, "pattern")
		matches := map[string]string{"x": "x", "y": "y", "[xy]": "x y", "x+": "x xx"}[pattern]
		return entity.KeyPart("id", pattern), func(row table.Item) bool {
			return slices.Contains(strings.Fields(matches), strings.TrimPrefix(text(row, "pk"), "R#"))
		}
	case 3:
		return entity.Match{}, func(table.Item) bool { return true }
	case 4, 5:
		m, one := drawRule(t, depth-1)
		n, two := drawRule(t, depth-1)
		return entity.And(m, n), func(row table.Item) bool { return one(row) && two(row) }
	default:
		m, one := drawRule(t, depth-1)
		return entity.Not(m), func(row table.Item) bool { return !one(row) }
	}
}

var (
	// The texts of the key's part and the values of attributes that rules can tell apart: one of each kind.
	ruledIDs    = []string{"x", "y", "xx", "z"}
	ruledValues = []types.AttributeValue{nil, strf("1"), strf("2"), &types.AttributeValueMemberN{Value: "3"}, &types.AttributeValueMemberN{Value: "1"}}
)

func ruledRow(id string, typ, a, b types.AttributeValue) table.Item {
	row := table.Item{"pk": strf("R#%s", id), "sk": strf("R")}
	for name, av := range map[string]types.AttributeValue{"type": typ, "a": a, "b": b} {
		if av != nil {
			row[name] = av
		}
	}
	return row
}

// ruledRows are all rows that rules can tell apart.
func ruledRows(typ types.AttributeValue) (rows []table.Item) {
	for _, id := range ruledIDs {
		for _, a := range ruledValues {
			for _, b := range ruledValues {
				rows = append(rows, ruledRow(id, typ, a, b))
			}
		}
	}
	return rows
}

func ruledTable(t require.TestingT) *table.Table {
	tbl, err := table.Open(dynamodb.NewFromConfig(aws.Config{Region: "us-east-1"}), table.Schema{Name: "app"})
	require.NoError(t, err)
	return tbl
}

// Define refuses two rules exactly if there is a row for which both hold, and one rule exactly if there is none for which
// it holds, as a search through all rows that rules can tell apart finds out.
func TestMatch_IsRefusedExactlyWhereARowIsOfTwoTypes(t *testing.T) {
	counts := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		m, one := drawRule(t, 3)
		n, two := drawRule(t, 3)
		first := entity.Spec[ruled]{Type: "1", PK: "R#{id}", SK: "R", Match: m}
		second := entity.Spec[ruled]{Type: "2", PK: "R#{id}", SK: "R", Match: n}
		for _, c := range []struct {
			spec entity.Spec[ruled]
			has  func(table.Item) bool
		}{{first, one}, {second, two}} {
			e, err := entity.Define(ruledTable(t), c.spec)
			own := ruledRows(strf("%s", c.spec.Type))
			if !slices.ContainsFunc(ruledRows(nil), c.has) && !slices.ContainsFunc(own, c.has) {
				require.ErrorContains(t, err, "no row matches", "%s", c.spec.Match)
				counts["nothing"]++
				return
			}
			require.NoError(t, err)
			for _, row := range ruledRows(nil) {
				require.Equal(t, c.has(row), e.Owns(row), "%s and %v", c.spec.Match, row)
			}
			for _, row := range own {
				require.True(t, e.Owns(row))
			}
		}
		tbl := ruledTable(t)
		_, err := entity.Define(tbl, first)
		require.NoError(t, err)
		_, err = entity.Define(tbl, second)
		if slices.ContainsFunc(ruledRows(nil), func(row table.Item) bool { return one(row) && two(row) }) {
			require.ErrorContains(t, err, "could be the key of", "%s and %s", m, n)
			counts["common"]++
		} else {
			require.NoError(t, err, "%s and %s", m, n)
			counts["apart"]++
		}
	})
	for _, what := range []string{"nothing", "common", "apart"} {
		testkit.Met(t, counts[what], what)
	}
}

// What a rule says of a row that was read is what DynamoDB says of the condition that it makes of a write; and a write
// that is accepted leaves a row that matches.
func TestMatch_IsTheConditionOfWrites(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := table.Schema{Name: e.TableName(t), NoTTL: true}
		raw, err := table.Open(e.Client(), s)
		require.NoError(t, err)
		require.NoError(t, raw.Ensure(t.Context()))
		ctx := t.Context()
		counts := map[string]int{}
		rapid.Check(t, func(t *rapid.T) {
			tbl, err := table.Open(e.Client(), s) // with no definitions of others
			require.NoError(t, err)
			m, has := drawRule(t, 3)
			things, err := entity.Define(tbl, entity.Spec[ruled]{Type: "1", PK: "R#{id}", SK: "R", Match: m, Untyped: rapid.Bool().Draw(t, "untyped")})
			if err != nil {
				require.ErrorContains(t, err, "no row matches")
				return
			}
			value := rapid.SampledFrom(ruledValues)
			id := rapid.SampledFrom(ruledIDs).Draw(t, "id")
			row := ruledRow(id, rapid.SampledFrom([]types.AttributeValue{nil, nil, strf("1"), strf("2")}).Draw(t, "type"), value.Draw(t, "a"), value.Draw(t, "b"))
			delete(row, "a") // a number there does not decode
			if a := rapid.SampledFrom([]types.AttributeValue{nil, strf("1"), strf("2"), strf("4")}).Draw(t, "text"); a != nil {
				row["a"] = a
			}
			require.NoError(t, raw.Write(ctx, table.Put(row)))
			typ, typed := row["type"]
			owns := has(row) && !typed || typed && attrvalue.Same(typ, strf("1"))
			change := rapid.SampledFrom([]entity.Change{
				entity.Set("n", 1), entity.Set("a", "1"), entity.Set("a", "2"), entity.Set("a", ""), entity.Remove("a"), entity.Remove("b"), entity.Add("n", 1),
			}).Draw(t, "change")
			_, err = things.Update(ctx, ruled{ID: id}, change)
			now, readErr := raw.Get(ctx, keys.NewKey("R#"+id, "R"), true)
			require.NoError(t, readErr)
			switch {
			case err == nil:
				counts["written"]++
				require.True(t, owns, "%s and %v", m, row)
				require.True(t, things.Owns(now), "%s and %v, which was %v", m, now, row)
			case errors.Is(err, entity.ErrMatch):
				counts["refused"]++
				require.Equal(t, row, now)
				after := maps.Clone(row)
				switch change {
				case entity.Set("a", "1"):
					after["a"] = strf("1")
				case entity.Set("a", "2"):
					after["a"] = strf("2")
				case entity.Remove("b"):
					delete(after, "b")
				default:
					delete(after, "a")
				}
				delete(after, "type")
				require.False(t, things.Owns(after), "%s: %v could have become %v", m, row, after)
			default:
				require.ErrorIs(t, err, entity.ErrType, "%s and %v", m, row)
				require.Equal(t, row, now)
				counts["another's"]++
			}
			err = things.Delete(ctx, ruled{ID: id})
			require.Equal(t, things.Owns(now), err == nil, "%s and %v: %v", m, now, err)
		})
		for _, what := range []string{"written", "refused", "another's"} {
			testkit.Met(t, counts[what], what)
		}
		t.Log(counts)
	})
}

func TestMatch_AdoptedIndexOfManyMeanings(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		n := openNorthwind(t, e)
		ctx := t.Context()
		suppliers := func(match keys.Values, opts ...entity.ReadOption) (ids []string) {
			for s, err := range n.suppliers.Query(ctx, match, append(opts, entity.On("gsi_1"))...) {
				require.NoError(t, err)
				ids = append(ids, s.ID)
			}
			return ids
		}
		assert.Equal(t, []string{"11", "12", "13", "1"}, suppliers(nil), "in the order of the text")
		assert.Equal(t, []string{"11", "12", "13"}, suppliers(keys.Values{"country": "Germany"}))
		assert.Equal(t, []string{"11", "12"}, suppliers(keys.Values{"country": "Germany", "region": "NULL"}))
		assert.Equal(t, []string{"11", "12", "13"}, suppliers(nil, entity.Prefix("country", "Ger")))
		assert.Equal(t, []string{"12"}, suppliers(keys.Values{"country": "Germany", "region": "NULL"}, entity.Prefix("city", "Fr")))
		assert.Equal(t, []string{"13"}, suppliers(keys.Values{"country": "Germany", "region": "Nord", "city": "Cuxhaven"}, entity.Prefix("address", "Frahmredder 112a #")))
		assert.Empty(t, suppliers(keys.Values{"country": "Ger"}), "a field that is given is compared as a whole")

		products := collect(t, n.products.Query(ctx, keys.Values{"data": "1"}, entity.On("gsi_1")))
		assert.Equal(t, []Product{{ID: "5", Discontinued: "1", Name: "Gumbo Mix"}}, products)
		// Direct reports: the table's sort key is the index's partition key.
		hired := collect(t, n.employees.Query(ctx, keys.Values{"id": "5"}, entity.On("gsi_1"), entity.Prefix("Hired", "1993-10")))
		assert.Equal(t, []Employee{{Boss: "2", ID: "5", Hired: "1993-10-17 00:00:00.000", Name: "Buchanan"}}, hired)
		assert.Empty(t, collect(t, n.employees.Query(ctx, keys.Values{"id": "5"}, entity.On("gsi_1"), entity.Prefix("data", "1992"))))
	})
}

// What an update leaves in an attribute can be known, known to exist, or unknown.
func TestMatch_OfAttributesThatAnUpdateAddsTo(t *testing.T) {
	type row struct {
		ID    string   `dynamo:"-"`
		Count int      `dynamo:"count,omitempty"`
		Tags  []string `dynamo:"tags,set,omitempty"`
		Note  string   `dynamo:"note,omitempty"`
	}
	add, drop := entity.Add("tags", []string{"a"}), entity.RemoveFrom("tags", []string{"a"})
	five := entity.AttrEquals("count", 5)
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		for i, c := range []struct {
			match  entity.Match
			row    table.Item
			change entity.Change
			want   error
		}{
			{entity.HasAttr("tags"), table.Item{"tags": &types.AttributeValueMemberSS{Value: []string{"b"}}}, add, nil},
			{entity.HasAttr("tags"), table.Item{"tags": &types.AttributeValueMemberSS{Value: []string{"a"}}}, drop, entity.ErrMatch},
			{entity.Not(entity.HasAttr("tags")), table.Item{}, add, entity.ErrMatch},
			{five, table.Item{"count": num("5")}, entity.Add("count", 1), entity.ErrMatch},
			{five, table.Item{"count": num("5")}, add, nil},
			{entity.Not(entity.And(entity.HasAttr("tags"), entity.HasAttr("note"))), table.Item{}, add, nil},
			{entity.Not(entity.And(entity.HasAttr("tags"), entity.HasAttr("note"))), table.Item{"note": str("n")}, add, entity.ErrMatch},
			{entity.Not(entity.And(entity.HasAttr("tags"), entity.HasAttr("note"))), table.Item{"tags": &types.AttributeValueMemberSS{Value: []string{"b"}}}, entity.Set("note", "n"), entity.ErrMatch},
			{entity.Not(entity.And(five, entity.Not(entity.HasAttr("note")))), table.Item{"count": num("5"), "note": str("n")}, entity.Remove("note"), entity.ErrMatch},
			{entity.Not(entity.And(five, entity.Not(entity.HasAttr("note")))), table.Item{"count": num("5"), "note": str("n")}, add, nil},
		} {
			tbl, err := table.Open(e.Client(), f.raw.Schema())
			require.NoError(t, err)
			rows := define(t, tbl, entity.Spec[row]{Type: "Row", PK: "ROW#{id}", SK: "ROW", Match: c.match, Untyped: true})
			key := row{ID: strconv.Itoa(i)}
			maps.Copy(c.row, tbl.KeyItem(rows.Key(key)))
			require.NoError(t, tbl.Write(t.Context(), table.Put(c.row)))
			_, err = rows.Update(t.Context(), key, c.change)
			require.ErrorIs(t, err, c.want, "%d: %s", i, c.match)
		}
	})
	assert.Equal(t, "And()", entity.Match{}.String())
	assert.Equal(t, `AttrEquals("a", "x", 1.5, true, []byte{0x1})`, entity.AttrEquals("a", "x", 1.5, true, []byte{1}).String())
}

// Freight is a row with an attribute that its type does not have and by which Match knows it.
type Freight struct {
	ID      string `dynamo:"-"`
	Mail    string `dynamo:"mail,omitempty"`
	Version int64  `dynamo:"version"`
}

func TestMatch_ByAnAttributeThatTheTypeDoesNotHave(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		freights := define(t, f.Table, entity.Spec[Freight]{
			Type: "Freight", PK: "{id}", SK: "FREIGHT", Version: "version", Untyped: true, Match: entity.HasAttr("weight"),
			Unique: []entity.Unique[Freight]{{Name: "mail", Key: "{mail}"}},
		})
		ctx := t.Context()
		item := f.KeyItem(freights.Key(Freight{ID: "1"}))
		item["weight"] = &types.AttributeValueMemberN{Value: "7"}
		require.NoError(t, f.raw.Write(ctx, table.Put(item)))
		o, err := freights.Update(ctx, Freight{ID: "1"}, entity.Set("mail", "a"))
		require.NoError(t, err)
		assert.Equal(t, Freight{ID: "1", Mail: "a", Version: 1}, o)
		o, err = freights.Modify(ctx, o, func(o *Freight) error { o.Mail = "b"; return nil })
		require.NoError(t, err)
		got, err := freights.Get(ctx, o, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, o, got)
		assert.NotContains(t, f.row(t, freights.Key(o)), "_t")
		assert.Len(t, f.sentinels(t), 1)
	})
}

// Keeping keeps all attributes of its row, also those that it does not know.
type Keeping struct {
	ID      string `dynamo:"id"`
	Mail    string `dynamo:"mail"`
	Version int64  `dynamo:"version"`
	all     map[string]types.AttributeValue
}

func (k Keeping) MarshalDynamoItem() (map[string]types.AttributeValue, error) {
	item := maps.Clone(k.all)
	if item == nil {
		item = map[string]types.AttributeValue{}
	}
	item["id"] = &types.AttributeValueMemberS{Value: k.ID}
	item["mail"] = &types.AttributeValueMemberS{Value: k.Mail}
	return item, nil
}

func (k *Keeping) UnmarshalDynamoItem(item map[string]types.AttributeValue) error {
	k.ID, k.Mail, k.all = text(item, "id"), text(item, "mail"), item
	return nil
}

// A value that keeps the attributes of its row shows that an update returns the row as a reader sees it: without a type attribute.
func TestMatch_AnUpdateOfAnUntypedRowReturnsNoType(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		keeping := define(t, f.Table, entity.Spec[Keeping]{
			Type: "Keeping", PK: "KEEP#{id}", SK: "KEEP", Version: "version", Untyped: true,
			Unique: []entity.Unique[Keeping]{{Name: "mail", Key: "{mail}"}},
		})
		ctx := t.Context()
		o, err := keeping.Create(ctx, Keeping{ID: "1", Mail: "a"})
		require.NoError(t, err)
		o, err = keeping.Get(ctx, o, entity.Consistent())
		require.NoError(t, err)
		o, err = keeping.Modify(ctx, o, func(o *Keeping) error { o.Mail = "b"; return nil })
		require.NoError(t, err)
		assert.NotContains(t, o.all, "_t")
		_, err = keeping.Put(ctx, o)
		require.NoError(t, err)
		assert.NotContains(t, f.row(t, keeping.Key(o)), "_t")
	})
}
