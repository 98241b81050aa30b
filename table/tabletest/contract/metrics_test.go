package contract_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const sizes = types.ReturnItemCollectionMetricsSize

// metricsOf returns the metrics of the tables' collections. DynamoDB Local
// never returns any.
func (tb table) metricsOf(pks ...string) map[string][]types.ItemCollectionMetrics {
	if tb.local() || len(pks) == 0 {
		return nil
	}
	var all []types.ItemCollectionMetrics
	for _, pk := range pks {
		all = append(all, types.ItemCollectionMetrics{ItemCollectionKey: item(document{"pk": pk}), SizeEstimateRangeGB: []float64{0, 1}})
	}
	return map[string][]types.ItemCollectionMetrics{*tb.name: all}
}

func TestCollectionMetrics_OfOneWriteNameItsCollection(t *testing.T) {
	onTable(t, func(tb table) {
		other := tb.withoutLocalIndex()
		for _, each := range []table{tb, other} {
			var want *types.ItemCollectionMetrics
			if all := tb.metricsOf("p")[*each.name]; len(all) > 0 {
				want = &all[0]
			}
			put, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: each.name, Item: keyed("a", nil), ReturnItemCollectionMetrics: sizes})
			require.NoError(tb, err)
			assert.Equal(tb, want, put.ItemCollectionMetrics)
			update, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{TableName: each.name, Key: key("a"), ReturnItemCollectionMetrics: sizes})
			require.NoError(tb, err)
			assert.Equal(tb, want, update.ItemCollectionMetrics)
			del, err := tb.DeleteItem(tb.ctx(), &dynamodb.DeleteItemInput{TableName: each.name, Key: key("a"), ReturnItemCollectionMetrics: sizes})
			require.NoError(tb, err)
			assert.Equal(tb, want, del.ItemCollectionMetrics)
		}
	})
}

func TestCollectionMetrics_OfABatchNameEachCollectionOnce(t *testing.T) {
	onTable(t, func(tb table) {
		other := tb.withoutLocalIndex()
		out, err := tb.BatchWriteItem(tb.ctx(), &dynamodb.BatchWriteItemInput{
			ReturnItemCollectionMetrics: sizes,
			RequestItems: map[string][]types.WriteRequest{
				*tb.name: {
					putRequest("a", nil), {PutRequest: &types.PutRequest{Item: item(document{"pk": "q", "sk": "a"})}}, deleteRequest("b"),
				},
				*other.name: {putRequest("a", nil)},
			},
		})
		require.NoError(tb, err)
		assert.Equal(tb, tb.metricsOf("p", "q"), out.ItemCollectionMetrics)
	})
}

func TestCollectionMetrics_OfATransactionAreThoseThatItModifies(t *testing.T) {
	onTable(t, func(tb table) {
		other := tb.withoutLocalIndex()
		check := tb.txCheck("c", "attribute_not_exists(pk)")
		check.ConditionCheck.Key = item(document{"pk": "checked", "sk": "c"})
		in := &dynamodb.TransactWriteItemsInput{
			ReturnItemCollectionMetrics: sizes,
			ClientRequestToken:          aws.String((*tb.name)[len(*tb.name)-16:] + "m"),
			TransactItems:               []action{tb.txPut("a", nil, ""), tb.txSet("b", 1, ""), check, other.txPut("a", nil, "")},
		}
		out, err := tb.TransactWriteItems(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Equal(tb, tb.metricsOf("p"), out.ItemCollectionMetrics)
		out, err = tb.TransactWriteItems(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Empty(tb, out.ItemCollectionMetrics, "a repeated request modifies nothing")

		out, err = tb.TransactWriteItems(tb.ctx(), &dynamodb.TransactWriteItemsInput{TransactItems: []action{tb.txPut("a", nil, "")}})
		require.NoError(tb, err)
		assert.Empty(tb, out.ItemCollectionMetrics, "not asked for")
	})
}

// withoutLocalIndex makes a second table, whose collections are not measured.
func (tb table) withoutLocalIndex() table {
	other := tb
	other.name = aws.String(*tb.name + "-2")
	in := createInput(*other.name)
	in.AttributeDefinitions, in.GlobalSecondaryIndexes, in.LocalSecondaryIndexes = in.AttributeDefinitions[:2], nil, nil
	other.create(in)
	return other
}
