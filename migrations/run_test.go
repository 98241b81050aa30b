package migrations_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Whatever an author's function makes of it: what was not done is not recorded as done.
func TestRun_AFailureIsNoticedWhateverTheAuthorDoes(t *testing.T) {
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
func TestAtomic_Again(t *testing.T) {
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

// The answer to Atomic is lost for good, whether it was applied or not: it is applied once.
func TestAtomic_WithoutAnAnswer(t *testing.T) {
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

// The request of Atomic is under way while its repetition is refused by a condition of the author's own. Up reports what
// the record shows. A request that arrives after the failure was recorded is not applied.
func TestAtomic_RefusedWhileTheRequestIsUnderWay(t *testing.T) {
	flag := keys.NewKey("FLAG", "FLAG")
	for name, c := range map[string]struct {
		late  int // further requests before the first attempt arrives: repetition, flag, record; 0 for none under way
		flag  bool
		state migrations.State
	}{
		"arrives before the record": {3, true, migrations.Applied},
		"arrives after the record":  {4, true, migrations.Failed},
		"arrives, and is refused":   {3, false, migrations.Failed},
		"was refused itself":        {0, true, migrations.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				var refused *table.ConditionError
				m := w.migrator([]migrations.Migration{{ID: "1_a", Up: func(ctx context.Context, run *migrations.Run) error {
					if c.late > 0 {
						w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, AfterCalls: c.late})
					}
					err := run.Atomic(ctx, once("1_a"), table.Check(flag, table.Attr("pk").Exists()))
					require.ErrorAs(w, err, &refused)
					other := itemKey(1)
					if c.flag {
						other = flag
					}
					require.NoError(w, w.table.Write(ctx, table.Put(w.table.KeyItem(other))))
					return err
				}}})
				report, err := m.Up(ctx)
				assert.Equal(w, c.late > 0, refused.Pending)
				applied := c.state == migrations.Applied
				assert.Equal(w, applied, err == nil, "%v", err)
				assert.Equal(w, applied, len(report.Done) == 1)
				for range 5 { // until the late request has arrived
					w.count("1_a")
				}
				assert.Equal(w, applied, w.count("1_a") == 1)
				st, err := m.Status(ctx)
				require.NoError(w, err)
				assert.Equal(w, c.state, st[0].State)
			})
		})
	}
}

// The last answer is lost, and then the lock. Up reads the record, and succeeds only if the record shows its own result.
func TestUp_TheLockIsLostAfterTheLastAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		kind    tabletest.FaultKind
		settles bool
		want    error
	}{
		"applied":                {tabletest.DropReply, false, nil},
		"not applied":            {tabletest.DropRequest, false, lock.ErrLost},
		"settled by an operator": {tabletest.DropRequest, true, lock.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				var p *process
				list := []migrations.Migration{{ID: "1_a", Up: func(ctx context.Context, run *migrations.Run) error {
					w.engine.Inject(tabletest.Fault{Kind: c.kind, Operation: "TransactWriteItems"})
					err := run.Atomic(ctx, once("1_a"))
					require.ErrorIs(w, err, table.ErrUnreachable)
					w.engine.ClearFaults()
					p.line.dead.Store(true) // the network is gone
					<-ctx.Done()
					if c.settles {
						fixes, err := w.migrator([]migrations.Migration{simple("1_a")}).Repair(w.Context(), func(f migrations.Fix) bool { return f.Kind == migrations.Settle })
						require.NoError(w, err)
						require.Len(w, fixes, 1)
					}
					p.line.dead.Store(false)
					return err
				}}}
				p = w.start(lock.Config{}, list)
				report, err := p.m.Up(ctx)
				require.ErrorIs(w, err, c.want)
				assert.Equal(w, c.want == nil, len(report.Done) == 1)
				assert.Equal(w, c.want == nil, w.count("1_a") == 1)
			})
		})
	}
}

// A step that is done belongs to the run it was done in.
func TestStep_ThoseOfAnotherRunDoNotCount(t *testing.T) {
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

// An Atomic that failed is not forgotten by the steps after it, whatever the author does about the error.
func TestAtomic_FailureIsNotForgottenByLaterSteps(t *testing.T) {
	for name, then := range map[string]func(ctx context.Context, run *migrations.Run) error{
		"step": func(ctx context.Context, run *migrations.Run) error {
			return run.Step(ctx, "a", func(context.Context) error { return nil })
		},
		"atomic step": func(ctx context.Context, run *migrations.Run) error { return run.AtomicStep(ctx, "a", once("a")) },
		"backfill": func(ctx context.Context, run *migrations.Run) error {
			_, err := run.Backfill(ctx, migrations.Backfill{Name: "a", Transform: increment, Filter: only()})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				m := w.migrator([]migrations.Migration{{ID: "1_a", Up: func(ctx context.Context, run *migrations.Run) error {
					_ = run.Atomic(ctx, once("x").If(table.Attr("pk").Exists()))
					_ = then(ctx, run)
					return nil
				}}})
				report, err := m.Up(ctx)
				require.Error(w, err)
				assert.Empty(w, report.Done)
				st, err := m.Status(ctx)
				require.NoError(w, err)
				assert.Equal(w, migrations.Failed, st[0].State)
			})
		})
	}
}

