package lock_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A web server's calls have short deadlines, and there is always another one. Its process comes to hold the lock as often as other
// processes do, although many of its calls give up. Passes within a process are switched off, so that each turn is one grant.
func TestGivenUp_AProcessWhoseCallsGiveUpHasItsTurns(t *testing.T) {
	const processes, hold, patience = 12, 50 * time.Millisecond, time.Second
	during := time.Duration(testkit.IfSmall(20, 60)) * time.Second
	virtual(t, func(ctx context.Context, w *world) {
		w.latency(2 * time.Millisecond)
		bounded, cancel := context.WithTimeout(ctx, during)
		defer cancel()
		var all sync.WaitGroup
		var server, others, givenUp atomic.Int64
		again := func(c *lock.Client, patience time.Duration, count *atomic.Int64) {
			for bounded.Err() == nil {
				short, stop := context.WithTimeout(bounded, patience)
				l, err := c.Acquire(short, lock.Name("report"))
				if stop(); err != nil {
					givenUp.Add(1)
					continue
				}
				count.Add(1)
				time.Sleep(hold)
				assert.NoError(t, l.Release(ctx))
			}
		}
		config := quiet
		config.Handoffs = -1
		for range processes - 1 {
			c := w.client(config)
			all.Go(func() { again(c, during, &others) })
		}
		c := w.client(config)
		for i := range 10 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * patience / 10)
				again(c, patience, &server)
			})
		}
		all.Wait()
		assert.Greater(t, givenUp.Load(), int64(during/patience*5))
		testkit.Check(t, "the process whose calls give up",
			testkit.AtLeast(float64(server.Load())/(float64(others.Load())/(processes-1)), "of the grants of any other process", 0.9))
	})
}

// A call that gives up leaves its ticket in the line to the next goroutine of its process.
func TestGivenUp_TheNextOfTheProcessTakesThePlaceOver(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		held, err := w.client(quiet).Acquire(ctx, names(1)[0])
		require.NoError(t, err)
		short, giveUp := context.WithCancel(ctx)
		first := acquireAsync(short, c, names(1)[0])
		shorter, giveUpToo := context.WithCancel(ctx)
		second := acquireAsync(shorter, c, names(1)[0])
		third := acquireAsync(ctx, c, names(1)[0], lock.WithData("third"))
		behind := acquireAsync(ctx, other, names(1)[0])
		before, err := c.Inspect(ctx, names(1)[0])
		require.NoError(t, err)
		require.Len(t, before.Line, 3)
		ops := w.requests(func() {
			giveUp()
			require.Nil(t, <-first)
			synctest.Wait()
			giveUpToo()
			require.Nil(t, <-second)
			synctest.Wait()
		})
		assert.Zero(t, times("UpdateItem", ops), "%v", ops)
		assert.Equal(t, 2, times("GetItem", ops), "each call that takes the place over reads the row: %v", ops)
		after, err := c.Inspect(ctx, names(1)[0])
		require.NoError(t, err)
		assert.Equal(t, before.Line, after.Line)
		time.Sleep(time.Hour) // the ticket is no ghost: somebody answers for it
		after, err = c.Inspect(ctx, names(1)[0])
		require.NoError(t, err)
		assert.Equal(t, before.Line, after.Line)

		require.NoError(t, held.Release(ctx))
		got := <-third
		require.NotNil(t, got)
		assert.Equal(t, before.Line[1].Ticket, got.Ticket())
		now, err := c.Inspect(ctx, names(1)[0])
		require.NoError(t, err)
		var data string
		require.NoError(t, now.Data.Decode(&data))
		assert.Equal(t, "third", data)
		w.goesOn(ctx, got, behind)
	})
}

