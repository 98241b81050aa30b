package contract_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// Where a query or a scan goes on has to be a key of the table and the index.
func TestStartKey_ThatIsNoKeyIsRefused(t *testing.T) {
	type d = document
	const (
		in     = "The provided starting key is invalid"
		schema = "The provided key element does not match the schema"
		local  = "Type mismatch for attribute"
	)
	for _, tc := range []struct {
		name           string
		index          *string
		start          document
		service, local string
	}{
		{"half a key", nil, d{"pk": "p"}, in, "Exclusive Start Key must have same size"},
		{"another attribute", nil, d{"pk": "p", "x": "y"}, in, in},
		{"another type", nil, d{"pk": "p", "sk": 1}, schema, local},
		{"another partition", nil, d{"pk": "q", "sk": "s"}, "The provided starting key is outside query boundaries based on provided conditions", "does not match the range key predicate"},
		{"an empty value", nil, d{"pk": "p", "sk": ""}, in + ": One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: sk", "empty string value"},
		{"an empty partition", nil, d{"pk": "", "sk": "s"}, "The query can return at most one row and cannot be restarted. " + in + ": One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: pk", "empty string value"},
		{"no value", nil, d{"pk": "p", "sk": stringSet{}}, in + ": One or more parameter values were invalid: An string set  may not be empty", "may not be empty"},
		{"half a key of an index", ptr("lsi"), d{"pk": "p", "sk": "s"}, in, "Exclusive Start Key must have same size"},
		{"another attribute of an index", ptr("lsi"), d{"pk": "p", "sk": "s", "x": "y"}, in, in},
		{"another type of an index", ptr("lsi"), d{"pk": "p", "sk": 1, "lsk": 1}, schema, local},
		{"another type beside an index", ptr("lsi"), d{"pk": "p", "sk": 1, "lsk": "l"}, in + ": " + schema, local},
		{"another attribute beside an index", ptr("lsi"), d{"pk": "p", "x": "y", "lsk": "l"}, in + ": " + schema, in},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				_, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{
					TableName: tb.name, IndexName: tc.index, KeyConditionExpression: ptr("pk = :p"), ExpressionAttributeValues: values(d{"p": "p"}), ExclusiveStartKey: item(tc.start),
				})
				tb.exactly(err, "ValidationException", tc.service, tc.local)
			})
		})
	}
}

func TestStartKey_OfAScanThatIsNoKeyIsRefusedWithTheReason(t *testing.T) {
	onTable(t, func(tb table) {
		scan := func(start document, index *string) error {
			_, err := tb.Scan(tb.ctx(), &dynamodb.ScanInput{TableName: tb.name, IndexName: index, ExclusiveStartKey: item(start)})
			return err
		}
		const schema = "The provided key element does not match the schema"
		tb.exactly(scan(document{"pk": "p"}, nil), "ValidationException", "The provided starting key is invalid: "+schema, "Exclusive Start Key must have same size")
		tb.exactly(scan(document{"pk": "p", "sk": 1}, nil), "ValidationException", "The provided starting key is invalid: "+schema, "Type mismatch for attribute")
		tb.exactly(scan(document{"pk": "p", "sk": "s", "lsk": 1}, ptr("lsi")), "ValidationException", schema, "Type mismatch for attribute")

		// Dynalite's tests show that the service looks at Select between the index's key and the table's.
		all := func(start document) error {
			_, err := tb.Scan(tb.ctx(), &dynamodb.ScanInput{TableName: tb.name, IndexName: ptr("keys"), Select: types.SelectAllAttributes, ExclusiveStartKey: item(start)})
			return err
		}
		const refused = "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary index keys because its projection type is not ALL"
		tb.exactly(all(document{"gpk": "g", "x": 1, "y": 1}), "ValidationException", refused, "")
		tb.exactly(all(document{"gpk": 1, "x": 1, "y": 1}), "ValidationException", schema, "")
	})
}

// There is nothing to go on to in a partition of one item. DynamoDB Local
// answers that nothing follows.
func TestStartKey_InATableWithoutSortKeyIsRefused(t *testing.T) {
	onTable(t, func(tb table) {
		name := *tb.name + "-hash"
		_, err := tb.CreateTable(tb.ctx(), &dynamodb.CreateTableInput{
			TableName: &name, BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: ptr("pk"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: ptr("pk"), KeyType: types.KeyTypeHash}},
		})
		require.NoError(tb, err)
		require.NoError(tb, dynamodb.NewTableExistsWaiter(tb).Wait(tb.ctx(), &dynamodb.DescribeTableInput{TableName: &name}, 60e9))
		_, err = tb.Query(tb.ctx(), &dynamodb.QueryInput{
			TableName: &name, KeyConditionExpression: ptr("pk = :p"), ExpressionAttributeValues: values(document{"p": "x"}), ExclusiveStartKey: item(document{"pk": "x"}),
		})
		if tb.local() {
			require.NoError(tb, err)
			return
		}
		tb.exactly(err, "ValidationException", "The provided exclusive start key is invalid: ExclusiveStartKey: {pk=AttributeValue: {S:x}}", "")
	})
}

func TestQuery_ConditionNamesTheMissingKey(t *testing.T) {
	for _, tc := range []struct{ name, condition, service, local string }{
		{"no partition key", "sk = :v", "Query condition missed key schema element: pk", "Query condition missed key schema element"},
		{"no key", "x = :v", "Query condition missed key schema element: pk", "Query condition missed key schema element"},
		{"another attribute", "pk = :v AND x = :v", "Query condition missed key schema element: sk", "Query condition missed key schema element"},
		{"inside of an attribute", "pk = :v AND x.y = :v", "KeyConditionExpressions cannot have conditions on nested attributes", "KeyConditionExpressions cannot have conditions on nested attributes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				_, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{TableName: tb.name, KeyConditionExpression: &tc.condition, ExpressionAttributeValues: values(document{"v": "x"})})
				tb.exactly(err, "ValidationException", tc.service, tc.local)
			})
		})
	}
	t.Run("two conditions on an index of one key", func(t *testing.T) {
		onTable(t, func(tb table) {
			_, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{TableName: tb.name, IndexName: ptr("keys"), KeyConditionExpression: ptr("gpk = :v AND pk = :v"), ExpressionAttributeValues: values(document{"v": "x"})})
			tb.exactly(err, "ValidationException", "Query key condition not supported", "Query key condition not supported")
		})
	})
}
