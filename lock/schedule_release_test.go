package lock_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A job releases the lock itself, without an answer. The interval is not recorded, and is not taken for recorded.
func TestEvery_KnowsOfAReleaseWithoutAnAnswer(t *testing.T) {
	for _, kind := range []tabletest.FaultKind{tabletest.DropReply, tabletest.DropRequest} {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(quiet)
			bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
			defer cancel()
			runs := 0
			require.ErrorIs(t, c.Every(bounded, lock.Name("report"), time.Minute, func(_ context.Context, l *lock.Lease, _ time.Time) error {
				if runs++; runs > 1 {
					return nil
				}
				w.engine.Inject(tabletest.Fault{Kind: kind, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key())})
				defer w.engine.ClearFaults()
				short, cancel := context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
				assert.Error(t, l.Release(short))
				return nil
			}), lock.ErrReleased)
			assert.Equal(t, 1, runs)
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			assert.False(t, r.Held())
			assert.Zero(t, r.Ran)
		})
	}
}

// failsReleased requires that Every runs a job that has released its lock once, and returns ErrReleased.
func failsReleased(ctx context.Context, t *testing.T, c *lock.Client, job func(context.Context, *lock.Lease) error) {
	t.Helper()
	bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	runs := 0
	require.ErrorIs(t, c.Every(bounded, lock.Name("report"), time.Minute, func(ctx context.Context, l *lock.Lease, _ time.Time) error {
		if runs++; runs > 3 {
			cancel()
		}
		return job(ctx, l)
	}), lock.ErrReleased)
	assert.Equal(t, 1, runs)
}

// A commit that was refused has recorded nothing. If the job then releases the lock, Every returns an error, and the job is
// not run again and again.
func TestEvery_KnowsOfAReleaseAfterARefusedCommit(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		failsReleased(ctx, t, w.client(quiet), func(ctx context.Context, l *lock.Lease) error {
			assert.ErrorIs(t, l.Commit(ctx, w.count("n").If(table.Attr("n").Exists())), table.ErrCondition)
			return l.Release(ctx)
		})
	})
}

// The same if the job releases the lock after it was revoked.
func TestEvery_KnowsOfAReleaseAfterARevocation(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		failsReleased(ctx, t, c, func(inside context.Context, l *lock.Lease) error {
			assert.NoError(t, c.Revoke(ctx, l.Target()))
			<-inside.Done()
			return l.Release(ctx)
		})
	})
}

// The same if the job first released the lock, without an answer, and others have held it since. The guard of the commit
// finds out, and nothing is applied.
func TestEvery_KnowsOfAReleaseBeforeARefusedCommit(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		failsReleased(ctx, t, c, func(_ context.Context, l *lock.Lease) error {
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key())})
			short, stop := context.WithTimeout(ctx, 2*time.Second)
			defer stop()
			assert.ErrorIs(t, l.Release(short), context.DeadlineExceeded)
			w.engine.ClearFaults()
			o, err := other.TryAcquire(ctx, lock.Name("report"))
			if assert.NoError(t, err) {
				assert.NoError(t, o.Release(ctx))
			}
			assert.ErrorIs(t, l.Commit(ctx, w.count("n")), lock.ErrReleased)
			return nil
		})
		assert.EqualValues(t, 0, w.counted("n"))
	})
}

// A commit that was never sent was not applied. A release after it counts.
func TestEvery_KnowsOfAReleaseAfterAnInvalidCommit(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		failsReleased(ctx, t, w.client(quiet), func(ctx context.Context, l *lock.Lease) error {
			assert.ErrorIs(t, l.Commit(ctx, table.Update(keys.NewKey("", ""), table.Attr("n").Set(1))), table.ErrInvalid)
			return l.Release(ctx)
		})
	})
}

