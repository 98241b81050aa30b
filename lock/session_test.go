package lock_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// latency makes every request take as long as one over a network.
func (w *world) latency(d time.Duration) {
	w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: d})
}

// sessionKey is the key of a client's session row.
func sessionKey(c *lock.Client) keys.Key {
	id := lock.SessionID(c)
	return keys.NewKey("SESSION#"+id, "SESSION#"+id)
}

// writesTo counts the single writes to a row since the log was reset.
func (w *world) writesTo(pk string) (n int) {
	for _, r := range w.engine.Requests() {
		for _, k := range r.Keys {
			if v, ok := k.Attrs["pk"].(*types.AttributeValueMemberS); ok && v.Value == pk && r.Operation == "UpdateItem" {
				n++
			}
		}
	}
	return n
}

// writes counts the writes among the requests since the log was reset.
func (w *world) writes() (n int) {
	for _, r := range w.engine.Requests() {
		switch r.Operation {
		case "UpdateItem", "PutItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem":
			n++
		}
	}
	return n
}

// P3: any number of locks costs one renewal per period.
func TestHoldTenThousand(t *testing.T) {
	const locks, held = 10_000, 10 * time.Minute
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		w.latency(20 * time.Millisecond)
		goroutines, before := runtime.NumGoroutine(), heap()
		leases := make([]*lock.Lease, locks)
		slots := make(chan struct{}, 64)
		var wait sync.WaitGroup
		for i := range leases {
			slots <- struct{}{}
			wait.Go(func() {
				defer func() { <-slots }()
				l, err := c.Acquire(ctx, lock.Name(fmt.Sprintf("job-%d", i)))
				if assert.NoError(t, err) {
					leases[i] = l
				}
			})
		}
		wait.Wait()
		more := runtime.NumGoroutine() - goroutines
		w.engine.ResetRequests()
		start := time.Now()
		time.Sleep(held)
		periods := time.Since(start).Seconds() / 5
		renewals, lost := w.writes(), 0
		for _, l := range leases {
			if l.Context().Err() != nil {
				lost++
			}
		}
		t.Logf("P3 %d locks held for %v: %.2f writes per period (goal 1), %d lost (goal 0), %d goroutines more (goal 0)",
			locks, held, float64(renewals)/periods, lost, more)
		assert.InDelta(t, 1, float64(renewals)/periods, 0.15)
		assert.Zero(t, lost)
		assert.Less(t, more, 4)
		w.engine.ResetRequests()
		w.engine.ClearFaults()
		runtime.GC()
		_ = before
		require.NoError(t, c.Close(ctx))
	})
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// P4: waiters of one process are served one after the other, with one write each.
func TestHerd(t *testing.T) {
	const processes, waiters, hold = 10, 20, 50 * time.Millisecond
	virtual(t, func(ctx context.Context, w *world) {
		clients := make([]*lock.Client, processes)
		for i := range clients {
			clients[i] = w.client(lock.Config{})
		}
		w.latency(2 * time.Millisecond)
		w.engine.ResetRequests()
		start := time.Now()
		var wait sync.WaitGroup
		var mu sync.Mutex
		fences := map[int64]bool{}
		for _, c := range clients {
			for range waiters {
				wait.Go(func() {
					l, err := c.Acquire(ctx, lock.Name("herd"))
					if !assert.NoError(t, err) {
						return
					}
					time.Sleep(hold)
					mu.Lock()
					assert.False(t, fences[l.Fence()], "fence given twice")
					fences[l.Fence()] = true
					mu.Unlock()
					assert.NoError(t, l.Release(ctx))
				})
			}
		}
		wait.Wait()
		took, requests := time.Since(start), len(w.engine.Requests())
		grants := processes * waiters
		ops := map[string]int{}
		for _, r := range w.engine.Requests() {
			ops[r.Operation+" "+r.Code]++
		}
		t.Log(ops, w.writesTo("LOCK#herd"))
		t.Logf("P4 %d waiters in %d processes: %v (goal at most 14s, ideal 10s), %.2f requests per grant (goal at most 3)",
			grants, processes, took.Round(10*time.Millisecond), float64(requests)/float64(grants))
		assert.Len(t, fences, grants)
		assert.LessOrEqual(t, took, 14*time.Second)
		assert.LessOrEqual(t, float64(requests)/float64(grants), 3.0)
	})
}

// P5, under a session.
func TestTakeoverOfALongDeadSession(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wire := &line{to: w.engine.HTTPClient()}
		_, err := w.clientOver(wire, lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		wire.cut(refused)
		time.Sleep(time.Hour)
		c := w.client(lock.Config{})
		start := time.Now()
		ops := w.requests(func() { _, err = c.TryAcquire(ctx, lock.Name("report")) })
		require.NoError(t, err)
		t.Logf("P5 takeover of a long dead session: %d requests (goal at most 3), waited %v", len(ops), time.Since(start))
		assert.LessOrEqual(t, len(ops), 3)
		assert.Zero(t, time.Since(start))
	})
}

