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

type action = types.TransactWriteItem

func (tb table) txPut(sk string, d document, condition string) action {
	p := &types.Put{TableName: tb.name, Item: keyed(sk, d)}
	if condition != "" {
		p.ConditionExpression = &condition
	}
	return action{Put: p}
}

func (tb table) txSet(sk string, x any, condition string) action {
	u := &types.Update{TableName: tb.name, Key: key(sk), UpdateExpression: ptr("SET x = :x"), ExpressionAttributeValues: values(document{"x": x})}
	if condition != "" {
		u.ConditionExpression = &condition
	}
	return action{Update: u}
}

func (tb table) txDelete(sk string) action {
	return action{Delete: &types.Delete{TableName: tb.name, Key: key(sk)}}
}

func (tb table) txCheck(sk, condition string) action {
	return action{ConditionCheck: &types.ConditionCheck{TableName: tb.name, Key: key(sk), ConditionExpression: &condition}}
}

func (tb table) transact(token string, actions ...action) (*dynamodb.TransactWriteItemsOutput, error) {
	in := &dynamodb.TransactWriteItemsInput{TransactItems: actions}
	if token != "" {
		// Tokens are known for 10 minutes, to the engine and not the table.
		in.ClientRequestToken = aws.String((*tb.name)[len(*tb.name)-16:] + token)
	}
	return tb.TransactWriteItems(tb.ctx(), in)
}

func TestTransaction_AppliesEverything(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("u", document{"x": 1})
		tb.put("d", nil)
		tb.put("c", document{"x": 1})
		_, err := tb.transact("", tb.txPut("p", document{"x": 0}, "attribute_not_exists(pk)"), tb.txSet("u", 2, "attribute_exists(pk)"), tb.txDelete("d"), tb.txCheck("c", "attribute_exists(x)"))
		require.NoError(tb, err)
		tb.holds("p", document{"x": 0})
		tb.holds("u", document{"x": 2})
		assert.Empty(tb, tb.get("d"))
		tb.holds("c", document{"x": 1})
	})
}

func TestTransaction_AppliesNothingWhenOneConditionFails(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("u", document{"x": 1})
		_, err := tb.transact("", tb.txPut("p", nil, ""), tb.txSet("u", 2, "attribute_not_exists(pk)"), tb.txDelete("d"))
		codes, reasons := cancelled(tb, err)
		assert.Equal(tb, []string{"None", "ConditionalCheckFailed", "None"}, codes)
		assert.Equal(tb, "The conditional request failed", aws.ToString(reasons[1].Message))
		assert.Contains(tb, err.Error(), "Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed, None]")
		assert.Empty(tb, tb.get("p"))
		tb.holds("u", document{"x": 1})
	})
}

func TestTransaction_ReasonsCarryTheItemsWhenAsked(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("a", document{"x": 1})
		tb.put("b", document{"x": 2})
		asks, doesNot := tb.txSet("a", 0, "attribute_not_exists(pk)"), tb.txSet("b", 0, "attribute_not_exists(pk)")
		asks.Update.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
		check := tb.txCheck("missing", "attribute_exists(pk)")
		check.ConditionCheck.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
		_, err := tb.transact("", asks, doesNot, check)
		codes, reasons := cancelled(tb, err)
		assert.Equal(tb, []string{"ConditionalCheckFailed", "ConditionalCheckFailed", "ConditionalCheckFailed"}, codes)
		same(tb, keyed("a", document{"x": 1}), reasons[0].Item)
		assert.Empty(tb, reasons[1].Item)
		assert.Empty(tb, reasons[2].Item)
	})
}

