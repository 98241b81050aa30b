package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func putRequest(sk string, d document) types.WriteRequest {
	return types.WriteRequest{PutRequest: &types.PutRequest{Item: keyed(sk, d)}}
}

func deleteRequest(sk string) types.WriteRequest {
	return types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key(sk)}}
}

func (tb table) batchWrite(reqs ...types.WriteRequest) error {
	_, err := tb.BatchWriteItem(tb.ctx(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{*tb.name: reqs}})
	return err
}

func TestBatchWrite_PutsAndDeletes(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("old", document{"x": 1})
		tb.put("gone", nil)
		require.NoError(tb, tb.batchWrite(putRequest("old", document{"y": 2}), deleteRequest("gone"), putRequest("new", nil), deleteRequest("never")))
		tb.holds("old", document{"y": 2})
		assert.Empty(tb, tb.get("gone"))
		tb.holds("new", nil)
	})
}

func TestBatchWrite_RefusesBadRequests(t *testing.T) {
	many := make([]types.WriteRequest, 26)
	for i := range many {
		many[i] = putRequest(fmt.Sprint(i), nil)
	}
	for name, tc := range map[string]struct {
		reqs []types.WriteRequest
		text string
	}{
		"duplicate":          {[]types.WriteRequest{putRequest("a", nil), deleteRequest("a")}, "Provided list of item keys contains duplicates"},
		"26 requests":        {many, "Map value must satisfy constraint: [Member must have length less than or equal to 25 | Too many items requested for the BatchWriteItem call"},
		"one invalid of two": {[]types.WriteRequest{putRequest("a", nil), putRequest("b", document{"x": stringSet{}})}, "may not be empty"},
	} {
		t.Run(name, func(t *testing.T) {
			onTable(t, func(tb table) {
				tb.refused(tb.batchWrite(tc.reqs...), tc.text)
				assert.Empty(tb, tb.get("a"), "nothing written")
			})
		})
	}
}

func TestBatchGet_ReturnsWhatIsThere(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("a", document{"x": 1, "y": 2})
		tb.put("b", document{"x": 3})
		out, err := tb.BatchGetItem(tb.ctx(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{*tb.name: {
			Keys: []map[string]types.AttributeValue{key("a"), key("b"), key("c")}, ProjectionExpression: ptr("sk, x"),
		}}})
		require.NoError(tb, err)
		assert.Empty(tb, out.UnprocessedKeys)
		got := map[string]map[string]types.AttributeValue{}
		for _, it := range out.Responses[*tb.name] {
			got[it["sk"].(*types.AttributeValueMemberS).Value] = it
		}
		require.Len(tb, got, 2)
		same(tb, item(document{"sk": "a", "x": 1}), got["a"])
		same(tb, item(document{"sk": "b", "x": 3}), got["b"])
	})
}

// The service reads no more from a physical partition after 1 MB, and charges the minimum for each key that it leaves out. DynamoDB Local
// has no such limit.
func TestBatchGet_ReadsAMegabyteOfAPartition(t *testing.T) {
	onTable(t, func(tb table) {
		keys := make([]map[string]types.AttributeValue, 5)
		for i := range keys {
			keys[i] = key(fmt.Sprint(i))
			tb.put(fmt.Sprint(i), document{"x": strings.Repeat("x", 390_000)})
		}
		out, err := tb.BatchGetItem(tb.ctx(), &dynamodb.BatchGetItemInput{
			RequestItems:           map[string]types.KeysAndAttributes{*tb.name: {Keys: keys, ConsistentRead: aws.Bool(true)}},
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		require.NoError(tb, err)
		if tb.local() {
			assert.Len(tb, out.Responses[*tb.name], len(keys))
			return
		}
		assert.Len(tb, out.Responses[*tb.name], 3)
		assert.Equal(tb, types.KeysAndAttributes{Keys: keys[3:], ConsistentRead: aws.Bool(true)}, out.UnprocessedKeys[*tb.name])
		assert.InDelta(tb, 3*96+2*1, *out.ConsumedCapacity[0].CapacityUnits, 0)
	})
}

func TestBatchGet_ReturnsAtMost16MB(t *testing.T) {
	onTable(t, func(tb table) {
		const tables, each = 15, 3 // less than 1 MB before the last item of each table
		request := map[string]types.KeysAndAttributes{}
		for i := range tables {
			in := createInput(fmt.Sprint(*tb.name, "-", i))
			in.AttributeDefinitions, in.GlobalSecondaryIndexes, in.LocalSecondaryIndexes = in.AttributeDefinitions[:2], nil, nil
			tb.create(in)
			one := table{T: tb.T, Client: tb.Client, engine: tb.engine, name: in.TableName}
			part := types.KeysAndAttributes{}
			for j := range each {
				one.put(fmt.Sprint(j), document{"x": strings.Repeat("x", 390_000)})
				part.Keys = append(part.Keys, key(fmt.Sprint(j)))
			}
			request[*in.TableName] = part
		}
		out, err := tb.BatchGetItem(tb.ctx(), &dynamodb.BatchGetItemInput{RequestItems: request})
		require.NoError(tb, err)
		got, left := 0, 0
		for name := range request {
			got += len(out.Responses[name])
			left += len(out.UnprocessedKeys[name].Keys)
		}
		assert.Equal(tb, (16<<20)/390_000, got)
		assert.Equal(tb, tables*each, got+left)
	})
}

func TestBatchGet_RefusesBadRequests(t *testing.T) {
	many := make([]map[string]types.AttributeValue, 101)
	for i := range many {
		many[i] = key(fmt.Sprint(i))
	}
	for name, tc := range map[string]struct {
		keys []map[string]types.AttributeValue
		text string
	}{
		"duplicate":     {many[:1:1], "Provided list of item keys contains duplicates"},
		"101 keys":      {many, "failed to satisfy constraint: Member must have length less than or equal to 100 | Too many items requested for the BatchGetItem call"},
		"malformed key": {[]map[string]types.AttributeValue{item(document{"pk": "p"})}, "The provided key element does not match the schema | The number of conditions on the keys is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			onTable(t, func(tb table) {
				keys := tc.keys
				if name == "duplicate" {
					keys = append(keys, keys[0])
				}
				_, err := tb.BatchGetItem(tb.ctx(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{*tb.name: {Keys: keys}}})
				tb.refused(err, tc.text)
			})
		})
	}
}

