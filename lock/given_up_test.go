package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A release is applied, and its answer comes late or never. Others hold the lock by then. So the context of the lease, under which other
// goroutines may still work, ends before the request is sent.
func TestRelease_EndsTheContextBeforeOthersHold(t *testing.T) {
	for name, release := range map[string]func(ctx context.Context, c *lock.Client, b *lock.Bundle) error{
		"Release": func(ctx context.Context, _ *lock.Client, b *lock.Bundle) error { return b.Leases()[0].Release(ctx) },
		"Bundle":  func(ctx context.Context, _ *lock.Client, b *lock.Bundle) error { return b.Release(ctx) },
		"Close":   func(ctx context.Context, c *lock.Client, _ *lock.Bundle) error { return c.Close(ctx) },
	} {
		for _, fault := range []tabletest.Fault{
			{Kind: tabletest.Delay, After: true, For: 2 * time.Second, Operation: "UpdateItem", Times: 1},
			{Kind: tabletest.InternalErrorAfter, Operation: "UpdateItem", Times: 3},
		} {
			t.Run(name+" "+fault.Kind.String(), func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					c, other := w.client(quiet), w.client(quiet)
					bundle, err := c.AcquireAll(ctx, names(1))
					require.NoError(t, err)
					l := bundle.Leases()[0]
					next := acquireAsync(ctx, other, names(1)[0])
					fault.Key = w.table.KeyItem(l.Key())
					w.engine.Inject(fault)
					ended := make(chan error, 1)
					go func() { ended <- release(ctx, c, bundle) }()
					got := <-next
					require.NotNil(t, got)
					require.ErrorIs(t, context.Cause(l.Context()), lock.ErrReleased)
					require.NoError(t, <-ended)
					require.NoError(t, got.Release(ctx))
				})
			})
		}
	}
}

// The context of a release may be that of its lease, or of a bundle. It ends with the release, which is sent all the same.
func TestRelease_UnderItsOwnContextIsSent(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.latency(10 * time.Millisecond)
		c := w.client(quiet)
		for range 3 {
			bundle, err := c.AcquireAll(ctx, names(40))
			require.NoError(t, err)
			under, cancel := context.WithTimeout(bundle.Context(), time.Minute)
			require.NoError(t, bundle.Release(under))
			cancel()
			require.NoError(t, c.Do(ctx, names(1)[0], func(ctx context.Context, l *lock.Lease) error {
				assert.NoError(t, l.Release(ctx))
				return nil
			}))
			l, err := c.Acquire(ctx, names(1)[0])
			require.NoError(t, err)
			require.NoError(t, l.Release(l.Context()))
		}
		w.free(ctx, names(40))
	})
}
