package lock_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// The local clock decides nothing about a Fixed lease: others count it from DynamoDB's time.
func TestFixed_ClockOfTheHolderIsOff(t *testing.T) {
	for name, by := range map[string]time.Duration{"an hour behind": -time.Hour, "an hour ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				off := table.WithClock(func() time.Time { return time.Now().Add(by) })
				wire := &line{to: w.engine.HTTPClient()}
				l, err := w.clientOver(wire, lock.Config{}, off).Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
				require.NoError(t, err)
				next := w.client(lock.Config{})
				time.Sleep(15 * time.Second)
				require.NoError(t, l.Renew(ctx))
				time.Sleep(15 * time.Second)
				_, err = next.TryAcquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrHeld)
				require.NoError(t, l.Context().Err())

				wire.cut(refused)
				time.Sleep(10 * time.Second)
				_, err = next.TryAcquire(ctx, lock.Name("report"))
				require.NoError(t, err, "it has ended, and its end was recorded")
				assert.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
			})
		})
	}
}

// A holder whose clock is set back, together with the dates of answers, still renews: others see each renewal.
func TestFixed_IsRenewedUnderAClockThatIsSetBack(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var by atomic.Int64
		clock := table.WithClock(func() time.Time { return time.Now().Add(time.Duration(by.Load())) })
		l, err := w.client(lock.Config{}, clock).Acquire(ctx, lock.Name("report"), lock.Fixed(10*time.Second))
		require.NoError(t, err)
		waits := acquireAsync(ctx, w.client(lock.Config{Expiry: lock.ObservedOnly}), lock.Name("report"))
		for i := range 10 {
			time.Sleep(8 * time.Second)
			back := -time.Duration(i+1) * time.Minute
			by.Store(int64(back))
			w.engine.ClearFaults()
			w.engine.Inject(tabletest.Fault{Kind: tabletest.SkewDate, For: back})
			require.NoError(t, l.Renew(ctx))
		}
		require.NoError(t, l.Context().Err())
		require.NoError(t, l.Write(ctx, w.put("a")))
		require.NoError(t, l.Release(ctx))
		require.NotNil(t, <-waits)
	})
}

// A look that takes longer than a lease does not show that the lease has lasted for so long.
func TestFixed_SlowLookIsNoEvidence(t *testing.T) {
	const length, slow = 2 * time.Second, 2500 * time.Millisecond // not too long for a request
	virtual(t, func(ctx context.Context, w *world) {
		waiting, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		target := lock.Name("report")
		held, err := w.client(quiet).Acquire(ctx, target)
		require.NoError(t, err)
		var once atomic.Bool
		behind := w.clientOver(w.passing(func(operation, _ string, send func() (*http.Response, error)) (*http.Response, error) {
			if operation == "BatchGetItem" && once.CompareAndSwap(true, false) {
				time.Sleep(slow - 10*time.Millisecond)
				assert.NoError(t, held.Release(ctx))
				time.Sleep(10 * time.Millisecond)
			}
			return send()
		}), quiet)
		next := acquireAsync(waiting, w.client(quiet), target, lock.Fixed(length))
		last := acquireAsync(waiting, behind, target)
		once.Store(true)

		l := <-next
		require.NotNil(t, l, "the one that waits behind it has taken its place")
		require.NoError(t, context.Cause(l.Context()))
		require.NotNil(t, <-last)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired, "told before another one was let in")
	})
}

// A waiter whose ticket was taken away when it had come to hold, before its lease was renewed, waits again.
func TestFixed_WaiterThatLosesItsTurnBeforeItsLeaseWaitsAgain(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		op := w.client(quiet)
		held, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		var taken atomic.Bool
		c := w.clientOver(w.passing(func(_, body string, send func() (*http.Response, error)) (*http.Response, error) {
			if strings.Contains(body, `"renewed"`) && !taken.Swap(true) {
				w.force(ctx, op, lock.Name("report"))
			}
			return send()
		}), quiet)
		mine := acquireFor(ctx, time.Minute, c, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, held.Release(ctx))
		l := <-mine
		require.NotNil(t, l)
		require.True(t, taken.Load())
		assert.Equal(t, held.Fence()+2, l.Fence())
		require.NoError(t, l.Commit(ctx, w.put("x")))
	})
}

