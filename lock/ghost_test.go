package lock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// freeOfGhost is F19: a lease of 20 s and a period of 5 s, which has a jitter of 10 %, two looks, which are up to 0.8 s
// apart, and what 1,000 questions and their answers take.
const freeOfGhost = 27500 * time.Millisecond

// A holder that was asked about its ticket once is asked again when that ticket returns, late, under a greater fence.
func TestGhost_HolderIsAskedAgainUnderAGreaterFence(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b, c := w.client(quiet), w.client(quiet), w.client(quiet)
		_, err := a.Acquire(ctx, lock.Name("other")) // the session goes on
		require.NoError(t, err)
		waiting, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		go func() { _, _ = c.Acquire(waiting, lock.Name("other")) }() // c remembers what it has asked
		// The ghost arrives with the release of next, so that no answer to an earlier question removes it.
		w.engine.Inject(tabletest.Fault{
			Kind: tabletest.DropRequest, Times: 1, For: 41*time.Second - time.Millisecond, Key: w.table.KeyItem(keys.NewKey("LOCK#report", "LOCK#report")),
		})
		began := time.Now()
		l, err := a.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.AfterFunc(time.Until(began.Add(40*time.Second+200*time.Millisecond)), func() { assert.NoError(t, l.Release(ctx)) })
		next, err := c.Acquire(waiting, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(time.Until(began.Add(41 * time.Second)))
		require.NoError(t, next.Release(ctx))
		time.Sleep(10 * time.Millisecond)
		r, err := b.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.Equal(t, l.Ticket(), r.Holder().Ticket, "the ghost is there")
		require.Less(t, l.Fence(), r.Fence)
		start := time.Now()
		next, err = c.Acquire(waiting, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, next.Release(ctx))
		assert.Less(t, time.Since(start), freeOfGhost)
		cancel()
		time.Sleep(time.Second)
	})
}

// A ghost has the ticket of a lease that its holder still knows. A holder that is asked then reads the row: nobody would
// ask again once the lease is forgotten.
func TestGhost_OfALeaseThatIsStillKnownIsLookedAt(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b, c := w.client(lock.Config{}), w.client(lock.Config{}), w.client(lock.Config{})
		_, err := a.Acquire(ctx, lock.Name("other")) // the session goes on
		require.NoError(t, err)
		const late = 5 * time.Second
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Call: 1, For: late})
		began := time.Now()
		l, err := a.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems", Times: 1})
		short, stop := context.WithTimeout(ctx, time.Millisecond)
		defer stop()
		require.ErrorIs(t, l.Commit(short, w.count("n")), context.DeadlineExceeded)
		o, err := b.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, o.Release(ctx))
		time.Sleep(time.Until(began.Add(late + time.Millisecond)))
		r, err := b.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.True(t, r.Held(), "the ghost is there")
		require.Less(t, l.Fence(), r.Fence)
		start := time.Now()
		waiting, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		_, err = c.Acquire(waiting, lock.Name("report"))
		require.NoError(t, err)
		assert.Less(t, time.Since(start), freeOfGhost)
		require.ErrorIs(t, l.Commit(ctx, w.count("n")), table.ErrUnreachable, "whether the first was applied is not known")
		assert.EqualValues(t, 1, w.counted("n"))
	})
}

// A holder is asked about its ticket under another fence, and finds that its row was deleted by hand. It has lost the lock.
func TestGhost_OfARowThatIsGone(t *testing.T) {
	for _, change := range []func(key keys.Key) table.Op{
		table.Delete, func(key keys.Key) table.Op { return table.Update(key, table.Attr("type").Set("Order")) },
	} {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(quiet)
			require.NoError(t, errOf(c.Acquire(ctx, lock.Name("other")))) // the session goes on
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			question, err := json.Marshal(map[string]any{"Kind": "claim", "Ticket": l.Ticket(), "Fence": l.Fence() + 2, "Key": l.Key()})
			require.NoError(t, err)
			require.NoError(t, w.table.Write(ctx, change(l.Key()), table.Update(sessionKey(c), table.Attr("ask").Set(&types.AttributeValueMemberSS{Value: []string{string(question)}}))))
			time.Sleep(11 * time.Second)
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
			item, err := w.table.Get(ctx, sessionKey(c), true)
			require.NoError(t, err)
			assert.NotContains(t, item, "ask", "it is answered")
		})
	}
}

