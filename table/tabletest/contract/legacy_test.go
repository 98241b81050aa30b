package contract_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"
)

// Captured from the service by ExtendDB, pull request 213.
func TestConditionalOperator_NeedsTwoConditions(t *testing.T) {
	const (
		one   = `{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"x"}]}}`
		two   = `{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"x"}]},"b":{"ComparisonOperator":"NULL"}}`
		wrong = `{"a":{"ComparisonOperator":"BETWEEN","AttributeValueList":[{"S":"x"}]}}`

		many   = "ConditionalOperator can only be used when Filter or Expected has two or more elements"
		none   = "ConditionalOperator cannot be used without Filter or Expected"
		number = "One or more parameter values were invalid: Invalid number of argument(s) for the BETWEEN ComparisonOperator"
	)
	onTable(t, func(tb table) {
		tb.put("i", document{"a": "x"})
		for _, op := range []struct{ name, param, rest string }{
			{"Scan", "ScanFilter", ""},
			{"Query", "QueryFilter", `,"KeyConditions":{"pk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"i"}]}}`},
			{"PutItem", "Expected", `,"Item":{"pk":{"S":"i"},"sk":{"S":"-"},"a":{"S":"x"}}`},
			{"UpdateItem", "Expected", `,"Key":{"pk":{"S":"i"},"sk":{"S":"-"}},"AttributeUpdates":{"a":{"Action":"PUT","Value":{"S":"x"}}}`},
			{"DeleteItem", "Expected", `,"Key":{"pk":{"S":"other"},"sk":{"S":"-"}}`},
		} {
			send := func(conditions string) error {
				return tb.raw(op.name, `{"TableName":"TABLE","ConditionalOperator":"OR","`+op.param+`":`+conditions+op.rest+`}`)
			}
			tb.refused(send(one), many)
			tb.refused(send(wrong), number)
			tb.refused(send(`{}`), none)
			require.NoError(tb, send(two), op.name)
		}
		_, err := tb.Scan(tb.ctx(), &dynamodb.ScanInput{TableName: tb.name, ConditionalOperator: "AND", AttributesToGet: []string{"a"}})
		tb.refused(err, none)
	})
}

// KeyConditions can stand beside all expressions but KeyConditionExpression.
func TestQuery_NamesKeyConditionsOnlyBesideTheirExpression(t *testing.T) {
	const mixed = "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: "
	onTable(t, func(tb table) {
		query := func(rest string) error {
			return tb.raw("Query", `{"TableName":"TABLE","KeyConditions":{"pk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"p"}]}},`+rest+`}`)
		}
		require.NoError(tb, query(`"FilterExpression":"attribute_exists(a)"`))
		tb.refused(query(`"QueryFilter":{"a":{"ComparisonOperator":"NULL"}},"FilterExpression":"attribute_exists(a)"`), mixed+"{QueryFilter} Expression parameters: {FilterExpression}")
		tb.refused(query(`"AttributesToGet":["a"],"ProjectionExpression":"a"`), mixed+"{AttributesToGet} Expression parameters: {ProjectionExpression}")
		tb.refused(query(`"QueryFilter":{"a":{"ComparisonOperator":"NULL"}},"KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"p"}}`),
			mixed+"{QueryFilter, KeyConditions} Expression parameters: {KeyConditionExpression}")
	})
}
