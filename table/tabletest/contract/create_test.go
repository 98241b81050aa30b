package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
)

const invalidParameter = "One or more parameter values were invalid: "

func TestCreateTable_RefusesBadRequests(t *testing.T) {
	const (
		a, ab   = `{"AttributeName":"a","AttributeType":"S"}`, `{"AttributeName":"a","AttributeType":"S"},{"AttributeName":"b","AttributeType":"S"}`
		hashA   = `{"AttributeName":"a","KeyType":"HASH"}`
		rangeB  = `{"AttributeName":"b","KeyType":"RANGE"}`
		all     = `"Projection":{"ProjectionType":"ALL"}`
		onA     = `"KeySchema":[` + hashA + `]`
		onAB    = `"KeySchema":[` + hashA + `,` + rangeB + `]`
		request = `"BillingMode":"PAY_PER_REQUEST",`
		units   = `"ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}`
	)
	index := func(name, keys, projection string) string {
		return `{"IndexName":"` + name + `",` + keys + `,` + projection + `}`
	}
	several := func(n int, keys string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = index("index"+strings.Repeat("x", i), keys, all)
		}
		return strings.Join(list, ",")
	}
	for _, tc := range []struct{ name, body, service, local string }{
		{"throughput on demand", request + units + `,"AttributeDefinitions":[` + a + `],` + onA, invalidParameter + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST", "-"},
		{"no throughput", `"AttributeDefinitions":[` + a + `],` + onA, invalidParameter + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED", "No provisioned throughput"},
		{"too few definitions", request + `"AttributeDefinitions":[` + a + `],` + onAB, "Invalid KeySchema: Some index key attribute have no definition", ""},
		{"the same key twice", request + `"AttributeDefinitions":[` + a + `],"KeySchema":[` + hashA + `,{"AttributeName":"a","KeyType":"RANGE"}]`, "Invalid KeySchema: Some index key attribute have no definition", ""},
		{"no definition", request + `"AttributeDefinitions":[{"AttributeName":"x","AttributeType":"S"}],` + onA, invalidParameter + "Some index key attributes are not defined in AttributeDefinitions. Keys: [a], AttributeDefinitions: [x]", ""},
		{"no partition key", request + `"AttributeDefinitions":[` + ab + `],"KeySchema":[` + rangeB + `]`, "Invalid KeySchema: The first KeySchemaElement is not a HASH key type", ""},
		{"two partition keys", request + `"AttributeDefinitions":[` + ab + `],"KeySchema":[` + hashA + `,{"AttributeName":"b","KeyType":"HASH"}]`, "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type", ""},
		{"a definition too many", request + `"AttributeDefinitions":[` + ab + `],` + onA, invalidParameter + "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions", ""},
		{
			"a definition too many beside an index", request + `"AttributeDefinitions":[` + ab + `],` + onA + `,"GlobalSecondaryIndexes":[` + index("one", onA, all) + `]`,
			invalidParameter + "Some AttributeDefinitions are not used. AttributeDefinitions: [a, b], keys used: [a]", "",
		},
		{
			// DynamoDB Local counts a key attribute once for the local indexes and once for the global ones, and so misses the one too many.
			"a definition too many beside a local and a global index of one attribute",
			request + `"AttributeDefinitions":[` + ab + `,{"AttributeName":"c","AttributeType":"S"},{"AttributeName":"d","AttributeType":"S"}],` + onAB +
				`,"LocalSecondaryIndexes":[` + index("one", `"KeySchema":[`+hashA+`,{"AttributeName":"c","KeyType":"RANGE"}]`, all) +
				`],"GlobalSecondaryIndexes":[` + index("two", `"KeySchema":[{"AttributeName":"c","KeyType":"HASH"}]`, all) + `]`,
			invalidParameter + "Some AttributeDefinitions are not used. AttributeDefinitions: [a, b, c, d], keys used: [a, b, c]", "-",
		},
		{"a local index without a sort key of the table", request + `"AttributeDefinitions":[` + ab + `],` + onA + `,"LocalSecondaryIndexes":[` + index("one", onAB, all) + `]`, invalidParameter + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex", ""},
		{"a local index without a sort key", request + `"AttributeDefinitions":[` + ab + `],` + onAB + `,"LocalSecondaryIndexes":[` + index("one", onA, all) + `]`, invalidParameter + "Index KeySchema does not have a range key for index: one", ""},
		{"a local index without a sort key and a projection type", request + `"AttributeDefinitions":[` + ab + `],` + onAB + `,"LocalSecondaryIndexes":[` + index("one", onA, `"Projection":{}`) + `]`, invalidParameter + "Index KeySchema does not have a range key for index: one", "Indexes must have a projection specified"},
		{
			"a local index on another partition key and without a projection type", request + `"AttributeDefinitions":[` + ab + `],` + onAB + `,"LocalSecondaryIndexes":[` +
				index("one", `"KeySchema":[{"AttributeName":"b","KeyType":"HASH"},{"AttributeName":"a","KeyType":"RANGE"}]`, `"Projection":{}`) + `]`,
			invalidParameter + "Index KeySchema does not have the same leading hash key as table KeySchema for index: one. index hash key: b, table hash key: a", "Indexes must have a projection specified",
		},
		{
			"a definition too many beside wrong indexes", request + `"AttributeDefinitions":[` + ab + `],` + onA + `,"GlobalSecondaryIndexes":[` + index("one", onA, `"Projection":{}`) + `,` + index("one", onA, all+`,`+units) + `]`,
			invalidParameter + "Some AttributeDefinitions are not used. AttributeDefinitions: [a, b], keys used: [a]", "Indexes must have a projection specified",
		},
		{"no indexes", request + `"AttributeDefinitions":[` + ab + `],` + onAB + `,"GlobalSecondaryIndexes":[]`, invalidParameter + "List of GlobalSecondaryIndexes is empty", ""},
		{"two indexes of one name", request + `"AttributeDefinitions":[` + ab + `],` + onAB + `,"GlobalSecondaryIndexes":[` + index("one", onA, all) + `,` + index("one", onAB, all) + `]`, invalidParameter + "Duplicate index name: one", ""},
		{"a local and a global index of one name", request + `"AttributeDefinitions":[` + ab + `],` + onAB + `,"LocalSecondaryIndexes":[` + index("one", onAB, all) + `],"GlobalSecondaryIndexes":[` + index("one", onA, all) + `]`, invalidParameter + "Duplicate index name: one", ""},
		{"one attribute as both keys", request + `"AttributeDefinitions":[` + ab + `],"KeySchema":[` + hashA + `,{"AttributeName":"a","KeyType":"RANGE"}]`, "Both the Hash Key and the Range Key element in the KeySchema have the same name", ""},
		{"no local indexes", request + `"AttributeDefinitions":[` + ab + `],` + onAB + `,"LocalSecondaryIndexes":[]`, invalidParameter + "List of LocalSecondaryIndexes is empty", "-"},
		{"too many local indexes", request + `"AttributeDefinitions":[` + ab + `],` + onAB + `,"LocalSecondaryIndexes":[` + several(6, onAB) + `]`, invalidParameter + "Number of LocalSecondaryIndexes exceeds per-table limit of 5", ""},
		{"too many global indexes", request + `"AttributeDefinitions":[` + ab + `],` + onAB + `,"GlobalSecondaryIndexes":[` + several(21, onAB) + `]`, invalidParameter + "GlobalSecondaryIndex count exceeds the per-table limit of 20", ""},
		{"no projection type", request + `"AttributeDefinitions":[` + a + `],` + onA + `,"GlobalSecondaryIndexes":[` + index("one", onA, `"Projection":{}`) + `]`, invalidParameter + "Unknown ProjectionType: null", ""},
		{"projected names beside ALL", request + `"AttributeDefinitions":[` + a + `],` + onA + `,"GlobalSecondaryIndexes":[` + index("one", onA, `"Projection":{"ProjectionType":"ALL","NonKeyAttributes":["x"]}`) + `]`, invalidParameter + "ProjectionType is ALL, but NonKeyAttributes is specified", ""},
		{"nothing to include", request + `"AttributeDefinitions":[` + a + `],` + onA + `,"GlobalSecondaryIndexes":[` + index("one", onA, `"Projection":{"ProjectionType":"INCLUDE"}`) + `]`, invalidParameter + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified", ""},
		{"a name included twice", request + `"AttributeDefinitions":[` + a + `],` + onA + `,"GlobalSecondaryIndexes":[` + index("one", onA, `"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["x","y","x"]}`) + `]`, invalidParameter + "Duplicate element in NonKeyAttributes: x", "Cannot have two attributes with the same name"},
		{"one attribute defined twice", request + `"AttributeDefinitions":[` + a + `,{"AttributeName":"a","AttributeType":"N"}],` + onA, "Attribute Name is duplicated: a", "Cannot have two attributes with the same name"},
		{"an unknown class", request + `"AttributeDefinitions":[` + a + `],` + onA + `,"TableClass":""`, "Invalid table-class parameter provided. Please try again with a valid table-class value: [STANDARD, STANDARD_INFREQUENT_ACCESS].", "-"},
		{"a stream without a view", request + `"AttributeDefinitions":[` + a + `],` + onA + `,"StreamSpecification":{"StreamEnabled":true}`, invalidParameter + "Table is being created with a stream enabled, UpdateViewType is required", "Invalid StreamViewType"},
		{"a view without a stream", request + `"AttributeDefinitions":[` + a + `],` + onA + `,"StreamSpecification":{"StreamEnabled":false,"StreamViewType":"NEW_IMAGE"}`, invalidParameter + "Table is being created with a stream disabled, UpdateViewType should not be specified", "Invalid StreamViewType"},
		{"throughput of an index on demand", request + `"AttributeDefinitions":[` + a + `],` + onA + `,"GlobalSecondaryIndexes":[` + index("one", onA, all+`,`+units) + `]`, invalidParameter + "ProvisionedThroughput should not be specified for index: one when BillingMode is PAY_PER_REQUEST", "-"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				err := tb.raw("CreateTable", `{"TableName":"TABLE-2",`+tc.body+`}`)
				if tb.local() && tc.local == "-" {
					require.NoError(tb, err) // it takes that
					return
				}
				tb.exactly(err, "ValidationException", tc.service, tc.local)
			})
		})
	}
	t.Run("it exists", func(t *testing.T) {
		onTable(t, func(tb table) {
			_, err := tb.CreateTable(tb.ctx(), createInput(*tb.name))
			tb.exactly(err, "ResourceInUseException", "Table already exists: "+*tb.name, "Cannot create preexisting table")
		})
	})
}

