package table_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// A condition that was built from an empty list must not turn into no condition.
func TestConditionMadeOfNothingIsRefused(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		key := keys.NewKey("p", "s")
		require.NoError(t, f.Write(t.Context(), table.Put(f.KeyItem(key))))
		for name, cond := range map[string]table.Cond{
			"or": table.Or(), "or of none": table.Or(table.Cond{}, table.And()), "not": table.Not(table.Cond{}), "inside": table.And(table.Or(), table.Attr("pk").Exists()),
		} {
			require.ErrorIs(t, f.Write(t.Context(), table.Delete(key).If(cond)), table.ErrInvalid, name)
		}
		_, err := f.Get(t.Context(), key, true)
		require.NoError(t, err)
	})
}
