package migrations_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// stepped is a migration of a step and a backfill that fails after some items, unless stopAfter is 0.
func stepped(stopAfter *int) migrations.Migration {
	up := func(ctx context.Context, run *migrations.Run) error {
		if err := run.Step(ctx, "prepare", func(context.Context) error { return nil }); err != nil {
			return err
		}
		n := 0
		_, err := run.Backfill(ctx, migrations.Backfill{
			Name: "fill", Segments: 1, Writers: 1, PageSize: 5, Filter: only(),
			Transform: func(ctx context.Context, item table.Item) (table.Item, error) {
				if n++; n == *stopAfter {
					return nil, errors.New("enough")
				}
				if n%2 == 0 {
					return nil, nil
				}
				return increment(ctx, item)
			},
		})
		return err
	}
	return migrations.Migration{ID: "1_fill", Idempotent: true, Up: up, Down: up}
}

func TestStatus_ShowsHowFarABackfillHasCome(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		w.fill(40)
		stop := 31
		m := w.start(lock.Config{}, []migrations.Migration{stepped(&stop), simple("2_next")}).m
		requests := func() int64 {
			ctx, usage := table.WithUsage(ctx)
			_, err := m.Status(ctx)
			require.NoError(w, err)
			return usage.Totals().Requests
		}
		_, err := m.Up(ctx)
		require.Error(w, err)

		list, err := m.Status(ctx)
		require.NoError(w, err)
		require.Len(w, list, 2)
		assert.Equal(w, migrations.Failed, list[0].State)
		assert.Empty(w, list[1].Steps)
		require.Len(w, list[0].Steps, 2)
		prepare, fill := list[0].Steps[0], list[0].Steps[1]
		assert.Equal(w, migrations.StepStatus{Name: "prepare", Done: true, At: prepare.At}, prepare)
		assert.False(w, prepare.At.IsZero())
		assert.False(w, fill.At.Before(prepare.At), "the last to be recorded comes last")
		assert.GreaterOrEqual(w, fill.Total, int64(40))
		assert.GreaterOrEqual(w, fill.Seen, int64(25), "of 31 all but the page that failed")
		assert.LessOrEqual(w, fill.Seen, int64(30))
		assert.Equal(w, migrations.StepStatus{
			Name: "fill", At: fill.At, Segments: 1, Seen: fill.Seen, Changed: (fill.Seen + 1) / 2, Total: fill.Total,
		}, fill)
		assert.EqualValues(w, 3, requests(), "two queries and a description")

		stop = 0
		_, err = m.Up(ctx)
		require.NoError(w, err)
		list, err = m.Status(ctx)
		require.NoError(w, err)
		assert.Empty(w, list[0].Steps, "what is applied has no open steps")
		assert.EqualValues(w, 1, requests())

		// Taken back, which stops earlier: what Up has done counts for nothing.
		_, err = m.Down(ctx) // 2_next
		require.NoError(w, err)
		stop = 8
		_, err = m.Down(ctx)
		require.Error(w, err)
		list, err = m.Status(ctx)
		require.NoError(w, err)
		require.Len(w, list[0].Steps, 2)
		assert.Less(w, list[0].Steps[1].Seen, int64(8))
	})
}

func TestStatus_RefusesAStepThatIsNotInOrder(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		w.fill(10)
		stop := 9
		m := w.start(lock.Config{}, []migrations.Migration{stepped(&stop)}).m
		_, err := m.Up(ctx)
		require.Error(w, err)
		s := w.table.Scheme()
		d := string(rune(s.Delimiter))
		part := keys.NewKey(s.Prefix+"MIGRATIONS"+d+"main", strings.Join([]string{"CHECKPOINT", "1_fill", "fill", "000001"}, d))
		require.NoError(w, w.table.Write(ctx, table.Update(part, table.Attr("seen").Set(-1)).If(table.Attr("seen").Exists())))
		_, err = m.Status(ctx)
		require.ErrorIs(w, err, migrations.ErrMalformed)
	})
}

// Resumable tells of an unfinished migration whether Up continues it, or Repair has to decide.
func TestStatus_TellsWhatUpContinues(t *testing.T) {
	for idempotent, want := range map[bool]error{true: assert.AnError, false: migrations.ErrUnfinished} {
		virtual(t, func(ctx context.Context, w *world) {
			fails := func(context.Context, *migrations.Run) error { return assert.AnError }
			m := w.migrator([]migrations.Migration{{ID: "1_a", Idempotent: idempotent, Up: fails}})
			_, err := m.Up(ctx)
			require.ErrorIs(w, err, assert.AnError)
			list, err := m.Status(ctx)
			require.NoError(w, err)
			assert.Equal(w, idempotent, list[0].Resumable)
			_, err = m.Up(ctx)
			require.ErrorIs(w, err, want)
		})
	}
}
