package contract_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (tb table) exists(sk string) bool {
	tb.Helper()
	return tb.get(sk) != nil
}

// An update that only removes makes no item where none is. DynamoDB Local
// makes one, and refuses to remove what is inside of something.
func TestUpdate_RemovingFromAMissingItemMakesNone(t *testing.T) {
	type in = dynamodb.UpdateItemInput
	remove := map[string]types.AttributeValueUpdate{"a": {Action: types.AttributeActionDelete}}
	for _, tc := range []struct {
		name string
		in   in
		made bool
	}{
		{"REMOVE", in{UpdateExpression: ptr("REMOVE a")}, false},
		{"REMOVE of an inner attribute", in{UpdateExpression: ptr("REMOVE a.b, c[0]")}, false},
		{"DELETE of elements", in{UpdateExpression: ptr("DELETE a :s"), ExpressionAttributeValues: values(document{"s": stringSet{"x"}})}, false},
		{"older form", in{AttributeUpdates: remove}, false},
		{"older form, of elements", in{AttributeUpdates: map[string]types.AttributeValueUpdate{"a": {Action: types.AttributeActionDelete, Value: value(stringSet{"x"})}}}, false},
		{"REMOVE and SET", in{UpdateExpression: ptr("SET d = :s REMOVE a"), ExpressionAttributeValues: values(document{"s": "x"})}, true},
		{"nothing at all", in{AttributeUpdates: map[string]types.AttributeValueUpdate{}}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				up := tc.in
				up.TableName, up.Key, up.ReturnValues, up.ReturnConsumedCapacity = tb.name, key("i"), types.ReturnValueAllNew, types.ReturnConsumedCapacityTotal
				out, err := tb.UpdateItem(tb.ctx(), &up)
				if tb.local() && !tc.made {
					return
				}
				require.NoError(tb, err)
				assert.Equal(tb, tc.made, tb.exists("i"))
				assert.Equal(tb, tc.made, out.Attributes != nil)
				assert.InDelta(tb, 1, *out.ConsumedCapacity.CapacityUnits, 0)
			})
		})
	}
	t.Run("transaction", func(t *testing.T) {
		onTable(t, func(tb table) {
			_, err := tb.TransactWriteItems(tb.ctx(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
				{Update: &types.Update{TableName: tb.name, Key: key("i"), UpdateExpression: ptr("REMOVE a")}},
			}})
			require.NoError(tb, err)
			assert.Equal(tb, tb.local(), tb.exists("i"))
		})
	})
}

// UPDATED_NEW reads the paths of the update in the new item, those that were
// removed as well. In a list that is what moved there. DynamoDB Local returns
// whole attributes.
func TestUpdatedNew_ReturnsWhatMovedToARemovedPlace(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("i", document{"a": document{"c": list{1, 2, 3}}})
		update := func(expression string, v document) map[string]types.AttributeValue {
			out, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{
				TableName: tb.name, Key: key("i"), UpdateExpression: &expression, ExpressionAttributeValues: values(v), ReturnValues: types.ReturnValueUpdatedNew,
			})
			require.NoError(tb, err)
			return out.Attributes
		}
		moved, end, gone := update("REMOVE a.c[1]", nil), update("SET a.c[100] = :v", document{"v": 9}), update("REMOVE a.c[2]", nil)
		tb.holds("i", document{"a": document{"c": list{1, 3}}})
		if tb.local() {
			return
		}
		same(tb, item(document{"a": document{"c": list{3}}}), moved)
		assert.Empty(tb, end, "it is not at the place that was named")
		assert.Empty(tb, gone)
	})
}

// A condition of an older form that takes no value is no condition on a key.
func TestKeyConditions_WithoutAValueAreRefused(t *testing.T) {
	for _, op := range []types.ComparisonOperator{types.ComparisonOperatorNull, types.ComparisonOperatorNotNull} {
		for _, at := range []string{"pk", "sk"} {
			t.Run(string(op)+" "+at, func(t *testing.T) {
				onTable(t, func(tb table) {
					conditions := map[string]types.Condition{"pk": {ComparisonOperator: types.ComparisonOperatorEq, AttributeValueList: []types.AttributeValue{value("p")}}}
					conditions[at] = types.Condition{ComparisonOperator: op}
					_, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{TableName: tb.name, KeyConditions: conditions}, once)
					if tb.local() {
						require.Error(tb, err) // for one of the two it fails internally
						return
					}
					tb.exactly(err, "ValidationException", "Attempted conditional constraint is not an indexable operation", "")
				})
			})
		}
	}
}

