package tabletest

import (
	"maps"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/shape"
)

// The model describes the members of each operation's request. It decides the errors about a member's type, and those about its
// length, range and set of values. The service reports all of the latter together. Members are in the order in which the service
// reports them, as far as that order is known.

// model returns the shapes of all requests, by operation.
func model() map[string]*shape.Shape {
	m := itemModel()
	maps.Copy(m, tableModel())
	return m
}

// checkShape refuses a request that does not have the shape of its operation.
func (c *call) checkShape() error {
	s := c.e.model[c.op]
	if s == nil {
		return nil
	}
	if err := s.Types(c.in.n); err != nil {
		return err
	}
	if text := s.Broken(c.in.n); text != "" {
		return invalid("%s", text)
	}
	return nil
}

func indexName() *shape.Shape {
	return shape.Text().Name().AtLeast(minNameLength).AtMost(maxNameLength)
}
func tableName() *shape.Shape { return indexName().OrARN() }

func consumedCapacity() shape.Field {
	return shape.May("ReturnConsumedCapacity", shape.Enum("INDEXES", "TOTAL", "NONE"))
}

func collectionMetrics() shape.Field {
	return shape.May("ReturnItemCollectionMetrics", shape.Enum("SIZE", "NONE"))
}

func returnValues() shape.Field {
	return shape.May("ReturnValues", shape.Enum(returnAllNew, returnUpdatedOld, returnAllOld, returnNone, returnUpdatedNew))
}

func returnOnFailure() shape.Field {
	return shape.May("ReturnValuesOnConditionCheckFailure", shape.Enum(returnAllOld, returnNone))
}

func conditionalOperator() shape.Field {
	return shape.May("ConditionalOperator", shape.Enum("OR", "AND"))
}

func comparisonOperator() *shape.Shape {
	return shape.Enum("IN", "NULL", "BETWEEN", "LT", "NOT_CONTAINS", "EQ", "GT", "NOT_NULL", "NE", "LE", "BEGINS_WITH", "GE", "CONTAINS")
}

func expected() shape.Field {
	return shape.May("Expected", shape.Map("ExpectedAttributeValue", shape.Struct("ExpectedAttributeValue",
		shape.May("AttributeValueList", shape.List(shape.Value())),
		shape.May("ComparisonOperator", comparisonOperator()),
		shape.May("Exists", shape.Bool()),
		shape.May("Value", shape.Value()),
	)))
}

func conditions(name string) shape.Field {
	return shape.May(name, shape.Map("Condition", shape.Struct("Condition",
		shape.May("AttributeValueList", shape.List(shape.Value())),
		shape.Need("ComparisonOperator", comparisonOperator()),
	)))
}

func attributesToGet() shape.Field {
	return shape.May("AttributesToGet", shape.List(shape.Text()).AtLeast(1).AtMost(maxNameLength))
}

func expressionNames() shape.Field {
	return shape.May("ExpressionAttributeNames", shape.Map("java.lang.String", shape.Text()))
}

func expressionValues() shape.Field { return shape.May("ExpressionAttributeValues", shape.Item()) }

func text(name string) shape.Field { return shape.May(name, shape.Text()) }
func flag(name string) shape.Field { return shape.May(name, shape.Bool()) }

func itemModel() map[string]*shape.Shape {
	table := func() shape.Field { return shape.Need("TableName", tableName()) }
	key := func() shape.Field { return shape.Need("Key", shape.Item()) }
	// These orders of members are those of Java hash maps of all members of an operation.
	return map[string]*shape.Shape{
		"PutItem": shape.Struct("PutItemInput",
			returnValues(), conditionalOperator(), shape.Need("Item", shape.Item()), text("ConditionExpression"), returnOnFailure(),
			expressionNames(), expressionValues(), expected(), consumedCapacity(), collectionMetrics(), table()),
		"DeleteItem": shape.Struct("DeleteItemInput",
			returnValues(), conditionalOperator(), text("ConditionExpression"), returnOnFailure(),
			expressionNames(), expressionValues(), expected(), consumedCapacity(), collectionMetrics(), key(), table()),
		"UpdateItem": shape.Struct("UpdateItemInput",
			text("ConditionExpression"), expressionNames(), expected(), consumedCapacity(), table(), returnValues(), conditionalOperator(),
			returnOnFailure(), attributeUpdates(), expressionValues(), text("UpdateExpression"), collectionMetrics(), key()),
		"GetItem": shape.Struct("GetItemInput",
			expressionNames(), flag("ConsistentRead"), text("ProjectionExpression"), attributesToGet(), consumedCapacity(), key(), table()),
		"Query":              queryModel(),
		"Scan":               scanModel(),
		"BatchGetItem":       batchGetModel(),
		"BatchWriteItem":     batchWriteModel(),
		"TransactGetItems":   transactGetModel(),
		"TransactWriteItems": transactWriteModel(),
	}
}

