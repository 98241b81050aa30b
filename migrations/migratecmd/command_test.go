package migratecmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/cli/clitest"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

// script runs subcommands on a table of its own, and writes down what they print.
type script struct {
	t      *testing.T
	engine *tabletest.Engine
	table  *table.Table
	locks  *lock.Client
	m      *migrations.Migrator
	out    strings.Builder

	width int    // of a terminal; 0 for none
	stdin string // on that terminal
}

// golden runs f in virtual time and compares what it wrote down with the file of a name.
func golden(t *testing.T, name string, f func(s *script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, engine: tabletest.New(t)}
		tbl, err := table.Open(s.engine.Client(), table.Schema{Name: "app"})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		s.table = tbl
		s.locks, err = lock.New(tbl, lock.Config{Owner: "tester"})
		require.NoError(t, err)
		f(s)
		require.NoError(t, s.locks.Close(t.Context()))
		file := filepath.Join("testdata", name+".golden")
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(s.out.String()), 0o600))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(want), s.out.String(), "go test ./migrations/migratecmd -update writes it anew")
	})
}

// program is the list of migrations from now on.
func (s *script) program(list ...migrations.Migration) {
	m, err := migrations.New(s.table, s.locks, list)
	require.NoError(s.t, err)
	s.m = m
}

// run runs a subcommand and returns its error.
func (s *script) run(args string) error { return s.runIn(s.t.Context(), args) }

func (s *script) runIn(ctx context.Context, args string) error {
	var stdout, stderr bytes.Buffer
	stdin := strings.NewReader(s.stdin)
	c := Command{Stdin: stdin, Stdout: &stdout, Stderr: &stderr, terminal: func(any) (int, bool) { return s.width, s.width > 0 }}
	err := c.Run(ctx, s.m, strings.Fields(args))
	fmt.Fprintf(&s.out, "$ migrate %s\n%s", args, stdout.String())
	visible := strings.NewReplacer("\r\x1b[K", "<bar>").Replace(stderr.String())
	for line := range strings.Lines(visible) {
		fmt.Fprintf(&s.out, "2> %s", line)
	}
	fmt.Fprintf(&s.out, "exit %d\n\n", ExitCode(err))
	assert.Equal(s.t, err == nil, ExitCode(err) == 0)
	if err != nil {
		assert.Contains(s.t, stderr.String(), "migrate: "+tty.Clean(err.Error()))
	}
	return err
}

// takes is an Up or Down that takes a while.
func takes(d time.Duration) func(context.Context, *migrations.Run) error {
	return func(context.Context, *migrations.Run) error {
		time.Sleep(d)
		return nil
	}
}

func fails(text string) func(context.Context, *migrations.Run) error {
	return func(ctx context.Context, run *migrations.Run) error {
		return run.Step(ctx, "count", func(context.Context) error { return errors.New(text) })
	}
}

// shop is a list with one migration of each sort.
func shop() []migrations.Migration {
	return []migrations.Migration{
		{ID: "1_index", Name: "index of customers", Up: takes(1500 * time.Millisecond), Down: takes(0)},
		{ID: "2_totals", Name: "totals of orders", Revision: "a", Up: takes(90 * time.Second), Down: takes(20 * time.Millisecond)},
		{ID: "10_names", Up: takes(0), Down: takes(0), Idempotent: true},
		{ID: "catalogue", Name: "what is in the table", Revision: "1", Up: takes(0), Repeatable: true},
	}
}

func TestCommand_GoesUpAndDown(t *testing.T) {
	golden(t, "up_and_down", func(s *script) {
		s.program(shop()...)
		require.NoError(t, s.run("status"))
		require.NoError(t, s.run("plan"))
		require.NoError(t, s.run("up --to 2_totals"))
		require.NoError(t, s.run("status"))
		require.NoError(t, s.run("up"))
		require.NoError(t, s.run("up"))
		require.NoError(t, s.run("plan"))
		require.NoError(t, s.run("validate"))
		changed := shop()
		changed[3].Revision = "2"
		s.program(changed...)
		require.NoError(t, s.run("status"))
		require.NoError(t, s.run("plan"))
		require.NoError(t, s.run("down"))
		require.NoError(t, s.run("down -to 1_index"))
		require.NoError(t, s.run("status"))
		require.NoError(t, s.run("down -all"))
		require.NoError(t, s.run("down"))
	})
}

