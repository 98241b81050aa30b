package contract_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
)

func TestDescribeTable_RepeatsWhatCreateTableSaid(t *testing.T) {
	onTable(t, func(tb table) {
		out, err := tb.DescribeTable(tb.ctx(), &dynamodb.DescribeTableInput{TableName: tb.name})
		require.NoError(tb, err)
		d, in := out.Table, createInput(*tb.name)
		assert.Equal(tb, types.TableStatusActive, d.TableStatus)
		assert.Equal(tb, in.KeySchema, d.KeySchema)
		assert.ElementsMatch(tb, in.AttributeDefinitions, d.AttributeDefinitions)
		assert.Equal(tb, types.BillingModePayPerRequest, d.BillingModeSummary.BillingMode)
		assert.Contains(tb, *d.TableArn, ":table/"+*tb.name)
		require.Len(tb, d.GlobalSecondaryIndexes, 2)
		for _, g := range d.GlobalSecondaryIndexes {
			assert.Equal(tb, types.IndexStatusActive, g.IndexStatus)
		}
		require.Len(tb, d.LocalSecondaryIndexes, 1)
		assert.Equal(tb, []string{"inc"}, d.LocalSecondaryIndexes[0].Projection.NonKeyAttributes)
	})
}

func TestCreateTable_TwiceIsRefused(t *testing.T) {
	onTable(t, func(tb table) {
		_, err := tb.CreateTable(tb.ctx(), createInput(*tb.name))
		var inUse *types.ResourceInUseException
		require.ErrorAs(tb, err, &inUse)
	})
}

func TestDeletedTable_IsGone(t *testing.T) {
	onTable(t, func(tb table) {
		_, err := tb.DeleteTable(tb.ctx(), &dynamodb.DeleteTableInput{TableName: tb.name})
		require.NoError(tb, err)
		require.NoError(tb, dynamodb.NewTableNotExistsWaiter(tb).Wait(tb.ctx(), &dynamodb.DescribeTableInput{TableName: tb.name}, time.Minute))
		_, err = tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: key("a")})
		var missing *types.ResourceNotFoundException
		require.ErrorAs(tb, err, &missing)
	})
}

func TestListTables_IsSortedAndPages(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		base := e.TableName(t)
		c := e.Client()
		for _, suffix := range []string{"-c", "-a", "-b"} {
			name := base + suffix
			_, err := c.CreateTable(t.Context(), createInput(name))
			require.NoError(t, err)
		}
		out, err := c.ListTables(t.Context(), &dynamodb.ListTablesInput{ExclusiveStartTableName: &base, Limit: aws.Int32(2)})
		require.NoError(t, err)
		assert.Equal(t, []string{base + "-a", base + "-b"}, out.TableNames)
		assert.Equal(t, base+"-b", aws.ToString(out.LastEvaluatedTableName))
		out, err = c.ListTables(t.Context(), &dynamodb.ListTablesInput{ExclusiveStartTableName: out.LastEvaluatedTableName, Limit: aws.Int32(1)})
		require.NoError(t, err)
		assert.Equal(t, []string{base + "-c"}, out.TableNames)
	})
}

func TestAddedIndex_HoldsTheRowsThatWereThere(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("a", document{"color": "red"})
		tb.put("b", nil)
		_, err := tb.UpdateTable(tb.ctx(), &dynamodb.UpdateTableInput{
			TableName:            tb.name,
			AttributeDefinitions: append(createInput(*tb.name).AttributeDefinitions, types.AttributeDefinition{AttributeName: ptr("color"), AttributeType: types.ScalarAttributeTypeS}),
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
				IndexName: ptr("colors"), KeySchema: []types.KeySchemaElement{{AttributeName: ptr("color"), KeyType: types.KeyTypeHash}},
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			}}},
		})
		require.NoError(tb, err)
		tb.awaitIndex("colors", true)
		out, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{TableName: tb.name, IndexName: ptr("colors"), KeyConditionExpression: ptr("color = :c"), ExpressionAttributeValues: values(document{"c": "red"})})
		require.NoError(tb, err)
		assert.Equal(tb, []string{"a"}, sortKeys(out.Items))

		_, err = tb.UpdateTable(tb.ctx(), &dynamodb.UpdateTableInput{TableName: tb.name, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{
			Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: ptr("colors")},
		}}})
		require.NoError(tb, err)
		tb.awaitIndex("colors", false)
	})
}

