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

var catalogue = lock.Name("catalogue")

// readers acquire the same target, each by another client.
func (w *world) readers(ctx context.Context, n int) (list []*lock.Lease) {
	w.Helper()
	for _, c := range w.clients(n) {
		l, err := c.Acquire(ctx, catalogue, lock.Shared())
		require.NoError(w, err)
		list = append(list, l)
	}
	return list
}

func TestShared_ReadersHoldTogetherAWriterAlone(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		key := keys.NewKey("TENANT#t", "ORDER")
		order := table.Update(key, table.Attr("n").Add(1))
		first, err := p.client.Acquire(ctx, catalogue, lock.Shared())
		require.NoError(p, err)
		second, err := p.client.TryAcquire(ctx, catalogue, lock.Shared())
		require.NoError(p, err, "also of one client")
		assert.Equal(p, first.Fence(), second.Fence())
		_, err = p.client.TryAcquire(ctx, catalogue)
		var held *lock.HeldError
		require.ErrorAs(p, err, &held)
		assert.Equal(p, 2, held.Holding)
		assert.Zero(p, held.Permits)
		assert.True(p, held.Line[0].Shared)
		for _, l := range []*lock.Lease{first, second} {
			require.NoError(p, l.Write(ctx, order))
			require.NoError(p, p.table.Write(ctx, order, l.Guard()))
		}
		r, err := p.client.Inspect(ctx, catalogue)
		require.NoError(p, err)
		assert.Len(p, r.Holders(), 2)
		assert.Zero(p, r.Waiting())
		require.NoError(p, first.Release(ctx))
		require.NoError(p, first.Release(ctx), "again")
		require.ErrorIs(p, first.Write(ctx, order), lock.ErrReleased)
		require.ErrorIs(p, p.table.Write(ctx, order, first.Guard()), table.ErrCondition)
		require.NoError(p, second.Commit(ctx, order))
		writer, err := p.client.TryAcquire(ctx, catalogue)
		require.NoError(p, err)
		assert.Greater(p, writer.Fence(), first.Fence())
		_, err = p.client.TryAcquire(ctx, catalogue, lock.Shared())
		require.ErrorAs(p, err, &held)
		assert.Equal(p, 1, held.Holding)
		require.NoError(p, writer.Commit(ctx, order))
		require.NoError(p, p.client.Do(ctx, catalogue, func(_ context.Context, l *lock.Lease) error {
			assert.Greater(p, l.Fence(), writer.Fence())
			return nil
		}, lock.Shared()))
		item, err := p.table.Get(ctx, key, true)
		require.NoError(p, err)
		assert.EqualValues(p, 6, number(p.T, item["n"]))
		require.NoError(p, errOf(p.client.Inspect(ctx, catalogue)))
	})
}

// A writer that waits stops the readers behind it, and readers that stand together hold together.
func TestShared_FollowsTheOrderOfTheLine(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		readers := w.readers(ctx, 2)
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		wait := func(name string, opts ...lock.Option) {
			c := w.client(quiet)
			all.Go(func() {
				l, err := c.Acquire(ctx, catalogue, opts...)
				assert.NoError(t, err)
				mu.Lock()
				order = append(order, fmt.Sprint(name, " at ", time.Now().Unix()%1000))
				mu.Unlock()
				time.Sleep(10 * time.Second)
				assert.NoError(t, l.Release(ctx))
			})
			time.Sleep(time.Second)
		}
		start := time.Now().Unix() % 1000
		wait("writer")
		wait("reader", lock.Shared())
		wait("reader", lock.Shared())
		wait("another writer")
		wait("last reader", lock.Shared())
		require.ErrorIs(t, errOf(w.client(quiet).TryAcquire(ctx, catalogue, lock.Shared())), lock.ErrHeld, "a writer waits")
		assert.Empty(t, order)
		for _, l := range readers {
			require.NoError(t, l.Release(ctx))
		}
		all.Wait()
		var names []string
		var at []int64
		for _, s := range order {
			var when int64
			name := s[:len(s)-len(" at ")-len(fmt.Sprint(time.Now().Unix()%1000))]
			_, err := fmt.Sscanf(s[len(name):], " at %d", &when)
			require.NoError(t, err)
			names, at = append(names, name), append(at, when-start)
		}
		assert.Equal(t, []string{"writer", "reader", "reader", "another writer", "last reader"}, names)
		assert.InDelta(t, at[1], at[2], 1, "together")
		assert.GreaterOrEqual(t, at[3]-at[2], int64(10))
	})
}

