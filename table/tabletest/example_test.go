package tabletest_test

import (
	"context"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// openTable is the table of an application, in an engine.
func openTable(ctx context.Context, engine *tabletest.Engine) *table.Table {
	tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"})
	if err != nil {
		log.Fatal(err)
	}
	if err := tbl.Ensure(ctx); err != nil {
		log.Fatal(err)
	}
	return tbl
}

// What a piece of code asks of DynamoDB, and what that costs.
func ExampleEngine_Requests() {
	ctx, engine := context.Background(), tabletest.NewEngine()
	tbl := openTable(ctx, engine)
	engine.ResetRequests() // those of Ensure

	key := keys.NewKey("VISITS", "VISITS")
	if err := tbl.Write(ctx, table.Update(key, table.Attr("hits").Add(1))); err != nil {
		log.Fatal(err)
	}
	if _, err := tbl.Get(ctx, key, true); err != nil {
		log.Fatal(err)
	}
	for _, r := range engine.Requests() {
		fmt.Println(r.Index, r.Operation, r.Consumed)
	}
	// Output:
	// 1 UpdateItem 1
	// 2 GetItem 1
}

// Each case of a test begins with the same rows.
func ExampleEngine_Snapshot() {
	ctx, engine := context.Background(), tabletest.NewEngine()
	tbl := openTable(ctx, engine)
	key := keys.NewKey("VISITS", "VISITS")
	if err := tbl.Write(ctx, table.Update(key, table.Attr("hits").Set(10))); err != nil {
		log.Fatal(err)
	}
	rows := engine.Snapshot()
	for _, n := range []int{1, 5} {
		engine.Restore(rows)
		item, err := tbl.Apply(ctx, table.Update(key, table.Attr("hits").Add(n)), table.ReturnNew)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(item["hits"].(*types.AttributeValueMemberN).Value)
	}
	// Output:
	// 11
	// 15
}

// Time to live without waiting: the clock is a variable of the test. Expired items stay until Sweep, as in DynamoDB.
func ExampleEngine_Sweep() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ctx, engine := context.Background(), tabletest.NewEngine(tabletest.WithClock(func() time.Time { return now }))
	tbl := openTable(ctx, engine) // Ensure enables time to live on the attribute ttl
	if err := tbl.Write(ctx, table.Update(keys.NewKey("CODE#1", "CODE"), table.Attr("ttl").Set(now.Add(time.Hour).Unix()))); err != nil {
		log.Fatal(err)
	}
	fmt.Println("deleted:", engine.Sweep())
	now = now.Add(2 * time.Hour)
	fmt.Println("deleted:", engine.Sweep())
	// Output:
	// deleted: 0
	// deleted: 1
}

// A program in another process, or in another language, uses the engine through an address.
func ExampleEngine_Listen() {
	engine := tabletest.NewEngine()
	url, err := engine.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	client := dynamodb.New(dynamodb.Options{
		Region: tabletest.Region, BaseEndpoint: &url, Credentials: aws.AnonymousCredentials{},
	})
	out, err := client.ListTables(context.Background(), &dynamodb.ListTablesInput{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(out.TableNames), engine.Close())
	// Output: 0 <nil>
}

// Outside tests, NewEngine is used and closed like any other resource.
func ExampleNewEngine() {
	engine := tabletest.NewEngine()
	defer func() { _ = engine.Close() }()
	ctx, client := context.Background(), engine.Client()

	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("app"),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 aws.String("app"),
		Key:                       map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "visits"}},
		UpdateExpression:          aws.String("ADD hits :one"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		ReturnValues:              types.ReturnValueUpdatedNew,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Attributes["hits"].(*types.AttributeValueMemberN).Value)
	// Output: 1
}

// The reply to the first request is lost. The SDK sends it again, and the counter shows that it was applied twice.
func ExampleEngine_Inject() {
	engine := tabletest.NewEngine()
	ctx, client := context.Background(), engine.Client()
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("app"),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Times: 1})
	out, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 aws.String("app"),
		Key:                       map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "visits"}},
		UpdateExpression:          aws.String("ADD hits :one"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		ReturnValues:              types.ReturnValueUpdatedNew,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Attributes["hits"].(*types.AttributeValueMemberN).Value)
	// Output: 2
}

// In a test, New closes the engine at the end.
func ExampleNew() {
	// As a test of the application: func TestVisits(t *testing.T).
	_ = func(t *testing.T) {
		client := tabletest.New(t).Client()
		if _, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil {
			t.Fatal(err)
		}
	}
}
