package lock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

func TestAcquireAll_Cost(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		for _, n := range []int{1, 2, 100} {
			targets := names(n)
			for _, row := range []string{"new rows", "rows of before"} {
				var b *lock.Bundle
				var err error
				got := totals(ctx, func(ctx context.Context) { b, err = c.AcquireAll(ctx, targets) })
				require.NoError(t, err)
				t.Logf("%3d locks, %-14s %d requests, %v write units, %v read units", n, row, got.Requests, got.WriteUnits, got.ReadUnits)
				if n == 1 {
					assert.Equal(t, table.Totals{Requests: 1, WriteUnits: 1}, got)
				} else {
					assert.Equal(t, table.Totals{Requests: 2, WriteUnits: float64(2 * n), ReadUnits: float64(n)}, got)
				}
				got = totals(ctx, func(ctx context.Context) { require.NoError(t, b.Release(ctx)) })
				assert.Equal(t, table.Totals{Requests: int64(n), WriteUnits: float64(n)}, got)
			}
		}
	})
}

func TestAcquireAll_RefusesBadTargets(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		beside := lock.Beside(keys.NewKey("LOCK#a", "a")) // whose lock row is that of Name("a")
		for name, targets := range map[string][]lock.Target{
			"none":                 nil,
			"too many":             names(101),
			"twice the same":       {lock.Name("a"), lock.Name("b"), lock.Name("a")},
			"empty":                {lock.Name("a"), {}},
			"two targets, one row": {lock.Name("a"), beside},
		} {
			ops := w.requests(func() {
				_, err := c.AcquireAll(ctx, targets)
				require.ErrorIs(t, err, lock.ErrInvalid, name)
				_, err = c.TryAcquireAll(ctx, targets)
				require.ErrorIs(t, err, lock.ErrInvalid, name)
				assert.NotContains(t, err.Error(), "LOCK#")
			})
			assert.Empty(t, ops, name)
		}
		ops := w.requests(func() {
			_, err := c.AcquireAll(ctx, names(2), lock.Fixed(time.Millisecond))
			require.ErrorIs(t, err, lock.ErrInvalid)
		})
		assert.Empty(t, ops)
		require.NoError(t, c.Close(ctx))
		_, err := c.AcquireAll(ctx, names(2))
		require.ErrorIs(t, err, lock.ErrClosed)
	})
}

func TestAcquireAll_TakesAllOrNone(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		other := p.open(lock.Config{Owner: "other"})
		targets := names(4)
		first, err := other.Acquire(ctx, targets[1])
		require.NoError(p, err)
		second, err := other.Acquire(ctx, targets[3], lock.Fixed(time.Hour))
		require.NoError(p, err)
		_, err = p.client.TryAcquireAll(ctx, targets)
		var all *lock.HeldAllError
		require.ErrorAs(p, err, &all)
		require.ErrorIs(p, err, lock.ErrHeld)
		require.Len(p, all.Held, 2)
		assert.Equal(p, targets[1], all.Held[0].Target)
		assert.Equal(p, first.Fence(), all.Held[0].Fence)
		assert.Equal(p, targets[3], all.Held[1].Target)
		assert.Equal(p, second.Fence(), all.Held[1].Fence)
		var held *lock.HeldError
		require.ErrorAs(p, err, &held)
		assert.Same(p, all.Held[0], held)
		assert.NotContains(p, err.Error(), "n01")
		for _, target := range []lock.Target{targets[0], targets[2]} {
			_, err := p.client.Inspect(ctx, target)
			require.ErrorIs(p, err, table.ErrNotFound, "nothing was taken")
		}
		_, err = p.client.TryAcquireAll(ctx, targets[1:2])
		require.ErrorAs(p, err, &all, "also of one lock")
		assert.Len(p, all.Held, 1)
		require.NoError(p, first.Release(ctx))
		require.NoError(p, second.Release(ctx))

		for _, opts := range [][]lock.Option{nil, {lock.Fixed(time.Minute)}} {
			b, err := p.client.TryAcquireAll(ctx, targets, opts...)
			require.NoError(p, err)
			require.Len(p, b.Leases(), 4)
			require.Len(p, b.Guards(), 4)
			for i, l := range b.Leases() {
				assert.Equal(p, targets[i], l.Target())
				r, err := other.Inspect(ctx, targets[i])
				require.NoError(p, err)
				assert.True(p, r.Held())
				assert.Equal(p, r.Fence, l.Fence())
			}
			assert.Greater(p, b.Leases()[1].Fence(), first.Fence())
			require.NoError(p, b.Release(ctx))
			require.NoError(p, b.Release(ctx), "again does nothing")
			require.Eventually(p, func() bool { return b.Context().Err() != nil }, time.Minute, time.Millisecond)
			require.ErrorIs(p, context.Cause(b.Context()), lock.ErrReleased)
		}
	})
}

