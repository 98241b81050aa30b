package table_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/table"
)

func TestATableThatMustExistIsNeverCreated(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		schema := table.Schema{Name: e.TableName(t), MustExist: true, Indexes: []table.Index{{Name: "gsi1", PK: "a"}}}
		tbl, f := open(t, e, schema)
		p, err := tbl.Plan(t.Context())
		require.ErrorIs(t, err, table.ErrNoTable)
		assert.Zero(t, p, "nothing is offered")
		for name, err := range map[string]error{"verify": tbl.Verify(t.Context()), "ensure": tbl.Ensure(t.Context())} {
			require.ErrorIs(t, err, table.ErrNoTable, name)
			assert.NotErrorIs(t, err, table.ErrSchema, name)
			assert.ErrorContains(t, err, schema.Name, name)
		}
		assert.Empty(t, changes(f))

		by, _ := open(t, e, table.Schema{Name: schema.Name, NoTTL: true}) // whoever creates it
		require.NoError(t, by.Ensure(t.Context()))
		p, err = tbl.Plan(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []table.StepKind{table.AddIndex, table.EnableTTL}, kinds(p))
		require.ErrorIs(t, tbl.Verify(t.Context()), table.ErrSchema)
		require.NoError(t, tbl.Ensure(t.Context()), "what is missing in it is added")
		assert.Equal(t, []string{"UpdateTable", "UpdateTimeToLive"}, changes(f))
		require.NoError(t, tbl.Verify(t.Context()))
	})
}

func TestAMissingTableIsADifferenceOtherwise(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tbl, _ := open(t, e, table.Schema{Name: e.TableName(t)})
		p, err := tbl.Plan(t.Context())
		require.NoError(t, err)
		assert.Contains(t, kinds(p), table.CreateTable)
		assert.ErrorIs(t, tbl.Verify(t.Context()), table.ErrSchema)
	})
}
