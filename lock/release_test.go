package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A holder that has tried to release is not told of a loss when its session ends.
func TestRelease_FailedOneIsNoLossWhenTheSessionEnds(t *testing.T) {
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

// A lease that has expired and that nobody has replaced is released: the lock is free at once.
func TestRelease_OfAnExpiredLeaseFreesTheLock(t *testing.T) {
	for name, opts := range map[string][]lock.Option{
		"session": nil, "fixed": {lock.Fixed(10 * time.Second)}, "shared": {lock.Shared()}, "permits": {lock.Permits(2)},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way := &line{to: w.engine.HTTPClient()}
				l, err := w.clientOver(way, quiet).Acquire(ctx, catalogue, opts...)
				require.NoError(t, err)
				way.cut(refused)
				time.Sleep(time.Minute)
				require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
				way.cut(open)
				require.NoError(t, l.Release(ctx))
				r, err := w.client(quiet).Inspect(ctx, catalogue)
				require.NoError(t, err)
				assert.Empty(t, r.Line)
			})
		})
	}
}

// A process that runs for ever keeps nothing of the locks that it has released.
func TestRelease_LeavesNothingInTheClient(t *testing.T) {
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

// Releases that hang do not keep the session from repeating other releases that failed.
func TestRelease_HangingOneDelaysNoOther(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, quiet)
		list := names(6)
		leases := make([]*lock.Lease, len(list))
		for i, target := range list {
			var err error
			leases[i], err = c.Acquire(ctx, target)
			require.NoError(t, err)
		}
		way.cut(refused)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		var releases sync.WaitGroup
		for i, l := range leases {
			releases.Go(func() { assert.Error(t, l.Release(short)) })
			if i < len(leases)-1 {
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, Key: w.table.KeyItem(l.Key()), For: time.Hour})
			}
		}
		releases.Wait()
		way.cut(open)
		time.Sleep(2 * time.Minute)
		row, err := w.table.Get(ctx, leases[len(leases)-1].Key(), true)
		require.NoError(t, err)
		assert.Empty(t, lineIn(row))
		w.engine.ClearFaults()
	})
}

// A release that failed behind a guarded write has still given up the lock.
func TestRelease_BehindAWriteIsNoLoss(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		lost := atomic.Int64{}
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, lock.Config{Logger: quiet.Logger, OnLost: func(*lock.Lease, error) { lost.Add(1) }})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, Operation: "TransactWriteItems", For: 3 * time.Second})
		writing, stop := context.WithTimeout(ctx, 5*time.Second)
		defer stop()
		go func() { _ = l.Write(writing, w.put("x")) }()
		time.Sleep(100 * time.Millisecond)
		w.releaseInVain(ctx, l)
		way.cut(refused)
		time.Sleep(time.Minute)
		assert.Zero(t, lost.Load())
	})
}

// A release after a commit without an answer succeeds, and the client is not closed by that.
func TestRelease_AfterACommitWithoutAnAnswerSucceeds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		l, err := w.clientOver(way, quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(refused)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.Error(t, l.Commit(short, w.put("x")))
		way.cut(open)
		require.NoError(t, l.Release(ctx))
		err = l.Write(ctx, w.put("x"))
		require.ErrorIs(t, err, lock.ErrReleased)
		require.NotErrorIs(t, err, lock.ErrClosed)
	})
}

// releaseInVain tries to release for a second, and fails.
func (w *world) releaseInVain(ctx context.Context, l *lock.Lease) {
	w.Helper()
	w.releaseInVainFor(ctx, time.Second, l)
}

func (w *world) releaseInVainFor(ctx context.Context, d time.Duration, l *lock.Lease) {
	w.Helper()
	short, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	require.Error(w, l.Release(short))
}

// After a release that was not even sent, the holder's context still ends with its session.
func TestRelease_FailedOneStillEndsWithTheSession(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wire := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(wire, lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		wire.cut(hung)
		hanging, end := context.WithCancel(ctx)
		defer end()
		go func() { _ = l.Write(hanging, w.put("x")) }()
		synctest.Wait()
		w.releaseInVain(ctx, l) // it waits for the write
		require.NoError(t, l.Context().Err())
		start := time.Now()
		select {
		case <-l.Context().Done():
		case <-time.After(time.Minute):
			t.Fatal("never told")
		}
		assert.LessOrEqual(t, time.Since(start), 20*time.Second)
	})
}

