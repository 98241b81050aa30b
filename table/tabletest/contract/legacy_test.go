package contract_test

import (
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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

func TestExpected_ComparesAsItsOperatorSays(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("i", document{"n": number("5"), "s": "bcd", "b": []byte("bcd"), "l": list{"x", number("1")}, "ss": stringSet{"x", "y"}, "ns": numberSet{"1"}, "bs": binarySet{[]byte("x")}})
		for _, c := range []struct {
			attribute, operator, operands string
			holds                         bool
		}{
			{"n", "NE", `{"N":"5.0"}`, false},
			{"n", "NE", `{"N":"6"}`, true},
			{"n", "NE", `{"S":"5"}`, true},
			{"missing", "NE", `{"N":"5"}`, true},
			{"n", "IN", `{"N":"4"},{"N":"5"}`, true},
			{"n", "IN", `{"N":"4"}`, false},
			{"missing", "IN", `{"N":"4"}`, false},
			{"s", "CONTAINS", `{"S":"cd"}`, true},
			{"s", "CONTAINS", `{"S":"x"}`, false},
			{"b", "CONTAINS", `{"B":"Y2Q="}`, true},
			{"l", "CONTAINS", `{"N":"1"}`, true},
			{"ss", "CONTAINS", `{"S":"x"}`, true},
			{"ns", "CONTAINS", `{"N":"1.0"}`, true},
			{"bs", "CONTAINS", `{"B":"eA=="}`, true},
			{"n", "CONTAINS", `{"N":"5"}`, false},
			{"s", "NOT_CONTAINS", `{"S":"x"}`, true},
			{"s", "NOT_CONTAINS", `{"S":"cd"}`, false},
			{"ss", "NOT_CONTAINS", `{"S":"z"}`, true},
			{"missing", "NOT_CONTAINS", `{"S":"z"}`, false},
			{"s", "BEGINS_WITH", `{"S":"bc"}`, true},
			{"s", "BEGINS_WITH", `{"S":"c"}`, false},
			{"b", "BEGINS_WITH", `{"B":"Yg=="}`, true},
			{"s", "BEGINS_WITH", `{"B":"Yg=="}`, false},
			{"n", "LT", `{"N":"6"}`, true},
			{"n", "LT", `{"N":"5"}`, false},
			{"n", "LE", `{"N":"5"}`, true},
			{"n", "LE", `{"N":"4"}`, false},
			{"n", "GE", `{"N":"5"}`, true},
			{"n", "GE", `{"N":"6"}`, false},
			{"s", "GT", `{"S":"b"}`, true},
			{"s", "GT", `{"N":"1"}`, false},
			{"missing", "LT", `{"N":"1"}`, false},
			{"n", "BETWEEN", `{"N":"5"},{"N":"5"}`, true},
			{"n", "BETWEEN", `{"N":"1"},{"N":"4"}`, false},
			{"n", "BETWEEN", `{"N":"6"},{"N":"7"}`, false},
			{"s", "BETWEEN", `{"S":"b"},{"S":"c"}`, true},
		} {
			err := tb.raw("UpdateItem", `{"TableName":"TABLE","Key":{"pk":{"S":"p"},"sk":{"S":"i"}},"Expected":{"`+c.attribute+`":{"ComparisonOperator":"`+c.operator+`","AttributeValueList":[`+c.operands+`]}}}`)
			if c.holds {
				require.NoError(tb, err, "%v", c)
			} else {
				require.ErrorContains(tb, err, "ConditionalCheckFailedException", "%v", c)
			}
		}
	})
}

// A condition's operands are checked before its name.
func TestLegacyConditions_HaveNames(t *testing.T) {
	onTable(t, func(tb table) {
		const empty = "Empty attribute name"
		tb.refused(tb.raw("Scan", `{"TableName":"TABLE","ScanFilter":{"":{"ComparisonOperator":"NULL"}}}`), empty)
		tb.refused(tb.raw("Scan", `{"TableName":"TABLE","ScanFilter":{"":{"ComparisonOperator":"EQ"}}}`), "Invalid number of argument(s) for the EQ ComparisonOperator")
		tb.refused(tb.raw("DeleteItem", `{"TableName":"TABLE","Key":{"pk":{"S":"p"},"sk":{"S":"i"}},"Expected":{"":{"Exists":false}}}`), empty)
	})
}

