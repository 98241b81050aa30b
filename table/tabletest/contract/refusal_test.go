package contract_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Operations on items say that something is missing, those on tables say
// which table.
func TestMissingTable_IsNamedByOperationsOnTables(t *testing.T) {
	const (
		code  = "ResourceNotFoundException"
		items = "Requested resource not found"
		local = "Cannot do operations on a non-existent table"
	)
	for op, tc := range map[string]struct{ body, code, text, local string }{
		"GetItem":                   {`{"TableName":"no-such","Key":{"pk":{"S":"p"}}}`, code, items, local},
		"PutItem":                   {`{"TableName":"no-such","Item":{"pk":{"S":"p"}}}`, code, items, local},
		"UpdateItem":                {`{"TableName":"no-such","Key":{"pk":{"S":"p"}}}`, code, items, local},
		"DeleteItem":                {`{"TableName":"no-such","Key":{"pk":{"S":"p"}}}`, code, items, local},
		"Scan":                      {`{"TableName":"no-such"}`, code, items, local},
		"Query":                     {`{"TableName":"no-such","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"p"}}}`, code, items, local},
		"BatchGetItem":              {`{"RequestItems":{"no-such":{"Keys":[{"pk":{"S":"p"}}]}}}`, code, items, local},
		"BatchWriteItem":            {`{"RequestItems":{"no-such":[{"DeleteRequest":{"Key":{"pk":{"S":"p"}}}}]}}`, code, items, local},
		"TransactGetItems":          {`{"TransactItems":[{"Get":{"TableName":"no-such","Key":{"pk":{"S":"p"}}}}]}`, code, items, local},
		"TransactWriteItems":        {`{"TransactItems":[{"Delete":{"TableName":"no-such","Key":{"pk":{"S":"p"}}}}]}`, code, items, local},
		"DescribeTable":             {`{"TableName":"no-such"}`, code, items + ": Table: no-such not found", local},
		"DeleteTable":               {`{"TableName":"no-such"}`, code, items + ": Table: no-such not found", local},
		"UpdateTable":               {`{"TableName":"no-such","BillingMode":"PAY_PER_REQUEST"}`, code, items + ": Table: no-such not found", local},
		"DescribeTimeToLive":        {`{"TableName":"no-such"}`, code, items + ": Table: no-such not found", local},
		"UpdateTimeToLive":          {`{"TableName":"no-such","TimeToLiveSpecification":{"AttributeName":"a","Enabled":true}}`, code, items + ": Table: no-such not found", local},
		"UpdateContinuousBackups":   {`{"TableName":"no-such","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`, "TableNotFoundException", "Table not found: no-such", ""},
		"DescribeContinuousBackups": {`{"TableName":"no-such"}`, "TableNotFoundException", "Table not found: no-such", ""},
	} {
		t.Run(op, func(t *testing.T) {
			onTable(t, func(tb table) {
				err := tb.raw(op, tc.body)
				if tb.local() && tc.local == "" {
					return // it has no backups
				}
				tb.exactly(err, tc.code, tc.text, tc.local)
			})
		})
	}
}