// While AcquireAll waits for others, it holds the locks for which it is first.
func TestAcquireAll_HoldsTheLocksItIsFirstFor(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(lock.Config{})
			other := c
			if elsewhere {
				other = w.client(lock.Config{})
			}
			targets := names(3)
			first, err := other.Acquire(ctx, targets[0])
			require.NoError(t, err)
			last, err := other.Acquire(ctx, targets[2], lock.Fixed(time.Hour))
			require.NoError(t, err)
			time.AfterFunc(time.Minute, func() { assert.NoError(t, first.Release(ctx)) })
			time.AfterFunc(90*time.Second, func() {
				_, err := other.TryAcquire(ctx, targets[0])
				assert.ErrorIs(t, err, lock.ErrHeld)
			})
			time.AfterFunc(2*time.Minute, func() { assert.NoError(t, last.Release(ctx)) })
			start := time.Now()
			counts := map[string]int{}
			var b *lock.Bundle
			for _, op := range w.requests(func() { b, err = c.AcquireAll(ctx, targets) }) {
				counts[op]++
			}
			require.NoError(t, err)
			waited := time.Since(start)
			t.Logf("another process: %v; waited %v, %v", elsewhere, waited, counts)
			assert.GreaterOrEqual(t, waited, 2*time.Minute)
			assert.Less(t, waited, 2*time.Minute+2*time.Second)
			assert.Equal(t, 1, counts["TransactWriteItems"])
			assert.LessOrEqual(t, counts["BatchGetItem"], 300, "no more than the room polls: 248 on average")
			require.NoError(t, b.Release(ctx))
			w.free(ctx, targets)
		})
	}
}

// An AcquireAll that loses one of its places enters all lines again. If it entered that line alone, it would wait for
// callers that came later, and that wait for it in another line.
func TestAcquireAll_BeginsAgainWhenItLosesAPlace(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		targets := names(2)
		last, err := w.client(quiet).Acquire(ctx, targets[1])
		require.NoError(t, err)
		waiting, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		var all sync.WaitGroup
		for _, c := range w.clients(2) {
			all.Go(func() {
				b, err := c.AcquireAll(waiting, targets)
				if assert.NoError(t, err) {
					assert.NoError(t, b.Write(ctx, w.count("n")))
					assert.NoError(t, b.Release(ctx))
				}
			})
			time.Sleep(time.Second)
		}
		w.force(ctx, w.client(quiet), targets[0])
		time.Sleep(time.Minute)
		require.NoError(t, last.Release(ctx))
		start := time.Now()
		all.Wait()
		assert.Less(t, time.Since(start), 5*time.Second)
		assert.Equal(t, int64(2), w.counted("n"))
	})
}

func TestAcquireAll_EndsWithItsContext(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		_, err := w.client(lock.Config{Owner: "other"}).Acquire(ctx, lock.Name("n01"))
		require.NoError(t, err)
		short, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		start := time.Now()
		_, err = c.AcquireAll(short, names(3))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var all *lock.HeldAllError
		require.ErrorAs(t, err, &all)
		require.Len(t, all.Held, 1)
		assert.Equal(t, "other", all.Held[0].Owner)
		assert.Equal(t, 10*time.Second, time.Since(start))
		w.requests(func() { time.Sleep(10 * time.Minute) })
		for _, r := range w.engine.Requests() {
			assert.NotEqual(t, "BatchGetItem", r.Operation, "nobody waits any more")
		}
		_, err = c.AcquireAll(short, names(3))
		require.ErrorIs(t, err, context.DeadlineExceeded)

		closed := make(chan error)
		time.AfterFunc(time.Second, func() { closed <- c.Close(ctx) })
		_, err = c.AcquireAll(ctx, names(3))
		require.ErrorIs(t, err, lock.ErrClosed)
		require.NoError(t, <-closed)

		stops := w.client(lock.Config{Backoff: func() backoff.BackOff { return &backoff.StopBackOff{} }})
		_, err = stops.AcquireAll(ctx, names(3))
		require.ErrorAs(t, err, &all)
	})
}

