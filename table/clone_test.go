package table_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/table"
)

func TestAChangedCopyChangesNothingElse(t *testing.T) {
	item := func() table.Item {
		return table.Item{
			"s": str("v"), "n": num("1"),
			"bool": &types.AttributeValueMemberBOOL{Value: true}, "null": &types.AttributeValueMemberNULL{Value: true},
			"b":  &types.AttributeValueMemberB{Value: []byte("v")},
			"ss": &types.AttributeValueMemberSS{Value: []string{"v"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1"}},
			"bs": &types.AttributeValueMemberBS{Value: [][]byte{[]byte("v")}},
			"l":  &types.AttributeValueMemberL{Value: []types.AttributeValue{str("v")}},
			"m":  &types.AttributeValueMemberM{Value: table.Item{"b": &types.AttributeValueMemberB{Value: []byte("v")}}},
		}
	}
	of := item()
	c := table.CloneItem(of)
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
	assert.Equal(t, item(), of)
	assert.Nil(t, table.CloneValue(nil))
}

func ExampleCloneItem() {
	item := table.Item{"tags": &types.AttributeValueMemberSS{Value: []string{"new"}}}
	c := table.CloneItem(item)
	c["tags"].(*types.AttributeValueMemberSS).Value[0] = "old"
	fmt.Println(table.SameItem(item, c))
	// Output: false
}
