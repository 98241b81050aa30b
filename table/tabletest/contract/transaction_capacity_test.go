package contract_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// capacity returns a Capacity of a transaction's reads or writes. DynamoDB
// Local reports only their sum, never one of the two.
func (tb table) capacity(read, write float64) *types.Capacity {
	c := &types.Capacity{CapacityUnits: aws.Float64(read + write)}
	if !tb.local() && read > 0 {
		c.ReadCapacityUnits = &read
	}
	if !tb.local() && write > 0 {
		c.WriteCapacityUnits = &write
	}
	return c
}

// consumed returns the ConsumedCapacity of a transaction that used only the
// table itself.
func (tb table) consumed(read, write float64) []types.ConsumedCapacity {
	c := tb.capacity(read, write)
	return []types.ConsumedCapacity{{
		TableName: tb.name, CapacityUnits: c.CapacityUnits, Table: c,
		ReadCapacityUnits: c.ReadCapacityUnits, WriteCapacityUnits: c.WriteCapacityUnits,
	}}
}

// A repeated request of a finished transaction only reads: an item of 1.5 KB
// costs four units to write and two to read.
func TestTransactionCapacity_OfARepeatedTokenIsThatOfReading(t *testing.T) {
	onTable(t, func(tb table) {
		in := &dynamodb.TransactWriteItemsInput{
			ClientRequestToken:     aws.String((*tb.name)[len(*tb.name)-16:] + "c"),
			ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
			TransactItems:          []action{tb.txPut("i", document{"x": strings.Repeat("x", 1500)}, "")},
		}
		first, err := tb.TransactWriteItems(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Equal(tb, tb.consumed(0, 4), first.ConsumedCapacity)
		again, err := tb.TransactWriteItems(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Equal(tb, tb.consumed(2, 0), again.ConsumedCapacity)
	})
}

func TestTransactionCapacity_OfIndexesIsSplitToo(t *testing.T) {
	onTable(t, func(tb table) {
		in := &dynamodb.TransactWriteItemsInput{
			ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
			TransactItems:          []action{tb.txPut("i", document{"gpk": "g", "gsk": 1, "lsk": "l"}, "")},
		}
		out, err := tb.TransactWriteItems(tb.ctx(), in)
		require.NoError(tb, err)
		want := tb.consumed(0, 8)
		want[0].Table = tb.capacity(0, 2)
		want[0].GlobalSecondaryIndexes = map[string]types.Capacity{"gsi": *tb.capacity(0, 2), "keys": *tb.capacity(0, 2)}
		want[0].LocalSecondaryIndexes = map[string]types.Capacity{"lsi": *tb.capacity(0, 2)}
		assert.Equal(tb, want, out.ConsumedCapacity)
	})
}

func TestTransactionCapacity_OfReadsIsThatOfReading(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("i", nil)
		get := types.TransactGetItem{Get: &types.Get{TableName: tb.name, Key: key("i")}}
		out, err := tb.TransactGetItems(tb.ctx(), &dynamodb.TransactGetItemsInput{
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal, TransactItems: []types.TransactGetItem{get},
		})
		require.NoError(tb, err)
		want := tb.consumed(2, 0)
		want[0].Table = nil
		assert.Equal(tb, want, out.ConsumedCapacity)
	})
}
