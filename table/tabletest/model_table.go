package tabletest

import "github.com/mortise-go/mortise/table/tabletest/internal/shape"

// Limits of names, in characters.
const (
	minNameLength = 3
	maxNameLength = 255
)

// newTableName returns the member with the name of a new table.
func newTableName() shape.Field {
	return shape.First("TableName", indexName().Control())
}

func existingTable() shape.Field { return shape.First("TableName", tableName().Control()) }

func indexMember() shape.Field { return shape.Need("IndexName", indexName().Control()) }

func attributeName() *shape.Shape { return shape.Text().AtLeast(1).AtMost(maxNameLength) }

func throughputMembers() *shape.Shape {
	units := func(name string) shape.Field { return shape.Need(name, shape.Int("Long").AtLeast(1)) }
	return shape.Struct("ProvisionedThroughput", units("WriteCapacityUnits"), units("ReadCapacityUnits"))
}

func attributeDefinitions() *shape.Shape {
	return shape.List(shape.Struct("AttributeDefinition",
		shape.Need("AttributeType", shape.Enum("B", "N", "S")), shape.Need("AttributeName", attributeName())))
}

func keySchemaMembers() *shape.Shape {
	return shape.List(shape.Struct("KeySchemaElement",
		shape.Need("AttributeName", attributeName()), shape.Need("KeyType", shape.Enum("HASH", "RANGE")))).AtLeast(1)
}

func projectionMembers() *shape.Shape {
	return shape.Struct("Projection",
		shape.May("ProjectionType", shape.Enum("ALL", "INCLUDE", "KEYS_ONLY")),
		shape.May("NonKeyAttributes", shape.List(attributeName()).AtLeast(1).AtMost(maxInclude)))
}

// limitMembers and warmthMembers have no bounds here: errors about bounds name the table or the index, so provision checks them.
func limitMembers() shape.Field {
	return unitMembers("OnDemandThroughput", "MaxReadRequestUnits", "MaxWriteRequestUnits")
}

func warmthMembers() shape.Field {
	return unitMembers("WarmThroughput", "ReadUnitsPerSecond", "WriteUnitsPerSecond")
}

func unitMembers(class, read, write string) shape.Field {
	units := func(name string) shape.Field { return shape.May(name, shape.Int("Long")) }
	return shape.May(class, shape.Struct(class, units(read), units(write)))
}

// tagMembers does not require a key and a value, because the service reports a missing one like an invalid one (readTags).
func tagMembers() *shape.Shape { return shape.List(shape.Struct("Tag", text("Key"), text("Value"))) }

func billingMode() shape.Field {
	return shape.May("BillingMode", shape.Enum("PROVISIONED", "PAY_PER_REQUEST"))
}

// settingsModel returns the members that CreateTable and UpdateTable share.
func settingsModel() []shape.Field {
	return []shape.Field{
		billingMode(), shape.May("ProvisionedThroughput", throughputMembers()),
		shape.May("StreamSpecification", shape.Struct("StreamSpecification",
			shape.Need("StreamEnabled", shape.Bool()),
			shape.May("StreamViewType", shape.Enum("OLD_IMAGE", "KEYS_ONLY", "NEW_AND_OLD_IMAGES", "NEW_IMAGE")))),
		shape.May("SSESpecification", shape.Struct("SSESpecification",
			flag("Enabled"), shape.May("SSEType", shape.Enum("AES256", "KMS")), shape.May("KMSMasterKeyId", shape.Text().AtLeast(1)))),
		text("TableClass"), // the service checks its value later
		flag("DeletionProtectionEnabled"), limitMembers(), warmthMembers(),
	}
}

func tableModel() map[string]*shape.Shape {
	indexed := func(class string, keySchema *shape.Shape, more ...shape.Field) *shape.Shape {
		return shape.Struct(class, append([]shape.Field{
			indexMember(), shape.Need("KeySchema", keySchema),
			shape.Need("Projection", projectionMembers()),
		}, more...)...)
	}
	units := func() shape.Field { return shape.May("ProvisionedThroughput", throughputMembers()) }
	named := func(op string, more ...shape.Field) *shape.Shape {
		return shape.Struct(op+"Input", append([]shape.Field{existingTable()}, more...)...)
	}
	return map[string]*shape.Shape{
		"CreateTable": shape.Struct("CreateTableInput", append([]shape.Field{
			shape.Need("AttributeDefinitions", attributeDefinitions()), newTableName(),
			shape.Need("KeySchema", keySchemaMembers().AtMost(2)),
			shape.May("GlobalSecondaryIndexes", shape.List(indexed("GlobalSecondaryIndex", keySchemaMembers(), units(), limitMembers(), warmthMembers()))),
			shape.May("LocalSecondaryIndexes", shape.List(indexed("LocalSecondaryIndex", keySchemaMembers().AtMost(2)))),
			shape.May("Tags", tagMembers()),
		}, settingsModel()...)...),
		"UpdateTable": named("UpdateTable", append([]shape.Field{
			shape.May("AttributeDefinitions", attributeDefinitions()),
			shape.May("GlobalSecondaryIndexUpdates", shape.List(shape.Struct("GlobalSecondaryIndexUpdate",
				shape.May("Update", shape.Struct("UpdateGlobalSecondaryIndexAction",
					indexMember(), units(), limitMembers(), warmthMembers())),
				shape.May("Create", indexed("CreateGlobalSecondaryIndexAction", keySchemaMembers(), units(), limitMembers(), warmthMembers())),
				shape.May("Delete", shape.Struct("DeleteGlobalSecondaryIndexAction", indexMember()))))),
		}, settingsModel()...)...),
		"DescribeTable":             named("DescribeTable"),
		"DeleteTable":               named("DeleteTable"),
		"DescribeTimeToLive":        named("DescribeTimeToLive"),
		"DescribeContinuousBackups": named("DescribeContinuousBackups"),
		"UpdateTimeToLive": named("UpdateTimeToLive", shape.Need("TimeToLiveSpecification", shape.Struct("TimeToLiveSpecification",
			shape.Need("AttributeName", attributeName()), shape.Need("Enabled", shape.Bool())))),
		"UpdateContinuousBackups": named("UpdateContinuousBackups", shape.Need("PointInTimeRecoverySpecification",
			shape.Struct("PointInTimeRecoverySpecification", shape.Need("PointInTimeRecoveryEnabled", shape.Bool()),
				shape.May("RecoveryPeriodInDays", shape.Int("Integer").AtLeast(1).AtMost(maxRecovery))))),
		"TagResource":        shape.Struct("TagResourceInput", text("ResourceArn"), shape.Need("Tags", tagMembers())),
		"UntagResource":      shape.Struct("UntagResourceInput", text("ResourceArn"), shape.Need("TagKeys", shape.List(shape.Text()))),
		"ListTagsOfResource": shape.Struct("ListTagsOfResourceInput", text("ResourceArn"), text("NextToken")),
		"ListTables": shape.Struct("ListTablesInput",
			shape.May("Limit", shape.Int("Integer").AtLeast(1).AtMost(defaultListLimit)),
			shape.May("ExclusiveStartTableName", indexName())),
	}
}
