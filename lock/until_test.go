package lock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
)

// The lease and the function's context end together: the function may look at one and return the error of the other.
func TestDo_ContextEndsWithTheLease(t *testing.T) {
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

// The same for contexts that are derived from it.
func TestDo_DerivedContextEndsWithTheLease(t *testing.T) {
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
