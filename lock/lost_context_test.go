package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// The lease ends while a write waits for its answer, and ends the write's context. The write may have been applied, so the
// error does not match ErrLost, which means that nothing was written.
func TestWrite_WithoutAnAnswerIsNoLossOfTheLock(t *testing.T) {
	for name, write := range map[string]func(l *lock.Lease, ctx context.Context, ops ...table.Op) error{
		"write": (*lock.Lease).Write, "commit": (*lock.Lease).Commit,
	} {
		for _, kind := range []tabletest.FaultKind{tabletest.DropRequest, tabletest.DropReply} {
			t.Run(name+" "+kind.String(), func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					l, err := w.client(quiet).Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
					require.NoError(t, err)
					time.Sleep(15 * time.Second)
					w.engine.Inject(tabletest.Fault{Kind: kind, Operation: "TransactWriteItems"})
					err = write(l, l.Context(), w.count("n"))
					require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
					require.ErrorIs(t, err, context.Canceled)
					require.NotErrorIs(t, err, lock.ErrLost)
					require.NotErrorIs(t, err, lock.ErrExpired)
					assert.ErrorContains(t, err, lock.ErrExpired.Error(), "the text tells why the context ended")
					var request *table.Error
					assert.ErrorAs(t, err, &request)
					assert.Equal(t, kind == tabletest.DropReply, w.counted("n") == 1)

					w.engine.ClearFaults()
					err = write(l, l.Context(), w.count("n"))
					assert.Equal(t, name == "write", errors.Is(err, lock.ErrLost), "a commit that is repeated stands for the first one, too: %v", err)
				})
			})
		}
	}
}

// The same while DynamoDB refuses the write for now: a late copy of a refused request is applied.
func TestWrite_RefusedUntilTheLeaseEndsIsNoLossOfTheLock(t *testing.T) {
	write := func(f func(*lock.Lease, context.Context, ...table.Op) error) func(*world, *lock.Lease) error {
		return func(w *world, l *lock.Lease) error { return f(l, l.Context(), w.count("n")) }
	}
	for name, c := range map[string]struct {
		operation string
		write     func(*world, *lock.Lease) error
	}{
		"write":    {"TransactWriteItems", write((*lock.Lease).Write)},
		"commit":   {"TransactWriteItems", write((*lock.Lease).Commit)},
		"set data": {"UpdateItem", func(_ *world, l *lock.Lease) error { return l.SetData(l.Context(), "new") }},
	} {
		for _, kind := range []tabletest.FaultKind{tabletest.Throttle, tabletest.TransactionConflict} {
			t.Run(name+" "+kind.String(), func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					client := w.client(quiet)
					l, err := client.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
					require.NoError(t, err)
					time.Sleep(15 * time.Second)
					w.engine.Inject(
						tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: c.operation, Times: 1, For: 10 * time.Second},
						tabletest.Fault{Kind: kind, Operation: c.operation},
					)
					err = c.write(w, l)
					require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
					require.NotErrorIs(t, err, lock.ErrLost)
					require.True(t, table.MayBeApplied(err), err)
					w.engine.ClearFaults()
					time.Sleep(10 * time.Second)
					if name != "set data" {
						require.EqualValues(t, 1, w.counted("n"))
						return
					}
					row, err := client.Inspect(ctx, lock.Name("report"))
					require.NoError(t, err)
					var data string
					require.NoError(t, row.Data.Decode(&data))
					require.Equal(t, "new", data)
				})
			})
		}
	}
}

// The process is paused between the answer and the end of the lease: a condition of the caller's own was refused, and no guard. A copy of
// the request that arrives later is applied, since nobody else has acquired.
func TestWrite_RefusedByAConditionBeforeTheLeaseEndsIsNoLossOfTheLock(t *testing.T) {
	for name, write := range map[string]func(l *lock.Lease, ctx context.Context, ops ...table.Op) error{
		"write": (*lock.Lease).Write, "commit": (*lock.Lease).Commit,
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				var faults faulty.Client
				tbl, err := table.Open(w.sdk(w.engine.HTTPClient(), faults.Options), table.Schema{Name: "app"})
				require.NoError(t, err)
				client, err := lock.New(tbl, quiet)
				require.NoError(t, err)
				defer func() { require.NoError(t, client.Close(ctx)) }()
				l, err := client.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
				require.NoError(t, err)
				faults.Script(faulty.Pass.Copied(30 * time.Second).Then(func() { time.Sleep(20 * time.Second) }))
				err = write(l, l.Context(), w.count("n").If(table.Attr("ready").Exists()))
				require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
				var refused *table.ConditionError
				require.ErrorAs(t, err, &refused)
				require.Zero(t, refused.Index)
				require.NotErrorIs(t, err, lock.ErrLost)
				require.True(t, table.MayBeApplied(err), err)
				require.NoError(t, w.table.Write(ctx, table.Update(w.row("n"), table.Attr("ready").Set(true))))
				faults.Settle()
				require.EqualValues(t, 1, w.counted("n"))
			})
		})
	}
}

// Nothing is sent if the context has ended before, or ends while the call waits for another write. So the call can be repeated.
func TestWrite_ThatWasNotSentIsNotInDoubt(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, w *world, l *lock.Lease) error{
		"write":    func(ctx context.Context, w *world, l *lock.Lease) error { return l.Write(ctx, w.count("n")) },
		"commit":   func(ctx context.Context, w *world, l *lock.Lease) error { return l.Commit(ctx, w.count("n")) },
		"set data": func(ctx context.Context, _ *world, l *lock.Lease) error { return l.SetData(ctx, "x") },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(quiet)
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, Operation: "TransactWriteItems", For: 2 * time.Second, Times: 1})
				first := make(chan error, 1)
				go func() { first <- l.Write(ctx, w.count("first")) }()
				time.Sleep(100 * time.Millisecond)
				waiting, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				for range 2 {
					err = call(waiting, w, l)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.False(t, table.MayBeApplied(err), err)
				}
				require.NoError(t, <-first)
				require.NoError(t, call(ctx, w, l))
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// The guard of another lease, which was lost, is among the operations. Its refusal is definite, and tells of that loss.
func TestWrite_RefusedByTheGuardOfAnotherLeaseTellsOfItsLoss(t *testing.T) {
	for name, write := range map[string]func(l *lock.Lease, ctx context.Context, ops ...table.Op) error{
		"write": (*lock.Lease).Write, "commit": (*lock.Lease).Commit,
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(quiet)
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				other, err := c.Acquire(ctx, lock.Name("other"))
				require.NoError(t, err)
				require.NoError(t, c.ForceRelease(ctx, lock.Name("other"), other.Ticket()))
				err = write(l, ctx, w.count("n"), other.Guard())
				require.ErrorIs(t, err, lock.ErrLost)
				require.False(t, table.MayBeApplied(err), err)
				require.Zero(t, w.counted("n"))
				require.NoError(t, l.Write(ctx, w.count("n")))
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// Do reports that the lock was lost, whatever its function returns.
func TestDo_ReportsTheLossAfterAWriteWithoutAnAnswer(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var written error
		err := w.client(quiet).Do(ctx, lock.Name("report"), func(ctx context.Context, l *lock.Lease) error {
			time.Sleep(15 * time.Second)
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
			written = l.Write(ctx, w.count("n"))
			return written
		}, lock.Fixed(20*time.Second))
		require.NotErrorIs(t, written, lock.ErrLost)
		require.ErrorIs(t, err, lock.ErrLost)
		require.EqualValues(t, 1, w.counted("n"))
	})
}
