package lock_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// The context of a lease has the values of the caller's context, such as traces.
func TestLease_ContextHasTheCallersValues(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		type key struct{}
		ctx = context.WithValue(ctx, key{}, "trace")
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Equal(t, "trace", l.Context().Value(key{}))
		require.NoError(t, l.Release(ctx))
	})
}

// The margin is at most half of a lease, however short the lease is.
func TestLease_IsLongerThanItsMargin(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Margin: 2 * time.Second})
		l, err := c.TryAcquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
		require.NoError(t, err)
		assert.Equal(t, 500*time.Millisecond, l.Remaining())
		require.NoError(t, l.Release(ctx))
	})
}

// A lost lease that the application does not refer to any more is not kept by the client, also if Release was never called.
func TestLease_LostOneIsNotKept(t *testing.T) {
	const n = 100
	for name, tc := range map[string]struct {
		opts []lock.Option
		lose func(ctx context.Context, w *world, l *lock.Lease)
	}{
		"in an outage": {},
		"Fixed":        {opts: []lock.Option{lock.Fixed(time.Second)}},
		"taken by force": {lose: func(ctx context.Context, w *world, l *lock.Lease) {
			w.force(ctx, w.client(quiet), lock.Name(l.Key().PK[len("LOCK#"):]))
			require.ErrorIs(w, l.Write(ctx, w.put("x")), lock.ErrLost)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way := &line{to: w.engine.HTTPClient()}
				c := w.clientOver(way, quiet)
				acquire := func() (list []weak.Pointer[lock.Lease]) {
					for _, target := range names(n) {
						l, err := c.Acquire(ctx, target, tc.opts...)
						require.NoError(t, err)
						if list = append(list, weak.Make(l)); tc.lose != nil {
							tc.lose(ctx, w, l)
						}
					}
					return list
				}
				list := acquire()
				kept := func() (n int) {
					heap()
					for _, p := range list {
						if p.Value() != nil {
							n++
						}
					}
					return n
				}
				if tc.lose == nil {
					require.Positive(t, kept(), "they are held")
				}
				way.cut(refused)
				time.Sleep(time.Minute)
				way.cut(open)
				time.Sleep(time.Minute)
				l, err := c.Acquire(ctx, lock.Name("another")) // it goes on under another session
				require.NoError(t, err)
				assert.LessOrEqual(t, kept(), 1) // the last one may still be in a register
				require.NoError(t, l.Release(ctx))
				runtime.KeepAlive(c)
			})
		})
	}
}

// The cause of the end of a lease, by how it ended.
func TestLease_LossIsToldAtTheNextRenewal(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		told := make(chan error, 1)
		c := w.client(lock.Config{OnLost: func(_ *lock.Lease, cause error) { told <- cause }})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		start := time.Now()
		gone := sessionKey(c)
		require.NoError(t, w.table.Write(ctx, table.Delete(gone)))
		<-l.Context().Done()
		assert.LessOrEqual(t, time.Since(start), 6*time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
		require.ErrorIs(t, <-told, lock.ErrLost)
		_, err = w.table.Get(ctx, gone, true)
		require.ErrorIs(t, err, table.ErrNotFound, "a renewal must not make a row")

		// If a row is deleted under a live session, the next call that uses it finds out. A Fixed lease finds out with its
		// renewal.
		under, err := c.Acquire(ctx, lock.Name("under"))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Delete(under.Key())))
		require.ErrorIs(t, under.Write(ctx, w.put("x")), lock.ErrLost)
		require.ErrorIs(t, context.Cause(under.Context()), lock.ErrStolen)
		require.ErrorIs(t, <-told, lock.ErrLost)
		fixed, err := c.Acquire(ctx, lock.Name("fixed"), lock.Fixed(time.Minute))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Delete(fixed.Key())))
		require.ErrorIs(t, fixed.Renew(ctx), lock.ErrStolen)
		require.ErrorIs(t, context.Cause(fixed.Context()), lock.ErrStolen)
		require.ErrorIs(t, <-told, lock.ErrLost)
		_, err = c.Inspect(ctx, lock.Name("fixed"))
		require.ErrorIs(t, err, table.ErrNotFound, "a renewal must not make a row")
	})
}

