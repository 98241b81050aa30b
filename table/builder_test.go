package table

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/keys"
)

func expression(c Cond, changes ...Change) (cond, update string, b builder) {
	c.write(&b)
	cond = aws.ToString(b.take())
	writeChanges(&b, changes)
	update = aws.ToString(b.take())
	return cond, update, b
}

func TestBuilder_WritesExpressions(t *testing.T) {
	a, n := Attr("a"), Attr("n")
	cond, update, b := expression(
		And(Or(a.Equal(1), n.Less(a)), Not(a.Between(1, 2)), a.Field("f").At(3).Exists(), n.In(1, 2), Cond{}, Not(Not(a.HasPrefix("x")))),
		n.Add(1), a.Set(n.OrElse(0).Plus(1)), Attr("x").Remove(), Attr("y").Remove(), Attr("s").RemoveFrom(&types.AttributeValueMemberSS{Value: []string{"z"}}), Attr("z").Set(2))
	require.NoError(t, b.err)
	assert.Equal(t, "(#0 = :0 OR #1 < #0) AND (NOT (#0 BETWEEN :1 AND :2)) AND attribute_exists(#0.#2[3])"+
		" AND #1 IN (:3, :4) AND (NOT (NOT begins_with(#0, :5)))", cond)
	assert.Equal(t, "SET #0 = if_not_exists(#1, :6) + :7, #3 = :8 REMOVE #4, #5 ADD #1 :9 DELETE #6 :10", update)
	assert.Equal(t, map[string]string{"#0": "a", "#1": "n", "#2": "f", "#3": "z", "#4": "x", "#5": "y", "#6": "s"}, b.names)
	assert.Len(t, b.values, 11)
}

func TestBuilder_AddTakesNumbersAndSetsAndRemoveFromSets(t *testing.T) {
	n := Attr("n")
	for _, c := range []struct {
		value           any
		add, removeFrom bool
	}{
		{1, true, false},
		{1.5, true, false},
		{&types.AttributeValueMemberSS{Value: []string{"a"}}, true, true},
		{&types.AttributeValueMemberNS{Value: []string{"1"}}, true, true},
		{&types.AttributeValueMemberBS{Value: [][]byte{{1}}}, true, true},
		{"1", false, false},
		{[]byte{1}, false, false},
		{true, false, false},
		{[]string{"a"}, false, false}, // a list
		{map[string]int{"a": 1}, false, false},
	} {
		for want, change := range map[*bool]Change{&c.add: n.Add(c.value), &c.removeFrom: n.RemoveFrom(c.value)} {
			_, _, b := expression(Cond{}, Attr("m").Set("x"), change)
			if *want {
				assert.NoError(t, b.err, "%T", c.value)
			} else {
				assert.ErrorIs(t, b.err, ErrInvalid, "%T", c.value)
			}
		}
	}
}

func TestBuilder_EqualRequestsHaveEqualExpressions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		build := func() (string, string, builder) {
			r := rand.New(rand.NewPCG(seed, 1))
			var conds []Cond
			var changes []Change
			for range 1 + r.IntN(70) {
				name := string(rune('a' + r.IntN(100)))
				conds = append(conds, Attr(name).Equal(r.IntN(10)))
				switch r.IntN(4) {
				case 0:
					changes = append(changes, Attr(name).Set(r.IntN(10)))
				case 1:
					changes = append(changes, Attr(name).Remove())
				case 2:
					changes = append(changes, Attr(name).Add(1))
				case 3:
					changes = append(changes, Attr(name).Set(Attr(name).OrElse("x")))
				}
			}
			return expression(And(conds...), changes...)
		}
		c1, u1, b1 := build()
		c2, u2, b2 := build()
		require.Equal(t, c1, c2)
		require.Equal(t, u1, u2)
		require.Equal(t, b1.names, b2.names)
		require.Equal(t, b1.values, b2.values)
		for holder, name := range b1.names {
			require.Equal(t, holder, b1.holder[name], "one placeholder a name")
		}
	})
}

