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

// A deletion and a replacement by less are paid for by the old size, 9 KB. So is their repetition: three units to read each of them, which
// a transaction doubles.
func TestTransactionCapacity_OfARepeatedTokenIsThatOfTheFormerItems(t *testing.T) {
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, "DynamoDB Local charges a repetition for the items that there are now")
		large := document{"x": strings.Repeat("x", 9000)}
		for sk, a := range map[string]action{"deleted": tb.txDelete("deleted"), "less": tb.txPut("less", nil, ""), "checked": tb.txCheck("checked", "attribute_exists(pk)")} {
			tb.put(sk, large)
			in := &dynamodb.TransactWriteItemsInput{
				ClientRequestToken: aws.String((*tb.name)[len(*tb.name)-16:] + sk), ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes, TransactItems: []action{a},
			}
			first, err := tb.TransactWriteItems(tb.ctx(), in)
			require.NoError(tb, err)
			assert.Equal(tb, tb.consumed(0, 18), first.ConsumedCapacity, sk)
			again, err := tb.TransactWriteItems(tb.ctx(), in)
			require.NoError(tb, err)
			assert.Equal(tb, tb.consumed(6, 0), again.ConsumedCapacity, sk)
		}
	})
}

// A transaction doubles the units of the table's items, but not those of its indexes. DynamoDB Local doubles both.
func TestTransactionCapacity_OfIndexesIsNotDoubled(t *testing.T) {
	onTable(t, func(tb table) {
		in := &dynamodb.TransactWriteItemsInput{
			ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
			TransactItems:          []action{tb.txPut("i", document{"gpk": "g", "gsk": 1, "lsk": "l"}, "")},
		}
		out, err := tb.TransactWriteItems(tb.ctx(), in)
		require.NoError(tb, err)
		index := tb.capacity(0, 1)
		if tb.local() {
			index = tb.capacity(0, 2)
		}
		want := tb.consumed(0, 2+3**index.CapacityUnits)
		want[0].Table = tb.capacity(0, 2)
		want[0].GlobalSecondaryIndexes = map[string]types.Capacity{"gsi": *index, "keys": *index}
		want[0].LocalSecondaryIndexes = map[string]types.Capacity{"lsi": *index}
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