// What is wrong with values and expressions is reported before the table is
// looked for. DynamoDB Local looks for it first.
func TestValues_AreJudgedBeforeTheTable(t *testing.T) {
	for _, tc := range []struct{ name, op, body, text string }{
		{"put", "PutItem", `{"TableName":"no-such","Item":{"pk":{"SS":[]}}}`, "One or more parameter values were invalid: An string set  may not be empty"},
		{"size of a put", "PutItem", `{"TableName":"no-such","Item":{"pk":{"S":"` + strings.Repeat("x", 400<<10) + `"}}}`, "Item size has exceeded the maximum allowed size"},
		{"condition", "PutItem", `{"TableName":"no-such","Item":{"pk":{"S":"p"}},"ConditionExpression":""}`, "Invalid ConditionExpression: The expression can not be empty;"},
		{"return values", "PutItem", `{"TableName":"no-such","Item":{"pk":{"S":"p"}},"ReturnValues":"ALL_NEW"}`, "ReturnValues can only be ALL_OLD or NONE"},
		{"key", "GetItem", `{"TableName":"no-such","Key":{"pk":{"N":"x"}}}`, "The parameter cannot be converted to a numeric value: x"},
		{"update", "UpdateItem", `{"TableName":"no-such","Key":{"pk":{"S":"p"}},"UpdateExpression":"SET a = :a"}`, "Invalid UpdateExpression: An expression attribute value used in expression is not defined; attribute value: :a"},
		{"batch of reads", "BatchGetItem", `{"RequestItems":{"no-such":{"Keys":[{"pk":{"N":""}}]}}}`, "The parameter cannot be converted to a numeric value"},
		{"keys of a batch", "BatchGetItem", `{"RequestItems":{"no-such":{"Keys":[{"pk":{"S":"p"}},{"pk":{"S":"p"}}]}}}`, "Provided list of item keys contains duplicates"},
		{"batch of writes", "BatchWriteItem", `{"RequestItems":{"no-such":[{"PutRequest":{"Item":{"pk":{"NS":["1","1.0"]}}}}]}}`, "Input collection contains duplicates"},
		{"transaction", "TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"no-such","Item":{"pk":{"SS":["a","a"]}}}}]}`, "One or more parameter values were invalid: Input collection [a, a] contains duplicates."},
		{"query", "Query", `{"TableName":"no-such"}`, "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				err := tb.raw(tc.op, tc.body)
				if tb.local() {
					require.Error(tb, err)
					return
				}
				tb.exactly(err, "ValidationException", tc.text, "")
			})
		})
	}
}

// What is wrong within a value is reported before that it has several types.
func TestValues_ThatNoAttributeCanHaveAreRefused(t *testing.T) {
	const invalid = "One or more parameter values were invalid: "
	onTable(t, func(tb table) {
		for value, text := range map[string]string{
			`null`:                      "The supplied Item contains a null AttributeValue",
			`{"BS":[]}`:                 invalid + "Binary sets should not be empty",
			`{"BS":["eA==","eA=="]}`:    invalid + "Input collection [eA==, eA==]of type BS contains duplicates. | Input collection of type BS contains duplicates.",
			`{"SS":["a",null]}`:         invalid + "An string set may not have a null string as a member",
			`{"NS":["1","x"]}`:          "The parameter cannot be converted to a numeric value: x | A value provided cannot be converted into a number",
			`{"M":{"":{"S":"x"}}}`:      "Empty attribute name",
			`{"N":"1","SS":["a","a"]}`:  invalid + "Input collection [a, a] contains duplicates",
			`{"S":"a","N":"x"}`:         "The parameter cannot be converted to a numeric value: x | A value provided cannot be converted into a number",
			`{"S":"a","NULL":false}`:    invalid + "Null attribute value types must have the value of true",
			`{"L":[{"S":"a","N":"1"}]}`: "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes",
		} {
			tb.refused(tb.raw("PutItem", `{"TableName":"TABLE","Item":{"pk":{"S":"p"},"sk":{"S":"i"},"x":`+value+`}}`), text)
		}
		require.Empty(tb, tb.get("i"))
	})
}

