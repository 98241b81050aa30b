package lock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

var exports = lock.Name("exports")

// permits acquires n permits of the same target, each by another client.
func (w *world) permits(ctx context.Context, n, of int) (clients []*lock.Client, leases []*lock.Lease) {
	w.Helper()
	for _, c := range w.clients(n) {
		l, err := c.Acquire(ctx, exports, lock.Permits(of))
		require.NoError(w, err)
		clients, leases = append(clients, c), append(leases, l)
	}
	return clients, leases
}

func TestPermits_HoldAtOnceAndNoMore(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		three, key := lock.Permits(3), keys.NewKey("TENANT#t", "ORDER")
		var list []*lock.Lease
		for range 3 { // also of one client
			l, err := p.client.TryAcquire(ctx, exports, three)
			require.NoError(p, err)
			list = append(list, l)
		}
		_, err := p.client.TryAcquire(ctx, exports, three)
		var held *lock.HeldError
		require.ErrorAs(p, err, &held)
		assert.Equal(p, 3, held.Holding)
		assert.Equal(p, 3, held.Permits)
		assert.Zero(p, held.Waiting())
		assert.Len(p, held.Line, 3)
		require.ErrorContains(p, err, "and 2 more")
		assert.NotContains(p, err.Error(), "exports")
		for i, l := range list[1:] {
			assert.Greater(p, l.Fence(), list[i].Fence())
		}
		order := table.Update(key, table.Attr("n").Add(1))
		for _, l := range list {
			require.NoError(p, l.Write(ctx, order))
			require.NoError(p, p.table.Write(ctx, order, l.Guard()))
		}
		r, err := p.client.Inspect(ctx, exports)
		require.NoError(p, err)
		assert.Equal(p, 3, r.Permits)
		assert.Len(p, r.Holders(), 3)
		assert.True(p, r.Held())
		assert.Zero(p, r.Waiting())
		assert.Zero(p, r.Fence)
		assert.False(p, r.Since().IsZero())
		require.NoError(p, list[1].Release(ctx), "in any order")
		require.NoError(p, list[1].Release(ctx), "again")
		next, err := p.client.Acquire(ctx, exports, three)
		require.NoError(p, err)
		require.ErrorIs(p, list[1].Write(ctx, order), lock.ErrReleased)
		require.ErrorIs(p, p.table.Write(ctx, order, list[1].Guard()), table.ErrCondition)
		require.NoError(p, list[2].Commit(ctx, order), "at another place than it was granted at")
		require.NoError(p, next.Commit(ctx, order))
		require.NoError(p, list[0].Release(ctx))
		item, err := p.table.Get(ctx, key, true)
		require.NoError(p, err)
		assert.EqualValues(p, 8, number(p.T, item["n"]))
		row := p.raw(next)
		assert.NotContains(p, row, "fence")
		require.NoError(p, p.client.Do(ctx, exports, func(ctx context.Context, l *lock.Lease) error { return l.Write(ctx, order) }, three))
		for r, err := range p.client.List(ctx, lock.In("LOCK#exports")) {
			require.NoError(p, err)
			assert.False(p, r.Held())
		}
	})
}

// The cost of a permit, compared with that of a lock.
func TestPermits_Cost(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		five := lock.Permits(5)
		var l *lock.Lease
		steps := []struct {
			what string
			want []string
			do   func() error
		}{
			{"acquire without a row", []string{"UpdateItem", "UpdateItem"}, func() (err error) { l, err = c.Acquire(ctx, exports, five); return err }},
			{"release", []string{"UpdateItem"}, func() error { return l.Release(ctx) }},
			{"acquire", []string{"UpdateItem"}, func() (err error) { l, err = c.Acquire(ctx, exports, five); return err }},
			{"write", []string{"TransactWriteItems"}, func() error { return l.Write(ctx, w.put("x")) }},
			{"commit", []string{"TransactWriteItems"}, func() error { return l.Commit(ctx, w.put("x")) }},
			{"try", []string{"UpdateItem"}, func() (err error) { l, err = c.TryAcquire(ctx, exports, five); return err }},
			{"set", []string{"GetItem", "UpdateItem"}, func() error { return c.SetPermits(ctx, exports, 6) }},
			{"set again", []string{"GetItem"}, func() error { return c.SetPermits(ctx, exports, 6) }},
		}
		for _, s := range steps {
			ops := w.requests(func() { require.NoError(t, s.do(), s.what) })
			assert.Equal(t, s.want, ops, s.what)
		}
		require.NoError(t, l.Release(ctx))
	})
}