// A long name takes no more of a terminal than it should.
func TestStatus_CutsALongName(t *testing.T) {
	golden(t, "long_name", func(s *script) {
		s.program(
			migrations.Migration{ID: "1_a", Name: strings.Repeat("long 名前 ", 20), Up: takes(time.Second)},
			migrations.Migration{ID: "2_b", Up: fails("what a pity that this is long enough to be cut off somewhere on a terminal")},
		)
		require.Error(t, s.run("up"))
		for _, s.width = range []int{132, 100, 80, 30} {
			require.NoError(t, s.run("status"))
		}
	})
}

func TestCommand_TellsOfTrouble(t *testing.T) {
	golden(t, "trouble", func(s *script) {
		list := shop()
		list[1].Up = fails("out of\n\x1b[31mbreath")
		s.program(list...)
		require.Error(t, s.run("up"))
		require.NoError(t, s.run("status"))
		require.ErrorIs(t, s.run("plan"), migrations.ErrUnfinished)
		require.ErrorIs(t, s.run("validate"), migrations.ErrUnfinished)
		require.ErrorIs(t, s.run("up"), migrations.ErrUnfinished)
		s.width = 60
		require.NoError(t, s.run("status"))
		s.width = 24
		require.NoError(t, s.run("status"))
		s.width = 0

		// Nobody to ask.
		require.ErrorIs(t, s.run("repair"), ErrNotApproved)
		require.ErrorIs(t, s.run("status -to x"), ErrUsage)
		require.NoError(t, s.run("repair -yes"))
		s.program(shop()...)
		require.NoError(t, s.run("status"))
		require.NoError(t, s.run("up"))
		require.NoError(t, s.run("repair"))
	})
}

func TestRepair_Asks(t *testing.T) {
	golden(t, "repair", func(s *script) {
		list := shop()
		s.program(append(list, migrations.Migration{ID: "11_gone", Up: takes(0)})...)
		require.NoError(t, s.run("up"))
		list[0].Revision, list[1].Revision = "b", "b"
		s.program(list...)
		require.NoError(t, s.run("status"))
		require.Error(t, s.run("validate"))
		s.width = 200
		require.ErrorIs(t, s.run("repair -json"), ErrNotApproved) // asks nobody
		s.stdin = "\nYes\n"                                       // and no third answer
		require.NoError(t, s.run("repair"))
		require.NoError(t, s.run("status"))
		s.stdin = "y\ny\n"
		require.NoError(t, s.run("repair"))
		s.width = 0
		require.NoError(t, s.run("validate"))
	})
}

func TestBaseline_RecordsWhatWasDoneBefore(t *testing.T) {
	golden(t, "baseline", func(s *script) {
		s.program(shop()...)
		require.NoError(t, s.run("baseline 2_totals"))
		require.NoError(t, s.run("status"))
		require.NoError(t, s.run("baseline 2_totals"))
		require.NoError(t, s.run("up"))
		require.ErrorIs(t, s.run("baseline 3_none"), migrations.ErrInvalid)
		require.ErrorIs(t, s.run("baseline catalogue"), migrations.ErrInvalid)
	})
}

func TestJSON_IsWrittenByEachSubcommand(t *testing.T) {
	golden(t, "json", func(s *script) {
		list := shop()
		list[1].Up = fails("no")
		s.program(list...)
		require.NoError(t, s.run("status --json"))
		require.NoError(t, s.run("plan -json"))
		require.Error(t, s.run("up -json"))
		require.NoError(t, s.run("status -json"))
		require.Error(t, s.run("plan -json"))
		require.Error(t, s.run("validate -json"))
		require.ErrorIs(t, s.run("repair -json"), ErrNotApproved)
		require.NoError(t, s.run("repair -json -yes"))
		s.program(shop()...)
		require.NoError(t, s.run("up -json"))
		require.NoError(t, s.run("up -json"))
		require.NoError(t, s.run("down -json"))
		require.NoError(t, s.run("baseline 10_names -json"))
		require.NoError(t, s.run("validate -json"))
	})
}

