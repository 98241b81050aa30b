package lock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

func TestHealthy_FollowsTheSession(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.coldClientOver(way, lock.Config{})
		require.NoError(t, c.Healthy(ctx), "without a session there is nothing to lose")
		_, ok := c.Remaining()
		assert.False(t, ok)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		left, ok := c.Remaining()
		assert.True(t, ok)
		assert.Equal(t, 19800*time.Millisecond, left)
		for range 100 {
			time.Sleep(time.Second)
			assert.Empty(t, w.requests(func() { require.NoError(t, c.Healthy(ctx)) }))
			left, ok = c.Remaining()
			assert.True(t, ok)
			assert.Greater(t, left, 14*time.Second)
		}

		way.cut(refused)
		healthy, unhealthy := 0, 0
		for l.Context().Err() == nil {
			left, _ = c.Remaining()
			err := c.Healthy(ctx)
			if left > 9900*time.Millisecond {
				require.NoError(t, err)
				healthy++
			} else if left > 0 {
				require.ErrorContains(t, err, fmt.Sprintf("the session ends in %v unless renewed", left.Round(time.Millisecond)))
				require.ErrorIs(t, err, table.ErrUnreachable, "why the last renewal failed")
				unhealthy++
			}
			time.Sleep(100 * time.Millisecond)
		}
		assert.Positive(t, healthy)
		assert.InDelta(t, 99, unhealthy, 2, "half of the lease less the margin, looked at every 100 ms")
		require.NoError(t, c.Healthy(ctx), "the session has ended, its leases were told, and the next acquisition opens another")
		way.cut(open)
		_, err = c.Acquire(ctx, lock.Name("other"))
		require.NoError(t, err)
		require.NoError(t, c.Healthy(ctx))

		ended, cancel := context.WithCancel(ctx)
		cancel()
		require.ErrorIs(t, c.Healthy(ended), context.Canceled)
		require.NoError(t, c.Close(ctx))
		require.ErrorIs(t, c.Healthy(ctx), lock.ErrClosed)
		_, ok = c.Remaining()
		assert.False(t, ok)
	})
}

// A renewal that hangs counts like one that fails, and so does one that a stopped process has not begun.
func TestHealthy_KnowsOverdueRenewals(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way, wall := &line{to: w.engine.HTTPClient()}, &wallClock{}
		c := w.coldClientOver(way, lock.Config{Lease: lock.MinLease}, table.WithClock(wall.now))
		_, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(hung)
		for c.Healthy(ctx) == nil {
			time.Sleep(time.Millisecond)
		}
		left, _ := c.Remaining()
		assert.Equal(t, 495*time.Millisecond, left)
		require.ErrorContains(t, c.Healthy(ctx), "lock: healthy: the session ends in 495ms unless renewed: ")
		way.cut(open)
		time.Sleep(time.Second)
		_, err = c.Acquire(ctx, lock.Name("other"))
		require.NoError(t, err)
		require.NoError(t, c.Healthy(ctx))
		wall.jump(600 * time.Millisecond)
		left, _ = c.Remaining()
		require.EqualError(t, c.Healthy(ctx), fmt.Sprintf("lock: healthy: the session ends in %v unless renewed: the renewal is overdue", left.Round(time.Millisecond)))
	})
}

// Once a session has ended by a clock, nothing remains of its leases, also before a holder is told.
func TestRemaining_IsZeroForAnOverdueSession(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		c := w.client(quiet, table.WithClock(wall.now))
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		wall.jump(time.Minute)
		left, lasts := c.Remaining()
		assert.Zero(t, left)
		assert.False(t, lasts)
		<-l.Context().Done()
	})
}

// A client that holds nothing is healthy, also while its session runs out.
func TestHealthy_ClientThatHoldsNothingIsHealthy(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		for range 2000 {
			require.NoError(t, c.Healthy(ctx))
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// Whatever the margin, a client whose renewals go through is healthy, and has nothing at risk.
func TestHealthy_WhateverTheMargin(t *testing.T) {
	for _, margin := range []time.Duration{5 * time.Second, 8 * time.Second, 10 * time.Second} {
		t.Run(margin.String(), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				var heard alarms
				config := quiet
				config.Margin, config.OnAtRisk = margin, heard.hear
				c := w.client(config)
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				for range 6000 {
					require.NoError(t, c.Healthy(ctx))
					time.Sleep(100 * time.Millisecond)
				}
				require.NoError(t, context.Cause(l.Context()))
				assert.Empty(t, heard.heard())
			})
		})
	}
}
