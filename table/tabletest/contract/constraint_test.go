package contract_test

import (
	"strings"
	"testing"
)

// What a request may hold is checked before anything else, and all that is
// wrong is named in one error. DynamoDB Local checks little of it, and mostly
// in other words.
func TestConstraints_AreNamedTogether(t *testing.T) {
	const (
		metrics  = "Value 'INVALID' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must satisfy enum value set: [SIZE, NONE]"
		capacity = "Value 'INVALID' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
		returns  = "Value 'INVALID' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"
		name     = "Value '' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 1"
		key      = "Value null at 'key' failed to satisfy constraint: Member must not be null"
		anything = ""
	)
	token := strings.Repeat("t", 37)
	index := func(name string) string {
		return `{"IndexName":"` + name + `","KeySchema":[{"AttributeName":"a","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}`
	}
	for _, tc := range []struct{ name, op, body, service, local string }{
		{
			"three parameters of a put", "PutItem",
			`{"TableName":"TABLE","Item":{"pk":{"S":"p"}},"ReturnConsumedCapacity":"INVALID","ReturnItemCollectionMetrics":"INVALID","ReturnValues":"INVALID"}`,
			"3 validation errors detected: " + returns + "; " + capacity + "; " + metrics, "Return values set to invalid value",
		},
		{
			"two parameters of an update", "UpdateItem",
			`{"TableName":"TABLE","Key":{},"ReturnValues":"INVALID","ReturnConsumedCapacity":"INVALID"}`,
			"2 validation errors detected: " + capacity + "; " + returns, anything,
		},
		{
			"all of an update", "UpdateItem",
			`{"TableName":"","UpdateExpression":"SET a = :a","ExpressionAttributeValues":{":a":{"S":"x"}},"ReturnConsumedCapacity":"INVALID","ReturnValues":"INVALID"}`,
			"4 validation errors detected: " + capacity + "; " + name + "; " + returns + "; " + key, anything,
		},
		{
			"no key and another operator", "UpdateItem",
			`{"TableName":"TABLE","AttributeUpdates":{},"Expected":{"a":{"Exists":false},"b":{"Exists":false}},"ConditionalOperator":"XOR"}`,
			"2 validation errors detected: Value 'XOR' at 'conditionalOperator' failed to satisfy constraint: Member must satisfy enum value set: [OR, AND]; " + key, anything,
		},
		{
			"token of a transaction", "TransactWriteItems",
			`{"TransactItems":[{"Delete":{"TableName":"TABLE","Key":{}}}],"ClientRequestToken":"` + token + `","ReturnConsumedCapacity":"INVALID","ReturnItemCollectionMetrics":"INVALID"}`,
			"3 validation errors detected: Value '" + token + "' at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal to 36; " +
				capacity + "; " + metrics, anything,
		},
		{
			"names of indexes", "CreateTable",
			`{"TableName":"TABLE-2","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"}],"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}],` +
				`"LocalSecondaryIndexes":[` + index("l1") + `],"GlobalSecondaryIndexes":[` + index("g1") + `]}`,
			"2 validation errors detected: Value 'g1' at 'globalSecondaryIndexes.1.member.indexName' failed to satisfy constraint: Member must have length greater than or equal to 3; " +
				"Value 'l1' at 'localSecondaryIndexes.1.member.indexName' failed to satisfy constraint: Member must have length greater than or equal to 3", anything,
		},
		{
			"a parameter and the name of the table", "PutItem", `{"TableName":"","Item":{},"ReturnValues":"INVALID"}`,
			"2 validation errors detected: " + returns + "; " + name, anything,
		},
		{
			"no table", "PutItem", `{"Item":{"pk":{"S":"p"}}}`,
			"1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null", "at 'tableName' failed to satisfy constraint",
		},
		{
			"no table to create", "CreateTable", `{"KeySchema":[],"AttributeDefinitions":[]}`,
			"The parameter 'TableName' is required but was not present in the request", anything,
		},
		{
			"short name", "PutItem", `{"TableName":"xx","Item":{"pk":{"S":"p"}}}`,
			"1 validation error detected: Value 'xx' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3", "Invalid table/index name",
		},
		{
			"long name", "GetItem", `{"TableName":"` + strings.Repeat("n", 256) + `","Key":{"pk":{"S":"p"}}}`,
			"1 validation error detected: Value '" + strings.Repeat("n", 256) + "' at 'tableName' failed to satisfy constraint: Member must have length less than or equal to 255", "Invalid table/index name",
		},
		{
			"odd name", "DeleteItem", `{"TableName":"bad table!@#","Key":{"pk":{"S":"p"}}}`,
			"1 validation error detected: Value 'bad table!@#' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+", "Invalid table/index name",
		},
		{
			"no keys in a batch", "BatchGetItem", `{"RequestItems":{"TABLE":{"Keys":[]}}}`,
			"1 validation error detected: Value at 'RequestItems.TABLE.member.Keys' failed to satisfy constraint: Member must have length greater than or equal to 1", "has empty list",
		},
		{"empty batch of reads", "BatchGetItem", `{"RequestItems":{}}`, "The requestItems parameter is required for BatchGetItem", "must have some requests set"},
		{"empty batch of writes", "BatchWriteItem", `{"RequestItems":{}}`, "The requestItems parameter is required for BatchWriteItem", "cannot have a null or no requests set"},
		{
			"empty list of writes", "BatchWriteItem", `{"RequestItems":{"TABLE":[]}}`,
			"1 validation error detected: Value '{TABLE=[]}' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]",
			"cannot be null or empty",
		},
		{
			"empty transaction", "TransactWriteItems", `{"TransactItems":[]}`,
			"1 validation error detected: Value '[]' at 'transactItems' failed to satisfy constraint: Member must have length greater than or equal to 1", "Member must have length greater than or equal to 1",
		},
		{
			"empty transaction of reads", "TransactGetItems", `{"TransactItems":[]}`,
			"1 validation error detected: Value '[]' at 'transactItems' failed to satisfy constraint: Member must have length greater than or equal to 1", "at 'transactItems' failed to satisfy constraint",
		},
		{
			"no condition to check", "TransactWriteItems", `{"TransactItems":[{"ConditionCheck":{"TableName":"TABLE","Key":{"pk":{"S":"p"},"sk":{"S":"s"}}}}]}`,
			"1 validation error detected: Value null at 'transactItems.1.member.conditionCheck.conditionExpression' failed to satisfy constraint: Member must not be null",
			"conditionCheck.conditionExpression",
		},
		{
			"limit of a query", "Query", `{"TableName":"TABLE","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"p"}},"Limit":0}`,
			"1 validation error detected: Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1", "Limit must be greater than or equal to 1",
		},
		{"name that is null", "Scan", `{"TableName":"TABLE","FilterExpression":"#a = #b","ExpressionAttributeNames":{"#a":"a","#b":null}}`, "ExpressionAttributeNames contains invalid value: Empty attribute name for key #b", "ExpressionAttributeNames contains invalid value: null for key #b"},
		{
			"limit of a scan", "Scan", `{"TableName":"TABLE","Limit":0}`,
			"1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1", "Limit must be greater than or equal to 1",
		},
		{
			"selection", "Query", `{"TableName":"TABLE","Select":"INVALID"}`,
			"1 validation error detected: Value 'INVALID' at 'select' failed to satisfy constraint: Member must satisfy enum value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]", anything,
		},
		{
			"segment without number of segments", "Scan", `{"TableName":"TABLE","Segment":0}`,
			"The TotalSegments parameter is required but was not present in the request when Segment parameter is present", "If segment is specified",
		},
		{
			"number of segments alone", "Scan", `{"TableName":"TABLE","TotalSegments":4}`,
			"The Segment parameter is required but was not present in the request when parameter TotalSegments is present", "If total segments is specified",
		},
		{
			"segment out of range", "Scan", `{"TableName":"TABLE","Segment":5,"TotalSegments":5}`,
			"The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: 5 is not less than TotalSegments: 5", "Value '5' at 'segment'",
		},
		{
			"operator of a filter", "Scan", `{"TableName":"TABLE","ScanFilter":{"a":{"ComparisonOperator":"eq","AttributeValueList":[{"S":"x"}]}}}`,
			"1 validation error detected: Value 'eq' at 'scanFilter.a.member.comparisonOperator' failed to satisfy constraint: Member must satisfy enum value set: [IN, NULL, BETWEEN, LT, NOT_CONTAINS, EQ, GT, NOT_NULL, NE, LE, BEGINS_WITH, GE, CONTAINS]",
			anything,
		},
		{
			"no attributes to get", "GetItem", `{"TableName":"TABLE","Key":{"pk":{"S":"p"},"sk":{"S":"s"}},"AttributesToGet":[]}`,
			"1 validation error detected: Value '[]' at 'attributesToGet' failed to satisfy constraint: Member must have length greater than or equal to 1", anything,
		},
		{
			"where a list of tables begins", "ListTables", `{"ExclusiveStartTableName":"a!","Limit":101}`,
			"3 validation errors detected: Value '101' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 100; " +
				"Value 'a!' at 'exclusiveStartTableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; " +
				"Value 'a!' at 'exclusiveStartTableName' failed to satisfy constraint: Member must have length greater than or equal to 3", anything,
		},
		{
			"three key attributes", "CreateTable",
			`{"TableName":"TABLE-2","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[],"KeySchema":[{"AttributeName":"a","KeyType":"HASH"},{"AttributeName":"b","KeyType":"RANGE"},{"AttributeName":"c","KeyType":"RANGE"}]}`,
			"1 validation error detected: Value '[KeySchemaElement(attributeName=a, keyType=HASH), KeySchemaElement(attributeName=b, keyType=RANGE), KeySchemaElement(attributeName=c, keyType=RANGE)]' at 'keySchema' failed to satisfy constraint: Member must have length less than or equal to 2",
			anything,
		},
		{
			"types of keys", "CreateTable",
			`{"TableName":"TABLE-2","BillingMode":"NONE","AttributeDefinitions":[{"AttributeName":"a","AttributeType":"BOOL"}],"KeySchema":[{"AttributeName":"a","KeyType":"SORT"}]}`,
			"3 validation errors detected: Value 'BOOL' at 'attributeDefinitions.1.member.attributeType' failed to satisfy constraint: Member must satisfy enum value set: [B, N, S]; " +
				"Value 'SORT' at 'keySchema.1.member.keyType' failed to satisfy constraint: Member must satisfy enum value set: [HASH, RANGE]; " +
				"Value 'NONE' at 'billingMode' failed to satisfy constraint: Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]", anything,
		},
		{
			"attribute of a time to live", "UpdateTimeToLive", `{"TableName":"TABLE","TimeToLiveSpecification":{"AttributeName":"","Enabled":true}}`,
			"1 validation error detected: Value '' at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must have length greater than or equal to 1", anything,
		},
		{
			"nothing of a time to live", "UpdateTimeToLive", `{"TableName":"TABLE","TimeToLiveSpecification":{}}`,
			"2 validation errors detected: Value null at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must not be null; " +
				"Value null at 'timeToLiveSpecification.enabled' failed to satisfy constraint: Member must not be null", anything,
		},
		{
			"nothing of a definition", "UpdateTable", `{"TableName":"TABLE","AttributeDefinitions":[{}],"DeletionProtectionEnabled":false}`,
			"2 validation errors detected: Value null at 'attributeDefinitions.1.member.attributeType' failed to satisfy constraint: Member must not be null; " +
				"Value null at 'attributeDefinitions.1.member.attributeName' failed to satisfy constraint: Member must not be null", anything,
		},
		{
			"empty name of a table to describe", "DescribeTable", `{"TableName":""}`,
			"2 validation errors detected: Value '' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3; " +
				"Value '' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+", anything,
		},
		{
			"empty name of an index", "UpdateTable", `{"TableName":"TABLE","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":""}}]}`,
			"2 validation errors detected: Value '' at 'globalSecondaryIndexUpdates.1.member.delete.indexName' failed to satisfy constraint: Member must have length greater than or equal to 3; " +
				"Value '' at 'globalSecondaryIndexUpdates.1.member.delete.indexName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+", anything,
		},
		{
			"empty name where a list of tables begins", "ListTables", `{"ExclusiveStartTableName":""}`,
			"2 validation errors detected: Value '' at 'exclusiveStartTableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; " +
				"Value '' at 'exclusiveStartTableName' failed to satisfy constraint: Member must have length greater than or equal to 3", anything,
		},
		{
			"empty key of the encryption", "UpdateTable", `{"TableName":"TABLE","SSESpecification":{"Enabled":true,"SSEType":"KMS","KMSMasterKeyId":""}}`,
			"1 validation error detected: Value '' at 'sSESpecification.kMSMasterKeyId' failed to satisfy constraint: Member must have length greater than or equal to 1", anything,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				err := tb.raw(tc.op, tc.body)
				if tb.local() && tc.local == anything {
					return // it crashes, finds something else, or nothing
				}
				tb.exactly(err, "ValidationException", strings.ReplaceAll(tc.service, "TABLE", *tb.name), tc.local)
			})
		})
	}
}

