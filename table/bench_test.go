package table_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// beside runs a call and its raw counterpart in turn, so that both meet the same machine,
// and reports the ratios of time and allocations. ns/op is that of both together.
func beside(b *testing.B, raw, ours func() error) {
	b.Helper()
	must := func(f func() error) {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	rawAllocs := testing.AllocsPerRun(20, func() { must(raw) })
	ourAllocs := testing.AllocsPerRun(20, func() { must(ours) })
	var rawTime, ourTime time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		must(raw)
		middle := time.Now()
		must(ours)
		rawTime += middle.Sub(start)
		ourTime += time.Since(middle)
	}
	b.ReportMetric(float64(rawTime.Nanoseconds())/float64(b.N), "raw-ns/op")
	b.ReportMetric(float64(ourTime.Nanoseconds())/float64(b.N), "ours-ns/op")
	b.ReportMetric(float64(ourTime)/float64(rawTime), "time-ratio")
	b.ReportMetric(ourAllocs/rawAllocs, "allocs-ratio")
}

func benchmarkTable(b *testing.B) (*table.Table, *dynamodb.Client) {
	b.Helper()
	client := tabletest.New(b).Client()
	tbl, err := table.Open(client, table.Schema{Name: "app", NoTTL: true})
	require.NoError(b, err)
	require.NoError(b, tbl.Ensure(b.Context()))
	return tbl, client
}

func BenchmarkWrite(b *testing.B) {
	tbl, client := benchmarkTable(b)
	item := tbl.KeyItem(keys.NewKey("p", "s"))
	item["v"] = str("value")
	beside(b, func() error {
		_, err := client.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: item})
		return err
	}, func() error {
		return tbl.Write(b.Context(), table.Put(item))
	})
}

func BenchmarkConditionalUpdate(b *testing.B) {
	tbl, client := benchmarkTable(b)
	k := keys.NewKey("p", "s")
	n := table.Attr("n")
	beside(b, func() error {
		_, err := client.UpdateItem(b.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String("app"), Key: table.Item{"pk": str("p"), "sk": str("s")},
			ConditionExpression:                 aws.String("attribute_not_exists(#0) OR #0 > :0"),
			UpdateExpression:                    aws.String("SET #1 = :1 ADD #0 :2"),
			ExpressionAttributeNames:            map[string]string{"#0": "n", "#1": "v"},
			ExpressionAttributeValues:           table.Item{":0": num("0"), ":1": str("x"), ":2": num("1")},
			ReturnValues:                        types.ReturnValueAllNew,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return err
	}, func() error {
		_, err := tbl.Apply(b.Context(), table.Update(k, table.Attr("v").Set("x"), n.Add(1)).If(table.Or(n.NotExists(), n.Greater(0))), table.ReturnNew)
		return err
	})
}

func BenchmarkTransaction(b *testing.B) {
	tbl, client := benchmarkTable(b)
	first, second := tbl.KeyItem(keys.NewKey("p", "1")), tbl.KeyItem(keys.NewKey("p", "2"))
	beside(b, func() error {
		_, err := client.TransactWriteItems(b.Context(), &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{
				{Put: &types.Put{TableName: aws.String("app"), Item: first}},
				{Put: &types.Put{TableName: aws.String("app"), Item: second}},
			},
		})
		return err
	}, func() error {
		return tbl.Write(b.Context(), table.Put(first), table.Put(second))
	})
}

func BenchmarkGet(b *testing.B) {
	tbl, client := benchmarkTable(b)
	k := keys.NewKey("p", "s")
	require.NoError(b, tbl.Write(b.Context(), table.Put(tbl.KeyItem(k))))
	beside(b, func() error {
		_, err := client.GetItem(b.Context(), &dynamodb.GetItemInput{
			TableName: aws.String("app"), Key: table.Item{"pk": str("p"), "sk": str("s")}, ConsistentRead: aws.Bool(true),
		})
		return err
	}, func() error {
		_, err := tbl.Get(b.Context(), k, true)
		return err
	})
}

func BenchmarkQuery(b *testing.B) {
	tbl, client := benchmarkTable(b)
	var ops []table.Op
	for i := range 100 {
		ops = append(ops, table.Put(tbl.KeyItem(keys.NewKey("p", fmt.Sprintf("ORDER#%03d", i)))))
	}
	require.NoError(b, tbl.BatchWrite(b.Context(), ops))
	orders := keys.PrefixRange("ORDER#")
	beside(b, func() error {
		out, err := client.Query(b.Context(), &dynamodb.QueryInput{
			TableName: aws.String("app"), KeyConditionExpression: aws.String("pk = :p AND begins_with(sk, :s)"),
			ExpressionAttributeValues: table.Item{":p": str("p"), ":s": str("ORDER#")},
		})
		if err == nil && len(out.Items) != 100 {
			err = fmt.Errorf("%d items", len(out.Items))
		}
		return err
	}, func() error {
		n := 0
		for _, err := range tbl.Query(b.Context(), table.Query{PK: "p", SK: orders}) {
			if err != nil {
				return err
			}
			n++
		}
		if n != 100 {
			return fmt.Errorf("%d items", n)
		}
		return nil
	})
}
