package lock_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// writesTo counts the single writes to a partition since the log was reset.
func (w *world) writesTo(pk string) (n int) {
	for _, r := range w.requestsTo(pk) {
		if r.Operation == "UpdateItem" {
			n++
		}
	}
	return n
}

// P3: any number of locks costs one renewal per period, no goroutine each, and little memory.
func TestHoldTenThousand(t *testing.T) {
	const locks, held, period = 10_000, 10 * time.Minute, 5 * time.Second
	virtual(t, func(ctx context.Context, w *world) {
		w.latency(20 * time.Millisecond)
		wire := &line{to: w.engine.HTTPClient()}
		goroutines := runtime.NumGoroutine()
		// Not one that the test closes: its memory shows when nothing refers to it any more.
		c := w.unclosed(wire, lock.Config{Logger: slog.New(slog.DiscardHandler)})
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
		require.False(t, t.Failed())
		more := locks
		for range 5 { // at rest: a request has goroutines of its own, and so has the runtime at times
			time.Sleep(700 * time.Millisecond)
			synctest.Wait()
			more = min(more, runtime.NumGoroutine()-goroutines)
		}
		w.engine.ResetRequests()
		time.Sleep(held)
		renewals, lost := 0, 0
		for _, r := range w.engine.Requests() {
			if r.Operation != "BatchGetItem" && r.Operation != "GetItem" {
				renewals++
			}
		}
		for _, l := range leases {
			if l.Context().Err() != nil {
				lost++
			}
		}
		// The engine holds its rows, and the client ends alone: what the heap loses is the
		// client's, all of it.
		wire.cut(refused)
		w.engine.ResetRequests()
		with := heap()
		time.Sleep(time.Minute)
		require.ErrorIs(t, context.Cause(leases[0].Context()), lock.ErrExpired)
		clear(leases)
		c = nil
		without := heap()
		testkit.Check(t, fmt.Sprintf("P3, %d locks for %v", locks, held),
			testkit.Within(float64(renewals)/(held.Seconds()/period.Seconds()), "writes per period", 1, 0.15),
			testkit.Exactly(lost, "lost", 0), testkit.AtMost(more, "goroutines in all", 2),
			testkit.AtMost((float64(with)-float64(without))/locks, "bytes per lock", 1536))
		require.Greater(t, with, without+100*locks, "the leases were not in what was measured")
	})
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
		const grants = processes * waiters
		testkit.Check(t, fmt.Sprintf("P4, %d waiters in %d processes", grants, processes), testkit.AtMost(took, "", 14*time.Second),
			testkit.AtMost(float64(requests)/grants, "requests per grant", 3), testkit.Exactly(len(fences), "different fences", grants))
	})
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

// F20. Repetitions share the days.
func TestHoldThirtyDays(t *testing.T) {
	first, end := testkit.Repetition(t).Share(30)
	virtual(t, func(ctx context.Context, w *world) {
		const retention = day // the shortest
		c := w.client(lock.Config{Lease: time.Hour, Retention: retention})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		session := sessionKey(c)
		time.Sleep(retention) // so that all days are beyond it
		swept, deleted, lost := 0, 0, 0
		for day := range end - first {
			time.Sleep(24 * time.Hour)
			swept += w.engine.Sweep()
			rows, err := w.table.BatchGet(ctx, []keys.Key{l.Key(), session}, true)
			require.NoError(t, err, "day %d", day)
			for _, row := range rows {
				if row == nil {
					deleted++
				}
			}
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err, "day %d", day)
			if l.Context().Err() != nil || !r.Held() || r.Fence != l.Fence() {
				lost++
			}
		}
		testkit.Check(t, fmt.Sprintf("F20, %d days", end-first), testkit.Exactly(deleted, "rows in use deleted", 0), testkit.Exactly(lost, "days without the lock", 0),
			testkit.AtLeast(swept, "rows not in use deleted", 1))
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

// What a session could not release it tries again, a few at once, in one order whatever came first: the same run
// sends the same.
func TestOrphansAreReleasedInOneOrder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, quiet)
		var mu sync.Mutex
		var released []lock.Target
		const atOnce = 16
		targets := names(3 * atOnce)
		leases := make([]*lock.Lease, len(targets))
		for i, target := range slices.Backward(targets) {
			l, err := c.Acquire(ctx, target)
			require.NoError(t, err)
			leases[i] = l
			context.AfterFunc(l.Context(), func() {
				mu.Lock()
				defer mu.Unlock()
				released = append(released, l.Target())
			})
		}
		way.cut(refused)
		for _, l := range leases {
			short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			require.Error(t, l.Release(short))
			cancel()
		}
		way.cut(open)
		require.NoError(t, context.Cause(leases[0].Context()))
		w.latency(10 * time.Millisecond) // for those sent at once to have an instant of their own
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		for some := range slices.Chunk(released, atOnce) {
			slices.SortFunc(some, func(a, b lock.Target) int { return cmp.Compare(a.Name(), b.Name()) })
		}
		assert.Equal(t, targets, released)
	})
}