func TestEncode_TakesGoValues(t *testing.T) {
	type named string
	one := 1
	for _, c := range []struct {
		in   any
		want types.AttributeValue
	}{
		{"", &types.AttributeValueMemberS{}},
		{named(""), &types.AttributeValueMemberS{}},
		{named("x"), &types.AttributeValueMemberS{Value: "x"}},
		{&one, &types.AttributeValueMemberN{Value: "1"}},
		{uint8(7), &types.AttributeValueMemberN{Value: "7"}},
		{1e21, &types.AttributeValueMemberN{Value: "1000000000000000000000"}},
		{[]int{1}, &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberN{Value: "1"}}}},
		{map[string]bool{"x": true}, &types.AttributeValueMemberM{Value: Item{"x": &types.AttributeValueMemberBOOL{Value: true}}}},
	} {
		av, err := Encode(c.in)
		require.NoError(t, err)
		assert.Equal(t, c.want, av)
	}
	for _, bad := range []any{nil, (*int)(nil), make(chan int), []byte(nil), (*types.AttributeValueMemberN)(nil), (*big.Int)(nil), (*big.Rat)(nil), "\xff", named("\xff"), []string{"\xff"}} {
		_, err := Encode(bad)
		assert.ErrorIs(t, err, ErrInvalid, "%T", bad)
	}
}

// itself has all ways in which a value can lead back to itself.
type itself struct {
	Pointer *itself
	List    []*itself
	Map     map[string]*itself
	Any     any
	Left    *itself `dynamo:"-"`
	hidden  *itself
	Encoded encoded
}

// encoded leads back too, but encodes itself.
type encoded struct{ to *itself }

func (encoded) MarshalDynamo() (types.AttributeValue, error) {
	return &types.AttributeValueMemberS{Value: "x"}, nil
}

// The stack would overflow, which a program cannot recover from.
func TestEncode_RefusesWhatContainsItself(t *testing.T) {
	list, doc := []any{nil}, map[string]any{}
	list[0], doc["x"] = list, doc
	var loop any
	loop = &loop
	var byPointer, byList, byMap, byAny, embedded itself
	byPointer.Pointer, byList.List, byMap.Map, byAny.Any = &byPointer, []*itself{nil, &byList}, map[string]*itself{"x": &byMap}, &byAny
	embedded.Any = struct{ *itself }{&embedded}
	for name, v := range map[string]any{
		"list": list, "map": doc, "interface": loop, "field": &byPointer, "value": byPointer, "field list": byList, "field map": byMap,
		"field any": byAny, "embedded": embedded, "operand": []itself{{}, byPointer},
	} {
		_, err := Encode(v)
		require.ErrorIs(t, err, ErrInvalid, name)
		_, _, b := expression(Cond{}, Attr("a").Set(v))
		require.ErrorIs(t, b.err, ErrInvalid, name)
	}

	inList, inMap := &types.AttributeValueMemberL{Value: make([]types.AttributeValue, 1)}, &types.AttributeValueMemberM{Value: Item{}}
	inList.Value[0], inMap.Value["x"] = inList, inMap
	for _, av := range []types.AttributeValue{inList, inMap} {
		_, err := Encode(av)
		require.ErrorIs(t, err, ErrInvalid)
	}

	var fine itself
	fine.Left, fine.hidden, fine.Encoded = &fine, &fine, encoded{&fine}
	fine.Any = &itself{Pointer: &itself{}}
	av, err := Encode(fine)
	require.NoError(t, err)
	assert.Contains(t, av.(*types.AttributeValueMemberM).Value, "Any")
}