func TestShared_OptionIsChecked(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		work := func(context.Context, *lock.Lease) error { return nil }
		ops := w.requests(func() {
			for text, err := range map[string]error{
				"Shared and Fixed":    errOf(c.Acquire(ctx, catalogue, lock.Shared(), lock.Fixed(time.Second))),
				"Shared and WithData": errOf(c.Acquire(ctx, catalogue, lock.WithData(1), lock.Shared())),
				"Permits and Shared":  errOf(c.TryAcquire(ctx, catalogue, lock.Shared(), lock.Permits(2))),
				"of AcquireAll":       errOf(c.AcquireAll(ctx, names(2), lock.Shared())),
				"of Lead":             c.Lead(ctx, catalogue, work, lock.Shared()),
				"of Every":            c.Every(ctx, catalogue, time.Hour, func(context.Context, *lock.Lease, time.Time) error { return nil }, lock.Shared()),
			} {
				require.ErrorIs(t, err, lock.ErrInvalid, text)
				require.ErrorContains(t, err, text)
			}
		})
		assert.Empty(t, ops)
		l, err := c.Acquire(ctx, catalogue, lock.Shared())
		require.NoError(t, err)
		require.ErrorIs(t, l.SetData(ctx, "x"), lock.ErrInvalid)
		require.NoError(t, l.Release(ctx))
	})
}

// The cost of a reader, compared with that of a lock.
func TestShared_Cost(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b := w.client(quiet), w.client(quiet)
		var l, m *lock.Lease
		for _, s := range []struct {
			what string
			want []string
			do   func() error
		}{
			{"acquire without a row", []string{"UpdateItem"}, func() (err error) { l, err = a.Acquire(ctx, catalogue, lock.Shared()); return err }},
			{"acquire beside another", []string{"UpdateItem"}, func() (err error) { m, err = b.Acquire(ctx, catalogue, lock.Shared()); return err }},
			{"write", []string{"TransactWriteItems"}, func() error { return m.Write(ctx, w.put("x")) }},
			{"release of the second", []string{"UpdateItem"}, func() error { return m.Release(ctx) }},
			{"try beside another", []string{"UpdateItem", "UpdateItem"}, func() (err error) { m, err = b.TryAcquire(ctx, catalogue, lock.Shared()); return err }},
			{"release of the first", []string{"UpdateItem", "UpdateItem"}, func() error { return l.Release(ctx) }},
			{"commit where one before it has left", []string{"TransactWriteItems", "TransactWriteItems"}, func() error { return m.Commit(ctx, w.put("x")) }},
		} {
			ops := w.requests(func() { require.NoError(t, s.do(), s.what) })
			assert.Equal(t, s.want, ops, s.what)
		}
	})
}

// ForceRelease takes one reader's lease, and the others read on. Revoke asks all of them.
func TestShared_IsForcedOneByOneAndRevokedTogether(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		list := w.readers(ctx, 3)
		op := w.client(quiet)
		require.NoError(t, op.ForceRelease(ctx, catalogue, list[1].Ticket(), "stuck"))
		require.ErrorIs(t, list[1].Write(ctx, w.put("x")), lock.ErrLost)
		require.NoError(t, list[0].Write(ctx, w.put("x")))
		var held *lock.HeldError
		require.ErrorAs(t, op.ForceRelease(ctx, catalogue, list[1].Ticket()), &held)
		later, err := op.Acquire(ctx, catalogue, lock.Shared())
		require.NoError(t, err)
		require.NoError(t, op.Revoke(ctx, catalogue))
		time.Sleep(6 * time.Second)
		for _, l := range []*lock.Lease{list[0], list[2], later} {
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked)
		}
		require.NoError(t, later.Release(ctx), "of a lease that was granted after the force")
		require.ErrorIs(t, list[0].Release(ctx), lock.ErrLost, "that of one that was granted before is not told apart from the one that was forced")
		require.NoError(t, list[2].Commit(ctx, w.put("x")), "a commit is known by its token")
		w.free(ctx, []lock.Target{catalogue})
	})
}

// View is not refused while only readers hold. It sees what the last writer has left, as the readers do.
func TestView_BesideReaders(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		list := w.readers(ctx, 2)
		c := w.client(quiet)
		v, err := c.View(ctx, catalogue, rowKeys(1))
		require.NoError(t, err)
		assert.Equal(t, list[0].Fence(), v.Fence)
		require.NotNil(t, v.Held)
		assert.Equal(t, 2, v.Held.Holding)
		writer := acquireAsync(ctx, c, catalogue)
		_, err = c.View(ctx, catalogue, rowKeys(1))
		require.NoError(t, err, "the writer waits")
		for _, l := range list {
			require.NoError(t, l.Release(ctx))
		}
		l := <-writer
		_, err = c.View(ctx, catalogue, rowKeys(1))
		require.ErrorIs(t, err, lock.ErrHeld)
		require.NoError(t, l.Release(ctx))
	})
}

// Within a client, the lock is passed only from a writer to a writer.
func TestShared_WithinAProcess(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		held, err := c.Acquire(ctx, catalogue)
		require.NoError(t, err)
		var waits []<-chan *lock.Lease
		for i := range 6 {
			var opts []lock.Option
			if i%2 == 0 {
				opts = append(opts, lock.Shared())
			}
			waits = append(waits, acquireAsync(ctx, c, catalogue, opts...))
		}
		require.NoError(t, held.Release(ctx))
		for len(waits) > 0 {
			time.Sleep(time.Second)
			waits = slices.DeleteFunc(waits, func(got <-chan *lock.Lease) bool {
				select {
				case l := <-got:
					require.NotNil(t, l)
					require.NoError(t, l.Commit(ctx, w.put("x")))
					return true
				default:
					return false
				}
			})
		}
		w.free(ctx, []lock.Target{catalogue})
	})
}
