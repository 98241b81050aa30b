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

// use is a world in which one call is made.
type use struct {
	*world
	of       *claimed
	faulty   *table.Table // whose requests have the faults
	client   *lock.Client // likewise
	operator *lock.Client // of another process, without faults
	lease    *lock.Lease  // that the call is about; nil if the lock is free
	bundle   *lock.Bundle // of all targets
	tickets  []string     // of the leases
	beside   string       // ticket of another process that holds at the same time
}

// row is the row of a lock; nil if there is none.
func (u *use) row(target lock.Target) *lock.Record {
	row, err := u.operator.Inspect(context.Background(), target)
	if errors.Is(err, table.ErrNotFound) {
		return nil
	}
	require.NoError(u, err)
	return &row
}

// inLine counts the tickets of the call that are in their lines.
func (u *use) inLine() (n int) {
	for i, ticket := range u.tickets {
		row := u.row(u.of.targets()[i])
		if row != nil && slices.ContainsFunc(row.Line, func(p lock.Place) bool { return p.Ticket == ticket }) {
			n++
		}
	}
	return n
}

// take takes the first lock by force from the one that holds it, and uses it.
func (u *use) take() {
	ctx, name := context.Background(), lock.Name("report")
	row, err := u.operator.Inspect(ctx, name)
	if err != nil || !row.Held() {
		return
	}
	for _, p := range row.Holders() {
		if p.Ticket != u.beside {
			_ = u.operator.ForceRelease(ctx, name, p.Ticket)
			break
		}
	}
	if l, err := u.operator.TryAcquire(ctx, name, u.of.shares...); err == nil {
		require.NoError(u, l.Release(ctx))
	}
}

// hold acquires what the call needs.
func (u *use) hold(fixed bool) {
	ctx, by := u.Context(), u.client
	opts := slices.Clone(u.of.shares)
	if fixed {
		opts = append(opts, lock.Fixed(10*time.Second))
	}
	if u.of.data {
		opts = append(opts, lock.WithData("of the lease"))
	}
	if u.of.other {
		by = u.operator
	}
	if u.of.all {
		b, err := by.AcquireAll(ctx, u.of.targets(), opts...)
		require.NoError(u, err)
		u.bundle, u.lease = b, b.Leases()[0]
		for _, l := range b.Leases() {
			u.tickets = append(u.tickets, l.Ticket())
		}
		return
	}
	l, err := by.Acquire(ctx, u.of.targets()[0], opts...)
	require.NoError(u, err)
	u.lease, u.tickets = l, []string{l.Ticket()}
}

// Whatever happens to its requests, what a call says is true: an error that is definite, and nil.
func TestClaims(t *testing.T) {
	playAll(t, claimedCalls(), func(sequence []faulty.Kind, _ int) bool {
		return len(sequence) == 1 || len(sequence) == 2 && strings.HasSuffix(sequence[1].Name, "for long")
	})
}

func TestClaims_OfSeveralLocksAndHolders(t *testing.T) {
	part := testkit.IfSmall(17, 1)
	playAll(t, severalCalls(), func(sequence []faulty.Kind, n int) bool { return single(sequence) && n%part == 0 })
}

func TestClaims_OfOperatorsAndJobs(t *testing.T) {
	part := testkit.IfSmall(5, 1)
	playAll(t, operatorCalls(), func(sequence []faulty.Kind, n int) bool { return single(sequence) && n%part == 0 })
}

// single reports whether a sequence is one fault, at the first request or at a later one.
func single(sequence []faulty.Kind) bool {
	return !slices.ContainsFunc(sequence[:len(sequence)-1], func(k faulty.Kind) bool { return k.Name != "pass" })
}