// A waiter that loses its turn before it has its lease does not get one under the fence of the next holder.
func TestFixed_WaiterThatLosesItsTurnKeepsToItsFence(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		target, op := lock.Name("report"), w.client(quiet)
		held, err := w.client(quiet).Acquire(ctx, target)
		require.NoError(t, err)
		var renewed atomic.Bool
		c := w.clientOver(w.passing(func(_, body string, send func() (*http.Response, error)) (*http.Response, error) {
			answer, err := send()
			if strings.Contains(body, `"renewed"`) && !renewed.Swap(true) {
				w.force(ctx, op, target)
				time.Sleep(2 * time.Second) // the next one takes its turn meanwhile
			}
			return answer, err
		}), quiet)
		mine := acquireAsync(ctx, c, target, lock.Fixed(20*time.Second))
		next := acquireAsync(ctx, w.client(quiet), target)
		require.NoError(t, held.Release(ctx))

		other := <-next
		time.Sleep(5 * time.Second)
		require.True(t, renewed.Load())
		if l := <-mine; l != nil {
			assert.Less(t, l.Fence(), other.Fence())
			require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
		}
		require.NoError(t, other.Write(ctx, w.put("x")), "it holds the lock")
		require.NoError(t, other.Release(ctx))
	})
}

// A lease that is shorter than the time between two looks of its waiter keeps its turn until the waiter has noticed it.
func TestFixed_ShortLeaseKeepsItsTurn(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		target, first, next := lock.Name("report"), w.client(quiet), w.client(quiet)
		often := quiet
		often.Backoff = func() backoff.BackOff { return backoff.NewConstantBackOff(10 * time.Millisecond) }
		last := w.client(often)
		for range testkit.IfSmall(3, 10) {
			held, err := first.Acquire(ctx, target)
			require.NoError(t, err)
			short := acquireAsync(ctx, next, target, lock.Fixed(lock.MinFixed))
			behind := acquireAsync(ctx, last, target)
			time.Sleep(10 * time.Second)
			require.NoError(t, held.Release(ctx))
			l := <-behind
			require.Len(t, short, 1, "it was first")
			assert.Less(t, (<-short).Fence(), l.Fence())
			require.NoError(t, l.Release(ctx))
		}
	})
}

// A Fixed lease counts from its request, however long the answer takes.
func TestFixed_CountsFromTheRequest(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Margin: time.Millisecond})
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, Operation: "UpdateItem", Times: 1, For: 1500 * time.Millisecond})
		start := time.Now()
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		assert.LessOrEqual(t, l.Remaining(), 20*time.Second-time.Since(start))
		require.NoError(t, l.Release(ctx))
	})
}

// A waiter for a Fixed lease, which has no session, does not wait for its own ticket that arrived late.
func TestFixed_WaiterRecognisesItsLateRequest(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Call: 1, For: 10 * time.Second})
		start := time.Now()
		got := make(chan time.Duration, 1)
		go func() {
			waiting, cancel := context.WithTimeout(ctx, 3*time.Hour)
			defer cancel()
			next, err := c.Acquire(waiting, lock.Name("report"), lock.Fixed(time.Hour))
			assert.NoError(t, err)
			got <- time.Since(start)
			if err == nil {
				_ = next.Release(ctx)
			}
		}()
		time.Sleep(9 * time.Second)
		// The next look sees the late request after it was seen here.
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 1100 * time.Millisecond, Operation: "BatchGetItem", Times: 1})
		time.Sleep(time.Until(start.Add(9*time.Second + 990*time.Millisecond)))
		require.NoError(t, l.Release(ctx))
		time.Sleep(20 * time.Millisecond)
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.True(t, r.Held(), "the attempt has come in")
		took := <-got
		require.Less(t, took, time.Minute)
	})
}

