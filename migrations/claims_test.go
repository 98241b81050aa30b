package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// Whatever happens to the requests of Up and Down from any of them on, what they report is true, and each step is done once.
func TestClaims(t *testing.T) {
	const requests = 20 // more than Up or Down sends
	share := testkit.IfSmall(997, 101)
	for _, down := range []bool{false, true} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("down %v, next at once %v", down, late), func(t *testing.T) {
				t.Parallel()
				n := 0
				var violations []string
				for sequence := range faulty.Sequences(2) {
					for at := range requests {
						if n++; n%share == 0 {
							virtual(t, func(ctx context.Context, w *world) {
								violations = append(violations, claimsOf(ctx, w, down, late, at, sequence, n)...)
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

// claimsOf plays one sequence from a request on. With late, another instance goes on before late copies have arrived.
func claimsOf(ctx context.Context, w *world, down, late bool, at int, sequence []faulty.Kind, number int) (violations []string) {
	list := bothWays(1, 1)[:2]
	clean := w.migrator(list)
	want := int64(1)
	if down {
		_, err := clean.Up(ctx)
		require.NoError(w, err)
		want = 0
	}
	var faults faulty.Client
	tbl, err := table.Open(w.connect(faults.Options, faulty.Retries()[number%len(faulty.Retries())]), w.schema)
	require.NoError(w, err)
	locks, err := lock.New(tbl, lock.Config{Logger: discard})
	require.NoError(w, err)
	m, err := migrations.New(tbl, locks, list, migrations.WithLogger(discard))
	require.NoError(w, err)
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	script, _ := faulty.ScriptOf(sequence, cancel)
	faults.Script(append(slices.Repeat([]faulty.Outcome{faulty.Pass}, at), script...)...)
	run := func(m *migrations.Migrator, ctx context.Context) (migrations.Report, error) {
		if down {
			return m.DownTo(ctx, "")
		}
		return m.Up(ctx)
	}
	report, err := run(m, inner)
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
	done := migrations.Applied
	if down {
		done = migrations.Pending
	}
	now := states()
	for _, r := range report.Done {
		if now[r.ID] != done {
			violated(fmt.Sprintf("%s is in Done, and %s", r.ID, now[r.ID]))
		}
	}
	var partial *migrations.PartialError
	switch {
	case err == nil && len(report.Done) != len(list):
		violated("nil, and not all done")
	case errors.As(err, &partial) && !table.MayBeApplied(err) && now[partial.Failed] == done:
		violated(partial.Failed + " has failed for certain, and is done")
	}
	if !late {
		faults.Settle()
	}
	for try := 0; ; try++ {
		_, err = run(clean, ctx)
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
	for _, name := range []string{"atomic", "first", "second"} {
		item, err := w.table.Get(ctx, keys.NewKey("COUNTER#"+name, "COUNTER"), true)
		require.NoError(w, err)
		if n := integer(item["count"]); n != want {
			violated(fmt.Sprintf("%s was done %d times", name, n))
		}
	}
	for id, state := range states() {
		if state != done {
			violated(id + " is " + string(state) + " in the end")
		}
	}
	require.NoError(w, locks.Close(ctx))
	return violations
}