// playAll plays a sample of all sequences for each call, and of those that nobody else disturbs all that always selects.
func playAll(t *testing.T, calls map[string]claimed, always func(sequence []faulty.Kind, number int) bool) {
	t.Helper()
	share := testkit.IfSmall(10007, 1009)
	for name, c := range calls {
		for _, fixed := range []bool{true, false} {
			if fixed && (c.free || c.shares != nil || c.other) {
				continue
			}
			t.Run(fmt.Sprintf("%s fixed %v", name, fixed), func(t *testing.T) {
				t.Parallel()
				n := 0
				var violations []string
				for sequence := range faulty.Sequences(3) {
					for _, by := range []string{"", "taken", "taken late"} {
						n++
						if by == "" && always(sequence, n) || n%share == 0 {
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
	u := &use{world: w, of: c}
	var err error
	u.faulty, err = table.Open(sdk, table.Schema{Name: "app"})
	require.NoError(t, err)
	u.client, err = lock.New(u.faulty, config)
	require.NoError(t, err)
	u.operator, err = lock.New(w.open(), config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var beside *lock.Lease
	if c.shares != nil {
		beside, err = u.operator.Acquire(t.Context(), lock.Name("report"), c.shares...)
		require.NoError(t, err)
		u.beside = beside.Ticket()
	}
	if c.start != nil {
		c.start(u)
	}
	var next chan error // what a goroutine that waits gets
	if !c.free {
		u.hold(fixed)
		if !c.other && (number%2 == 0 || fixed && c.guarded) { // a Fixed lease ends while the policy still repeats
			ctx = u.lease.Context()
			if c.all {
				ctx = u.bundle.Context()
			}
			cancel = func() {} // a lease ends its own context
		}
		if c.queued {
			next = make(chan error, 1)
			go func() {
				l, err := u.client.Acquire(context.Background(), lock.Name("report"))
				if err == nil {
					err = l.Release(context.Background())
				}
				next <- err
			}()
		}
		time.Sleep(3 * time.Second)
	}
	if number%7 == 0 { // the deadline passes between two attempts
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, 40*time.Millisecond)
		defer stop()
	}
	script, copies := faulty.ScriptOf(sequence, cancel)
	faults.Script(script...)
	if by == "" {
		faults.Spare("GetItem") // so that the first fault hits the write
	}
	var requests atomic.Int64
	faults.Before(func(string) {
		if requests.Add(1) == 2 && by == "taken" {
			u.take()
		}
	})
	err = c.call(ctx, u)
	text := fmt.Sprintf("%s (%s, number %d): %v", faulty.NameOf(sequence), by, number, err)
	violated := func(what string) { violations = append(violations, what+": "+text) }
	over := errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrReleased)
	definite := err != nil && !table.MayBeApplied(err)
	if errors.Is(err, errFalse) {
		violated("false")
	}
	if c.applied != nil && by != "taken" && err == nil && !c.applied(u) {
		violated("nil, and not applied")
	}
	if c.gives && err == nil && u.inLine() > 0 {
		violated("nil, and the lease is in the line")
	}
	if errors.Is(err, lock.ErrStolen) && c.guarded && u.inLine() == len(u.tickets) {
		violated("stolen, and the lease is in the line")
	}
	if by == "" {
		for _, wrong := range []error{lock.ErrStolen, lock.ErrNotHeld, lock.ErrHeld, lock.ErrNoSession} { // nobody else has done anything
			if errors.Is(err, wrong) {
				violated("by nobody")
			}
		}
		if errors.Is(err, lock.ErrInvalid) && !errors.As(err, new(*table.Error)) || errors.As(err, new(*lock.PermitsError)) {
			violated("of an argument that is acceptable")
		}
		if n := u.inLine(); c.all && c.guarded && n > 0 && n < len(u.tickets) {
			violated("half of the locks are released")
		}
	}
	if by == "taken late" {
		u.take()
	}
	faults.Script()
	faults.Settle()
	switch {
	case c.guarded && over && c.applied(u):
		violated("over, and applied")
	case c.guarded && definite && !copies && c.applied(u):
		violated("not applied, and applied")
	case c.runs && definite && !over && !copies && c.applied(u):
		violated("not written, and written")
	case c.guarded && u.counted("n") > 1:
		violated("applied twice")
	}
	// Nothing stays behind.
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	switch {
	case u.bundle != nil:
		_ = u.bundle.Release(ctx)
	case u.lease != nil:
		_ = u.lease.Release(ctx)
	}
	if beside != nil {
		_ = beside.Release(ctx)
	}
	if next != nil {
		waited := <-next
		for _, wrong := range []error{lock.ErrStolen, lock.ErrHeld, lock.ErrReleased, lock.ErrNotHeld} {
			if by == "" && errors.Is(waited, wrong) {
				violated(fmt.Sprintf("the goroutine that waits gets %v", waited))
			}
		}
	}
	c.again(ctx, u, violated)
	require.NoError(t, u.client.Close(ctx))
	require.NoError(t, u.operator.Close(ctx))
	return violations
}

// again acquires all locks of the call, and all permits.
func (c *claimed) again(ctx context.Context, u *use, violated func(string)) {
	for _, target := range c.targets() {
		var opts []lock.Option
		var got []*lock.Lease
		n := 1
		if _, err := u.operator.Inspect(ctx, target); errors.Is(err, lock.ErrMalformed) { // it was not reset
			require.NoError(u, u.operator.ForceRelease(ctx, target, "odd"))
		}
		if row := u.row(target); row != nil && row.Permits > 0 {
			n = row.Permits
			opts = append(opts, lock.Permits(n))
		}
		for range n {
			l, err := u.operator.Acquire(ctx, target, opts...)
			if err != nil {
				violated(fmt.Sprintf("the lock stays held: %v", err))
				break
			}
			got = append(got, l)
		}
		for _, l := range got {
			require.NoError(u, l.Release(ctx))
		}
	}
}