// Releases that the session repeats hang, and the renewals go on.
func TestRelease_HangingOneDoesNotStarveRenewals(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Lease: time.Second})
		keep, err := c.Acquire(ctx, lock.Name("keep"))
		require.NoError(t, err)
		for i := range 5 {
			l, err := c.Acquire(ctx, lock.Name(fmt.Sprint("hung", i)))
			require.NoError(t, err)
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 1000 * time.Hour, Key: w.table.KeyItem(l.Key())})
			w.releaseInVainFor(ctx, 100*time.Millisecond, l)
		}
		time.Sleep(time.Minute)
		require.NoError(t, context.Cause(keep.Context()))
		w.engine.ClearFaults()
		time.Sleep(5 * time.Second)
		for i := range 5 {
			r, err := c.Inspect(ctx, lock.Name(fmt.Sprint("hung", i)))
			require.NoError(t, err)
			assert.False(t, r.Held())
		}
		require.NoError(t, keep.Release(ctx))
	})
}

// The only Release of a holder waited in vain for a guarded write. The lock is not held for ever.
func TestRelease_ThatWaitedForAWriteInVainIsRepeated(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 3 * time.Second, Operation: "TransactWriteItems", Times: 1})
		go func() { assert.NoError(t, l.Write(ctx, w.put("x"))) }()
		time.Sleep(time.Second)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err = l.Release(short)
		require.Error(t, err)
		require.NotErrorIs(t, err, lock.ErrLost)
		time.Sleep(time.Hour)
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.False(t, r.Held(), "an hour later")
	})
}

// A release has waited in vain for a guarded write. Waiters in the same process do not cut off that write.
func TestRelease_InVainDoesNotCutOffTheWrite(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			next, err := c.Acquire(ctx, lock.Name("report"))
			if assert.NoError(t, err) {
				_ = next.Release(ctx)
			}
		}()
		time.Sleep(time.Second)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 20 * time.Second, Operation: "TransactWriteItems", Times: 1})
		got := make(chan error, 1)
		go func() { got <- l.Write(ctx, w.put("x")) }()
		time.Sleep(time.Second)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, l.Release(short), context.DeadlineExceeded)
		require.NoError(t, context.Cause(l.Context()))
		assert.NoError(t, <-got)
		<-done
	})
}

// The answer of a release is lost, its second attempt meets a conflict, and meanwhile another process takes this session for
// dead, and enters. The row shows the other holder, and not whether the release was applied before. Release reports both.
func TestRelease_WithoutAnAnswerUnderADeadSessionIsInDoubt(t *testing.T) {
	for name, applied := range map[string]bool{"applied": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				var attempts atomic.Int32
				var armed atomic.Bool
				other := w.client(quiet)
				var c *lock.Client
				way := w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
					if operation != "UpdateItem" || !armed.Load() || !strings.Contains(body, "LOCK#report") {
						return send()
					}
					switch attempts.Add(1) {
					case 1: // its answer is lost
						if applied {
							resp, err := send()
							require.NoError(t, err)
							require.NoError(t, resp.Body.Close())
						}
						return nil, errors.New("connection reset")
					case 2:
						w.engine.Inject(tabletest.Fault{Kind: tabletest.TransactionConflict, Operation: "UpdateItem", Times: 1, Key: w.table.KeyItem(w.lockKey("report"))})
						resp, err := send()
						w.takenForDead(ctx, c, other)
						return resp, err
					}
					return send()
				})
				c = w.clientOver(way, quiet)
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				armed.Store(true)
				err = l.Release(ctx)
				require.ErrorIs(t, err, lock.ErrLost)
				assert.ErrorContains(t, err, "or was released")
				assert.GreaterOrEqual(t, attempts.Load(), int32(3))
				require.Error(t, context.Cause(l.Context()))
				require.ErrorIs(t, l.Release(ctx), lock.ErrLost)
				require.Error(t, l.Write(ctx, w.put("x")))
				r, err := other.Inspect(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.True(t, r.Held())
				require.NotEqual(t, l.Ticket(), r.Holder().Ticket)
				require.Greater(t, r.Fence, l.Fence())
			})
		})
	}
}

func (w *world) lockKey(name string) keys.Key { return keys.NewKey("LOCK#"+name, "LOCK#"+name) }

// takenForDead marks the session of a client as dead, like a client that has observed it for a whole lease, and lets
// another one acquire.
func (w *world) takenForDead(ctx context.Context, c, other *lock.Client) {
	w.Helper()
	require.NoError(w, w.table.Write(ctx, table.Update(sessionKey(c), table.Attr("dead").Set(time.Now().UnixMilli()))))
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := other.Acquire(bounded, lock.Name("report"))
	require.NoError(w, err)
}

