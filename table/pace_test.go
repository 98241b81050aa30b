package table_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/pace"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A caller that paces its requests is asked before every single one, repeated ones included, and nothing is sent that it refuses.
func TestPace_IsAskedBeforeEveryRequest(t *testing.T) {
	engine := tabletest.New(t)
	tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"})
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	for i := range 5 {
		require.NoError(t, tbl.Write(t.Context(), table.Put(tbl.KeyItem(keys.NewKey("p", string(rune('a'+i)))))))
	}
	engine.ResetRequests()
	asked, refuse := 0, errors.New("not now")
	ctx := pace.With(t.Context(), func(context.Context) error {
		if asked++; asked > 6 {
			return refuse
		}
		return nil
	})
	_, err = tbl.BatchGet(ctx, []keys.Key{keys.NewKey("p", "a")}, false)
	require.NoError(t, err)
	engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Operation: "Query", Times: 1})
	read := 0
	for _, err := range tbl.Query(ctx, table.Query{PK: "p", PageSize: 2}) {
		require.NoError(t, err)
		read++
	}
	assert.Equal(t, 5, read)
	assert.Equal(t, 5, asked, "a batch, three pages, and one of them again")
	_, err = tbl.Estimate(ctx)
	require.NoError(t, err)
	assert.Len(t, engine.Requests(), asked)

	_, err = tbl.Get(ctx, keys.NewKey("p", "a"), true)
	require.ErrorIs(t, err, refuse)
	assert.Len(t, engine.Requests(), 6)
}
