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

// A request to enter that is delivered once more when its ticket has come to be first changes nothing: the
// lease ends before others are let in.
func TestLeaseOfADuplicateEndsBeforeOthersAreLetIn(t *testing.T) {
	fixed := lock.Fixed(20 * time.Second)
	targets := names(2)
	for name, tc := range map[string]struct {
		operation string
		acquire   func(c *lock.Client, ctx context.Context) (*lock.Lease, error)
	}{
		"one": {"UpdateItem", func(c *lock.Client, ctx context.Context) (*lock.Lease, error) {
			return c.Acquire(ctx, targets[1], fixed)
		}},
		"several": {"TransactWriteItems", func(c *lock.Client, ctx context.Context) (*lock.Lease, error) {
			b, err := c.AcquireAll(ctx, targets, fixed)
			if err != nil {
				return nil, err
			}
			return b.Leases()[1], nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				holder, c, other := w.client(lock.Config{}), w.client(lock.Config{}), w.client(lock.Config{})
				l, err := holder.Acquire(ctx, targets[1])
				require.NoError(t, err)
				const late = 15 * time.Second
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: tc.operation, Key: w.table.KeyItem(l.Key()), Times: 1, For: late})
				time.AfterFunc(late-10*time.Millisecond, func() {
					// Who waits does not look until the row names it.
					w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, Operation: "BatchGetItem", Times: 1})
					assert.NoError(t, l.Release(ctx))
				})
				waiting, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				mine, err := tc.acquire(c, waiting)
				require.NoError(t, err)
				next, err := other.Acquire(waiting, targets[1])
				require.NoError(t, err)
				assert.Greater(t, next.Fence(), mine.Fence())
				assert.ErrorIs(t, context.Cause(mine.Context()), lock.ErrExpired, "told before somebody else was let in")
			})
		})
	}
}

// Nobody else of its process takes such a waiter for a ghost and frees the row, under a lease that goes
// on.
func TestDuplicateOfAWaiterIsNoGhost(t *testing.T) {
	lateAttemptOfAWaiter(t, tabletest.DuplicateLate)
}

// A pass that was refused by the network, and is delivered once more, leaves a ticket that nobody claims. The
// goroutine to which it was to be passed gets the lock once that has ended, and others after it.
func TestDuplicateOfAPassThatFailed(t *testing.T) {
	const late, length = 2 * time.Second, 20 * time.Second
	virtual(t, func(ctx context.Context, w *world) {
		waiting, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		c, other := w.client(quiet), w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		first, leave := context.WithCancel(ctx)
		acquireAsync(first, c, lock.Name("report"))
		heir := acquireAsync(waiting, c, lock.Name("report"), lock.Fixed(length))
		leave()
		time.Sleep(time.Second)
		row := w.table.KeyItem(l.Key())
		w.engine.Inject(
			tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", Key: row, Times: 1, For: late},
			tabletest.Fault{Kind: tabletest.ExpiredCredentials, Operation: "UpdateItem", Key: row, Times: 1},
		)
		start := time.Now()
		require.Error(t, l.Release(ctx))
		mine := <-heir
		require.NotNil(t, mine)
		assert.Less(t, time.Since(start), late+length+8*time.Second)
		assert.Greater(t, mine.Fence(), l.Fence())
		require.NoError(t, mine.Write(ctx, w.put("x")))
		next, err := other.Acquire(waiting, lock.Name("report"))
		require.NoError(t, err)
		assert.Greater(t, next.Fence(), mine.Fence())
		assert.ErrorIs(t, context.Cause(mine.Context()), lock.ErrExpired, "told before somebody else was let in")
	})
}

// Whoever waits for a Fixed lease, and is granted one that is over before it can begin, has held nothing:
// it waits on. A release may take longer than that to hand the lock over; a request of its own, or of a
// hand-over, may come in late once more, when nobody holds the lock.
func TestFixedLeaseThatCameTooLateIsWaitedForAgain(t *testing.T) {
	const length = time.Second
	type grant func(ctx context.Context, w *world, c *lock.Client, row table.Item) <-chan *lock.Lease
	slow := func(operation string, part func(ctx context.Context, w *world, l *lock.Lease) error) grant {
		return func(ctx context.Context, w *world, c *lock.Client, row table.Item) <-chan *lock.Lease {
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			heir := acquireAsync(ctx, c, lock.Name("report"), lock.Fixed(length))
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Key: row, Operation: operation, Times: 11})
			start := time.Now()
			require.NoError(t, part(ctx, w, l))
			require.Greater(t, time.Since(start), length)
			return heir
		}
	}
	for name, grant := range map[string]grant{
		"a slow release": slow("UpdateItem", func(ctx context.Context, _ *world, l *lock.Lease) error { return l.Release(ctx) }),
		"a slow commit":  slow("TransactWriteItems", func(ctx context.Context, w *world, l *lock.Lease) error { return l.Commit(ctx, w.count("n")) }),
		"a duplicate": func(ctx context.Context, w *world, c *lock.Client, row table.Item) <-chan *lock.Lease {
			l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			const late = 15 * time.Second
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", Key: row, Times: 1, For: late})
			start := time.Now()
			heir := acquireAsync(ctx, c, lock.Name("report"), lock.Fixed(length))
			time.Sleep(time.Until(start.Add(late - 10*time.Millisecond)))
			// Who waits does not look until the row names it.
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, Operation: "BatchGetItem", Times: 1})
			require.NoError(t, l.Release(ctx))
			time.Sleep(20 * time.Millisecond)
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.Equal(t, l.Fence()+1, r.Fence, "the duplicate was granted")
			return heir
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				waiting, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				other := w.client(lock.Config{})
				l, err := other.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))
				heir := grant(waiting, w, w.client(lock.Config{Expiry: lock.ObservedOnly}), w.table.KeyItem(l.Key()))
				mine := <-heir
				require.NotNil(t, mine)
				assert.Positive(t, mine.Remaining())
				require.NoError(t, mine.Write(ctx, w.count("m")))
				require.NoError(t, mine.Release(ctx))
				next, err := other.Acquire(waiting, lock.Name("report"))
				require.NoError(t, err)
				assert.Greater(t, next.Fence(), mine.Fence())
			})
		})
	}
}
