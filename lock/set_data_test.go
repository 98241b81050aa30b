package lock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A fault at every request of SetData. Its answer holds, also when a duplicate arrives late, after another SetData, and the
// next holder finds the payload of the row.
func TestSetData_EveryFaultKeepsItsAnswerTrue(t *testing.T) {
	tried, number := 0, 0
	for _, fault := range []tabletest.Fault{
		{Kind: tabletest.DropRequest},
		{Kind: tabletest.DropRequest, For: 10 * time.Second},
		{Kind: tabletest.DropReply},
		{Kind: tabletest.DuplicateLate, For: 10 * time.Second},
		{Kind: tabletest.DuplicateLate, AfterCalls: 1},
		{Kind: tabletest.Delay, For: time.Minute},
		{Kind: tabletest.Delay, For: time.Minute, After: true},
		{Kind: tabletest.Throttle},
		{Kind: tabletest.InternalErrorAfter},
		{Kind: tabletest.TransactionConflict},
	} {
		for call := 1; call <= 5; call++ {
			for _, times := range []int{1, 3} {
				for _, waits := range []bool{false, true} {
					if number++; number%testkit.IfSmall(7, 1) != 0 {
						continue
					}
					tried++
					virtual(t, func(ctx context.Context, w *world) {
						c := w.client(lock.Config{})
						l, err := c.Acquire(ctx, lock.Name("report"), lock.WithData("0"))
						require.NoError(t, err)
						var got <-chan *lock.Lease
						if waits {
							got = acquireAsync(ctx, c, lock.Name("report"))
						}
						w.engine.ResetRequests()
						fault := fault
						fault.Call, fault.Times = call, times
						w.engine.Inject(fault)
						sure := "0"
						for i := 1; i <= 4; i++ {
							if err := l.SetData(ctx, fmt.Sprint(i)); assert.NoError(t, err) {
								sure = fmt.Sprint(i)
							}
						}
						w.engine.ClearFaults()
						time.Sleep(2 * time.Minute)
						r, err := c.Inspect(ctx, lock.Name("report"))
						require.NoError(t, err)
						require.Equal(t, sure, decoded(t, r.Data))
						require.NoError(t, l.Release(ctx))
						if !waits {
							got = acquireAsync(ctx, c, lock.Name("report"))
						}
						next := <-got
						require.NotNil(t, next)
						require.Equal(t, sure, decoded(t, next.Data()))
					})
					if t.Failed() {
						t.Fatalf("%v (for %v, after %v) at call %d, %d times, a waiter %v", fault.Kind, fault.For, fault.After, call, times, waits)
					}
				}
			}
		}
	}
	t.Logf("F5 faults tried for SetData: %d, all pass", tried)
}

// If it is not known which payload the row has, the next holder reads it.
func TestSetData_InDoubtIsReadByTheNextHolder(t *testing.T) {
	for _, how := range []cut{unanswered, refused} {
		for _, opts := range [][]lock.Option{nil, {lock.WithData("next")}} {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				c := w.clientOver(wire, lock.Config{})
				l, err := c.Acquire(ctx, lock.Name("report"), lock.WithData("first"))
				require.NoError(t, err)
				got := acquireAsync(ctx, c, lock.Name("report"), opts...)
				wire.cut(how)
				short, cancel := context.WithTimeout(ctx, time.Second)
				err = l.SetData(short, "second")
				cancel()
				require.Error(t, err)
				require.NotErrorIs(t, err, lock.ErrLost)
				wire.cut(open)
				require.NoError(t, l.Release(ctx))
				next := <-got
				require.NotNil(t, next)
				r, err := c.Inspect(ctx, lock.Name("report"))
				require.NoError(t, err)
				want := map[bool]string{true: "second", false: "first"}[how == unanswered]
				if len(opts) > 0 {
					want = "next"
				}
				assert.Equal(t, want, decoded(t, next.Data()))
				assert.Equal(t, want, decoded(t, r.Data))
			})
		}
	}
}

func TestSetData_IsForTheHolderAlone(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b := w.client(lock.Config{}), w.client(lock.Config{})
		stale, err := a.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Second), lock.WithData("a"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, stale.SetData(ctx, "a, late"), "expired, but nobody took it")
		l, err := b.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Equal(t, "a, late", decoded(t, l.Data()))
		require.ErrorIs(t, stale.SetData(ctx, "stale"), lock.ErrLost)
		r, err := b.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Equal(t, "a, late", decoded(t, r.Data))
	})
}

// A payload was written, and its writer lost the lock before it had the answer. The next attempt is refused, which proves
// nothing about the first: SetData does not report that nothing was written.
func TestSetData_AppliedOneIsNotReportedAsLost(t *testing.T) {
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

// A payload without an answer is not passed on with a commit: the next holder reads what the row has.
func TestSetData_InDoubtIsNotLostByACommit(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wire := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(wire, quiet)
		l, err := c.Acquire(ctx, lock.Name("report"), lock.WithData("first"))
		require.NoError(t, err)
		got := acquireAsync(ctx, c, lock.Name("report"))
		wire.cut(unanswered)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, l.SetData(short, "second"), context.DeadlineExceeded)
		wire.cut(open)
		require.NoError(t, l.Commit(ctx, w.put("x")))
		next := <-got
		require.NotNil(t, next)
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Equal(t, "second", decoded(t, r.Data))
		assert.Equal(t, "second", decoded(t, next.Data()))
	})
}

// SetData under the context of a lease that ends before the answer does not say that nothing was written.
func TestSetData_InDoubtIsNoLossWhenTheLeaseEnds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(2*time.Second))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key())})
		err = l.SetData(l.Context(), "written")
		require.Error(t, err)
		w.engine.ClearFaults()
		r, problem := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, problem)
		require.Equal(t, "written", decoded(t, r.Data))
		assert.NotErrorIs(t, err, lock.ErrLost)
	})
}

// An error tells whether the payload may have been written, also one that is answered: DynamoDB can apply a request that it fails.
func TestSetData_TellsWhetherItMayHaveBeenWritten(t *testing.T) {
	for fault, written := range map[tabletest.FaultKind]bool{tabletest.InternalErrorAfter: true, tabletest.Throttle: false} {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(lock.Config{Lease: time.Minute})
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			w.engine.Inject(tabletest.Fault{Kind: fault, Operation: "UpdateItem"})
			err = l.SetData(ctx, "x")
			w.engine.ClearFaults()
			require.Error(t, err)
			assert.Equal(t, written, errors.Is(err, table.ErrUnreachable), err)
			assert.Equal(t, written, table.MayBeApplied(err), err)
			r, err := c.Inspect(ctx, l.Target())
			require.NoError(t, err)
			assert.Equal(t, written, !r.Data.IsZero())
		})
	}
}
