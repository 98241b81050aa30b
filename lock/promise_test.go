package lock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Small promises of the documentation, each of which somebody broke on purpose who had found no test
// that would notice.

// What works under a lock has the caller's values, as for traces.
func TestContextOfALeaseHasTheCallersValues(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		type key struct{}
		ctx = context.WithValue(ctx, key{}, "trace")
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Equal(t, "trace", l.Context().Value(key{}))
		require.NoError(t, l.Release(ctx))
	})
}

// The context of AcquireAll is one of the waiting: what it got is held on, also where that is one lock.
func TestBundleOutlivesTheContextOfItsAcquisition(t *testing.T) {
	for n := 1; n <= 2; n++ {
		virtual(t, func(ctx context.Context, w *world) {
			bounded, cancel := context.WithTimeout(ctx, time.Minute)
			b, err := w.client(lock.Config{}).AcquireAll(bounded, names(n))
			require.NoError(t, err)
			cancel()
			require.NoError(t, b.Context().Err(), "%d locks", n)
			require.NoError(t, b.Write(ctx, w.put("x")))
			require.NoError(t, b.Release(ctx))
			require.Error(t, b.Context().Err())
		})
	}
}

// Leases gives a copy: nobody changes by it what a bundle guards its writes with.
func TestLeasesOfABundleAreACopy(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		b, err := w.client(lock.Config{}).AcquireAll(ctx, names(2))
		require.NoError(t, err)
		first := b.Leases()[0]
		b.Leases()[0] = b.Leases()[1]
		require.Same(t, first, b.Leases()[0])
		require.NoError(t, b.Write(ctx, w.put("x")))
		require.NoError(t, b.Release(ctx))
	})
}

// Whose context ends between two attempts has given up; retries have not.
func TestImpatienceIsNoExhaustion(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		r := newRecorder()
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, lock.Config{MeterProvider: r}, twice())
		r.take(ctx)
		way.cut(refused)
		bounded, cancel := context.WithTimeout(ctx, 50*time.Millisecond) // the first pause has 100
		defer cancel()
		_, err := c.TryAcquire(bounded, lock.Name("report"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Contains(t, r.take(ctx), "wait.duration context")
		way.cut(open)
	})
}

// An acquisition ends with its context while another one opens the session for both.
func TestOpeningIsWaitedForUntilTheContextEnds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.coldClientOver(way, lock.Config{HomeRegion: tabletest.Region})
		way.cut(hung)
		opening, give := context.WithCancel(ctx)
		first := acquireAsync(opening, c, lock.Name("first"))
		bounded, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.Acquire(bounded, lock.Name("second"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(start))
		give()
		assert.Nil(t, <-first)
	})
}

// The margin takes no more than half of a lease, however short.
func TestLeaseIsLongerThanItsMargin(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Margin: 2 * time.Second})
		l, err := c.TryAcquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
		require.NoError(t, err)
		assert.Equal(t, 500*time.Millisecond, l.Remaining())
		require.NoError(t, l.Release(ctx))
	})
}

// Who waits for a lock of its own process is handed it: nothing is polled meanwhile.
func TestHandOverIsHardlyPolledFor(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := acquireAsync(ctx, c, lock.Name("report"))
		looks := times("BatchGetItem", w.requests(func() { time.Sleep(5 * time.Minute) }))
		assert.LessOrEqual(t, looks, 60+1, "one in a quarter of the lease")
		require.NoError(t, l.Release(ctx))
		next := <-got
		require.NotNil(t, next)
		require.NoError(t, next.Release(ctx))
	})
}

// Payloads are refused that DynamoDB would refuse, and no others.
func TestPayloadIsAsDeepAsDynamoDBTakes(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		for depth := 30; depth <= 34; depth++ {
			var data types.AttributeValue = &types.AttributeValueMemberS{Value: "x"}
			for range depth {
				data = &types.AttributeValueMemberL{Value: []types.AttributeValue{data}}
			}
			refused := p.table.Write(ctx, table.Update(keys.NewKey("ROW", "ROW"), table.Attr("data").Set(data)))
			var l *lock.Lease
			var err error
			cost := totals(ctx, func(ctx context.Context) { l, err = p.client.TryAcquire(ctx, lock.Name("report"), lock.WithData(data)) })
			if refused != nil {
				require.ErrorIs(p, err, lock.ErrInvalid, "%d: %v", depth, refused)
				require.Zero(p, cost.Requests)
				continue
			}
			require.NoError(p, err, "%d", depth)
			require.NoError(p, l.Release(ctx))
		}
	})
}

