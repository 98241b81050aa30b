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

// Whoever leaves it at a Release that waited for a guarded write in vain does not hold the lock for ever.
func TestReleaseThatWaitedForAWriteInVain(t *testing.T) {
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

// A leader that was asked back, and has left guarded writes behind, campaigns anew and does not wait for
// itself.
func TestLeadBehindWritesThatHang(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 4900 * time.Millisecond, Operation: "TransactWriteItems", Times: 2})
		leading, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		terms := 0
		done := make(chan error, 1)
		go func() {
			done <- c.Lead(leading, lock.Name("report"), func(ctx context.Context, l *lock.Lease) error {
				terms++
				<-ctx.Done()
				if terms == 1 {
					go func() { _ = l.Write(context.Background(), w.put("x")) }()
					go func() { _ = l.Write(context.Background(), w.put("x")) }()
					time.Sleep(time.Millisecond)
				}
				return ctx.Err()
			})
		}()
		time.Sleep(10 * time.Millisecond)
		require.NoError(t, other.Revoke(ctx, lock.Name("report")))
		time.Sleep(30 * time.Minute)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		assert.Greater(t, terms, 1)
	})
}

// A commit without an answer that was applied is released, however often and by whom the lock was held
// since: it is not lost.
func TestCommitWithoutAnAnswerIsNoLossAfterOthers(t *testing.T) {
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
func TestRefusedCommitThatComesInLaterIsNoLoss(t *testing.T) {
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
func TestCommitWithoutAnAnswerBeforeAForcedRelease(t *testing.T) {
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
func TestRefusedCommitIsNotUnclear(t *testing.T) {
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

// A release that has waited in vain for a write does not have the write cut off by those who wait in the
// process.
func TestReleaseInVainSparesTheWrite(t *testing.T) {
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

// Where a commit was applied without an answer, and others have come and gone since, whoever hears of it
// first says so: the lock was not lost.
func TestCommitWithoutAnAnswerIsNoLossWhoeverHearsOfIt(t *testing.T) {
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

// A lock that was passed on without an answer is not kept by a ticket that nobody claims, once the lease is
// over of which nobody asks any more. No session's renewals find out: there is none, or the lease is Fixed.
func TestPassWithoutAnAnswerOfALeaseThatEnds(t *testing.T) {
	const length = 20 * time.Second
	for name, opts := range leases() {
		for heirs, heir := range leases() {
			t.Run(name+" to "+heirs, func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					waiting, cancel := context.WithTimeout(ctx, time.Hour)
					defer cancel()
					c, other := w.client(quiet), w.client(quiet)
					_, err := c.Acquire(ctx, lock.Name("keeps the session"))
					require.NoError(t, err)
					l, err := c.Acquire(ctx, lock.Name("report"), opts...)
					require.NoError(t, err)
					got := acquireAsync(waiting, c, lock.Name("report"), heir...)
					w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
					short, stop := context.WithTimeout(ctx, time.Second)
					defer stop()
					require.ErrorIs(t, l.Commit(short, w.count("n")), context.DeadlineExceeded)
					w.engine.ClearFaults()
					start := time.Now()
					next := <-got
					require.NotNil(t, next)
					assert.LessOrEqual(t, time.Since(start), 2*length+6*time.Second)
					require.NoError(t, next.Write(ctx, w.count("n")))
					require.NoError(t, next.Release(ctx))
					last, err := other.Acquire(waiting, lock.Name("report"))
					require.NoError(t, err)
					require.NoError(t, last.Release(ctx))
				})
			})
		}
	}
}