// A question is asked again while a renewal removes the one that was answered. It is answered, too, and if that answer
// fails, it is answered again.
func TestRevoke_QuestionIsNotRemovedUnanswered(t *testing.T) {
	for _, fails := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			wire := &line{to: w.engine.HTTPClient()}
			a := w.clientOver(wire, lock.Config{})
			c := w.client(lock.Config{Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Second) }})
			_, err := a.Acquire(ctx, lock.Name("other"))
			require.NoError(t, err)
			l, err := a.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			ghost, err := w.table.Get(ctx, l.Key(), true)
			require.NoError(t, err)
			session := func() (asked bool, beat int64) {
				item, err := w.table.Get(ctx, sessionKey(a), true)
				require.NoError(t, err)
				_, asked = item["ask"].(*types.AttributeValueMemberSS)
				return asked, number(t, item["beat"])
			}
			start, got := time.Now(), make(chan time.Duration, 1)
			waiting, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			go func() {
				_, err := c.Acquire(waiting, lock.Name("report"))
				assert.NoError(t, err)
				got <- time.Since(start)
			}()
			asked, beat := session()
			for ; !asked; asked, beat = session() {
				time.Sleep(10 * time.Millisecond)
			}
			for before := beat; beat == before; _, beat = session() {
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(10 * time.Millisecond) // answered: it is held
			now, err := w.table.Get(ctx, l.Key(), true)
			require.NoError(t, err)
			ghost["line"] = now["line"] // as if l had been released, and an attempt of its acquisition had come late, before c's
			require.NoError(t, l.Release(ctx))
			ghost["fence"] = numeral(l.Fence() + 2)
			require.NoError(t, w.table.Write(ctx, table.Put(ghost)))
			time.Sleep(12 * time.Second)
			wire.cut(refused)
			time.Sleep(10 * time.Second) // c asks again
			asked, _ = session()
			require.True(t, asked)
			if fails {
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, For: 240 * time.Hour, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 1})
			}
			wire.cut(open)
			require.Less(t, <-got, time.Minute)
		})
	}
}

// A ghost of an old lease's acquire does not cause the old lease to be renewed after others have held the lock.
func TestGhost_DoesNotRenewAnOldLease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, op := w.client(lock.Config{}), w.client(lock.Config{})
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Call: 1, For: time.Minute})
		l, err := a.Acquire(ctx, lock.Name("report"), lock.Fixed(10*time.Minute))
		require.NoError(t, err)
		w.force(ctx, op, lock.Name("report"))
		o, err := op.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, o.Release(ctx))
		time.Sleep(2 * time.Minute)
		err = l.Renew(ctx)
		assert.ErrorIs(t, err, lock.ErrLost)
	})
}

// A waiter for a Fixed lease removes a ghost of its own process's session. Nobody else would: the session is alive.
func TestGhost_IsRemovedByAFixedWaiterOfItsProcess(t *testing.T) {
	fixed := lock.Fixed(20 * time.Second)
	for name, acquire := range map[string]func(ctx context.Context, c *lock.Client) error{
		"one": func(ctx context.Context, c *lock.Client) error {
			_, err := c.Acquire(ctx, names(2)[1], fixed)
			return err
		},
		"several": func(ctx context.Context, c *lock.Client) error {
			_, err := c.AcquireAll(ctx, names(2), fixed)
			return err
		},
		"at once": func(ctx context.Context, c *lock.Client) error {
			_, err := c.TryAcquire(ctx, names(2)[1], fixed)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{})
				_, err := c.Acquire(ctx, lock.Name("keeps the session"))
				require.NoError(t, err)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", Key: w.table.KeyItem(keys.NewKey("LOCK#n01", "LOCK#n01")), Times: 1, For: time.Minute})
				for range 2 { // a row that names the first as released would refuse it
					l, err := c.Acquire(ctx, names(2)[1])
					require.NoError(t, err)
					require.NoError(t, l.Release(ctx))
				}
				time.Sleep(2 * time.Minute)
				r, err := c.Inspect(ctx, names(2)[1])
				require.NoError(t, err)
				require.True(t, r.Held(), "by a ghost")
				waiting, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				start := time.Now()
				require.NoError(t, acquire(waiting, c))
				assert.Less(t, time.Since(start), 2*time.Second)
			})
		})
	}
}