// The same for the target of a pass.
func TestFixed_TargetOfAPassRecognisesItself(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		start := time.Now()
		got := make(chan time.Duration, 1)
		go func() {
			next, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
			assert.NoError(t, err)
			got <- time.Since(start)
			if err == nil {
				_ = next.Release(ctx)
			}
		}()
		time.Sleep(500 * time.Millisecond)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.Error(t, l.Commit(short, w.put("x")))
		w.engine.ClearFaults()
		require.Less(t, <-got, time.Minute)
	})
}

// The lease of a pass begins with the commit that passed the lock, and not with the release that finds it passed.
func TestFixed_LeaseOfAPassBeginsWithTheCommit(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := make(chan *lock.Lease, 1)
		go func() {
			next, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
			assert.NoError(t, err)
			got <- next
		}()
		time.Sleep(500 * time.Millisecond)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.Error(t, l.Commit(short, w.put("x")))
		w.engine.ClearFaults()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Hour, Operation: "BatchGetItem"}) // its target does not see the pass
		time.Sleep(15 * time.Second)
		require.NoError(t, l.Release(ctx))
		w.engine.ClearFaults()
		next := <-got
		o, err := other.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.Error(t, context.Cause(next.Context()), "somebody else has it, under fence %d after %d", o.Fence(), next.Fence())
	})
}

// A condition of the caller's own refuses a commit. An earlier attempt of it arrives late, when the condition holds, and
// passes the lock. The lease counts from the commit.
func TestFixed_LeaseOfARefusedCommitBeginsWithTheCommit(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, w.put("x")))
		got := make(chan *lock.Lease, 1)
		go func() {
			next, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
			assert.NoError(t, err)
			got <- next
		}()
		time.Sleep(500 * time.Millisecond)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: 15 * time.Second})
		err = l.Commit(ctx, table.Put(w.table.KeyItem(w.row("x"))).If(table.Attr("pk").NotExists()))
		var failed *table.ConditionError
		require.ErrorAs(t, err, &failed)
		require.NotErrorIs(t, err, lock.ErrLost)
		require.NoError(t, w.table.Write(ctx, table.Delete(w.row("x"))))
		next := <-got
		require.NotNil(t, next)
		o, err := other.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.Error(t, context.Cause(next.Context()), "somebody else has it, under fence %d after %d", o.Fence(), next.Fence())
	})
}

// A waiter is granted a Fixed lease that is over before it can begin. It has held nothing, and goes on waiting. This happens
// if a release takes longer than the lease to pass the lock, or if a request of the waiter's own, or of a pass, arrives
// again when nobody holds the lock.
func TestFixed_LeaseThatCameTooLateIsWaitedForAgain(t *testing.T) {
	const length = time.Second
	type grant func(ctx context.Context, w *world, c *lock.Client, row table.Item) <-chan *lock.Lease
	slow := func(operation string, part func(ctx context.Context, w *world, l *lock.Lease) error) grant {
		return func(ctx context.Context, w *world, c *lock.Client, row table.Item) <-chan *lock.Lease {
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			waiter := acquireAsync(ctx, c, lock.Name("report"), lock.Fixed(length))
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Key: row, Operation: operation, Times: 11})
			start := time.Now()
			require.NoError(t, part(ctx, w, l))
			require.Greater(t, time.Since(start), length)
			return waiter
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
			waiter := acquireAsync(ctx, c, lock.Name("report"), lock.Fixed(length))
			time.Sleep(time.Until(start.Add(late - 10*time.Millisecond)))
			// The waiter does not look until the row names it.
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, Operation: "BatchGetItem", Times: 1})
			require.NoError(t, l.Release(ctx))
			time.Sleep(20 * time.Millisecond)
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.Equal(t, l.Fence()+1, r.Fence, "the duplicate was granted")
			return waiter
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
				waiter := grant(waiting, w, w.client(lock.Config{Expiry: lock.ObservedOnly}), w.table.KeyItem(l.Key()))
				mine := <-waiter
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

