package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestNew_RefusesBadLists(t *testing.T) {
	virtual(t, func(_ context.Context, w *world) {
		up := func(context.Context, *migrations.Run) error { return nil }
		p := w.start(lock.Config{}, nil)
		for want, list := range map[string][]migrations.Migration{
			`ID ""`:                  {{Up: up}},
			`ID "a b"`:               {{ID: "a b", Up: up}},
			`ID "a#b"`:               {{ID: "a#b", Up: up}},
			`the ID of "01_a" too`:   {{ID: "01_a", Up: up}, {ID: "1_a", Up: up}},
			"Up is nil":              {{ID: "1"}},
			"has no Down":            {{ID: "1", Up: up, Down: up, Repeatable: true}},
			"Name: want at most":     {{ID: "1", Up: up, Name: strings.Repeat("x", 257)}},
			"Revision: want at most": {{ID: "1", Up: up, Revision: "\xff"}},
			"want 1 to 128":          {{ID: strings.Repeat("1", 129), Up: up}},
		} {
			_, err := migrations.New(p.table, p.locks, list)
			require.ErrorIs(w, err, migrations.ErrInvalid, want)
			require.ErrorContains(w, err, want)
		}
		for _, opt := range []migrations.Option{
			nil, migrations.InSet(""), migrations.InSet(strings.Repeat("x", 65)), migrations.OnDrift(7), migrations.OnUnknown(-1),
			migrations.OutOfOrder(9), migrations.WithLogger(nil), migrations.WithProgress(nil),
		} {
			_, err := migrations.New(p.table, p.locks, nil, opt)
			require.ErrorIs(w, err, migrations.ErrInvalid)
		}
		_, err := migrations.New(nil, p.locks, nil)
		require.ErrorIs(w, err, migrations.ErrInvalid)
		other, err := table.Open(w.connect(), table.Schema{Name: "other"})
		require.NoError(w, err)
		_, err = migrations.New(other, p.locks, nil)
		require.ErrorIs(w, err, migrations.ErrInvalid)
		for _, f := range []func() error{
			func() error { _, err := p.m.UpTo(w.Context(), "x"); return err },
			func() error { _, err := p.m.DownTo(w.Context(), "x"); return err },
			func() error { _, err := p.m.Baseline(w.Context(), "x"); return err },
		} {
			require.ErrorIs(w, f(), migrations.ErrInvalid)
		}
		assert.Zero(w, p.line.calls.Load(), "nothing was sent")
	})
}

func TestStep_RefusesBadSteps(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		nothing := func(context.Context) error { return nil }
		for name, up := range map[string]func(ctx context.Context, run *migrations.Run) error{
			"no name": func(ctx context.Context, run *migrations.Run) error { return run.Step(ctx, "", nothing) },
			"long name": func(ctx context.Context, run *migrations.Run) error {
				return run.Step(ctx, strings.Repeat("x", 129), nothing)
			},
			"no f":      func(ctx context.Context, run *migrations.Run) error { return run.Step(ctx, "a", nil) },
			"no ops":    func(ctx context.Context, run *migrations.Run) error { return run.AtomicStep(ctx, "a") },
			"no ops, 2": func(ctx context.Context, run *migrations.Run) error { return run.Atomic(ctx) },
			"99 ops":    func(ctx context.Context, run *migrations.Run) error { return run.Atomic(ctx, make([]table.Op, 99)...) },
			"twice": func(ctx context.Context, run *migrations.Run) error {
				if err := run.Step(ctx, "a", nothing); err != nil {
					return err
				}
				return run.Step(ctx, "a", nothing)
			},
			"nested": func(ctx context.Context, run *migrations.Run) error {
				return run.Step(ctx, "a", func(ctx context.Context) error { return run.Step(ctx, "b", nothing) })
			},
			"atomic in a step": func(ctx context.Context, run *migrations.Run) error {
				return run.Step(ctx, "a", func(ctx context.Context) error { return run.Atomic(ctx, once("x")) })
			},
		} {
			_, err := w.migrator([]migrations.Migration{{ID: "1", Up: up}}, migrations.InSet(name)).Up(ctx)
			require.ErrorIs(w, err, migrations.ErrInvalid, name)
		}
		var after error
		m := w.migrator([]migrations.Migration{{ID: "1", Up: func(ctx context.Context, run *migrations.Run) error {
			if err := run.Step(ctx, strings.Repeat("#", 128), nothing); err != nil {
				return err
			}
			if err := run.Atomic(ctx, once("1")); err != nil {
				return err
			}
			for _, again := range []error{run.Write(ctx, once("1")), run.Atomic(ctx, once("1")), run.Step(ctx, "b", nothing)} {
				require.ErrorIs(w, again, migrations.ErrRecorded)
			}
			after = run.AtomicStep(ctx, "c", once("1"))
			return nil
		}}}, migrations.InSet("odd # set/é"))
		report, err := m.Up(ctx)
		require.NoError(w, err)
		require.ErrorIs(w, after, migrations.ErrRecorded)
		assert.Len(w, report.Done, 1)
		assert.EqualValues(w, 1, w.count("1"))

		late := errors.New("too late")
		m = w.migrator([]migrations.Migration{{ID: "1", Up: func(ctx context.Context, run *migrations.Run) error {
			return errors.Join(run.Atomic(ctx, once("2")), late)
		}}}, migrations.InSet("late"))
		_, err = m.Up(ctx)
		require.ErrorIs(w, err, late)
		require.ErrorContains(w, err, "after it was recorded as finished: too late")
		list, err := m.Status(ctx)
		require.NoError(w, err)
		assert.Equal(w, migrations.Applied, list[0].State)
	})
}

