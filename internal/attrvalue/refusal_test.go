package attrvalue_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Size refuses what an engine refuses, and nothing else, on both sides of each limit.
func TestSize_RefusesWhatDynamoDBRefuses(t *testing.T) {
	n := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	ns := func(s ...string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: s} }
	ss := func(s ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: s} }
	list := func(v types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberL{Value: []types.AttributeValue{v}}
	}
	doc := func(v types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: table.Item{"k": v}}
	}
	nested := func(depth int, in func(types.AttributeValue) types.AttributeValue) types.AttributeValue {
		v := n("1")
		for range depth {
			v = in(v)
		}
		return v
	}
	digits := strings.Repeat("1234567891", 4)
	values := map[bool][]types.AttributeValue{
		false: {
			n("0"), n("-0"), n("1."), n(".1"), n("+1"), n("1E+5"), n("-1.5e-3"), n(digits[:38]), n("-0.00" + digits[:38]), n(digits[:38] + "000"), n("000" + digits[:38]),
			n(digits[:38] + "e88"), n("9e125"), n("0.9e126"), n("1e-130"), n("10e-131"), n("-1e-130"), n("0e125"), n("0e-130"),
			ns("1", "-1"), ss("a", "A"), ss(""), &types.AttributeValueMemberBS{Value: [][]byte{{1}, {}}}, nested(31, list), nested(31, doc), doc(list(ns("1"))),
			&types.AttributeValueMemberL{}, &types.AttributeValueMemberM{}, &types.AttributeValueMemberNULL{Value: true},
		},
		true: {
			n(""), n("."), n("e5"), n("x"), n("1_0"), n(" 1"), n("1e"), n("1.2.3"), n("--1"), n("+-1"), n(digits[:39]), n(digits[:38] + "e89"), n("10e125"), n("1e-131"),
			n("0.1e-130"), n("1e1001"), n("0e126"), n("0e-131"), n("1e99999999999999999999"),
			ns(), ns("1", "x"), ns("1", "1.0"), ss(), ss("a", "b", "a"), &types.AttributeValueMemberBS{Value: [][]byte{{1}, {1}}}, nested(32, list), nested(32, doc),
			list(n("x")), doc(n("x")), &types.AttributeValueMemberNULL{},
		},
	}
	engine := tabletest.New(t)
	tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"})
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	for refused, list := range values {
		for _, v := range list {
			_, err := attrvalue.Size(v)
			assert.Equal(t, refused, err != nil, "%#v: %v", v, err)
			item := table.Item{"pk": &types.AttributeValueMemberS{Value: "p"}, "sk": &types.AttributeValueMemberS{Value: "s"}, "v": v}
			_, err = engine.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: item})
			assert.Equal(t, refused, err != nil, "the engine: %#v: %v", v, err)
		}
	}
	_, err = attrvalue.Size(nil)
	assert.Error(t, err)
}