// Each document is JSON for itself.
func TestJSON_IsOneDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		golden := &script{t: t, engine: tabletest.New(t)}
		tbl, err := table.Open(golden.engine.Client(), table.Schema{Name: "app"})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		locks, err := lock.New(tbl, lock.Config{})
		require.NoError(t, err)
		defer func() { assert.NoError(t, locks.Close(t.Context())) }()
		m, err := migrations.New(tbl, locks, shop())
		require.NoError(t, err)
		for args := range strings.SplitSeq("status,plan,up,down,validate,repair,baseline 1_index", ",") {
			var stdout bytes.Buffer
			c := Command{Stdout: &stdout, Stderr: io.Discard, Stdin: strings.NewReader("")}
			require.NoError(t, c.Run(t.Context(), m, strings.Fields(args+" -json")), args)
			var document map[string]any
			require.NoError(t, json.Unmarshal(stdout.Bytes(), &document), args)
			assert.NotEmpty(t, document, args)
		}
	})
}

// A table that cannot be read is one too.
func TestJSON_OfAFailureIsADocumentToo(t *testing.T) {
	golden(t, "json_failure", func(s *script) {
		s.program(shop()...)
		ctx, cancel := context.WithCancel(s.t.Context())
		cancel()
		for _, args := range []string{"status", "plan", "up", "down", "validate", "repair", "baseline 1_index"} {
			require.ErrorIs(t, s.runIn(ctx, args+" -json"), context.Canceled, args)
		}
	})
}

// fill is a migration with a backfill that takes seconds.
func fill(idempotent bool, transform func(ctx context.Context, n int) error) migrations.Migration {
	n := 0
	return migrations.Migration{ID: "1_fill", Idempotent: idempotent, Up: func(ctx context.Context, run *migrations.Run) error {
		_, err := run.Backfill(ctx, migrations.Backfill{
			Name: "numbers", Segments: 1, Writers: 1, PageSize: 1, // where rows of the toolkit stand between the items is random
			Transform: func(ctx context.Context, item table.Item) (table.Item, error) {
				time.Sleep(97 * time.Millisecond) // so that nothing ends at the same moment as a tick
				one, err := table.Encode(1)
				if err != nil {
					return nil, err
				}
				item["one"] = one
				n++
				return item, transform(ctx, n)
			},
		})
		return err
	}}
}

func (s *script) items(n int) {
	for i := range n {
		require.NoError(s.t, s.table.Write(s.t.Context(), table.Update(keys.NewKey("p", fmt.Sprint(i)), table.Attr("n").Set(i))))
	}
}

func TestProgress_FitsWhereItIsShown(t *testing.T) {
	for name, width := range map[string]int{"progress_plain": 0, "progress_bar": 100, "progress_narrow": 40} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, func(s *script) {
				s.items(120)
				s.width = width
				s.program(fill(true, func(context.Context, int) error { return nil }))
				require.NoError(t, s.run("up"))
			})
		})
	}
}

// Somebody looks while another process runs a backfill.
func TestStatus_ShowsABackfillUnderWay(t *testing.T) {
	golden(t, "status_running", func(s *script) {
		s.items(40)
		running := fill(true, func(context.Context, int) error { return nil })
		step := running.Up
		running.Up = func(ctx context.Context, run *migrations.Run) error {
			if err := run.Step(ctx, "prepare", func(context.Context) error { time.Sleep(time.Second); return nil }); err != nil {
				return err
			}
			return step(ctx, run)
		}
		s.program(running, migrations.Migration{ID: "2_next", Up: takes(0)})
		ended := make(chan error)
		go func() {
			_, err := s.m.Up(s.t.Context())
			ended <- err
		}()
		time.Sleep(2500 * time.Millisecond)
		require.NoError(s.t, s.run("status"))
		require.NoError(s.t, s.run("status -json"))
		s.width = 60
		require.NoError(s.t, s.run("status"))
		require.NoError(s.t, <-ended)
		require.NoError(s.t, s.run("status"))
	})
}

// What was done stays, and the command says what that is.
func TestInterrupt_KeepsWhatWasDone(t *testing.T) {
	for name, idempotent := range map[string]bool{"interrupt": false, "interrupt_idempotent": true} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, func(s *script) {
				s.items(40)
				ctx, cancel := context.WithCancel(s.t.Context())
				s.program(fill(idempotent, func(ctx context.Context, n int) error {
					if n == 25 {
						cancel()
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				}), migrations.Migration{ID: "2_next", Up: takes(0)})
				require.ErrorIs(t, s.runIn(ctx, "up"), context.Canceled)
				require.NoError(t, s.run("status"))
				if !idempotent {
					require.NoError(t, s.run("repair -yes"))
				}
				require.NoError(t, s.run("up"))
			})
		})
	}
}