// Fixed leases that end by themselves leave nothing in the client.
func TestFixed_EndedLeasesAreForgotten(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.coldClient(lock.Config{}) // without a session
		for i := range 100 {
			_, err := c.Acquire(ctx, lock.Name(fmt.Sprint(i)), lock.Fixed(time.Second))
			require.NoError(t, err)
		}
		time.Sleep(time.Minute)
		assert.Empty(t, w.requests(func() { require.NoError(t, c.Close(ctx)) }))
	})
}

// A waiter that gives up in a short outage leaves the line after it. Nobody waits for the lease that it would have had.
func TestFixed_WaiterThatGaveUpInAnOutageLeavesTheLine(t *testing.T) {
	for name, after := range map[string]func(ctx context.Context, c *lock.Client, way *line){
		"by itself": func(_ context.Context, _ *lock.Client, way *line) {
			time.Sleep(9 * time.Second)
			way.cut(open)
			time.Sleep(time.Minute)
		},
		"by Close": func(ctx context.Context, c *lock.Client, way *line) {
			time.Sleep(5500 * time.Millisecond)
			way.cut(open)
			require.NoError(t, c.Close(ctx))
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way := &line{to: w.engine.HTTPClient()}
				holder, c := w.client(quiet), w.clientOver(way, quiet)
				l, err := holder.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				short, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- errOf(c.Acquire(short, lock.Name("report"), lock.Fixed(12*time.Hour))) }()
				time.Sleep(59 * time.Second)
				way.cut(refused)
				require.ErrorIs(t, <-ended, context.DeadlineExceeded)
				after(ctx, c, way)
				require.NoError(t, l.Release(ctx))
				require.NoError(t, errOf(holder.TryAcquire(ctx, lock.Name("report"))))
			})
		})
	}
}

// The answer is lost, and an outage follows: what was acquired is given back after it.
func TestFixed_TryAcquireThatFailedHoldsNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		other, c := w.client(quiet), w.clientOver(way, quiet)
		way.cut(unanswered)
		time.AfterFunc(5*time.Second, func() { way.cut(refused) })
		time.AfterFunc(20*time.Second, func() { way.cut(open) })
		require.Error(t, errOf(c.TryAcquire(ctx, lock.Name("report"), lock.Fixed(12*time.Hour))))
		time.Sleep(time.Hour)
		require.NoError(t, errOf(other.TryAcquire(ctx, lock.Name("report"))))
	})
}

func TestFixed_WaiterWhoseTurnComesWhileWritesFailDoesNotWaitForItself(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := acquireAsync(ctx, w.client(quiet), lock.Name("report"), lock.Fixed(2*time.Hour))
		time.Sleep(10 * time.Second)
		require.NoError(t, l.Release(ctx))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Key: w.table.KeyItem(l.Key()), Operation: "UpdateItem"})
		time.Sleep(20 * time.Second)
		w.engine.ClearFaults()
		start := time.Now()
		require.NotNil(t, <-got)
		assert.Less(t, time.Since(start), 2*time.Minute)
	})
}

// A dead holder whose end is not judged by recorded times is found also by calls that give up long before its lease would end.
func TestFixed_DeadHolderIsFoundByCallsThatGiveUpSoon(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{Expiry: lock.ObservedOnly})
		require.NoError(t, errOf(c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))))
		assert.Less(t, untilGranted(ctx, other, lock.Name("report")), 27*time.Second)
	})
}

// A holder that renews keeps the lock, also from calls whose client has seen it hold for longer than a lease.
func TestFixed_HolderThatRenewsKeepsTheLockFromCallsThatGiveUpSoon(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{Expiry: lock.ObservedOnly})
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		for range 20 {
			short, cancel := context.WithTimeout(ctx, 5*time.Second)
			require.ErrorIs(t, errOf(other.Acquire(short, lock.Name("report"))), lock.ErrHeld)
			cancel()
			time.Sleep(10 * time.Second)
			require.NoError(t, l.Renew(ctx))
		}
		require.NoError(t, l.Release(ctx))
	})
}
