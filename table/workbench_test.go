package table_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// The model is read back by its documented member names, and gives the schema that it was made of.
func TestWorkbench_HasTheSchema(t *testing.T) {
	type key struct {
		PartitionKey struct{ AttributeName, AttributeType string }
		SortKey      *struct{ AttributeName, AttributeType string }
	}
	var m struct {
		ModelName     string
		ModelMetadata struct{ Author, DateCreated, DateLastModified, Description, AWSService, Version string }
		DataModel     []struct {
			TableName              string
			KeyAttributes          key
			NonKeyAttributes       []struct{ AttributeName, AttributeType string }
			TableFacets            []json.RawMessage
			GlobalSecondaryIndexes []struct {
				IndexName     string
				KeyAttributes key
				Projection    types.Projection
			}
			TableData  []json.RawMessage
			DataAccess struct {
				MySQL struct{} `json:"MySql"`
			}
			BillingMode                 string
			ProvisionedCapacitySettings struct{ ProvisionedThroughput types.ProvisionedThroughput }
		}
	}
	want := exported()
	data, err := want.Workbench()
	require.NoError(t, err)
	strict(t, data, &m)
	require.Len(t, m.DataModel, 1)
	d := m.DataModel[0]
	got := table.Schema{
		Name: d.TableName, Keys: keys.Scheme{PK: d.KeyAttributes.PartitionKey.AttributeName, SK: d.KeyAttributes.SortKey.AttributeName},
		Capacity: &table.Capacity{
			Read: *d.ProvisionedCapacitySettings.ProvisionedThroughput.ReadCapacityUnits, Write: *d.ProvisionedCapacitySettings.ProvisionedThroughput.WriteCapacityUnits,
		},
	}
	attributes := map[string]string{}
	for _, a := range d.NonKeyAttributes {
		attributes[a.AttributeName] = a.AttributeType
	}
	for _, x := range d.GlobalSecondaryIndexes {
		index := table.Index{Name: x.IndexName, PK: x.KeyAttributes.PartitionKey.AttributeName, PKType: table.AttributeType(x.KeyAttributes.PartitionKey.AttributeType)}
		if sk := x.KeyAttributes.SortKey; sk != nil {
			index.SK, index.SKType = sk.AttributeName, table.AttributeType(sk.AttributeType)
		}
		switch x.Projection.ProjectionType {
		case types.ProjectionTypeInclude:
			index.Include = x.Projection.NonKeyAttributes
		case types.ProjectionTypeKeysOnly:
			index.Include = []string{}
		}
		got.Indexes = append(got.Indexes, index)
		for _, a := range append(index.Include, index.PK, index.SK) {
			if a != "" && a != got.Keys.PK && a != got.Keys.SK {
				assert.Contains(t, attributes, a, "Workbench knows the attributes of indexes from this list")
			}
		}
	}
	assert.Contains(t, m.ModelMetadata.Description, "local lsi1 (PK:S, LSI1SK:S; all)")

	// What the format has no place for.
	want.Keys.TTL, want.Stream, want.PointInTimeRecovery, want.DeletionProtection, want.Tags = "", "", false, false, nil
	want.Indexes = want.Indexes[:len(want.Indexes)-1]
	defaults := func(s table.Schema) table.Schema {
		tbl, err := table.Open(dynamodb.New(dynamodb.Options{}), s)
		require.NoError(t, err)
		return tbl.Schema()
	}
	assert.Equal(t, defaults(want), defaults(got))
}
