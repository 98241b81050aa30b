package migrations_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
)

// golang-migrate #282, #518: dirty states without a way out.
func TestRepair_AFailedMigrationHasAWayOut(t *testing.T) {
	for _, kind := range []migrations.FixKind{migrations.Retry, migrations.Settle} {
		t.Run(string(kind), func(t *testing.T) {
			contract(t, func(ctx context.Context, w *world) {
				broken := true
				list := []migrations.Migration{{ID: "1_a", Up: func(ctx context.Context, run *migrations.Run) error {
					if err := run.AtomicStep(ctx, "first", once("first")); err != nil {
						return err
					}
					if broken {
						return assert.AnError
					}
					return run.Atomic(ctx, once("1_a"))
				}}}
				m := w.migrator(list)
				_, err := m.Up(ctx)
				require.ErrorIs(w, err, assert.AnError)
				broken = false
				_, err = m.Up(ctx)
				require.ErrorIs(w, err, migrations.ErrUnfinished)
				require.ErrorIs(w, m.Validate(ctx), migrations.ErrUnfinished)
				listed, err := m.Repair(ctx, nil)
				require.NoError(w, err)
				require.Len(w, listed, 2)
				assert.Contains(w, listed[0].Text, assert.AnError.Error())
				made, err := m.Repair(ctx, func(f migrations.Fix) bool { return f.Kind == kind })
				require.NoError(w, err)
				require.Len(w, made, 1)
				report, err := m.Up(ctx)
				require.NoError(w, err)
				assert.EqualValues(w, 1, w.count("first"), "what was done stays done")
				if kind == migrations.Settle {
					assert.Empty(w, report.Done)
					assert.Zero(w, w.count("1_a"))
				} else {
					assert.EqualValues(w, 1, w.count("1_a"))
				}
				require.NoError(w, m.Validate(ctx))
				status, err := m.Status(ctx)
				require.NoError(w, err)
				assert.Equal(w, migrations.Applied, status[0].Record.State)
				assert.Empty(w, status[0].Record.Error, "it is applied, and has not failed")
			})
		})
	}
}

// A fix of a failed migration often comes with another revision. What is settled counts as applied with that one.
func TestRepair_SettlesTheRevisionOfTheProgram(t *testing.T) {
	for name, repeatable := range map[string]bool{"once": false, "repeatable": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				fails := func(context.Context, *migrations.Run) error { return assert.AnError }
				_, err := w.migrator([]migrations.Migration{{ID: "1_a", Repeatable: repeatable, Revision: "a", Up: fails}}).Up(ctx)
				require.ErrorIs(w, err, assert.AnError)
				m := w.migrator([]migrations.Migration{{ID: "1_a", Repeatable: repeatable, Revision: "b", Up: simple("1_a").Up}})
				made, err := m.Repair(ctx, func(f migrations.Fix) bool { return f.Kind == migrations.Settle })
				require.NoError(w, err)
				require.Len(w, made, 1)
				require.NoError(w, m.Validate(ctx))
				report, err := m.Up(ctx)
				require.NoError(w, err)
				assert.Empty(w, report.Done)
				assert.Zero(w, w.count("1_a"))
			})
		})
	}
}

// A repeatable migration of another revision runs as a whole. The text on which an operator decides says so.
func TestRepair_SaysWhetherARetrySkipsSteps(t *testing.T) {
	for revision, c := range map[string]struct {
		text string
		want int64
	}{
		"a": {"let Up run 1_a again, without the steps that are done: ", 1},
		"b": {"let Up run 1_a again, from its beginning, since its revision has changed: ", 2},
	} {
		virtual(t, func(ctx context.Context, w *world) {
			list := func(revision string, result error) []migrations.Migration {
				return []migrations.Migration{{ID: "1_a", Repeatable: true, Revision: revision, Up: func(ctx context.Context, run *migrations.Run) error {
					if err := run.AtomicStep(ctx, "s", once("s")); err != nil {
						return err
					}
					return result
				}}}
			}
			_, err := w.migrator(list("a", assert.AnError)).Up(ctx)
			require.ErrorIs(w, err, assert.AnError)
			m := w.migrator(list(revision, nil))
			made, err := m.Repair(ctx, func(f migrations.Fix) bool { return f.Kind == migrations.Retry })
			require.NoError(w, err)
			require.Len(w, made, 1)
			assert.Contains(w, made[0].Text, c.text)
			_, err = m.Up(ctx)
			require.NoError(w, err)
			assert.Equal(w, c.want, w.count("s"))
		})
	}
}

// Repair waits for another instance without reading the records again and again.
func TestRepair_WaitsWithoutReading(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		list := []migrations.Migration{{ID: "1_a", Up: func(context.Context, *migrations.Run) error { return assert.AnError }}}
		p, other := w.start(lock.Config{}, list), w.start(lock.Config{}, list)
		_, err := p.m.Up(ctx)
		require.ErrorIs(w, err, assert.AnError)
		l, err := p.locks.Acquire(ctx, lock.Beside(migrationsRow))
		require.NoError(w, err)
		time.AfterFunc(10*time.Minute, func() { assert.NoError(w, l.Release(ctx)) })
		w.engine.ResetRequests()
		_, err = other.m.Repair(ctx, func(migrations.Fix) bool { return true })
		require.NoError(w, err)
		reads := 0
		for _, r := range w.engine.Requests() {
			if r.Operation == "Query" {
				reads++
			}
		}
		assert.LessOrEqual(w, reads, 3)
	})
}

// A migration that was cut off has not failed, also when it may run again.
func TestRepair_ARetryLeavesACutOffMigrationCutOff(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var p *process
		p = w.start(lock.Config{}, []migrations.Migration{{ID: "1_a", Up: func(ctx context.Context, _ *migrations.Run) error {
			p.line.kill()
			return ctx.Err()
		}}})
		_, err := p.m.Up(ctx)
		require.Error(w, err)
		m := w.migrator(listOf("1_a"))
		_, err = m.Up(ctx)
		require.ErrorIs(w, err, migrations.ErrUnfinished)
		made, err := m.Repair(ctx, func(f migrations.Fix) bool { return f.Kind == migrations.Retry })
		require.NoError(w, err)
		require.Len(w, made, 1)
		list, err := m.Status(ctx)
		require.NoError(w, err)
		assert.Equal(w, migrations.Running, list[0].State)
		assert.True(w, list[0].Resumable)
		assert.False(w, list[0].Live)
		plan, err := m.Plan(ctx)
		require.NoError(w, err)
		require.Len(w, plan, 1)
		assert.Equal(w, "resume 1_a, which was cut off in attempt 1", plan[0].Text)
		report, err := m.Up(ctx)
		require.NoError(w, err)
		assert.Len(w, report.Done, 1)
		assert.EqualValues(w, 1, w.count("1_a"))
	})
}