func TestField_OfWhatIsNoAttributeIsRefused(t *testing.T) {
	a, b := Attr("a"), Attr("b")
	for name, cond := range map[string]Cond{
		"size": a.Size().Field("x").Equal(1), "size of a list": a.Size().At(0).Less(1), "value": Value("v").Field("x").Equal(a), "on the right": a.Equal(Value("v").At(0)),
	} {
		require.ErrorIs(t, cond.Err(), ErrInvalid, name)
	}
	for name, change := range map[string]Change{
		"OrElse": a.Set(b.OrElse(1).Field("x")), "sum": a.Set(b.Plus(1).At(0)), "value": a.Add(Value(1).Field("x")), "Append": a.Set(b.Append([]int{1}).At(0)),
	} {
		_, _, b := expression(Cond{}, change)
		require.ErrorIs(t, b.err, ErrInvalid, name)
	}
	require.NoError(t, a.Field("x").At(0).Size().Equal(1).Err())
}

// The encoder makes an empty map of a struct without exported fields: n.Set(n.Add(1)) would replace a number by it.
func TestValue_ThatIsAPartOfAnExpressionIsRefused(t *testing.T) {
	n := Attr("n")
	cond, change, op := n.Exists(), n.Add(1), Delete(someKey)
	for _, v := range []any{cond, &cond, change, &change, op, &op, &n} {
		_, _, b := expression(Cond{}, n.Set(v))
		require.ErrorIs(t, b.err, ErrInvalid, "%T", v)
		require.ErrorIs(t, n.Equal(v).Err(), ErrInvalid, "%T", v)
	}
	_, err := Encode(n)
	require.ErrorIs(t, err, ErrInvalid)
}

func TestInvalidOperand_IsRefusedWithItsError(t *testing.T) {
	cause := errors.New("no such field")
	bad, a := InvalidOperand(cause), Attr("a")
	conds := map[string]Cond{
		"compared": bad.Equal(1), "on the right": a.Equal(bad), "asked for": bad.Exists(), "within": bad.Field("x").At(1).NotExists(),
		"sized": bad.Size().Greater(1), "among others": And(a.Exists(), Or(a.Less(1), Not(bad.In(1)))),
	}
	for name, cond := range conds {
		_, _, b := expression(cond)
		require.ErrorIs(t, b.err, cause, name)
	}
	for name, change := range map[string]Change{
		"set": bad.Set(1), "given": a.Set(bad), "added to": bad.Add(1), "removed": bad.Remove(), "a part": a.Set(bad.OrElse(1).Plus(1)),
	} {
		_, _, b := expression(Cond{}, change)
		require.ErrorIs(t, b.err, cause, name)
	}
}

// An operand is compared with an attribute that package entity has written.
func TestEncode_ATimeWithAnOffsetInSecondsIsThatMoment(t *testing.T) {
	at := time.Date(1890, 2, 3, 4, 5, 6, 7, time.FixedZone("LMT", 1172))
	for _, v := range []any{at, &at} {
		av, err := Encode(v)
		require.NoError(t, err)
		require.Equal(t, &types.AttributeValueMemberS{Value: "1890-02-03T03:45:34.000000007Z"}, av)
	}
}

func TestPrepare_SendsAParameterAndAnAttributeValueOnce(t *testing.T) {
	a, b, first := Attr("a"), Attr("b"), Value(inside.Param(0))
	same := &types.AttributeValueMemberS{Value: "x"}
	on, err := prepare(Update(keys.Key{}, b.Set(same), Attr("c").Set("x"), Attr("n").Add(first)).If(a.Less(first), b.Equal(same)))
	require.NoError(t, err)
	op := on(keys.NewKey("pk", "sk"), 5)
	e, err := op.expressions()
	require.NoError(t, err)
	assert.Equal(t, "#0 < :0 AND #1 = :1", aws.ToString(e.condition))
	assert.Equal(t, "SET #1 = :1, #2 = :2 ADD #3 :0", aws.ToString(e.update))
	assert.Equal(t, Item{":0": &types.AttributeValueMemberN{Value: "5"}, ":1": same, ":2": same}, e.values)

	_, err = prepare(Update(keys.Key{}, Attr("n").Add(same)).If(b.Equal(same)))
	require.ErrorIs(t, err, ErrInvalid, "Add of the value of an earlier placeholder")
}