func TestNew_DriftAndUnknown(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		v1 := []migrations.Migration{simple("1_a"), simple("2_b")}
		_, err := w.migrator(v1).Up(ctx)
		require.NoError(w, err)
		changed := simple("1_a")
		changed.Revision = "2"
		v2 := []migrations.Migration{changed, simple("3_c")}
		_, err = w.migrator(v2).Up(ctx)
		var drift *migrations.DriftError
		var unknown *migrations.UnknownError
		require.ErrorAs(w, err, &drift)
		require.ErrorAs(w, err, &unknown)
		assert.Equal(w, []migrations.Drift{{ID: "1_a", Now: "2"}}, drift.Drifted)
		assert.Equal(w, []string{"2_b"}, unknown.IDs)
		assert.Equal(w, `migrations: up: the table has records of unknown migrations: 2_b; an applied migration was changed: 1_a (applied "", now "2")`, err.Error())
		var log journal
		report, err := w.migrator(v2, migrations.OnDrift(migrations.Warn), migrations.OnUnknown(migrations.Warn), migrations.WithLogger(log.logger())).Up(ctx)
		require.NoError(w, err)
		assert.Len(w, report.Done, 1)
		assert.Contains(w, log.String(), "1_a")
		m := w.migrator(v2)
		made, err := m.Repair(ctx, func(migrations.Fix) bool { return true })
		require.NoError(w, err)
		assert.Len(w, made, 2)
		require.NoError(w, m.Validate(ctx))
		assert.EqualValues(w, 1, w.count("1_a"))
	})
}

func TestMigrator_BaselineUpToDownTo(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		var list []migrations.Migration
		for i := range 150 {
			list = append(list, simple(fmt.Sprintf("%d_x", i+1)))
		}
		m := w.migrator(list)
		report, err := m.Baseline(ctx, "120_x")
		require.NoError(w, err)
		assert.Len(w, report.Done, 120)
		report, err = m.Baseline(ctx, "120_x")
		require.NoError(w, err)
		assert.Empty(w, report.Done)
		report, err = m.UpTo(ctx, "125_x")
		require.NoError(w, err)
		require.Len(w, report.Done, 5)
		assert.Equal(w, "121_x", report.Done[0].ID)
		report, err = m.DownTo(ctx, "118_x")
		require.NoError(w, err)
		require.Len(w, report.Done, 7)
		assert.Equal(w, "125_x", report.Done[0].ID)
		assert.Equal(w, migrations.Pending, report.Done[0].State)
		actions, err := m.Plan(ctx)
		require.NoError(w, err)
		require.Len(w, actions, 32)
		assert.Equal(w, "run 119_x", actions[0].Text)
		_, err = m.Up(ctx)
		require.NoError(w, err)
		assert.EqualValues(w, 1, w.count("119_x"))
		assert.EqualValues(w, 2, w.count("121_x"))
		report, err = m.Down(ctx)
		require.NoError(w, err)
		assert.Equal(w, "150_x", report.Done[0].ID)
		assert.EqualValues(w, 1, w.count("down 150_x"))
	})
}

// Records fill several pages of a query.
func TestMigrator_TenThousandMigrations(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		count := testkit.IfSmall(1_000, 10_000)
		up := func(context.Context, *migrations.Run) error { return nil }
		list := make([]migrations.Migration, count)
		for i := range list {
			list[i] = migrations.Migration{ID: fmt.Sprintf("%d_x", i), Name: strings.Repeat("n", 100), Up: up}
		}
		m := w.migrator(list)
		_, err := m.Baseline(ctx, fmt.Sprintf("%d_x", count-2))
		require.NoError(w, err)
		start := time.Now()
		ctx, usage := table.WithUsage(ctx)
		report, err := m.Up(ctx)
		require.NoError(w, err)
		require.Len(w, report.Done, 1)
		w.Logf("Up among %d migrations: %v, %d requests", count, time.Since(start).Round(time.Millisecond), usage.Totals().Requests)
		assert.Less(w, usage.Totals().Requests, int64(30))
	})
}

