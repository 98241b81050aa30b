package lock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestAcquireAllCost(t *testing.T) {
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

func TestAcquireAllRefusesBadTargets(t *testing.T) {
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

func TestAcquireAllTakesAllOrNone(t *testing.T) {
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

func TestBundleWritesWhileAllAreHeld(t *testing.T) {
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

		// One of them lost is enough.
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

// While it waits for others, it holds what it is first for.
func TestAcquireAllHoldsWhatItIsFirstFor(t *testing.T) {
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

// Who loses one of several places enters all lines anew. To enter that line alone would be to wait for those who came later,
// and who wait in another line.
func TestAcquireAllThatLosesOnePlaceBeginsAnew(t *testing.T) {
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

func TestAcquireAllEndsWithItsContext(t *testing.T) {
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

func TestAcquireAllTakesOverFromTheDead(t *testing.T) {
	for _, tc := range []struct {
		expiry  lock.Expiry
		long    bool
		longest time.Duration
	}{
		{lock.RecordedOrObserved, true, 0},
		{lock.RecordedOrObserved, false, 24 * time.Second},
		{lock.ObservedOnly, true, 24 * time.Second},
		{lock.ObservedOnly, false, 24 * time.Second},
	} {
		virtual(t, func(ctx context.Context, w *world) {
			way := &line{to: w.engine.HTTPClient()}
			dead, c := w.clientOver(way, lock.Config{}), w.client(lock.Config{Expiry: tc.expiry})
			targets := names(5)
			stale, err := dead.AcquireAll(ctx, targets[:3])
			require.NoError(t, err)
			_, err = dead.Acquire(ctx, targets[4], lock.Fixed(20*time.Second))
			require.NoError(t, err)
			way.cut(hung)
			if tc.long {
				time.Sleep(time.Hour)
			}
			start := time.Now()
			var b *lock.Bundle
			ops := w.requests(func() { b, err = c.AcquireAll(ctx, targets) })
			require.NoError(t, err)
			t.Logf("expiry %v, long dead %v: waited %v, %d requests", tc.expiry, tc.long, time.Since(start), len(ops))
			assert.LessOrEqual(t, time.Since(start), tc.longest)
			way.cut(open)
			require.ErrorIs(t, stale.Write(ctx, w.put("x")), lock.ErrLost)
			require.NoError(t, b.Write(ctx, w.put("x")))
			require.NoError(t, b.Release(ctx))
		})
	}
}

func TestAcquireAllLeavesForeignRowsAlone(t *testing.T) {
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

// An attempt whose answer never came and whose caller has gone leaves nothing held.
func TestAbandonedAcquireAllIsTakenBack(t *testing.T) {
	for _, opts := range [][]lock.Option{nil, {lock.Fixed(time.Hour)}} {
		for _, operation := range []string{"TransactWriteItems", "BatchGetItem"} {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{})
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: operation})
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				_, err := c.AcquireAll(short, names(100), opts...)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				w.engine.ClearFaults()
				time.Sleep(5 * time.Second)
				w.free(ctx, names(100))
			})
		}
	}
}

// Two transactions that meet on an item are repeated, and never taken for a holder.
func TestAcquireAllGoesThroughConflicts(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		w.engine.Inject(tabletest.Fault{Kind: tabletest.TransactionConflict, Probability: 0.5, Seed: 7})
		for range 200 {
			b, err := c.TryAcquireAll(ctx, names(3))
			require.NoError(t, err)
			require.NoError(t, b.Commit(ctx, w.count("n")))
		}
		assert.EqualValues(t, 200, w.counted("n"))
	})
}

// Clients with many goroutines each move money between accounts under the locks of all that
// they touch, in random order, while others take single locks and some requests fail.
func TestTransfersUnderSeveralLocks(t *testing.T) {
	const accounts, workers, moves, each = 8, 6, 12, 100
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
						// What was read under the locks is written as it is: a second holder would show.
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

// People are told of every lock that is taken over from a holder that died, also of several at once.
func TestTakenOverTogether(t *testing.T) {
	for _, n := range []int{1, 2} {
		virtual(t, func(ctx context.Context, w *world) {
			way := &line{to: w.engine.HTTPClient()}
			dead := w.clientOver(way, quiet)
			targets := names(n)
			for _, target := range targets {
				_, err := dead.Acquire(ctx, target)
				require.NoError(t, err)
			}
			way.cut(hung)
			time.Sleep(time.Hour)
			var out bytes.Buffer
			c := w.client(lock.Config{Logger: slog.New(slog.NewTextHandler(&out, nil))})
			b, err := c.TryAcquireAll(ctx, targets)
			require.NoError(t, err)
			assert.Equal(t, n, strings.Count(out.String(), "taken over"), "of %d", n)
			require.NoError(t, b.Release(ctx))
		})
	}
}

// What several locks cost that nobody waits for any more is left to the background: the call returns soon
// after its context has ended, whatever hangs.
func TestAcquireAllEndsWhileFencesAreRead(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		targets, other := names(100), w.client(lock.Config{})
		b, err := other.AcquireAll(ctx, targets)
		require.NoError(t, err)
		require.NoError(t, b.Release(ctx))
		c := w.cold(lock.Config{HomeRegion: w.table.Region()})
		for _, operation := range []string{"BatchGetItem", "GetItem", "UpdateItem"} {
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 24 * time.Hour, Operation: operation, When: ofLocks})
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		start := time.Now()
		_, err = c.AcquireAll(short, targets, lock.Fixed(time.Minute))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Less(t, time.Since(start), 7*time.Second)
		w.engine.ClearFaults()
		time.Sleep(5 * time.Second)
		b, err = other.TryAcquireAll(ctx, targets)
		require.NoError(t, err, "they were taken back")
		require.NoError(t, b.Release(ctx))
	})
}

