package entity_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Consignment is a row as applications have them: with a version, a time of the last write, and
// a value that is unique, which the update does not touch.
type Consignment struct {
	ID      string    `dynamo:"id"`
	Label   string    `dynamo:"label"`
	Depot   string    `dynamo:"depot"`
	State   string    `dynamo:"state"`
	Weight  int64     `dynamo:"weight"`
	Fragile bool      `dynamo:"fragile"`
	Stops   int       `dynamo:"stops"`
	Rev     int64     `dynamo:"rev"`
	Updated time.Time `dynamo:"updated"`
}

// BenchmarkUpdateFive updates five attributes, in turn with the SDK call that does the same
// with expressions written by hand.
func BenchmarkUpdateFive(b *testing.B) {
	client := tabletest.New(b).Client()
	tbl, err := table.Open(client, table.Schema{Name: "app", NoTTL: true})
	require.NoError(b, err)
	require.NoError(b, tbl.Ensure(b.Context()))
	consignments, err := entity.Define(tbl, entity.Spec[Consignment]{
		Type: "Consignment", PK: "PARCEL#{id}", SK: "PARCEL", Version: "rev", Updated: "updated",
		Unique: []entity.Unique[Consignment]{{Name: "label", Key: "{label}"}},
	})
	require.NoError(b, err)
	p, err := consignments.Create(b.Context(), Consignment{ID: "1", Label: "L1"})
	require.NoError(b, err)
	_, err = consignments.Create(b.Context(), Consignment{ID: "2", Label: "L2"})
	require.NoError(b, err)
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	n := func(v int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
	}

	version := int64(1)
	raw := func() {
		out, err := client.UpdateItem(b.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String("app"), Key: table.Item{"pk": s("PARCEL#2"), "sk": s("PARCEL")},
			ConditionExpression: aws.String("#0 = :0 AND (attribute_not_exists(#1) OR #1 = :1)"),
			UpdateExpression:    aws.String("SET #2 = :2, #3 = :3, #4 = :4, #5 = :5, #7 = :7 ADD #6 :6, #0 :8"),
			ExpressionAttributeNames: map[string]string{
				"#0": "version", "#1": "type", "#2": "depot", "#3": "state", "#4": "weight", "#5": "fragile", "#6": "stops", "#7": "updated",
			},
			ExpressionAttributeValues: table.Item{
				":0": n(version), ":1": s("Consignment"), ":2": s("north"), ":3": s("moving"), ":4": n(1200),
				":5": &types.AttributeValueMemberBOOL{Value: true}, ":6": n(1), ":7": s(time.Now().UTC().Format(time.RFC3339Nano)), ":8": n(1),
			},
			ReturnValues:                        types.ReturnValueAllNew,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		if err != nil || len(out.Attributes) == 0 {
			b.Fatal(err)
		}
		version++
	}
	ours := func() {
		var err error
		p, err = consignments.Update(b.Context(), p,
			entity.Set("depot", "north"), entity.Set("state", "moving"), entity.Set("weight", 1200), entity.Set("fragile", true), entity.Add("stops", 1))
		if err != nil {
			b.Fatal(err)
		}
	}
	rawAllocs, ourAllocs := testing.AllocsPerRun(50, raw), testing.AllocsPerRun(50, ours)
	var rawTime, ourTime time.Duration
	for b.Loop() {
		start := time.Now()
		raw()
		middle := time.Now()
		ours()
		rawTime += middle.Sub(start)
		ourTime += time.Since(middle)
	}
	b.ReportMetric(rawAllocs, "raw-allocs")
	b.ReportMetric(ourAllocs, "ours-allocs")
	b.ReportMetric(ourAllocs/rawAllocs, "allocs-x-raw")
	b.ReportMetric(float64(ourTime)/float64(rawTime), "time-x-raw")
	b.Logf("update of five attributes: %.0f allocations, the SDK call %.0f: %.2f × raw", ourAllocs, rawAllocs, ourAllocs/rawAllocs)
}