func TestKey_ThatDoesNotFitTheSchemaIsRefused(t *testing.T) {
	const (
		mismatch = "The provided key element does not match the schema"
		empty    = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: pk"
		hash     = "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes"
		sort     = "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
		tooLong  = "Hash primary key values must be under 2048 bytes"
	)
	for _, tc := range []struct {
		name           string
		key            document
		service, local string
	}{
		{"no key", document{}, mismatch, "number of conditions on the keys"},
		{"half a key", document{"pk": "p"}, mismatch, "number of conditions on the keys"},
		{"more than the key", document{"pk": "p", "sk": "s", "x": "y"}, mismatch, "number of conditions on the keys"},
		{"another attribute", document{"pk": "p", "x": "y"}, mismatch, "One of the required keys was not given a value"},
		{"another type", document{"pk": 1, "sk": "s"}, mismatch, "Type mismatch for key"},
		{"a type that no key has", document{"pk": list{}, "sk": "s"}, mismatch, "Invalid attribute value type"},
		{"an empty key", document{"pk": "", "sk": "s"}, empty, empty},
		{"a long partition key", document{"pk": strings.Repeat("k", 2049), "sk": "s"}, hash, tooLong},
		{"a long sort key", document{"pk": "p", "sk": strings.Repeat("k", 1025)}, sort, tooLong},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				k := item(tc.key)
				_, err := tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: tb.name, Key: k})
				tb.exactly(err, "ValidationException", tc.service, tc.local)
				_, err = tb.DeleteItem(tb.ctx(), &dynamodb.DeleteItemInput{TableName: tb.name, Key: k})
				tb.exactly(err, "ValidationException", tc.service, tc.local)
				_, err = tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{TableName: tb.name, Key: k})
				tb.exactly(err, "ValidationException", tc.service, tc.local)
				_, err = tb.BatchGetItem(tb.ctx(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{*tb.name: {Keys: []map[string]types.AttributeValue{k}}}})
				if !tb.local() {
					tb.exactly(err, "ValidationException", tc.service, tc.local)
				}
				_, write := tb.TransactWriteItems(tb.ctx(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Delete: &types.Delete{TableName: tb.name, Key: k}}}})
				_, read := tb.TransactGetItems(tb.ctx(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{{Get: &types.Get{TableName: tb.name, Key: k}}}})
				for _, err := range []error{write, read} {
					switch {
					case tb.local():
						require.Error(tb, err)
					case tc.service != empty:
						_, reasons := cancelled(tb, err)
						assert.Equal(tb, "ValidationError", aws.ToString(reasons[0].Code))
						assert.Equal(tb, tc.service, aws.ToString(reasons[0].Message))
					default:
						tb.exactly(err, "ValidationException", tc.service, "")
					}
				}
			})
		})
	}
}

func TestItem_ThatDoesNotFitTheSchemaIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name           string
		item           document
		service, local string
	}{
		{"no sort key", document{"pk": "p"}, "One or more parameter values were invalid: Missing the key sk in the item", "One of the required keys"},
		{"type of a key", document{"pk": "p", "sk": 1}, "One or more parameter values were invalid: Type mismatch for key sk expected: S actual: N", "Type mismatch for key"},
		{"type of an index key", document{"pk": "p", "sk": "s", "gsk": nil}, "One or more parameter values were invalid: Type mismatch for Index Key gsk Expected: N Actual: NULL IndexName: gsi", "Invalid attribute value type"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				it := item(tc.item)
				_, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: it})
				tb.exactly(err, "ValidationException", tc.service, tc.local)
				batch := tc.service
				if tc.item["gsk"] == nil && len(tc.item) < 3 { // a batch names keys differently
					batch = "The provided key element does not match the schema"
				}
				_, err = tb.BatchWriteItem(tb.ctx(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{*tb.name: {{PutRequest: &types.PutRequest{Item: it}}}}})
				tb.exactly(err, "ValidationException", batch, tc.local)
			})
		})
	}
}

func TestAttributeNames_HaveLimits(t *testing.T) {
	long := strings.Repeat("n", 1<<16)
	const tooLong = "Attribute name is too large, must be less than 65536 bytes"
	onTable(t, func(tb table) {
		_, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: keyed("i", document{long: 1})})
		if tb.local() {
			require.Error(tb, err) // it fails internally, for a shorter name, too
		} else {
			tb.put("ok", document{long[1:]: 1})
			tb.exactly(err, "ValidationException", tooLong, "")
			_, err = tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: tb.name, Key: key("i"), AttributesToGet: []string{long}})
			tb.exactly(err, "ValidationException", tooLong, "")
			_, err = tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{TableName: tb.name, Key: key("i"), AttributeUpdates: map[string]types.AttributeValueUpdate{long: {Value: value(1)}}})
			tb.exactly(err, "ValidationException", tooLong, "")
		}
		_, err = tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: tb.name, Key: key("i"), ProjectionExpression: ptr("#n"), ExpressionAttributeNames: names("#n", long)})
		tb.exactly(err, "ValidationException", "ExpressionAttributeNames contains invalid value: "+tooLong+" for key #n", tooLong)
	})
}