// A session repeats releases that failed, a few at once, and always in the same order: the same run sends the same requests.
func TestSession_RepeatsFailedReleasesInOneOrder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, quiet)
		const atOnce = 16
		targets := names(3 * atOnce)
		rows := make([]string, len(targets))
		leases := make([]*lock.Lease, len(targets))
		for i, target := range slices.Backward(targets) {
			l, err := c.Acquire(ctx, target)
			require.NoError(t, err)
			leases[i], rows[i] = l, l.Key().PK
		}
		way.cut(refused)
		for _, l := range leases {
			w.releaseInVainFor(ctx, 50*time.Millisecond, l)
		}
		way.cut(open)
		w.engine.ResetRequests()
		w.latency(10 * time.Millisecond) // so that requests are sent at different instants
		time.Sleep(10 * time.Second)
		var released []string
		for _, r := range w.engine.Requests() {
			if pk := r.Keys[0].Attrs["pk"].(*types.AttributeValueMemberS).Value; slices.Contains(rows, pk) {
				released = append(released, pk)
			}
		}
		for some := range slices.Chunk(released, atOnce) {
			slices.Sort(some)
		}
		assert.Equal(t, rows, released)
	})
}

// A call that passes the lock to a goroutine that has left gives it back within its own context.
func TestRelease_EndsWithItsContextBehindAPass(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, w *world, c *lock.Client, l *lock.Lease) error{
		"Release": func(ctx context.Context, _ *world, _ *lock.Client, l *lock.Lease) error { return l.Release(ctx) },
		"Commit": func(ctx context.Context, w *world, _ *lock.Client, l *lock.Lease) error {
			return l.Commit(ctx, w.put("x"))
		},
		"Close": func(ctx context.Context, _ *world, c *lock.Client, _ *lock.Lease) error { return c.Close(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.unclosed(&line{to: w.engine.HTTPClient()}, quiet)
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				waiting, leave := context.WithCancel(ctx)
				defer leave()
				acquireAsync(waiting, c, lock.Name("report"))
				w.engine.Inject(tabletest.Fault{
					Kind: tabletest.Delay, Key: w.table.KeyItem(l.Key()), After: true, For: 500 * time.Millisecond, Times: 1,
				})
				time.AfterFunc(300*time.Millisecond, leave)
				time.AfterFunc(400*time.Millisecond, func() { w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Hour}) })
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				start := time.Now()
				_ = call(short, w, c, l)
				assert.LessOrEqual(t, time.Since(start), 1100*time.Millisecond)
				w.engine.ClearFaults()
				_ = c.Close(ctx)
				time.Sleep(time.Minute)
			})
		})
	}
}

// No renewal repeats the release of a lease of its own that has failed, so the client does.
func TestRelease_OfAFixedLeaseIsRepeated(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Key: w.table.KeyItem(l.Key())})
		require.ErrorIs(t, l.Release(ctx), table.ErrThrottled)
		w.engine.ClearFaults()
		time.Sleep(time.Minute)
		next, err := other.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, next.Release(ctx))
	})
}

// A release that has waited for a write in vain is repeated, too.
func TestRelease_OfAFixedLeaseBehindAWriteIsRepeated(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 3 * time.Second, Operation: "TransactWriteItems", Times: 1})
		go func() { assert.NoError(t, l.Write(ctx, w.put("x"))) }()
		time.Sleep(time.Second)
		w.releaseInVain(ctx, l)
		time.Sleep(5 * time.Minute)
		_, err = other.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
	})
}

// A release that was in doubt is repeated after the same client has acquired the lock again. It does not release that lease, and neither
// does the MaxHold of the earlier one.
func TestRelease_RepeatedOneLeavesALaterLeaseAlone(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, quiet)
		target := lock.Name("report")
		old, err := c.Acquire(ctx, target, lock.MaxHold(time.Minute))
		require.NoError(t, err)
		way.cut(unanswered)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, old.Release(short), context.DeadlineExceeded)
		way.cut(open)
		later, err := c.Acquire(ctx, target)
		require.NoError(t, err)
		require.NoError(t, old.Release(ctx))
		require.NoError(t, later.Write(ctx, w.put("x")))
		time.Sleep(2 * time.Minute)
		require.NoError(t, old.Release(ctx))
		require.NoError(t, later.Commit(ctx, w.put("x")))
	})
}
