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

// After 16 passes in a row, by releases or by commits, another process gets its turn.
func TestHandoffs_OtherProcessesGetTheirTurn(t *testing.T) {
	for name, give := range map[string]func(ctx context.Context, w *world, l *lock.Lease) error{
		"Release": func(ctx context.Context, _ *world, l *lock.Lease) error { return l.Release(ctx) },
		"Commit":  func(ctx context.Context, w *world, l *lock.Lease) error { return l.Commit(ctx, w.count("n")) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.client(lock.Config{}), w.client(lock.Config{Backoff: every(20 * time.Millisecond)})
				first, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				var wait sync.WaitGroup
				var mu sync.Mutex
				served, before := 0, -1
				for range 100 {
					wait.Go(func() {
						l, err := c.Acquire(ctx, lock.Name("report"))
						if !assert.NoError(t, err) {
							return
						}
						time.Sleep(50 * time.Millisecond)
						mu.Lock()
						served++
						mu.Unlock()
						assert.NoError(t, give(ctx, w, l))
					})
				}
				time.Sleep(time.Second)
				wait.Go(func() {
					l, err := other.Acquire(ctx, lock.Name("report"))
					if !assert.NoError(t, err) {
						return
					}
					mu.Lock()
					before = served
					mu.Unlock()
					assert.NoError(t, l.Release(ctx))
				})
				time.Sleep(time.Second)
				require.NoError(t, give(ctx, w, first))
				wait.Wait()
				t.Logf("another process got its turn after %d hand-overs (goal 16)", before)
				assert.Equal(t, 16, before)
				assert.Equal(t, 100, served)
			})
		})
	}
}

// A goroutine that finds itself first by a pass whose answer was lost goes on counting: after Config.Handoffs in a row the
// lock is released, so that others get their turn.
func TestHandoffs_AreCountedThroughLostAnswers(t *testing.T) {
	const handoffs = 2
	virtual(t, func(ctx context.Context, w *world) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		c, other := w.client(lock.Config{Handoffs: handoffs}), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		theirs := acquireAsync(ctx, other, lock.Name("report"))
		waiters := make([]<-chan *lock.Lease, handoffs+1)
		for i := range waiters {
			waiters[i] = acquireAsync(ctx, c, lock.Name("report"))
		}
		for i, waiter := range waiters {
			if i < handoffs {
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Key: w.table.KeyItem(l.Key()), Operation: "UpdateItem"})
				require.Error(t, l.Release(ctx))
				w.engine.ClearFaults()
			} else {
				require.NoError(t, l.Release(ctx))
			}
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.Equal(t, i < handoffs, r.Holder().Session == lock.SessionID(c), "release %d", i+1)
			if i == handoffs {
				o := <-theirs
				require.NotNil(t, o)
				require.NoError(t, o.Release(ctx))
			}
			l = <-waiter
			require.NotNil(t, l)
		}
		require.NoError(t, l.Release(ctx))
	})
}

// A pass failed in the network, and is delivered again later. It leaves a ticket that nobody claims. The intended target
// gets the lock once that ticket's lease has ended, and others after it.
func TestPass_LateDuplicateOfAFailedPassDelaysByALease(t *testing.T) {
	const late, length = 2 * time.Second, 20 * time.Second
	virtual(t, func(ctx context.Context, w *world) {
		waiting, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		c, other := w.client(quiet), w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		first, leave := context.WithCancel(ctx)
		acquireAsync(first, c, lock.Name("report"))
		waiter := acquireAsync(waiting, c, lock.Name("report"), lock.Fixed(length))
		leave()
		time.Sleep(time.Second)
		row := w.table.KeyItem(l.Key())
		w.engine.Inject(
			tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", Key: row, Times: 1, For: late},
			tabletest.Fault{Kind: tabletest.ExpiredCredentials, Operation: "UpdateItem", Key: row, Times: 1},
		)
		start := time.Now()
		require.Error(t, l.Release(ctx))
		mine := <-waiter
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

// A lock was passed without an answer, and no goroutine claims the ticket. The ticket is removed once the lease is over that
// passed it. No renewal of a session finds out here: there is no session, or the lease is Fixed.
func TestPass_WithoutAnAnswerIsRemovedWhenTheLeaseEnds(t *testing.T) {
	const length = 20 * time.Second
	for name, opts := range leases() {
		for to, toOpts := range leases() {
			t.Run(name+" to "+to, func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					waiting, cancel := context.WithTimeout(ctx, time.Hour)
					defer cancel()
					c, other := w.client(quiet), w.client(quiet)
					_, err := c.Acquire(ctx, lock.Name("keeps the session"))
					require.NoError(t, err)
					l, err := c.Acquire(ctx, lock.Name("report"), opts...)
					require.NoError(t, err)
					got := acquireAsync(waiting, c, lock.Name("report"), toOpts...)
					w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
					short, stop := context.WithTimeout(ctx, time.Second)
					defer stop()
					require.ErrorIs(t, l.Commit(short, w.count("n")), context.DeadlineExceeded)
					w.engine.ClearFaults()
					start := time.Now()
					next := <-got
					require.NotNil(t, next)
					assert.LessOrEqual(t, time.Since(start), 2*length+6*time.Second)
					require.NoError(t, next.Write(ctx, w.count("n")))
					require.NoError(t, next.Release(ctx))
					last, err := other.Acquire(waiting, lock.Name("report"))
					require.NoError(t, err)
					require.NoError(t, last.Release(ctx))
				})
			})
		}
	}
}

