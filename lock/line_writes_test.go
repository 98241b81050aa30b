package lock_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A payload that was written, and whose writer lost the lock before it heard so, is not known to be lost:
// the next attempt is refused, which says nothing about the first.
func TestSetDataThatWasAppliedIsNotCalledLost(t *testing.T) {
	for name, opts := range map[string][]lock.Option{
		"the next holder keeps the payload": nil, "the next holder replaces it": {lock.WithData("another")},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				op, next := w.client(quiet), w.client(quiet)
				var changesHands atomic.Bool
				c := w.clientOver(w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
					resp, err := send()
					if err != nil || operation != "UpdateItem" || !strings.Contains(body, "written") || !changesHands.CompareAndSwap(true, false) {
						return resp, err
					}
					w.force(ctx, op, lock.Name("report"))
					_, err = next.TryAcquire(ctx, lock.Name("report"), opts...)
					assert.NoError(t, err)
					return nil, errors.Join(errors.New("connection reset"), resp.Body.Close())
				}), quiet)
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				changesHands.Store(true)
				err = l.SetData(ctx, "written")
				require.False(t, changesHands.Load())
				require.NotErrorIs(t, err, lock.ErrLost)
				require.ErrorIs(t, err, table.ErrUnreachable)
				require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost, "it is lost, all the same")
			})
		})
	}
}

// The guarded writes of a lease are applied in their order: one that timed out does not overwrite a later
// one that was acknowledged.
func TestWriteThatComesLateIsRefusedAfterALaterOne(t *testing.T) {
	for name, later := range map[string]func(*lock.Lease, context.Context, ...table.Op) error{
		"Write": (*lock.Lease).Write, "Commit": (*lock.Lease).Commit,
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				const late = 10 * time.Second
				is := func(v string) table.Op { return table.Update(w.row("x"), table.Attr("is").Set(v)) }
				l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				w.engine.Inject(
					tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: late},
					tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems"},
				)
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				err = l.Write(short, is("first"))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NotErrorIs(t, err, lock.ErrLost)
				w.engine.ClearFaults()
				require.NoError(t, later(l, ctx, is("second")))
				time.Sleep(late + time.Second)
				item, err := w.table.Get(ctx, w.row("x"), true)
				require.NoError(t, err)
				assert.Equal(t, text("second"), item["is"])
				came := false
				for _, r := range w.engine.Requests() {
					came = came || r.Late
				}
				assert.True(t, came, "the first write came in")
			})
		})
	}
}

// A guard is of its lock's table. In another one there is no such row, which does not mean that the lock is lost.
func TestGuardInAnotherTableIsRefused(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		other, err := table.Open(w.sdk(w.engine.HTTPClient()), table.Schema{Name: "other"})
		require.NoError(t, err)
		require.NoError(t, other.Ensure(ownHand(ctx)))
		c := w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		b, err := c.AcquireAll(ctx, names(2))
		require.NoError(t, err)
		for _, guards := range [][]table.Op{{l.Guard()}, b.Guards()} {
			ops := w.requests(func() {
				err = other.Write(ctx, append(guards, table.Put(other.KeyItem(w.row("x"))))...)
			})
			require.ErrorIs(t, err, lock.ErrInvalid)
			require.NotErrorIs(t, err, lock.ErrLost)
			assert.Empty(t, ops, "nothing was sent")
			require.NoError(t, w.open().Write(ctx, append(guards, w.put("x"))...), "the same table, opened once more")
		}
		require.NoError(t, context.Cause(l.Context()))
		require.NoError(t, l.Write(ctx, w.put("x")))
	})
}

// Whoever waits for a lock that its own process holds is told so in the end: it may be waiting for itself.
func TestNestedAcquireSaysThatThisClientHoldsTheLock(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(quiet)
				l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
				require.NoError(t, err)
				short, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				_, err = c.Acquire(short, lock.Name("report"), opts...)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, lock.ErrHeld)
				assert.ErrorContains(t, err, "this client")
				require.NoError(t, l.Release(ctx))
				l, err = c.Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))

				// Another process's is not this client's.
				l, err = w.client(quiet).Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				again, stop := context.WithTimeout(ctx, time.Minute)
				defer stop()
				_, err = c.Acquire(again, lock.Name("report"), opts...)
				require.ErrorIs(t, err, lock.ErrHeld)
				assert.NotContains(t, err.Error(), "this client")
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// The writes of each holder are numbered on from those of the holder before, in whatever way it comes to hold the
// lock: none is taken for one of them.
func TestWritesOfEachHolderAreApplied(t *testing.T) {
	target := lock.Name("report")
	release := func(ctx context.Context, _ *world, _ *lock.Client, l *lock.Lease) error { return l.Release(ctx) }
	commit := func(ctx context.Context, w *world, _ *lock.Client, l *lock.Lease) error {
		return l.Commit(ctx, w.count("n"))
	}
	force := func(ctx context.Context, w *world, op *lock.Client, _ *lock.Lease) error {
		w.force(ctx, op, target)
		return nil
	}
	for name, c := range map[string]struct {
		end   func(context.Context, *world, *lock.Client, *lock.Lease) error
		other bool // the next holder is another process
	}{
		"passed": {release, false}, "passed by a commit": {commit, false},
		"released": {release, true}, "committed": {commit, true}, "by force": {force, true},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				first := w.client(quiet)
				next := first
				if c.other {
					next = w.client(quiet)
				}
				l, err := first.Acquire(ctx, target)
				require.NoError(t, err)
				want := int64(0)
				for n := range 3 {
					for range n + 1 {
						require.NoError(t, l.Write(ctx, w.count("n")))
						require.NoError(t, l.SetData(ctx, name))
						want++
					}
					got := acquireAsync(ctx, next, target)
					require.NoError(t, c.end(ctx, w, next, l))
					l = <-got
					require.NotNil(t, l)
				}
				require.NoError(t, l.Write(ctx, w.count("n")))
				require.NoError(t, l.SetData(ctx, "the last"))
				r, err := next.Inspect(ctx, target)
				require.NoError(t, err)
				assert.Equal(t, "the last", decoded(t, r.Data))
				if strings.Contains(name, "commit") {
					want += 3
				}
				assert.Equal(t, want+1, w.counted("n"))
			})
		})
	}
}