func TestExpected_RefusesWhatDoesNotFitTogether(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("i", document{"n": number("5")})
		send := func(expected string) error {
			return tb.raw("UpdateItem", `{"TableName":"TABLE","Key":{"pk":{"S":"p"},"sk":{"S":"i"}},"Expected":{"n":{`+expected+`}}}`)
		}
		for expected, text := range map[string]string{
			`"AttributeValueList":[{"N":"5"}],"Value":{"N":"5"},"ComparisonOperator":"EQ"`: "Value and AttributeValueList cannot be used together for Attribute: n",
			`"Exists":true,"ComparisonOperator":"NOT_NULL"`:                                "Exists and ComparisonOperator cannot be used together for Attribute: n",
			`"ComparisonOperator":"EQ"`:                                                    "Value or AttributeValueList must be used with ComparisonOperator: EQ for Attribute: n",
			`"AttributeValueList":[{"N":"5"}]`:                                             "AttributeValueList can only be used with a ComparisonOperator for Attribute: n",
			``:                                                                             "Value must be provided when Exists is null for Attribute: n",
			`"Exists":true`:                                                                "Value must be provided when Exists is true for Attribute: n",
			`"Exists":false,"Value":{"N":"5"}`:                                             "Value cannot be used when Exists is false for Attribute: n",
			`"ComparisonOperator":"BEGINS_WITH","AttributeValueList":[{"N":"5"}]`:  "ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type",
			`"ComparisonOperator":"LT","AttributeValueList":[{"SS":["a"]}]`:        "ComparisonOperator LT is not valid for SS AttributeValue type",
			`"ComparisonOperator":"IN","AttributeValueList":[{"S":"a"},{"N":"5"}]`: "AttributeValues inside AttributeValueList must be of same type",
			`"ComparisonOperator":"IN","AttributeValueList":[]`:                    "Invalid number of argument(s) for the IN ComparisonOperator",
			`"Value":{}`: "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
			`"ComparisonOperator":"EQ","AttributeValueList":[{}]`: "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
		} {
			tb.refused(send(expected), text)
		}
		tb.refused(send(`"ComparisonOperator":"BETWEEN","AttributeValueList":[{"N":"5"},{"N":"4"}]`), "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound")
		for _, holds := range []string{`"Value":{"N":"5.0"}`, `"Exists":true,"Value":{"N":"5"}`} {
			require.NoError(tb, send(holds))
		}
		for _, fails := range []string{`"Value":{"N":"6"}`, `"Exists":false`} {
			require.ErrorContains(tb, send(fails), "ConditionalCheckFailedException")
		}
	})
}