func TestUpdateTable_RefusesBadRequests(t *testing.T) {
	const oneOf = "GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null"
	const nothing = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, " +
		"ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, " +
		"WarmThroughput or TableClass is required"
	for _, tc := range []struct{ name, body, service, local string }{
		{"nothing to do", ``, nothing, "Nothing to update"},
		{"no index updates", `,"GlobalSecondaryIndexUpdates":[]`, nothing, "-"},
		{"no index updates beside a setting", `,"GlobalSecondaryIndexUpdates":[],"DeletionProtectionEnabled":false`, invalidParameter + "List of GlobalSecondaryIndexUpdates is empty", "-"},
		{"an update of no kind", `,"GlobalSecondaryIndexUpdates":[{}]`, invalidParameter + "One of " + oneOf, "-"},
		{"an update of two kinds", `,"GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"gsi"},"Update":{"IndexName":"gsi"}}]`, invalidParameter + "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object", "-"},
		{"an update of an index to no warm throughput", `,"TableClass":"STANDARD","GlobalSecondaryIndexUpdates":[{"Update":{"IndexName":"ghost","WarmThroughput":{}}}]`, invalidParameter + "WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for index: ghost", "-"},
		{"an update of a local index", `,"GlobalSecondaryIndexUpdates":[{"Update":{"IndexName":"lsi","OnDemandThroughput":{"MaxReadRequestUnits":5}}}]`, "Cannot update an index that is not a GlobalSecondaryIndex: lsi", "-"},
		{"a deletion of a local index", `,"GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"lsi"}}]`, "Cannot delete an index that is not a GlobalSecondaryIndex: lsi", "Cannot delete an index that is not a GlobalSecondaryIndex"},
		{"a stream without a view", `,"StreamSpecification":{"StreamEnabled":true}`, invalidParameter + "If stream is being enabled then UpdateViewType is required", "Invalid StreamViewType"},
		{"a view without a stream", `,"StreamSpecification":{"StreamEnabled":false,"StreamViewType":"KEYS_ONLY"}`, invalidParameter + "If stream is being disabled, then UpdateViewType must not be specified", "Invalid StreamViewType"},
		{"an unknown view", `,"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"new_image"}`, "1 validation error detected: Value 'new_image' at 'streamSpecification.streamViewType' failed to satisfy constraint: Member must satisfy enum value set: [OLD_IMAGE, KEYS_ONLY, NEW_AND_OLD_IMAGES, NEW_IMAGE]", "-"},
		{"an unknown class", `,"TableClass":"standard"`, "Invalid table-class parameter provided. Please try again with a valid table-class value: [STANDARD, STANDARD_INFREQUENT_ACCESS].", "-"},
		{"two updates of one index", `,"GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"gsi"}},{"Delete":{"IndexName":"gsi"}}]`, invalidParameter + "Only one global secondary index update per index is allowed simultaneously. Index: gsi", "-"},
		{"throughput on demand", `,"ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}`, invalidParameter + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST", "-"},
		{"throughput and on demand", `,"BillingMode":"PAY_PER_REQUEST","ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}`, invalidParameter + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST", "-"},
		{"provisioned without throughput", `,"BillingMode":"PROVISIONED"`, invalidParameter + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED", "No provisioned throughput"},
		{
			"no definition of an index's key", `,"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"new","KeySchema":[{"AttributeName":"gpk","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}}]`,
			invalidParameter + "Some index key attributes are not defined in AttributeDefinitions. Keys: [gpk], AttributeDefinitions: [pk]", "-",
		},
		{
			"no definitions", `,"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"new","KeySchema":[{"AttributeName":"gpk","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}}]`,
			invalidParameter + "AttributeDefinitions is not specified for index: new", "-",
		},
		{
			"another type", `,"AttributeDefinitions":[{"AttributeName":"gpk","AttributeType":"N"}],"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"new","KeySchema":[{"AttributeName":"gpk","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}}]`,
			invalidParameter + "Attributes cannot be redefined. Please check that your attribute has the same type as previously defined. Existing schema: Schema:[SchemaElement: key{gpk:S}] New schema: Schema:[SchemaElement: key{gpk:N}]", "-",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				err := tb.raw("UpdateTable", `{"TableName":"TABLE"`+tc.body+`}`)
				if tb.local() && tc.local == "-" {
					return // it takes that, or fails in its own way
				}
				tb.exactly(err, "ValidationException", tc.service, tc.local)
			})
		})
	}
}

