package contract_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
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
		tb.exactly(err, "ValidationException", "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes", "Size limit exceeded")
	})
}

const (
	unsupportedType = "The update expression attempted to update the secondary index key to unsupported type"
	beyondLimits    = "The update expression attempted to update the secondary index key beyond allowed size limits"
)

// The service names an index only for a type that the request tells. These texts are in the documentation of
// TransactionCanceledException, and dynalite's tests tell when.
func TestUpdate_OfAnIndexKeyToAnotherType(t *testing.T) {
	const named = "One or more parameter values were invalid: Type mismatch for Index Key gpk Expected: S Actual: N IndexName: gsi"
	onTable(t, func(tb table) {
		tb.put("i", document{"n": 1, "m": document{"n": 1}, "lengthy": strings.Repeat("x", 2049)})
		for _, tc := range []struct {
			update  string
			values  document
			service string
			local   string
		}{
			{"SET gpk = :v", document{"v": 1}, named, indexKeyMismatch},
			{"SET gpk = n + :v", document{"v": 1}, named, indexKeyMismatch},
			{"ADD gpk :v", document{"v": 1}, named, indexKeyMismatch},
			{"SET gpk = n", nil, unsupportedType, indexKeyMismatch},
			{"SET gpk = m.n", nil, unsupportedType, indexKeyMismatch},
			{"SET gpk = m", nil, unsupportedType, "Invalid attribute value type"},
			{"SET gpk = if_not_exists(n, :v)", document{"v": "s"}, unsupportedType, indexKeyMismatch},
			{"SET gpk = lengthy", nil, beyondLimits, "Size limit exceeded"},
		} {
			_, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{TableName: tb.name, Key: key("i"), UpdateExpression: &tc.update, ExpressionAttributeValues: values(tc.values)})
			tb.exactly(err, "ValidationException", tc.service, tc.local)
		}
	})
}

// The service finds a type that the request tells before it looks at paths and at the item, as dynalite's tests have it.
func TestUpdate_OfAnIndexKeyToAnotherTypeIsRefusedBeforeOtherMistakes(t *testing.T) {
	const named = "One or more parameter values were invalid: Type mismatch for Index Key gpk Expected: S Actual: N IndexName: gsi"
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, "DynamoDB Local looks at paths and at the item first")
		tb.put("i", document{"s": "x"})
		for _, update := range []string{
			"SET e = gpk[1], gpk = sk + :v", // a path into the key of an index
			"SET lsk.k = s ADD gpk :v",
			"SET gpk = s + :v", // an operand of another type
			"SET gpk = absent - :v",
			"SET gpk = :v, absent.k = :v", // a path that the item does not have
		} {
			for _, id := range []string{"i", "new"} {
				_, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{
					TableName: tb.name, Key: key(id), UpdateExpression: &update, ExpressionAttributeValues: values(document{"v": 1}),
				})
				tb.exactly(err, "ValidationException", named, "-")
			}
		}
	})
}

const indexKeyMismatch = "One or more parameter values were invalid: Type mismatch for Index Key"

// An item that was there before the index cannot be updated until its attribute
// fits the index. The error does not tell the attribute.
func TestUpdate_OfAnItemThatDoesNotFitALaterIndex(t *testing.T) {
	onTable(t, func(tb table) {
		for sk, v := range map[string]any{"number": 1, "long": strings.Repeat("x", 2049)} {
			tb.put(sk, document{"color": v})
		}
		if !tb.local() { // which never completes the index if it finds a NULL
			tb.put("null", document{"color": nil})
		}
		tb.addColors()
		for _, tc := range []struct{ sk, service, local string }{
			{"null", unsupportedType, ""},
			{"number", unsupportedType, indexKeyMismatch},
			{"long", beyondLimits, "Size limit exceeded"},
		} {
			if tb.local() && tc.local == "" {
				continue
			}
			update := func(expression string) error {
				_, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{
					TableName: tb.name, Key: key(tc.sk), UpdateExpression: &expression, ExpressionAttributeValues: values(document{"v": "x"}),
				})
				return err
			}
			tb.exactly(update("SET a = :v"), "ValidationException", tc.service, tc.local)
			if !tb.local() { // which refuses the request for some of them
				_, err := tb.transact("", tb.txSet(tc.sk, 1, ""))
				_, reasons := cancelled(tb, err)
				assert.Equal(tb, tc.service, aws.ToString(reasons[0].Message))
			}
			require.NoError(tb, update("SET a = :v, color = :v"), tc.sk)
			require.NoError(tb, update("SET a = :v"), tc.sk)
		}
	})
}

// Of several indexes with the attribute, the service names the first by name, whether it is global or local.
func TestPut_NamesTheFirstIndexThatItDoesNotFit(t *testing.T) {
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, "DynamoDB Local names no index, or the local one")
		in := createInput(*tb.name + "-named")
		in.AttributeDefinitions = append(in.AttributeDefinitions[:2:2], in.AttributeDefinitions[4]) // pk, sk, lsk
		in.GlobalSecondaryIndexes = nil
		for _, name := range []string{"zzz", "aaa", "bbb"} {
			in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
				IndexName: &name, KeySchema: []types.KeySchemaElement{{AttributeName: ptr("lsk"), KeyType: types.KeyTypeHash}},
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			})
		}
		tb.create(in)
		_, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: in.TableName, Item: keyed("i", document{"lsk": 1})})
		tb.refused(err, "Type mismatch for Index Key lsk Expected: S Actual: N IndexName: aaa")
		_, err = tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: in.TableName, Item: keyed("i", document{"lsk": ""})})
		tb.refused(err, "IndexName: aaa, IndexKey: lsk")
	})
}