// The leases of several locks count from before the transaction that took them was sent,
// however long it took to learn their fences.
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

// A lock that is taken away between the transaction that took it with others and the read of
// its fence is nobody's in this process, and the others are freed.
func TestAcquireAll_ALockThatIsTakenBeforeItsFenceIsRead(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, operator := w.client(lock.Config{}), w.client(lock.Config{Owner: "operator"})
		targets := names(3)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 2 * time.Second, Operation: "BatchGetItem", Times: 1})
		time.AfterFunc(time.Second, func() {
			r, err := operator.Inspect(ctx, targets[1])
			if !assert.NoError(t, err) {
				return
			}
			assert.NoError(t, operator.ForceRelease(ctx, targets[1], r.Holder().Ticket))
			_, err = operator.TryAcquire(ctx, targets[1])
			assert.NoError(t, err)
		})
		_, err := c.TryAcquireAll(ctx, targets)
		var held *lock.HeldAllError
		require.ErrorAs(t, err, &held)
		require.Len(t, held.Held, 1)
		assert.Equal(t, "operator", held.Held[0].Owner)
		time.Sleep(5 * time.Second) // for what is taken back
		w.free(ctx, []lock.Target{targets[0], targets[2]})
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

// A transaction that takes several locks is sent under another token once it is old. It then
// meets what an earlier one has taken, and knows it.
func TestAcquireAll_RecognisesAnOldTransaction(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{}, table.WithRetry(table.Retry{Backoff: func() backoff.BackOff {
					return backoff.NewConstantBackOff(10 * time.Millisecond)
				}}))
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: time.Hour, Operation: "TransactWriteItems", Times: 3})
				start := time.Now()
				b, err := c.TryAcquireAll(ctx, names(3), opts...)
				require.NoError(t, err)
				waited := time.Since(start)
				require.Greater(t, waited, 10*time.Second, "half of a lease")
				if opts != nil {
					assert.LessOrEqual(t, b.Leases()[2].Remaining(), 20*time.Second-waited)
				}
				require.NoError(t, b.Commit(ctx, w.count("n")))
				assert.EqualValues(t, 1, w.counted("n"))
			})
		})
	}
}

// The context of AcquireAll is one of the waiting: what it got is held on, also where that is one lock.
func TestBundle_OutlivesTheContextOfItsAcquisition(t *testing.T) {
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

// Leases gives a copy: nobody changes by it what a bundle guards its writes with.
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

// Who waits for one of several keeps the others, also those that were free at once.
func TestAcquireAll_FixedLocksAreKeptWhileOthersAreWaitedFor(t *testing.T) {
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

// Each try of several locks costs one transaction; who holds them is asked once a lease whether it lives, and
// declared dead once.
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

// A holder that has proved to live is asked again a lease later, not with each look, also for who waits for several.
func TestAcquireAll_AsksHolderOncePerLease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		holder, waiter := w.client(quiet), w.client(quiet)
		both := names(2)
		l, err := holder.Acquire(ctx, both[0])
		require.NoError(t, err)
		bounded, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		w.engine.ResetRequests()
		_, err = waiter.AcquireAll(bounded, both)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.LessOrEqual(t, w.writesTo(sessionKey(holder).PK), 66+15, "renewals, and questions")
		require.NoError(t, l.Release(ctx))
	})
}
