package tabletest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/table/tabletest"
)

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
