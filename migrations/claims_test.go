package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// claim is a call whose requests have faults.
type claim struct {
	list     func() []migrations.Migration
	start    func(ctx context.Context, w *world) // what is done before; nil for nothing
	run      func(ctx context.Context, m *migrations.Migrator) (migrations.Report, error)
	requests int              // more than the call sends
	all      int              // how many migrations it reports
	done     migrations.State // of each migration after the call
	want     int64            // how often each migration has taken effect then
}

func claims() map[string]claim {
	up := func(ctx context.Context, m *migrations.Migrator) (migrations.Report, error) { return m.Up(ctx) }
	down := func(ctx context.Context, m *migrations.Migrator) (migrations.Report, error) { return m.DownTo(ctx, "") }
	steps := func() []migrations.Migration { return bothWays(1, 1)[:2] }
	fills := func() []migrations.Migration { return bothWays(1, 2)[2:] }
	started := func(list func() []migrations.Migration) func(context.Context, *world) {
		return func(ctx context.Context, w *world) {
			_, err := w.migrator(list()).Up(ctx)
			require.NoError(w, err)
		}
	}
	failing := func() []migrations.Migration {
		return []migrations.Migration{{ID: "failing", Up: func(ctx context.Context, run *migrations.Run) error {
			if err := run.AtomicStep(ctx, "first", table.Put(run.Table().KeyItem(itemKey(100)))); err != nil {
				return err
			}
			return io.EOF
		}}}
	}
	failed := func(ctx context.Context, w *world) {
		_, err := w.migrator(failing()).Up(ctx)
		require.ErrorIs(w, err, io.EOF)
	}
	repair := func(kind migrations.FixKind) func(context.Context, *migrations.Migrator) (migrations.Report, error) {
		return func(ctx context.Context, m *migrations.Migrator) (r migrations.Report, err error) {
			made, err := m.Repair(ctx, func(f migrations.Fix) bool { return f.Kind == kind })
			for _, f := range made {
				r.Done = append(r.Done, f.Record)
			}
			return r, err
		}
	}
	return map[string]claim{
		"up":             {list: steps, run: up, all: 2, requests: 20, done: migrations.Applied, want: 1},
		"down":           {list: steps, start: started(steps), run: down, all: 2, requests: 20, done: migrations.Pending},
		"up, backfill":   {list: fills, run: up, all: 2, requests: 40, done: migrations.Applied, want: 1},
		"down, backfill": {list: fills, start: started(fills), run: down, all: 2, requests: 40, done: migrations.Pending},
		"baseline": {list: steps, all: 2, requests: 8, done: migrations.Applied, run: func(ctx context.Context, m *migrations.Migrator) (migrations.Report, error) {
			return m.Baseline(ctx, "2_steps")
		}},
		"settle": {list: failing, start: failed, run: repair(migrations.Settle), all: 1, requests: 8, done: migrations.Applied},
		"forget": {list: func() []migrations.Migration { return nil }, start: failed, run: repair(migrations.Forget), all: 1, requests: 10},
	}
}

// Whatever happens to the requests of a call from any of them on, what it reports is true, and each step is done once.
func TestClaims(t *testing.T) {
	share := testkit.IfSmall(2003, 199)
	for name, c := range claims() {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, next at once %v", name, late), func(t *testing.T) {
				t.Parallel()
				n := 0
				var violations []string
				for sequence := range faulty.Sequences(2) {
					for at := range c.requests {
						if n++; n%share == 0 {
							virtual(t, func(ctx context.Context, w *world) {
								violations = append(violations, c.check(ctx, w, late, at, sequence, n)...)
							})
						}
					}
				}
				for _, v := range violations[:min(len(violations), 5)] {
					t.Error(v)
				}
			})
		}
	}
}

// harmless reports whether a call can repeat its requests until they have been answered.
func harmless(sequence []faulty.Kind) bool {
	return !slices.ContainsFunc(sequence, func(k faulty.Kind) bool {
		return !slices.Contains([]string{"pass", "reply lost", "reply cut", "request lost", "late", "throttled", "conflict", "500", "503"}, k.Name)
	})
}

// items is how many items backfills change.
const items = 5