// Whatever lists, crashes and policies there are: nothing is applied twice or skipped, and
// the order is kept.
func TestMigrator_NeverTwiceNeverSkipped(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		count := rapid.IntRange(1, 6).Draw(r, "migrations")
		kills := rapid.SliceOfN(rapid.IntRange(1, 60), 0, 4).Draw(r, "kills")
		after := rapid.Bool().Draw(r, "after")
		order := rapid.SampledFrom([]migrations.Order{migrations.Refuse, migrations.RunAnyway}).Draw(r, "order")
		steps := rapid.SliceOfN(rapid.IntRange(0, 3), count, count).Draw(r, "steps")
		virtual(t, func(ctx context.Context, w *world) {
			const items = 10
			w.fill(items)
			list := make([]migrations.Migration, count)
			for i := range list {
				id := fmt.Sprintf("%d_m", 7*i+3)
				list[count-1-i] = migrations.Migration{ID: id, Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
					if steps[i] == 3 {
						if _, err := run.Backfill(ctx, migrations.Backfill{
							Name: "fill", Segments: 2, PageSize: 3, Exact: true, Filter: only(), Transform: func(_ context.Context, item table.Item) (table.Item, error) {
								item[id] = num(integer(item[id]) + 1)
								return item, nil
							},
						}); err != nil {
							return err
						}
					}
					for s := range steps[i] {
						if err := run.AtomicStep(ctx, fmt.Sprint("s", s), once(fmt.Sprint(id, "/", s))); err != nil {
							return err
						}
					}
					// The order is kept: the one before is there, and the one after is not.
					if i > 0 && w.count(fmt.Sprintf("%d_m", 7*i-4)) != 1 || w.count(fmt.Sprintf("%d_m", 7*i+10)) != 0 {
						w.Errorf("%s runs out of order", id)
					}
					return run.Atomic(ctx, once(id))
				}}
			}
			for _, at := range kills {
				p := w.start(lock.Config{}, list, migrations.OutOfOrder(order))
				p.line.at, p.line.after = int64(at), after
				_, _ = p.m.Up(p.ctx)
				if !p.line.dead.Load() {
					p.line.kill()
				}
			}
			m := w.migrator(list, migrations.OutOfOrder(order))
			_, err := m.Up(ctx)
			require.NoError(w, err)
			require.NoError(w, m.Validate(ctx))
			for i := range count {
				id := fmt.Sprintf("%d_m", 7*i+3)
				assert.EqualValues(w, 1, w.count(id), id)
				for item := range items {
					assert.EqualValues(w, steps[i]/3, integer(w.get(itemKey(item))[id]))
				}
				for s := range steps[i] {
					assert.EqualValues(w, 1, w.count(fmt.Sprint(id, "/", s)))
				}
			}
			assert.Empty(w, w.watch.backs)
		})
		if t.Failed() {
			r.Fatal("see above")
		}
	})
}

// Down of another revision than the one that was applied is not run without a word.
func TestDown_OfADriftedMigration(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		_, err := w.migrator([]migrations.Migration{simple("1_a"), simple("2_b")}).Up(ctx)
		require.NoError(w, err)
		changed := simple("2_b")
		changed.Revision = "2"
		list := []migrations.Migration{simple("1_a"), changed}
		for _, down := range []func(m *migrations.Migrator) (migrations.Report, error){
			func(m *migrations.Migrator) (migrations.Report, error) { return m.Down(ctx) },
			func(m *migrations.Migrator) (migrations.Report, error) { return m.DownTo(ctx, "") },
		} {
			report, err := down(w.migrator(list))
			var drift *migrations.DriftError
			require.ErrorAs(w, err, &drift)
			assert.Equal(w, []migrations.Drift{{ID: "2_b", Now: "2"}}, drift.Drifted)
			assert.Empty(w, report.Done)
		}
		assert.Zero(w, w.count("down 2_b"))
		var log journal
		_, err = w.migrator(list, migrations.OnDrift(migrations.Warn), migrations.WithLogger(log.logger())).Down(ctx)
		require.NoError(w, err)
		assert.Contains(w, log.String(), "2_b")
		assert.EqualValues(w, 1, w.count("down 2_b"))
		_, err = w.migrator(list).Down(ctx) // what comes before it is not drifted
		require.NoError(w, err)
		assert.EqualValues(w, 1, w.count("down 1_a"))
	})
}

// Options of With come after those of New, and change nothing for others.
func TestWith_OverridesOptions(t *testing.T) {
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
