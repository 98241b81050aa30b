package attrvalue_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/internal/attrvalue"
)

func TestSame_ComparesAsDynamoDBDoes(t *testing.T) {
	n := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	ns := func(s ...string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: s} }
	ss := func(s ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: s} }
	bs := func(s ...string) types.AttributeValue {
		v := &types.AttributeValueMemberBS{}
		for _, x := range s {
			v.Value = append(v.Value, []byte(x))
		}
		return v
	}
	l := func(v ...types.AttributeValue) types.AttributeValue { return &types.AttributeValueMemberL{Value: v} }
	m := func(k string, v types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{k: v}}
	}
	s := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	null := &types.AttributeValueMemberNULL{Value: true}
	for _, pair := range [][2]types.AttributeValue{
		{n("1"), n("1.0")},
		{n("1e2"), n("100")},
		{n("-0"), n("0")},
		{ns("1", "2"), ns("2.0", "1")},
		{ss("a", "b"), ss("b", "a")},
		{bs("a", "b"), bs("b", "a")},
		{l(n("1"), s("")), l(n("1.0"), s(""))},
		{m("k", n("1")), m("k", n("01"))},
		{null, null},
		{nil, nil},
		{&types.AttributeValueMemberB{Value: []byte("x")}, &types.AttributeValueMemberB{Value: []byte("x")}},
		{&types.AttributeValueMemberBOOL{Value: true}, &types.AttributeValueMemberBOOL{Value: true}},
	} {
		assert.True(t, attrvalue.Same(pair[0], pair[1]), "%v %v", pair[0], pair[1])
		assert.True(t, attrvalue.Same(pair[1], pair[0]), "%v %v", pair[1], pair[0])
	}
	different := []types.AttributeValue{
		n("1"), n("2"), n("x"), s("1"), s(""), ns("1"), ns("1", "2"), ss("1"), bs("1"), l(), l(n("1")), l(n("1"), n("1")), m("k", n("1")), m("k", n("2")),
		m("j", n("1")), null, nil, &types.AttributeValueMemberB{Value: []byte("1")}, &types.AttributeValueMemberBOOL{Value: true},
		&types.AttributeValueMemberBOOL{Value: false},
	}
	for i, a := range different {
		for j, b := range different {
			assert.Equal(t, i == j, attrvalue.Same(a, b), "%v %v", a, b)
		}
	}
	assert.False(t, attrvalue.SameItem(map[string]types.AttributeValue{"a": n("1")}, map[string]types.AttributeValue{"b": n("1")}))
	assert.False(t, attrvalue.SameItem(map[string]types.AttributeValue{"a": n("1")}, map[string]types.AttributeValue{}))
	assert.True(t, attrvalue.SameItem(nil, map[string]types.AttributeValue{}))
}

// A set can have many thousand elements. Comparing each with each would take minutes for one item.
func TestSame_ComparesLargeSetsInLinearTime(t *testing.T) {
	const elements = 20_000
	a, b := &types.AttributeValueMemberNS{}, &types.AttributeValueMemberNS{}
	for i := range elements {
		a.Value = append(a.Value, strconv.Itoa(i))
		b.Value = append(b.Value, strconv.Itoa(elements-1-i)+".0")
	}
	start := time.Now()
	assert.True(t, attrvalue.Same(a, b))
	assert.Less(t, time.Since(start), 10*time.Second)
	b.Value[0] = b.Value[1] // twice, which is no set
	assert.False(t, attrvalue.Same(a, b))
	assert.False(t, attrvalue.Same(b, a))
	assert.True(t, attrvalue.Same(b, b), "each value is the same as itself")
}