// A commit that passed the lock has no answer, and its caller does not repeat it. The target of the pass recognises its own
// lease.
func TestPass_WithoutAnAnswerIsRecognisedByItsTarget(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		first, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := acquireAsync(ctx, c, lock.Name("report"))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.Error(t, first.Commit(short, w.put("x")))
		w.engine.ClearFaults()
		start := time.Now()
		next := <-got
		require.NotNil(t, next)
		assert.LessOrEqual(t, time.Since(start), 6*time.Second)
		assert.Equal(t, first.Fence()+1, next.Fence())
		require.NoError(t, next.Write(ctx, w.put("x")))
		require.NoError(t, next.Release(ctx))
	})
}

// A commit may have passed the lock although its answer was lost. If the target has stopped waiting meanwhile, the holder's
// release frees the lock.
func TestPass_ToATargetThatHasLeftIsReleasedByTheHolder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		waiting, leave := context.WithTimeout(ctx, 2*time.Second)
		defer leave()
		left := outcome(waiting, c, lock.Name("report"))
		time.Sleep(time.Second)
		require.Equal(t, 1, lock.Queued(c, l.Key()))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		require.ErrorIs(t, l.Commit(short, w.put("x")), context.DeadlineExceeded)
		require.ErrorIs(t, <-left, context.DeadlineExceeded)
		w.engine.ClearFaults()
		require.NoError(t, l.Release(ctx))
		time.Sleep(time.Second)
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.False(t, r.Held())
	})
}

// A pass had no answer, and its target finds its own ticket in the row. Nobody else in its process takes that ticket for a
// ghost meanwhile and removes it: the lease would go on while others acquire.
func TestPass_TargetThatRecognisesItselfIsNotTakenForAGhost(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		slow := &slowRelease{to: w.engine.HTTPClient(), by: 300 * time.Millisecond}
		c := w.clientOver(&line{to: slow}, lock.Config{})
		w.latency(10 * time.Millisecond)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		waiter := make(chan *lock.Lease, 1)
		go func() {
			waiting, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			next, err := c.Acquire(waiting, lock.Name("report"))
			assert.NoError(t, err)
			waiter <- next
		}()
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 1, lock.Queued(c, l.Key()))
		w.engine.ClearFaults()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		w.latency(10 * time.Millisecond)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		slow.armed.Store(true)
		time.AfterFunc(995*time.Millisecond, func() {
			_, err := c.TryAcquire(ctx, lock.Name("report"))
			assert.ErrorIs(t, err, lock.ErrHeld)
		})
		require.ErrorIs(t, l.Commit(short, w.put("x")), context.DeadlineExceeded)
		next := <-waiter
		if next == nil {
			return // reported already
		}
		w.engine.ClearFaults()
		time.Sleep(2 * time.Minute)
		require.NoError(t, context.Cause(next.Context()))
		require.NoError(t, next.Write(ctx, w.put("y")))
	})
}

// A commit without an answer may have passed the lock. The goroutine that waits for it gets it also if the lease ends
// meanwhile.
func TestPass_ByACommitIsServedAfterTheLeaseEnds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		waiting, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		c := w.client(quiet)
		_, err := c.Acquire(ctx, lock.Name("keeps the session"))
		require.NoError(t, err)
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(5*time.Second))
		require.NoError(t, err)
		got := acquireAsync(waiting, c, lock.Name("report"))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		require.ErrorIs(t, l.Commit(ctx, w.count("n")), table.ErrUnreachable)
		w.engine.ClearFaults()
		next := <-got
		require.NotNil(t, next)
		require.NoError(t, next.Release(ctx))
	})
}

// The same if the lock was passed since MaxHold was over.
func TestPass_ByMaxHoldIsServedAfterTheLeaseEnds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		waiting, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		c := w.client(quiet)
		_, err := c.Acquire(ctx, lock.Name("keeps the session"))
		require.NoError(t, err)
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second), lock.MaxHold(5*time.Second))
		require.NoError(t, err)
		got := acquireAsync(waiting, c, lock.Name("report"))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key())})
		time.Sleep(40 * time.Second)
		w.engine.ClearFaults()
		next := <-got
		require.NotNil(t, next)
		require.NoError(t, next.Release(ctx))
	})
}

