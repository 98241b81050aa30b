package tabletest_test

import (
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table/tabletest"
)

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v int) types.AttributeValue    { return &types.AttributeValueMemberN{Value: strconv.Itoa(v)} }

type item = map[string]types.AttributeValue

func key(pk, sk string) item { return item{"pk": s(pk), "sk": s(sk)} }

// createTable makes the table that most tests use: a sort key, one global index and time to live.
func createTable(tb testing.TB, c *dynamodb.Client) {
	tb.Helper()
	_, err := c.CreateTable(tb.Context(), &dynamodb.CreateTableInput{
		TableName:   aws.String("app"),
		BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("gpk"), AttributeType: types.ScalarAttributeTypeS},
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String("gsi1"),
			KeySchema:  []types.KeySchemaElement{{AttributeName: aws.String("gpk"), KeyType: types.KeyTypeHash}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	})
	require.NoError(tb, err)
}

func TestPutItemIsReadBack(t *testing.T) {
	c := tabletest.New(t).Client()
	createTable(t, c)
	want := item{"pk": s("a"), "sk": s("b"), "n": n(7)}
	_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: want})
	require.NoError(t, err)
	out, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("app"), Key: key("a", "b")})
	require.NoError(t, err)
	require.Equal(t, want, out.Item)
}

func BenchmarkConditionalUpdate(b *testing.B) {
	c := tabletest.New(b).Client()
	createTable(b, c)
	in := &dynamodb.UpdateItemInput{
		TableName:                 aws.String("app"),
		Key:                       key("a", "b"),
		UpdateExpression:          aws.String("SET #n = if_not_exists(#n, :zero) + :one, #o = :o"),
		ConditionExpression:       aws.String("attribute_not_exists(pk) OR #n < :max"),
		ExpressionAttributeNames:  map[string]string{"#n": "n", "#o": "owner"},
		ExpressionAttributeValues: item{":zero": n(0), ":one": n(1), ":max": n(1 << 40), ":o": s("worker-1")},
		ReturnValues:              types.ReturnValueAllNew,
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.UpdateItem(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}