// An owner that another program has written does not fill logs.
func TestTextOfHeldErrorIsBounded(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Update(l.Key(), table.Attr("owner").Set(strings.Repeat("x", 100_000)))))
		_, err = w.client(lock.Config{}).TryAcquire(ctx, lock.Name("report"))
		require.ErrorIs(t, err, lock.ErrHeld)
		assert.Less(t, len(err.Error()), lock.MaxOwner+200)
	})
}

// A hand-over within a process is no take-over.
func TestHandOverIsNotToldAsATakeOver(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		n := &nosy{Handler: slog.DiscardHandler}
		c := w.client(lock.Config{Logger: slog.New(n)})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		got := acquireAsync(ctx, c, lock.Name("report"))
		require.NoError(t, l.Release(ctx))
		require.NoError(t, (<-got).Release(ctx))
		assert.Zero(t, n.count("INFO lock: taken over from a holder that died"))
	})
}

// A job that is due once a day begins a second after midnight at the latest.
func TestLongIntervalsBeginOnTime(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		const day = 24 * time.Hour
		bounded, cancel := context.WithTimeout(ctx, 6*day)
		defer cancel()
		runs := 0
		require.ErrorIs(t, w.client(quiet).Every(bounded, lock.Name("report"), day, func(ctx context.Context, l *lock.Lease, at time.Time) error {
			if runs++; runs > 1 { // the first one was due before it was asked for
				assert.LessOrEqual(t, time.Since(at), 2*time.Second) // server times are in whole seconds
			}
			return l.Commit(ctx, w.count("n"))
		}), context.DeadlineExceeded)
		assert.GreaterOrEqual(t, runs, 6)
	})
}

// A commit that was never sent has not been applied: Every then believes the release.
func TestEveryKnowsOfAReleaseAfterAnInvalidCommit(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		runs := 0
		require.ErrorIs(t, w.client(quiet).Every(bounded, lock.Name("report"), time.Minute, func(ctx context.Context, l *lock.Lease, _ time.Time) error {
			if runs++; runs > 3 {
				cancel()
			}
			assert.ErrorIs(t, l.Commit(ctx, table.Update(keys.NewKey("", ""), table.Attr("n").Set(1))), table.ErrInvalid)
			return l.Release(ctx)
		}), lock.ErrReleased)
		assert.Equal(t, 1, runs)
	})
}

// A commit that was applied without an answer is recorded, and a release after it is no other end.
func TestEveryKnowsOfACommitWithoutAnAnswer(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, quiet)
		bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		err := c.Every(bounded, lock.Name("report"), time.Minute, func(ctx context.Context, l *lock.Lease, _ time.Time) error {
			short, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			way.cut(unanswered)
			assert.Error(t, l.Commit(short, w.count("n")))
			way.cut(open)
			return l.Release(ctx)
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.GreaterOrEqual(t, w.counted("n"), int64(9))
	})
}

// Nothing remains of a session that has ended by a clock, also before anybody is told.
func TestNothingRemainsOfAnOverdueSession(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		c := w.client(quiet, table.WithClock(wall.now))
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		wall.jump(time.Minute)
		left, lasts := c.Remaining()
		assert.Zero(t, left)
		assert.False(t, lasts)
		<-l.Context().Done()
	})
}

// A lock that was asked back is held until it is released.
func TestLocksThatWereAskedBackAreCountedAsHeld(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		r := newRecorder()
		c := w.client(lock.Config{MeterProvider: r})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.askBack(ctx, w.client(lock.Config{}), l)
		<-l.Context().Done()
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked)
		assert.Equal(t, []float64{1}, r.take(ctx)["held"])
		require.NoError(t, l.Release(ctx))
		assert.Equal(t, []float64{0}, r.take(ctx)["held"])
	})
}