// A commit that was applied without an answer counts as recorded, and a release after it changes nothing.
func TestEvery_KnowsOfACommitWithoutAnAnswer(t *testing.T) {
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

// If the row shows that an interval was run already, the lock is released.
func TestEvery_RunThatIsRecordedAlreadyReleasesTheLock(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		bounded, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		ended := make(chan error, 1)
		returned := make(chan struct{}, 100)
		go func() {
			ended <- c.Every(bounded, lock.Name("report"), time.Hour, func(_ context.Context, l *lock.Lease, at time.Time) error {
				assert.NoError(t, w.table.Write(ctx, table.Update(l.Key(), table.Attr("ran").Set(at.UnixMilli()))))
				returned <- struct{}{}
				return nil
			})
		}()
		<-returned
		time.Sleep(100 * time.Millisecond)
		l, err := other.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		require.ErrorIs(t, <-ended, context.DeadlineExceeded)
	})
}

// A run whose lock was taken by force has not finished: the interval is run again.
func TestEvery_ForcedRunIsRunAgain(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		const interval = time.Hour
		ctx, stop := context.WithCancel(ctx)
		target, op := lock.Name("job"), w.client(quiet)
		var mu sync.Mutex
		var began []time.Time
		job := func(ctx context.Context, _ *lock.Lease, at time.Time) error {
			mu.Lock()
			began = append(began, at)
			first := len(began) == 1
			mu.Unlock()
			if first {
				<-ctx.Done() // until it is told
				return ctx.Err()
			}
			return nil
		}
		var all sync.WaitGroup
		for range 2 {
			c := w.client(quiet)
			all.Go(func() { assert.ErrorIs(t, c.Every(ctx, target, interval, job), context.Canceled) })
		}
		time.Sleep(time.Minute)
		held, err := op.Inspect(ctx, target)
		require.NoError(t, err)
		require.Positive(t, held.Running)
		require.NoError(t, op.ForceRelease(ctx, target, held.Holder().Ticket))
		time.Sleep(time.Minute)
		r, err := op.Inspect(ctx, target)
		require.NoError(t, err)
		assert.Equal(t, held.Running, r.Ran, "by the second try")
		assert.Zero(t, r.Running)
		stop()
		all.Wait()
		require.Len(t, began, 2)
		assert.Equal(t, began[0], began[1])
	})
}

// After ForceRelease, a run is neither finished nor forgotten.
func TestForceRelease_KeepsTheRun(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		key := p.keyOf(lock.Name("job"))
		require.NoError(p, p.table.Write(ctx, table.Put(p.lockRow(key, true, func(i table.Item) {
			i["ran"], i["running"] = numeral(7_200_000), numeral(10_800_000)
		}))))
		held, err := p.client.Inspect(ctx, lock.Name("job"))
		require.NoError(p, err)
		require.NoError(p, p.client.ForceRelease(ctx, lock.Name("job"), held.Holder().Ticket))
		r, err := p.client.Inspect(ctx, lock.Name("job"))
		require.NoError(p, err)
		assert.False(p, r.Held())
		assert.EqualValues(p, 7_200_000, r.Ran)
		assert.EqualValues(p, 10_800_000, r.Running)
	})
}

// ForceRelease keeps what the holder has recorded in the row.
func TestForceRelease_KeepsTheRunInTheRow(t *testing.T) {
	const month = 30 * 24 * time.Hour
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		err := c.Every(bounded, lock.Name("report"), month, func(ctx context.Context, l *lock.Lease, _ time.Time) error {
			w.force(ctx, c, lock.Name("report"))
			<-l.Context().Done()
			cancel()
			return l.Context().Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		assert.Greater(t, time.Until(w.deleted(ctx, keys.NewKey("LOCK#report", "LOCK#report"))), 59*24*time.Hour)
	})
}

