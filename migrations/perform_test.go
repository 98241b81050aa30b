package migrations_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A shutdown that comes while the end of a migration is being recorded does not make a
// failure of it; one that cannot be recorded does not hold up the shutdown.
func TestPerform_CancelledWhileItIsRecorded(t *testing.T) {
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

// What other tools get wrong, one test each.

// goose: a lock that only logs its loss.
func TestPerform_ALostLockEndsTheMigration(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var cause, late error
		var stale *process
		list := []migrations.Migration{{ID: "1_slow", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
			if run.Attempt() > 1 {
				return run.Atomic(ctx, once("1_slow"))
			}
			stale.line.dead.Store(true) // the network is gone, and comes back after somebody else took over
			<-ctx.Done()
			cause = context.Cause(ctx)
			time.Sleep(time.Minute)
			stale.line.dead.Store(false)
			late = run.Atomic(context.WithoutCancel(ctx), once("1_slow"))
			return late
		}}}
		stale = w.start(lock.Config{}, list)
		errs := make(chan error, 1)
		go func() {
			_, err := stale.m.Up(ctx)
			errs <- err
		}()
		time.Sleep(time.Second)
		report, err := w.migrator(list).Up(ctx)
		require.NoError(w, err)
		require.Len(w, report.Done, 1)
		require.ErrorIs(w, <-errs, lock.ErrLost)
		require.ErrorIs(w, cause, lock.ErrLost)
		require.ErrorIs(w, late, lock.ErrLost)
		assert.EqualValues(w, 1, w.count("1_slow"))
	})
}

// onetable-migrate: a failed migration counts as applied. So does one here whose author lost
// a step's error.
func TestPerform_AFailedMigrationIsNotApplied(t *testing.T) {
	for name, up := range map[string]func(ctx context.Context, run *migrations.Run) error{
		"error": func(context.Context, *migrations.Run) error { return assert.AnError },
		"panic": func(context.Context, *migrations.Run) error { panic(assert.AnError) },
		"step's error is dropped": func(ctx context.Context, run *migrations.Run) error {
			_ = run.Step(ctx, "s", func(context.Context) error { return assert.AnError })
			return nil
		},
		"step panics": func(ctx context.Context, run *migrations.Run) error {
			return run.Step(ctx, "s", func(context.Context) error { panic(assert.AnError) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			contract(t, func(ctx context.Context, w *world) {
				m := w.migrator([]migrations.Migration{simple("1_a"), {ID: "2_bad", Up: up}, simple("3_c")})
				report, err := m.Up(ctx)
				var partial *migrations.PartialError
				require.ErrorAs(w, err, &partial)
				require.ErrorIs(w, err, assert.AnError)
				assert.Equal(w, "2_bad", partial.Failed)
				require.Len(w, partial.Done, 1)
				assert.Equal(w, report.Done, partial.Done)
				assert.Zero(w, w.count("3_c"))
				st, err := m.Status(ctx)
				require.NoError(w, err)
				assert.Equal(w, []migrations.State{migrations.Applied, migrations.Failed, migrations.Pending}, []migrations.State{st[0].State, st[1].State, st[2].State})
			})
		})
	}
}

// gocqlx #237: progress lost by cancellation.
func TestPerform_CancellationKeepsProgress(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.fill(300)
		var p migrations.Progress
		list := backfill(migrations.Backfill{Transform: increment, Exact: true, WriteUnits: 10, PageSize: 10, Filter: only()}, &p)
		short, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		m := w.migrator(list)
		_, err := m.Up(short)
		require.ErrorIs(w, err, context.DeadlineExceeded)
		before := p.Seen
		assert.Positive(w, before)
		st, err := m.Status(ctx)
		require.NoError(w, err)
		assert.Equal(w, migrations.Failed, st[0].State, "recorded although the context had ended")
		_, err = m.Up(ctx)
		require.NoError(w, err)
		assert.EqualValues(w, 300, p.Seen)
		assert.EqualValues(w, 300, p.Changed)
		for i := range 300 {
			require.EqualValues(w, 1, integer(w.get(itemKey(i))["m"]), i)
		}
	})
}

// A shutdown comes while the beginning of a migration is being recorded. Its function was not called: the next Up runs it.
func TestPerform_CancelledBeforeItBeginsIsPending(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		ran := 0
		m := w.migrator([]migrations.Migration{{ID: "1_a", Up: func(ctx context.Context, run *migrations.Run) error {
			ran++
			return run.Atomic(ctx, once("1_a"))
		}}})
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, Operation: "TransactWriteItems", For: time.Second, After: true, Times: 1})
		short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		_, err := m.Up(short)
		require.ErrorIs(w, err, context.DeadlineExceeded)
		assert.Zero(w, ran)
		st, err := m.Status(ctx)
		require.NoError(w, err)
		assert.Equal(w, migrations.Pending, st[0].State)
		_, err = m.Up(ctx)
		require.NoError(w, err)
		assert.EqualValues(w, 1, w.count("1_a"))
	})
}

// The same on the way down, while the records of its steps are deleted.
func TestPerform_CancelledBeforeDownIsCalledStaysApplied(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		ran := 0
		m := w.migrator([]migrations.Migration{{
			ID: "1_a",
			Up: func(ctx context.Context, run *migrations.Run) error { return run.AtomicStep(ctx, "s", once("s")) },
			Down: func(ctx context.Context, run *migrations.Run) error {
				ran++
				return run.Atomic(ctx, once("down"))
			},
		}})
		_, err := m.Up(ctx)
		require.NoError(w, err)
		step := map[string]types.AttributeValue{"sk": text("CHECKPOINT#1_a#s#000000")}
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, Key: step, Operation: "TransactWriteItems", For: 10 * time.Second})
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, err = m.Down(short)
		require.ErrorIs(w, err, context.DeadlineExceeded)
		assert.Zero(w, ran)
		st, err := m.Status(ctx)
		require.NoError(w, err)
		assert.Equal(w, migrations.Applied, st[0].State)
		w.engine.ClearFaults()
		_, err = m.Down(ctx)
		require.NoError(w, err)
		assert.EqualValues(w, 1, w.count("down"))
	})
}

// The last write of a migration was applied without an answer, and its lock is taken by force. It has not failed.
func TestUp_TheLockIsForcedAfterTheLastAnswer(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		other := w.start(lock.Config{}, nil)
		m := w.migrator([]migrations.Migration{{ID: "1_a", Up: func(ctx context.Context, run *migrations.Run) error {
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
			err := run.Atomic(ctx, once("1_a"))
			require.ErrorIs(w, err, table.ErrUnreachable)
			w.engine.ClearFaults()
			require.NoError(w, other.locks.ForceRelease(ctx, run.Lease().Target(), run.Lease().Ticket()))
			return err
		}}})
		report, err := m.Up(ctx)
		require.NoError(w, err)
		assert.Len(w, report.Done, 1)
		assert.EqualValues(w, 1, w.count("1_a"))
		st, err := m.Status(ctx)
		require.NoError(w, err)
		assert.Equal(w, migrations.Applied, st[0].State)
	})
}
