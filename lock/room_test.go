package lock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
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

// waitForAll has a client wait for n locks that another one holds, each in a goroutine of its own,
// and counts what is sent in a while.
func (w *world) waitForAll(ctx context.Context, n int, from, to time.Duration) (looks, questions int) {
	h, c := w.client(lock.Config{}), w.client(lock.Config{})
	for _, target := range names(n) {
		_, err := h.Acquire(ctx, target)
		require.NoError(w, err)
	}
	waiting, cancel := context.WithTimeout(ctx, to)
	defer cancel()
	var all sync.WaitGroup
	for i, target := range names(n) {
		all.Go(func() {
			time.Sleep(time.Duration(i%50) * 17 * time.Millisecond)
			_, err := c.Acquire(waiting, target)
			assert.ErrorIs(w, err, lock.ErrHeld)
		})
	}
	time.Sleep(from)
	w.engine.ResetRequests()
	all.Wait()
	for _, r := range w.engine.Requests() {
		if r.Operation == "BatchGetItem" {
			looks++
		}
	}
	for _, r := range w.requestsTo(sessionKey(h).PK) {
		if r.Operation == "UpdateItem" {
			questions++
		}
	}
	return looks, questions - int((to-from)/(4500*time.Millisecond)) // which are renewals
}

// However many locks are waited for, one request looks at all of them.
func TestLooksAtManyLocksAreShared(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		const seconds = 50
		looks, _ := w.waitForAll(ctx, 60, 30*time.Second, (30+seconds)*time.Second)
		t.Logf("%d looks at 60 locks in %d s", looks, seconds)
		assert.LessOrEqual(t, looks, 3*seconds)
		assert.GreaterOrEqual(t, looks, seconds)
	})
}

// A session of which many locks are waited for has a few to ask it in one request, and those that do
// not fit are not asked in vain, which would keep it from renewing.
func TestManyQuestionsToOneHolder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, questions := w.waitForAll(ctx, 200, 0, 80*time.Second)
		t.Logf("%d requests to ask about 200 locks", questions)
		assert.LessOrEqual(t, questions, 40)
	})
}

// What was acquired without an answer, and taken back, is not waited for as if it handed over.
func TestTakenBackAcquisitionIsNotWaitedFor(t *testing.T) {
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
func TestTakenBackHandOverIsNotWaitedFor(t *testing.T) {
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

// A look that had to be sent twice shows what it has read.
func TestLookThatWasRepeatedIsLookedAt(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		waiting, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := other.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := acquireAsync(waiting, c, lock.Name("report"))
		require.NoError(t, l.Release(ctx))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "BatchGetItem", Times: 1})
		looks := 0
		for _, operation := range w.requests(func() { require.NotNil(t, <-got) }) {
			if operation == "BatchGetItem" {
				looks++
			}
		}
		assert.Equal(t, 2, looks)
	})
}

// Nobody looks any more once the last waiter has got its lock, whether it tried or was handed it.
func TestLookingEndsWithTheLastWaiter(t *testing.T) {
	for name, own := range map[string]bool{"another process's": false, "its own": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, holder := w.client(lock.Config{}), w.client(lock.Config{})
				other := holder
				if own {
					holder = c
				}
				w.latency(20 * time.Millisecond)
				l, err := holder.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				next := acquireAsync(ctx, c, lock.Name("report"))
				looks := func() int {
					return times("BatchGetItem", w.requests(func() { time.Sleep(time.Minute) }))
				}
				if own {
					require.Zero(t, looks(), "it is passed on")
					behind := acquireAsync(ctx, other, lock.Name("report"))
					require.Positive(t, looks())
					defer func() { require.NotNil(t, <-behind) }()
				} else {
					require.Positive(t, looks())
				}
				require.NoError(t, l.Release(ctx))
				l = <-next
				require.NotNil(t, l)
				if own {
					require.NoError(t, l.Release(ctx))
				}
				time.Sleep(time.Second)
				assert.Zero(t, looks())
			})
		})
	}
}
