package engines

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// DynamoDB Local refuses to add an index while five other tables are getting one.
func TestClient_AddsIndexesToManyTablesOfDynamoDBLocalAtOnce(t *testing.T) {
	Run(t, func(t *testing.T, e *Engine) {
		Only(t, DynamoDBLocal, "the in-process engine has no other tests")
		client := e.Client(func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 })
		text := func(name string) types.AttributeDefinition {
			return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}
		}
		key := func(name string) []types.KeySchemaElement {
			return []types.KeySchemaElement{{AttributeName: &name, KeyType: types.KeyTypeHash}}
		}
		var all errgroup.Group
		for range 20 {
			name := aws.String(e.TableName(t))
			_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
				TableName: name, BillingMode: types.BillingModePayPerRequest, AttributeDefinitions: []types.AttributeDefinition{text("a")}, KeySchema: key("a"),
			})
			require.NoError(t, err)
			all.Go(func() error {
				_, err := client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
					TableName: name, AttributeDefinitions: []types.AttributeDefinition{text("b")},
					GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
						IndexName: aws.String("other"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}, KeySchema: key("b"),
					}}},
				})
				return err
			})
		}
		require.NoError(t, all.Wait())
	})
}
