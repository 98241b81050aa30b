package migrations_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/migrations"
)

// A Down that cannot succeed does not leave a migration stuck, idempotent or not.
func TestDown_AFailureHasAWayOut(t *testing.T) {
	for _, idempotent := range []bool{false, true} {
		contract(t, func(ctx context.Context, w *world) {
			m := w.migrator([]migrations.Migration{{
				ID: "1_a", Idempotent: idempotent,
				Up:   func(ctx context.Context, run *migrations.Run) error { return run.Atomic(ctx, once("1_a")) },
				Down: func(context.Context, *migrations.Run) error { return assert.AnError },
			}})
			_, err := m.Up(ctx)
			require.NoError(w, err)
			_, err = m.Down(ctx)
			require.ErrorIs(w, err, assert.AnError)
			_, err = m.Up(ctx)
			require.ErrorIs(w, err, migrations.ErrUnfinished)
			made, err := m.Repair(ctx, func(f migrations.Fix) bool {
				assert.Contains(w, f.Text, "1_a")
				return f.Kind == migrations.Settle
			})
			require.NoError(w, err)
			require.Len(w, made, 1)
			_, err = m.Up(ctx)
			require.NoError(w, err)
			assert.EqualValues(w, 2, w.count("1_a"))
			left, err := m.Repair(ctx, nil)
			require.NoError(w, err)
			assert.Empty(w, left)
		})
	}
}

// Nothing comes after a repeatable migration: DownTo refuses to go down to it.
func TestDownTo_ARepeatableIsRefused(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		seed := migrations.Migration{ID: "seed", Repeatable: true, Up: func(context.Context, *migrations.Run) error { return nil }}
		m := w.migrator([]migrations.Migration{simple("1_a"), simple("2_b"), seed})
		_, err := m.Up(ctx)
		require.NoError(w, err)
		report, err := m.DownTo(ctx, "seed")
		require.ErrorIs(w, err, migrations.ErrInvalid)
		assert.Empty(w, report.Done)
		assert.Zero(w, w.count("down 1_a"))
	})
}
