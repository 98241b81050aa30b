package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// ownersOf are the owners of the tickets in a line, in order.
func ownersOf(line []lock.Place) (owners []string) {
	for _, p := range line {
		owners = append(owners, p.Owner)
	}
	return owners
}

// named is a client whose owner tells it from others.
func (w *world) named(owner string) *lock.Client {
	w.Helper()
	config := quiet
	config.Owner = owner
	return w.client(config)
}

// A refusal, and Inspect, show who holds a lock, who waits for it, in which order, and since when.
func TestLine_IsVisible(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		target := lock.Name("report")
		a, b, c, d := w.named("a"), w.named("b"), w.named("c"), w.named("d")
		start := time.Now()
		holder, err := a.Acquire(ctx, target)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		second := acquireAsync(ctx, b, target)
		again := acquireAsync(ctx, b, target) // one place per process
		time.Sleep(time.Minute)
		waiting, leave := context.WithCancel(ctx)
		defer leave()
		third := acquireAsync(waiting, c, target, lock.Fixed(time.Minute))

		// shown checks that a refusal and Inspect show the same.
		shown := func(fence int64, owners ...string) []lock.Place {
			t.Helper()
			_, err := d.TryAcquire(ctx, target)
			var held *lock.HeldError
			require.ErrorAs(t, err, &held)
			require.Equal(t, owners, ownersOf(held.Line))
			assert.Equal(t, owners[0], held.Owner)
			assert.Equal(t, held.Line[0].Ticket, held.Ticket)
			assert.Equal(t, fence, held.Fence)
			r, err := d.Inspect(ctx, target)
			require.NoError(t, err)
			assert.True(t, r.Held())
			assert.Equal(t, held.Line, r.Line)
			assert.Equal(t, fence, r.Fence)
			listed := 0
			for r, err := range d.List(ctx, lock.In(holder.Key().PK)) {
				require.NoError(t, err)
				assert.Equal(t, held.Line, r.Line)
				listed++
			}
			assert.Equal(t, 1, listed)
			tickets := map[string]bool{}
			for _, p := range held.Line {
				assert.NotEmpty(t, p.Ticket)
				tickets[p.Ticket] = true
			}
			assert.Len(t, tickets, len(owners))
			return held.Line
		}

		line := shown(holder.Fence(), "a", "b", "c")
		assert.Equal(t, []string{lock.SessionID(a), lock.SessionID(b), ""}, []string{line[0].Session, line[1].Session, line[2].Session})
		for i, p := range line {
			assert.WithinDuration(t, start.Add(time.Duration(i)*time.Minute), p.Since, 2*time.Second, "place %d", i)
		}
		_, err = d.TryAcquire(ctx, target)
		assert.Regexp(t, `\b2\b.*wait|wait.*\b2\b`, err.Error(), "it says how many wait")
		assert.NotContains(t, err.Error(), "report")

		require.NoError(t, holder.Release(ctx))
		next := <-second
		require.NotNil(t, next)
		assert.Equal(t, holder.Fence()+1, next.Fence())
		shown(next.Fence(), "b", "c")

		leave()
		require.Nil(t, <-third)
		time.Sleep(time.Second)
		shown(next.Fence(), "b")
		require.NoError(t, next.Release(ctx))
		last := <-again
		require.NotNil(t, last)
		shown(last.Fence(), "b")
		require.NoError(t, last.Release(ctx))

		r, err := d.Inspect(ctx, target)
		require.NoError(t, err)
		assert.False(t, r.Held())
		assert.Empty(t, r.Line)
	})
}

// A waiter that gives up learns who held the lock, and who stood before it.
func TestLine_IsShownToAWaiterThatGivesUp(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		target := lock.Name("report")
		l, err := w.named("a").Acquire(ctx, target)
		require.NoError(t, err)
		before := acquireAsync(ctx, w.named("b"), target)
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err = w.named("c").Acquire(short, target)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var held *lock.HeldError
		require.ErrorAs(t, err, &held)
		require.GreaterOrEqual(t, len(held.Line), 2)
		assert.Equal(t, []string{"a", "b"}, ownersOf(held.Line)[:2])
		require.NoError(t, l.Release(ctx))
		next := <-before
		require.NotNil(t, next)
		require.NoError(t, next.Release(ctx))
	})
}