func attributeUpdates() shape.Field {
	return shape.May("AttributeUpdates", shape.Map("AttributeValueUpdate", shape.Struct("AttributeValueUpdate",
		shape.May("Action", shape.Enum("ADD", "DELETE", "PUT")),
		shape.May("Value", shape.Value()),
	)))
}

// The service checks a query's Limit, and the number of keys in a BatchGetItem, with a newer validator than other members: these two
// shapes are terse.

func queryModel() *shape.Shape {
	return shape.Struct("QueryInput",
		shape.May("Select", shape.Enum(selectSpecific, selectCount, selectAll, selectProjected)),
		shape.May("IndexName", indexName()), consumedCapacity(), conditions("QueryFilter"),
		shape.Need("TableName", tableName()), conditionalOperator(), attributesToGet(),
		shape.May("Limit", shape.Int("Integer").AtLeast(1).Terse()), conditions("KeyConditions"),
		shape.May("ExclusiveStartKey", shape.Item()), flag("ConsistentRead"), flag("ScanIndexForward"),
		text("KeyConditionExpression"), text("FilterExpression"), text("ProjectionExpression"), expressionValues(), expressionNames())
}

func scanModel() *shape.Shape {
	return shape.Struct("ScanInput",
		shape.May("Select", shape.Enum(selectSpecific, selectCount, selectAll, selectProjected)),
		shape.May("IndexName", indexName()),
		shape.May("TotalSegments", shape.Int("Integer").AtLeast(1).AtMost(maxSegments)), consumedCapacity(),
		shape.Need("TableName", tableName()), conditionalOperator(), conditions("ScanFilter"),
		shape.May("Segment", shape.Int("Integer").AtLeast(0).AtMost(maxSegments-1)),
		shape.May("Limit", shape.Int("Integer").AtLeast(1)), attributesToGet(),
		shape.May("ExclusiveStartKey", shape.Item()), flag("ConsistentRead"),
		text("FilterExpression"), text("ProjectionExpression"), expressionValues(), expressionNames())
}

func batchTables(s *shape.Shape) shape.Field {
	return shape.Need("RequestItems", s.Keys(tableName()))
}

func batchGetModel() *shape.Shape {
	keys := shape.Struct("KeysAndAttributes",
		shape.Need("Keys", shape.List(shape.Item()).AtLeast(1).AtMost(maxBatchGet).Terse()), attributesToGet(),
		flag("ConsistentRead"), text("ProjectionExpression"), expressionNames())
	return shape.Struct("BatchGetItemInput", batchTables(shape.Map("KeysAndAttributes", keys)), consumedCapacity())
}

func batchWriteModel() *shape.Shape {
	request := shape.Struct("WriteRequest",
		shape.May("PutRequest", shape.Struct("PutRequest", shape.Need("Item", shape.Item()))),
		shape.May("DeleteRequest", shape.Struct("DeleteRequest", shape.Need("Key", shape.Item()))))
	requests := shape.Map("java.util.List<"+"com.amazonaws.dynamodb.v20120810.WriteRequest>", shape.List(request))
	requests.Each(shape.List(request).AtLeast(1).AtMost(maxBatchWrite))
	return shape.Struct("BatchWriteItemInput", consumedCapacity(), collectionMetrics(), batchTables(requests))
}

func transactGetModel() *shape.Shape {
	get := shape.Struct("Get",
		shape.Need("Key", shape.Item()), shape.Need("TableName", tableName()), text("ProjectionExpression"), expressionNames())
	return shape.Struct("TransactGetItemsInput",
		shape.Need("TransactItems", shape.List(shape.Struct("TransactGetItem", shape.Need("Get", get))).AtLeast(1).AtMost(maxActions)),
		consumedCapacity())
}

func transactWriteModel() *shape.Shape {
	action := func(class string, fields ...shape.Field) shape.Field {
		return shape.May(class, shape.Struct(class, append(fields, shape.Need("TableName", tableName()),
			returnOnFailure(), expressionValues(), expressionNames())...))
	}
	key := shape.Need("Key", shape.Item())
	item := shape.Struct("TransactWriteItem",
		action("ConditionCheck", key, shape.Need("ConditionExpression", shape.Text())),
		action("Put", shape.Need("Item", shape.Item()), text("ConditionExpression")),
		action("Delete", key, text("ConditionExpression")),
		action("Update", key, shape.Need("UpdateExpression", shape.Text()), text("ConditionExpression")))
	return shape.Struct("TransactWriteItemsInput",
		shape.Need("TransactItems", shape.List(item).AtLeast(1).AtMost(maxActions)),
		shape.May("ClientRequestToken", shape.Text().AtLeast(1).AtMost(maxToken)), consumedCapacity(), collectionMetrics())
}

// errNothing returns the error for a batch without requests, which has a text of its own.
func errNothing(op string) error { return invalid("The requestItems parameter is required for %s", op) }

// errSerialization returns the error for a body that is not a JSON object.
func errSerialization() error { return attr.MalformedError("") }