func TestAttributeUpdates_DoWhatTheirActionSays(t *testing.T) {
	onTable(t, func(tb table) {
		before := document{"n": number("5"), "s": "x", "ss": stringSet{"x", "y"}, "ns": numberSet{"1"}, "bs": binarySet{[]byte("x")}, "l": list{"a"}}
		with := func(name string, v any) document {
			after := maps.Clone(before)
			if after[name] = v; v == nil {
				delete(after, name)
			}
			return after
		}
		send := func(sk, name, update string) error {
			return tb.raw("UpdateItem", `{"TableName":"TABLE","Key":{"pk":{"S":"p"},"sk":{"S":"`+sk+`"}},"AttributeUpdates":{"`+name+`":{`+update+`}}}`)
		}
		for _, c := range []struct {
			name, update string
			after        any
		}{
			{"s", `"Action":"PUT","Value":{"N":"1"}`, number("1")},
			{"s", `"Action":"DELETE"`, nil},
			{"new", `"Action":"DELETE"`, nil},
			{"n", `"Action":"ADD","Value":{"N":"-7"}`, number("-2")},
			{"new", `"Action":"ADD","Value":{"N":"1"}`, number("1")},
			{"new", `"Action":"ADD","Value":{"SS":["a"]}`, stringSet{"a"}},
			{"ss", `"Action":"ADD","Value":{"SS":["y","z"]}`, stringSet{"x", "y", "z"}},
			{"ns", `"Action":"ADD","Value":{"NS":["1","2"]}`, numberSet{"1", "2"}},
			{"bs", `"Action":"DELETE","Value":{"BS":["eA=="]}`, nil},
			{"ss", `"Action":"DELETE","Value":{"SS":["y","z"]}`, stringSet{"x"}},
			{"new", `"Action":"DELETE","Value":{"SS":["y"]}`, nil},
			{"l", `"Action":"ADD","Value":{"L":[{"S":"b"},{"S":"a"}]}`, list{"a", "b", "a"}},
			{"new", `"Action":"ADD","Value":{"L":[{"S":"b"}]}`, list{"b"}},
		} {
			tb.put("i", before)
			require.NoError(tb, send("i", c.name, c.update), "%v", c)
			tb.holds("i", with(c.name, c.after))
		}
		if !tb.local() { // which does nothing without an action
			require.NoError(tb, send("i", "new", `"Value":{"S":"x"}`))
			tb.holds("i", document{"l": list{"a"}, "n": number("5"), "s": "x", "ss": stringSet{"x", "y"}, "ns": numberSet{"1"}, "bs": binarySet{[]byte("x")}, "new": "x"})
		}
		require.NoError(tb, send("none", "a", `"Action":"DELETE"`))
		require.NoError(tb, send("none", "a", `"Action":"DELETE","Value":{"SS":["x"]}`))
		if !tb.local() { // which creates the item
			require.Empty(tb, tb.get("none"))
		}
		require.NoError(tb, send("added", "a", `"Action":"ADD","Value":{"N":"1"}`))
		tb.holds("added", document{"a": number("1")})

		for _, c := range []struct{ name, update, text string }{
			{"a", `"Action":"PUT"`, "Only DELETE action is allowed when no attribute value is specified"},
			{"a", `"Action":"ADD"`, "Only DELETE action is allowed when no attribute value is specified"},
			{"a", `"Action":"ADD","Value":{"S":"x"}`, "ADD action is not supported for the type S"},
			{"a", `"Action":"ADD","Value":{"M":{}}`, "ADD action is not supported for the type M"},
			{"a", `"Action":"DELETE","Value":{"N":"1"}`, "DELETE action with value is not supported for the type N"},
			{"a", `"Action":"DELETE","Value":{"L":[]}`, "DELETE action with value is not supported for the type L"},
			{"s", `"Action":"ADD","Value":{"N":"1"}`, "Type mismatch for attribute to update"},
			{"ss", `"Action":"DELETE","Value":{"NS":["1"]}`, "Type mismatch for attribute to update"},
			{"pk", `"Action":"PUT","Value":{"S":"x"}`, "Cannot update attribute pk. This attribute is part of the key"},
			{"a", `"Action":"PUT","Value":{"SS":[]}`, "An string set  may not be empty"},
			{"gpk", `"Action":"PUT","Value":{"N":"1"}`, "Type mismatch for Index Key gpk | Type mismatch for Index Key"},
		} {
			tb.put("i", before)
			tb.refused(send("i", c.name, c.update), c.text)
		}
	})
}

func TestAttributesToGet_NameAttributes(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("i", document{"a": "x", "b.c": "y"})
		out, err := tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: tb.name, Key: key("i"), AttributesToGet: []string{"b.c", "missing"}})
		require.NoError(tb, err)
		same(tb, item(document{"b.c": "y"}), out.Item)
		_, err = tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: tb.name, Key: key("i"), AttributesToGet: []string{"a", "b", "a"}})
		tb.refused(err, "Duplicate value in attribute name: a | two attributes with the same name")
		tb.refused(tb.raw("Scan", `{"TableName":"TABLE","AttributesToGet":["a",null]}`), "Empty attribute name")
		for _, c := range []struct{ what, text string }{
			{"ALL_ATTRIBUTES", "Cannot specify the AttributesToGet when choosing to get ALL_ATTRIBUTES"},
			{"ALL_PROJECTED_ATTRIBUTES", "Cannot specify the AttributesToGet when choosing to get ALL_PROJECTED_ATTRIBUTES"},
			{"COUNT", "Cannot specify the AttributesToGet when choosing to get only the Count"},
		} {
			_, err := tb.Scan(tb.ctx(), &dynamodb.ScanInput{TableName: tb.name, AttributesToGet: []string{"a"}, Select: types.Select(c.what)})
			tb.refused(err, c.text)
		}
		_, err = tb.Scan(tb.ctx(), &dynamodb.ScanInput{TableName: tb.name, Select: types.SelectAllProjectedAttributes})
		tb.refused(err, "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	})
}
