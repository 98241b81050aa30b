package table_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

var update = flag.Bool("update", false, "write the expected texts in testdata anew")

// golden compares with a file in testdata.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// planned is a plan as testdata has it, where tables have no random names.
func planned(t *testing.T, tbl *table.Table) string {
	t.Helper()
	p, err := tbl.Plan(t.Context())
	require.NoError(t, err)
	return strings.ReplaceAll(p.String(), tbl.Name(), "TABLE")
}

// existing makes the table of an application that has never heard of Mortise: provisioned,
// with a global and a local index of its own.
func existing(t *testing.T, e *engines.Engine, change ...func(*dynamodb.CreateTableInput)) string {
	t.Helper()
	def := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: kind}
	}
	key := func(pk, sk string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &pk, KeyType: types.KeyTypeHash}, {AttributeName: &sk, KeyType: types.KeyTypeRange}}
	}
	capacity := &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(4), WriteCapacityUnits: aws.Int64(2)}
	in := &dynamodb.CreateTableInput{
		TableName: aws.String(e.TableName(t)),
		AttributeDefinitions: []types.AttributeDefinition{
			def("PartKey", "S"), def("SortKey", "S"), def("customer", "S"), def("score", "N"), def("placed", "S"),
		},
		KeySchema: key("PartKey", "SortKey"), ProvisionedThroughput: capacity,
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("by-score"), KeySchema: key("customer", "score"), ProvisionedThroughput: capacity,
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
		LocalSecondaryIndexes: []types.LocalSecondaryIndex{{
			IndexName: aws.String("by-date"), KeySchema: key("PartKey", "placed"),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	}
	for _, c := range change {
		c(in)
	}
	_, err := e.Client().CreateTable(t.Context(), in)
	require.NoError(t, err)
	return *in.TableName
}

var existingKeys = keys.Scheme{PK: "PartKey", SK: "SortKey", TTL: "expiresAt"}

func describe(t *testing.T, e *engines.Engine, name string) *types.TableDescription {
	t.Helper()
	d, err := e.Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
	require.NoError(t, err)
	return d.Table
}

func TestEnsureCompletesAnExistingApplicationsTable(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := table.Schema{
			Name: existing(t, e), Keys: existingKeys,
			Indexes: []table.Index{
				{Name: "by-score", PK: "customer", SK: "score", SKType: table.Number},
				{Name: "gsi1", PK: "GSI1PK", SK: "GSI1SK"},
				{Name: "by-rank", PK: "PartKey", SK: "score", SKType: table.Number, Include: []string{"note"}},
			},
			Capacity: &table.Capacity{Read: 5, Write: 2}, Stream: table.StreamBoth, DeletionProtection: true,
		}
		file, want := "plan-complete.txt", []string{"UpdateTable", "UpdateTable", "UpdateTable", "UpdateTable", "UpdateTable", "UpdateTable", "UpdateTimeToLive"}
		if e.Name == engines.InProcess { // DynamoDB Local has no continuous backups
			s.PointInTimeRecovery, s.Tags = true, map[string]string{"team": "orders", "stage": "test"}
			file, want = "plan-complete-all.txt", append(want, "UpdateContinuousBackups", "TagResource")
		}
		tbl, f := open(t, e, s)
		t.Cleanup(func() { unprotect(t, e, s.Name) })
		golden(t, file, planned(t, tbl))
		assert.Empty(t, changes(f), "looking changes nothing")

		require.NoError(t, tbl.Ensure(t.Context()))
		assert.Equal(t, want, changes(f), "one change at a time")
		require.NoError(t, tbl.Verify(t.Context()))

		d := describe(t, e, s.Name)
		kinds := map[string]types.ScalarAttributeType{}
		for _, a := range d.AttributeDefinitions {
			kinds[*a.AttributeName] = a.AttributeType
		}
		assert.Equal(t, map[string]types.ScalarAttributeType{
			"PartKey": "S", "SortKey": "S", "customer": "S", "score": "N", "placed": "S", "GSI1PK": "S", "GSI1SK": "S",
		}, kinds, "the definitions of the indexes that were there stay")
		assert.Len(t, d.LocalSecondaryIndexes, 1, "what the schema does not mention stays")
		assert.Len(t, d.GlobalSecondaryIndexes, 3)
		assert.NotEqual(t, types.BillingModePayPerRequest, billing(d))

		f.Script()
		require.NoError(t, tbl.Ensure(t.Context()))
		assert.Empty(t, changes(f), "a second run changes nothing")
		golden(t, strings.Replace(file, "complete", "nothing", 1), planned(t, tbl))
	})
}

func billing(d *types.TableDescription) types.BillingMode {
	if d.BillingModeSummary == nil {
		return ""
	}
	return d.BillingModeSummary.BillingMode
}

func TestEnsureRefusesToRebuildAnExistingApplicationsTable(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		name := existing(t, e, func(in *dynamodb.CreateTableInput) {
			in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage}
		})
		_, err := e.Client().UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("deadline"), Enabled: aws.Bool(true)},
		})
		require.NoError(t, err)
		tbl, f := open(t, e, table.Schema{
			Name: name, Keys: existingKeys,
			Indexes: []table.Index{
				{Name: "by-score", PK: "customer", SK: "rank", SKType: table.Number},
				{Name: "gsi1", PK: "GSI1PK"},
				{Name: "by-text", PK: "PartKey", SK: "score"},
				{Name: "lsi1", SK: "LSI1SK", Local: true},
			},
			Stream: table.StreamBoth, DeletionProtection: true,
		})
		before := describe(t, e, name)
		golden(t, "plan-refused.txt", planned(t, tbl))
		err = tbl.Ensure(t.Context())
		var differs *table.SchemaError
		require.ErrorAs(t, err, &differs)
		assert.Len(t, differs.Differences, 5)
		assert.Empty(t, changes(f), "nothing is done by halves")
		assert.Equal(t, before.GlobalSecondaryIndexes, describe(t, e, name).GlobalSecondaryIndexes)
	})
}

