package lock_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
)

// handler is a log handler of an application.
type handler struct {
	slog.Handler
	handle func(slog.Record)
}

func (h *handler) Enabled(context.Context, slog.Level) bool { return true }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	h.handle(r)
	return nil
}

func logger(handle func(slog.Record)) *slog.Logger {
	return slog.New(&handler{slog.DiscardHandler, handle})
}

// A holder is told of the end of its lease before a log record about it is written.
func TestLogger_SlowOneDoesNotDelayTheEndOfALease(t *testing.T) {
	const locks = 50
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				c := w.clientOver(wire, lock.Config{Logger: logger(func(r slog.Record) {
					if r.Level >= slog.LevelWarn {
						time.Sleep(10 * time.Second)
					}
				})})
				told := make(chan time.Time, locks)
				var last *lock.Lease
				for i := range locks {
					l, err := c.Acquire(ctx, lock.Name(string(rune('A'+i))), opts...)
					require.NoError(t, err)
					context.AfterFunc(l.Context(), func() { told <- time.Now() })
					last = l
				}
				wire.cut(refused)
				end := time.Now().Add(last.Remaining())
				var late time.Duration
				for range locks {
					late = max(late, (<-told).Sub(end))
				}
				assert.LessOrEqual(t, late, 10*time.Millisecond, "after the end of the lease")
				require.ErrorIs(t, context.Cause(last.Context()), lock.ErrExpired)
				time.Sleep(20 * locks * time.Second) // until all is logged
			})
		})
	}
}

// A panic of the application's logger reaches the caller. It leaves no lock held, and nobody waits for a goroutine that is
// gone.
func TestLogger_PanicLeavesNothingHeld(t *testing.T) {
	for _, event := range []string{"lock: acquired", "lock: session opened"} {
		t.Run(event, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				var armed atomic.Bool
				other := w.client(lock.Config{})
				c := w.coldClient(lock.Config{Logger: logger(func(r slog.Record) {
					if r.Message == event && armed.CompareAndSwap(true, false) {
						panic("of the logger")
					}
				})})
				for name, acquire := range map[string]func() error{
					"Acquire": func() error {
						_, err := c.Acquire(ctx, lock.Name("report"))
						return err
					},
					"TryAcquire": func() error {
						_, err := c.TryAcquire(ctx, lock.Name("report"))
						return err
					},
					"Fixed": func() error {
						_, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
						return err
					},
					"AcquireAll": func() error {
						_, err := c.AcquireAll(ctx, []lock.Target{lock.Name("other"), lock.Name("report")})
						return err
					},
				} {
					if name == "Fixed" && event == "lock: session opened" {
						continue // it opens none
					}
					time.Sleep(time.Minute) // the session has ended
					armed.Store(true)
					assert.PanicsWithValue(t, "of the logger", func() { _ = acquire() }, name)
					time.Sleep(time.Second) // until all is withdrawn in the background
					for _, target := range []lock.Target{lock.Name("report"), lock.Name("other")} {
						l, err := other.TryAcquire(ctx, target)
						require.NoError(t, err, name)
						require.NoError(t, l.Release(ctx), name)
					}
					bounded, cancel := context.WithTimeout(ctx, time.Second)
					l, err := c.Acquire(bounded, lock.Name("report"))
					cancel()
					require.NoError(t, err, name)
					require.NoError(t, l.Release(ctx), name)
				}
			})
		})
	}
}

// A goroutine to which the lock is passed, and that panics as it begins to hold it, leaves the lock to those behind it.
func TestLogger_PanicDuringAPassReleasesTheLock(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var armed atomic.Bool
		c := w.client(lock.Config{Logger: logger(func(r slog.Record) {
			if r.Message == "lock: acquired" && armed.CompareAndSwap(true, false) {
				panic("of the logger")
			}
		})})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = c.Acquire(ctx, lock.Name("report"))
		}()
		time.Sleep(500 * time.Millisecond)
		waiter := acquireAsync(ctx, c, lock.Name("report"))
		armed.Store(true)
		require.NoError(t, l.Release(ctx))
		require.Equal(t, "of the logger", <-panicked)
		next := <-waiter
		require.NotNil(t, next)
		require.NoError(t, next.Write(ctx, w.put("x")))
		require.NoError(t, next.Release(ctx))
	})
}