// passInVain has a goroutine wait for a lease's lock, to which a commit passes it without effect or answer.
func (w *world) passInVain(ctx context.Context, c *lock.Client, l *lock.Lease, kind tabletest.FaultKind) (leave func()) {
	w.Helper()
	waiting, leave := context.WithCancel(ctx)
	acquireAsync(waiting, c, l.Target())
	w.engine.Inject(tabletest.Fault{Kind: kind, Operation: "TransactWriteItems"})
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	require.ErrorIs(w, l.Commit(short, w.put("x")), context.DeadlineExceeded)
	w.engine.ClearFaults()
	return leave
}

// Whatever ends a pass, the session is not renewed once nothing is held.
func TestPass_ThatIsBrokenOffKeepsNoSession(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, w *world, c *lock.Client, l *lock.Lease){
		"the lock is taken by force": func(ctx context.Context, w *world, c *lock.Client, l *lock.Lease) {
			leave := w.passInVain(ctx, c, l, tabletest.DropRequest)
			w.force(ctx, w.client(quiet), l.Target())
			leave()
			<-l.Context().Done()
		},
		"the commit panics": func(ctx context.Context, w *world, c *lock.Client, l *lock.Lease) {
			waiting, leave := context.WithCancel(ctx)
			acquireAsync(waiting, c, l.Target())
			check := table.Check(w.row("x"), table.Attr("pk").Exists()).Explain(func(table.Item) error { panic("of Explain") })
			assert.PanicsWithValue(w, "of Explain", func() { _ = l.Commit(ctx, check) })
			leave()
			time.Sleep(time.Second)
			require.NoError(w, l.Release(ctx))
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(quiet)
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				end(ctx, w, c, l)
				time.Sleep(10 * time.Minute)
				w.engine.ResetRequests()
				time.Sleep(10 * time.Minute)
				assert.Empty(t, w.requestsTo(sessionKey(c).PK))
			})
		})
	}
}

// A goroutine that has left gives a lock back that was passed to it. While that hangs, the session is renewed.
func TestPass_ThatIsGivenBackDelaysNoRenewal(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		config := quiet
		config.Lease = 3 * time.Second
		c := w.client(config)
		other, err := c.Acquire(ctx, lock.Name("other"))
		require.NoError(t, err)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.passInVain(ctx, c, l, tabletest.DropReply)()
		sent := 0
		w.engine.Inject(tabletest.Fault{
			Kind: tabletest.Throttle, Key: w.table.KeyItem(l.Key()), When: func(tabletest.Request) bool { sent++; return sent > 1 },
		})
		time.Sleep(10 * time.Second)
		require.NoError(t, context.Cause(other.Context()))
		w.engine.ClearFaults()
	})
}

// The holder had a long lease of its own. Nobody waits for its end, neither in its process nor in another one.
func TestPass_ByACommitIsServedBeforeALongLeaseEnds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		keeps, err := c.Acquire(ctx, lock.Name("keeps the session"))
		require.NoError(t, err)
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(10*time.Hour))
		require.NoError(t, err)
		waiters := []<-chan *lock.Lease{acquireFor(ctx, 10*time.Minute, c, lock.Name("report"))}
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		require.ErrorIs(t, l.Commit(ctx, w.put("x")), table.ErrUnreachable)
		w.engine.ClearFaults()
		start := time.Now()
		for _, waiter := range append(waiters, acquireFor(ctx, 10*time.Minute, other, lock.Name("report"))) {
			next := <-waiter
			require.NotNil(t, next)
			require.NoError(t, next.Release(ctx))
		}
		assert.Less(t, time.Since(start), time.Minute)
		require.NoError(t, keeps.Release(ctx))
	})
}

// The lock was passed to a goroutine that waits for a Fixed lease. The answer was lost, and the lease of the one that has
// passed it ends in the outage that follows.
func TestPass_ToAFixedWaiterIsServedAfterTheLeaseEnds(t *testing.T) {
	release := func(ctx context.Context, _ *world, l *lock.Lease) error { return l.Release(ctx) }
	commit := func(ctx context.Context, w *world, l *lock.Lease) error { return l.Commit(ctx, w.put("x")) }
	for name, tc := range map[string]struct {
		holder []lock.Option
		give   func(ctx context.Context, w *world, l *lock.Lease) error
	}{
		"released":         {nil, release},
		"Fixed, released":  {[]lock.Option{lock.Fixed(20 * time.Second)}, release},
		"Fixed, committed": {[]lock.Option{lock.Fixed(20 * time.Second)}, commit},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				c := w.clientOver(wire, quiet)
				l, err := c.Acquire(ctx, lock.Name("report"), tc.holder...)
				require.NoError(t, err)
				got := acquireAsync(ctx, c, lock.Name("report"), lock.Fixed(time.Hour))
				wire.cut(unanswered)
				require.Error(t, tc.give(ctx, w, l))
				wire.cut(refused)
				time.Sleep(time.Minute)
				require.Error(t, l.Context().Err())
				wire.cut(open)
				start := time.Now()
				next := <-got
				require.NotNil(t, next)
				assert.LessOrEqual(t, time.Since(start), 40*time.Second)
				require.NoError(t, next.Write(ctx, w.put("y")))
				require.NoError(t, next.Release(ctx))
			})
		})
	}
}
