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

// A refusal that names a lease of this process, and whose answer comes after that was released, is
// nothing to wait for: nobody hands over any more. A Fixed lease's acquisition asks no session.
func TestLeaseThatIsGoneHandsNothingOver(t *testing.T) {
	fixed := lock.Fixed(time.Minute)
	for name, tc := range map[string]struct {
		operation string
		acquire   func(c *lock.Client, ctx context.Context) error
	}{
		"one": {"UpdateItem", func(c *lock.Client, ctx context.Context) error {
			_, err := c.Acquire(ctx, names(2)[1], fixed)
			return err
		}},
		"several": {"TransactWriteItems", func(c *lock.Client, ctx context.Context) error {
			_, err := c.AcquireAll(ctx, names(2), fixed)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{Lease: time.Hour})
				l, err := c.Acquire(ctx, names(2)[1])
				require.NoError(t, err)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 100 * time.Millisecond, Operation: tc.operation, Times: 1})
				time.AfterFunc(50*time.Millisecond, func() { assert.NoError(t, l.Release(ctx)) })
				waiting, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				start := time.Now()
				require.NoError(t, tc.acquire(c, waiting))
				assert.Less(t, time.Since(start), 2*time.Second)
			})
		})
	}
}
