package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
