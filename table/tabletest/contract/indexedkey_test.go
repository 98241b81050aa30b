package contract_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// A partition key that is the sort key of an index has the limit of a sort
// key, also where an update without expression makes the item.
func TestUpdate_WithoutExpressionChecksTheKeysOfIndexes(t *testing.T) {
	onTable(t, func(tb table) {
		name := *tb.name + "-turned"
		element := func(name string, kind types.KeyType) types.KeySchemaElement {
			return types.KeySchemaElement{AttributeName: &name, KeyType: kind}
		}
		_, err := tb.CreateTable(tb.ctx(), &dynamodb.CreateTableInput{
			TableName: &name, BillingMode: types.BillingModePayPerRequest, AttributeDefinitions: createInput(name).AttributeDefinitions[:2],
			KeySchema: []types.KeySchemaElement{element("pk", types.KeyTypeHash), element("sk", types.KeyTypeRange)},
			GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
				IndexName: ptr("turned"), KeySchema: []types.KeySchemaElement{element("sk", types.KeyTypeHash), element("pk", types.KeyTypeRange)},
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			}},
		})
		require.NoError(tb, err)
		require.NoError(tb, dynamodb.NewTableExistsWaiter(tb).Wait(tb.ctx(), &dynamodb.DescribeTableInput{TableName: &name}, 60e9))
		_, err = tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{TableName: &name, Key: item(document{"pk": strings.Repeat("x", 1025), "sk": "s"})})
		_, cleanup := tb.DeleteTable(tb.ctx(), &dynamodb.DeleteTableInput{TableName: &name})
		require.NoError(tb, cleanup)
		tb.exactly(err, "ValidationException", "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes", "Size limit exceeded")
	})
}
