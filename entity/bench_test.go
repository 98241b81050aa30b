package entity_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
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

type Sale struct {
	Shop    string    `dynamo:"shop"`
	No      int       `dynamo:"no"`
	Product string    `dynamo:"product"`
	Count   int       `dynamo:"count"`
	Price   int64     `dynamo:"price"`
	Note    string    `dynamo:"note"`
	At      time.Time `dynamo:"at"`
	Paid    bool      `dynamo:"paid"`
}

func sales(b *testing.B) (*entity.Entity[Sale], *dynamodb.Client) {
	b.Helper()
	client := tabletest.New(b).Client()
	tbl, err := table.Open(client, table.Schema{Name: "app", NoTTL: true})
	require.NoError(b, err)
	require.NoError(b, tbl.Ensure(b.Context()))
	e, err := entity.Define(tbl, entity.Spec[Sale]{Type: "Sale", PK: "SHOP#{shop}", SK: "SALE#{no:uint6}"})
	require.NoError(b, err)
	var ops []table.Op
	for i := range 100 {
		op := e.PutOp(Sale{Shop: "1", No: i, Product: "hinge", Count: i, Price: 1999, Note: "note", At: time.Unix(1e9, 5).UTC(), Paid: true})
		ops = append(ops, table.Put(op.Item()))
	}
	require.NoError(b, tbl.BatchWrite(b.Context(), ops))
	return e, client
}

// byHand is the decoding that a patient person writes.
func byHand(item table.Item) (s Sale, err error) {
	s.Shop = item["shop"].(*types.AttributeValueMemberS).Value
	s.Product = item["product"].(*types.AttributeValueMemberS).Value
	s.Note = item["note"].(*types.AttributeValueMemberS).Value
	s.Paid = item["paid"].(*types.AttributeValueMemberBOOL).Value
	if s.No, err = strconv.Atoi(item["no"].(*types.AttributeValueMemberN).Value); err != nil {
		return s, err
	}
	if s.Count, err = strconv.Atoi(item["count"].(*types.AttributeValueMemberN).Value); err != nil {
		return s, err
	}
	if s.Price, err = strconv.ParseInt(item["price"].(*types.AttributeValueMemberN).Value, 10, 64); err != nil {
		return s, err
	}
	return s, s.At.UnmarshalText([]byte(item["at"].(*types.AttributeValueMemberS).Value))
}

func BenchmarkQueryOf100(b *testing.B) {
	e, client := sales(b)
	match := keys.Values{"shop": "1"}
	enough := func(list []Sale) error {
		if len(list) != 100 || list[99].Count != 99 {
			return fmt.Errorf("%d rows", len(list))
		}
		return nil
	}
	beside(b, func() error {
		out, err := client.Query(b.Context(), &dynamodb.QueryInput{
			TableName: aws.String("app"), KeyConditionExpression: aws.String("pk = :p AND begins_with(sk, :s)"),
			ExpressionAttributeValues: table.Item{":p": &types.AttributeValueMemberS{Value: "SHOP#1"}, ":s": &types.AttributeValueMemberS{Value: "SALE#"}},
			ReturnConsumedCapacity:    types.ReturnConsumedCapacityTotal,
		})
		if err != nil {
			return err
		}
		list := make([]Sale, 0, len(out.Items))
		for _, item := range out.Items {
			s, err := byHand(item)
			if err != nil {
				return err
			}
			list = append(list, s)
		}
		return enough(list)
	}, func() error {
		var list []Sale
		for s, err := range e.Query(b.Context(), match) {
			if err != nil {
				return err
			}
			list = append(list, s)
		}
		return enough(list)
	})
}

func BenchmarkUpdateOfFiveFields(b *testing.B) {
	e, client := sales(b)
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	n := func(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
	beside(b, func() error {
		_, err := client.UpdateItem(b.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String("app"), Key: table.Item{"pk": s("SHOP#1"), "sk": s("SALE#000001")},
			ConditionExpression: aws.String("attribute_exists(#0) AND (attribute_not_exists(#1) OR #1 = :0)"),
			UpdateExpression:    aws.String("SET #2 = :1, #3 = :2, #4 = :3, #5 = :4 ADD #6 :5"),
			ExpressionAttributeNames: map[string]string{
				"#0": "pk", "#1": "type", "#2": "product", "#3": "price", "#4": "note", "#5": "paid", "#6": "count",
			},
			ExpressionAttributeValues: table.Item{
				":0": s("Sale"), ":1": s("latch"), ":2": n("5"), ":3": s("x"), ":4": &types.AttributeValueMemberBOOL{Value: true}, ":5": n("1"),
			},
			ReturnValues:                        types.ReturnValueAllNew,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
		})
		return err
	}, func() error {
		_, err := e.Update(b.Context(), Sale{Shop: "1", No: 1},
			entity.Set("product", "latch"), entity.Set("price", 5), entity.Set("note", "x"), entity.Set("paid", true), entity.Add("count", 1))
		return err
	})
}

func BenchmarkCreate(b *testing.B) {
	e, client := sales(b)
	raw, ours := 1000, 500_000
	sale := func(no int) Sale {
		return Sale{Shop: "2", No: no, Product: "hinge", Count: 1, Price: 5, Note: "x", At: time.Unix(1e9, 0).UTC()}
	}
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	n := func(v int) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.Itoa(v)} }
	beside(b, func() error {
		raw++
		o := sale(raw)
		_, err := client.PutItem(b.Context(), &dynamodb.PutItemInput{
			TableName: aws.String("app"), Item: table.Item{
				"pk": s("SHOP#" + o.Shop), "sk": s(fmt.Sprintf("SALE#%06d", o.No)), "type": s("Sale"), "shop": s(o.Shop), "no": n(o.No),
				"product": s(o.Product), "count": n(o.Count), "price": n(int(o.Price)), "note": s(o.Note), "at": s(o.At.Format(time.RFC3339Nano)),
				"paid": &types.AttributeValueMemberBOOL{Value: o.Paid},
			},
			ConditionExpression: aws.String("attribute_not_exists(pk)"), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return err
	}, func() error {
		ours++
		_, err := e.Create(b.Context(), sale(ours))
		return err
	})
}

func BenchmarkDefineOf50Entities(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		tbl := offline(b, table.Schema{Name: "app"})
		for i := range 50 {
			if _, err := entity.Define(tbl, entity.Spec[Sale]{
				Type: fmt.Sprint("Sale", i), PK: "SHOP#{shop}", SK: fmt.Sprintf("SALE%d#{no:uint6}", i),
			}); err != nil {
				b.Fatal(err)
			}
		}
	}
}