// The service refuses units that no table can have before it looks for the table.
func TestUpdateTable_RefusesImpossibleUnitsOfAMissingTable(t *testing.T) {
	for _, tc := range []struct{ name, body, service string }{
		{"reads out of bounds", `"ProvisionedThroughput":{"ReadCapacityUnits":1000000000001,"WriteCapacityUnits":1000000000001}`, "Given value 1000000000001 for ReadCapacityUnits is out of bounds"},
		{"writes out of bounds", `"ProvisionedThroughput":{"ReadCapacityUnits":1000000000000,"WriteCapacityUnits":1000000000001}`, "Given value 1000000000001 for WriteCapacityUnits is out of bounds"},
		{"throughput and on demand", `"BillingMode":"PAY_PER_REQUEST","ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}`, invalidParameter + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"},
		{"provisioned without throughput", `"BillingMode":"PROVISIONED"`, invalidParameter + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				engines.Only(tb.T, engines.InProcess, "DynamoDB Local looks for the table first")
				tb.exactly(tb.raw("UpdateTable", `{"TableName":"TABLE-missing",`+tc.body+`}`), "ValidationException", tc.service, "-")
			})
		})
	}
}

// The service's error names the index.
func TestUpdateTable_RefusesAnUnknownIndex(t *testing.T) {
	onTable(t, func(tb table) {
		for action, more := range map[string]string{"Delete": "", "Update": `,"OnDemandThroughput":{"MaxReadRequestUnits":5}`} {
			if action == "Update" && tb.local() {
				continue // it fails
			}
			err := tb.raw("UpdateTable", `{"TableName":"TABLE","GlobalSecondaryIndexUpdates":[{"`+action+`":{"IndexName":"ghost"`+more+`}}]}`)
			tb.exactly(err, "ResourceNotFoundException", "Requested resource not found: Index ghost for table "+*tb.name, "Requested resource not found")
		}
	})
}

