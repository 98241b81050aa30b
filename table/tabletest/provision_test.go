package tabletest_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table/tabletest"
)

func TestUpdateTable_AddsAFilledIndex(t *testing.T) {
	_, c := setup(t)
	for _, pk := range []string{"a", "b"} {
		_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: item{"pk": s(pk), "sk": s("x"), "h": n(1)}})
		require.NoError(t, err)
	}
	require.NoError(t, add(t.Context(), c, "c"))
	update := func(u types.GlobalSecondaryIndexUpdate) error {
		_, err := c.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
			TableName:                   aws.String("app"),
			AttributeDefinitions:        []types.AttributeDefinition{{AttributeName: aws.String("h"), AttributeType: types.ScalarAttributeTypeN}},
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{u},
		})
		return err
	}
	require.NoError(t, update(types.GlobalSecondaryIndexUpdate{Create: &types.CreateGlobalSecondaryIndexAction{
		IndexName: aws.String("gsi2"), KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("h"), KeyType: types.KeyTypeHash}},
		Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
	}}))
	d, err := c.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("app")})
	require.NoError(t, err)
	require.Len(t, d.Table.GlobalSecondaryIndexes, 2)
	assert.Equal(t, types.IndexStatusActive, d.Table.GlobalSecondaryIndexes[1].IndexStatus)
	assert.EqualValues(t, 2, *d.Table.GlobalSecondaryIndexes[1].ItemCount, "items without the key are not in it")
	require.NoError(t, update(types.GlobalSecondaryIndexUpdate{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: aws.String("gsi2")}}))
	_, err = c.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("app"), IndexName: aws.String("gsi2")})
	require.ErrorContains(t, err, "does not have the specified index")
}

func TestProvision_TagsAndRecoverySettings(t *testing.T) {
	_, c := setup(t)
	d, err := c.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("app")})
	require.NoError(t, err)
	_, err = c.TagResource(t.Context(), &dynamodb.TagResourceInput{ResourceArn: d.Table.TableArn, Tags: []types.Tag{
		{Key: aws.String("a"), Value: aws.String("1")}, {Key: aws.String("b"), Value: aws.String("2")},
	}})
	require.NoError(t, err)
	_, err = c.UntagResource(t.Context(), &dynamodb.UntagResourceInput{ResourceArn: d.Table.TableArn, TagKeys: []string{"a"}})
	require.NoError(t, err)
	tags, err := c.ListTagsOfResource(t.Context(), &dynamodb.ListTagsOfResourceInput{ResourceArn: d.Table.TableArn})
	require.NoError(t, err)
	assert.Equal(t, []types.Tag{{Key: aws.String("b"), Value: aws.String("2")}}, tags.Tags)
	for arn, code := range map[string]string{
		*d.Table.TableArn + "x": "ResourceNotFoundException",
		"arn:aws:dynamodb:" + tabletest.Region + ":210987654321:table/app": "AccessDeniedException",
	} {
		_, err = c.ListTagsOfResource(t.Context(), &dynamodb.ListTagsOfResourceInput{ResourceArn: &arn})
		var refused smithy.APIError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, code, refused.ErrorCode())
	}
	_, err = c.UpdateContinuousBackups(t.Context(), &dynamodb.UpdateContinuousBackupsInput{
		TableName:                        aws.String("app"),
		PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	require.NoError(t, err)
	b, err := c.DescribeContinuousBackups(t.Context(), &dynamodb.DescribeContinuousBackupsInput{TableName: aws.String("app")})
	require.NoError(t, err)
	assert.Equal(t, types.PointInTimeRecoveryStatusEnabled, b.ContinuousBackupsDescription.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus)
}
