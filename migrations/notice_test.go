package migrations_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Whatever an author's function makes of it: what was not done is not recorded as done.
func TestFailureIsNoticedWhateverTheAuthorDoes(t *testing.T) {
	fails := func(context.Context) error { return assert.AnError }
	for name, c := range map[string]struct {
		up   func(ctx context.Context, run *migrations.Run)
		step string
		text string
	}{
		"step ignored": {func(ctx context.Context, run *migrations.Run) { _ = run.Step(ctx, "a", fails) }, "a", assert.AnError.Error()},
		"panic recovered": {func(ctx context.Context, run *migrations.Run) {
			defer func() { _ = recover() }()
			_ = run.Step(ctx, "a", func(context.Context) error { panic("oops") })
		}, "a", "did not return"},
		"goroutine ended": {func(ctx context.Context, run *migrations.Run) {
			var group sync.WaitGroup
			group.Go(func() {
				_ = run.Step(ctx, "a", func(context.Context) error { runtime.Goexit(); return nil })
			})
			group.Wait()
		}, "a", "did not return"},
		"atomic ignored": {func(ctx context.Context, run *migrations.Run) {
			_ = run.Atomic(ctx, once("x").If(table.Attr("pk").Exists()))
		}, "", "condition"},
		"atomic too large, ignored": {func(ctx context.Context, run *migrations.Run) {
			_ = run.Atomic(ctx, make([]table.Op, 99)...)
		}, "", "operation"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				m := w.migrator([]migrations.Migration{{ID: "1_a", Up: func(ctx context.Context, run *migrations.Run) error {
					c.up(ctx, run)
					return nil
				}}})
				report, err := m.Up(ctx)
				var failed *migrations.PartialError
				require.ErrorAs(w, err, &failed)
				assert.Equal(w, c.step, failed.Step)
				assert.Empty(w, report.Done)
				st, err := m.Status(ctx)
				require.NoError(w, err)
				assert.Equal(w, migrations.Failed, st[0].State)
				assert.Equal(w, c.step, st[0].Record.Step)
				assert.Contains(w, st[0].Record.Error, c.text)
				_, err = m.Up(ctx)
				require.ErrorIs(w, err, migrations.ErrUnfinished)
			})
		})
	}
}

// An Atomic that failed and then succeeds has not failed.
func TestAtomicAgain(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		m := w.migrator([]migrations.Migration{{ID: "1_a", Up: func(ctx context.Context, run *migrations.Run) error {
			if err := run.Atomic(ctx, once("x").If(table.Attr("pk").Exists())); !errors.Is(err, table.ErrCondition) {
				return errors.New("want a failed condition")
			}
			return run.Atomic(ctx, once("x"))
		}}})
		_, err := m.Up(ctx)
		require.NoError(w, err)
		assert.EqualValues(w, 1, w.count("x"))
	})
}

// A shutdown that comes while the end of a migration is being recorded does not make a
// failure of it; one that cannot be recorded does not hold up the shutdown.
func TestCancelledWhileItIsRecorded(t *testing.T) {
	for _, c := range []struct {
		delay time.Duration
		want  migrations.State
	}{{time.Second, migrations.Applied}, {time.Hour, migrations.Running}} {
		virtual(t, func(ctx context.Context, w *world) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			p := w.start(lock.Config{}, []migrations.Migration{{ID: "1_a", Up: func(context.Context, *migrations.Run) error {
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, Operation: "TransactWriteItems", For: c.delay})
				time.AfterFunc(500*time.Millisecond, cancel)
				return nil
			}}})
			start := time.Now()
			_, err := p.m.Up(ctx)
			assert.Less(w, time.Since(start), 15*time.Second)
			st, problem := p.m.Status(w.Context())
			require.NoError(w, problem)
			assert.Equal(w, c.want, st[0].State)
			assert.Equal(w, c.want == migrations.Applied, err == nil, "%v", err)
		})
	}
}

// A Down that cannot succeed does not leave a migration stuck, idempotent or not.
func TestFailedDownHasAWayOut(t *testing.T) {
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