// A migration that fails after a backfill, or on its way down, and one whose failure nobody could record.
func TestCommand_TellsHowFarAFailureCame(t *testing.T) {
	golden(t, "how_far", func(s *script) {
		s.program()
		require.NoError(t, s.run("status"))
		s.items(40)
		list := []migrations.Migration{fill(false, func(context.Context, int) error { return nil })}
		filled, broken := list[0].Up, true
		list[0].Up = func(ctx context.Context, run *migrations.Run) error {
			if err := filled(ctx, run); err != nil || !broken {
				return err
			}
			return errors.New("after the backfill")
		}
		list[0].Down = fails("on its way down")
		s.program(list...)
		require.Error(t, s.run("up"))
		broken = false
		require.NoError(t, s.run("repair -yes"))
		require.NoError(t, s.run("up"))
		require.Error(t, s.run("down"))
		list[0].Down = func(context.Context, *migrations.Run) error {
			s.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest})
			return errors.New("of an outage")
		}
		s.program(list...)
		require.NoError(t, s.run("repair -yes"))
		require.Error(t, s.run("down"))
		s.engine.ClearFaults()
		require.NoError(t, s.run("status"))
	})
}

// The cause of a context is an error of its own where the signal package cancels it.
func TestInterrupt_MayHaveACause(t *testing.T) {
	golden(t, "interrupt_cause", func(s *script) {
		ctx, cancel := context.WithCancelCause(s.t.Context())
		cancel(errors.New("interrupt signal received"))
		s.program(shop()...)
		require.ErrorIs(t, s.runIn(ctx, "up"), context.Canceled)
	})
}

// The context of a lost lock is cancelled, too.
func TestExitCode_OfALostLockIsNotThatOfAnInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		locks, err := lock.New(tbl, lock.Config{})
		require.NoError(t, err)
		defer func() { assert.NoError(t, locks.Close(t.Context())) }()
		m, err := migrations.New(tbl, locks, []migrations.Migration{{ID: "1_a", Up: func(ctx context.Context, run *migrations.Run) error {
			require.NoError(t, locks.ForceRelease(t.Context(), run.Lease().Target(), run.Lease().Ticket()))
			<-ctx.Done()
			return ctx.Err()
		}}})
		require.NoError(t, err)
		err = Command{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}.Run(t.Context(), m, []string{"up"})
		require.ErrorIs(t, err, lock.ErrLost)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, 1, ExitCode(err))
	})
}

// A script can tell that migrations are pending from a table that cannot be read, and from one that up refuses to migrate.
func TestPlan_TellsAScriptWhetherUpHasSomethingToDo(t *testing.T) {
	golden(t, "plan_exit_code", func(s *script) {
		list := shop()
		list[1].Up = fails("once")
		s.program(list...)
		require.NoError(t, s.run("plan"))
		require.ErrorIs(t, s.run("plan -exit-code"), ErrPending)
		require.ErrorIs(t, s.run("plan -json -exit-code"), ErrPending)
		require.NoError(t, s.run("up -to 1_index"))
		require.Error(t, s.run("up"))
		require.ErrorIs(t, s.run("plan -exit-code"), migrations.ErrUnfinished)
		s.program(shop()...)
		require.NoError(t, s.run("repair -yes"))
		require.ErrorIs(t, s.run("plan -exit-code"), ErrPending)
		require.NoError(t, s.run("up"))
		require.NoError(t, s.run("plan -exit-code"))
		s.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest})
		require.ErrorIs(t, s.run("plan -exit-code"), table.ErrUnreachable)
		s.engine.ClearFaults()
	})
}