// P6, under a session.
func TestTakeoverOfAFreshlyCrashedSession(t *testing.T) {
	for _, expiry := range []lock.Expiry{lock.RecordedOrObserved, lock.ObservedOnly} {
		virtual(t, func(ctx context.Context, w *world) {
			wire := &line{to: w.engine.HTTPClient()}
			dead, c := w.clientOver(wire, lock.Config{}), w.client(lock.Config{Expiry: expiry})
			l, err := dead.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			wire.cut(refused)
			start := time.Now()
			next, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			t.Logf("P6 takeover of a crashed session, lease 20s, expiry %v: %v", expiry, time.Since(start).Round(time.Millisecond))
			assert.LessOrEqual(t, time.Since(start), 23*time.Second)
			assert.Greater(t, next.Fence(), l.Fence())
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
			wire.cut(open)
			require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
		})
	}
}

// A session that was declared dead takes its leases with it at its next renewal.
func TestDeadSessionEndsItsLeases(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		id := lock.SessionID(c)
		require.NoError(t, w.table.Write(ctx, table.Update(sessionKey(c), table.Attr("dead").Set(1))))
		start := time.Now()
		<-l.Context().Done()
		assert.LessOrEqual(t, time.Since(start), 6*time.Second, "told with the next renewal")
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
		// The next acquisition opens another session, and the old lease stays lost.
		next, err := c.Acquire(ctx, lock.Name("other"))
		require.NoError(t, err)
		require.NotEqual(t, id, lock.SessionID(c))
		require.ErrorIs(t, l.Renew(ctx), lock.ErrLost)
		require.NoError(t, next.Release(ctx))
		require.NoError(t, l.Release(ctx), "the row still named it")
	})
}

// A process that holds no lock sends nothing.
func TestIdleSessionEnds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		time.Sleep(time.Minute)
		ops := w.requests(func() { time.Sleep(24 * time.Hour) })
		assert.Empty(t, ops)
		_, err := w.table.Get(ctx, keys.NewKey("SESSION#"+lock.SessionID(c), "SESSION#"+lock.SessionID(c)), true)
		require.Error(t, err)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
	})
}

// F20.
func TestHoldThirtyDays(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Lease: time.Hour})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		for day := range 30 {
			time.Sleep(24 * time.Hour)
			w.engine.Sweep()
			require.NoError(t, l.Context().Err(), "day %d", day)
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err, "day %d", day)
			require.Equal(t, l.Fence(), r.Fence)
			require.True(t, r.Held())
		}
		t.Logf("F20 held for 30 days with deletions: row never deleted, lock never lost")
		require.NoError(t, l.Release(ctx))
	})
}

// Waiters of one process are served in the order in which they came.
func TestWaitersAreServedInOrder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		first, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		var mu sync.Mutex
		var order []int
		var wait sync.WaitGroup
		for i := range 40 {
			wait.Go(func() {
				l, err := c.Acquire(ctx, lock.Name("report"))
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				assert.NoError(t, l.Release(ctx))
			})
			time.Sleep(time.Millisecond)
		}
		w.engine.ResetRequests()
		require.NoError(t, first.Release(ctx))
		wait.Wait()
		want := make([]int, 40)
		for i := range want {
			want[i] = i
		}
		assert.Equal(t, want, order)
		t.Logf("40 grants in one process: %d requests", len(w.engine.Requests()))
	})
}

// A waiter that leaves just as it is handed the lock does not keep it.
func TestHandedOverToOneWhoLeaves(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		w.latency(10 * time.Millisecond)
		for range 50 {
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			bounded, cancel := context.WithTimeout(ctx, time.Second)
			var wait sync.WaitGroup
			wait.Go(func() {
				if l, err := c.Acquire(bounded, lock.Name("report")); err == nil {
					assert.NoError(t, l.Release(ctx))
				}
			})
			time.Sleep(time.Second - 5*time.Millisecond)
			require.NoError(t, l.Release(ctx))
			wait.Wait()
			cancel()
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.False(t, r.Held())
		}
	})
}

// Nothing looks at anything when nobody waits.
func TestNobodyWaitsNobodyPolls(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := a.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		_, err = b.Acquire(bounded, lock.Name("report"))
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var held *lock.HeldError
		require.ErrorAs(t, err, &held)
		require.NoError(t, l.Release(ctx))
		time.Sleep(time.Minute)
		assert.Empty(t, w.requests(func() { time.Sleep(time.Hour) }))
	})
}