// However a wait is cut short, its error has the cause, and who held the lock.
func TestLine_WaitThatIsCutShortNamesTheHolder(t *testing.T) {
	for how, why := range map[string]error{"cancelled": context.Canceled, "closed": lock.ErrClosed} {
		t.Run(how, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				_, err := w.named("a").Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				c := w.named("b")
				waiting, cancel := context.WithCancel(ctx)
				defer cancel()
				ended := outcome(waiting, c, lock.Name("report"))
				time.Sleep(time.Minute)
				if how == "cancelled" {
					cancel()
				} else {
					require.NoError(t, c.Close(ctx))
				}
				err = <-ended
				require.ErrorIs(t, err, why)
				var held *lock.HeldError
				require.ErrorAs(t, err, &held)
				assert.Equal(t, "a", held.Owner)
			})
		})
	}
}

// When a wait returns, its ticket has left the line. A caller that tries again at once would otherwise meet itself.
func TestLine_IsLeftBeforeAWaitReturns(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.named("c"), w.named("other")
				b, err := other.AcquireAll(ctx, names(2))
				require.NoError(t, err)
				for how, take := range takers(c, opts...) {
					short, cancel := context.WithTimeout(ctx, time.Minute)
					_, err = take(short)
					cancel()
					require.ErrorIs(t, err, lock.ErrHeld, how)
					for _, target := range names(2) {
						r, err := other.Inspect(ctx, target)
						require.NoError(t, err)
						assert.Equal(t, []string{"other"}, ownersOf(r.Line), how)
					}
					time.Sleep(time.Minute)
				}
				require.NoError(t, b.Release(ctx))
			})
		})
	}
}

// fillLine has 99 callers wait for the first of several locks, behind a holder.
func (w *world) fillLine(ctx context.Context, holder, waits *lock.Client, targets ...lock.Target) {
	w.Helper()
	_, err := holder.Acquire(ctx, targets[0])
	require.NoError(w, err)
	for range 99 {
		go func() { _, _ = waits.AcquireAll(ctx, targets) }()
	}
	time.Sleep(5 * time.Second)
	r, err := holder.Inspect(ctx, targets[0])
	require.NoError(w, err)
	require.Equal(w, 99, r.Waiting())
}

// A goroutine that gives up behind another one of its process, which waits itself, is told who holds the lock.
func TestLine_OfAnotherProcessIsShownWithinTheProcess(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, err := w.named("holder").Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		c := w.client(quiet)
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		acquireAsync(waiting, c, lock.Name("report"))
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err = c.Acquire(short, lock.Name("report"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var held *lock.HeldError
		require.ErrorAs(t, err, &held)
		assert.Equal(t, "holder", held.Owner)
	})
}

// However long it has waited, and however long the leases are.
func TestLine_PlaceBehindOneThatGaveUpIsServedSoon(t *testing.T) {
	for _, lease := range []time.Duration{20 * time.Second, 10 * time.Minute} {
		virtual(t, func(ctx context.Context, w *world) {
			w.guardian = nil
			config := quiet
			config.Lease = lease
			l, err := w.client(config).Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			short, cancel := context.WithCancel(ctx)
			acquireAsync(short, w.client(config), lock.Name("report"))
			got := acquireAsync(ctx, w.client(config), lock.Name("report"))
			time.Sleep(5 * lease)
			cancel()
			time.Sleep(time.Second)
			require.NoError(t, l.Release(ctx))
			start := time.Now()
			next := <-got
			assert.Less(t, time.Since(start), 10*time.Second, "leases of %v", lease)
			require.NoError(t, next.Release(ctx))
		})
	}
}

// Nobody can tell whether the holder of a full line is dead. A call does not wait in front of it for ever.
func TestLine_FullOneOfAMalformedSessionIsReported(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		require.NoError(t, w.table.Write(ctx, table.Put(w.lineRow("report", tickets(100)...))))
		row := w.table.KeyItem(keys.NewKey("SESSION#STRANGER", "SESSION#STRANGER"))
		row["type"] = text("Order")
		require.NoError(t, w.table.Write(ctx, table.Put(row)))
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		err := errOf(w.client(quiet).Acquire(bounded, lock.Name("report")))
		require.ErrorIs(t, err, lock.ErrMalformed)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}
