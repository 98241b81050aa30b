package lock_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestMaxHold_EndsALeaseThatIsRenewed(t *testing.T) {
	for name, opts := range map[string][]lock.Option{
		"session": {lock.MaxHold(time.Minute)},
		"fixed":   {lock.MaxHold(time.Minute), lock.Fixed(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				lost := make(chan error, 1)
				c := w.client(lock.Config{OnLost: func(_ *lock.Lease, cause error) { lost <- cause }})
				l, err := c.Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				other := w.client(lock.Config{})
				start := time.Now()
				next, err := other.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				assert.InDelta(t, time.Minute, time.Since(start), float64(2*time.Second))
				assert.Greater(t, next.Fence(), l.Fence())
				require.ErrorIs(t, context.Cause(l.Context()), lock.ErrMaxHold)
				require.ErrorIs(t, <-lost, lock.ErrLost)
				require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrMaxHold)
				require.ErrorIs(t, l.Commit(ctx, w.put("x")), lock.ErrMaxHold)
				require.ErrorIs(t, l.Release(ctx), lock.ErrLost)
				require.ErrorIs(t, l.Renew(ctx), lock.ErrMaxHold)
				require.NoError(t, next.Release(ctx))
			})
		})
	}
}

func TestMaxHold_WaitsForAGuardedWrite(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{MaxHold: time.Second})
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 4 * time.Second, Operation: "TransactWriteItems", Times: 1})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		var group sync.WaitGroup
		group.Go(func() { assert.NoError(t, l.Write(ctx, w.put("x"))) })
		<-l.Context().Done()
		_, err = w.client(lock.Config{}).TryAcquire(ctx, lock.Name("report"))
		require.ErrorIs(t, err, lock.ErrHeld, "a write is under way")
		group.Wait()
		next, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, next.Release(ctx))
	})
}

func TestMaxHold_SessionRepeatsAFailedRelease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"), lock.MaxHold(time.Second))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Key: w.table.KeyItem(l.Key())})
		time.Sleep(15 * time.Second) // until it stops trying to release
		w.engine.ClearFaults()
		time.Sleep(5500 * time.Millisecond) // a period
		next, err := w.client(lock.Config{}).TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.ErrorIs(t, l.Release(ctx), lock.ErrMaxHold)
		require.NoError(t, next.Release(ctx))
	})
}

// A holder that was asked to release, and hangs, does not hold the lock for longer than MaxHold.
func TestMaxHold_LimitsARevokedHolder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"), lock.MaxHold(time.Minute))
		require.NoError(t, err)
		require.NoError(t, other.Revoke(ctx, lock.Name("report")))
		<-l.Context().Done()
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked)
		bounded, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		next, err := other.Acquire(bounded, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, next.Release(ctx))
	})
}

// The client is closed while the release of a lock that was held for too long waits for a guarded write.
func TestMaxHold_CloseReleasesWhatWasHeldForTooLong(t *testing.T) {
	for name, opts := range map[string][]lock.Option{
		"session": {lock.MaxHold(time.Second)},
		"fixed":   {lock.MaxHold(time.Second), lock.Fixed(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.client(lock.Config{}), w.client(lock.Config{})
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 4 * time.Second, Operation: "TransactWriteItems", Times: 1})
				l, err := c.Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				var group sync.WaitGroup
				group.Go(func() { assert.NoError(t, l.Write(ctx, w.put("x"))) })
				<-l.Context().Done()
				require.NoError(t, c.Close(ctx))
				group.Wait()
				time.Sleep(10 * time.Second)
				r, err := other.Inspect(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.False(t, r.Held(), "Close has returned nil, and the lock is held for an hour")
			})
		})
	}
}

// The release of a lock that was held for too long fails for some seconds, and there is no session that repeats it.
func TestMaxHold_FailedReleaseIsRepeated(t *testing.T) {
	for _, closes := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			c, other := w.client(quiet), w.client(lock.Config{})
			l, err := c.Acquire(ctx, lock.Name("report"), lock.MaxHold(time.Second), lock.Fixed(time.Hour))
			require.NoError(t, err)
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Key: w.table.KeyItem(l.Key())})
			time.Sleep(15 * time.Second)
			w.engine.ClearFaults()
			if closes {
				require.NoError(t, c.Close(ctx))
			}
			time.Sleep(time.Minute)
			r, err := other.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			assert.False(t, r.Held(), "closes: %t", closes)
		})
	}
}

