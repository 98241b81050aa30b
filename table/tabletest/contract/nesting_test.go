package contract_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	tooDeep       = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
	tooDeepUpdate = "Nesting Levels have exceeded supported limits"
)

// within puts a value into n maps and lists.
func within(n int, v any) any {
	for i := range n {
		if i%2 == 0 {
			v = list{v}
		} else {
			v = document{"m": v}
		}
	}
	return v
}

// An item has 32 levels of values: 31 of lists and maps, which may be empty,
// and one of other values.
func TestNesting_OfItemsEndsWithAScalarOrASet(t *testing.T) {
	for _, tc := range []struct {
		name    string
		v       any
		refused bool
	}{
		{"scalar", within(31, "x"), false},
		{"set", within(31, stringSet{"x"}), false},
		{"empty list", within(30, list{}), false},
		{"scalar too deep", within(32, "x"), true},
		{"empty list too deep", within(31, list{}), true},
		{"empty map too deep", within(31, document{}), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				_, put := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: keyed("a", document{"x": tc.v})})
				batch := tb.batchWrite(putRequest("b", document{"x": tc.v}))
				_, tx := tb.transact("", tb.txPut("c", document{"x": tc.v}, ""))
				for _, err := range []error{put, batch, tx} {
					if tc.refused {
						tb.exactly(err, "ValidationException", tooDeep, tooDeep)
					} else {
						require.NoError(tb, err)
					}
				}
			})
		})
	}
}

// A value that is only compared may have one level more than an item.
func TestNesting_OfExpressionValuesHasOneLevelMore(t *testing.T) {
	onTable(t, func(tb table) {
		up := func(v any) error {
			_, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{
				TableName: tb.name, Key: key("a"), UpdateExpression: ptr("REMOVE y"), ConditionExpression: ptr("x = :v"), ExpressionAttributeValues: values(document{"v": v}),
			})
			return err
		}
		query := func(v any) error {
			in := tb.partition()
			in.FilterExpression, in.ExpressionAttributeValues[":v"] = ptr("x = :v"), value(v)
			_, err := tb.Query(tb.ctx(), in)
			return err
		}
		check := func(v any) error {
			a := tb.txCheck("a", "x = :v")
			a.ConditionCheck.ExpressionAttributeValues = values(document{"v": v})
			_, err := tb.transact("", a)
			return err
		}
		for _, fits := range []any{within(32, "x"), within(31, document{})} {
			_ = conditionFailed(tb, up(fits))
			require.NoError(tb, query(fits))
			codes, _ := cancelled(tb, check(fits))
			assert.Equal(tb, []string{"ConditionalCheckFailed"}, codes)
		}
		const text = "ExpressionAttributeValues contains invalid value: " + tooDeep + " for key :v"
		for _, deep := range []any{within(33, "x"), within(32, list{})} {
			for _, err := range []error{up(deep), query(deep), check(deep)} {
				tb.exactly(err, "ValidationException", text, text)
			}
		}
	})
}

// What an update makes of the item is checked after it. In a transaction,
// this cancels it; DynamoDB Local refuses the request.
func TestNesting_OfAnUpdatedItemIsThatOfItems(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("a", document{"x": list{1}})
		for _, tc := range []struct {
			expression string
			v          any
			refused    bool
		}{
			{"SET x[0] = :v", within(30, "x"), false},
			{"SET x[0] = :v", within(31, "x"), true},
			{"SET x[0] = :v", within(30, document{}), true},
			{"SET y = :v", within(32, "x"), true},
			{"SET y = :v", within(31, list{}), true},
		} {
			vs := values(document{"v": tc.v})
			_, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{
				TableName: tb.name, Key: key("a"), UpdateExpression: &tc.expression, ExpressionAttributeValues: vs,
			})
			_, tx := tb.transact("", action{Update: &types.Update{TableName: tb.name, Key: key("a"), UpdateExpression: &tc.expression, ExpressionAttributeValues: vs}})
			if !tc.refused {
				require.NoError(tb, err)
				require.NoError(tb, tx)
				continue
			}
			tb.exactly(err, "ValidationException", tooDeepUpdate, tooDeepUpdate)
			if tb.local() {
				tb.refused(tx, tooDeepUpdate)
				continue
			}
			codes, reasons := cancelled(tb, tx)
			assert.Equal(tb, []string{"ValidationError"}, codes)
			assert.Equal(tb, tooDeepUpdate, aws.ToString(reasons[0].Message))
		}
	})
}