// Definitions of attributes that are no keys of the new index are ignored.
// DynamoDB Local refuses them if the types differ.
func TestUpdateTable_IgnoresDefinitionsThatTheIndexDoesNotNeed(t *testing.T) {
	onTable(t, func(tb table) {
		err := tb.raw("UpdateTable", `{"TableName":"TABLE","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"N"},{"AttributeName":"new","AttributeType":"S"},{"AttributeName":"unused","AttributeType":"S"}],`+
			`"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"new","KeySchema":[{"AttributeName":"new","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}}]}`)
		if tb.local() {
			require.Error(tb, err)
			return
		}
		require.NoError(tb, err)
		out, err := tb.DescribeTable(tb.ctx(), &dynamodb.DescribeTableInput{TableName: tb.name})
		require.NoError(tb, err)
		kinds := map[string]string{}
		for _, d := range out.Table.AttributeDefinitions {
			kinds[*d.AttributeName] = string(d.AttributeType)
		}
		assert.Equal(tb, map[string]string{"gpk": "S", "gsk": "N", "lsk": "S", "new": "S", "pk": "S", "sk": "S"}, kinds)
	})
}

// An update to the throughput that a table has is refused. DynamoDB Local
// takes it.
func TestThroughput_ThatDoesNotChangeIsRefused(t *testing.T) {
	onTable(t, func(tb table) {
		update := func(read, write int64) error {
			_, err := tb.UpdateTable(tb.ctx(), &dynamodb.UpdateTableInput{TableName: tb.name, BillingMode: types.BillingModeProvisioned, ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: &read, WriteCapacityUnits: &write}})
			return err
		}
		_, err := tb.UpdateTable(tb.ctx(), &dynamodb.UpdateTableInput{
			TableName: tb.name, BillingMode: types.BillingModeProvisioned, ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(6)},
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{indexUnits("gsi"), indexUnits("keys")},
		})
		require.NoError(tb, err)
		err = update(5, 6)
		if tb.local() {
			return
		}
		tb.exactly(err, "ValidationException", "The provisioned throughput for the table will not change. The requested value equals the current value. "+
			"Current ReadCapacityUnits provisioned for the table: 5. Requested ReadCapacityUnits: 5. "+
			"Current WriteCapacityUnits provisioned for the table: 6. Requested WriteCapacityUnits: 6. "+
			"Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.", "")
		require.NoError(tb, update(5, 7))
	})
}