// A release on the holder's behalf failed, and then the holder committed: that is no loss.
func TestMaxHold_CommitAfterAFailedReleaseIsNoLoss(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		config := quiet
		config.MaxHold = time.Second
		c := w.client(config)
		var l *lock.Lease
		require.NoError(t, c.Do(ctx, lock.Name("report"), func(_ context.Context, lease *lock.Lease) error {
			l = lease
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key())})
			time.Sleep(7 * time.Second) // between two of the session's attempts to release
			w.engine.ClearFaults()
			return l.Commit(ctx, w.put("x"))
		}), "it was committed")
		require.NoError(t, l.Release(ctx))
		require.ErrorIs(t, l.Commit(ctx, w.put("x")), lock.ErrReleased)
	})
}

// A commit without an answer was not applied. A release on the holder's behalf was, and its answer is lost, too. A caller
// that repeats the commit is not told that the first one was applied.
func TestMaxHold_RepeatedCommitStaysInDoubtAfterItsRelease(t *testing.T) {
	for again, use := range map[string]func(*lock.Lease, context.Context, ...table.Op) error{
		"Commit": (*lock.Lease).Commit, "Write": (*lock.Lease).Write,
		"Release": func(l *lock.Lease, ctx context.Context, _ ...table.Op) error { return l.Release(ctx) },
		"SetData": func(l *lock.Lease, ctx context.Context, _ ...table.Op) error { return l.SetData(ctx, "x") },
	} {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(quiet)
			l, err := c.Acquire(ctx, lock.Name("report"), lock.MaxHold(time.Second))
			require.NoError(t, err)
			w.engine.Inject(
				tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems"},
				tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key())},
			)
			short, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			require.ErrorIs(t, l.Commit(short, w.put("x")), context.DeadlineExceeded)
			time.Sleep(6900 * time.Millisecond) // between two of the session's attempts to release
			w.engine.ClearFaults()
			err = use(l, ctx, w.put("x"))
			if again == "Commit" { // nothing but its token answers for the first one (section 4 of the design)
				require.ErrorIs(t, err, table.ErrUnreachable)
			} else {
				require.ErrorIs(t, err, lock.ErrMaxHold, again)
			}
			require.NotErrorIs(t, err, lock.ErrReleased, again)
			_, err = w.table.Get(ctx, w.row("x"), true)
			require.ErrorIs(t, err, table.ErrNotFound, again)
		})
	}
}

// MaxHold counts from the request, since it keeps others out from then on.
func TestMaxHold_CountsFromTheRequest(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(quiet)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, Operation: "UpdateItem", Times: 1, For: 1500 * time.Millisecond})
				start := time.Now()
				l, err := c.Acquire(ctx, lock.Name("report"), append(opts, lock.MaxHold(5*time.Second))...)
				require.NoError(t, err)
				require.Equal(t, 1500*time.Millisecond, time.Since(start))
				<-l.Context().Done()
				assert.Equal(t, 5*time.Second, time.Since(start))
				require.ErrorIs(t, context.Cause(l.Context()), lock.ErrMaxHold)
			})
		})
	}
}

// The time for which the machine was suspended counts, as for the lease.
func TestMaxHold_CountsASuspension(t *testing.T) {
	for name, opts := range map[string][]lock.Option{"session": nil, "fixed": {lock.Fixed(time.Hour)}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wall := &wallClock{}
				c := w.client(lock.Config{Logger: quiet.Logger, Lease: time.Hour}, table.WithClock(wall.now))
				l, err := c.Acquire(ctx, lock.Name("report"), append(opts, lock.MaxHold(5*time.Minute))...)
				require.NoError(t, err)
				wall.jump(20 * time.Minute)
				time.Sleep(2 * time.Second)
				assert.ErrorIs(t, context.Cause(l.Context()), lock.ErrMaxHold)
			})
		})
	}
}

// A release that began in time is no loss, though it is answered later.
func TestMaxHold_ReleaseThatBeganInTimeIsNoLoss(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"), lock.MaxHold(2*time.Second))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{
			Kind: tabletest.Delay, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), For: 300 * time.Millisecond,
		})
		time.Sleep(1900 * time.Millisecond)
		assert.NoError(t, l.Release(ctx))
	})
}

// A lock whose release has failed is not held for longer than MaxHold either.
func TestMaxHold_EndsWhatAFailedReleaseHasLeft(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"), lock.MaxHold(time.Minute), lock.Fixed(time.Hour))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Key: w.table.KeyItem(l.Key())})
		require.ErrorIs(t, l.Release(ctx), table.ErrThrottled)
		w.engine.ClearFaults()
		time.Sleep(5 * time.Minute)
		w.free(ctx, []lock.Target{lock.Name("report")})
	})
}

func TestMaxHold_OfTheGreatestLength(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"), lock.MaxHold(math.MaxInt64))
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.NoError(t, l.Context().Err())
		require.NoError(t, l.Commit(ctx, w.put("x")))
	})
}