func TestTransaction_RefusesBadRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		actions func(tb table) []action
		text    string
	}{
		"item twice": {func(tb table) []action {
			return []action{tb.txPut("a", nil, ""), tb.txCheck("a", "attribute_exists(pk)")}
		}, "Transaction request cannot include multiple operations on one item"},
		"101 actions": {func(tb table) []action {
			var all []action
			for i := range 101 {
				all = append(all, tb.txDelete(fmt.Sprint(i)))
			}
			return all
		}, "Member must have length less than or equal to 100"},
		"two in one action": {func(tb table) []action {
			a := tb.txPut("a", nil, "")
			a.Delete = tb.txDelete("b").Delete
			return []action{a}
		}, "TransactItems can only contain one of Check, Put, Update or Delete"},
		"path into a key": {func(tb table) []action {
			return []action{tb.txPut("a", nil, ""), tb.txPut("b", nil, "attribute_exists(sk.a)")}
		}, "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: sk | Key attributes must be scalars"},
		"syntax": {func(tb table) []action { return []action{tb.txPut("a", nil, ""), tb.txCheck("b", "pk =")} }, "Syntax error"},
	} {
		t.Run(name, func(t *testing.T) {
			onTable(t, func(tb table) {
				_, err := tb.transact("", tc.actions(tb)...)
				tb.refused(err, tc.text)
				assert.Empty(tb, tb.get("a"), "nothing written")
			})
		})
	}
}

func TestTransaction_IsCancelledByAnUpdateOfAKey(t *testing.T) {
	onTable(t, func(tb table) {
		u := tb.txSet("b", 1, "")
		u.Update.UpdateExpression = ptr("SET sk = :x")
		_, err := tb.transact("", tb.txPut("a", nil, ""), u)
		codes, reasons := cancelled(tb, err)
		// DynamoDB Local leaves out the reasons of the other actions.
		assert.Equal(tb, "ValidationError", codes[len(codes)-1])
		assert.Contains(tb, aws.ToString(reasons[len(reasons)-1].Message), "Cannot update attribute sk. This attribute is part of the key")
		assert.Empty(tb, tb.get("a"), "nothing written")
	})
}

// An empty key of an index refuses the request, while values of another type
// cancel it.
func TestTransaction_IsRefusedForAnEmptyIndexKey(t *testing.T) {
	const empty = "The AttributeValue for a key attribute cannot contain an empty string value."
	onTable(t, func(tb table) {
		u := tb.txSet("b", "", "")
		u.Update.UpdateExpression = ptr("SET gpk = :x")
		_, err := tb.transact("", tb.txPut("a", nil, ""), tb.txCheck("c", "attribute_exists(pk)"), u)
		text := "One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value that is not supported. " + empty
		tb.exactly(err, "ValidationException", text, text)
		_, err = tb.transact("", tb.txPut("a", nil, ""), tb.txPut("b", document{"gpk": ""}, ""))
		tb.refused(err, "One or more parameter values are not valid. A value specified for a secondary index key is not supported. "+empty)
		assert.Empty(tb, tb.get("a"), "nothing written")
	})
}

func TestTransaction_TakesAHundredActions(t *testing.T) {
	onTable(t, func(tb table) {
		var all []action
		for i := range 100 {
			all = append(all, tb.txPut(fmt.Sprintf("%03d", i), nil, ""))
		}
		_, err := tb.transact("", all...)
		require.NoError(tb, err)
		out, err := tb.Query(tb.ctx(), tb.partition())
		require.NoError(tb, err)
		assert.EqualValues(tb, 100, out.Count)
	})
}

// A transaction may have 4 MB. What counts are its keys, items, expressions, names and values, and not the items that it changes. The
// text has the size up to the action that is too much.
func TestTransaction_IsLimitedByTheSizeOfTheRequest(t *testing.T) {
	onTable(t, func(tb table) {
		large := strings.Repeat("x", 300_000)
		add, equal := ptr("ADD #n :n"), ptr("#x = :x")
		named := map[string]string{"#n": "count"}
		var puts, adds, sets, checks, deletes []action
		for i := range 15 {
			sk := fmt.Sprintf("%02d", i)
			tb.put(sk, document{"x": large})
			puts = append(puts, tb.txPut(sk, document{"x": large}, "attribute_exists(pk)"))
			adds = append(adds, action{Update: &types.Update{TableName: tb.name, Key: key(sk), UpdateExpression: add, ExpressionAttributeNames: named, ExpressionAttributeValues: values(document{"n": 1})}})
			sets = append(sets, tb.txSet(sk, large, ""))
			checks = append(checks, action{ConditionCheck: &types.ConditionCheck{
				TableName: tb.name, Key: key(sk), ConditionExpression: equal, ExpressionAttributeNames: map[string]string{"#x": "missing"}, ExpressionAttributeValues: values(document{"x": large}),
			}})
			deletes = append(deletes, tb.txDelete(sk))
		}
		const keySize = len("pk") + len("p") + len("sk") + len("00")
		for name, tc := range map[string]struct {
			actions []action
			size    int // of one action
		}{
			"puts":   {puts, keySize + len("x") + len(large) + len("attribute_exists(pk)")},
			"sets":   {sets, keySize + len("SET x = :x") + len(large)},
			"checks": {checks, keySize + len("#x = :x") + len("missing") + len(large)},
		} {
			_, err := tb.transact("", tc.actions...)
			want := fmt.Sprint("Transaction payload size cannot exceed 4MB. Payload Size: ", 14*tc.size)
			tb.exactly(err, "ValidationException", want, want)
			require.Greater(tb, 14*tc.size, 4<<20, name)
			require.Less(tb, 13*tc.size, 4<<20, name)
		}
		for _, actions := range [][]action{adds, deletes} {
			_, err := tb.transact("", actions...)
			require.NoError(tb, err)
		}
	})
}