func indexUnits(name string) types.GlobalSecondaryIndexUpdate {
	return types.GlobalSecondaryIndexUpdate{Update: &types.UpdateGlobalSecondaryIndexAction{
		IndexName: &name, ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1)},
	}}
}

// A table has an identity of its own, which one made later under its name
// does not share. DynamoDB Local gives none.
func TestTableID_StaysWhileTheTableIsThere(t *testing.T) {
	onTable(t, func(tb table) {
		if tb.local() {
			return
		}
		id := func() string {
			out, err := tb.DescribeTable(tb.ctx(), &dynamodb.DescribeTableInput{TableName: tb.name})
			require.NoError(tb, err)
			return aws.ToString(out.Table.TableId)
		}
		first := id()
		assert.Regexp(tb, "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", first)
		assert.Equal(tb, first, id())
		gone, err := tb.DeleteTable(tb.ctx(), &dynamodb.DeleteTableInput{TableName: tb.name})
		require.NoError(tb, err)
		assert.Equal(tb, first, aws.ToString(gone.TableDescription.TableId))
		require.NoError(tb, dynamodb.NewTableNotExistsWaiter(tb).Wait(tb.ctx(), &dynamodb.DescribeTableInput{TableName: tb.name}, 60e9))
		made, err := tb.CreateTable(tb.ctx(), createInput(*tb.name))
		require.NoError(tb, err)
		assert.NotEqual(tb, first, aws.ToString(made.TableDescription.TableId))
		require.NoError(tb, dynamodb.NewTableExistsWaiter(tb).Wait(tb.ctx(), &dynamodb.DescribeTableInput{TableName: tb.name}, 60e9))
		assert.Equal(tb, aws.ToString(made.TableDescription.TableId), id())
	})
}