func TestPermits_OptionIsChecked(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		three := lock.Permits(3)
		acquire := func(opts ...lock.Option) error { _, err := c.Acquire(ctx, exports, opts...); return err }
		work := func(context.Context, *lock.Lease) error { return nil }
		ops := w.requests(func() {
			for text, err := range map[string]error{
				"one permit is a lock": acquire(lock.Permits(1)),
				"Permits(0)":           acquire(lock.Permits(0)),
				"Permits(-1)":          acquire(lock.Permits(-1)),
				"Permits(101)":         acquire(lock.Permits(101)),
				"and Fixed":            acquire(three, lock.Fixed(time.Second)),
				"and WithData":         acquire(three, lock.WithData("x")),
				"and Shared":           acquire(three, lock.Shared()),
				"of AcquireAll":        errOf(c.AcquireAll(ctx, []lock.Target{exports}, three)),
				"option of AcquireAll": errOf(c.TryAcquireAll(ctx, []lock.Target{exports, lock.Name("b")}, three)),
				"of Lead":              c.Lead(ctx, exports, work, three),
				"of Every":             c.Every(ctx, exports, time.Hour, func(context.Context, *lock.Lease, time.Time) error { return nil }, three),
				"Permits(1):":          c.SetPermits(ctx, exports, 1),
			} {
				require.ErrorIs(t, err, lock.ErrInvalid, text)
				require.ErrorContains(t, err, text)
			}
		})
		assert.Empty(t, ops)
	})
}

func errOf[T any](_ T, err error) error { return err }

// All clients name the same number, and a plain lock is refused.
func TestPermits_OfAnotherNumberAreRefused(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		report := lock.Name("report")
		l, err := p.client.Acquire(ctx, exports, lock.Permits(3))
		require.NoError(p, err)
		plain, err := p.client.Acquire(ctx, report)
		require.NoError(p, err)
		require.NoError(p, plain.Release(ctx))
		refused := func(named, row int, err error) {
			p.Helper()
			var other *lock.PermitsError
			require.ErrorAs(p, err, &other)
			assert.Equal(p, lock.PermitsError{Named: named, Row: row}, *other)
			require.NotErrorIs(p, err, lock.ErrHeld)
			for _, n := range []int{named, row} {
				if n > 0 {
					require.ErrorContains(p, err, fmt.Sprint(n))
				}
			}
		}
		for _, acquire := range []func(context.Context, lock.Target, ...lock.Option) (*lock.Lease, error){p.client.Acquire, p.client.TryAcquire} {
			refused(4, 3, errOf(acquire(ctx, exports, lock.Permits(4))))
			refused(0, 3, errOf(acquire(ctx, exports)))
			refused(0, 3, errOf(acquire(ctx, exports, lock.Shared())))
			refused(0, 3, errOf(acquire(ctx, exports, lock.Fixed(time.Second))))
			refused(2, 0, errOf(acquire(ctx, report, lock.Permits(2))))
			require.ErrorIs(p, errOf(acquire(ctx, lock.Name("none"), lock.Permits(2), lock.Existing())), table.ErrNotFound)
		}
		refused(0, 3, errOf(p.client.AcquireAll(ctx, []lock.Target{report, exports})))
		refused(0, 3, errOf(p.client.TryAcquireAll(ctx, []lock.Target{exports, report})))
		refused(2, 0, p.client.SetPermits(ctx, report, 2))
		require.ErrorIs(p, p.client.SetPermits(ctx, lock.Name("none"), 2), table.ErrNotFound)
		require.NoError(p, l.Release(ctx))
		refused(4, 3, errOf(p.client.TryAcquire(ctx, exports, lock.Permits(4))))
		again, err := p.client.Acquire(ctx, exports, lock.Permits(3), lock.Existing())
		require.NoError(p, err)
		require.NoError(p, again.Release(ctx))
		plain, err = p.client.TryAcquire(ctx, report)
		require.NoError(p, err, "nothing of the refused is left in the line")
		require.NoError(p, plain.Release(ctx))
	})
}