// A step that is refused fails the migration, whatever the author does about the error.
func TestStep_RefusedOneIsNoticed(t *testing.T) {
	for name, up := range map[string]func(ctx context.Context, run *migrations.Run){
		"two steps of a name": func(ctx context.Context, run *migrations.Run) {
			_ = run.AtomicStep(ctx, "s", once("a"))
			_ = run.AtomicStep(ctx, "s", once("x"))
		},
		"backfill": func(ctx context.Context, run *migrations.Run) {
			_, _ = run.Backfill(ctx, migrations.Backfill{Name: "fill", Transform: increment, Segments: 1001})
		},
		"atomic inside of a step": func(ctx context.Context, run *migrations.Run) {
			_ = run.Step(ctx, "s", func(ctx context.Context) error {
				_ = run.Atomic(ctx, once("x"))
				return nil
			})
		},
		"step inside of a step": func(ctx context.Context, run *migrations.Run) {
			_ = run.Step(ctx, "s", func(ctx context.Context) error {
				_ = run.AtomicStep(ctx, "t", once("x"))
				return nil
			})
		},
		"nil function": func(ctx context.Context, run *migrations.Run) { _ = run.Step(ctx, "s", nil) },
		"nil context": func(_ context.Context, run *migrations.Run) {
			_ = run.Step(nil, "s", func(context.Context) error { return nil }) //nolint:staticcheck // refused
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				m := w.migrator([]migrations.Migration{{ID: "1_a", Up: func(ctx context.Context, run *migrations.Run) error {
					up(ctx, run)
					return nil
				}}})
				_, err := m.Up(ctx)
				require.ErrorIs(w, err, migrations.ErrInvalid)
				st, err := m.Status(ctx)
				require.NoError(w, err)
				assert.Equal(w, migrations.Failed, st[0].State)
			})
		})
	}
}

// A step that is refused for its name is recorded like one that fails.
func TestStep_RefusedForItsNameIsRecorded(t *testing.T) {
	for name, step := range map[string]string{"not UTF-8": "a\xff", "empty": ""} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				m := w.migrator([]migrations.Migration{{ID: "1_a", Up: func(ctx context.Context, run *migrations.Run) error {
					_ = run.Step(ctx, step, func(context.Context) error { return nil })
					_ = run.Atomic(ctx, once("x"))
					return nil
				}}})
				_, err := m.Up(ctx)
				assert.ErrorIs(w, err, migrations.ErrInvalid)
				st, err := m.Status(ctx)
				require.NoError(w, err)
				assert.Equal(w, migrations.Failed, st[0].State)
			})
		})
	}
}

// The first failure is the one that is told.
func TestStep_FailureIsRecordedWhateverIsRefusedAfterIt(t *testing.T) {
	boom := errors.New("boom")
	for name, after := range map[string]func(ctx context.Context, run *migrations.Run){
		"step": func(ctx context.Context, run *migrations.Run) {
			_ = run.Step(ctx, "b", func(context.Context) error { return nil })
		},
		"atomic": func(ctx context.Context, run *migrations.Run) { _ = run.Atomic(ctx, once("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				m := w.migrator([]migrations.Migration{{ID: "1_a", Up: func(ctx context.Context, run *migrations.Run) error {
					_ = run.Step(ctx, "a", func(context.Context) error { return boom })
					after(ctx, run)
					return nil
				}}})
				_, err := m.Up(ctx)
				assert.ErrorIs(w, err, boom)
				st, err := m.Status(ctx)
				require.NoError(w, err)
				assert.Contains(w, st[0].Record.Error, "boom")
			})
		})
	}
}

// The name of a step that was begun says what was done. It cannot come to mean another kind of step.
func TestRun_RefusesAnotherKindOfStepUnderANameThatWasBegun(t *testing.T) {
	type step = func(ctx context.Context, run *migrations.Run) error
	fill := func(fails bool) step {
		return func(ctx context.Context, run *migrations.Run) error {
			_, err := run.Backfill(ctx, migrations.Backfill{Name: "s", Segments: 1, Filter: only(), Transform: func(ctx context.Context, item table.Item) (table.Item, error) {
				if fails {
					return nil, assert.AnError
				}
				return increment(ctx, item)
			}})
			return err
		}
	}
	plain := func(ctx context.Context, run *migrations.Run) error {
		return run.Step(ctx, "s", func(context.Context) error { return nil })
	}
	atomic := func(ctx context.Context, run *migrations.Run) error { return run.AtomicStep(ctx, "s", once("s")) }
	for name, c := range map[string]struct{ first, second step }{
		"a backfill that was interrupted, then Step":       {fill(true), plain},
		"a backfill that was interrupted, then AtomicStep": {fill(true), atomic},
		"a finished backfill, then Step":                   {fill(false), plain},
		"a finished Step, then a backfill":                 {plain, fill(false)},
	} {
		t.Run(name, func(t *testing.T) {
			contract(t, func(ctx context.Context, w *world) {
				w.fill(1)
				up := func(do step) error {
					_, err := w.migrator([]migrations.Migration{{ID: "1_a", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
						if err := do(ctx, run); err != nil {
							return err
						}
						if run.Attempt() == 1 {
							return assert.AnError
						}
						return nil
					}}}).Up(ctx)
					return err
				}
				require.ErrorIs(w, up(c.first), assert.AnError)
				for range 2 { // it is no better the second time
					err := up(c.second)
					require.ErrorIs(w, err, migrations.ErrStepKind)
					require.NotErrorIs(w, err, table.ErrCondition)
					require.ErrorContains(w, err, "another name")
					assert.Zero(w, w.count("s"))
				}
				first := c.first
				if name != "a finished Step, then a backfill" {
					first = fill(false)
				}
				require.NoError(w, up(first), "the change was undone")
			})
		})
	}
}