// MaxHold counts from the request, since when others are kept out.
func TestMaxHoldCountsFromTheRequest(t *testing.T) {
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

// However long an outage lasts, it is not hammered: neither by campaigns nor by renewals.
func TestOutagesAreNotHammered(t *testing.T) {
	for name, begin := range map[string]func(ctx context.Context, w *world, c *lock.Client){
		"Lead": func(ctx context.Context, _ *world, c *lock.Client) {
			go func() {
				_ = c.Lead(ctx, lock.Name("report"), func(ctx context.Context, _ *lock.Lease) error {
					<-ctx.Done()
					return nil
				})
			}()
		},
		"renewals": func(ctx context.Context, w *world, c *lock.Client) {
			_, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(w, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				config := quiet
				if name == "renewals" {
					config.Lease = time.Hour
				}
				begin(ctx, w, w.client(config))
				time.Sleep(time.Minute)
				w.latency(50 * time.Millisecond) // without which whoever does not pause repeats for ever at one instant
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest})
				time.Sleep(20 * time.Minute)
				tries := len(w.requests(func() { time.Sleep(20 * time.Minute) }))
				assert.Positive(t, tries)
				assert.LessOrEqual(t, tries, 20*60, "one a second")
				w.engine.ClearFaults()
			})
		})
	}
}

// Who may not take a lock does not campaign for it.
func TestLeadWithoutPermissionEnds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.coldClientOver(&line{to: &forbidding{to: w.engine.HTTPClient(), operation: "UpdateItem"}}, quiet)
		bounded, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		err := c.Lead(bounded, lock.Name("report"), func(context.Context, *lock.Lease) error { return nil })
		require.ErrorIs(t, err, table.ErrDenied)
		require.NoError(t, bounded.Err())
	})
}

// Who has tried to give a lock up is not told of a loss when its session ends.
func TestGivenUpIsNotLost(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		lost := atomic.Int64{}
		n, r := &nosy{Handler: slog.DiscardHandler}, newRecorder()
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, lock.Config{Logger: slog.New(n), MeterProvider: r, OnLost: func(*lock.Lease, error) { lost.Add(1) }})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(refused)
		w.releaseInVain(ctx, l)
		time.Sleep(time.Minute)
		assert.Equal(t, 1, n.count("WARN lock: session lost"))
		assert.Zero(t, n.count("WARN lock: lost"))
		assert.Zero(t, lost.Load())
	})
}

// Locks beside an application's rows are listed without reading these.
func TestListReadsLocksAlone(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		var held *lock.Lease
		for i := range 30 {
			key := keys.NewKey("TENANT#acme", fmt.Sprintf("ORDER#%02d", i))
			item := w.table.KeyItem(key)
			item["text"] = &types.AttributeValueMemberS{Value: strings.Repeat("x", 100_000)}
			require.NoError(t, w.table.Write(ctx, table.Put(item)))
			if i == 20 {
				l, err := c.Acquire(ctx, lock.Beside(key))
				require.NoError(t, err)
				held = l
			}
		}
		found := 0
		cost := totals(ctx, func(ctx context.Context) {
			for r, err := range c.List(ctx, lock.In("TENANT#acme")) {
				require.NoError(t, err)
				assert.Equal(t, held.Fence(), r.Fence)
				found++
			}
		})
		assert.Equal(t, 1, found)
		assert.EqualValues(t, 1, cost.Requests)
		assert.LessOrEqual(t, cost.ReadUnits, 1.0)
	})
}

// Revoke asks who holds the lock now.
func TestRevokeReadsConsistently(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		holder, op := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		_, err = holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Writes: 1})
		require.NoError(t, op.Revoke(ctx, lock.Name("report")))
	})
}

// Close ends what an operator's calls wait for.
func TestCloseEndsOperatorsCalls(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way := &line{to: w.engine.HTTPClient()}
		op := w.clientOver(way, quiet)
		r, err := op.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(hung)
		ended := make(chan error, 2)
		go func() { ended <- op.ForceRelease(ctx, lock.Name("report"), r.Holder().Ticket) }()
		go func() { ended <- op.Revoke(ctx, lock.Name("report")) }()
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		time.AfterFunc(2*time.Second, func() { way.cut(open) })
		closed := make(chan error, 1)
		go func() { closed <- op.Close(ctx) }()
		for range 2 {
			require.ErrorIs(t, <-ended, lock.ErrClosed)
		}
		assert.Less(t, time.Since(start), time.Second)
		require.NoError(t, <-closed)
		require.NoError(t, l.Release(ctx))
	})
}

// A lock of its own lease goes to somebody who has waited for longer than an idle session lasts, and the
// client closes afterwards.
func TestCloseAfterAHandOverToALongWaiter(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		got := acquireAsync(ctx, c, lock.Name("report"))
		time.Sleep(10 * time.Minute)
		require.NoError(t, l.Release(ctx))
		next := <-got
		require.NotNil(t, next)
		require.NoError(t, next.Release(ctx))
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		require.NoError(t, c.Close(bounded))
	})
}

