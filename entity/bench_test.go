package entity_test

import (
	"fmt"
	"slices"
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

// beside runs a call and its raw counterpart by turns, so that both meet the same machine,
// and reports how many times the raw one's time and allocations ours takes: x-raw is the
// ratio of the medians. ns/op is that of both together.
func beside(b *testing.B, raw, ours func() error) {
	b.Helper()
	must := func(f func() error) {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	rawAllocs := testing.AllocsPerRun(20, func() { must(raw) })
	ourAllocs := testing.AllocsPerRun(20, func() { must(ours) })
	timed := func(f func() error, list []time.Duration) []time.Duration {
		start := time.Now()
		must(f)
		return append(list, time.Since(start))
	}
	var rawTimes, ourTimes []time.Duration
	b.ReportAllocs()
	for turn := 0; b.Loop(); turn++ {
		if turn%2 == 0 { // neither always pays for the other's garbage
			rawTimes = timed(raw, rawTimes)
			ourTimes = timed(ours, ourTimes)
		} else {
			ourTimes = timed(ours, ourTimes)
			rawTimes = timed(raw, rawTimes)
		}
	}
	median := func(list []time.Duration) float64 {
		slices.Sort(list)
		return float64(list[len(list)/2])
	}
	b.ReportMetric(median(rawTimes), "raw-ns")
	b.ReportMetric(median(ourTimes), "ours-ns")
	b.ReportMetric(median(ourTimes)/median(rawTimes), "x-raw")
	if rawAllocs > 0 {
		b.ReportMetric(ourAllocs/rawAllocs, "x-raw-allocs")
	}
	b.ReportMetric(ourAllocs, "ours-allocs")
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
		})
		return err
	}, func() error {
		_, err := e.Update(b.Context(), Sale{Shop: "1", No: 1},
			entity.Set("product", "latch"), entity.Set("price", 5), entity.Set("note", "x"), entity.Set("paid", true), entity.Add("count", 1))
		return err
	})
}

func BenchmarkGet(b *testing.B) {
	e, client := sales(b)
	right := func(s Sale) error {
		if s.Count != 7 || s.Product != "hinge" {
			return fmt.Errorf("got %+v", s)
		}
		return nil
	}
	beside(b, func() error {
		out, err := client.GetItem(b.Context(), &dynamodb.GetItemInput{
			TableName: aws.String("app"),
			Key:       table.Item{"pk": &types.AttributeValueMemberS{Value: "SHOP#1"}, "sk": &types.AttributeValueMemberS{Value: "SALE#000007"}},
		})
		if err != nil {
			return err
		}
		s, err := byHand(out.Item)
		if err != nil {
			return err
		}
		return right(s)
	}, func() error {
		s, err := e.Get(b.Context(), Sale{Shop: "1", No: 7})
		if err != nil {
			return err
		}
		return right(s)
	})
}

// rowByHand is the encoding that a patient person writes.
func rowByHand(o Sale) table.Item {
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	n := func(v int) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.Itoa(v)} }
	return table.Item{
		"pk": s("SHOP#" + o.Shop), "sk": s(fmt.Sprintf("SALE#%06d", o.No)), "type": s("Sale"), "shop": s(o.Shop), "no": n(o.No),
		"product": s(o.Product), "count": n(o.Count), "price": n(int(o.Price)), "note": s(o.Note), "at": s(o.At.Format(time.RFC3339Nano)),
		"paid": &types.AttributeValueMemberBOOL{Value: o.Paid},
	}
}

func sale(no int) Sale {
	return Sale{Shop: "2", No: no, Product: "hinge", Count: 1, Price: 5, Note: "x", At: time.Unix(1e9, 0).UTC()}
}

func BenchmarkCreate(b *testing.B) {
	e, client := sales(b)
	raw, ours := 1000, 500_000
	beside(b, func() error {
		raw++
		_, err := client.PutItem(b.Context(), &dynamodb.PutItemInput{
			TableName: aws.String("app"), Item: rowByHand(sale(raw)),
			ConditionExpression:                 aws.String("attribute_not_exists(pk)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return err
	}, func() error {
		ours++
		_, err := e.Create(b.Context(), sale(ours))
		return err
	})
}

func BenchmarkPut(b *testing.B) {
	e, client := sales(b)
	beside(b, func() error {
		_, err := client.PutItem(b.Context(), &dynamodb.PutItemInput{
			TableName: aws.String("app"), Item: rowByHand(sale(1)),
			ConditionExpression:       aws.String("attribute_not_exists(#0) OR #0 = :0"),
			ExpressionAttributeNames:  map[string]string{"#0": "type"},
			ExpressionAttributeValues: table.Item{":0": &types.AttributeValueMemberS{Value: "Sale"}},

			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return err
	}, func() error {
		_, err := e.Put(b.Context(), sale(2))
		return err
	})
}

// BenchmarkDecodeRow and BenchmarkEncodeRow are the codec alone, without any request.
func BenchmarkDecodeRow(b *testing.B) {
	e, _ := sales(b)
	item := rowByHand(sale(1))
	beside(b, func() error {
		for range 100 {
			if _, err := byHand(item); err != nil {
				return err
			}
		}
		return nil
	}, func() error {
		for range 100 {
			if _, err := e.Decode(item); err != nil {
				return err
			}
		}
		return nil
	})
}

func BenchmarkEncodeRow(b *testing.B) {
	e, _ := sales(b)
	o := sale(1)
	beside(b, func() error {
		for range 100 {
			if len(rowByHand(o)) != 11 {
				return fmt.Errorf("attributes missing")
			}
		}
		return nil
	}, func() error {
		for range 100 {
			if op := e.PutOp(o); len(op.Item()) != 11 {
				return op.Err()
			}
		}
		return nil
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
