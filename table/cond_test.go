package table_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// sample is an item with an attribute of every type.
func (f fixture) sample() table.Item {
	return f.item("p", "s",
		"str", "hello", "empty", "", "n", 5, "neg", -1.5, "yes", true,
		"bin", []byte("bytes"),
		"null", &types.AttributeValueMemberNULL{Value: true},
		"list", list(num("1"), str("x")),
		"map", &types.AttributeValueMemberM{Value: table.Item{"a.b": &types.AttributeValueMemberM{Value: table.Item{"l": list(num("7"))}}}},
		"ss", strs("a", "b"), "ns", nums("1", "2"),
		"dotted.name", "d", "n2", 6)
}

func TestCond_MeansWhatItsNameTells(t *testing.T) {
	a := table.Attr
	missing, n, s := a("missing"), a("n"), a("str")
	yes, no := n.Equal(5), n.Equal(6)
	cases := []struct {
		name string
		cond table.Cond
		want bool
	}{
		{"Equal", n.Equal(5), true},
		{"Equal other number form", n.Equal(5.0), true},
		{"Equal other", n.Equal(6), false},
		{"Equal other type", n.Equal("5"), false},
		{"Equal missing", missing.Equal(5), false},
		{"Equal empty string", a("empty").Equal(""), true},
		{"Equal attribute", n.Equal(a("n2")), false},
		{"Equal set without order", a("ss").Equal(strs("b", "a")), true},
		{"NotEqual", n.NotEqual(6), true},
		{"NotEqual equal", n.NotEqual(5), false},
		{"NotEqual other type", n.NotEqual("5"), true},
		{"NotEqual missing", missing.NotEqual(5), true},
		{"Less", n.Less(6), true},
		{"Less equal", n.Less(5), false},
		{"Less attribute", n.Less(a("n2")), true},
		{"Less of negative", a("neg").Less(-1), true},
		{"AtMost equal", n.AtMost(5), true},
		{"AtMost below", n.AtMost(4.999), false},
		{"Greater", n.Greater(-5), true},
		{"Greater equal", n.Greater(5), false},
		{"AtLeast equal", n.AtLeast(5), true},
		{"AtLeast above", n.AtLeast(6), false},
		{"Less string", s.Less("help"), true},
		{"Less missing", missing.Less(1), false},
		{"Between lower end", n.Between(5, 9), true},
		{"Between upper end", n.Between(1, 5), true},
		{"Between outside", n.Between(6, 9), false},
		{"Between attributes", table.Value(5.5).Between(n, a("n2")), true},
		{"In", n.In(1, "5", 5), true},
		{"In none", n.In(1, "5"), false},
		{"Exists", s.Exists(), true},
		{"Exists null", a("null").Exists(), true},
		{"Exists missing", missing.Exists(), false},
		{"NotExists", missing.NotExists(), true},
		{"NotExists there", s.NotExists(), false},
		{"IsType", a("ns").IsType("NS"), true},
		{"IsType NULL", a("null").IsType("NULL"), true},
		{"IsType other", n.IsType("S"), false},
		{"HasPrefix", s.HasPrefix("hel"), true},
		{"HasPrefix other", s.HasPrefix("el"), false},
		{"HasPrefix binary", a("bin").HasPrefix([]byte("by")), true},
		{"Contains substring", s.Contains("ell"), true},
		{"Contains element", a("ss").Contains("a"), true},
		{"Contains number in set", a("ns").Contains(2), true},
		{"Contains in list", a("list").Contains("x"), true},
		{"Contains nothing", a("ss").Contains("c"), false},
		{"Size of string", s.Size().Equal(5), true},
		{"Size of set", a("ss").Size().Greater(1), true},
		{"Size of list", a("list").Size().Less(2), false},
		{"Size of missing", missing.Size().AtLeast(0), false},
		{"Field and At", a("map").Field("a.b").Field("l").At(0).Equal(7), true},
		{"At beyond", a("list").At(2).Exists(), false},
		{"dots are part of a name", a("dotted.name").Equal("d"), true},
		{"Value on the left", table.Value(4).Less(n), true},
		{"bool", a("yes").Equal(true), true},
		{"bool false", a("yes").Equal(false), false},
		{"And", table.And(yes, s.Exists()), true},
		{"And one false", table.And(yes, no), false},
		{"And of nothing and one", table.And(table.Cond{}, yes), true},
		{"Or", table.Or(no, yes), true},
		{"Or none", table.Or(no, missing.Exists()), false},
		{"Not", table.Not(no), true},
		{"Not of Between", table.Not(n.Between(6, 9)), true},
		{"Not of And", table.Not(table.And(yes, no)), true},
		{"Not of Not", table.Not(table.Not(yes)), true},
		{"Not of Or", table.Not(table.Or(no, yes)), false},
		{"Or within And", table.And(table.Or(no, yes), table.Or(yes, no)), true},
		{"And within Or binds", table.Or(table.And(no, yes), table.And(yes, no)), false},
		{"Between within And", table.And(n.Between(1, 5), n.Between(6, 9)), false},
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		f.put(t, f.sample())
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				for name, op := range map[string]table.Op{
					"check":  table.Check(key("p", "s"), c.cond),
					"update": table.Update(key("p", "s"), table.Attr("touched").Set(1)).If(c.cond),
				} {
					err := f.Write(t.Context(), op)
					if c.want {
						assert.NoError(t, err, name)
					} else {
						assert.ErrorIs(t, err, table.ErrCondition, name)
					}
				}
			})
		}
	})
}