// awaitIndex waits until an index is active, or gone.
func (tb table) awaitIndex(name string, present bool) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		out, err := tb.DescribeTable(tb.ctx(), &dynamodb.DescribeTableInput{TableName: tb.name})
		if err != nil || out.Table.TableStatus != types.TableStatusActive {
			return false
		}
		for _, g := range out.Table.GlobalSecondaryIndexes {
			if *g.IndexName == name {
				return present && g.IndexStatus == types.IndexStatusActive
			}
		}
		return !present
	}, time.Minute, 20*time.Millisecond)
}

func TestTimeToLive_IsDescribed(t *testing.T) {
	onTable(t, func(tb table) {
		out, err := tb.DescribeTimeToLive(tb.ctx(), &dynamodb.DescribeTimeToLiveInput{TableName: tb.name})
		require.NoError(tb, err)
		assert.Equal(tb, types.TimeToLiveStatusDisabled, out.TimeToLiveDescription.TimeToLiveStatus)
		disabled := &types.TimeToLiveSpecification{AttributeName: ptr("expires"), Enabled: ptr(false)}
		_, err = tb.UpdateTimeToLive(tb.ctx(), &dynamodb.UpdateTimeToLiveInput{TableName: tb.name, TimeToLiveSpecification: disabled})
		tb.refused(err, "TimeToLive is already disabled")
		spec := &types.TimeToLiveSpecification{AttributeName: ptr("expires"), Enabled: ptr(true)}
		_, err = tb.UpdateTimeToLive(tb.ctx(), &dynamodb.UpdateTimeToLiveInput{TableName: tb.name, TimeToLiveSpecification: spec})
		require.NoError(tb, err)
		out, err = tb.DescribeTimeToLive(tb.ctx(), &dynamodb.DescribeTimeToLiveInput{TableName: tb.name})
		require.NoError(tb, err)
		assert.Equal(tb, "expires", aws.ToString(out.TimeToLiveDescription.AttributeName))
		assert.Contains(tb, []types.TimeToLiveStatus{types.TimeToLiveStatusEnabled, types.TimeToLiveStatusEnabling}, out.TimeToLiveDescription.TimeToLiveStatus)
		_, err = tb.UpdateTimeToLive(tb.ctx(), &dynamodb.UpdateTimeToLiveInput{TableName: tb.name, TimeToLiveSpecification: spec})
		tb.refused(err, "TimeToLive is already enabled")
		for _, enabled := range []bool{true, false} {
			other := &types.TimeToLiveSpecification{AttributeName: ptr("other"), Enabled: &enabled}
			_, err = tb.UpdateTimeToLive(tb.ctx(), &dynamodb.UpdateTimeToLiveInput{TableName: tb.name, TimeToLiveSpecification: other})
			tb.exactly(err, "ValidationException", "TimeToLive is active on a different AttributeName: current AttributeName is expires", "TimeToLive is active on a different AttributeName")
		}
	})
}

func TestCapacity_OfWritesIsCountedByTheKilobyte(t *testing.T) {
	onTable(t, func(tb table) {
		put := func(sk string, d document, condition *string) (*types.ConsumedCapacity, error) {
			out, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: keyed(sk, d), ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes, ConditionExpression: condition})
			if err != nil {
				return nil, err
			}
			return out.ConsumedCapacity, nil
		}
		kilobytes := func(n int) document { return document{"x": string(make([]byte, n*1024-100))} }
		c, err := put("a", kilobytes(1), nil)
		require.NoError(tb, err)
		assert.InDelta(tb, 1, *c.CapacityUnits, 0)
		c, err = put("a", kilobytes(3), nil)
		require.NoError(tb, err)
		assert.InDelta(tb, 3, *c.CapacityUnits, 0, "by the larger of old and new")
		c, err = put("b", document{"gpk": "g", "gsk": 1}, nil)
		require.NoError(tb, err)
		assert.InDelta(tb, 3, *c.CapacityUnits, 0, "table and two indexes")
		assert.InDelta(tb, 1, *c.Table.CapacityUnits, 0)
		assert.Len(tb, c.GlobalSecondaryIndexes, 2)
	})
}

func TestCapacity_OfReadsIsCountedByFourKilobytes(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("a", document{"x": string(make([]byte, 5000))})
		for consistent, want := range map[bool]float64{true: 2, false: 1} {
			out, err := tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: tb.name, Key: key("a"), ConsistentRead: &consistent, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
			require.NoError(tb, err)
			assert.InDelta(tb, want, *out.ConsumedCapacity.CapacityUnits, 0)
		}
		tx, err := tb.TransactGetItems(tb.ctx(), &dynamodb.TransactGetItemsInput{
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal, TransactItems: []types.TransactGetItem{{Get: &types.Get{TableName: tb.name, Key: key("a")}}},
		})
		require.NoError(tb, err)
		assert.InDelta(tb, 4, *tx.ConsumedCapacity[0].CapacityUnits, 0, "a transaction costs double")
	})
}

