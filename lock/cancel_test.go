package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table/tabletest"
)

// F14.
func TestCancel_AtEveryRequestLeavesNothing(t *testing.T) {
	const lease = 20 * time.Second
	target := lock.Name("report")
	section := func(ctx context.Context, w *world, l *lock.Lease) error {
		return errors.Join(l.Write(ctx, w.count("a")), l.Renew(ctx), l.Write(ctx, w.count("b")))
	}
	acquire := func(ctx context.Context, w *world, c *lock.Client, opts ...lock.Option) {
		if l, err := c.Acquire(ctx, target, opts...); err == nil {
			_ = section(ctx, w, l)
			_ = l.Release(ctx)
		}
	}
	ways := map[string]func(ctx context.Context, w *world, c, other *lock.Client){
		"acquire": func(ctx context.Context, w *world, c, _ *lock.Client) { acquire(ctx, w, c) },
		"Fixed":   func(ctx context.Context, w *world, c, _ *lock.Client) { acquire(ctx, w, c, lock.Fixed(lease)) },
		"do": func(ctx context.Context, w *world, c, _ *lock.Client) {
			_ = c.Do(ctx, target, func(ctx context.Context, l *lock.Lease) error { return section(ctx, w, l) })
		},
		"waiting": func(ctx context.Context, w *world, c, other *lock.Client) {
			l, err := other.TryAcquire(w.Context(), target)
			require.NoError(w, err)
			time.AfterFunc(time.Second, func() { assert.NoError(w, l.Release(w.Context())) })
			acquire(ctx, w, c)
			time.Sleep(2 * time.Second)
		},
	}
	struck, long, longest := 0, 0, time.Duration(0)
	for name, way := range ways {
		for _, cold := range []bool{false, true} {
			for call, made := 1, true; made; call++ {
				made = false
				for _, after := range []bool{false, true} {
					virtual(t, func(ctx context.Context, w *world) {
						c, other := w.client(lock.Config{}), w.client(lock.Config{})
						if cold {
							c = w.coldClient(lock.Config{})
						}
						ending, cancel := context.WithCancel(ctx)
						defer cancel()
						var calls atomic.Int32
						w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, After: after, When: func(tabletest.Request) bool {
							if calls.Add(1) != int32(call) || ending.Err() != nil {
								return false
							}
							made = true
							time.AfterFunc(500*time.Millisecond, cancel) // in the middle of that call
							return true
						}})
						way(ending, w, c, other)
						w.engine.ClearFaults()
						if ending.Err() == nil {
							return // there are no more calls
						}
						struck++
						start := time.Now()
						next, err := other.Acquire(ctx, target)
						require.NoError(t, err)
						waited := time.Since(start)
						longest = max(longest, waited)
						if waited > lease {
							long++
							t.Logf("held for %v: %s, call %d, after %v, cold %v", waited, name, call, after, cold)
						}
						require.NoError(t, next.Release(ctx))
					}) // ends only when all goroutines have ended
				}
			}
		}
	}
	testkit.Check(t, "F14", testkit.AtLeast(struck, "cancellations", 100), testkit.Exactly(long, "rows held longer than a lease", 0), testkit.AtMost(longest, " the longest", lease))
}
