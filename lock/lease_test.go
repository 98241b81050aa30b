package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
)

// Small promises of the documentation, each of which somebody broke on purpose who had found no test
// that would notice.

// What works under a lock has the caller's values, as for traces.
func TestLeaseContext_HasTheCallersValues(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		type key struct{}
		ctx = context.WithValue(ctx, key{}, "trace")
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Equal(t, "trace", l.Context().Value(key{}))
		require.NoError(t, l.Release(ctx))
	})
}

// The margin takes no more than half of a lease, however short.
func TestLease_IsLongerThanItsMargin(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Margin: 2 * time.Second})
		l, err := c.TryAcquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
		require.NoError(t, err)
		assert.Equal(t, 500*time.Millisecond, l.Remaining())
		require.NoError(t, l.Release(ctx))
	})
}