func TestTransactionToken_AppliesOnce(t *testing.T) {
	onTable(t, func(tb table) {
		add := action{Update: &types.Update{TableName: tb.name, Key: key("a"), UpdateExpression: ptr("ADD x :x"), ExpressionAttributeValues: values(document{"x": 1})}}
		for range 3 {
			_, err := tb.transact("t", add)
			require.NoError(tb, err)
		}
		tb.holds("a", document{"x": 1})
		_, err := tb.transact("u", add)
		require.NoError(tb, err)
		tb.holds("a", document{"x": 2})
	})
}

func TestTransactionToken_WithAnotherRequestIsRefused(t *testing.T) {
	onTable(t, func(tb table) {
		_, err := tb.transact("t", tb.txSet("a", 1, ""))
		require.NoError(tb, err)
		_, err = tb.transact("t", tb.txSet("a", 2, ""))
		var mismatch *types.IdempotentParameterMismatchException
		require.ErrorAs(tb, err, &mismatch)
		tb.holds("a", document{"x": 1})
	})
}

func TestTransactionToken_OfACancelledTransactionMayBeUsedAgain(t *testing.T) {
	onTable(t, func(tb table) {
		_, err := tb.transact("t", tb.txSet("a", 1, "attribute_exists(pk)"))
		cancelled(tb, err)
		tb.put("a", nil)
		_, err = tb.transact("t", tb.txSet("a", 1, "attribute_exists(pk)"))
		require.NoError(tb, err)
		tb.holds("a", document{"x": 1})
	})
}

func TestTransaction_ReadsInOrder(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("a", document{"x": 1, "y": 2})
		tb.put("b", document{"x": 2})
		get := func(sk string) types.TransactGetItem {
			return types.TransactGetItem{Get: &types.Get{TableName: tb.name, Key: key(sk), ProjectionExpression: ptr("x")}}
		}
		out, err := tb.TransactGetItems(tb.ctx(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{get("b"), get("missing"), get("a")}})
		require.NoError(tb, err)
		require.Len(tb, out.Responses, 3)
		same(tb, item(document{"x": 2}), out.Responses[0].Item)
		assert.Empty(tb, out.Responses[1].Item)
		same(tb, item(document{"x": 1}), out.Responses[2].Item)
	})
}

func TestTransaction_RefusesToReadAnItemTwiceAndMoreThan4MB(t *testing.T) {
	onTable(t, func(tb table) {
		var gets []types.TransactGetItem
		for i := range 11 {
			tb.put(fmt.Sprint(i), document{"x": strings.Repeat("x", 400_000)})
			gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: tb.name, Key: key(fmt.Sprint(i))}})
		}
		read := func(gets ...types.TransactGetItem) error {
			_, err := tb.TransactGetItems(tb.ctx(), &dynamodb.TransactGetItemsInput{TransactItems: gets})
			return err
		}
		require.NoError(tb, read(gets[:10]...))
		tb.refused(read(gets...), "Transaction payload size cannot exceed 4MB | Payload in response is too large")
		tb.refused(read(gets[0], gets[1], gets[0]), "Transaction request cannot include multiple operations on one item")
	})
}

