package migrations_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// What other tools get wrong, one test each.

// goose: a lock that only logs its loss.
func TestLostLockEndsTheMigration(t *testing.T) {
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

// golang-migrate #179: a high-water mark, and silently skipped migrations.
func TestLateMigrationIsNotSkippedSilently(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		_, err := w.migrator([]migrations.Migration{simple("1_a"), simple("3_c")}).Up(ctx)
		require.NoError(w, err)
		list := []migrations.Migration{simple("1_a"), simple("2_b"), simple("3_c"), simple("10_d")}
		_, err = w.migrator(list).Up(ctx)
		var order *migrations.OrderError
		require.ErrorAs(w, err, &order)
		require.ErrorIs(w, err, migrations.ErrOutOfOrder)
		assert.Equal(w, []string{"2_b"}, order.Pending)
		assert.Equal(w, "3_c", order.Applied)
		assert.Zero(w, w.count("10_d"), "nothing was run")
		var log journal
		report, err := w.migrator(list, migrations.OutOfOrder(migrations.Skip), migrations.WithLogger(log.logger())).Up(ctx)
		require.NoError(w, err)
		require.Len(w, report.Done, 1)
		assert.Contains(w, log.String(), "2_b before 3_c")
		require.ErrorIs(w, w.migrator(list).Validate(ctx), migrations.ErrOutOfOrder)
		report, err = w.migrator(list, migrations.OutOfOrder(migrations.RunAnyway)).Up(ctx)
		require.NoError(w, err)
		require.Len(w, report.Done, 1)
		assert.Equal(w, "2_b", report.Done[0].ID)
		require.NoError(w, w.migrator(list).Validate(ctx))
	})
}

// golang-migrate #282, #518: dirty states without a way out.
func TestFailedMigrationHasAWayOut(t *testing.T) {
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
			})
		})
	}
}

// golang-migrate #712: a stale lock stops deployments for good.
func TestStaleLockDoesNotStopDeployments(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		dead := w.start(lock.Config{}, nil)
		_, err := dead.locks.Acquire(ctx, lock.Beside(migrationsRow))
		require.NoError(w, err)
		dead.line.kill()
		start := time.Now()
		_, err = w.migrator([]migrations.Migration{simple("1_a")}).Up(ctx)
		require.NoError(w, err)
		assert.Less(w, time.Since(start), 30*time.Second)
	})
}

// onetable-migrate: a failed migration counts as applied. So does one here whose author lost
// a step's error.
func TestFailedMigrationIsNotApplied(t *testing.T) {
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
func TestCancellationKeepsProgress(t *testing.T) {
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

// The answer to Atomic is lost for good, whether it was applied or not: it is applied once.
func TestAtomicWithoutAnAnswer(t *testing.T) {
	for _, kind := range []tabletest.FaultKind{tabletest.DropReply, tabletest.DropRequest} {
		for _, drop := range []bool{false, true} {
			virtual(t, func(ctx context.Context, w *world) {
				var failed error
				list := []migrations.Migration{{ID: "1_a", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
					if run.Attempt() == 1 {
						w.engine.Inject(tabletest.Fault{Kind: kind, Operation: "TransactWriteItems"})
						failed = run.Atomic(ctx, once("1_a"))
						w.engine.ClearFaults()
						if drop {
							return nil // the author takes no notice
						}
						return failed
					}
					return run.Atomic(ctx, once("1_a"))
				}}}
				m := w.migrator(list)
				_, err := m.Up(ctx)
				require.ErrorIs(w, failed, table.ErrUnreachable)
				if kind == tabletest.DropReply {
					require.NoError(w, err, "it turned out to be applied")
				} else {
					require.ErrorIs(w, err, table.ErrUnreachable)
				}
				_, err = m.Up(ctx)
				require.NoError(w, err)
				assert.EqualValues(w, 1, w.count("1_a"))
			})
		}
	}
}

// A step that is done belongs to the run it was done in.
func TestStepsOfAnotherRunDoNotCount(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		fail := false
		a := migrations.Migration{
			ID: "1_a", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
				if err := run.AtomicStep(ctx, "s", once("up")); err != nil {
					return err
				}
				if fail {
					return assert.AnError
				}
				return nil
			}, Down: func(ctx context.Context, run *migrations.Run) error {
				if err := run.AtomicStep(ctx, "s", once("down")); err != nil {
					return err
				}
				if fail {
					return assert.AnError
				}
				return nil
			},
		}
		m := w.migrator([]migrations.Migration{a})
		up := func(want error) { w.Helper(); _, err := m.Up(ctx); require.ErrorIs(w, err, want) }
		down := func(want error) { w.Helper(); _, err := m.Down(ctx); require.ErrorIs(w, err, want) }
		up(nil)
		fail = true
		down(assert.AnError)
		up(migrations.ErrUnfinished)
		down(assert.AnError)
		fail = false
		down(nil)
		assert.EqualValues(w, 1, w.count("down"), "a resumed Down does not repeat its step")
		fail = true
		up(assert.AnError)
		fail = false
		down(nil) // what failed half way
		assert.EqualValues(w, 2, w.count("down"))
		up(nil)
		assert.EqualValues(w, 3, w.count("up"))

		// Its record is forgotten by a program that does not know it.
		old := w.migrator(nil)
		_, err := old.Up(ctx)
		require.ErrorIs(w, err, migrations.ErrUnknown)
		made, err := old.Repair(ctx, func(migrations.Fix) bool { return true })
		require.NoError(w, err)
		require.Len(w, made, 1)
		assert.Equal(w, migrations.Forget, made[0].Kind)
		fail = true
		up(assert.AnError)
		fail = false
		up(nil)
		assert.EqualValues(w, 4, w.count("up"), "all of it runs again, and each step once")
	})
}