// Which attributes have conditions is checked before the conditions.
func TestKeyConditions_AreOnTheKeyFirst(t *testing.T) {
	onTable(t, func(tb table) {
		eq := types.Condition{ComparisonOperator: types.ComparisonOperatorEq, AttributeValueList: []types.AttributeValue{value("p")}}
		in := types.Condition{ComparisonOperator: types.ComparisonOperatorIn, AttributeValueList: []types.AttributeValue{value("p")}}
		for _, tc := range []struct {
			name       string
			index      *string
			conditions map[string]types.Condition
			text       string
		}{
			{"no key", nil, map[string]types.Condition{"x": in}, "Query condition missed key schema element: pk | Query condition missed key schema element"},
			{"another attribute", nil, map[string]types.Condition{"pk": eq, "x": in}, "Query condition missed key schema element: sk | Query condition missed key schema element"},
			{"a key of one attribute", ptr("keys"), map[string]types.Condition{"gpk": eq, "x": in}, "Query key condition not supported"},
			{"sort key", nil, map[string]types.Condition{"pk": eq, "sk": in}, "Attempted conditional constraint is not an indexable operation"},
		} {
			_, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{TableName: tb.name, IndexName: tc.index, KeyConditions: tc.conditions})
			tb.refused(err, tc.text)
		}
	})
}

func once(o *dynamodb.Options) { o.RetryMaxAttempts = 1 }

func TestExpected_RefusesBadConditions(t *testing.T) {
	str, num := value("a"), value(1)
	for _, tc := range []struct {
		name           string
		expected       types.ExpectedAttributeValue
		service, local string
	}{
		{
			"types in a list",
			types.ExpectedAttributeValue{ComparisonOperator: types.ComparisonOperatorIn, AttributeValueList: []types.AttributeValue{str, num}},
			"One or more parameter values were invalid: AttributeValues inside AttributeValueList must be of same type", "",
		},
		{
			"existence and an operator",
			types.ExpectedAttributeValue{ComparisonOperator: types.ComparisonOperatorEq, Value: str, Exists: ptr(false)},
			"One or more parameter values were invalid: Exists and ComparisonOperator cannot be used together for Attribute: a", "",
		},
		{
			"value and list",
			types.ExpectedAttributeValue{ComparisonOperator: types.ComparisonOperatorEq, Value: str, AttributeValueList: []types.AttributeValue{str}},
			"One or more parameter values were invalid: Value and AttributeValueList cannot be used together for Attribute: a", "",
		},
		{
			"list without operator",
			types.ExpectedAttributeValue{AttributeValueList: []types.AttributeValue{str}},
			"One or more parameter values were invalid: AttributeValueList can only be used with a ComparisonOperator for Attribute: a", "",
		},
		{
			"operator without value",
			types.ExpectedAttributeValue{ComparisonOperator: types.ComparisonOperatorEq},
			"One or more parameter values were invalid: Value or AttributeValueList must be used with ComparisonOperator: EQ for Attribute: a", "",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				_, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: key("i"), Expected: map[string]types.ExpectedAttributeValue{"a": tc.expected}}, once)
				if tb.local() {
					return // it takes some of these
				}
				tb.exactly(err, "ValidationException", tc.service, tc.local)
				assert.False(tb, tb.exists("i"))
			})
		})
	}
}