// A projection of nothing that the item has leaves out the item, unlike that
// of GetItem and BatchGetItem. DynamoDB Local returns an empty one everywhere.
func TestTransaction_ReadsNoItemIfTheProjectionIsEmpty(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("a", nil)
		nothing := ptr("x")
		out, err := tb.TransactGetItems(tb.ctx(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
			{Get: &types.Get{TableName: tb.name, Key: key("a"), ProjectionExpression: nothing}},
		}})
		require.NoError(tb, err)
		require.Len(tb, out.Responses, 1)
		assert.Equal(tb, tb.local(), out.Responses[0].Item != nil)
		assert.Empty(tb, out.Responses[0].Item)

		one, err := tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: tb.name, Key: key("a"), ProjectionExpression: nothing})
		require.NoError(tb, err)
		assert.NotNil(tb, one.Item)
		batch, err := tb.BatchGetItem(tb.ctx(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			*tb.name: {Keys: []map[string]types.AttributeValue{key("a")}, ProjectionExpression: nothing},
		}})
		require.NoError(tb, err)
		assert.Equal(tb, []map[string]types.AttributeValue{{}}, batch.Responses[*tb.name])
	})
}

func TestTransaction_FailsOnAMissingTable(t *testing.T) {
	onTable(t, func(tb table) {
		a := tb.txPut("a", nil, "")
		b := tb.txPut("b", nil, "")
		b.Put.TableName = aws.String(*tb.name + "-missing")
		_, err := tb.transact("", a, b)
		var missing *types.ResourceNotFoundException
		require.ErrorAs(tb, err, &missing)
		assert.Empty(tb, tb.get("a"))
	})
}

// The service ignores names and values of an action without an expression
// (ExtendDB, pull request 169). DynamoDB Local refuses them.
func TestTransaction_IgnoresNamesAndValuesWithoutExpression(t *testing.T) {
	onTable(t, func(tb table) {
		for _, tc := range []struct{ op, action string }{
			{"TransactWriteItems", `{"Put":{"TableName":"TABLE","Item":{"pk":{"S":"p"},"sk":{"S":"i"}},"ExpressionAttributeNames":{"#n":"a"}}}`},
			{"TransactWriteItems", `{"Put":{"TableName":"TABLE","Item":{"pk":{"S":"p"},"sk":{"S":"i"}},"ExpressionAttributeValues":{":v":{"N":"1"}}}}`},
			{"TransactGetItems", `{"Get":{"TableName":"TABLE","Key":{"pk":{"S":"p"},"sk":{"S":"i"}},"ExpressionAttributeNames":{"#n":"a"}}}`},
			{"TransactWriteItems", `{"Delete":{"TableName":"TABLE","Key":{"pk":{"S":"p"},"sk":{"S":"i"}},"ExpressionAttributeNames":{"#n":"a"}}}`},
			{"TransactWriteItems", `{"Delete":{"TableName":"TABLE","Key":{"pk":{"S":"p"},"sk":{"S":"i"}},"ExpressionAttributeValues":{":v":{"N":"1"}}}}`},
		} {
			err := tb.raw(tc.op, `{"TransactItems":[`+tc.action+`]}`)
			if tb.local() {
				tb.refused(err, "can only be specified when using expressions")
				continue
			}
			require.NoError(tb, err, tc.action)
		}
		for _, tc := range []struct{ op, action string }{
			{"TransactWriteItems", `{"Put":{"TableName":"TABLE","Item":{"pk":{"S":"p"},"sk":{"S":"i"}},"ConditionExpression":"attribute_not_exists(pk)","ExpressionAttributeNames":{"#n":"a"}}}`},
			{"TransactGetItems", `{"Get":{"TableName":"TABLE","Key":{"pk":{"S":"p"},"sk":{"S":"i"}},"ProjectionExpression":"pk","ExpressionAttributeNames":{"#n":"a"}}}`},
		} {
			tb.refused(tb.raw(tc.op, `{"TransactItems":[`+tc.action+`]}`), "Value provided in ExpressionAttributeNames unused in expressions: keys: {#n}")
		}
	})
}