// More permits are available at once, fewer as holders leave. A client with the former number is told the new one.
func TestPermits_NumberIsChanged(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, list := w.permits(ctx, 2, 2)
		c := w.client(quiet)
		waits := []<-chan *lock.Lease{acquireAsync(ctx, c, exports, lock.Permits(2)), acquireAsync(ctx, c, exports, lock.Permits(2))}
		require.Empty(t, waits[0])
		require.NoError(t, c.SetPermits(ctx, exports, 4))
		start := time.Now()
		for _, wait := range waits {
			l := <-wait
			require.NotNil(t, l)
			list = append(list, l)
		}
		assert.Less(t, time.Since(start), time.Second, "up at once")

		_, err := c.TryAcquire(ctx, exports, lock.Permits(2))
		var other *lock.PermitsError
		require.ErrorAs(t, err, &other)
		assert.Equal(t, lock.PermitsError{Named: 2, Row: 4}, *other)
		_, err = c.TryAcquire(ctx, exports, lock.Permits(other.Row))
		require.ErrorIs(t, err, lock.ErrHeld, "it can go on by what the error says")

		next := acquireAsync(ctx, c, exports, lock.Permits(4))
		require.NoError(t, c.SetPermits(ctx, exports, 2))
		for i, l := range list {
			require.NoError(t, l.Write(ctx, w.put(fmt.Sprint("x", i))), "nobody loses anything")
		}
		for _, l := range list[:2] {
			require.NoError(t, l.Release(ctx))
			time.Sleep(time.Minute)
			require.Empty(t, next, "down as holders leave")
		}
		require.NoError(t, list[3].Write(ctx, w.put("x")))
		require.NoError(t, list[2].Release(ctx))
		l := <-next
		require.NotNil(t, l)
		for _, l := range []*lock.Lease{l, list[3]} {
			require.NoError(t, l.Release(ctx))
		}
	})
}

// First come, first served, also if waiters give up.
func TestPermits_AreGrantedInOrder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, held := w.permits(ctx, 2, 2)
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		for i, c := range w.clients(6) {
			all.Go(func() {
				bounded := ctx
				if i == 2 {
					var cancel func()
					bounded, cancel = context.WithTimeout(ctx, 10*time.Second)
					defer cancel()
				}
				l, err := c.Acquire(bounded, exports, lock.Permits(2))
				if i == 2 {
					var held *lock.HeldError
					assert.ErrorAs(t, err, &held)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					return
				}
				assert.NoError(t, err)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Second)
				assert.NoError(t, l.Release(ctx))
			})
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		require.NoError(t, held[1].Release(ctx))
		all.Wait()
		require.NoError(t, held[0].Release(ctx))
		assert.Equal(t, []int{0, 1, 3, 4, 5}, order)
	})
}

// ForceRelease takes one permit, and Revoke asks for all of them.
func TestPermits_AreForcedOneByOneAndRevokedTogether(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, list := w.permits(ctx, 3, 3)
		op := w.client(quiet)
		next := acquireAsync(ctx, op, exports, lock.Permits(3))
		waiting, err := op.Inspect(ctx, exports)
		require.NoError(t, err)
		assert.Equal(t, 1, waiting.Waiting())
		var held *lock.HeldError
		require.ErrorAs(t, op.ForceRelease(ctx, exports, waiting.Line[3].Ticket), &held, "who waits holds nothing")
		require.NoError(t, op.ForceRelease(ctx, exports, list[1].Ticket(), "stuck"))
		r, err := op.Inspect(ctx, exports)
		require.NoError(t, err)
		assert.Equal(t, "stuck", r.Forced)
		require.ErrorIs(t, list[1].Write(ctx, w.put("x")), lock.ErrLost)
		for _, i := range []int{0, 2} {
			require.NoError(t, list[i].Write(ctx, w.put("x")))
		}
		require.ErrorAs(t, op.ForceRelease(ctx, exports, list[1].Ticket()), &held)
		l := <-next
		require.NotNil(t, l)
		require.NoError(t, op.Revoke(ctx, exports))
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked, "at once, of the same client")
		time.Sleep(6 * time.Second)
		for _, l := range []*lock.Lease{list[0], list[2], l} {
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked)
			require.NoError(t, l.Release(ctx))
		}
		require.ErrorIs(t, op.Revoke(ctx, exports), lock.ErrNotHeld)
		require.ErrorIs(t, op.ForceRelease(ctx, exports, l.Ticket()), lock.ErrNotHeld)
	})
}

