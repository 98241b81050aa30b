package tabletest_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table/tabletest"
)

// The answers that LocalStack and others recorded from the service have these members.
func TestRecovery_DescribesTheTimesToWhichATableCanBeRestored(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := start.Add(700 * time.Millisecond)
	c := tabletest.New(t, tabletest.WithClock(func() time.Time { return now })).Client()
	_, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("app"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
	describe := func() *types.PointInTimeRecoveryDescription {
		out, err := c.DescribeContinuousBackups(t.Context(), &dynamodb.DescribeContinuousBackupsInput{TableName: aws.String("app")})
		require.NoError(t, err)
		assert.Equal(t, types.ContinuousBackupsStatusEnabled, out.ContinuousBackupsDescription.ContinuousBackupsStatus)
		return out.ContinuousBackupsDescription.PointInTimeRecoveryDescription
	}
	set := func(enabled bool, days *int32) {
		t.Helper()
		out, err := c.UpdateContinuousBackups(t.Context(), &dynamodb.UpdateContinuousBackupsInput{
			TableName: aws.String("app"),
			PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{
				PointInTimeRecoveryEnabled: &enabled, RecoveryPeriodInDays: days,
			},
		})
		require.NoError(t, err)
		assert.Equal(t, describe(), out.ContinuousBackupsDescription.PointInTimeRecoveryDescription)
	}
	disabled := &types.PointInTimeRecoveryDescription{PointInTimeRecoveryStatus: types.PointInTimeRecoveryStatusDisabled}
	enabled := func(days int32, earliest, latest time.Time) *types.PointInTimeRecoveryDescription {
		return &types.PointInTimeRecoveryDescription{
			PointInTimeRecoveryStatus: types.PointInTimeRecoveryStatusEnabled, RecoveryPeriodInDays: &days,
			EarliestRestorableDateTime: &earliest, LatestRestorableDateTime: &latest,
		}
	}

	assert.Equal(t, disabled, describe())
	set(true, nil)
	assert.Equal(t, enabled(35, start, start), describe())
	now = start.Add(3 * time.Minute)
	assert.Equal(t, enabled(35, start, start), describe())
	now = start.Add(time.Hour)
	set(true, aws.Int32(7))
	assert.Equal(t, enabled(7, start, now.Add(-5*time.Minute)), describe(), "a second request only changes the period")
	now = start.AddDate(0, 0, 10)
	assert.Equal(t, enabled(7, start.AddDate(0, 0, 3), now.Add(-5*time.Minute)), describe())
	set(false, nil)
	assert.Equal(t, disabled, describe())
	set(true, nil)
	assert.Equal(t, enabled(35, now, now), describe(), "the period is forgotten")
}