func TestChange_DoesWhatItsNameTells(t *testing.T) {
	a := table.Attr
	cases := []struct {
		name    string
		changes []table.Change
		attr    string
		want    types.AttributeValue
	}{
		{"Set", []table.Change{a("new").Set("v")}, "new", str("v")},
		{"Set empty string", []table.Change{a("new").Set("")}, "new", str("")},
		{"Set to attribute", []table.Change{a("new").Set(a("n"))}, "new", num("5")},
		{"Set Plus", []table.Change{a("n").Set(a("n").Plus(1.25))}, "n", num("6.25")},
		{"Set Minus", []table.Change{a("n").Set(a("n").Minus(a("n2")))}, "n", num("-1")},
		{"Set OrElse missing", []table.Change{a("new").Set(a("new").OrElse(7))}, "new", num("7")},
		{"Set OrElse there", []table.Change{a("n").Set(a("n").OrElse(7))}, "n", num("5")},
		{"Set OrElse Plus", []table.Change{a("new").Set(a("new").OrElse(0).Plus(3))}, "new", num("3")},
		{"Set OrElse another attribute", []table.Change{a("new").Set(a("new").OrElse(a("n")))}, "new", num("5")},
		{"Set Append", []table.Change{a("list").Set(a("list").Append(list(num("2"))))}, "list", list(num("1"), str("x"), num("2"))},
		{"Set Append to missing", []table.Change{a("new").Set(a("new").OrElse(list()).Append(list(num("2"))))}, "new", list(num("2"))},
		{"Set prepend", []table.Change{a("list").Set(table.Value(list(num("0"))).Append(a("list")))}, "list", list(num("0"), num("1"), str("x"))},
		{"Set element", []table.Change{a("list").At(0).Set(9)}, "list", list(num("9"), str("x"))},
		{"Set of the old values", []table.Change{a("n").Set(a("n2")), a("n2").Set(a("n"))}, "n2", num("5")},
		{"Remove", []table.Change{a("n").Remove()}, "n", nil},
		{"Remove missing", []table.Change{a("missing").Remove()}, "missing", nil},
		{"Remove element", []table.Change{a("list").At(0).Remove()}, "list", list(str("x"))},
		{"Add", []table.Change{a("n").Add(2)}, "n", num("7")},
		{"Add to missing", []table.Change{a("new").Add(-2)}, "new", num("-2")},
		{"Add to set", []table.Change{a("ss").Add(strs("b", "c"))}, "ss", strs("a", "b", "c")},
		{"Add to missing set", []table.Change{a("new").Add(nums("1"))}, "new", nums("1")},
		{"RemoveFrom", []table.Change{a("ss").RemoveFrom(strs("b", "z"))}, "ss", strs("a")},
		{"RemoveFrom all", []table.Change{a("ss").RemoveFrom(strs("a", "b"))}, "ss", nil},
		{"all verbs at once", []table.Change{a("ns").RemoveFrom(nums("1")), a("x").Set(1), a("n").Add(1), a("str").Remove(), a("y").Set(2)}, "n", num("6")},
		{"38 digits are kept", []table.Change{a("new").Set(num("12345678901234567890123456789012345678"))}, "new", num("12345678901234567890123456789012345678")},
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				f.put(t, f.sample())
				updated, err := f.Apply(t.Context(), table.Update(key("p", "s"), c.changes...), table.ReturnNew)
				require.NoError(t, err)
				assert.True(t, attrvalue.Same(c.want, updated[c.attr]), "returned %v", updated[c.attr])
				assert.True(t, attrvalue.SameItem(updated, f.get(t, "p", "s")), "what is returned is what is kept")
			})
		}
	})
}

