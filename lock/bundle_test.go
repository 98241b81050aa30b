package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestBundle_RemainingIsThatOfTheFirstToEnd(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		b, err := c.AcquireAll(ctx, names(3), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		require.NoError(t, b.Leases()[0].Renew(ctx))
		require.NoError(t, b.Leases()[2].Renew(ctx))
		assert.Equal(t, b.Leases()[1].Remaining(), b.Remaining())
		assert.Less(t, b.Remaining(), b.Leases()[0].Remaining())
		assert.InDelta(t, 15, b.Remaining().Seconds(), 0.5)
		require.NoError(t, b.Leases()[2].Release(ctx))
		assert.Zero(t, b.Remaining())
	})
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		b, err := p.client.AcquireAll(ctx, names(3), lock.Fixed(time.Hour))
		require.NoError(p, err)
		assert.Greater(p, b.Remaining(), 50*time.Minute)
		require.NoError(p, b.Release(ctx))
		assert.Zero(p, b.Remaining())
	})
}

func TestBundle_WritesWhileAllAreHeld(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		row := func(name string) table.Op { return table.Put(p.table.KeyItem(keys.NewKey("ROW#"+name, "ROW"))) }
		exists := func(name string) bool {
			_, err := p.table.Get(ctx, keys.NewKey("ROW#"+name, "ROW"), true)
			if !errors.Is(err, table.ErrNotFound) {
				require.NoError(p, err)
			}
			return err == nil
		}
		b, err := p.client.AcquireAll(ctx, names(3))
		require.NoError(p, err)
		require.NoError(p, b.Write(ctx, row("a"), row("b")))
		require.ErrorIs(p, b.Write(ctx), lock.ErrInvalid)
		require.ErrorIs(p, b.Commit(ctx), lock.ErrInvalid)
		many := make([]table.Op, 98)
		for i := range many {
			many[i] = row(fmt.Sprint(i))
		}
		require.ErrorIs(p, b.Write(ctx, many...), lock.ErrInvalid)
		require.NoError(p, b.Write(ctx, many[:97]...))
		taken := row("a").If(table.Attr("pk").NotExists())
		var failed *table.ConditionError
		require.ErrorAs(p, b.Write(ctx, row("c"), taken), &failed)
		assert.Equal(p, 1, failed.Index)
		require.ErrorAs(p, b.Commit(ctx, row("c"), taken), &failed)
		require.NoError(p, context.Cause(b.Context()), "a caller's condition loses nothing")
		require.NoError(p, b.Commit(ctx, row("d")))
		assert.True(p, exists("d"))
		assert.False(p, exists("c"))
		require.ErrorIs(p, b.Write(ctx, row("e")), lock.ErrReleased)
		cost := totals(ctx, func(ctx context.Context) { require.NoError(p, b.Release(ctx)) })
		assert.Zero(p, cost.Requests)

		// One lost lease is enough.
		b, err = p.client.AcquireAll(ctx, names(3))
		require.NoError(p, err)
		stolen := b.Leases()[1]
		require.NoError(p, p.table.Write(ctx, table.Delete(stolen.Key())))
		require.ErrorIs(p, b.Commit(ctx, row("f")), lock.ErrLost)
		assert.False(p, exists("f"))
		<-b.Context().Done()
		require.ErrorIs(p, context.Cause(b.Context()), lock.ErrStolen)
		require.NoError(p, context.Cause(b.Leases()[0].Context()))
		require.ErrorIs(p, b.Release(ctx), lock.ErrLost, "and the others are released")
		for _, i := range []int{0, 2} {
			r, err := p.client.Inspect(ctx, names(3)[i])
			require.NoError(p, err)
			assert.False(p, r.Held())
		}
	})
}

// The leases of AcquireAll count from before its transaction was sent, however long it took to read their fences.
func TestBundle_LeasesCountFromTheRequest(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		for _, operation := range []string{"TransactWriteItems", "BatchGetItem"} {
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 2 * time.Second, Operation: operation})
		}
		b, err := c.AcquireAll(ctx, names(3), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		for _, l := range b.Leases() {
			assert.LessOrEqual(t, l.Remaining(), 16*time.Second)
		}
	})
}

