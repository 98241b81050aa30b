package tabletest_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table/tabletest"
)

// TestExpected_TakesItsOperandAsValue pins the form in which an operator meets the older Value member.
func TestExpected_TakesItsOperandAsValue(t *testing.T) {
	client := tabletest.New(t).Client()
	name := aws.String("expected")
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            name,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
	put := func(expected map[string]types.ExpectedAttributeValue) error {
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: name,
			Item: map[string]types.AttributeValue{
				"id": &types.AttributeValueMemberS{Value: "x"},
				"n":  &types.AttributeValueMemberN{Value: "5"},
			},
			Expected: expected,
		})
		return err
	}
	require.NoError(t, put(nil))
	for _, tc := range []struct {
		name  string
		op    types.ComparisonOperator
		value string
		holds bool
	}{
		{"equal", types.ComparisonOperatorEq, "5", true},
		{"not equal", types.ComparisonOperatorEq, "6", false},
		{"greater", types.ComparisonOperatorGt, "4", true},
		{"not greater", types.ComparisonOperatorGt, "5", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := put(map[string]types.ExpectedAttributeValue{"n": {
				ComparisonOperator: tc.op, Value: &types.AttributeValueMemberN{Value: tc.value},
			}})
			if tc.holds {
				require.NoError(t, err)
				return
			}
			var failed *types.ConditionalCheckFailedException
			require.ErrorAs(t, err, &failed)
		})
	}
}
