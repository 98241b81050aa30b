package tabletest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRestore_BringsBackTheSnapshot(t *testing.T) {
	e, c := setup(t)
	require.NoError(t, add(t.Context(), c, "a"))
	snap := e.Snapshot()
	for range 2 {
		require.NoError(t, add(t.Context(), c, "a"))
		require.NoError(t, add(t.Context(), c, "b"))
		e.Restore(snap)
		assert.Equal(t, "1", count(t, c, "a", true))
		assert.Equal(t, "absent", count(t, c, "b", true))
	}
}
