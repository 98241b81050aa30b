package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// claimed is one call under a lease, or for one, and what shows that it was applied.
type claimed struct {
	free    bool // nobody holds the lock before the call
	guarded bool // ErrLost means that it was not applied
	call    func(ctx context.Context, w *world, c *lock.Client, l *lock.Lease) error
	applied func(w *world, row *lock.Record, ticket string) bool
	gives   bool // nil means that the lease does not hold any more
}

func claimedCalls() map[string]claimed {
	counted := func(w *world, _ *lock.Record, _ string) bool { return w.counted("n") > 0 }
	gone := func(_ *world, row *lock.Record, ticket string) bool { return !inLine(row, ticket) }
	return map[string]claimed{
		"write": {guarded: true, applied: counted, call: func(ctx context.Context, w *world, _ *lock.Client, l *lock.Lease) error {
			return l.Write(ctx, w.count("n"))
		}},
		"write under a condition": {guarded: true, applied: counted, call: func(ctx context.Context, w *world, _ *lock.Client, l *lock.Lease) error {
			return l.Write(ctx, w.count("n").If(table.Attr("n").NotExists()))
		}},
		"commit": {guarded: true, gives: true, applied: counted, call: func(ctx context.Context, w *world, _ *lock.Client, l *lock.Lease) error {
			return l.Commit(ctx, w.count("n"))
		}},
		"guard": {guarded: true, applied: counted, call: func(ctx context.Context, w *world, _ *lock.Client, l *lock.Lease) error {
			err := w.table.Write(ctx, w.count("n"), l.Guard())
			if len(table.Conditions(err)) == 0 && errors.Is(err, lock.ErrLost) {
				return fmt.Errorf("the context has ended: %v", err) //nolint:errorlint // as Lease.Guard describes
			}
			return err
		}},
		"set data": {
			guarded: true, call: func(ctx context.Context, _ *world, _ *lock.Client, l *lock.Lease) error {
				return l.SetData(ctx, "mine")
			},
			applied: func(_ *world, row *lock.Record, _ string) bool {
				var data string
				return row != nil && row.Data.Decode(&data) == nil && data == "mine"
			},
		},
		"release": {gives: true, applied: gone, call: func(ctx context.Context, _ *world, _ *lock.Client, l *lock.Lease) error { return l.Release(ctx) }},
		"renew":   {call: func(ctx context.Context, _ *world, _ *lock.Client, l *lock.Lease) error { return l.Renew(ctx) }},
		"force release": {gives: true, applied: gone, call: func(ctx context.Context, _ *world, c *lock.Client, l *lock.Lease) error {
			return c.ForceRelease(ctx, lock.Name("report"), l.Ticket())
		}},
		"try acquire": {free: true, call: func(ctx context.Context, _ *world, c *lock.Client, _ *lock.Lease) error {
			l, err := c.TryAcquire(ctx, lock.Name("report"), lock.Fixed(10*time.Second))
			if err == nil {
				return l.Release(context.Background())
			}
			return err
		}},
		"acquire": {free: true, call: func(ctx context.Context, _ *world, c *lock.Client, _ *lock.Lease) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(10*time.Second))
			if err == nil {
				return l.Release(context.Background())
			}
			return err
		}},
	}
}

func inLine(row *lock.Record, ticket string) bool {
	return row != nil && slices.ContainsFunc(row.Line, func(p lock.Place) bool { return p.Ticket == ticket })
}