func TestCondErr_IsWhatWouldRefuseTheCondition(t *testing.T) {
	a := table.Attr("a")
	for _, good := range []table.Cond{{}, a.Equal(1), table.And(a.Exists(), table.Not(a.IsType("S")))} {
		require.NoError(t, good.Err())
	}
	for _, bad := range []table.Cond{
		table.Or(), table.Not(table.Cond{}), a.Equal(make(chan int)), table.Attr("").Exists(), a.In(), a.At(-1).Exists(),
		table.InvalidOperand(table.ErrInvalid).Equal(1), table.And(a.Exists(), table.Attr("").Less(1)),
	} {
		require.ErrorIs(t, bad.Err(), table.ErrInvalid)
	}
}

func TestShape_IsTheConditionWithoutItsValues(t *testing.T) {
	a, b := table.Attr("a"), table.Attr("b")
	same := [][2]table.Cond{
		{a.Equal(1), a.Equal("two")},
		{table.And(a.Less(1), b.In(1, 2)), table.And(a.Less(7), b.In("x", "y"))},
		{table.Not(a.Field("x").At(1).Exists()), table.Not(a.Field("x").At(1).Exists())},
		{{}, {}},
	}
	for _, pair := range same {
		assert.Equal(t, pair[0].Shape(), pair[1].Shape())
	}
	different := []table.Cond{
		{},
		a.Equal(1), b.Equal(1), a.Less(1), a.Equal(b), b.Equal(a), a.In(1), a.In(1, 2), a.At(1).Equal(1), a.At(2).Equal(1), a.Field("b").Equal(1),
		table.Attr(`a"b`).Equal(1), table.Attr("a.b").Equal(1), table.And(a.Equal(1), b.Equal(1)), table.Or(a.Equal(1), b.Equal(1)), table.And(b.Equal(1), a.Equal(1)),
		table.Not(a.Equal(1)), a.Size().Equal(1), a.Exists(), a.HasPrefix("x"), a.Between(1, 2),
	}
	seen := map[string]int{}
	for i, c := range different {
		j, ok := seen[c.Shape()]
		assert.False(t, ok, "%d and %d", i, j)
		seen[c.Shape()] = i
		assert.NotContains(t, c.Shape(), "cAnArY")
	}
	assert.NotContains(t, a.Equal("cAnArY").Shape(), "cAnArY")
}

// A condition that was built from an empty list must not turn into no condition.
func TestCond_MadeOfNothingIsRefused(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		key := keys.NewKey("p", "s")
		require.NoError(t, f.Write(t.Context(), table.Put(f.KeyItem(key))))
		for name, cond := range map[string]table.Cond{
			"or": table.Or(), "or of none": table.Or(table.Cond{}, table.And()), "not": table.Not(table.Cond{}), "inside": table.And(table.Or(), table.Attr("pk").Exists()),
		} {
			require.ErrorIs(t, f.Write(t.Context(), table.Delete(key).If(cond)), table.ErrInvalid, name)
		}
		_, err := f.Get(t.Context(), key, true)
		require.NoError(t, err)
	})
}