func TestUsage_IsToldForAWrongCall(t *testing.T) {
	golden(t, "usage", func(s *script) {
		s.program(shop()...)
		s.engine.ResetRequests()
		for _, args := range []string{
			"", "sideways", "status now", "baseline", "baseline 1 2", "up -to", "up -to=", "down -to x -all", "down --bogus", "help sideways", "help up down", "repair -yes=maybe",
		} {
			require.ErrorIs(t, s.run(args), ErrUsage, args)
		}
		assert.Empty(t, s.engine.Requests())
		for _, args := range []string{"up -to 7_none", "down -to 7_none"} {
			require.ErrorIs(t, s.run(args), migrations.ErrInvalid)
		}
		require.ErrorIs(t, s.runIn(nil, "status"), migrations.ErrInvalid) //nolint:staticcheck // a mistake of the caller
		s.m = nil
		require.ErrorIs(t, s.run("status"), migrations.ErrInvalid)
	})
}

func TestHelp_ExplainsEachSubcommand(t *testing.T) {
	golden(t, "help", func(s *script) { // needs no Migrator
		for _, args := range []string{"help", "-h", "--help", "help help", "up -h"} {
			require.NoError(t, s.run(args))
		}
		for _, sub := range subcommands() {
			if sub.run != nil {
				require.NoError(t, s.run("help "+sub.name))
			}
		}
	})
}

// Where there are two ways the second is asked for if the first is not wanted.
func TestRepair_AsksForTheOtherWay(t *testing.T) {
	golden(t, "repair_settle", func(s *script) {
		list := shop()
		list[0].Up = fails("once")
		s.program(list...)
		require.Error(t, s.run("up"))
		s.width, s.stdin = 200, "n\ny\n"
		require.NoError(t, s.run("repair"))
		require.NoError(t, s.run("validate"))
		require.NoError(t, s.run("status"))
	})
}

// A fix that is not what was shown any more when the answer comes is not made.
func TestRepair_MakesOnlyWhatWasShown(t *testing.T) {
	golden(t, "repair_changed", func(s *script) {
		list := shop()
		list[0].Up = fails("once")
		s.program(list...)
		require.Error(t, s.run("up"))
		shown, err := s.m.Repair(s.t.Context(), nil)
		require.NoError(t, err)
		require.NotEmpty(t, shown)
		shownToday := shown[0]

		// While the question stands somebody else repairs it, and fails again.
		s.width = 200
		var stdout, stderr bytes.Buffer
		answer := &clitest.SlowReader{Text: "y\n", Before: func() {
			_, err := s.m.Repair(s.t.Context(), func(migrations.Fix) bool { return true })
			require.NoError(t, err)
			_, err = s.m.Up(s.t.Context())
			require.Error(t, err)
			_, err = s.m.Repair(s.t.Context(), func(f migrations.Fix) bool {
				assert.NotEqual(t, shownToday.Text, f.Text)
				return false
			})
			require.NoError(t, err)
		}}
		c := Command{Stdin: answer, Stdout: &stdout, Stderr: &stderr, terminal: func(any) (int, bool) { return s.width, true }}
		err = c.Run(s.t.Context(), s.m, []string{"repair"})
		require.NoError(t, ignoreChanged(err))
		fmt.Fprintf(&s.out, "%s%sexit %d\n", stdout.String(), stderr.String(), ExitCode(err))
	})
}

func ignoreChanged(err error) error {
	if errors.Is(err, ErrChanged) {
		return nil
	}
	return err
}

// An interrupt ends a question that nobody answers.
func TestInterrupt_EndsAQuestion(t *testing.T) {
	golden(t, "repair_interrupted", func(s *script) {
		list := shop()
		list[0].Up = fails("once")
		s.program(list...)
		require.Error(t, s.run("up"))
		ctx, cancel := context.WithCancel(s.t.Context())
		r, w := io.Pipe()
		defer func() { require.NoError(t, w.Close()) }()
		var stdout, stderr bytes.Buffer
		c := Command{Stdin: r, Stdout: &stdout, Stderr: &stderr, terminal: func(any) (int, bool) { return 200, true }}
		go func() {
			synctest.Wait() // until it waits for the answer
			cancel()
		}()
		err := c.Run(ctx, s.m, []string{"repair"})
		require.ErrorIs(t, err, context.Canceled)
		fmt.Fprintf(&s.out, "%s%sexit %d\n", stdout.String(), stderr.String(), ExitCode(err))
	})
}

