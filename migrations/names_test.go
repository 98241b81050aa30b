package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// An index of the application whose key is an attribute of records would contain them among the application's rows. Package lock refuses
// such names for its rows, too.
func TestNew_RefusesCollidingAttributeNames(t *testing.T) {
	for _, name := range []string{
		"name", "revision", "state", "down", "baseline", "base", "attempts", "started", "finished", "took", "approved", "step", "error", "repeatable",
		"done", "segments", "after_pk", "after_sk", "seen", "changed", "seq", "at",
	} {
		for what, schema := range map[string]table.Schema{
			"the time to live":       {Keys: keys.Scheme{TTL: name}},
			"the type":               {Keys: keys.Scheme{Type: name}},
			"the partition key":      {Keys: keys.Scheme{PK: name}},
			"the sort key":           {Keys: keys.Scheme{SK: name}},
			"a key of index by-it":   {Indexes: []table.Index{{Name: "by-it", PK: name}}},
			"a key of index by-that": {Indexes: []table.Index{{Name: "by-that", PK: "that", SK: name, SKType: table.Number}}},
		} {
			schema.Name = "app"
			for prefix, refused := range map[string]bool{"": true, "lock_": false} {
				tbl, err := table.Open(tabletest.New(t).Client(), schema)
				require.NoError(t, err)
				locks, err := lock.New(tbl, lock.Config{AttributePrefix: prefix})
				require.NoError(t, err)
				_, err = migrations.New(tbl, locks, listOf("1"))
				require.NoError(t, locks.Close(t.Context()))
				if !refused {
					require.NoError(t, err, "%s %s", what, name)
					continue
				}
				require.ErrorIs(t, err, migrations.ErrInvalid, "%s %s", what, name)
				require.ErrorContains(t, err, `attribute "`+name+`" of the records is `+what)
				require.ErrorContains(t, err, "lock.Config.AttributePrefix", "the way out")
			}
		}
	}
}