// F19, while others of the same process wait: a ghost of the own session is found.
func TestGhost_OfTheOwnSessionIsFoundByAWaiter(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Call: 1, For: time.Minute})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		keep, err := c.Acquire(ctx, lock.Name("keeps the session"))
		require.NoError(t, err)
		l, err = other.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(50 * time.Second)
		got := acquireAsync(ctx, c, lock.Name("report"))
		time.Sleep(7 * time.Second)
		// Free exactly when the ghost arrives, and before the waiter looks.
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "BatchGetItem"})
		time.Sleep(time.Second)
		require.NoError(t, l.Release(ctx))
		time.Sleep(3 * time.Second)
		w.engine.ClearFaults()
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.True(t, r.Held(), "by a ghost")
		start := time.Now()
		select {
		case next := <-got:
			require.NotNil(t, next)
			require.NoError(t, next.Release(ctx))
		case <-time.After(time.Minute):
			t.Fatal("waits for a ghost of its own process")
		}
		assert.LessOrEqual(t, time.Since(start), 25*time.Second)
		require.NoError(t, keep.Release(ctx))
	})
}

// The same where each call gives up long before it has waited for a lease, and the next one comes later.
func TestGhost_IsFoundByCallsThatGiveUpSoon(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		require.NoError(t, errOf(c.Acquire(ctx, lock.Name("keeps the session"))))
		w.ghostOf(ctx, c, lock.Name("report"))
		assert.Less(t, untilGranted(ctx, other, lock.Name("report")), freeOfGhost+6*time.Second)
	})
}

// untilGranted is how long it takes until one of many calls gets the lock, each of which gives up after 5 s.
func untilGranted(ctx context.Context, c *lock.Client, target lock.Target) time.Duration {
	start := time.Now()
	for time.Since(start) < 10*time.Minute {
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := c.Acquire(short, target)
		cancel()
		if err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	return time.Since(start)
}

// The same where nobody waits: each call is a try.
func TestGhost_IsFoundByTriesAlone(t *testing.T) {
	for name, try := range map[string]func(ctx context.Context, c *lock.Client) error{
		"TryAcquire": func(ctx context.Context, c *lock.Client) error { return errOf(c.TryAcquire(ctx, lock.Name("report"))) },
		"TryAcquireAll": func(ctx context.Context, c *lock.Client) error {
			return errOf(c.TryAcquireAll(ctx, []lock.Target{lock.Name("other"), lock.Name("report")}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.client(lock.Config{}), w.client(lock.Config{})
				require.NoError(t, errOf(c.Acquire(ctx, lock.Name("keeps the session"))))
				w.ghostOf(ctx, c, lock.Name("report"))
				require.ErrorIs(t, try(ctx, other), lock.ErrHeld)
				time.Sleep(5 * time.Minute)
				require.ErrorIs(t, try(ctx, other), lock.ErrHeld, "the first try that knows that the ticket has held for long")
				time.Sleep(5 * time.Minute)
				require.NoError(t, try(ctx, other))
			})
		})
	}
}

// A ghost of a writer behind a reader that lives keeps other readers out.
func TestGhost_OfAWriterIsFoundByReadersThatTry(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		reads, c, other := w.client(lock.Config{}), w.client(lock.Config{}), w.client(lock.Config{})
		require.NoError(t, errOf(c.Acquire(ctx, lock.Name("keeps the session"))))
		l, err := reads.Acquire(ctx, lock.Name("report"), lock.Shared())
		require.NoError(t, err)
		waiting, cancel := context.WithCancel(ctx)
		var group sync.WaitGroup
		group.Go(func() { assert.ErrorIs(t, errOf(c.Acquire(waiting, lock.Name("report"))), context.Canceled) })
		time.Sleep(2 * time.Second)
		ghost, err := w.table.Get(ctx, l.Key(), true)
		require.NoError(t, err)
		cancel()
		group.Wait()
		require.NoError(t, w.table.Write(ctx, table.Put(ghost)))
		for range 2 {
			require.ErrorIs(t, errOf(other.TryAcquire(ctx, lock.Name("report"), lock.Shared())), lock.ErrHeld)
			time.Sleep(5 * time.Minute)
		}
		require.NoError(t, errOf(other.TryAcquire(ctx, lock.Name("report"), lock.Shared())))
	})
}

