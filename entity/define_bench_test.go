package entity_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/table"
)

// Wide has eight attributes, as many as the figure asks for.
type Wide struct {
	Tenant string `dynamo:"tenant"`
	ID     string `dynamo:"id"`
	Name   string `dynamo:"name"`
	Status string `dynamo:"status"`
	Count  int    `dynamo:"count"`
	Price  int64  `dynamo:"price"`
	Note   string `dynamo:"note,omitempty"`
	Active bool   `dynamo:"active"`
}

// An application defines its entities when it starts: fifty of them beside each other, each
// checked against all that came before. The goal is 5 ms for all fifty.
func BenchmarkDefineFifty(b *testing.B) {
	const n = 50
	schema := table.Schema{Name: "app", Indexes: []table.Index{{Name: "gsi1", PK: "GSI1PK", SK: "GSI1SK"}}}
	client := dynamodb.New(dynamodb.Options{})
	specs := make([]entity.Spec[Wide], n)
	for i := range specs {
		specs[i] = entity.Spec[Wide]{
			Type: fmt.Sprintf("Type%02d", i), PK: "TENANT#{tenant}", SK: fmt.Sprintf("TYPE%02d#{id}", i),
			Indexes: []entity.Index[Wide]{{Name: "gsi1", PK: fmt.Sprintf("TYPE%02d#{status}", i), SK: "{count:uint8}#{id}"}},
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		tbl, err := table.Open(client, schema)
		require.NoError(b, err)
		for _, spec := range specs {
			if _, err := entity.Define(tbl, spec); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms/50-entities")
}