// A result that cannot be written is an error.
func TestCommand_OutputThatBreaksIsAnError(t *testing.T) {
	golden(t, "broken_output", func(s *script) {
		s.program(shop()...)
		r, w := io.Pipe()
		require.NoError(t, r.Close())
		for _, args := range []string{"status", "help", "plan", "validate", "up", "repair"} {
			var stderr bytes.Buffer
			err := Command{Stdout: w, Stderr: &stderr, Stdin: strings.NewReader("")}.Run(s.t.Context(), s.m, []string{args})
			require.ErrorIs(t, err, io.ErrClosedPipe, args)
			fmt.Fprintf(&s.out, "%s", stderr.String())
		}
	})
}

func TestLogger_WritesOneLineEach(t *testing.T) {
	var out bytes.Buffer
	c := newConsole(&out, func() int { return 0 })
	l := c.logger()
	l.Debug("nobody sees this")
	l.Info("migrations: waiting", "for", time.Second)
	l.With("a", 1).WithGroup("g").With("b", 2).Warn("odd\nthing", "c", 3)
	c.close()
	l.Error("after the end")
	assert.Equal(t, "waiting for=1s\nwarn: odd thing a=1 g.b=2 g.c=3\n", out.String())
}

// On every engine: what a migrator says of a table reaches people, and what they say reaches it.
func TestCommand_RunsOnEveryEngine(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tbl, err := table.Open(e.Client(), table.Schema{Name: e.TableName(t)})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		locks, err := lock.New(tbl, lock.Config{})
		require.NoError(t, err)
		defer func() { assert.NoError(t, locks.Close(t.Context())) }()
		for i := range 30 {
			require.NoError(t, tbl.Write(t.Context(), table.Update(keys.NewKey("p", fmt.Sprint(i)), table.Attr("n").Set(i))))
		}
		broken := true
		m, err := migrations.New(tbl, locks, []migrations.Migration{
			{ID: "1_fill", Name: "fill", Up: func(ctx context.Context, run *migrations.Run) error {
				_, err := run.Backfill(ctx, migrations.Backfill{Name: "all", Transform: func(_ context.Context, item table.Item) (table.Item, error) {
					av, err := table.Encode(true)
					item["filled"] = av
					return item, err
				}})
				return err
			}, Down: takes(0)},
			{ID: "2_break", Up: func(context.Context, *migrations.Run) error {
				if broken {
					return errors.New("broken")
				}
				return nil
			}},
			{ID: "again", Revision: "1", Up: takes(0), Repeatable: true},
		})
		require.NoError(t, err)
		for _, step := range []struct {
			args           string
			code           int
			stdout, stderr string
		}{
			{"status", 0, "3 pending", ""},
			{"plan", 0, "run 1_fill fill", ""},
			{"up", 1, "applied: 1_fill", "1_fill all: 30 items, 30 changed"},
			{"status", 0, "1 applied, 1 failed, 1 pending", ""},
			{"validate", 1, "", "2_break"},
			{"repair", 1, "not made: retry: let Up run 2_break again", ErrNotApproved.Error()},
			{"repair -yes", 0, "made: retry", ""},
			{"up", 0, "applied: 2_break, again", ""},
			{"validate", 0, "agree", ""},
			{"down -to 1_fill", 1, "", migrations.ErrIrreversible.Error()},
			{"baseline 2_break", 0, "nothing to do", ""},
			{"status -json", 0, `"state": "applied"`, ""},
		} {
			var stdout, stderr bytes.Buffer
			err := Command{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}.Run(t.Context(), m, strings.Fields(step.args))
			assert.Equal(t, step.code, ExitCode(err), "%s: %s", step.args, stderr.String())
			assert.Contains(t, stdout.String(), step.stdout, step.args)
			assert.Contains(t, stderr.String(), step.stderr, step.args)
			broken = broken && !strings.HasPrefix(step.args, "repair -yes")
		}
	})
}

// A repair that waits for the lock after the answer says so.
func TestRepair_TellsThatItWaits(t *testing.T) {
	golden(t, "repair_waits", func(s *script) {
		list := shop()
		list[0].Up = fails("once")
		s.program(list...)
		require.Error(s.t, s.run("up"))
		lease, err := s.locks.Acquire(s.t.Context(), lock.Beside(keys.NewKey("MIGRATIONS#main", "MIGRATIONS")))
		require.NoError(s.t, err)
		time.AfterFunc(10*time.Second, func() { assert.NoError(s.t, lease.Release(s.t.Context())) })
		s.width, s.stdin = 200, "y\n"
		assert.NoError(s.t, s.run("repair"))
	})
}