// A value of another JSON type than the parameter's is refused before the
// constraints are looked at. DynamoDB Local crashes on some of these and
// converts others.
func TestWrongTypes_AreASerializationError(t *testing.T) {
	for _, tc := range []struct{ name, op, body, text string }{
		{"number for a string", "PutItem", `{"TableName":1,"ReturnValues":"INVALID"}`, "NUMBER_VALUE cannot be converted to String"},
		{"fraction for a string", "PutItem", `{"TableName":1.5}`, "DECIMAL_VALUE cannot be converted to String"},
		{"bool for a string", "GetItem", `{"TableName":false}`, "FALSE_VALUE cannot be converted to String"},
		{"string for a number", "Scan", `{"TableName":"TABLE","Limit":"1"}`, "STRING_VALUE cannot be converted to Integer"},
		{"string for a bool", "Scan", `{"TableName":"TABLE","ConsistentRead":"maybe"}`, "Unexpected token received from parser"},
		{"list for a string", "Scan", `{"TableName":["TABLE"]}`, "Unrecognized collection type class java.lang.String"},
		{"map for a string", "Scan", `{"TableName":{}}`, "Start of structure or map found where not expected"},
		{"string for a map", "GetItem", `{"TableName":"TABLE","Key":"x"}`, "Unexpected field type"},
		{"list for a map", "GetItem", `{"TableName":"TABLE","Key":[]}`, "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>"},
		{"map for a list", "TransactGetItems", `{"TransactItems":{}}`, "Start of structure or map found where not expected"},
		{"string for a value", "GetItem", `{"TableName":"TABLE","Key":{"pk":"x"}}`, "Unexpected value type in payload"},
		{"list for a value", "GetItem", `{"TableName":"TABLE","Key":{"pk":[]}}`, "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue"},
		{"bare number in a value", "PutItem", `{"TableName":"TABLE","Item":{"pk":{"M":{"a":{"N":1}}}}}`, "NUMBER_VALUE cannot be converted to String"},
		{"string for units", "UpdateTable", `{"TableName":"TABLE","OnDemandThroughput":{"MaxReadRequestUnits":"1"}}`, "STRING_VALUE cannot be converted to Long"},
		{"string for units of an index", "UpdateTable", `{"TableName":"TABLE","GlobalSecondaryIndexUpdates":[{"Update":{"IndexName":"gsi","WarmThroughput":{"ReadUnitsPerSecond":"1"}}}]}`, "STRING_VALUE cannot be converted to Long"},
		{"number that is not whole", "Scan", `{"TableName":"TABLE","Limit":1.5}`, "DECIMAL_VALUE cannot be converted to Integer"},
		{"number beyond every type", "Scan", `{"TableName":"TABLE","Limit":99999999999999999999}`, "NUMBER_VALUE cannot be converted to Integer"},
		{"list for a map in a value", "PutItem", `{"Item":{"a":{"M":[]}}}`, "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>"},
		{"string for a map in a value", "PutItem", `{"Item":{"a":{"M":"x"}}}`, "Unexpected field type"},
		{"map for a list in a value", "PutItem", `{"Item":{"a":{"L":{}}}}`, "Start of structure or map found where not expected"},
		{"string for a list in a value", "PutItem", `{"Item":{"a":{"L":"x"}}}`, "Unexpected field type"},
		{"string in a list in a value", "PutItem", `{"Item":{"a":{"L":["x"]}}}`, "Unexpected value type in payload"},
		{"map for binary", "PutItem", `{"Item":{"a":{"B":{}}}}`, "Start of structure or map found where not expected"},
		{"list for binary", "PutItem", `{"Item":{"a":{"B":[]}}}`, "Unrecognized collection type class java.nio.ByteBuffer"},
		{"number for binary", "PutItem", `{"Item":{"a":{"B":1}}}`, "only base-64-encoded strings are convertible to bytes"},
		{"binary of two spellings", "PutItem", `{"Item":{"a":{"B":"AB=="}}}`, "Invalid last non-pad Base64 character dectected"},
		{"map for tags", "TagResource", `{"ResourceArn":"x","Tags":{}}`, "Start of structure or map found where not expected"},
		{"number for the value of a tag", "TagResource", `{"Tags":[{"Key":"k","Value":1}]}`, "NUMBER_VALUE cannot be converted to String"},
		{"binary that is not base64", "PutItem", `{"TableName":"TABLE","Item":{"pk":{"BS":["abc"]}}}`, "Base64 encoded length is expected a multiple of 4 bytes but found: 3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				if err := tb.raw(tc.op, tc.body); !tb.local() {
					tb.exactly(err, "SerializationException", tc.text, "")
				}
			})
		})
	}
}
