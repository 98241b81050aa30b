package lock_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// How long contenders keep a lock, and how long a turn may take with the grant.
const (
	keepFor = 50 * time.Millisecond
	perTurn = keepFor + 10*time.Millisecond
)

// always takes the same lock each time.
func always(name string) func() lock.Target {
	return func() lock.Target { return lock.Name(name) }
}

// P13: processes that acquire one lock again and again, without pause, get it in turn.
func TestFairAcrossProcesses(t *testing.T) {
	const during, handoffs = 60 * time.Second, 16
	for _, tc := range []struct {
		processes, goroutines int
		fair, busy            float64
		patience              time.Duration
	}{
		{4, 1, 0.99, 0.85, 4 * perTurn * 13 / 10},
		{20, 1, 0.99, 0.85, 20 * perTurn * 13 / 10},
		{100, 1, 0.99, 0.85, 100 * perTurn * 13 / 10},
		{4, 10, 0.95, 0, 2 * 4 * (1 + handoffs) * perTurn}, // two rounds; no goal for how busy it is
	}[testkit.IfSmall(3, 0):] {
		name := fmt.Sprintf("%d processes of %d", tc.processes, tc.goroutines)
		t.Run(name, func(t *testing.T) {
			virtual(t, func(_ context.Context, w *world) {
				var list []*contender
				for _, c := range w.clients(tc.processes) {
					for range tc.goroutines {
						list = append(list, one(c, always("report")))
					}
				}
				w.latency(2 * time.Millisecond)
				held := w.contend(keepFor, during, list...)
				grants := make([]int, tc.processes)
				for i, c := range list {
					grants[i/tc.goroutines] += len(c.served)
				}
				t.Logf("grants of the least and the most served process: %d, %d", slices.Min(grants), slices.Max(grants))
				testkit.Check(t, "P13, "+name,
					testkit.AtLeast(jain(grants), "Jain's index", tc.fair),
					testkit.AtMost(longest(list), " longest wait", tc.patience),
					testkit.AtLeast(held.Seconds()/during.Seconds(), "of the time held", tc.busy))
			})
		})
	}
}

// P14: the cost of a grant does not grow with the number of processes that want the lock at once.
func TestManyProcesses(t *testing.T) {
	for _, tc := range []struct {
		processes int
		goal      float64
	}{{2, 6}, {10, 6}, {50, 7}, {200, 8}, {1000, 12}}[:testkit.IfSmall(3, 5)] {
		t.Run(fmt.Sprint(tc.processes), func(t *testing.T) {
			virtual(t, func(_ context.Context, w *world) {
				list := make([]*contender, tc.processes)
				for i, c := range w.clients(tc.processes) {
					list[i] = one(c, always("report"))
					list[i].once = true
				}
				w.latency(2 * time.Millisecond)
				var held time.Duration
				start := time.Now()
				requests := w.requests(func() { held = w.contend(keepFor, time.Hour, list...) })
				took := time.Since(start)
				served := 0
				for _, c := range list {
					served += len(c.served)
				}
				per := func(n int) float64 { return float64(n) / float64(tc.processes) }
				looks, locks := times("BatchGetItem", requests), 0
				for _, r := range w.engine.Requests() {
					if ofLocks(r) && r.Operation == "UpdateItem" {
						locks++
					}
				}
				t.Logf("per grant: %.2f writes to the lock, %.2f looks, %.2f others, which are the sessions'; held for %.2f of %v",
					per(locks), per(looks), per(len(requests)-locks-looks), held.Seconds()/took.Seconds(), took)
				testkit.Check(t, fmt.Sprintf("P14, %d processes", tc.processes),
					testkit.Exactly(served, "served", tc.processes),
					testkit.AtMost(per(len(requests)), "requests per grant", tc.goal))
			})
		})
	}
}

// P16: callers that want several locks together are served, also while others take single ones of these locks. No two wait
// for each other.
func TestAcquireAllIsServed(t *testing.T) {
	const gatherers, singles, patience = 3, 8, 5 * time.Second
	during := time.Duration(testkit.IfSmall(15, 60)) * time.Second
	for name, processes := range map[string]int{"gatherers of one process": 1, "gatherers of three": gatherers} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(_ context.Context, w *world) {
				locks := names(4)
				clients := w.clients(processes + singles)
				var list []*contender
				for i := range gatherers {
					chance := rand.New(rand.NewPCG(1, uint64(i)))
					list = append(list, several(clients[i%processes], func() []lock.Target {
						p := chance.Perm(len(locks)) // in any order
						return []lock.Target{locks[p[0]], locks[p[1]]}
					}))
				}
				for i, c := range clients[processes:] {
					chance := rand.New(rand.NewPCG(2, uint64(i)))
					list = append(list, one(c, func() lock.Target { return locks[chance.IntN(len(locks))] }))
				}
				w.latency(2 * time.Millisecond)
				start := time.Now()
				w.contend(keepFor, during, list...)
				var gap time.Duration
				stuck, least := 0, int(during/keepFor)
				for i, c := range list {
					last := start
					for _, at := range append(c.served, start.Add(during)) {
						if i < gatherers {
							gap = max(gap, at.Sub(last))
						}
						last = at
					}
					if len(c.served) == 0 || start.Add(during).Sub(c.served[len(c.served)-1]) > 2*patience {
						stuck++
					}
					least = min(least, len(c.served))
				}
				t.Logf("the least served was served %d times", least)
				testkit.Check(t, "P16, "+name,
					testkit.AtMost(gap, " at most between two grants of a gatherer", patience),
					testkit.Exactly(stuck, "wait for each other in the end", 0))
			})
		})
	}
}

// P15: requests are small. Apart from the round trip, their size is most of what they cost.
func TestRequestSize(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var mu sync.Mutex
		sizes, step := map[string]int{}, "" // the largest request of each step
		c := w.clientOver(w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
			mu.Lock()
			if strings.Contains(body, "LOCK#report") && operation != "BatchGetItem" {
				sizes[step] = max(sizes[step], len(body))
			}
			mu.Unlock()
			return send()
		}), lock.Config{Owner: strings.Repeat("o", lock.MaxOwner)})
		other := w.client(quiet)
		for kind, opts := range leases() {
			does := func(what string) {
				mu.Lock()
				defer mu.Unlock()
				step = kind + ", " + what
			}
			acquire := func() *lock.Lease {
				l, err := c.Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				return l
			}
			for _, row := range []string{"a new row", "a row of before"} {
				does("acquire " + row)
				l := acquire()
				does("release " + row)
				require.NoError(t, l.Release(ctx))
			}
			does("enter behind others")
			l := acquire()
			waiter := acquireAsync(ctx, c, lock.Name("report"), opts...)
			theirs := acquireAsync(ctx, other, lock.Name("report"))
			does("pass on")
			require.NoError(t, l.Release(ctx))
			l = <-waiter
			require.NotNil(t, l)
			does("release to another process")
			require.NoError(t, l.Release(ctx))
			o := <-theirs
			require.NotNil(t, o)
			does("give up waiting")
			require.Nil(t, <-acquireFor(ctx, time.Second, c, lock.Name("report"), opts...))
			does("nothing")
			require.NoError(t, o.Release(ctx))
			require.NoError(t, w.table.Write(ctx, table.Delete(o.Key())))
		}
		for _, step := range slices.Sorted(maps.Keys(sizes)) {
			t.Logf("%4d bytes: %s", sizes[step], step)
		}
		testkit.Check(t, "P15", testkit.AtMost(slices.Max(slices.Collect(maps.Values(sizes))), "bytes", 1000))
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
