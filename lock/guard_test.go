package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A commit without an answer that was applied is released, however often and by whom the lock was held
// since: it is not lost.
func TestCommit_WithoutAnAnswerIsNoLossAfterOthers(t *testing.T) {
	for _, how := range []string{"commit", "release"} {
		virtual(t, func(ctx context.Context, w *world) {
			lost := make(chan error, 1)
			c, other := w.client(lock.Config{OnLost: func(_ *lock.Lease, cause error) { lost <- cause }}), w.client(lock.Config{})
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			err = l.Commit(short, w.count("n"))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, lock.ErrLost)
			w.engine.ClearFaults()
			require.EqualValues(t, 1, w.counted("n"), "it was applied")
			o, err := other.TryAcquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.NoError(t, o.Release(ctx))
			if how == "commit" {
				err = l.Commit(ctx, w.count("n"))
				assert.ErrorIs(t, err, table.ErrUnreachable)
				assert.NotErrorIs(t, err, lock.ErrLost)
			} else {
				err = l.Release(ctx)
				assert.NoError(t, err)
			}
			assert.EqualValues(t, 1, w.counted("n"))
			time.Sleep(time.Second)
			select {
			case cause := <-lost:
				t.Error("OnLost:", cause)
			default:
			}
		})
	}
}

// A commit that was refused since a condition of its own was in the way, and of which an attempt comes
// in when it is not any more, is applied like one without an answer.
func TestCommit_RefusedOneThatComesInLaterIsNoLoss(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		lost := make(chan error, 1)
		c, other := w.client(lock.Config{OnLost: func(_ *lock.Lease, cause error) { lost <- cause }}), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, w.put("x")))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: 3 * time.Second})
		err = l.Commit(ctx, w.put("x").If(table.Attr("pk").NotExists()))
		require.ErrorIs(t, err, table.ErrCondition)
		require.NotErrorIs(t, err, lock.ErrLost)
		require.NoError(t, context.Cause(l.Context()))
		require.NoError(t, w.table.Write(ctx, table.Delete(w.row("x"))))
		time.Sleep(4 * time.Second)
		_, err = w.table.Get(ctx, w.row("x"), true)
		require.NoError(t, err, "the first attempt has come in")
		o, err := other.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, o.Release(ctx))
		require.NoError(t, l.Release(ctx))
		time.Sleep(time.Second)
		select {
		case cause := <-lost:
			t.Error("OnLost:", cause)
		default:
		}
	})
}

// Where the lock was taken by force meanwhile nobody can tell whether the commit was applied, and it is
// not reported as released.
func TestCommit_WithoutAnAnswerBeforeAForcedRelease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems"})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, l.Commit(short, w.count("n")), context.DeadlineExceeded)
		w.engine.ClearFaults()
		w.force(ctx, other, lock.Name("report"))
		for range 2 {
			o, err := other.TryAcquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.NoError(t, o.Release(ctx))
		}
		err = l.Commit(ctx, w.count("n"))
		require.ErrorIs(t, err, table.ErrUnreachable)
		require.NotErrorIs(t, err, lock.ErrReleased)
		require.EqualValues(t, 0, w.counted("n"))
	})
}

// A commit that was refused is one that was not applied, and stays so.
func TestCommit_RefusedOneIsNotInDoubt(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.askBack(ctx, other, l)
		<-l.Context().Done()
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked, "it goes on, and is not known to be lost later")
		require.NoError(t, w.table.Write(ctx, table.Delete(l.Key()))) // by hand
		o, err := other.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.Greater(t, o.Fence(), l.Fence())
		require.ErrorIs(t, l.Commit(ctx, w.count("n")), lock.ErrLost)
		err = l.Commit(ctx, w.count("n"))
		require.ErrorIs(t, err, lock.ErrLost, "nothing was applied")
	})
}

// Where a commit was applied without an answer, and others have come and gone since, whoever hears of it
// first says so: the lock was not lost.
func TestCommit_WithoutAnAnswerIsNoLossForAnyCall(t *testing.T) {
	for name, hear := range map[string]func(ctx context.Context, l *lock.Lease) error{
		"renew":    func(ctx context.Context, l *lock.Lease) error { return l.Renew(ctx) },
		"set data": func(ctx context.Context, l *lock.Lease) error { return l.SetData(ctx, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.client(lock.Config{OnLost: func(*lock.Lease, error) { t.Error("it was told of a loss") }}), w.client(lock.Config{})
				l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Minute))
				require.NoError(t, err)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				require.ErrorIs(t, l.Commit(short, w.count("n")), context.DeadlineExceeded)
				w.engine.ClearFaults()
				o, err := other.TryAcquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.NoError(t, o.Release(ctx))
				require.ErrorIs(t, hear(ctx, l), lock.ErrReleased)
				require.ErrorIs(t, hear(ctx, l), lock.ErrReleased)
				err = l.Commit(ctx, w.count("n"))
				require.ErrorIs(t, err, table.ErrUnreachable, "nothing answers for the first one but its token")
				require.NotErrorIs(t, err, lock.ErrLost)
				require.EqualValues(t, 1, w.counted("n"))
			})
		})
	}
}
