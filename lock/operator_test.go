package lock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestOperator_CallsRefuseARowThatIsNoLock(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		target := lock.Name("report")
		key := p.keyOf(target)
		num := func(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
		set := func(name string, v types.AttributeValue) func(table.Item) {
			return func(i table.Item) { i[name] = v }
		}
		for i, tc := range []struct {
			change func(table.Item)
			want   error
		}{
			{set("type", text("Order")), lock.ErrNotLock},
			{func(i table.Item) { delete(i, "type") }, lock.ErrNotLock},
			{set("fence", text(canary)), lock.ErrMalformed},
			{set("fence", num("0")), lock.ErrMalformed},
			{func(i table.Item) { delete(i, "fence") }, lock.ErrMalformed},
			{set("line", text(canary)), lock.ErrMalformed},
			{set("line", listOf(text(canary))), lock.ErrMalformed},
			{set("line", listOf(num("1"))), lock.ErrMalformed},
			{set("since", text(canary)), lock.ErrMalformed},
			{set("since", num("-1")), lock.ErrMalformed},
			{set("hold", num("0.5")), lock.ErrMalformed},
			{set("writes", num("-1")), lock.ErrMalformed},
			{set("forced", num("1")), lock.ErrMalformed},
			{set("forced_fence", text(canary)), lock.ErrMalformed},
			{set("edits", text(canary)), lock.ErrMalformed},
			{set("ttl", text(canary)), lock.ErrMalformed},
		} {
			item := p.lockRow(key, true, tc.change)
			require.NoError(p, p.table.Write(ctx, table.Put(item)))
			for _, err := range []error{p.client.ForceRelease(ctx, target, "A THIRD"), p.client.Revoke(ctx, target)} {
				require.ErrorIs(p, err, tc.want, "%d", i)
				require.NotContains(p, err.Error(), canary)
			}
			got, err := p.table.Get(ctx, key, true)
			require.NoError(p, err)
			require.True(p, attrvalue.SameItem(item, got), "%d", i)
		}
		require.NoError(p, p.table.Write(ctx, table.Put(p.lockRow(key, true, nil))))
		require.ErrorIs(p, p.client.Revoke(ctx, target), lock.ErrNoSession, "Fixed")
		require.NoError(p, p.client.ForceRelease(ctx, target, "ANOTHER"), "the tests above show what their change does")
		require.ErrorIs(p, p.client.Revoke(ctx, target), lock.ErrNotHeld)
		require.ErrorIs(p, p.client.Revoke(ctx, lock.Name("never")), lock.ErrNotHeld)

		cost := totals(ctx, func(ctx context.Context) {
			for _, reasons := range [][]string{{"a", "b"}, {strings.Repeat("x", lock.MaxReason+1)}, {"\xff"}} {
				require.ErrorIs(p, p.client.ForceRelease(ctx, target, "N", reasons...), lock.ErrInvalid)
			}
			require.ErrorIs(p, p.client.ForceRelease(ctx, lock.Target{}, "N"), lock.ErrInvalid)
			require.ErrorIs(p, p.client.Revoke(ctx, lock.Target{}), lock.ErrInvalid)
		})
		assert.Zero(p, cost.Requests)
		long := p.open(lock.Config{Owner: strings.Repeat("é", lock.MaxOwner/2)})
		l, err := p.client.Acquire(ctx, lock.Name("other"))
		require.NoError(p, err)
		held, err := p.client.Inspect(ctx, lock.Name("other"))
		require.NoError(p, err)
		require.NoError(p, long.ForceRelease(ctx, lock.Name("other"), held.Holder().Ticket))
		r, err := long.Inspect(ctx, l.Target())
		require.NoError(p, err)
		assert.Equal(p, "forced by "+strings.Repeat("é", 123), r.Forced)
	})
}

func TestOperator_ClosedClientForcesAndRevokesNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		require.NoError(t, c.Close(ctx))
		ops := w.requests(func() {
			require.ErrorIs(t, c.ForceRelease(ctx, lock.Name("report"), "N"), lock.ErrClosed)
			require.ErrorIs(t, c.Revoke(ctx, lock.Name("report")), lock.ErrClosed)
		})
		assert.Empty(t, ops)
	})
}