func TestAcquireAll_LeavesOtherRowsAlone(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		targets := names(3)
		b, err := c.AcquireAll(ctx, targets)
		require.NoError(t, err)
		key := b.Leases()[1].Key()
		require.NoError(t, b.Release(ctx))
		before := w.table.KeyItem(key)
		require.NoError(t, w.table.Write(ctx, table.Put(before)))
		ops := w.requests(func() { _, err = c.AcquireAll(ctx, targets) })
		require.ErrorIs(t, err, lock.ErrNotLock)
		assert.Len(t, ops, 1)
		after, err := w.table.Get(ctx, key, true)
		require.NoError(t, err)
		assert.Equal(t, before, after)
	})
}

// A row of the application at the key of a lock ends AcquireAll, as it ends Acquire.
func TestAcquireAll_RefusesARowOfTheApplication(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(quiet)
				item := w.table.KeyItem(keys.NewKey("LOCK#n01", "LOCK#n01"))
				require.NoError(t, w.table.Write(ctx, table.Put(item)))
				for how, take := range takers(c, opts...) {
					waiting, cancel := context.WithTimeout(ctx, time.Hour)
					start := time.Now()
					ops := w.requests(func() {
						_, err := take(waiting)
						assert.ErrorIs(t, err, lock.ErrNotLock, how)
					})
					cancel()
					assert.Less(t, time.Since(start), 5*time.Second, how)
					assert.LessOrEqual(t, len(ops), 4, how)
					time.Sleep(10 * time.Second)
					w.free(ctx, names(1))
					got, err := w.table.Get(ctx, keys.NewKey("LOCK#n01", "LOCK#n01"), true)
					require.NoError(t, err)
					assert.Equal(t, item, got, how)
				}
			})
		})
	}
}

// An AcquireAll that waits for one lock keeps the others, also those that were free at once.
func TestAcquireAll_KeepsFixedLocksWhileItWaits(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		both := names(2)
		held, err := w.client(quiet).Acquire(ctx, both[1])
		require.NoError(t, err)
		got := make(chan *lock.Bundle, 1)
		c := w.client(quiet)
		go func() {
			b, err := c.AcquireAll(ctx, both, lock.Fixed(6*time.Second))
			assert.NoError(t, err)
			got <- b
		}()
		time.Sleep(time.Second)
		other := w.client(quiet)
		for range 60 {
			time.Sleep(time.Second)
			_, err := other.TryAcquire(ctx, both[0])
			require.ErrorIs(t, err, lock.ErrHeld)
		}
		require.NoError(t, held.Release(ctx))
		b := <-got
		assert.GreaterOrEqual(t, b.Leases()[0].Remaining(), 5*time.Second)
		require.NoError(t, b.Release(ctx))
	})
}

// Each TryAcquireAll costs one transaction. Once a lease it asks whether the holders are alive, and it marks a dead one once.
func TestTryAcquireAll_Cost(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		all := names(3)
		held, err := w.clientOver(way, quiet).AcquireAll(ctx, all)
		require.NoError(t, err)
		c := w.client(quiet)
		time.Sleep(10 * time.Minute)
		assert.LessOrEqual(t, times("UpdateItem", w.requests(func() {
			for range 40 {
				_, err := c.TryAcquireAll(ctx, all)
				require.ErrorIs(t, err, lock.ErrHeld)
				time.Sleep(100 * time.Millisecond)
			}
		})), 2+4, "whether the holder lives, and renewals")
		require.NoError(t, held.Context().Err())
		way.cut(refused)
		time.Sleep(time.Hour)
		c = w.client(quiet)
		var b *lock.Bundle
		assert.Equal(t, 1, times("UpdateItem", w.requests(func() { b, err = c.TryAcquireAll(ctx, all) })))
		require.NoError(t, err)
		require.NoError(t, b.Release(ctx))
	})
}