// Write, Renew, Commit, Release and Close run concurrently under faults. Each write that was acknowledged counts once.
func TestLease_EveryCallAtOnce(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		for round := range 30 {
			c := w.client(lock.Config{})
			w.engine.ClearFaults()
			w.engine.Inject(
				tabletest.Fault{Kind: tabletest.Delay, For: 3 * time.Millisecond, Probability: 0.5, Seed: uint64(round)},
				tabletest.Fault{Kind: tabletest.DropReply, Probability: 0.1, Seed: uint64(round)},
				tabletest.Fault{Kind: tabletest.TransactionConflict, Probability: 0.2, Seed: uint64(round)},
			)
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			name := fmt.Sprint("n", round)
			var group sync.WaitGroup
			var mu sync.Mutex
			applied := 0
			count := func(err error) {
				if err == nil {
					mu.Lock()
					applied++
					mu.Unlock()
					return
				}
				assert.ErrorIs(t, err, lock.ErrReleased)
			}
			for i := range 5 {
				group.Go(func() { count(l.Write(ctx, w.count(name))) })
				group.Go(func() { _ = l.Renew(ctx) })
				group.Go(func() { time.Sleep(time.Duration(i*7) * time.Millisecond); count(l.Commit(ctx, w.count(name))) })
				group.Go(func() { time.Sleep(time.Duration(i*11) * time.Millisecond); assert.NoError(t, l.Release(ctx)) })
				group.Go(func() { time.Sleep(time.Duration(i*13) * time.Millisecond); assert.NoError(t, c.Close(ctx)) })
			}
			group.Wait()
			w.engine.ClearFaults()
			assert.EqualValues(t, applied, w.counted(name))
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrReleased)
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.False(t, r.Held())
		}
	})
}

// A lock is taken by force while its payload is written. The lease that its caller gets is held, or OnLost is called.
func TestOnLost_IsCalledForALeaseThatWasLostAtOnce(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		told := make(chan error, 1)
		config := quiet
		config.Lease, config.OnLost = 4*time.Second, func(_ *lock.Lease, err error) { told <- err }
		c := w.client(config)
		op := w.client(quiet)
		o, err := op.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := acquireAsync(ctx, c, lock.Name("report"), lock.WithData("x"))
		time.Sleep(3 * time.Second)
		sent := 0
		w.engine.Inject(tabletest.Fault{
			Kind: tabletest.Delay, Operation: "UpdateItem", Key: w.table.KeyItem(o.Key()), After: true, For: 1300 * time.Millisecond,
			When: func(tabletest.Request) bool { sent++; return sent == 2 }, // the payload
		})
		require.NoError(t, o.Release(ctx))
		for r := (lock.Record{}); r.Data.IsZero(); time.Sleep(time.Millisecond) {
			r, err = op.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
		}
		w.force(ctx, op, lock.Name("report"))
		l := <-got
		require.NotNil(t, l)
		time.Sleep(10 * time.Second)
		if context.Cause(l.Context()) != nil {
			assert.Len(t, told, 1)
			return
		}
		assert.Empty(t, told)
		require.NoError(t, l.Write(ctx, w.put("x")))
	})
}

// A deferred Release may run before the error of Acquire was looked at.
func TestLease_ThatWasNotAcquiredIsInvalid(t *testing.T) {
	ctx := t.Context()
	op := table.Put(table.Item{})
	for name, l := range map[string]*lock.Lease{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, l.Release(ctx), lock.ErrInvalid)
			require.ErrorIs(t, l.Renew(ctx), lock.ErrInvalid)
			require.ErrorIs(t, l.Write(ctx, op), lock.ErrInvalid)
			require.ErrorIs(t, l.Commit(ctx, op), lock.ErrInvalid)
			require.ErrorIs(t, l.SetData(ctx, "x"), lock.ErrInvalid)
		})
	}
}