// An acquisition ends with its context while another one opens the session for both.
func TestSession_OpeningIsWaitedForUntilTheContextEnds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.coldClientOver(way, lock.Config{HomeRegion: tabletest.Region})
		way.cut(hung)
		opening, give := context.WithCancel(ctx)
		first := acquireAsync(opening, c, lock.Name("first"))
		bounded, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.Acquire(bounded, lock.Name("second"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(start))
		give()
		assert.Nil(t, <-first)
	})
}

// More of them, those of sessions and waiters first.

// Once a clock is found to be off, a session's row no longer says by it when the session ends.
func TestSession_AnEndByAWrongClockIsTakenBack(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		c, other := w.client(quiet, table.WithClock(wall.now)), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		wall.jump(-10 * time.Second)
		for range 60 {
			time.Sleep(time.Second)
			_, err = other.TryAcquire(ctx, lock.Name("report"))
			require.ErrorIs(t, err, lock.ErrHeld)
		}
		require.NoError(t, context.Cause(l.Context()))
	})
}

// A session does not end as idle while something is acquired under it.
func TestSession_IsNotIdleWhileItAcquires(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		id := lock.SessionID(c)
		time.Sleep(8 * time.Second)
		require.Equal(t, id, lock.SessionID(c))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Key: w.table.KeyItem(keys.NewKey("LOCK#report", "LOCK#report"))})
		time.AfterFunc(8*time.Second, w.engine.ClearFaults)
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		l, err := c.Acquire(bounded, lock.Name("report"))
		require.NoError(t, err)
		assert.Equal(t, id, lock.SessionID(c))
		require.NoError(t, l.Release(ctx))
	})
}

// A release that has failed once and then succeeded leaves nothing behind, and neither does a lock that was taken by
// force: the session ends.
func TestSession_SendsNothingOnceNothingIsHeld(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, w *world, way *line, l *lock.Lease){
		"released at the second try": func(ctx context.Context, w *world, way *line, l *lock.Lease) {
			way.cut(refused)
			w.releaseInVain(ctx, l)
			way.cut(open)
			require.NoError(w, l.Release(ctx))
		},
		"taken by force": func(ctx context.Context, w *world, _ *line, l *lock.Lease) {
			op := w.client(quiet)
			w.force(ctx, op, lock.Name("report"))
			<-l.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way := &line{to: w.engine.HTTPClient()}
				l, err := w.clientOver(way, quiet).Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				end(ctx, w, way, l)
				time.Sleep(time.Minute)
				assert.Empty(t, w.requests(func() { time.Sleep(time.Hour) }))
			})
		})
	}
}

// The holder's session ends under a waiter of its own process: the waiter goes on.
func TestSession_AWaiterOutlivesIt(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := acquireAsync(ctx, c, lock.Name("report"))
		require.NoError(t, w.table.Write(ctx, table.Update(sessionKey(c), table.Attr("dead").Set(1))))
		start := time.Now()
		next := <-got
		require.NotNil(t, next)
		assert.LessOrEqual(t, time.Since(start), 8*time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
		require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
		require.NoError(t, next.Write(ctx, w.put("x")))
		require.NoError(t, next.Release(ctx))
	})
}

// Many acquisitions at once share one session, and so do those that come as it ends.
func TestSession_ReopensUnderConcurrency(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.coldClient(lock.Config{Lease: time.Second})
		for round := range 60 {
			var wait sync.WaitGroup
			for i := range 10 {
				wait.Go(func() {
					time.Sleep(time.Duration(i) * 30 * time.Millisecond)
					l, err := c.Acquire(ctx, lock.Name(fmt.Sprint(i%4)))
					if assert.NoError(t, err) {
						assert.NoError(t, l.Write(ctx, w.count("n")))
						assert.NoError(t, l.Release(ctx))
					}
				})
			}
			wait.Wait()
			time.Sleep(time.Second + time.Duration(round)*10*time.Millisecond)
		}
		assert.EqualValues(t, 600, w.counted("n"))
	})
}
