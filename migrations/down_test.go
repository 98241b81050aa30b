package migrations_test

import (
	"context"
	"fmt"
	"sync"
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

// As in the tests of goose: each of several calls at once takes one migration back, and none is taken back twice.
func TestDown_ConcurrentInstancesTakeBackOneEach(t *testing.T) {
	t.Parallel()
	everywhere(t, func(ctx context.Context, w *world) {
		const count = 8
		var ids []string
		for i := range count {
			ids = append(ids, fmt.Sprint(i+1, "_m"))
		}
		_, err := w.migrator(listOf(ids...)).Up(ctx)
		require.NoError(w, err)
		reports := make([]migrations.Report, count)
		var group sync.WaitGroup
		for i := range reports {
			m := w.migrator(listOf(ids...))
			group.Go(func() {
				var err error
				reports[i], err = m.Down(ctx)
				assert.NoError(w, err)
			})
		}
		group.Wait()
		for _, r := range reports {
			assert.Len(w, r.Done, 1)
		}
		for _, id := range ids {
			assert.EqualValues(w, 1, w.count("down "+id), id)
		}
	})
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

// With RunAnyway, the last ID is not always that of the last migration.
func TestDown_TakesBackTheOneAppliedLast(t *testing.T) {
	for name, down := range map[string]func(ctx context.Context, m *migrations.Migrator) ([]migrations.Record, error){
		"one by one": func(ctx context.Context, m *migrations.Migrator) (done []migrations.Record, err error) {
			for range 3 {
				report, err := m.Down(ctx)
				if err != nil {
					return done, err
				}
				done = append(done, report.Done...)
			}
			return done, nil
		},
		"down to": func(ctx context.Context, m *migrations.Migrator) ([]migrations.Record, error) {
			report, err := m.DownTo(ctx, "3_c")
			return report.Done, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				_, err := w.migrator(listOf("1_a", "3_c", "5_e", "6_f")).Up(ctx)
				require.NoError(w, err)
				m := w.migrator(listOf("1_a", "3_c", "4_d", "5_e", "6_f"), migrations.OutOfOrder(migrations.RunAnyway))
				_, err = m.Up(ctx)
				require.NoError(w, err)
				done, err := down(ctx, m)
				require.NoError(w, err)
				var ids []string
				for _, r := range done {
					ids = append(ids, r.ID)
					assert.EqualValues(w, 1, w.count("down "+r.ID))
				}
				assert.Equal(w, []string{"4_d", "6_f", "5_e"}, ids)
			})
		})
	}
}

// Baseline records a migration that was applied earlier, such as one that has a new ID. Down takes those back first that were
// applied after it.
func TestDown_TakesABaselineBackAfterThoseThatFollowIt(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		_, err := w.migrator(listOf("1_a", "2_b", "3_c")).Up(ctx)
		require.NoError(w, err)
		m := w.migrator(listOf("1_a", "2_renamed", "3_c"))
		_, err = m.Repair(ctx, func(migrations.Fix) bool { return true })
		require.NoError(w, err)
		_, err = m.Baseline(ctx, "2_renamed")
		require.NoError(w, err)
		for _, want := range []string{"3_c", "2_renamed", "1_a"} {
			report, err := m.Down(ctx)
			require.NoError(w, err)
			require.Len(w, report.Done, 1)
			assert.Equal(w, want, report.Done[0].ID)
		}
	})
}

// Another version of the program has applied a migration that this one does not know.
func TestDown_TakesNothingBackUnderAnUnknownOneThatCameLater(t *testing.T) {
	for name, c := range map[string]struct {
		runs  [][]string // what programs know that go up, one after the other
		known []string   // by the program that goes down
		to    string     // empty for Down
		want  string     // what it takes back; empty for nothing
	}{
		"later in the same run":   {[][]string{{"1_a", "2_b", "3_x"}}, []string{"1_a", "2_b"}, "", ""},
		"in a later run":          {[][]string{{"1_a", "2_b"}, {"1_a", "2_b", "3_x"}}, []string{"1_a", "2_b"}, "", ""},
		"later with a lower ID":   {[][]string{{"1_a", "3_c"}, {"1_a", "2_x", "3_c"}}, []string{"1_a", "3_c"}, "", ""},
		"later than one of them":  {[][]string{{"1_a", "2_b", "3_x", "4_d"}}, []string{"1_a", "2_b", "4_d"}, "1_a", ""},
		"earlier than all":        {[][]string{{"1_a", "2_b", "3_x", "4_d"}}, []string{"1_a", "2_b", "4_d"}, "2_b", "4_d"},
		"earlier in the same run": {[][]string{{"1_a", "2_x", "3_c"}}, []string{"1_a", "3_c"}, "", "3_c"},
		"in an earlier run":       {[][]string{{"1_a", "2_x"}, {"1_a", "2_x", "3_c"}}, []string{"1_a", "3_c"}, "", "3_c"},
		"earlier, higher ID":      {[][]string{{"1_a", "3_x"}, {"1_a", "2_b", "3_x"}}, []string{"1_a", "2_b"}, "", "2_b"},
		"later, but repeatable":   {[][]string{{"1_a", "2_b"}, {"1_a", "2_b", "3_seed"}}, []string{"1_a", "2_b"}, "", "2_b"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				for _, ids := range c.runs {
					_, err := w.migrator(listOf(ids...), migrations.OutOfOrder(migrations.RunAnyway)).Up(ctx)
					require.NoError(w, err)
				}
				m := w.migrator(listOf(c.known...), migrations.OnUnknown(migrations.Warn))
				down := m.Down
				if c.to != "" {
					down = func(ctx context.Context) (migrations.Report, error) { return m.DownTo(ctx, c.to) }
				}
				report, err := down(ctx)
				if c.want == "" {
					var unknown *migrations.UnknownError
					require.ErrorAs(w, err, &unknown)
					assert.Len(w, unknown.IDs, 1)
					assert.Empty(w, report.Done)
				} else {
					require.NoError(w, err)
					require.Len(w, report.Done, 1)
					assert.Equal(w, c.want, report.Done[0].ID)
				}
				for _, id := range c.known {
					assert.Equal(w, id == c.want, w.count("down "+id) == 1, id)
				}
			})
		})
	}
}
