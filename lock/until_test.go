package lock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
)

// Whoever sees the end of a lease sees that of the function's context as well: it may look at the one
// and return the error of the other.
func TestContextOfAFunctionEndsWithTheLease(t *testing.T) {
	for how, end := range map[string]func(*lock.Client, context.Context, *lock.Lease) error{
		"released": func(_ *lock.Client, ctx context.Context, l *lock.Lease) error { return l.Release(ctx) },
		"revoked":  func(c *lock.Client, ctx context.Context, l *lock.Lease) error { return c.Revoke(ctx, l.Target()) },
	} {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(quiet)
			for range 100 {
				f := func(inside context.Context, l *lock.Lease) error {
					assert.NoError(t, inside.Err())
					assert.NoError(t, end(c, ctx, l))
					assert.Equal(t, context.Cause(l.Context()), context.Cause(inside), how)
					assert.ErrorIs(t, inside.Err(), context.Canceled, how)
					return lock.ErrInvalid // has Lead return
				}
				require.ErrorIs(t, c.Do(ctx, lock.Name("report"), f), lock.ErrInvalid)
				if how == "released" {
					require.ErrorIs(t, c.Lead(ctx, lock.Name("report"), f), lock.ErrInvalid)
				}
			}
		})
	}
}

// The same for what is made of it.
func TestContextMadeOfAFunctionsEndsWithTheLease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		require.NoError(t, c.Do(ctx, lock.Name("report"), func(inside context.Context, l *lock.Lease) error {
			before, cancel := context.WithCancel(inside)
			defer cancel()
			assert.NoError(t, l.Release(ctx))
			after, cancel := context.WithCancel(inside)
			defer cancel()
			assert.ErrorIs(t, context.Cause(after), lock.ErrReleased)
			<-before.Done()
			assert.ErrorIs(t, context.Cause(before), lock.ErrReleased)
			return nil
		}))
	})
}

func TestContextOfABundleEndsWithTheFirst(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		for range 100 {
			b, err := c.AcquireAll(ctx, []lock.Target{lock.Name("a"), lock.Name("b")})
			require.NoError(t, err)
			require.NoError(t, b.Context().Err())
			require.NoError(t, b.Leases()[1].Release(ctx))
			require.ErrorIs(t, context.Cause(b.Context()), lock.ErrReleased)
			require.ErrorIs(t, b.Context().Err(), context.Canceled)
			require.NoError(t, b.Release(ctx))
		}
	})
}