// Each of the locks is guarded, whichever of them was lost.
func TestBundle_WritesNothingWithoutOneOfItsLocks(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, operator := w.client(lock.Config{}), w.client(lock.Config{})
		for i, target := range names(3) {
			b, err := c.AcquireAll(ctx, names(3))
			require.NoError(t, err)
			w.force(ctx, operator, target)
			require.ErrorIs(t, b.Write(ctx, w.count("n")), lock.ErrLost, "without lock %d", i)
			require.ErrorIs(t, b.Release(ctx), lock.ErrLost)
		}
		assert.Zero(t, w.counted("n"))
	})
}

// The context of AcquireAll bounds only the waiting. The locks are held on, also if there is only one.
func TestBundle_OutlivesTheContextOfAcquireAll(t *testing.T) {
	for n := 1; n <= 2; n++ {
		virtual(t, func(ctx context.Context, w *world) {
			bounded, cancel := context.WithTimeout(ctx, time.Minute)
			b, err := w.client(lock.Config{}).AcquireAll(bounded, names(n))
			require.NoError(t, err)
			cancel()
			require.NoError(t, b.Context().Err(), "%d locks", n)
			require.NoError(t, b.Write(ctx, w.put("x")))
			require.NoError(t, b.Release(ctx))
			require.Error(t, b.Context().Err())
		})
	}
}

// Leases returns a copy. Changing it does not change what guards the bundle's writes.
func TestBundle_LeasesAreACopy(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		b, err := w.client(lock.Config{}).AcquireAll(ctx, names(2))
		require.NoError(t, err)
		first := b.Leases()[0]
		b.Leases()[0] = b.Leases()[1]
		require.Same(t, first, b.Leases()[0])
		require.NoError(t, b.Write(ctx, w.put("x")))
		require.NoError(t, b.Release(ctx))
	})
}

// A call that is deferred before the error of AcquireAll is checked does not panic.
func TestBundle_ThatWasNotAcquiredIsRefused(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		for _, b := range []*lock.Bundle{nil, {}} {
			for name, err := range map[string]error{
				"lock: write": b.Write(ctx, w.put("x")), "lock: commit": b.Commit(ctx, w.put("x")), "lock: release": b.Release(ctx),
			} {
				assert.EqualError(t, err, name+": invalid request: locks that were not acquired")
				assert.ErrorIs(t, err, lock.ErrInvalid)
			}
		}
	})
}

// Clients with many goroutines move money between accounts, each under the locks of all accounts that it touches, in random
// order. Meanwhile others take single locks, and some requests fail.
func TestBundle_TransfersUnderSeveralLocks(t *testing.T) {
	const accounts, workers, each = 8, 6, 100
	moves := testkit.IfSmall(4, 12)
	virtual(t, func(ctx context.Context, w *world) {
		account := func(i int) keys.Key { return w.row(fmt.Sprint("account", i)) }
		for i := range accounts {
			require.NoError(t, w.table.Write(ctx, table.Update(account(i), table.Attr("n").Set(each))))
		}
		read := func(i int) int64 {
			item, err := w.table.Get(ctx, account(i), true)
			require.NoError(t, err)
			return number(t, item["n"])
		}
		w.engine.Inject(
			tabletest.Fault{Kind: tabletest.DropReply, Probability: 0.02, Seed: 1},
			tabletest.Fault{Kind: tabletest.DropRequest, Probability: 0.02, Seed: 2},
			tabletest.Fault{Kind: tabletest.TransactionConflict, Probability: 0.05, Seed: 3},
		)
		var all sync.WaitGroup
		start := time.Now()
		for p := range 3 {
			c := w.client(lock.Config{})
			for n := range workers {
				rnd := rand.New(rand.NewPCG(uint64(p), uint64(n)))
				all.Go(func() {
					for range moves {
						touched := rnd.Perm(accounts)[:2+rnd.IntN(2)]
						var targets []lock.Target
						for _, i := range touched {
							targets = append(targets, lock.Beside(account(i)))
						}
						b, err := c.AcquireAll(ctx, targets)
						if !assert.NoError(t, err) {
							return
						}
						// The sums that were read under the locks are written: a second holder would show.
						var ops []table.Op
						gives := int64(len(touched) - 1)
						for k, i := range touched {
							by := int64(1)
							if k == 0 {
								by = -gives
							}
							ops = append(ops, table.Update(account(i), table.Attr("n").Set(read(i)+by)))
						}
						time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
						if rnd.IntN(2) == 0 {
							assert.NoError(t, b.Commit(ctx, ops...))
							continue
						}
						assert.NoError(t, b.Write(ctx, ops...))
						assert.NoError(t, b.Release(ctx))
					}
				})
			}
			all.Go(func() { // a single acquirer in between
				for i := range moves {
					l, err := c.Acquire(ctx, lock.Beside(account(i%accounts)))
					if assert.NoError(t, err) {
						time.Sleep(50 * time.Millisecond)
						assert.NoError(t, l.Release(ctx))
					}
				}
			})
		}
		all.Wait()
		w.engine.ClearFaults()
		var sum int64
		var targets []lock.Target
		for i := range accounts {
			sum += read(i)
			targets = append(targets, lock.Beside(account(i)))
		}
		t.Logf("%d transfers in %v of virtual time, %d requests", 3*workers*moves, time.Since(start).Round(time.Millisecond), len(w.engine.Requests()))
		assert.EqualValues(t, accounts*each, sum)
		time.Sleep(time.Minute)
		w.free(ctx, targets)
	})
}

