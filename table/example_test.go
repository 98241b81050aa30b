package table_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// number makes the attribute value of a number; real programs leave that to package entity.
func number(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// A client of DynamoDB Local, which accepts any region and any credentials.
func ExampleClient() {
	client := dynamodb.New(dynamodb.Options{
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("any", "any", ""),
		BaseEndpoint: aws.String("http://localhost:8000"),
	})
	tbl, err := table.Open(client, table.Schema{Name: "app"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tbl.Region())
	// Output: us-east-1
}

func ExampleOpen() {
	engine := tabletest.NewEngine() // or dynamodb.NewFromConfig(cfg)
	ctx := context.Background()

	tbl, err := table.Open(engine.Client(), table.Schema{
		Name:    "app",
		Keys:    keys.Scheme{PK: "PK", SK: "SK", TTL: "expiresAt"},
		Indexes: []table.Index{{Name: "gsi1", PK: "GSI1PK", SK: "GSI1SK"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	plan, err := tbl.Plan(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(plan)
	if err := tbl.Ensure(ctx); err != nil {
		log.Fatal(err)
	}
	plan, err = tbl.Plan(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(plan)
	// Output:
	// table app
	//   + table with keys PK, SK
	//   + index gsi1 (GSI1PK:S, GSI1SK:S; all)
	//   + time to live on attribute expiresAt
	// table app: nothing to do
	//   = keys PK:S, SK:S; index gsi1; capacity on demand; time to live on attribute expiresAt
}

func ExampleTable_Write() {
	engine := tabletest.NewEngine()
	ctx := context.Background()
	tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"})
	if err != nil {
		log.Fatal(err)
	}
	if err := tbl.Ensure(ctx); err != nil {
		log.Fatal(err)
	}

	from, to := keys.NewKey("ACCOUNT#1", "ACCOUNT"), keys.NewKey("ACCOUNT#2", "ACCOUNT")
	account := tbl.KeyItem(from)
	account["balance"] = number("15")
	if err := tbl.Write(ctx, table.Put(account)); err != nil {
		log.Fatal(err)
	}
	balance := table.Attr("balance")
	transfer := func() error {
		return tbl.Write(ctx, // both or none
			table.Update(from, balance.Add(-10)).If(balance.AtLeast(10)),
			table.Update(to, balance.Add(10)))
	}
	fmt.Println(transfer())
	err = transfer()
	var failed *table.ConditionError
	if errors.As(err, &failed) {
		fmt.Println(err)
		fmt.Println("operation", failed.Index, "met a balance of", failed.Item["balance"].(*types.AttributeValueMemberN).Value)
	}
	// Output:
	// <nil>
	// table: write: operation 0 (update): condition does not hold
	// operation 0 met a balance of 5
}

func ExampleTable_Query() {
	engine := tabletest.NewEngine()
	ctx := context.Background()
	tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"})
	if err != nil {
		log.Fatal(err)
	}
	if err := tbl.Ensure(ctx); err != nil {
		log.Fatal(err)
	}
	var ops []table.Op
	for _, sk := range []string{"ORDER#1", "ORDER#2", "ORDER#3", "PROFILE"} {
		ops = append(ops, table.Put(tbl.KeyItem(keys.NewKey("CUSTOMER#7", sk))))
	}
	if err := tbl.BatchWrite(ctx, ops); err != nil {
		log.Fatal(err)
	}

	ctx, usage := table.WithUsage(ctx)
	for item, err := range tbl.Query(ctx, table.Query{
		PK: "CUSTOMER#7", SK: keys.PrefixRange("ORDER#"), Descending: true, Limit: 2,
	}) {
		if err != nil {
			log.Fatal(err)
		}
		key, err := tbl.KeyOf(item)
		fmt.Println(key.SK, err)
	}
	fmt.Printf("%+v\n", usage.Totals())
	// Output:
	// ORDER#3 <nil>
	// ORDER#2 <nil>
	// {Requests:1 Retries:0 ReadUnits:0.5 WriteUnits:0}
}

func ExampleTable_WriteOnce() {
	engine := tabletest.NewEngine()
	ctx := context.Background()
	tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"})
	if err != nil {
		log.Fatal(err)
	}
	if err := tbl.Ensure(ctx); err != nil {
		log.Fatal(err)
	}
	visits := keys.NewKey("PAGE#home", "VISITS")
	for range 3 { // a message that is delivered more than once
		if err := tbl.WriteOnce(ctx, "message-4711", table.Update(visits, table.Attr("n").Add(1))); err != nil {
			log.Fatal(err)
		}
	}
	item, err := tbl.Get(ctx, visits, true)
	fmt.Println(item["n"].(*types.AttributeValueMemberN).Value, err)
	// Output: 1 <nil>
}

func ExampleItemFromJSON() {
	item, err := table.ItemFromJSON([]byte(`{"pk":{"S":"a"},"sk":{"S":"b"},"tags":{"SS":["x","y"]}}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(item), item["tags"].(*types.AttributeValueMemberSS).Value)
	_, err = table.ItemFromJSON([]byte(`{"pk":{"S":"a"},"n":{"N":"secret"}}`))
	fmt.Println(err)
	// Output:
	// 3 [x y]
	// table: item from JSON: invalid request: attribute "n": a number that DynamoDB cannot hold
}