// Keys are duplicates if their texts are equal. Equal numbers with different texts get the item once, and in DynamoDB Local twice.
func TestBatchGet_ReadsANumberOfTwoSpellingsOnce(t *testing.T) {
	onTable(t, func(tb table) {
		tb.name = aws.String(tb.engine.TableName(tb.T))
		tb.create(&dynamodb.CreateTableInput{
			TableName: tb.name, BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: ptr("pk"), AttributeType: types.ScalarAttributeTypeN}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: ptr("pk"), KeyType: types.KeyTypeHash}},
		})
		_, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: item(document{"pk": number("1000"), "x": "a"})})
		require.NoError(tb, err)
		read := func(spelled ...number) (*dynamodb.BatchGetItemOutput, error) {
			var keys []map[string]types.AttributeValue
			for _, n := range spelled {
				keys = append(keys, item(document{"pk": n}))
			}
			return tb.BatchGetItem(tb.ctx(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{*tb.name: {Keys: keys}}})
		}
		out, err := read("1000", "1e3", "1000.0")
		require.NoError(tb, err)
		times := 1
		if tb.local() {
			times = 3
		}
		require.Len(tb, out.Responses[*tb.name], times)
		same(tb, item(document{"pk": number("1000"), "x": "a"}), out.Responses[*tb.name][0])
		_, err = read("1000", "1e3", "1e3")
		tb.refused(err, "Provided list of item keys contains duplicates")
	})
}

func TestBatchGet_RefusesExpressionsAndOlderParametersOfSeveralTables(t *testing.T) {
	onTable(t, func(tb table) {
		other := tb.withoutLocalIndex()
		keys := []map[string]types.AttributeValue{key("a")}
		for _, in := range []map[string]types.KeysAndAttributes{
			{*tb.name: {Keys: keys, AttributesToGet: []string{"x"}, ProjectionExpression: ptr("x")}},
			{*tb.name: {Keys: keys, AttributesToGet: []string{"x"}}, *other.name: {Keys: keys, ProjectionExpression: ptr("x")}},
		} {
			_, err := tb.BatchGetItem(tb.ctx(), &dynamodb.BatchGetItemInput{RequestItems: in})
			tb.refused(err, "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}")
		}
	})
}

func TestBatchGet_FailsOnAMissingTable(t *testing.T) {
	onTable(t, func(tb table) {
		_, err := tb.BatchGetItem(tb.ctx(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			*tb.name + "-missing": {Keys: []map[string]types.AttributeValue{key("a")}},
		}})
		var missing *types.ResourceNotFoundException
		require.ErrorAs(tb, err, &missing)
	})
}

// The service answers in no particular order. Answers that gocloud.dev recorded (docstore/awsdynamodb/v2/testdata, AtomicWrites) have three
// orders for three keys, and not that of the request within one item collection either. So a caller has to find each item by its key.
func TestBatchGet_AnswersInAnotherOrder(t *testing.T) {
	onTable(t, func(tb table) {
		asked := make([]string, 20)
		keys := make([]map[string]types.AttributeValue, len(asked))
		for i := range asked {
			asked[i] = fmt.Sprintf("%02d", i)
			keys[i] = key(asked[i])
			tb.put(asked[i], nil)
		}
		out, err := tb.BatchGetItem(tb.ctx(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{*tb.name: {Keys: keys}}})
		require.NoError(tb, err)
		var got []string
		for _, it := range out.Responses[*tb.name] {
			got = append(got, it["sk"].(*types.AttributeValueMemberS).Value)
		}
		assert.ElementsMatch(tb, asked, got)
		assert.NotEqual(tb, asked, got)
	})
}

func TestBatch_IsLimitedForAllTablesTogether(t *testing.T) {
	onTable(t, func(tb table) {
		other := tb
		other.name = aws.String(*tb.name + "-2")
		other.create(createInput(*other.name))
		reads, writes := map[string]types.KeysAndAttributes{}, map[string][]types.WriteRequest{}
		for i := range 51 {
			for _, name := range []string{*tb.name, *other.name} {
				keys := reads[name]
				keys.Keys = append(keys.Keys, key(fmt.Sprint(i)))
				if reads[name] = keys; i < 13 {
					writes[name] = append(writes[name], putRequest(fmt.Sprint(i), nil))
				}
			}
		}
		_, err := tb.BatchGetItem(tb.ctx(), &dynamodb.BatchGetItemInput{RequestItems: reads})
		tb.refused(err, "Too many items requested for the BatchGetItem call")
		_, err = tb.BatchWriteItem(tb.ctx(), &dynamodb.BatchWriteItemInput{RequestItems: writes})
		tb.refused(err, "Too many items requested for the BatchWriteItem call")
	})
}
