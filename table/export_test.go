package table_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table"
)

// exported has all there is to export.
func exported() table.Schema {
	s := fullSchema("app")
	s.Capacity = &table.Capacity{Read: 7, Write: 3}
	s.PointInTimeRecovery, s.DeletionProtection = true, true
	s.Tags = map[string]string{"team": "orders", "a<b": "c&d"}
	return s
}

// strict decodes JSON that has no members but those that the target names.
func strict(t *testing.T, data []byte, target any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(target))
}

// documented are the properties of AWS::DynamoDB::Table as its reference lists them, read
// independently of what writes them.
type documented struct {
	Type, DeletionPolicy, UpdateReplacePolicy string
	Properties                                struct {
		AttributeDefinitions             []types.AttributeDefinition
		BillingMode                      types.BillingMode
		ContributorInsightsSpecification json.RawMessage
		DeletionProtectionEnabled        *bool
		GlobalSecondaryIndexes           []struct {
			ContributorInsightsSpecification json.RawMessage
			IndexName                        *string
			KeySchema                        []types.KeySchemaElement
			OnDemandThroughput               json.RawMessage
			Projection                       *types.Projection
			ProvisionedThroughput            *types.ProvisionedThroughput
			WarmThroughput                   json.RawMessage
		}
		ImportSourceSpecification  json.RawMessage
		KeySchema                  []types.KeySchemaElement
		KinesisStreamSpecification json.RawMessage
		LocalSecondaryIndexes      []struct {
			IndexName  *string
			KeySchema  []types.KeySchemaElement
			Projection *types.Projection
		}
		OnDemandThroughput               json.RawMessage
		PointInTimeRecoverySpecification *struct {
			PointInTimeRecoveryEnabled *bool
			RecoveryPeriodInDays       *int
		}
		ProvisionedThroughput *types.ProvisionedThroughput
		ResourcePolicy        json.RawMessage
		SSESpecification      json.RawMessage
		StreamSpecification   *struct {
			ResourcePolicy json.RawMessage
			StreamViewType types.StreamViewType
		}
		TableClass              string
		TableName               *string
		Tags                    []types.Tag
		TimeToLiveSpecification *struct {
			AttributeName *string
			Enabled       *bool
		}
		WarmThroughput json.RawMessage
	}
}

// build does with a resource what CloudFormation does.
func build(t *testing.T, client *dynamodb.Client, data []byte) {
	t.Helper()
	var r documented
	strict(t, data, &r)
	require.Equal(t, "AWS::DynamoDB::Table", r.Type)
	assert.Equal(t, "Retain", r.DeletionPolicy)
	assert.Equal(t, "Retain", r.UpdateReplacePolicy)
	p := r.Properties
	in := &dynamodb.CreateTableInput{
		TableName: p.TableName, AttributeDefinitions: p.AttributeDefinitions, KeySchema: p.KeySchema,
		BillingMode: p.BillingMode, ProvisionedThroughput: p.ProvisionedThroughput, DeletionProtectionEnabled: p.DeletionProtectionEnabled,
		Tags: p.Tags,
	}
	for _, x := range p.GlobalSecondaryIndexes {
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: x.IndexName, KeySchema: x.KeySchema, Projection: x.Projection, ProvisionedThroughput: x.ProvisionedThroughput,
		})
	}
	for _, x := range p.LocalSecondaryIndexes {
		in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{IndexName: x.IndexName, KeySchema: x.KeySchema, Projection: x.Projection})
	}
	if p.StreamSpecification != nil {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: p.StreamSpecification.StreamViewType}
	}
	_, err := client.CreateTable(t.Context(), in)
	require.NoError(t, err)
	if p.TimeToLiveSpecification != nil {
		_, err := client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName: p.TableName, TimeToLiveSpecification: &types.TimeToLiveSpecification{
				AttributeName: p.TimeToLiveSpecification.AttributeName, Enabled: p.TimeToLiveSpecification.Enabled,
			},
		})
		require.NoError(t, err)
	}
	if p.PointInTimeRecoverySpecification != nil {
		_, err := client.UpdateContinuousBackups(t.Context(), &dynamodb.UpdateContinuousBackupsInput{
			TableName:                        p.TableName,
			PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: p.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled},
		})
		require.NoError(t, err)
	}
}

func TestExport_IsDeterministic(t *testing.T) {
	facets := []table.Facet{
		{Name: "Order", PK: "TENANT#{tenant}", SK: "ORDER#{id}", Attributes: []table.FacetAttribute{{"GSI1PK", "S"}, {"lines", "L"}, {"total", "N"}}},
		{Name: "Tenant", PK: "TENANT#{tenant}", SK: "TENANT", Attributes: []table.FacetAttribute{{"total", "N"}}},
	}
	for range 10 {
		data, err := exported().CloudFormation()
		require.NoError(t, err)
		golden(t, "cloudformation.json", string(data))
		data, err = exported().Workbench(facets...)
		require.NoError(t, err)
		golden(t, "workbench.json", string(data))
	}
}

func TestExport_RefusesWhatItCannotDescribe(t *testing.T) {
	_, err := table.Schema{Name: "x"}.CloudFormation()
	require.ErrorIs(t, err, table.ErrInvalid)
	_, err = table.Schema{Name: "x"}.Workbench()
	require.ErrorIs(t, err, table.ErrInvalid)
	s := table.Schema{Name: "app", Indexes: []table.Index{{Name: "gsi1", PK: "g", PKType: table.Number}}}
	for want, facets := range map[string][]table.Facet{
		`facet 0: Name ""`:   {{}},
		`facet 1: Name "A"`:  {{Name: "A"}, {Name: "A"}},
		`attribute "a" is`:   {{Name: "A", Attributes: []table.FacetAttribute{{"a", "S"}}}, {Name: "B", Attributes: []table.FacetAttribute{{"a", "N"}}}},
		`attribute "g" is`:   {{Name: "A", Attributes: []table.FacetAttribute{{"g", "S"}}}},
		`attribute "pk" is `: {{Name: "A", Attributes: []table.FacetAttribute{{"pk", "N"}}}},
	} {
		_, err := s.Workbench(facets...)
		require.ErrorIs(t, err, table.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}