// A Fixed ticket has the length of its lease. A call that wants another one enters the line with a ticket of its own.
func TestGivenUp_AFixedLeaseTakesOverATicketOfItsLength(t *testing.T) {
	minute, hour := []lock.Option{lock.Fixed(time.Minute)}, []lock.Option{lock.Fixed(time.Hour)}
	for _, tc := range []struct {
		first, second []lock.Option
		same          bool
	}{{nil, minute, false}, {minute, nil, false}, {minute, hour, false}, {hour, minute, false}, {minute, minute, true}} {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(quiet)
			held, err := w.client(quiet).Acquire(ctx, names(1)[0])
			require.NoError(t, err)
			short, giveUp := context.WithCancel(ctx)
			first := acquireAsync(short, c, names(1)[0], tc.first...)
			second := acquireAsync(ctx, c, names(1)[0], tc.second...)
			before, err := c.Inspect(ctx, names(1)[0])
			require.NoError(t, err)
			giveUp()
			require.Nil(t, <-first)
			time.Sleep(5 * time.Minute)
			after, err := c.Inspect(ctx, names(1)[0])
			require.NoError(t, err)
			require.Len(t, after.Line, 2)
			assert.Equal(t, tc.same, before.Line[1].Ticket == after.Line[1].Ticket, "%+v", tc)
			require.NoError(t, held.Release(ctx))
			got := <-second
			require.NotNil(t, got, "%+v", tc)
			if len(tc.second) > 0 {
				assert.Greater(t, got.Remaining(), 50*time.Second, "the lease counts from now, not from when the ticket was taken")
			}
			require.NoError(t, got.Write(ctx, w.count("n")))
			require.NoError(t, got.Release(ctx))
			w.free(ctx, names(1))
		})
	}
}

// The goroutines of a process all give up at one moment, or its client is closed. No ticket stays in the line.
func TestGivenUp_ByAllLeavesNothingInTheLine(t *testing.T) {
	for name, end := range map[string]func(context.Context, context.CancelFunc, *lock.Client) error{
		"cancelled": func(_ context.Context, cancel context.CancelFunc, _ *lock.Client) error { cancel(); return nil },
		"closed":    func(ctx context.Context, _ context.CancelFunc, c *lock.Client) error { return c.Close(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				w.latency(2 * time.Millisecond)
				c := w.client(quiet)
				held, err := w.client(quiet).Acquire(ctx, names(1)[0])
				require.NoError(t, err)
				waiting, cancel := context.WithCancel(ctx)
				var all []<-chan *lock.Lease
				for range 20 {
					all = append(all, acquireAsync(waiting, c, names(1)[0]))
				}
				require.NoError(t, end(ctx, cancel, c))
				cancel()
				for _, got := range all {
					require.Nil(t, <-got)
				}
				time.Sleep(time.Second)
				r, err := w.client(quiet).Inspect(ctx, names(1)[0])
				require.NoError(t, err)
				assert.Len(t, r.Line, 1)
				require.NoError(t, held.Release(ctx))
				w.free(ctx, names(1))
			})
		})
	}
}

// The place is taken over while it comes to be the first: the call that takes it over holds the lock at once.
func TestGivenUp_WhileThePlaceBecomesFirst(t *testing.T) {
	for i := range 40 {
		var opts []lock.Option
		if i%2 > 0 {
			opts = append(opts, lock.Fixed(time.Minute))
		}
		virtual(t, func(ctx context.Context, w *world) {
			w.latency(2 * time.Millisecond)
			c := w.client(quiet)
			held, err := w.client(quiet).Acquire(ctx, names(1)[0])
			require.NoError(t, err)
			short, giveUp := context.WithCancel(ctx)
			first := acquireAsync(short, c, names(1)[0], opts...)
			second := acquireAsync(ctx, c, names(1)[0], opts...)
			time.AfterFunc(time.Duration(i)*time.Millisecond, giveUp)
			require.NoError(t, held.Release(ctx))
			if l := <-first; l != nil {
				require.NoError(t, l.Release(ctx))
			}
			got := <-second
			require.NotNil(t, got)
			if len(opts) > 0 {
				assert.Greater(t, got.Remaining(), 50*time.Second)
			}
			require.NoError(t, got.Release(ctx))
			giveUp()
			w.free(ctx, names(1))
		})
	}
}

// A call that has waited renews its Fixed ticket, from when the lease counts. If it gives up before the answer, the next one does that.
func TestGivenUp_BeforeItsTicketIsRenewed(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		held, err := w.client(quiet).Acquire(ctx, names(1)[0])
		require.NoError(t, err)
		short, giveUp := context.WithCancel(ctx)
		first := acquireAsync(short, c, names(1)[0], lock.Fixed(time.Minute))
		second := acquireAsync(ctx, c, names(1)[0], lock.Fixed(time.Minute))
		time.Sleep(5 * time.Minute)
		require.NoError(t, held.Release(ctx))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 3 * time.Second, Operation: "UpdateItem", Times: 1})
		time.Sleep(2 * time.Second) // the first call has found that it is first
		giveUp()
		require.Nil(t, <-first)
		got := <-second
		require.NotNil(t, got)
		assert.Greater(t, got.Remaining(), 50*time.Second)
		assert.Equal(t, held.Fence()+1, got.Fence(), "it holds with the ticket that it took over")
		require.NoError(t, got.Release(ctx))
		w.free(ctx, names(1))
	})
}