// A table whose keys are not two strings cannot be described by a Schema; the refusal says so.
func TestPlanSaysWhyATableCannotBeAdopted(t *testing.T) {
	for file, change := range map[string]func(*dynamodb.CreateTableInput){
		"plan-number-keys.txt": func(in *dynamodb.CreateTableInput) {
			in.AttributeDefinitions[1].AttributeType = types.ScalarAttributeTypeN
		},
		"plan-no-sort-key.txt": func(in *dynamodb.CreateTableInput) {
			in.KeySchema, in.LocalSecondaryIndexes = in.KeySchema[:1], nil
			in.AttributeDefinitions = append(in.AttributeDefinitions[:1:1], in.AttributeDefinitions[2:4]...)
		},
	} {
		t.Run(file, func(t *testing.T) {
			engines.Run(t, func(t *testing.T, e *engines.Engine) {
				tbl, f := open(t, e, table.Schema{Name: existing(t, e, change), Keys: existingKeys, NoTTL: true})
				golden(t, file, planned(t, tbl))
				require.ErrorIs(t, tbl.Ensure(t.Context()), table.ErrSchema)
				assert.Empty(t, changes(f))
			})
		})
	}
}

// A global index may have several attributes in each role of its key. An Index cannot describe it, so it is left alone
// unless the schema has an index of that name.
func TestPlanNamesAllKeyAttributesOfAnIndex(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		name := existing(t, e, func(in *dynamodb.CreateTableInput) {
			element := func(name string, role types.KeyType) types.KeySchemaElement {
				return types.KeySchemaElement{AttributeName: &name, KeyType: role}
			}
			in.GlobalSecondaryIndexes[0].KeySchema = []types.KeySchemaElement{
				element("customer", types.KeyTypeHash), element("PartKey", types.KeyTypeHash),
				element("score", types.KeyTypeRange), element("placed", types.KeyTypeRange),
			}
		})
		tbl, f := open(t, e, table.Schema{Name: name, Keys: existingKeys, NoTTL: true})
		require.NoError(t, tbl.Ensure(t.Context()))
		p, err := tbl.Plan(t.Context())
		require.NoError(t, err)
		assert.True(t, p.IsEmpty())
		assert.Contains(t, p.Unchanged, "index by-score, which is not in the schema")
		assert.Empty(t, changes(f))

		// Neither the last attributes nor the first ones are the whole key.
		for _, x := range []table.Index{
			{Name: "by-score", PK: "PartKey", SK: "placed"},
			{Name: "by-score", PK: "customer", SK: "score", SKType: table.Number},
		} {
			tbl, f = open(t, e, table.Schema{Name: name, Keys: existingKeys, NoTTL: true, Indexes: []table.Index{x}})
			p, err = tbl.Plan(t.Context())
			require.NoError(t, err)
			require.Len(t, p.Refused, 1)
			assert.Contains(t, p.Refused[0], "index is by-score (customer:S + PartKey:S, score:N + placed:S; all), the schema wants by-score (")
			require.ErrorIs(t, tbl.Ensure(t.Context()), table.ErrSchema)
			assert.Empty(t, changes(f))
		}
	})
}

// The billing mode of an existing table is nobody's business unless the schema asks for capacity.
func TestEnsureLeavesTheBillingModeAlone(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := table.Schema{Name: existing(t, e), Keys: existingKeys, NoTTL: true, Indexes: []table.Index{{Name: "gsi1", PK: "GSI1PK"}}}
		tbl, _ := open(t, e, s)
		require.NoError(t, tbl.Ensure(t.Context()))
		d := describe(t, e, s.Name)
		assert.NotEqual(t, types.BillingModePayPerRequest, billing(d))
		assert.EqualValues(t, 4, *d.ProvisionedThroughput.ReadCapacityUnits)
		for _, g := range d.GlobalSecondaryIndexes {
			assert.EqualValues(t, 4, *g.ProvisionedThroughput.ReadCapacityUnits, "%s: a new index gets what the table has", *g.IndexName)
		}
	})
}

func TestConcurrentEnsuresCompleteAnExistingTable(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s := table.Schema{
			Name: existing(t, e), Keys: existingKeys, Stream: table.StreamBoth,
			Indexes: []table.Index{{Name: "gsi1", PK: "GSI1PK"}, {Name: "gsi2", PK: "GSI2PK"}},
		}
		var group sync.WaitGroup
		errs := make([]error, 5)
		for i := range errs {
			tbl, _ := open(t, e, s)
			group.Go(func() { errs[i] = tbl.Ensure(t.Context()) })
		}
		group.Wait()
		for _, err := range errs {
			assert.NoError(t, err)
		}
		tbl, _ := open(t, e, s)
		require.NoError(t, tbl.Verify(t.Context()))
		assert.Len(t, describe(t, e, s.Name).GlobalSecondaryIndexes, 3)
	})
}