// Owns knows the rows of sessions, too.
func TestOwnsLocksAndSessions(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, w.put("x")))
		for key, want := range map[keys.Key]bool{l.Key(): true, sessionKey(c): true, w.row("x"): false} {
			item, err := w.table.Get(ctx, key, true)
			require.NoError(t, err)
			assert.Equal(t, want, c.Owns(item), "%v", item)
		}
	})
}

// A renewal whose answer comes after the lease has ended renews nothing.
func TestRenewalThatIsAnsweredTooLate(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, Key: w.table.KeyItem(l.Key()), Times: 1, For: 700 * time.Millisecond})
		time.Sleep(l.Remaining() - 300*time.Millisecond)
		require.ErrorIs(t, l.Renew(ctx), lock.ErrExpired)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
	})
}

// Who could not be handed the lock keeps its place.
func TestHeirOfAFailedHandOverStaysFirst(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		first, second := acquireAsync(ctx, c, lock.Name("report")), acquireAsync(ctx, c, lock.Name("report"))
		way.cut(refused)
		w.releaseInVain(ctx, l)
		way.cut(open)
		require.NoError(t, l.Release(ctx))
		select {
		case next := <-first:
			require.NotNil(t, next)
			require.NoError(t, next.Release(ctx))
			require.NoError(t, (<-second).Release(ctx))
		case next := <-second:
			require.NoError(t, next.Release(ctx))
			require.NoError(t, (<-first).Release(ctx))
			t.Error("the second was served first")
		}
	})
}

// Each try of a lock that somebody alive has held for long costs one request, but for one in a lease, which asks
// whether it lives.
func TestTriesOfALivingHolderCostOneRequest(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		holder, c := w.client(lock.Config{}), w.client(lock.Config{})
		_, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		const tries = 40
		ops := w.requests(func() {
			for range tries {
				_, err := c.TryAcquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrHeld)
				time.Sleep(100 * time.Millisecond)
			}
		})
		assert.LessOrEqual(t, len(ops)-times("BatchGetItem", ops), tries+2+2, "each try, and once whether the holder lives; and renewals of the holder")
	})
}

// Whoever prints the Target of a lock beside a row prints no key.
func TestTargetTellsNoKeys(t *testing.T) {
	target := lock.Beside(keys.NewKey("canary", "canary"))
	for _, format := range []string{"%v", "%+v", "%s"} {
		assert.NotContains(t, fmt.Sprintf(format, target), "canary", format)
	}
}

// The holder of an hour's lease is told within a second of its machine's resuming, too.
func TestSuspendedHolderOfALongLeaseIsToldAtOnce(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		config := quiet
		config.Lease = time.Hour
		c := w.client(config, table.WithClock(wall.now))
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		wall.jump(2 * time.Hour)
		resumed := time.Now()
		<-l.Context().Done()
		assert.LessOrEqual(t, time.Since(resumed), time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
	})
}

// However rarely a waiter looks, it finds a holder dead when its session has ended, also one that was found
// alive before.
func TestDeathAfterAProofOfLifeIsFoundInTime(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		_, err := w.clientOver(way, quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		waiter := w.client(lock.Config{Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }})
		got := acquireAsync(ctx, waiter, lock.Name("report"))
		time.Sleep(5 * time.Minute)
		way.cut(refused)
		start := time.Now()
		require.NotNil(t, <-got)
		assert.LessOrEqual(t, time.Since(start), 2*20*time.Second+5*time.Second)
	})
}

// A row that somebody else frees keeps three quarters of its retention, however long its holder has been dead.
func TestRowsFreedByForceKeepTheirFence(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		const retention = 30 * time.Hour
		config := lock.Config{Retention: retention, Logger: quiet.Logger}
		way := &line{to: w.engine.HTTPClient()}
		l, err := w.clientOver(way, config).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		way.cut(refused)
		for _, after := range []time.Duration{3 * time.Hour, 9 * time.Hour, 21 * time.Hour} {
			again := w.engine.Snapshot()
			time.Sleep(after)
			op := w.client(config)
			w.force(ctx, op, lock.Name("report"))
			assert.GreaterOrEqual(t, time.Until(w.deleted(ctx, l.Key())), retention/4*3-time.Second)
			w.engine.Restore(again)
		}
	})
}

// unasked is the way of a process whose questions to a session do not arrive for now.
type unasked struct {
	to      aws.HTTPClient
	session string
	fails   atomic.Bool
	times   atomic.Int64
}

