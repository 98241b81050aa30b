package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// What was acquired without an answer, and taken back, is not waited for as if it handed over.
func TestAcquire_ATakenBackOneIsNotWaitedFor(t *testing.T) {
	const patience = 3 * time.Second
	for name, tc := range map[string]struct {
		operation string
		acquire   func(c *lock.Client, ctx context.Context) error
	}{
		"one": {"UpdateItem", func(c *lock.Client, ctx context.Context) error {
			_, err := c.TryAcquire(ctx, names(2)[1])
			return err
		}},
		"several": {"TransactWriteItems", func(c *lock.Client, ctx context.Context) error {
			_, err := c.TryAcquireAll(ctx, names(2))
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.client(lock.Config{Lease: time.Hour}), w.client(lock.Config{})
				l, err := other.Acquire(ctx, names(2)[1])
				require.NoError(t, err)
				_, err = c.Acquire(ctx, lock.Name("keeps the session"))
				require.NoError(t, err)
				got := acquireAsync(ctx, c, names(2)[1])
				time.Sleep(10 * time.Second)
				require.NoError(t, l.Release(ctx))
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: tc.operation})
				start := time.Now()
				bounded, giveUp := context.WithCancel(ctx)
				time.AfterFunc(patience, func() {
					w.engine.ClearFaults()
					giveUp()
				})
				require.ErrorIs(t, tc.acquire(c, bounded), context.Canceled)
				next := <-got
				require.NotNil(t, next)
				assert.Less(t, time.Since(start), patience+3*time.Second)
				require.NoError(t, next.Release(ctx))
			})
		})
	}
}

// The same where a commit without an answer was to pass the lock on to somebody who has left: the holder releases.
func TestAcquire_ATakenBackPassIsNotWaitedFor(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Lease: time.Hour})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		first, leave := context.WithCancel(ctx)
		acquireAsync(first, c, lock.Name("report"))
		got := acquireAsync(ctx, c, lock.Name("report"))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		time.AfterFunc(time.Second, leave)
		require.ErrorIs(t, l.Commit(ctx, w.count("n")), table.ErrUnreachable)
		start := time.Now()
		require.NoError(t, l.Release(ctx))
		next := <-got
		require.NotNil(t, next)
		assert.Less(t, time.Since(start), 3*time.Second)
		require.NoError(t, next.Release(ctx))
		assert.EqualValues(t, 1, w.counted("n"))
	})
}

// The session that an acquisition hangs on may end before its answer comes: the lock is not
// lost, since nobody had it yet.
func TestAcquire_GoesOnUnderAnotherSession(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		first, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, first.Release(ctx))
		// The answer to the next acquisition takes until after the renewal that finds out.
		session := lock.SessionID(c)
		w.engine.Inject(tabletest.Fault{
			Kind: tabletest.Delay, After: true, For: 2800 * time.Millisecond, Operation: "UpdateItem", Times: 1,
			Key: w.table.KeyItem(first.Key()),
		})
		time.Sleep(3500 * time.Millisecond)
		require.NoError(t, w.table.Write(ctx, table.Update(sessionKey(c), table.Attr("dead").Set(1))))
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.NotEqual(t, session, lock.SessionID(c))
		assert.Equal(t, first.Fence()+2, l.Fence(), "the first grant was given back, and never seen")
		require.NoError(t, l.Write(ctx, w.put("x")))
		require.NoError(t, l.Release(ctx))
	})
}