// A repeatable migration of another revision is done as a whole.
func TestRepeatableBeginsAnewWithItsRevision(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		run := func(revision string, fail bool) error {
			_, err := w.migrator([]migrations.Migration{{
				ID: "seed", Repeatable: true, Idempotent: true, Revision: revision, Up: func(ctx context.Context, run *migrations.Run) error {
					if err := run.AtomicStep(ctx, "s", once("seed")); err != nil {
						return err
					}
					if fail {
						return assert.AnError
					}
					return nil
				},
			}}).Up(ctx)
			return err
		}
		require.NoError(w, run("1", false))
		require.NoError(w, run("1", false))
		assert.EqualValues(w, 1, w.count("seed"))
		require.ErrorIs(w, run("2", true), assert.AnError)
		require.NoError(w, run("2", false))
		assert.EqualValues(w, 2, w.count("seed"))
		require.ErrorIs(w, run("3", true), assert.AnError)
		require.NoError(w, run("4", false))
		assert.EqualValues(w, 4, w.count("seed"))
	})
}

// Rows that this version cannot have written stop it, before anything is run.
func TestMalformedRecords(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		record := keys.NewKey("MIGRATIONS#main", "MIGRATION#1_a")
		try := func(want error, changes ...table.Change) {
			w.Helper()
			require.NoError(w, w.table.Write(ctx, table.Delete(record)))
			require.NoError(w, w.table.Write(ctx, table.Update(record, changes...)))
			m := w.migrator([]migrations.Migration{simple("0_z"), simple("1_a")}, migrations.OutOfOrder(migrations.RunAnyway))
			_, err := m.Up(ctx)
			require.ErrorIs(w, err, want)
			assert.Zero(w, w.count("1_a"))
		}
		typ := table.Attr("type").Set("mortise.Migration")
		try(migrations.ErrMalformed, typ)
		try(migrations.ErrMalformed, typ, table.Attr("state").Set("paused")) // by a newer version
		try(migrations.ErrMalformed, typ, table.Attr("state").Set(5))
		try(migrations.ErrMalformed, typ, table.Attr("state").Set("running"))
		try(migrations.ErrMalformed, typ, table.Attr("state").Set("failed"), table.Attr("attempts").Set(-1))
		try(migrations.ErrMalformed, typ, table.Attr("state").Set("applied"), table.Attr("took").Set("long"))
		assert.Zero(w, w.count("0_z"))
		require.NoError(w, w.table.Write(ctx, table.Delete(record)))
		require.NoError(w, w.table.Write(ctx, table.Update(record, table.Attr("type").Set("Bird"))))
		_, err := w.migrator([]migrations.Migration{simple("1_a")}).Up(ctx)
		require.ErrorContains(w, err, "another type")
		assert.Zero(w, w.count("1_a"))
		assert.Equal(w, text("Bird"), w.get(record)["type"])
	})
}

func TestMalformedCheckpoints(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		w.fill(30)
		var p migrations.Progress
		calls := 0
		b := migrations.Backfill{Segments: 1, PageSize: 5, Exact: true, Filter: only(), Transform: func(ctx context.Context, item table.Item) (table.Item, error) {
			if calls++; calls > 20 {
				return nil, assert.AnError
			}
			return increment(ctx, item)
		}}
		m := w.migrator(backfill(b, &p))
		_, err := m.Up(ctx)
		require.ErrorIs(w, err, assert.AnError)
		key := keys.NewKey("MIGRATIONS#main", "CHECKPOINT#1_fill#fill#000001")
		good := w.get(key)
		for _, change := range []table.Change{
			table.Attr("after_pk").Remove(), table.Attr("done").Set("yes"), table.Attr("segments").Set(0), table.Attr("seq").Set(0), table.Attr("seen").Set(-1),
		} {
			require.NoError(w, w.table.Write(ctx, table.Put(good)))
			require.NoError(w, w.table.Write(ctx, table.Update(key, change)))
			_, err := m.Up(ctx)
			require.ErrorIs(w, err, migrations.ErrMalformed)
		}
	})
}
