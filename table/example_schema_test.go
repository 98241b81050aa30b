package table_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func ExampleTable_Plan() {
	engine := tabletest.NewEngine()
	ctx := context.Background()
	schema := table.Schema{Name: "app", Indexes: []table.Index{{Name: "gsi1", PK: "GSI1PK"}}}
	old, err := table.Open(engine.Client(), schema)
	if err != nil {
		log.Fatal(err)
	}
	if err := old.Ensure(ctx); err != nil {
		log.Fatal(err)
	}

	// The next version of the application wants more, and something that would cost it an index.
	schema.Stream = table.StreamBoth
	schema.Indexes = []table.Index{{Name: "gsi1", PK: "GSI1PK", SK: "GSI1SK"}, {Name: "gsi2", PK: "GSI2PK"}}
	next, err := table.Open(engine.Client(), schema)
	if err != nil {
		log.Fatal(err)
	}
	plan, err := next.Plan(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(plan)

	err = next.Ensure(ctx)
	fmt.Println(errors.Is(err, table.ErrSchema))
	err = next.Verify(ctx)
	var differs *table.SchemaError
	if errors.As(err, &differs) {
		fmt.Println(len(differs.Differences), "differences")
	}
	// Output:
	// table app: refused, nothing will be done
	//   ! index is gsi1 (GSI1PK:S; all), the schema wants gsi1 (GSI1PK:S, GSI1SK:S; all): an index cannot be changed, only dropped and made anew
	//   + index gsi2 (GSI2PK:S; all)
	//   + stream of NEW_AND_OLD_IMAGES
	//   = keys pk:S, sk:S; capacity on demand; time to live on attribute ttl
	// true
	// 3 differences
}

func ExampleSchema_CloudFormation() {
	resource, err := table.Schema{Name: "app", Keys: keys.Scheme{PK: "PK", SK: "SK", TTL: "expiresAt"}}.CloudFormation()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(resource))
	// Output:
	// {
	//   "Type": "AWS::DynamoDB::Table",
	//   "DeletionPolicy": "Retain",
	//   "UpdateReplacePolicy": "Retain",
	//   "Properties": {
	//     "TableName": "app",
	//     "AttributeDefinitions": [
	//       {
	//         "AttributeName": "PK",
	//         "AttributeType": "S"
	//       },
	//       {
	//         "AttributeName": "SK",
	//         "AttributeType": "S"
	//       }
	//     ],
	//     "KeySchema": [
	//       {
	//         "AttributeName": "PK",
	//         "KeyType": "HASH"
	//       },
	//       {
	//         "AttributeName": "SK",
	//         "KeyType": "RANGE"
	//       }
	//     ],
	//     "BillingMode": "PAY_PER_REQUEST",
	//     "TimeToLiveSpecification": {
	//       "AttributeName": "expiresAt",
	//       "Enabled": true
	//     }
	//   }
	// }
}

func ExampleSchema_Workbench() {
	model, err := table.Schema{Name: "app"}.Workbench( // entity.Entity.Facet makes facets
		table.Facet{Name: "Order", PK: "TENANT#{tenant}", SK: "ORDER#{id}", Attributes: []table.FacetAttribute{{Name: "total", Type: "N"}}},
	)
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(model)) {
		if strings.Contains(line, "Alias\"") || strings.Contains(line, "total") {
			fmt.Println(strings.TrimSpace(line))
		}
	}
	// Output:
	// "AttributeName": "total",
	// "KeyAttributeAlias": {
	// "PartitionKeyAlias": "TENANT#{tenant}",
	// "SortKeyAlias": "ORDER#{id}"
	// "total"
}

func ExampleSchema_Validate() {
	fmt.Println(table.Schema{Name: "app", Indexes: []table.Index{{Name: "x"}}}.Validate())
	// Output:
	// invalid request: schema: Indexes[0].Name "x": want 3 to 255 of a-z A-Z 0-9 _ - .; Indexes[0].PK: empty
}
