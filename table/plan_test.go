package table_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
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

// A table whose keys are not two strings cannot be described by a Schema; the refusal says so.
func TestPlan_TellsWhyATableCannotBeAdopted(t *testing.T) {
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
func TestPlan_NamesAllKeyAttributesOfAnIndex(t *testing.T) {
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
