package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// threeHold has three processes hold a lock at once. The one at the given place, from 0, sends over a line of its own.
func (w *world) threeHold(ctx context.Context, wire *line, place int, target lock.Target, opts ...lock.Option) (list []*lock.Lease) {
	for i := range 3 {
		c := w.client(quiet)
		if i == place {
			c = w.clientOver(wire, quiet)
		}
		l, err := c.Acquire(ctx, target, opts...)
		require.NoError(w, err)
		list = append(list, l)
	}
	return list
}

// The permit of a dead holder is free after its lease, wherever it stands, and the others are not touched.
func TestPermits_OfADeadHolderAreFree(t *testing.T) {
	const lease, skew, poll = 20 * time.Second, 2 * time.Second, 1125 * time.Millisecond
	for dead := range 3 {
		t.Run(fmt.Sprint("place ", dead), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				list := w.threeHold(ctx, wire, dead, exports, lock.Permits(3))
				wire.cut(refused)
				start := time.Now()
				bounded, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				next, err := w.client(quiet).Acquire(bounded, exports, lock.Permits(3))
				require.NoError(t, err)
				testkit.Check(t, fmt.Sprint("permits, dead at place ", dead), testkit.AtMost(time.Since(start), " until another one has the permit", lease+skew+poll))
				wire.cut(open)
				require.ErrorIs(t, list[dead].Write(ctx, w.put("x")), lock.ErrLost)
				require.ErrorIs(t, list[dead].Release(ctx), lock.ErrLost)
				for i, l := range list {
					if i != dead {
						require.NoError(t, l.Context().Err())
						require.NoError(t, l.Write(ctx, w.put("x")))
						require.NoError(t, l.Release(ctx))
					}
				}
				require.NoError(t, next.Commit(ctx, w.put("x")))
			})
		})
	}
}

// TryAcquire takes a permit from a process that died long ago, also if nobody has watched.
func TestPermits_OfTheLongDeadAreTaken(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wire := &line{to: w.engine.HTTPClient()}
		living, err := w.client(quiet).Acquire(ctx, exports, lock.Permits(2))
		require.NoError(t, err)
		_, err = w.clientOver(wire, quiet).Acquire(ctx, exports, lock.Permits(2))
		require.NoError(t, err)
		wire.cut(refused)
		time.Sleep(time.Hour)
		c := w.client(quiet)
		next, err := c.TryAcquire(ctx, exports, lock.Permits(2))
		require.NoError(t, err)
		_, err = c.TryAcquire(ctx, exports, lock.Permits(2))
		require.ErrorIs(t, err, lock.ErrHeld)
		require.NoError(t, living.Write(ctx, w.put("x")))
		for _, l := range []*lock.Lease{living, next} {
			require.NoError(t, l.Release(ctx))
		}
	})
}

// After a permit was released, a late duplicate of its enter, or of its write, changes nothing.
func TestPermits_LateDuplicatesGrantNothing(t *testing.T) {
	for name, op := range map[string]string{"of the enter": "UpdateItem", "of the write": "TransactWriteItems"} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.client(quiet), w.client(quiet)
				keeps, err := c.Acquire(ctx, lock.Name("keeps the session"))
				require.NoError(t, err)
				first, err := other.Acquire(ctx, exports, lock.Permits(2)) // otherwise the enter would create the row, which its copy cannot do again
				require.NoError(t, err)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: op, For: 30 * time.Second, Times: 1})
				l, err := c.Acquire(ctx, exports, lock.Permits(2))
				require.NoError(t, err)
				require.NoError(t, l.Write(ctx, w.count("x")))
				require.NoError(t, l.Release(ctx))
				second, err := other.Acquire(ctx, exports, lock.Permits(2))
				require.NoError(t, err)
				time.Sleep(31 * time.Second)
				require.ErrorIs(t, l.Write(ctx, w.count("x")), lock.ErrReleased)
				require.ErrorIs(t, w.table.Write(ctx, w.count("x"), l.Guard()), table.ErrCondition)
				assert.EqualValues(t, 1, w.counted("x"))
				require.NoError(t, first.Release(ctx))
				require.NoError(t, second.Release(ctx))

				start := time.Now() // the ghost keeps nobody out for long
				var all []*lock.Lease
				for range 2 {
					l, err := other.Acquire(ctx, exports, lock.Permits(2))
					require.NoError(t, err)
					all = append(all, l)
				}
				assert.Less(t, time.Since(start), 30*time.Second)
				for _, l := range append(all, keeps) {
					require.NoError(t, l.Release(ctx))
				}
			})
		})
	}
}

// Whichever answer is lost, the permit is released once, and reported as released.
func TestPermits_AreReleasedThroughLostAnswers(t *testing.T) {
	for name, release := range map[string]func(ctx context.Context, w *world, l *lock.Lease) error{
		"release": func(ctx context.Context, _ *world, l *lock.Lease) error { return l.Release(ctx) },
		"commit":  func(ctx context.Context, w *world, l *lock.Lease) error { return l.Commit(ctx, w.count("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				_, list := w.permits(ctx, 3, 3)
				for _, l := range list {
					w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Times: 1})
					require.NoError(t, release(ctx, w, l))
				}
				w.free(ctx, []lock.Target{exports})
				if name == "commit" {
					assert.EqualValues(t, 3, w.counted("x"))
				}
			})
		})
	}
}

// Many holders leave at once, so the place of each has moved. Nothing is lost.
func TestPermits_ManyEndAtOnce(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, list := w.permits(ctx, 30, 30)
		w.latency(2 * time.Millisecond)
		var all sync.WaitGroup
		errs := make([]error, len(list))
		ops := w.requests(func() {
			for i, l := range list {
				all.Go(func() {
					if i%3 == 0 {
						errs[i] = l.Commit(ctx, w.put(fmt.Sprint("x", i)))
					} else {
						errs[i] = l.Release(ctx)
					}
				})
			}
			all.Wait()
		})
		require.NoError(t, errors.Join(errs...))
		w.free(ctx, []lock.Target{exports})
		t.Logf("%d requests for 30 that end at once", len(ops))
		for _, l := range list {
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrReleased)
		}
	})
}

// A malformed row of permits grants nothing, and an operator can mend it.
func TestPermits_OfAMalformedRow(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		l, err := p.client.Acquire(ctx, exports, lock.Permits(2))
		require.NoError(p, err)
		require.NoError(p, p.table.Write(ctx, table.Update(l.Key(), table.Attr("stays").Set([]int64{}))))
		_, err = p.client.TryAcquire(ctx, exports, lock.Permits(2))
		require.ErrorIs(p, err, lock.ErrMalformed)
		require.ErrorIs(p, l.Write(ctx, table.Put(p.table.KeyItem(keys.NewKey("TENANT#t", "x")))), lock.ErrMalformed)
		require.NoError(p, p.client.ForceRelease(ctx, exports, l.Ticket()))
		next, err := p.client.TryAcquire(ctx, exports, lock.Permits(2))
		require.NoError(p, err)
		assert.Greater(p, next.Fence(), l.Fence())
		require.ErrorIs(p, l.Release(ctx), lock.ErrLost)
		require.NoError(p, next.Release(ctx))
	})
}
