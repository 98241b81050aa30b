package migrations_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// golang-migrate #179: a high-water mark, and silently skipped migrations.
func TestPlan_ALateMigrationIsNotSkippedSilently(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		_, err := w.migrator([]migrations.Migration{simple("1_a"), simple("3_c")}).Up(ctx)
		require.NoError(w, err)
		list := []migrations.Migration{simple("1_a"), simple("2_b"), simple("3_c"), simple("10_d")}
		_, err = w.migrator(list).Up(ctx)
		var order *migrations.OrderError
		require.ErrorAs(w, err, &order)
		require.ErrorIs(w, err, migrations.ErrOutOfOrder)
		assert.Equal(w, []string{"2_b"}, order.Pending)
		assert.Equal(w, "3_c", order.Begun)
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

// What the policies allow is logged also if it came up while the instance waited for another one, whether that ends with the lock or
// without it.
func TestPlan_ALateMigrationIsNotSkippedSilentlyAfterAWait(t *testing.T) {
	for name, takes := range map[string]time.Duration{"with the lock": 0, "without it": time.Minute} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				locks := w.start(lock.Config{}, nil).locks
				lease, err := locks.Acquire(ctx, lock.Beside(migrationsRow))
				require.NoError(w, err)
				other := w.migrator([]migrations.Migration{simple("1_a"), {ID: "3_c", Up: func(context.Context, *migrations.Run) error {
					time.Sleep(takes)
					return nil
				}}})
				var log journal
				m := w.migrator(listOf("1_a", "2_b"), migrations.OutOfOrder(migrations.Skip), migrations.OnUnknown(migrations.Warn), migrations.WithLogger(log.logger()))
				var group sync.WaitGroup
				up := func(m *migrations.Migrator, done int) {
					group.Go(func() {
						report, err := m.Up(ctx)
						assert.NoError(w, err)
						assert.Len(w, report.Done, done)
					})
					time.Sleep(time.Millisecond) // until it waits
				}
				up(other, 2)
				up(m, 0)
				require.NoError(w, lease.Release(ctx))
				group.Wait()
				assert.Zero(w, w.count("2_b"))
				assert.Equal(w, 1, strings.Count(log.String(), "2_b before 3_c"), log.String())
				assert.Equal(w, 1, strings.Count(log.String(), "unknown migrations: 3_c"), log.String())
			})
		})
	}
}

// A program may not know what another version has applied, and still must not run its own before it.
func TestPlan_ALateMigrationIsNotRunBeforeAnUnknownOne(t *testing.T) {
	for name, c := range map[string]struct {
		unknown   string
		takenBack bool
		late      bool
	}{
		"applied":    {"3_x", false, true},
		"taken back": {"3_x", true, false},
		"repeatable": {"3_seed", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				other := w.migrator(listOf("1_a", c.unknown))
				_, err := other.Up(ctx)
				require.NoError(w, err)
				if c.takenBack {
					_, err = other.Down(ctx)
					require.NoError(w, err)
				}
				report, err := w.migrator(listOf("1_a", "2_b"), migrations.OnUnknown(migrations.Warn)).Up(ctx)
				if !c.late {
					require.NoError(w, err)
					assert.Len(w, report.Done, 1)
					return
				}
				var order *migrations.OrderError
				require.ErrorAs(w, err, &order)
				assert.Equal(w, []string{"2_b"}, order.Pending)
				assert.Equal(w, c.unknown, order.Begun)
				assert.Empty(w, report.Done)
				assert.Zero(w, w.count("2_b"))
			})
		})
	}
}

// A repeatable migration of another revision is done as a whole.
func TestPlan_ARepeatableBeginsAnewWithItsRevision(t *testing.T) {
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

// An older program starts although a newer one's migration was there, once that was taken back.
func TestPlan_RollbackLetsTheOlderProgramStart(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		newer := w.migrator([]migrations.Migration{simple("1_a"), simple("2_b")})
		_, err := newer.Up(ctx)
		require.NoError(w, err)
		m := w.migrator([]migrations.Migration{simple("1_a")})
		_, err = m.Up(ctx)
		require.ErrorIs(w, err, migrations.ErrUnknown)
		_, err = m.Down(ctx)
		require.ErrorIs(w, err, migrations.ErrUnknown, "that would take back the wrong one")
		_, err = newer.Down(ctx)
		require.NoError(w, err)
		_, err = m.Up(ctx)
		require.NoError(w, err)
		require.NoError(w, m.Validate(ctx))
		fixes, err := m.Repair(ctx, nil)
		require.NoError(w, err)
		assert.Empty(w, fixes)
	})
}

