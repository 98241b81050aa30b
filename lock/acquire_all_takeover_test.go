package lock_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
)

func TestAcquireAll_TakesOverFromTheDead(t *testing.T) {
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

// Every lock that is taken over from a dead holder is reported, also where there are several at once.
func TestAcquireAll_ReportsEachTakeover(t *testing.T) {
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

// A holder that was found alive is asked again a lease later, and not with each look.
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

// Several goroutines of a process wait for the same locks. One of them tries to take them from a dead holder, and not all
// at once.
func TestAcquireAll_OneOfManyTakesFromTheDead(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		both := names(2)
		_, err := w.clientOver(way, quiet).Acquire(ctx, both[0])
		require.NoError(t, err)
		c := w.client(quiet)
		const waiters = 5
		got := make(chan *lock.Bundle, waiters)
		for range waiters {
			go func() {
				b, err := c.AcquireAll(ctx, both)
				assert.NoError(t, err)
				got <- b
			}()
		}
		time.Sleep(5 * time.Second)
		way.cut(refused)
		var first *lock.Bundle
		tries := times("TransactWriteItems", w.requests(func() {
			first = <-got
			time.Sleep(300 * time.Millisecond)
		}))
		assert.LessOrEqual(t, tries, 2, "one, and perhaps the next one's, a poll later")
		require.NoError(t, first.Release(ctx))
		for range waiters - 1 {
			require.NoError(t, (<-got).Release(ctx))
		}
	})
}

// A waiter for several locks finds the death of a holder in time, however rarely it looks.
func TestAcquireAll_FindsADeathInTime(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		both := names(2)
		_, err := w.clientOver(way, quiet).Acquire(ctx, both[0])
		require.NoError(t, err)
		waiter := w.client(lock.Config{Logger: quiet.Logger, Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }})
		got := make(chan *lock.Bundle, 1)
		go func() {
			b, err := waiter.AcquireAll(ctx, both)
			assert.NoError(t, err)
			got <- b
		}()
		time.Sleep(2 * time.Minute)
		way.cut(refused)
		start := time.Now()
		b := <-got
		assert.LessOrEqual(t, time.Since(start), 2*20*time.Second+5*time.Second)
		require.NoError(t, b.Release(ctx))
	})
}

// AcquireAll waits between its tries while a line is full, also after it has made room in another one.
func TestAcquireAll_DoesNotSpinBeforeAFullLine(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.guardian = nil // it would take most of the time
		list := names(4) // the first is full of the dead, the second of the living
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		way := &line{to: w.engine.HTTPClient()}
		rarely := lock.Config{Backoff: every(time.Minute), Logger: quiet.Logger}
		dead := w.clientOver(way, rarely)
		w.fillLine(waiting, dead, dead, list[0], list[2])
		way.cut(refused)
		w.fillLine(waiting, w.client(quiet), w.client(rarely), list[1], list[3])
		time.Sleep(time.Minute)
		w.latency(10 * time.Millisecond)
		c := w.client(quiet)
		go func() { _, _ = c.AcquireAll(waiting, list[:2]) }()
		time.Sleep(time.Minute)
		ops := w.requests(func() { time.Sleep(10 * time.Second) })
		assert.Less(t, times("TransactWriteItems", ops), 20)
	})
}

func TestAcquireAll_TakesManyOverASlowNetwork(t *testing.T) {
	const lease, latency = 20 * time.Second, 60 * time.Millisecond
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c, targets := w.client(quiet), names(100)
		require.NoError(t, errOf(w.clientOver(way, quiet).AcquireAll(ctx, targets)))
		way.cut(refused)
		w.latency(latency)
		start := time.Now()
		b, err := c.AcquireAll(ctx, targets)
		require.NoError(t, err)
		assert.Less(t, time.Since(start), lease+10*time.Second)
		require.NoError(t, b.Release(ctx))
	})
}
