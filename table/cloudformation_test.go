package table_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/table"
)

// A table made from the resource is the table that the schema wants.
func TestCloudFormation_MakesWhatEnsureMakes(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		full := exported()
		full.Tags = map[string]string{"team": "orders", "cost/center": "c+d=e@f"} // the alphabet that DynamoDB allows
		if e.Name != engines.InProcess {
			full.PointInTimeRecovery, full.Tags = false, nil // DynamoDB Local has neither
		}
		for name, s := range map[string]table.Schema{
			"full": full, "defaults": {}, "on demand": {Indexes: []table.Index{{Name: "gsi1", PK: "g", PKType: table.Binary}}, NoTTL: true},
		} {
			t.Run(name, func(t *testing.T) {
				s.Name = e.TableName(t)
				data, err := s.CloudFormation()
				require.NoError(t, err)
				build(t, e.Client(), data)
				if s.DeletionProtection {
					t.Cleanup(func() { unprotect(t, e, s.Name) })
				}
				tbl, f := open(t, e, s)
				require.NoError(t, tbl.Verify(t.Context()))
				require.NoError(t, tbl.Ensure(t.Context()))
				assert.Empty(t, changes(f))
			})
		}
	})
}