// Of a table that is being deleted the service describes only what is left.
// DynamoDB Local describes all of it.
func TestDeletedTable_IsDescribedInShort(t *testing.T) {
	onTable(t, func(tb table) {
		out, err := tb.DeleteTable(tb.ctx(), &dynamodb.DeleteTableInput{TableName: tb.name})
		require.NoError(tb, err)
		d := out.TableDescription
		assert.Equal(tb, *tb.name, *d.TableName)
		assert.True(tb, strings.HasSuffix(*d.TableArn, ":table/"+*tb.name))
		if tb.local() {
			return
		}
		assert.Equal(tb, types.TableStatusDeleting, d.TableStatus)
		assert.Equal(tb, types.BillingModePayPerRequest, d.BillingModeSummary.BillingMode)
		assert.Empty(tb, d.KeySchema)
		assert.Empty(tb, d.AttributeDefinitions)
		assert.Empty(tb, d.GlobalSecondaryIndexes)
		assert.Nil(tb, d.CreationDateTime)
	})
}

func TestUpdateTable_AddsAndRemovesOneIndexAtATime(t *testing.T) {
	onTable(t, func(tb table) {
		err := tb.raw("UpdateTable", `{"TableName":"TABLE","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"gsi"}},{"Delete":{"IndexName":"keys"}}]}`)
		tb.exactly(err, "LimitExceededException", "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table", "Only 1 online index can be created or deleted simultaneously per table")
	})
}

// The text is that of the service (Terraform's AWS provider, issue 6187), which has raised the limit since then.
func TestUpdateTable_RefusesOneIndexTooMany(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tb := newTable(t, e)
		in := createInput(*tb.name)
		x := in.GlobalSecondaryIndexes[0]
		for len(in.GlobalSecondaryIndexes) < 20 {
			x.IndexName = aws.String(fmt.Sprint("gsi", len(in.GlobalSecondaryIndexes)))
			in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, x)
		}
		tb.create(in)
		_, err := tb.UpdateTable(tb.ctx(), &dynamodb.UpdateTableInput{TableName: tb.name, AttributeDefinitions: in.AttributeDefinitions, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
			{Create: &types.CreateGlobalSecondaryIndexAction{IndexName: aws.String("more"), KeySchema: x.KeySchema, Projection: x.Projection}},
		}})
		tb.exactly(err, "LimitExceededException", "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of 20", "")
	})
}

func TestDeletionProtection_KeepsTheTable(t *testing.T) {
	onTable(t, func(tb table) {
		protect := func(enable bool) {
			_, err := tb.UpdateTable(tb.ctx(), &dynamodb.UpdateTableInput{TableName: tb.name, DeletionProtectionEnabled: &enable})
			require.NoError(tb, err)
		}
		protect(true)
		_, err := tb.DeleteTable(tb.ctx(), &dynamodb.DeleteTableInput{TableName: tb.name})
		tb.exactly(err, "ValidationException", "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.", "Resource cannot be deleted as it is currently protected against deletion")
		protect(false)
		_, err = tb.DeleteTable(tb.ctx(), &dynamodb.DeleteTableInput{TableName: tb.name})
		require.NoError(tb, err)
	})
}