// A holder that lives may hold for days, so few of many tries ask it.
func TestTry_SeldomAsksAHolder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		require.NoError(t, errOf(w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))))
		questions := 0
		other := w.clientOver(w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
			if operation == "UpdateItem" && strings.Contains(body, `\"claim\"`) {
				questions++
			}
			return send()
		}), lock.Config{})
		const tries = 200
		for range tries {
			require.ErrorIs(t, errOf(other.TryAcquire(ctx, lock.Name("report"))), lock.ErrHeld)
			time.Sleep(time.Minute)
		}
		assert.Equal(t, 8, questions, "after 1, 2, 4, 8, 16, 32, 64 and 128 minutes")
	})
}

// F19. Also where the session goes on because other locks depend on it.
func TestGhostAcquire(t *testing.T) {
	for _, late := range []time.Duration{5 * time.Second, time.Minute} {
		for _, holders := range []int{0, 1, 3} {
			for _, busy := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v late, %d holders in between, session goes on %v", late, holders, busy), func(t *testing.T) {
					virtual(t, func(ctx context.Context, w *world) {
						w.ghost(ctx, late, holders, busy)
					})
				})
			}
		}
	}
}

// F19: a request that is applied again after its ticket has left the line leaves a ticket that nobody uses. However many
// of them one process has, each is gone within a lease and a period.
func TestGhost_IsGoneWithinALeaseAndAPeriod(t *testing.T) {
	const late = 30 * time.Second
	for _, n := range []int{1, testkit.IfSmall(100, 1000)} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.client(quiet), w.client(quiet)
				keeps, err := c.Acquire(ctx, lock.Name("keeps the session"))
				require.NoError(t, err)
				w.latency(2 * time.Millisecond)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", When: ofLocks, For: late})
				targets := names(n)
				list := make([]*lock.Lease, n)
				for i := range list {
					list[i], err = c.Acquire(ctx, targets[i])
					require.NoError(t, err)
				}
				w.engine.ClearFaults()
				w.latency(2 * time.Millisecond)
				for _, l := range list {
					require.NoError(t, l.Release(ctx))
				}
				time.Sleep(late + time.Second)
				ghosts := 0
				for _, target := range targets {
					r, err := other.Inspect(ctx, target)
					require.NoError(t, err)
					if r.Held() {
						ghosts++
					}
				}
				require.Positive(t, ghosts, "they are there")
				t.Logf("%d of %d locks are held by a ghost", ghosts, n)

				start := time.Now()
				waiting, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				var all sync.WaitGroup
				var mu sync.Mutex
				var took time.Duration
				for i, target := range targets {
					all.Go(func() {
						l, err := other.Acquire(waiting, target)
						if !assert.NoError(t, err) {
							return
						}
						assert.Greater(t, l.Fence(), list[i].Fence())
						mu.Lock()
						defer mu.Unlock()
						took = max(took, time.Since(start))
					})
				}
				all.Wait()
				testkit.Check(t, fmt.Sprintf("F19, %d ghosts", n), testkit.AtMost(took, " until all are gone", freeOfGhost))
				require.NoError(t, context.Cause(keeps.Context()), "their process has lost nothing else")
				require.ErrorIs(t, list[0].Write(ctx, w.put("x")), lock.ErrReleased)
			})
		})
	}
}

// A request of a former holder arrives again after others have held the lock, and puts its ticket into the line again. The
// old lease gets nothing back by that.
func TestGhost_GivesAnOldLeaseNothingBack(t *testing.T) {
	for _, does := range []string{"write", "guard", "set data", "commit", "release"} {
		ghostGivesNothingBack(t, does, false)
		ghostGivesNothingBack(t, does, true) // the ghost was freed, for somebody who has waited for it
	}
}

