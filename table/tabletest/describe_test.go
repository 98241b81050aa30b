package tabletest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table/tabletest"
)

// provisioned makes a table with 10 units of both kinds.
func provisioned(t *testing.T, e *tabletest.Engine) (*dynamodb.Client, func(units int64) *types.ProvisionedThroughputDescription) {
	t.Helper()
	c, units := e.Client(), func(n int64) *types.ProvisionedThroughput {
		return &types.ProvisionedThroughput{ReadCapacityUnits: &n, WriteCapacityUnits: &n}
	}
	_, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("app"), ProvisionedThroughput: units(10),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
	return c, func(n int64) *types.ProvisionedThroughputDescription {
		t.Helper()
		if n != 0 {
			_, err := c.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String("app"), ProvisionedThroughput: units(n)})
			require.NoError(t, err)
		}
		out, err := c.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("app")})
		require.NoError(t, err)
		return out.Table.ProvisionedThroughput
	}
}

// The day ends at midnight UTC, not 24 hours after the first decrease.
func TestDescribe_CountsDecreasesByTheDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight UTC, 2000-01-01
		_, change := provisioned(t, tabletest.New(t))
		time.Sleep(20 * time.Hour)
		assert.EqualValues(t, 1, *change(9).NumberOfDecreasesToday)
		time.Sleep(3*time.Hour + 59*time.Minute)
		d := change(8)
		assert.EqualValues(t, 2, *d.NumberOfDecreasesToday)
		last := time.Now()
		time.Sleep(time.Minute)
		d = change(0)
		assert.Zero(t, *d.NumberOfDecreasesToday)
		assert.True(t, last.Equal(*d.LastDecreaseDateTime), "the date stays")
		assert.EqualValues(t, 1, *change(7).NumberOfDecreasesToday)
	})
}

func TestDescribe_IsDeterministic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first *types.TableDescription
		for range 2 {
			c, _ := provisioned(t, tabletest.New(t))
			out, err := c.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("app")})
			require.NoError(t, err)
			if first == nil {
				first = out.Table
			}
			assert.Equal(t, first, out.Table)
		}
	})
}

func TestDescribe_RestoredTablesKeepTheirSettings(t *testing.T) {
	e := tabletest.New(t)
	c, change := provisioned(t, e)
	change(5)
	describe := func() *types.TableDescription {
		out, err := c.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("app")})
		require.NoError(t, err)
		return out.Table
	}
	want, snapshot := describe(), e.Snapshot()
	change(20)
	require.NotEqual(t, want, describe())
	e.Restore(snapshot)
	assert.Equal(t, want, describe())
	assert.EqualValues(t, 10, *want.WarmThroughput.ReadUnitsPerSecond)
}