func TestBundle_ContextEndsWithTheFirstLease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		for range 100 {
			b, err := c.AcquireAll(ctx, []lock.Target{lock.Name("a"), lock.Name("b")})
			require.NoError(t, err)
			require.NoError(t, b.Context().Err())
			require.NoError(t, b.Leases()[1].Release(ctx))
			require.ErrorIs(t, context.Cause(b.Context()), lock.ErrReleased)
			require.ErrorIs(t, b.Context().Err(), context.Canceled)
			require.NoError(t, b.Release(ctx))
		}
	})
}

// WithData of AcquireAll is the payload of each lock.
func TestWithData_OfABundleIsThatOfEachLock(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		have := func(b *lock.Bundle, want ...string) {
			p.Helper()
			for i, l := range b.Leases() {
				if want[i] == "" {
					assert.True(p, l.Data().IsZero())
					assert.NotContains(p, p.raw(l), "data")
					continue
				}
				assert.Equal(p, want[i], decoded(p.T, l.Data()))
				assert.Equal(p, text(want[i]), p.raw(l)["data"])
			}
		}
		targets, put := names(3), table.Put(p.table.KeyItem(keys.NewKey("ROW", "1")))
		b, err := p.client.AcquireAll(ctx, targets, lock.WithData("a"))
		require.NoError(p, err)
		have(b, "a", "a", "a")
		_, err = p.open(lock.Config{}).TryAcquireAll(ctx, targets)
		var all *lock.HeldAllError
		require.ErrorAs(p, err, &all)
		require.Len(p, all.Held, 3)
		for _, held := range all.Held {
			assert.Equal(p, "a", decoded(p.T, held.Data))
		}
		require.NoError(p, b.Leases()[1].SetData(ctx, "b"))
		require.NoError(p, b.Commit(ctx, put))
		b, err = p.client.AcquireAll(ctx, targets)
		require.NoError(p, err)
		have(b, "a", "b", "a")
		// Passed to a waiter that sets no payload.
		waiter := make(chan *lock.Lease)
		go func() {
			l, err := p.client.Acquire(ctx, targets[1])
			assert.NoError(p, err)
			waiter <- l
		}()
		require.Eventually(p, func() bool {
			r, err := p.client.Inspect(ctx, targets[1])
			return err == nil && r.Waiting() == 1
		}, 10*time.Second, time.Millisecond)
		require.NoError(p, b.Commit(ctx, put))
		next := <-waiter
		require.NotNil(p, next)
		assert.Equal(p, "b", decoded(p.T, next.Data()))
		require.NoError(p, next.Release(ctx))
		b, err = p.client.TryAcquireAll(ctx, targets, lock.WithData(nil))
		require.NoError(p, err)
		have(b, "", "", "")
		require.NoError(p, b.Release(ctx))
		cost := totals(ctx, func(ctx context.Context) {
			_, err = p.client.AcquireAll(ctx, targets, lock.WithData(strings.Repeat("x", lock.MaxData+1)))
			require.ErrorIs(p, err, lock.ErrInvalid)
		})
		assert.Zero(p, cost.Requests)
	})
}