// Nor can the old lease, whose holder has not been told, pass the lock to a waiter that has not looked since.
func TestGhost_PassesNoLock(t *testing.T) {
	for _, commits := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			c, op := w.client(lock.Config{}), w.client(lock.Config{})
			w.engine.ResetRequests()
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Call: 1, For: 5 * time.Second})
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			got := acquireAsync(ctx, c, lock.Name("report"))
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "BatchGetItem"})
			r := w.ghosted(ctx, op, l, 6*time.Second)
			require.Empty(t, got)
			if commits {
				require.ErrorIs(t, l.Commit(ctx, w.put("x")), lock.ErrLost)
				_, err := w.table.Get(ctx, w.row("x"), true)
				require.ErrorIs(t, err, table.ErrNotFound, "others have held the lock since")
			} else {
				require.ErrorIs(t, l.Release(ctx), lock.ErrLost)
			}
			w.engine.ClearFaults()
			next := <-got
			require.NotNil(t, next)
			require.Greater(t, next.Fence(), r.Fence)
			require.NoError(t, next.Release(ctx))
		})
	}
}

// ghostOf leaves a ticket of a client's session in the line of a lock that nobody holds, as if a request had come late.
func (w *world) ghostOf(ctx context.Context, c *lock.Client, target lock.Target) {
	w.Helper()
	l, err := c.Acquire(ctx, target)
	require.NoError(w, err)
	ghost, err := w.table.Get(ctx, l.Key(), true)
	require.NoError(w, err)
	require.NoError(w, l.Release(ctx))
	ghost["fence"] = numeral(l.Fence() + 2)
	require.NoError(w, w.table.Write(ctx, table.Put(ghost)))
}

// A process holds many locks, for each of which another one waits, and is asked for all of them.
func TestGhost_BesideManyHeldLocksIsFound(t *testing.T) {
	const n, until = 1050, 45 * time.Second // one of the looks, every 5 s, shows that it is gone
	virtual(t, func(ctx context.Context, w *world) {
		w.guardian = nil
		config := quiet
		config.Backoff = every(5 * time.Second)
		c, other := w.client(quiet), w.client(config)
		waiting, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		targets := names(n)
		for _, target := range targets {
			require.NoError(t, errOf(c.Acquire(ctx, target)))
		}
		w.ghostOf(ctx, c, lock.Name("ghost"))
		start := time.Now()
		for _, target := range targets {
			go func() { _, _ = other.Acquire(waiting, target) }()
		}
		time.Sleep(time.Second)
		bounded, stop := context.WithTimeout(ctx, 10*time.Minute)
		defer stop()
		next, err := other.Acquire(bounded, lock.Name("ghost"))
		require.NoError(t, err)
		assert.Less(t, time.Since(start), until)
		require.NoError(t, next.Release(ctx))
		cancel()
		time.Sleep(time.Minute)
	})
}

// Ghosts whose rows cannot be read do not keep one from being removed whose question comes after theirs.
func TestGhost_BesideGhostsThatCannotBeReadIsRemoved(t *testing.T) {
	for _, n := range []int{4, 90} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				w.guardian = nil
				c, other, targets := w.client(quiet), w.client(quiet), names(n+1)
				require.NoError(t, errOf(c.Acquire(ctx, lock.Name("keeps the session"))))
				for i, target := range targets {
					w.ghostOf(ctx, c, target)
					if i < n {
						w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Operation: "GetItem", Key: w.table.KeyItem(w.lockKey(target.Name()))})
					}
				}
				waiting, stop := context.WithCancel(ctx)
				defer stop()
				for _, target := range targets[:n] {
					go func() { _, _ = other.Acquire(waiting, target) }()
				}
				start := time.Now()
				l := <-acquireFor(ctx, 10*time.Minute, other, targets[n])
				w.engine.ClearFaults()
				assert.Less(t, time.Since(start), time.Minute)
				require.NotNil(t, l)
				require.NoError(t, l.Release(ctx))
				stop()
				time.Sleep(time.Minute)
			})
		})
	}
}