func TestNumbers_ReturnInOneForm(t *testing.T) {
	for sent, want := range map[string]string{
		"1.0": "1", "-0": "0", "0.00": "0", "007": "7", "+5": "5", "1e2": "100", ".5": "0.5", "12E-1": "1.2", "1.10": "1.1",
		"12345678901234567890123456789012345678": "12345678901234567890123456789012345678",
	} {
		t.Run(sent, func(t *testing.T) {
			onTable(t, func(tb table) {
				engines.Only(tb.T, engines.InProcess, "DynamoDB Local returns some numbers as they were sent, the service returns all in its own form")
				tb.put("a", document{"x": number(sent)})
				tb.holds("a", document{"x": number(want)})
			})
		})
	}
}

// The answer of a request that names a table by its ARN does so, too.
func TestCapacity_NamesTheTableAsTheRequestDoes(t *testing.T) {
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, "DynamoDB Local returns the table's name, and takes no ARNs in transactions")
		d, err := tb.DescribeTable(tb.ctx(), &dynamodb.DescribeTableInput{TableName: tb.name})
		require.NoError(tb, err)
		for _, name := range []*string{d.Table.TableArn, tb.name} {
			const total = types.ReturnConsumedCapacityTotal
			get, err := tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: name, Key: key("i"), ReturnConsumedCapacity: total})
			require.NoError(tb, err)
			batch, err := tb.BatchWriteItem(tb.ctx(), &dynamodb.BatchWriteItemInput{ReturnConsumedCapacity: total, RequestItems: map[string][]types.WriteRequest{
				*name: {{PutRequest: &types.PutRequest{Item: keyed("i", nil)}}},
			}})
			require.NoError(tb, err)
			tx, err := tb.TransactWriteItems(tb.ctx(), &dynamodb.TransactWriteItemsInput{ReturnConsumedCapacity: total, TransactItems: []types.TransactWriteItem{
				{Put: &types.Put{TableName: name, Item: keyed("i", nil)}},
			}})
			require.NoError(tb, err)
			for _, c := range []types.ConsumedCapacity{*get.ConsumedCapacity, batch.ConsumedCapacity[0], tx.ConsumedCapacity[0]} {
				assert.Equal(tb, *name, *c.TableName)
			}
		}
	})
}

// DynamoDB Local takes the ARNs of all regions.
func TestTables_AreNamedByTheirARN(t *testing.T) {
	onTable(t, func(tb table) {
		d, err := tb.DescribeTable(tb.ctx(), &dynamodb.DescribeTableInput{TableName: tb.name})
		require.NoError(tb, err)
		arn := *d.Table.TableArn
		use := func(name string) []error {
			_, described := tb.DescribeTable(tb.ctx(), &dynamodb.DescribeTableInput{TableName: &name})
			_, got := tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: &name, Key: key("b")})
			_, batched := tb.BatchGetItem(tb.ctx(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
				name: {Keys: []map[string]types.AttributeValue{key("b")}},
			}})
			return []error{described, got, batched}
		}
		for _, err := range use(arn) {
			require.NoError(tb, err)
		}
		for _, bad := range []string{
			arn + "/index/gsi", arn + "/stream/2026-01-01T00:00:00.000", arn + "/", "arn:", "arn:aws:dynamodb",
			strings.Replace(arn, "dynamodb", "s3", 1), strings.Replace(arn, *tb.name, "ab", 1),
		} {
			for _, err := range use(bad) {
				require.ErrorContains(tb, err, "ValidationException", bad)
			}
		}
		if tb.local() {
			return
		}
		for old, replaced := range map[string][2]string{
			":us-east-1:":    {":us-west-2:", "ValidationException: 1 validation error detected: Invalid AWS region in 'arn:aws:dynamodb:us-west-2:"},
			"arn:aws:":       {"arn:aws-cn:", "ValidationException: 1 validation error detected: Invalid AWS partition in 'arn:aws-cn:"},
			":table/":        {":global-table/", "ValidationException: 1 validation error detected: Invalid resource type in 'arn:aws:"},
			":123456789012:": {":210987654321:", "AccessDeniedException: Access is denied"},
		} {
			for _, err := range use(strings.Replace(arn, old, replaced[0], 1)) {
				require.ErrorContains(tb, err, replaced[1])
			}
		}
	})
}