// The holder's context ends within one renewal period. Those of its other locks go on.
func TestOperator_HolderIsToldWithinAPeriod(t *testing.T) {
	for _, forced := range []bool{true, false} {
		for _, own := range []bool{true, false} {
			virtual(t, func(ctx context.Context, w *world) {
				lost := make(chan error, 10)
				c := w.client(lock.Config{OnLost: func(_ *lock.Lease, cause error) { lost <- cause }})
				op := w.client(lock.Config{})
				if own {
					op = c
				}
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				other, err := c.Acquire(ctx, lock.Name("other"))
				require.NoError(t, err)
				time.Sleep(13 * time.Second)
				r, err := op.Inspect(ctx, lock.Name("report"))
				require.NoError(t, err)
				want, ops := lock.ErrRevoked, []string{"GetItem"}
				if forced {
					want, ops = lock.ErrStolen, []string{"GetItem", "UpdateItem"}
				}
				if !own {
					ops = append(ops, "UpdateItem") // to tell
				}
				start := time.Now()
				assert.Equal(t, ops, w.requests(func() {
					if forced {
						require.NoError(t, op.ForceRelease(ctx, lock.Name("report"), r.Holder().Ticket))
					} else {
						require.NoError(t, op.Revoke(ctx, lock.Name("report")))
					}
				}))
				<-l.Context().Done()
				told := time.Since(start)
				t.Logf("forced %v, of the same client %v: told after %v (goal within a period of 5s ± 10%%)", forced, own, told)
				assert.LessOrEqual(t, told, 5500*time.Millisecond)
				require.ErrorIs(t, context.Cause(l.Context()), want)
				require.NoError(t, context.Cause(other.Context()))
				if forced {
					require.ErrorIs(t, <-lost, lock.ErrStolen)
					require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
					return
				}
				// Revoked, and still held, however long that takes.
				time.Sleep(time.Hour)
				_, err = w.client(lock.Config{}).TryAcquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrHeld)
				require.NoError(t, op.Revoke(ctx, lock.Name("report")), "again")
				require.NoError(t, l.Write(ctx, w.put("x")))
				require.NoError(t, l.SetData(ctx, "x"))
				require.NoError(t, l.Commit(ctx, w.put("x")))
				require.NoError(t, l.Release(ctx))
				require.ErrorIs(t, op.Revoke(ctx, lock.Name("report")), lock.ErrNotHeld)
				assert.Empty(t, lost)
				time.Sleep(12 * time.Second) // two renewals: one brings the question, the next removes the answered one
				item, err := w.table.Get(ctx, sessionKey(c), true)
				require.NoError(t, err)
				assert.NotContains(t, item, "ask", "what was answered is taken back")
			})
		}
	}
}

// ghosted takes a lock from its holder, which is not told, lets another one hold it, and waits until a request of the first
// arrives again. It returns the row, which then has the first holder's ticket.
func (w *world) ghosted(ctx context.Context, op *lock.Client, l *lock.Lease, comes time.Duration) lock.Record {
	w.Helper()
	first, err := op.Inspect(ctx, lock.Name("report"))
	require.NoError(w, err)
	// By hand: the holder is not told.
	require.NoError(w, w.table.Write(ctx, table.Update(l.Key(), table.Attr("line").At(0).Remove(), table.Attr("fence").Set(first.Fence+1))))
	between, err := op.TryAcquire(ctx, lock.Name("report"))
	require.NoError(w, err)
	require.NoError(w, between.Release(ctx))
	time.Sleep(comes)
	r, err := op.Inspect(ctx, lock.Name("report"))
	require.NoError(w, err)
	require.Equal(w, first.Holder().Ticket, r.Holder().Ticket, "the ghost is there")
	require.Equal(w, first.Fence+2, r.Fence)
	return r
}

func ghostGivesNothingBack(t *testing.T, does string, freed bool) {
	t.Helper()
	t.Run(fmt.Sprintf("%s, freed %v", does, freed), func(t *testing.T) {
		virtual(t, func(ctx context.Context, w *world) {
			c, op := w.client(lock.Config{}), w.client(lock.Config{})
			w.engine.ResetRequests()
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Call: 1, For: time.Minute})
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			w.ghosted(ctx, op, l, 70*time.Second)
			require.NoError(t, context.Cause(l.Context()), "nobody has told the holder")
			if freed {
				_, err := op.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.ErrorIs(t, context.Cause(l.Context()), lock.ErrLost)
			}
			switch does {
			case "write":
				require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
			case "guard":
				require.ErrorIs(t, w.table.Write(ctx, w.put("x"), l.Guard()), lock.ErrLost)
			case "set data":
				require.ErrorIs(t, l.SetData(ctx, "x"), lock.ErrLost)
			case "commit":
				require.ErrorIs(t, l.Commit(ctx, w.put("x")), lock.ErrLost)
				_, err := w.table.Get(ctx, w.row("x"), true)
				require.ErrorIs(t, err, table.ErrNotFound, "others have held the lock since")
			case "release":
				require.ErrorIs(t, l.Release(ctx), lock.ErrLost)
				if !freed { // a ghost is first for at most a lease and a quarter, and the jitter of renewals
					waiting, cancel := context.WithTimeout(ctx, 28*time.Second)
					defer cancel()
					_, err := op.Acquire(waiting, lock.Name("report"))
					require.NoError(t, err)
				}
			}
		})
	})
}

// A request that hangs is given up after a third of the lease, also one that only reads for people.
func TestTimeout_OfReadsForPeople(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way, config := &line{to: w.engine.HTTPClient()}, quiet
		config.Lease = 3 * time.Second
		c := w.clientOver(way, config)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		for call, f := range map[string]func() error{
			"Inspect":  func() error { return errOf(c.Inspect(ctx, lock.Name("report"))) },
			"Sessions": func() error { return errOf(c.Sessions(ctx, lock.SessionID(c))) },
			"View":     func() error { return errOf(c.View(ctx, lock.Name("report"), nil, lock.EvenIfHeld())) },
			"Revoke":   func() error { return c.Revoke(ctx, lock.Name("report")) },
		} {
			way.cut(hung)
			begun := time.Now()
			time.AfterFunc(100*time.Millisecond, func() { way.cut(open) })
			require.NoError(t, f(), call)
			assert.Less(t, time.Since(begun), 1500*time.Millisecond, call)
		}
		require.NoError(t, l.Release(ctx))
	})
}