// waits is a list of one migration that waits in the given direction. began gets a value then.
func waits(down bool, began chan<- bool, end <-chan bool) []migrations.Migration {
	pass := func(context.Context, *migrations.Run) error { return nil }
	wait := func(ctx context.Context, _ *migrations.Run) error {
		began <- true
		select {
		case <-end:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if down {
		return []migrations.Migration{{ID: "1_a", Up: pass, Down: wait}}
	}
	return []migrations.Migration{{ID: "1_a", Up: wait, Down: pass}}
}

// A migration that an instance works on is not taken for one that was interrupted.
func TestValidate_AcceptsAMigrationThatRuns(t *testing.T) {
	for name, down := range map[string]bool{"up": false, "down": true} {
		t.Run(name, func(t *testing.T) {
			contract(t, func(ctx context.Context, w *world) {
				began, end, ended := make(chan bool), make(chan bool), make(chan error, 1)
				m, other := w.migrator(waits(down, began, end)), w.migrator(waits(down, began, end))
				go func() {
					_, err := m.Up(ctx)
					if err == nil && down {
						_, err = m.Down(ctx)
					}
					ended <- err
				}()
				<-began
				require.NoError(w, other.Validate(ctx))
				list, err := other.Status(ctx)
				require.NoError(w, err)
				assert.True(w, list[0].Live)
				plan, err := other.Plan(ctx)
				require.NoError(w, err)
				require.Len(w, plan, 1)
				assert.Contains(w, plan[0].Text, "wait for 1_a, which")
				close(end)
				require.NoError(w, <-ended)
				require.NoError(w, other.Validate(ctx))
			})
		})
	}
}

// Soon after its process has died, it counts as interrupted, even if nobody has taken the lock since.
func TestValidate_RefusesAMigrationWhoseProcessDied(t *testing.T) {
	for name, down := range map[string]bool{"up": false, "down": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				began := make(chan bool)
				p, other := w.start(lock.Config{}, waits(down, began, nil)), w.migrator(waits(down, began, nil))
				ended := make(chan error, 1)
				go func() {
					_, err := p.m.Up(p.ctx)
					if err == nil && down {
						_, err = p.m.Down(p.ctx)
					}
					ended <- err
				}()
				<-began
				p.line.kill()
				require.Error(w, <-ended)
				list, err := other.Status(ctx)
				require.NoError(w, err)
				assert.True(w, list[0].Live, "as far as anybody can tell")
				time.Sleep(41 * time.Second) // two leases
				require.ErrorIs(w, other.Validate(ctx), migrations.ErrUnfinished)
				list, err = other.Status(ctx)
				require.NoError(w, err)
				assert.Equal(w, migrations.Running, list[0].State)
				assert.False(w, list[0].Live)
				_, err = other.Plan(ctx)
				require.ErrorIs(w, err, migrations.ErrUnfinished, "as Up does")
			})
		})
	}
}

// A run that ends, or begins, between the requests of Validate is no interrupted one.
func TestValidate_ReadsTheRecordsAgainAfterTheLock(t *testing.T) {
	for at := int64(1); at <= 4; at++ {
		virtual(t, func(ctx context.Context, w *world) {
			began, end, ended := make(chan bool), make(chan bool), make(chan error, 1)
			m, p := w.migrator(waits(false, began, end)), w.start(lock.Config{}, waits(false, began, end))
			go func() {
				_, err := m.Up(ctx)
				ended <- err
			}()
			<-began
			p.line.before = func(call int64) {
				if call == at {
					close(end)
					assert.NoError(w, <-ended)
				}
			}
			require.NoError(w, p.m.Validate(ctx), "the run ends before request %d", at)
		})
	}
}

// A renamed migration is another one to the table. It is not run in silence, whatever the option for unknown records: the ID with other
// leading zeros is the same ID, and any other smaller one comes too late.
func TestPlan_ARenamedMigrationIsNotRunAgainUnnoticed(t *testing.T) {
	for name, list := range map[string][]migrations.Migration{
		"all padded":       listOf("01_a", "02_b"),
		"the last padded":  listOf("1_a", "02_b"),
		"the first padded": listOf("01_a", "2_b"),
		"the first":        listOf("1_x", "2_b"),
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				_, err := w.migrator(listOf("1_a", "2_b")).Up(ctx)
				require.NoError(w, err)
				_, err = w.migrator(list).Up(ctx)
				require.ErrorIs(w, err, migrations.ErrUnknown)
				report, err := w.migrator(list, migrations.OnUnknown(migrations.Warn)).Up(ctx)
				require.ErrorIs(w, err, migrations.ErrOutOfOrder)
				assert.Empty(w, report.Done)
				for _, renamed := range []string{"01_a", "02_b", "1_x"} {
					assert.Zero(w, w.count(renamed), renamed)
				}
			})
		})
	}
}

// The way out for a migration that was renamed after it had been applied: forget the old ID, and record the new one.
func TestRepair_ARenamedMigrationCanBeRecorded(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		_, err := w.migrator(listOf("1_a", "2_b")).Up(ctx)
		require.NoError(w, err)
		m := w.migrator(listOf("1_a", "2_renamed", "3_c"))
		made, err := m.Repair(ctx, func(migrations.Fix) bool { return true })
		require.NoError(w, err)
		require.Len(w, made, 1)
		assert.Equal(w, migrations.Forget, made[0].Kind)
		_, err = m.Baseline(ctx, "2_renamed")
		require.NoError(w, err)
		report, err := m.Up(ctx)
		require.NoError(w, err)
		require.Len(w, report.Done, 1)
		assert.Equal(w, "3_c", report.Done[0].ID)
		assert.Zero(w, w.count("2_renamed"))
	})
}

// Whether a migration runs does not depend on the clock of the process that asks.
func TestStatus_OfAMigrationThatRunsNeedsNoClock(t *testing.T) {
	for _, wrong := range []time.Duration{time.Hour, -time.Hour} {
		virtual(t, func(ctx context.Context, w *world) {
			began := make(chan bool)
			p := w.start(lock.Config{}, waits(false, began, nil))
			ended := make(chan error, 1)
			go func() {
				_, err := p.m.Up(p.ctx)
				ended <- err
			}()
			<-began
			w.opts = []table.Option{table.WithClock(func() time.Time { return time.Now().Add(wrong) })}
			other := w.migrator(waits(false, began, nil))
			live := func() bool {
				list, err := other.Status(ctx)
				require.NoError(w, err)
				return list[0].Live
			}
			assert.True(w, live(), "%v", wrong)
			require.NoError(w, other.Validate(ctx))
			p.line.kill()
			require.Error(w, <-ended)
			time.Sleep(42 * time.Second) // two leases
			assert.False(w, live(), "%v", wrong)
		})
	}
}
