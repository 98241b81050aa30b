package migrations_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Options of With come after those of New, and change nothing for others.
func TestWithOverridesOptions(t *testing.T) {
	engine := tabletest.New(t)
	tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"})
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	locks, err := lock.New(tbl, lock.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, locks.Close(context.Background())) })
	list := []migrations.Migration{{ID: "1_a", Up: func(context.Context, *migrations.Run) error { return nil }}}
	discard := migrations.WithLogger(slog.New(slog.DiscardHandler))
	m, err := migrations.New(tbl, locks, list, migrations.InSet("one"), discard)
	require.NoError(t, err)
	other, err := m.With(migrations.InSet("two"))
	require.NoError(t, err)
	_, err = other.Up(t.Context())
	require.NoError(t, err)
	for want, of := range map[migrations.State]*migrations.Migrator{migrations.Pending: m, migrations.Applied: other} {
		list, err := of.Status(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, list[0].State)
	}
	same, err := other.With()
	require.NoError(t, err)
	status, err := same.Status(t.Context())
	require.NoError(t, err)
	assert.Equal(t, migrations.Applied, status[0].State, "options of With stay")
	_, err = m.With(nil)
	require.ErrorIs(t, err, migrations.ErrInvalid)
}
