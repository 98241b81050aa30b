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

// The later of two renewals can arrive first. The other one finds the lease renewed by its
// own holder, which is no loss.
func TestRenewalsOfOneLeaseMayOvertake(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, Call: 1})
		slow := make(chan error, 1)
		go func() { slow <- l.Renew(ctx) }()
		time.Sleep(500 * time.Millisecond)
		require.NoError(t, l.Renew(ctx))
		renewed := l.Remaining()
		require.NoError(t, <-slow)
		assert.Equal(t, renewed-500*time.Millisecond, l.Remaining(), "by the later one")
		require.NoError(t, context.Cause(l.Context()))
		require.NoError(t, l.Release(ctx))
	})
}

// One renewal that hangs leaves time for others.
func TestHungRenewalLosesNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, Operation: "UpdateItem", For: 1000 * time.Hour, Times: 1})
		time.Sleep(time.Minute)
		require.NoError(t, context.Cause(l.Context()))
		assert.Greater(t, l.Remaining(), 10*time.Second)
	})
}