// The same if the job releases the lock without an answer, and the lease ends after that.
func TestEvery_KnowsOfAReleaseBeforeTheLeaseEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		maxHold, wait time.Duration
	}{
		"expired":  {0, 25 * time.Second},
		"max hold": {5 * time.Second, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way := &line{to: w.engine.HTTPClient()}
				c := w.clientOver(way, lock.Config{Logger: quiet.Logger, MaxHold: tc.maxHold})
				failsReleased(ctx, t, c, func(_ context.Context, l *lock.Lease) error {
					way.cut(hung)
					defer way.cut(open)
					short, stop := context.WithTimeout(ctx, 2*time.Second)
					defer stop()
					assert.ErrorIs(t, l.Release(short), context.DeadlineExceeded)
					time.Sleep(tc.wait)
					return nil
				})
				r, err := w.client(quiet).Inspect(ctx, lock.Name("report"))
				require.NoError(t, err)
				assert.Zero(t, r.Ran)
			})
		})
	}
}

// A job releases the lock after its lease has ended. The interval is not recorded, and the same instance begins it again at once.
func TestEvery_KnowsOfAReleaseAfterTheLeaseEnds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, quiet)
		bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		var starts []time.Time
		require.ErrorIs(t, c.Every(bounded, lock.Name("report"), time.Hour, func(inside context.Context, l *lock.Lease, at time.Time) error {
			if starts = append(starts, at); len(starts) == 1 {
				way.cut(hung)
				<-inside.Done()
				way.cut(open)
				assert.ErrorIs(t, context.Cause(inside), lock.ErrExpired)
				assert.NoError(t, l.Release(ctx))
			}
			return nil
		}), context.DeadlineExceeded)
		require.Len(t, starts, 2)
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Equal(t, starts[0], starts[1])
		assert.Equal(t, starts[0], r.LastRun())
	})
}

// The lock is lost while f runs, and f, which has not noticed that, returns nil. Nothing is recorded, so the interval is run again.
func TestEvery_RunThatIsNotRecordedIsRepeated(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Minute)
		defer cancel()
		var j diary
		err := w.client(quiet).Every(ctx, lock.Name("job"), time.Hour, func(ctx context.Context, l *lock.Lease, at time.Time) error {
			if j.began(at) == 1 {
				return w.table.Write(ctx, table.Delete(l.Key()))
			}
			return nil
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, j.starts, 2)
		assert.Equal(t, j.starts[0], j.starts[1])
	})
}

// Two calls of one client want the same lock. The second gets it by a commit that has recorded its interval, and runs nothing.
func TestEvery_IntervalThatAGoroutineBeforeItHasCommittedIsNotRun(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		c := w.client(quiet)
		var j diary
		var all sync.WaitGroup
		ops := w.requests(func() {
			for range 2 {
				all.Go(func() {
					_ = c.Every(ctx, lock.Name("job"), time.Hour, func(ctx context.Context, l *lock.Lease, at time.Time) error {
						j.began(at)
						time.Sleep(3 * time.Second)
						return l.Commit(ctx, w.count("n"))
					})
				})
			}
			all.Wait()
		})
		assert.Len(t, j.starts, 1)
		assert.EqualValues(t, 1, w.counted("n"))
		assert.Equal(t, 1, times("TransactWriteItems", ops))
		assert.Equal(t, 3, times("UpdateItem", ops), "acquire, a start of the run that is refused, release")
	})
}

// The lock is taken by force from an instance that has waited for it, before its run begins. It waits for the lock again.
func TestEvery_LockThatIsLostBeforeTheRunBegins(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		op := w.client(quiet)
		held, err := op.Acquire(ctx, lock.Name("job"))
		require.NoError(t, err)
		var taken atomic.Bool
		var log bytes.Buffer
		c := w.clientOver(w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
			if held.Context().Err() != nil && operation == "UpdateItem" && strings.Contains(body, `"running"`) && !taken.Swap(true) {
				w.force(ctx, op, lock.Name("job"))
			}
			return send()
		}), lock.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		time.AfterFunc(time.Minute, func() { assert.NoError(t, held.Release(ctx)) })
		ran := 0
		_ = c.Every(bounded, lock.Name("job"), time.Hour, func(context.Context, *lock.Lease, time.Time) error {
			ran++
			return nil
		})
		assert.True(t, taken.Load())
		assert.Equal(t, 1, ran)
		assert.NotContains(t, log.String(), "again", "the same call waits")
	})
}