// check plays one sequence from a request on. With late, another instance goes on before late copies have arrived.
func (c *claim) check(ctx context.Context, w *world, late bool, at int, sequence []faulty.Kind, number int) (violations []string) {
	list := c.list()
	w.fill(items)
	if c.start != nil {
		c.start(ctx, w)
	}
	clean := w.migrator(list)
	var faults faulty.Client
	tbl, err := table.Open(w.connect(faults.Options, faulty.Retries()[number%len(faulty.Retries())]), w.schema)
	require.NoError(w, err)
	locks, err := lock.New(tbl, lock.Config{Logger: discard})
	require.NoError(w, err)
	m, err := migrations.New(tbl, locks, list, migrations.WithLogger(discard))
	require.NoError(w, err)
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	script, copies := faulty.ScriptOf(sequence, cancel)
	faults.Script(append(slices.Repeat([]faulty.Outcome{faulty.Pass}, at), script...)...)
	report, err := c.run(inner, m)
	text := fmt.Sprintf("%s, at request %d (number %d): %v", faulty.NameOf(sequence), at, number, err)
	violated := func(what string) { violations = append(violations, what+": "+text) }
	states := func() map[string]migrations.State {
		all, err := clean.Status(ctx)
		require.NoError(w, err)
		of := map[string]migrations.State{}
		for _, s := range all {
			of[s.ID] = s.State
		}
		return of
	}
	now := states()
	for _, r := range report.Done {
		if now[r.ID] != c.done {
			violated(fmt.Sprintf("%s is in Done, and %s", r.ID, now[r.ID]))
		}
	}
	repaired := c.done == "" && len(now) == 0 || c.all == 1 && now["failing"] == c.done
	if repaired && len(report.Done) == 0 && !table.MayBeApplied(err) && !copies {
		violated("made for certain, and not returned")
	}
	var partial *migrations.PartialError
	switch {
	case err == nil && len(report.Done) != c.all:
		violated("nil, and not all done")
	case err != nil && harmless(sequence):
		violated("an error, and the requests were only repeated")
	case errors.As(err, &partial) && !table.MayBeApplied(err) && now[partial.Failed] == c.done:
		violated(partial.Failed + " has failed for certain, and is done")
	case errors.Is(err, table.ErrCondition):
		violated("refused, and nobody else has written")
	}
	if !late {
		faults.Settle()
	}
	for try := 0; ; try++ {
		_, err = c.run(ctx, clean)
		if err == nil {
			break
		}
		if try > 3 {
			violated("another instance does not go on: " + err.Error())
			break
		}
		time.Sleep(30 * time.Second)
	}
	faults.Script()
	faults.Settle()
	for _, m := range list {
		for _, n := range w.effects(m.ID) {
			if n != c.want {
				violated(fmt.Sprintf("%s was done %d times", m.ID, n))
			}
		}
	}
	for id, state := range states() {
		if state != c.done {
			violated(id + " is " + string(state) + " in the end")
		}
	}
	require.NoError(w, locks.Close(ctx))
	return violations
}

// A backfill that is throttled sends its requests again. So it can find a checkpoint that it has written itself.
func TestBackfill_IsThrottledAfterALostAnswer(t *testing.T) {
	checkAt(t, "up, backfill", "reply lost", "throttled")
}

// A transaction that conflicts is repeated with fewer items. If the larger one is applied after all, the backfill goes on after its items.
func TestBackfill_GoesOnAfterALargerTransactionThatIsAppliedLate(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.fill(items)
		var faults faulty.Client
		tbl, err := table.Open(w.connect(faults.Options), w.schema, table.WithRetry(table.Retry{Backoff: func() backoff.BackOff {
			return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 1)
		}}))
		require.NoError(t, err)
		locks, err := lock.New(tbl, lock.Config{Logger: discard})
		require.NoError(t, err)
		late := sync.OnceFunc(func() {
			faults.Script(faulty.DropRequest.Copied(time.Millisecond), faulty.Refuse(400, "TransactionConflictException"))
		})
		m, err := migrations.New(tbl, locks, []migrations.Migration{{ID: "3_exact", Up: func(ctx context.Context, run *migrations.Run) error {
			p, err := run.Backfill(ctx, migrations.Backfill{
				Name: "fill", Exact: true, Segments: 1, Filter: only(),
				Transform: func(ctx context.Context, item table.Item) (table.Item, error) {
					late() // the next request is that of the first transaction
					return increment(ctx, item)
				},
			})
			assert.EqualValues(t, items, p.Seen)
			assert.EqualValues(t, items, p.Changed)
			return err
		}}}, migrations.WithLogger(discard))
		require.NoError(t, err)
		_, err = m.Up(ctx)
		require.NoError(t, err)
		assert.Equal(t, []int64{1, 1, 1, 1, 1}, w.effects("3_exact"))
		require.NoError(t, locks.Close(ctx))
	})
}