// Whatever happens to its requests, what a call says is true: an error that is definite, and nil.
func TestClaims(t *testing.T) {
	share := testkit.IfSmall(10007, 1009)
	for name, c := range claimedCalls() {
		for _, fixed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s fixed %v", name, fixed), func(t *testing.T) {
				t.Parallel()
				n := 0
				var violations []string
				for sequence := range faulty.Sequences(3) {
					for _, by := range []string{"", "taken", "taken late"} {
						n++
						first := by == "" && (len(sequence) == 1 || len(sequence) == 2 && strings.HasSuffix(sequence[1].Name, "for long"))
						if first || n%share == 0 {
							synctest.Test(t, func(t *testing.T) { violations = append(violations, c.check(t, fixed, sequence, by, n)...) })
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

// check plays one sequence. by tells whether somebody takes the lock by force: before the second request, or after the call.
func (c *claimed) check(t *testing.T, fixed bool, sequence []faulty.Kind, by string, number int) (violations []string) {
	w := newWorld(t)
	require.NoError(t, w.table.Ensure(t.Context()))
	var faults faulty.Client
	config := quiet
	config.HomeRegion = tabletest.Region
	sdk := w.sdk(w.engine.HTTPClient(), faults.Options, faulty.Retries()[number%len(faulty.Retries())])
	tbl, err := table.Open(sdk, table.Schema{Name: "app"})
	require.NoError(t, err)
	client, err := lock.New(tbl, config)
	require.NoError(t, err)
	operator, err := lock.New(w.open(), config)
	require.NoError(t, err)
	name := lock.Name("report")
	under := *w // whose table has the faults, for a transaction of the caller's own
	under.table = tbl
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ticket := ""
	var l *lock.Lease
	if !c.free {
		var opts []lock.Option
		if fixed {
			opts = append(opts, lock.Fixed(10*time.Second))
		}
		l, err = client.Acquire(t.Context(), name, opts...)
		require.NoError(t, err)
		ticket = l.Ticket()
		if number%2 == 0 || fixed && c.guarded { // a Fixed lease ends while the policy still repeats
			ctx = l.Context()
			cancel = func() {} // a lease ends its own context
		}
		time.Sleep(3 * time.Second)
	}
	if number%7 == 0 { // the deadline passes between two attempts
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, 40*time.Millisecond)
		defer stop()
	}
	record := func() *lock.Record {
		row, err := operator.Inspect(context.Background(), name)
		if errors.Is(err, table.ErrNotFound) {
			return nil
		}
		require.NoError(t, err)
		return &row
	}
	take := func() {
		row := record()
		if row == nil || !row.Held() {
			return
		}
		_ = operator.ForceRelease(context.Background(), name, row.Holder().Ticket)
		if l, err := operator.TryAcquire(context.Background(), name); err == nil {
			require.NoError(t, l.Release(context.Background()))
		}
	}
	script, copies := faulty.ScriptOf(sequence, cancel)
	faults.Script(script...)
	if by == "" {
		faults.Spare("GetItem") // so that the first fault hits the write
	}
	var requests atomic.Int64
	faults.Before(func(string) {
		if requests.Add(1) == 2 && by == "taken" {
			take()
		}
	})
	err = c.call(ctx, &under, client, l)
	text := fmt.Sprintf("%s (%s, number %d): %v", faulty.NameOf(sequence), by, number, err)
	violated := func(what string) { violations = append(violations, what+": "+text) }
	row := record()
	over := errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrReleased)
	definite := err != nil && !table.MayBeApplied(err)
	if c.applied != nil && by != "taken" && err == nil && !c.applied(w, row, ticket) {
		violated("nil, and not applied")
	}
	if c.gives && err == nil && inLine(row, ticket) {
		violated("nil, and the lease is in the line")
	}
	if errors.Is(err, lock.ErrStolen) && c.guarded && inLine(row, ticket) {
		violated("stolen, and the lease is in the line")
	}
	if by == "" {
		for _, wrong := range []error{lock.ErrStolen, lock.ErrNotHeld, lock.ErrHeld} { // nobody else has done anything
			if errors.Is(err, wrong) {
				violated("by nobody")
			}
		}
	}
	if by == "taken late" {
		take()
	}
	faults.Script()
	faults.Settle()
	switch {
	case c.guarded && over && c.applied(w, record(), ticket):
		violated("over, and applied")
	case c.guarded && definite && !copies && c.applied(w, record(), ticket):
		violated("not applied, and applied")
	case c.guarded && w.counted("n") > 1:
		violated("applied twice")
	}
	// Nothing stays behind.
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if l != nil {
		_ = l.Release(ctx)
	}
	again, err := operator.Acquire(ctx, name)
	if err != nil {
		violated(fmt.Sprintf("the lock stays held: %v", err))
	} else {
		require.NoError(t, again.Release(ctx))
	}
	require.NoError(t, client.Close(ctx))
	require.NoError(t, operator.Close(ctx))
	return violations
}