func (u *unasked) Do(r *http.Request) (*http.Response, error) {
	body, err := peek(r)
	if err != nil {
		return nil, err
	}
	if u.fails.Load() && bytes.Contains(body, []byte(u.session)) && bytes.Contains(body, []byte(`"SS"`)) { // a set of questions
		u.times.Add(1)
		return nil, errors.New("connection refused")
	}
	return u.to.Do(r)
}

// A question that could not be put is put later.
func TestQuestionsThatDoNotArriveAreAskedAgain(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		_, err := c.Acquire(ctx, lock.Name("other")) // its session goes on
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Call: 1, For: time.Minute})
		w.engine.ResetRequests()
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		between, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, between.Release(ctx))
		time.Sleep(time.Minute)
		r, err := w.client(quiet).Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.True(t, r.Held(), "by a ghost")

		way := &unasked{to: w.engine.HTTPClient(), session: lock.SessionID(c)}
		waiter := w.clientOver(&line{to: way}, quiet)
		way.fails.Store(true)
		bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		got := acquireAsync(bounded, waiter, lock.Name("report"))
		time.Sleep(time.Minute)
		require.Positive(t, way.times.Load(), "it was asked in vain")
		way.fails.Store(false)
		start := time.Now()
		require.NotNil(t, <-got)
		assert.LessOrEqual(t, time.Since(start), 25*time.Second, "a lease and a period")
	})
}

// Of those in a process who wait for several locks one tries to take them from a dead holder, not all at once.
func TestOneOfManyTriesToTakeSeveralFromTheDead(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		both := names(2)
		_, err := w.clientOver(way, quiet).Acquire(ctx, both[0])
		require.NoError(t, err)
		c := w.client(quiet)
		const waiters = 5
		got := make(chan *lock.Bundle, waiters)
		for range waiters {
			go func() {
				b, err := c.AcquireAll(ctx, both)
				assert.NoError(t, err)
				got <- b
			}()
		}
		time.Sleep(5 * time.Second)
		way.cut(refused)
		var first *lock.Bundle
		tries := times("TransactWriteItems", w.requests(func() {
			first = <-got
			time.Sleep(300 * time.Millisecond)
		}))
		assert.LessOrEqual(t, tries, 2, "one, and perhaps the next one's, a poll later")
		require.NoError(t, first.Release(ctx))
		for range waiters - 1 {
			require.NoError(t, (<-got).Release(ctx))
		}
	})
}

// A holder whose lock was taken by force is told, whatever eventually consistent reads would say.
func TestHolderReadsConsistentlyWhatItHolds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, op := w.client(quiet), w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(time.Minute) // many renewals: that the lock was acquired is no news to any read
		r, err := op.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Writes: 8})
		require.NoError(t, op.ForceRelease(ctx, lock.Name("report"), r.Holder().Ticket))
		start := time.Now()
		<-l.Context().Done()
		assert.LessOrEqual(t, time.Since(start), 6*time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
	})
}

// A process that goes on for ever keeps nothing of the locks that it has held.
func TestNothingIsKeptOfReleasedLocks(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		const cycles = 1000
		run := func() {
			for range cycles {
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))
			}
			w.engine.ResetRequests()
		}
		run()
		before := heap()
		for range 3 {
			run()
		}
		grown := int64(heap()) - int64(before)
		assert.Less(t, grown, int64(3*cycles*100), "bytes")
	})
}

// A lease of its own counts from its request, however long the answer takes.
func TestFixedCountsFromTheRequest(t *testing.T) {
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

// Who waits for one of several keeps the others, also those that were free at once.
func TestFixedLocksOfABundleAreKeptWhileOthersAreWaitedFor(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		both := names(2)
		held, err := w.client(quiet).Acquire(ctx, both[1])
		require.NoError(t, err)
		got := make(chan *lock.Bundle, 1)
		c := w.client(quiet)
		go func() {
			b, err := c.AcquireAll(ctx, both, lock.Fixed(6*time.Second))
			assert.NoError(t, err)
			got <- b
		}()
		time.Sleep(time.Second)
		other := w.client(quiet)
		for range 60 {
			time.Sleep(time.Second)
			_, err := other.TryAcquire(ctx, both[0])
			require.ErrorIs(t, err, lock.ErrHeld)
		}
		require.NoError(t, held.Release(ctx))
		b := <-got
		assert.GreaterOrEqual(t, b.Leases()[0].Remaining(), 5*time.Second)
		require.NoError(t, b.Release(ctx))
	})
}