// DynamoDB refuses the record of a run that is about to begin. A copy of that request is applied all the same. The migration has not run, so
// it does not count as interrupted.
func TestUp_WhoseBeginningWasRefusedAndAppliedHasNotBegun(t *testing.T) {
	for _, copied := range []time.Duration{time.Millisecond, time.Second} { // before the second refusal, and after it
		virtual(t, func(ctx context.Context, w *world) {
			var faults faulty.Client
			tbl, err := table.Open(w.connect(faults.Options), w.schema)
			require.NoError(t, err)
			locks, err := lock.New(tbl, lock.Config{Logger: discard})
			require.NoError(t, err)
			list := []migrations.Migration{simple("1_a")} // which is not idempotent
			m, err := migrations.New(tbl, locks, list, migrations.WithLogger(discard))
			require.NoError(t, err)
			faults.Spare("DescribeTable", "GetItem", "Query", "UpdateItem") // so that the first fault hits the record
			faults.Script(faulty.Throttle().Copied(copied), faulty.Refuse(400, "AccessDeniedException"))
			_, err = m.Up(ctx)
			require.ErrorIs(t, err, table.ErrDenied)
			faults.Settle()
			assert.Zero(t, w.count("1_a"))
			report, err := w.migrator(list).Up(ctx)
			require.NoError(t, err)
			assert.Len(t, report.Done, 1)
			assert.EqualValues(t, 1, w.count("1_a"))
			require.NoError(t, locks.Close(ctx))
		})
	}
}

func TestRepair_ReturnsAForgetAfterWhichStepsCannotBeDeleted(t *testing.T) {
	checkAt(t, "forget", "denied")
}

// checkAt plays one sequence of faults from each request of a call on.
func checkAt(t *testing.T, call string, names ...string) {
	t.Helper()
	c := claims()[call]
	var sequence []faulty.Kind
	for _, name := range names {
		i := slices.IndexFunc(faulty.Kinds(), func(k faulty.Kind) bool { return k.Name == name })
		sequence = append(sequence, faulty.Kinds()[i])
	}
	for at := range c.requests {
		virtual(t, func(ctx context.Context, w *world) {
			for _, v := range c.check(ctx, w, false, at, sequence, 0) {
				t.Error(v)
			}
		})
	}
}

// effects returns how often each part of a migration has taken effect.
func (w *world) effects(id string) (list []int64) {
	switch id {
	case "failing":
		return nil
	case "1_atomic":
		return []int64{w.count("atomic")}
	case "2_steps":
		return []int64{w.count("first"), w.count("second")}
	}
	for i := range items {
		item, n := w.get(itemKey(i)), int64(0)
		switch {
		case id == "3_exact":
			n = integer(item["m"])
		case item["double"] != nil:
			n = 1
		}
		list = append(list, n)
	}
	return list
}

// No answer tells whether an item was written, so neither does the error of that item.
func TestBackfill_AnItemWithoutAnAnswerMayBeWritten(t *testing.T) {
	denied := faulty.Refuse(400, "AccessDeniedException")
	for _, script := range [][]faulty.Outcome{{faulty.DropReply, denied}, {faulty.DropReply, faulty.Throttle(), denied}} {
		_, err := oneItem(t, script...)
		var failed *migrations.ItemError
		require.ErrorAs(t, err, &failed)
		assert.True(t, table.MayBeApplied(err))
		assert.True(t, table.MayBeApplied(failed))
	}
}

// The answer to the write of an item is lost, and its repetition is throttled. So the third one finds what the first one has written: no
// other program has changed the item.
func TestBackfill_CountsAnItemThatIsThrottledAfterALostAnswer(t *testing.T) {
	p, err := oneItem(t, faulty.DropReply, faulty.Throttle())
	require.NoError(t, err)
	assert.EqualValues(t, 1, p.Changed)
	assert.Zero(t, p.Conflicts)
}

// oneItem runs a backfill of one item, which is written once. The script begins with the write of the item.
func oneItem(t *testing.T, script ...faulty.Outcome) (p migrations.Progress, err error) {
	t.Helper()
	virtual(t, func(ctx context.Context, w *world) {
		w.fill(1)
		var faults faulty.Client
		tbl, e := table.Open(w.connect(faults.Options), w.schema)
		require.NoError(t, e)
		locks, e := lock.New(tbl, lock.Config{Logger: discard})
		require.NoError(t, e)
		m, e := migrations.New(tbl, locks, []migrations.Migration{{ID: "1_fill", Up: func(ctx context.Context, run *migrations.Run) (err error) {
			p, err = run.Backfill(ctx, migrations.Backfill{
				Name: "fill", Segments: 1, Filter: only(),
				Transform: func(ctx context.Context, item table.Item) (table.Item, error) {
					faults.Script(script...)
					return increment(ctx, item)
				},
			})
			return err
		}}}, migrations.WithLogger(discard))
		require.NoError(t, e)
		_, err = m.Up(ctx)
		assert.EqualValues(t, 1, integer(w.get(itemKey(0))["m"]))
		require.NoError(t, locks.Close(ctx))
	})
	return p, err
}
