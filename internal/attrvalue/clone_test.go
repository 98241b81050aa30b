package attrvalue_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/internal/attrvalue"
)

func TestClone_AChangedCopyChangesNothingElse(t *testing.T) {
	type item = map[string]types.AttributeValue
	fresh := func() item {
		return item{
			"s": &types.AttributeValueMemberS{Value: "v"}, "n": &types.AttributeValueMemberN{Value: "1"},
			"bool": &types.AttributeValueMemberBOOL{Value: true}, "null": &types.AttributeValueMemberNULL{Value: true},
			"b":  &types.AttributeValueMemberB{Value: []byte("v")},
			"ss": &types.AttributeValueMemberSS{Value: []string{"v"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1"}},
			"bs": &types.AttributeValueMemberBS{Value: [][]byte{[]byte("v")}},
			"l":  &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: "v"}}},
			"m":  &types.AttributeValueMemberM{Value: item{"b": &types.AttributeValueMemberB{Value: []byte("v")}}},
		}
	}
	of := fresh()
	c := attrvalue.CloneItem(of)
	assert.Equal(t, of, c)
	c["s"].(*types.AttributeValueMemberS).Value = "x"
	c["n"].(*types.AttributeValueMemberN).Value = "2"
	c["bool"].(*types.AttributeValueMemberBOOL).Value = false
	c["null"].(*types.AttributeValueMemberNULL).Value = false
	c["b"].(*types.AttributeValueMemberB).Value[0] = 'x'
	c["ss"].(*types.AttributeValueMemberSS).Value[0] = "x"
	c["ns"].(*types.AttributeValueMemberNS).Value[0] = "2"
	c["bs"].(*types.AttributeValueMemberBS).Value[0][0] = 'x'
	c["l"].(*types.AttributeValueMemberL).Value[0].(*types.AttributeValueMemberS).Value = "x"
	c["m"].(*types.AttributeValueMemberM).Value["b"].(*types.AttributeValueMemberB).Value[0] = 'x'
	assert.Equal(t, fresh(), of)
	assert.Nil(t, attrvalue.Clone(nil))
}
