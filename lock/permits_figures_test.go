package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
)

// Many processes acquire permits again and again, without pause. The permits are in use nearly all of the time, cost few
// requests, and are granted in turn.
func TestPermits_AreUsedAndShared(t *testing.T) {
	during := time.Duration(testkit.IfSmall(4, 10)) * time.Second
	cases := []struct{ processes, permits int }{{50, 10}, {12, 10}, {20, 2}, {60, 30}}
	for _, tc := range cases[:testkit.IfSmall(1, 4)] {
		name := fmt.Sprintf("%d processes, %d permits", tc.processes, tc.permits)
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				clients := w.clients(tc.processes)
				w.latency(2 * time.Millisecond)
				ctx, cancel := context.WithTimeout(ctx, during)
				defer cancel()
				var all sync.WaitGroup
				var mu sync.Mutex
				grants := make([]int, len(clients))
				var held time.Duration
				holding, most := 0, 0
				count := func(n int) {
					mu.Lock()
					defer mu.Unlock()
					holding += n
					most = max(most, holding)
				}
				ops := w.requests(func() {
					for i, c := range clients {
						all.Go(func() {
							for {
								l, err := c.Acquire(ctx, lock.Name("exports"), lock.Permits(tc.permits))
								if ctx.Err() != nil {
									return
								}
								if !assert.NoError(t, err) {
									return
								}
								count(1)
								time.Sleep(keepFor)
								count(-1)
								assert.NoError(t, l.Release(context.WithoutCancel(ctx)))
								mu.Lock()
								grants[i]++
								held += keepFor
								mu.Unlock()
							}
						})
					}
					all.Wait()
				})
				sum := 0
				for _, n := range grants {
					sum += n
				}
				per := func(op string) float64 { return float64(times(op, ops)) / float64(sum) }
				t.Logf("%d grants, of the least and the most served process %d and %d; per grant %.2f writes and %.2f looks",
					sum, slices.Min(grants), slices.Max(grants), per("UpdateItem"), per("BatchGetItem"))
				testkit.Check(t, "permits, "+name,
					testkit.Exactly(most, "at once", tc.permits),
					testkit.AtLeast(held.Seconds()/during.Seconds()/float64(tc.permits), "of the permits busy", 0.85),
					testkit.AtMost(float64(len(ops))/float64(sum), "requests per grant", 6),
					testkit.AtLeast(jain(grants), "Jain's index", 0.95))
			})
		})
	}
}

// A writer waits for the readers before it, and for none that comes later.
func TestShared_WriterWaitsOnlyForTheReadersBeforeIt(t *testing.T) {
	readers := testkit.IfSmall(25, 50)
	during := time.Duration(testkit.IfSmall(2, 6)) * time.Second
	virtual(t, func(ctx context.Context, w *world) {
		clients := w.clients(readers + 1)
		w.latency(2 * time.Millisecond)
		ctx, cancel := context.WithTimeout(ctx, during)
		defer cancel()
		var all sync.WaitGroup
		reads, writes := 0, 0
		var mu sync.Mutex
		for i, c := range clients[:readers] {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 3 * time.Millisecond)
				for ctx.Err() == nil {
					l, err := c.Acquire(ctx, lock.Name("catalogue"), lock.Shared())
					if ctx.Err() != nil {
						return
					}
					if !assert.NoError(t, err) {
						return
					}
					time.Sleep(keepFor)
					assert.NoError(t, l.Release(context.WithoutCancel(ctx)))
					mu.Lock()
					reads++
					mu.Unlock()
				}
			})
		}
		var longest time.Duration
		all.Go(func() {
			for range int(during / time.Second) {
				time.Sleep(time.Second)
				start := time.Now()
				l, err := clients[readers].Acquire(context.Background(), lock.Name("catalogue"))
				require.NoError(t, err)
				longest = max(longest, time.Since(start))
				time.Sleep(keepFor)
				require.NoError(t, l.Release(context.Background()))
				writes++
			}
		})
		all.Wait()
		t.Logf("%d reads and %d writes", reads, writes)
		testkit.Check(t, fmt.Sprintf("shared, %d readers and 1 writer a second", readers),
			testkit.Exactly(writes, "writes", int(during/time.Second)),
			testkit.AtMost(longest, " at most until the writer holds", 2*perTurn))
	})
}

// Permits can be made fewer while many come and go.
func TestSetPermits_FewerWhileManyComeAndGo(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.guardian = nil
		clients, op := w.clients(testkit.IfSmall(60, 90)), w.client(quiet)
		w.latency(40 * time.Millisecond)
		load, stop := context.WithCancel(ctx)
		var all sync.WaitGroup
		for _, c := range clients {
			all.Go(func() {
				for n := 50; ; {
					l, err := c.Acquire(load, exports, lock.Permits(n))
					var other *lock.PermitsError
					if errors.As(err, &other) {
						n = other.Row
						continue
					}
					if err != nil {
						assert.ErrorIs(t, err, context.Canceled)
						return
					}
					time.Sleep(100 * time.Millisecond)
					assert.NoError(t, l.Release(ctx))
				}
			})
		}
		time.Sleep(time.Second)
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		ops := w.requests(func() { assert.NoError(t, op.SetPermits(bounded, exports, 40)) })
		assert.LessOrEqual(t, times("GetItem", ops), 5, "reads")
		stop()
		all.Wait()
	})
}

// The goroutines of one process, of which there are more than can hold, do not keep out another process.
func TestPermits_OneCallerBesideManyGoroutinesIsServed(t *testing.T) {
	for name, tc := range map[string]struct {
		opts   []lock.Option
		writes int // of goroutines that hold for 50 ms
	}{"permits": {[]lock.Option{lock.Permits(2)}, 40}, "lock": {nil, 18}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				w.guardian = nil
				c, other := w.client(quiet), w.client(quiet)
				w.latency(2 * time.Millisecond)
				load, stop := context.WithCancel(ctx)
				var all sync.WaitGroup
				for range testkit.IfSmall(50, 90) { // who fit into the line
					all.Go(func() {
						for {
							l, err := c.Acquire(load, exports, tc.opts...)
							if err != nil {
								assert.ErrorIs(t, err, context.Canceled)
								return
							}
							time.Sleep(50 * time.Millisecond)
							assert.NoError(t, l.Release(ctx))
						}
					})
				}
				time.Sleep(3 * time.Second)
				ops := w.requests(func() { time.Sleep(time.Second) })
				assert.GreaterOrEqual(t, times("UpdateItem", ops), tc.writes, "writes in a second")
				bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
				defer cancel()
				l, err := other.Acquire(bounded, exports, tc.opts...)
				stop()
				all.Wait()
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}