// The first action that does not fit its table cancels the transaction; the
// others are not judged any more. DynamoDB Local goes on.
func TestTransaction_StopsAtTheFirstInvalidAction(t *testing.T) {
	onTable(t, func(tb table) {
		put := func(it map[string]types.AttributeValue, condition *string) types.TransactWriteItem {
			return types.TransactWriteItem{Put: &types.Put{TableName: tb.name, Item: it, ConditionExpression: condition}}
		}
		_, err := tb.TransactWriteItems(tb.ctx(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			put(keyed("a", nil), nil),
			put(item(document{"pk": 1, "sk": "b"}), nil),
			put(item(document{"pk": 2, "sk": "c"}), nil),
			put(keyed("d", nil), ptr("attribute_exists(pk)")),
		}})
		codes, reasons := cancelled(tb, err)
		if tb.local() {
			assert.Equal(tb, "ValidationError", codes[1])
			return
		}
		assert.Equal(tb, []string{"None", "ValidationError", "None", "None"}, codes)
		assert.Equal(tb, "One or more parameter values were invalid: Type mismatch for key pk expected: S actual: N", aws.ToString(reasons[1].Message))
		assert.Nil(tb, reasons[2].Message)
		assert.False(tb, tb.exists("a"))
	})
}

// What cannot be a key of a global index is left out when the index is made
// from the items that are there. DynamoDB Local puts it in.
func TestBackfill_LeavesOutWhatIsNoKey(t *testing.T) {
	onTable(t, func(tb table) {
		for sk, v := range map[string]any{"good": "red", "empty": "", "long": strings.Repeat("x", 2049), "number": 1, "longest": strings.Repeat("x", 2048)} {
			tb.put(sk, document{"color": v})
		}
		tb.addColors()
		out, err := tb.Scan(tb.ctx(), &dynamodb.ScanInput{TableName: tb.name, IndexName: ptr("colors")})
		require.NoError(tb, err)
		want := []string{"good", "longest"}
		if tb.local() {
			assert.Subset(tb, sortKeys(out.Items), want)
			return
		}
		assert.ElementsMatch(tb, want, sortKeys(out.Items))
	})
}

// addColors adds a global index of the attribute color to the table.
func (tb table) addColors() {
	tb.Helper()
	_, err := tb.UpdateTable(tb.ctx(), &dynamodb.UpdateTableInput{
		TableName:            tb.name,
		AttributeDefinitions: append(createInput(*tb.name).AttributeDefinitions, types.AttributeDefinition{AttributeName: ptr("color"), AttributeType: types.ScalarAttributeTypeS}),
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: ptr("colors"), KeySchema: []types.KeySchemaElement{{AttributeName: ptr("color"), KeyType: types.KeyTypeHash}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}}},
	})
	require.NoError(tb, err)
	tb.awaitIndex("colors", true)
}

// A scan reads every physical partition, and rounds up in each. A new table
// on demand has four. DynamoDB Local has one.
func TestScan_OfATinyTableCostsFourPartitions(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("i", document{"a": 1})
		scan := func(in dynamodb.ScanInput) float64 {
			in.TableName, in.ReturnConsumedCapacity = tb.name, types.ReturnConsumedCapacityTotal
			out, err := tb.Scan(tb.ctx(), &in)
			require.NoError(tb, err)
			return *out.ConsumedCapacity.CapacityUnits
		}
		segments := 0.0
		for i := range int32(4) {
			segments += scan(dynamodb.ScanInput{Segment: &i, TotalSegments: aws.Int32(4)})
		}
		eventually, consistently := scan(dynamodb.ScanInput{}), scan(dynamodb.ScanInput{ConsistentRead: aws.Bool(true)})
		if tb.local() {
			assert.InDelta(tb, 0.5, eventually, 0)
			assert.InDelta(tb, 1, consistently, 0)
			return
		}
		assert.InDelta(tb, 2, eventually, 0)
		assert.InDelta(tb, 4, consistently, 0)
		assert.InDelta(tb, 2, segments, 0)
	})
}

// A request may have 16 MB. DynamoDB Local has no limit of that kind.
func TestRequest_Over16MBIsTooLarge(t *testing.T) {
	onTable(t, func(tb table) {
		if tb.local() {
			return
		}
		err := tb.raw("PutItem", `{"TableName":"TABLE","Item":{"pk":{"S":"`+strings.Repeat("x", 16<<20)+`"}}}`)
		var refused *smithyhttp.ResponseError
		require.ErrorAs(tb, err, &refused)
		assert.Equal(tb, http.StatusRequestEntityTooLarge, refused.HTTPStatusCode())
	})
}
