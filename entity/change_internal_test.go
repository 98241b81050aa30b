package entity

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/attrvalue"
)

func TestAdd_SumsAreThoseOfDynamoDB(t *testing.T) {
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
	list := func(v ...types.AttributeValue) types.AttributeValue { return &types.AttributeValueMemberL{Value: v} }
	for _, c := range []struct{ have, delta, want types.AttributeValue }{
		{nil, n("1"), n("1")},
		{nil, ss("a"), ss("a")},
		{n("1"), n("2"), n("3")},
		{n("0.1"), n("0.2"), n("0.3")},
		{n("9007199254740993"), n("1"), n("9007199254740994")},
		{n("99999999999999999999999999999999999998"), n("1"), n("99999999999999999999999999999999999999")},
		{n("1e20"), n("-1"), n("99999999999999999999")},
		{ss("b", "a"), ss("a", "c"), ss("a", "b", "c")},
		{ns("1"), ns("2", "1"), ns("1", "2")},
		{bs("x"), bs("y", "x"), bs("x", "y")},
		{list(n("1")), list(n("1"), n("2")), list(n("1"), n("1"), n("2"))},
	} {
		got, err := combine(c.have, c.delta)
		require.NoError(t, err)
		assert.True(t, attrvalue.Same(c.want, got), "%v + %v = %v", c.have, c.delta, got)
	}
	for _, c := range []struct{ have, delta, want types.AttributeValue }{
		{nil, ss("a"), nil},
		{ss("b", "a"), ss("a", "c"), ss("b")},
		{ss("a"), ss("a"), nil},
		{ns("1", "2"), ns("1.0"), ns("2")},
		{ns("1"), ns("1"), nil},
		{bs("x", "y"), bs("y"), bs("x")},
		{bs("x"), bs("x"), nil},
	} {
		got, err := without(c.have, c.delta)
		require.NoError(t, err)
		if c.want == nil {
			assert.Nil(t, got)
			continue
		}
		assert.True(t, attrvalue.Same(c.want, got), "%v - %v = %v", c.have, c.delta, got)
	}
	for _, c := range [][2]types.AttributeValue{{n("1"), ns("1")}, {ss("1"), ns("1")}, {ns("1"), ss("1")}, {ss("1"), bs("1")}, {ss("1"), n("1")}} {
		_, err := without(c[0], c[1])
		assert.Error(t, err, "%v - %v", c[0], c[1])
	}
	for _, c := range [][2]types.AttributeValue{
		{n("1"), ss("a")},
		{ss("a"), n("1")},
		{ns("1"), ss("1")},
		{list(), n("1")},
		{bs("a"), ss("a")},
		{n("x"), n("1")},
		{n("1"), n("x")},
		{n("1e100000"), n("9e100000")},
		{&types.AttributeValueMemberS{Value: "a"}, &types.AttributeValueMemberS{Value: "b"}},
	} {
		_, err := combine(c[0], c[1])
		assert.Error(t, err, "%v + %v", c[0], c[1])
	}
}