// The size is told only of conditions and filters. DynamoDB Local tells it of key conditions, too.
func TestExpressions_HaveAMaximumSize(t *testing.T) {
	const tooLarge = ": Expression size has exceeded the maximum allowed size;"
	onTable(t, func(tb table) {
		_, update := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{TableName: tb.name, Key: key("i"), UpdateExpression: ptr("REMOVE " + strings.Repeat("a", 4090))})
		_, get := tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: tb.name, Key: key("i"), ProjectionExpression: ptr(strings.Repeat("a", 4097))})
		condition := "attribute_exists(" + strings.Repeat("a", 4079) + ")"
		_, remove := tb.DeleteItem(tb.ctx(), &dynamodb.DeleteItemInput{TableName: tb.name, Key: key("i"), ConditionExpression: &condition})
		_, scan := tb.Scan(tb.ctx(), &dynamodb.ScanInput{TableName: tb.name, FilterExpression: &condition})
		for text, err := range map[string]error{
			"Invalid UpdateExpression" + tooLarge:                               update,
			"Invalid ProjectionExpression" + tooLarge:                           get,
			"Invalid ConditionExpression" + tooLarge + " expression size: 4097": remove,
			"Invalid FilterExpression" + tooLarge + " expression size: 4097":    scan,
		} {
			tb.exactly(err, "ValidationException", text, text)
		}
		_, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{TableName: tb.name, KeyConditionExpression: ptr("pk = :p AND " + strings.Repeat("a", 4085)), ExpressionAttributeValues: values(document{"p": "p"})})
		text := "Invalid KeyConditionExpression" + tooLarge
		tb.exactly(err, "ValidationException", text, text+" expression size: 4097")
		_, err = tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: tb.name, Key: key("i"), ProjectionExpression: ptr(strings.Repeat("a", 4096))})
		require.NoError(tb, err)
	})
}

// The service reads exponents of up to 64 bits, and checks that of a zero.
// DynamoDB Local reads 32 bits, and checks no zero.
func TestNumbers_AreRefusedInTheServicesWords(t *testing.T) {
	const (
		overflow  = "Number overflow. Attempting to store a number with magnitude larger than supported range"
		underflow = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
		accepted  = ""
	)
	for _, tc := range []struct{ number, service, local string }{
		{"", "The parameter cannot be converted to a numeric value", "cannot be converted into a number"},
		{"abc", "The parameter cannot be converted to a numeric value: abc", "cannot be converted into a number"},
		{strings.Repeat("1", 39), "Attempting to store more than 38 significant digits in a Number", "supports precision up to 38 digits"},
		{"1e99999999999", overflow, "cannot be converted into a number"},
		{"1e-99999999999", underflow, "cannot be converted into a number"},
		{"1e9223372036854775807", overflow, "cannot be converted into a number"},
		{"1e9223372036854775808", "The parameter cannot be converted to a numeric value: 1e9223372036854775808", "cannot be converted into a number"},
		{"0e126", overflow, accepted},
		{"0e-131", underflow, accepted},
	} {
		t.Run(tc.number, func(t *testing.T) {
			onTable(t, func(tb table) {
				_, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: keyed("i", document{"n": number(tc.number)})})
				if tb.local() && tc.local == accepted {
					require.NoError(tb, err)
					return
				}
				tb.exactly(err, "ValidationException", tc.service, tc.local)
			})
		})
	}
	t.Run("zeros", func(t *testing.T) {
		onTable(t, func(tb table) {
			tb.put("i", document{"a": number("0e125"), "b": number("0e-130"), "c": number("0.000"), "d": number("-0E+3")})
			tb.holds("i", document{"a": 0, "b": 0, "c": 0, "d": 0})
		})
	})
	t.Run("sum", func(t *testing.T) {
		onTable(t, func(tb table) {
			_, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{
				TableName: tb.name, Key: key("i"), UpdateExpression: ptr("SET n = :a + :b"),
				ExpressionAttributeValues: values(document{"a": number("1e50"), "b": 1}),
			})
			tb.exactly(err, "ValidationException", overflow, "supports precision up to 38 digits")
		})
	})
}