// A place can be handed over more often than Config.Backoff looks. The call that takes it over reads the row, so that it learns of its turn.
func TestGivenUp_TheNextReadsTheRow(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		config := quiet
		config.Backoff = func() backoff.BackOff { return backoff.NewConstantBackOff(5 * time.Second) }
		c := w.client(config)
		held, err := w.client(quiet).Acquire(ctx, names(1)[0])
		require.NoError(t, err)
		short, giveUp := context.WithCancel(ctx)
		first := acquireAsync(short, c, names(1)[0])
		second := acquireAsync(ctx, c, names(1)[0])
		require.NoError(t, held.Release(ctx))
		giveUp()
		require.Nil(t, <-first)
		at := time.Now()
		got := <-second
		require.NotNil(t, got)
		assert.Less(t, time.Since(at), time.Second)
		require.NoError(t, got.Release(ctx))
		w.free(ctx, names(1))
	})
}

// A call that has its turn writes its payload. If it gives up meanwhile, the lock goes to the next goroutine of its process.
func TestGivenUp_WhileItsPayloadIsWritten(t *testing.T) {
	for _, opts := range [][]lock.Option{{lock.WithData("first")}, {lock.WithData("first"), lock.Fixed(time.Minute)}} {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(quiet)
			held, err := w.client(quiet).Acquire(ctx, names(1)[0])
			require.NoError(t, err)
			short, giveUp := context.WithCancel(ctx)
			first := acquireAsync(short, c, names(1)[0], opts...)
			second := acquireAsync(ctx, c, names(1)[0], opts[1:]...)
			behind := acquireAsync(ctx, w.client(quiet), names(1)[0])
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, Operation: "UpdateItem"})
			require.NoError(t, held.Release(ctx))
			time.Sleep(time.Duration(len(opts))*time.Second - 500*time.Millisecond) // a Fixed ticket is renewed before
			giveUp()
			require.Nil(t, <-first)
			w.engine.ClearFaults()
			bounded, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			var got *lock.Lease
			select {
			case got = <-second:
			case <-bounded.Done():
			}
			require.NotNil(t, got, "the other process has the lock")
			w.goesOn(ctx, got, behind)
		})
	}
}

// The lease ends before the payload is written, and then the call gives up. The goroutine behind it has its turn.
func TestGivenUp_WhenItsLeaseHasEndedBeforeThePayload(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var fails atomic.Bool
		c := w.clientOver(w.passing(func(_, body string, send func() (*http.Response, error)) (*http.Response, error) {
			if fails.Load() && strings.Contains(body, `"edits"`) {
				return nil, errors.New("connection refused")
			}
			return send()
		}), quiet)
		held, err := w.client(quiet).Acquire(ctx, names(1)[0])
		require.NoError(t, err)
		first := acquireFor(ctx, 5*time.Second, c, names(1)[0], lock.WithData("first"), lock.Fixed(time.Second))
		second := acquireFor(ctx, time.Minute, c, names(1)[0])
		fails.Store(true)
		require.NoError(t, held.Release(ctx))
		require.Nil(t, <-first)
		l := <-second
		require.NotNil(t, l, "nobody holds the lock")
		require.NoError(t, l.Release(ctx))
		w.free(ctx, names(1))
	})
}

// goesOn writes under a lease and releases it. Then the one behind it gets the lock, and releases it, too.
func (w *world) goesOn(ctx context.Context, got *lock.Lease, behind <-chan *lock.Lease) {
	w.Helper()
	require.NoError(w, got.Write(ctx, w.count("n")))
	require.NoError(w, got.Release(ctx))
	last := <-behind
	require.NotNil(w, last)
	require.NoError(w, last.Release(ctx))
	w.free(ctx, names(1))
}