// MaxHold ends a permit, and Close releases all permits of a client.
func TestPermits_EndWithMaxHoldAndClose(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, err := lock.New(w.open(), quiet)
		require.NoError(t, err)
		l, err := a.Acquire(ctx, exports, lock.Permits(2), lock.MaxHold(time.Second))
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrMaxHold)
		w.free(ctx, []lock.Target{exports})
		for range 2 {
			_, err := a.Acquire(ctx, exports, lock.Permits(2))
			require.NoError(t, err)
		}
		waiting := make(chan error, 1)
		go func() { waiting <- errOf(a.Acquire(ctx, exports, lock.Permits(2))) }()
		time.Sleep(time.Second)
		require.NoError(t, a.Close(ctx))
		require.ErrorIs(t, <-waiting, lock.ErrClosed)
		w.free(ctx, []lock.Target{exports})
	})
}

func TestPermits_HaveNoPayloadAndNoView(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		clients, list := w.permits(ctx, 2, 2)
		require.ErrorIs(t, list[0].SetData(ctx, "x"), lock.ErrInvalid)
		var held *lock.HeldError
		_, err := clients[0].View(ctx, exports, rowKeys(1))
		require.ErrorAs(t, err, &held, "holders write")
		v, err := clients[0].View(ctx, exports, rowKeys(1), lock.EvenIfHeld())
		require.NoError(t, err)
		assert.Equal(t, 2, v.Held.Holding)
		assert.Zero(t, v.Fence)
		for _, l := range list {
			require.NoError(t, l.Renew(ctx), "it is renewed with the session")
			require.NoError(t, l.Release(ctx))
		}
		_, err = clients[0].View(ctx, exports, rowKeys(1))
		require.NoError(t, err)
	})
}

// The row is in the index while a permit is held, and List shows who holds.
func TestPermits_AreListed(t *testing.T) {
	contractWith(t, table.Schema{Indexes: []table.Index{byTime}}, lock.Config{Index: byTime.Name}, func(ctx context.Context, p *place) {
		count := func() (n int) {
			for r, err := range p.client.List(ctx, lock.Index()) {
				require.NoError(p, err)
				n += len(r.Holders())
			}
			return n
		}
		var list []*lock.Lease
		for range 3 {
			l, err := p.client.Acquire(ctx, exports, lock.Permits(5))
			require.NoError(p, err)
			list = append(list, l)
		}
		assert.Equal(p, 3, count())
		slices.Reverse(list)
		for i, l := range list {
			require.NoError(p, l.Release(ctx))
			assert.Equal(p, 2-i, count())
		}
	})
}

// A guard token of a permit, or of a reader, guards the writes of another process.
func TestPermits_AndSharedGuardTokens(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		for target, option := range map[lock.Target]lock.Option{exports: lock.Permits(2), catalogue: lock.Shared()} {
			first, err := c.Acquire(ctx, target, option)
			require.NoError(t, err)
			l, err := c.Acquire(ctx, target, option)
			require.NoError(t, err)
			token, err := lock.ParseGuardToken(l.GuardToken().String())
			require.NoError(t, err)
			require.Equal(t, l.GuardToken(), token)
			require.NoError(t, w.table.Write(ctx, w.put("x"), token.Guard(w.table)))
			require.NoError(t, l.Release(ctx))
			require.ErrorIs(t, w.table.Write(ctx, w.put("x"), token.Guard(w.table)), lock.ErrLost)
			require.NoError(t, first.Release(ctx))
		}
	})
}
