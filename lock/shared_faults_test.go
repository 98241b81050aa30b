package lock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A reader's guarded write is applied only if no writer has held the lock since the lease was granted.
func TestShared_EvictedReaderWritesNoMore(t *testing.T) {
	const lease, skew, poll = 20 * time.Second, 2 * time.Second, 1125 * time.Millisecond
	for dead := range 3 {
		t.Run(fmt.Sprint("place ", dead), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				list := w.threeHold(ctx, wire, dead, catalogue, lock.Shared())
				wire.cut(refused)
				writer := acquireAsync(ctx, w.client(quiet), catalogue)
				for i, l := range list {
					if i != dead {
						require.NoError(t, l.Write(ctx, w.put("x")))
						require.NoError(t, l.Release(ctx), "a writer that waits changes nothing")
					}
				}
				start := time.Now()
				l := <-writer
				require.NotNil(t, l)
				testkit.Check(t, fmt.Sprint("shared, dead at place ", dead), testkit.AtMost(time.Since(start), " until the writer holds", lease+skew+poll))
				wire.cut(open)
				require.ErrorIs(t, list[dead].Write(ctx, w.put("x")), lock.ErrLost)
				require.ErrorIs(t, list[dead].Release(ctx), lock.ErrLost)
				require.NoError(t, l.Commit(ctx, w.put("x")))
			})
		})
	}
}

// A reader was evicted while others read on, and no writer has held the lock since. What it has read is unchanged, and its
// late ghost is not its lease.
func TestShared_ReaderEvictedWhileOthersReadOn(t *testing.T) {
	for _, fails := range []bool{false, true} { // the read with which a reader that releases makes sure
		virtual(t, func(ctx context.Context, w *world) {
			wire := &line{to: w.engine.HTTPClient()}
			a, b := w.clientOver(wire, quiet), w.client(quiet)
			reads, err := b.Acquire(ctx, catalogue, lock.Shared())
			require.NoError(t, err)
			gone, err := a.Acquire(ctx, catalogue, lock.Shared())
			require.NoError(t, err)
			wire.cut(refused)
			short, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			_, err = w.client(quiet).Acquire(short, catalogue) // evicts, and gives up
			require.ErrorIs(t, err, context.DeadlineExceeded)
			wire.cut(open)
			require.ErrorIs(t, gone.Write(ctx, w.put("x")), lock.ErrLost)
			r, err := b.Inspect(ctx, catalogue)
			require.NoError(t, err)
			assert.EqualValues(t, 1, r.Ousted)
			assert.Len(t, r.Line, 1)
			if fails {
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Operation: "GetItem"})
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				require.ErrorIs(t, reads.Release(short), table.ErrThrottled)
				w.engine.ClearFaults()
				require.ErrorIs(t, reads.Write(ctx, w.put("x")), lock.ErrReleased, "the release was applied")
				require.NoError(t, reads.Release(ctx))
				return
			}
			ops := w.requests(func() { require.NoError(t, reads.Release(ctx)) })
			assert.Equal(t, []string{"UpdateItem", "GetItem"}, ops, "it makes sure that its own ticket was not the one")
			ops = w.requests(func() {
				l, err := b.Acquire(ctx, catalogue, lock.Shared())
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))
			})
			assert.Equal(t, []string{"UpdateItem", "UpdateItem"}, ops, "the next one has seen what the row says")
		})
	}
}

// Writers that died while they waited delay the readers behind them by a lease each, however long the readers before them hold. A late
// copy of the entry of a writer that has given up does likewise.
func TestShared_WritersThatDiedStopNoReaders(t *testing.T) {
	const lease, skew, poll = 20 * time.Second, 2 * time.Second, 5 * time.Second
	for name, tc := range map[string]struct {
		writers int
		ghost   bool
		atMost  time.Duration
	}{
		"one":   {writers: 1, atMost: lease + skew + poll},
		"three": {writers: 3, atMost: 3 * (lease + skew + poll)},
		"ghost": {writers: 1, ghost: true, atMost: 3*lease/2 + poll},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				reads := w.readers(ctx, 1)[0]
				waiting, stop := context.WithCancel(ctx)
				defer stop()
				var died []<-chan error
				for range tc.writers {
					c := w.clientOver(wire, quiet)
					if tc.ghost { // its process lives, and its session goes on
						require.NoError(t, errOf(c.Acquire(ctx, lock.Name("keeps the session"))))
						w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", For: 30 * time.Second, Times: 1})
					}
					died = append(died, outcome(waiting, c, catalogue))
					time.Sleep(time.Second)
				}
				if tc.ghost {
					stop()
					require.ErrorIs(t, <-died[0], context.Canceled)
					time.Sleep(30 * time.Second)
				} else {
					wire.cut(refused)
				}
				r, err := w.client(quiet).Inspect(ctx, catalogue)
				require.NoError(t, err)
				require.Equal(t, tc.writers, r.Waiting())

				start := time.Now()
				bounded, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				var readers []<-chan *lock.Lease
				for range 3 {
					readers = append(readers, acquireAsync(bounded, w.client(quiet), catalogue, lock.Shared()))
				}
				for _, reader := range readers {
					l := <-reader
					require.NotNil(t, l)
					assert.Equal(t, reads.Fence(), l.Fence(), "no writer has held")
					require.NoError(t, l.Commit(ctx, w.put("x")))
				}
				testkit.Check(t, "shared, behind a dead writer: "+name, testkit.AtMost(time.Since(start), " until all read", tc.atMost))
				require.NoError(t, reads.Commit(ctx, w.put("x")))
			})
		})
	}
}

// A writer that lives keeps its place before readers, however long it waits, and costs little meanwhile.
func TestShared_WriterThatWaitsLongKeepsItsPlace(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		reads := w.readers(ctx, 1)[0]
		writer := acquireAsync(ctx, w.client(quiet), catalogue)
		reader := acquireAsync(ctx, w.client(quiet), catalogue, lock.Shared())
		time.Sleep(time.Minute)
		ops := w.requests(func() { time.Sleep(20 * time.Minute) })
		require.NoError(t, reads.Release(ctx))
		l := <-writer
		require.NotNil(t, l)
		assert.Empty(t, reader)
		require.NoError(t, l.Release(ctx))
		behind := <-reader
		require.NotNil(t, behind)
		assert.Greater(t, behind.Fence(), l.Fence())
		require.NoError(t, behind.Release(ctx))
		const renewals = 3 * 20 * time.Minute / (5 * time.Second)
		testkit.Check(t, "shared, 20 min behind a writer", testkit.AtMost(times("UpdateItem", ops), "writes", int(renewals)*5/4))
	})
}

// A late duplicate of a reader's enter leaves a ghost in the line. It is nobody's lease, and delays a writer by at most one
// lease.
func TestShared_LateDuplicateGrantsNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		keeps, err := c.Acquire(ctx, lock.Name("keeps the session"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", For: 30 * time.Second, Times: 1})
		l, err := c.Acquire(ctx, catalogue, lock.Shared())
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		writer, err := other.Acquire(ctx, catalogue)
		require.NoError(t, err)
		time.Sleep(31 * time.Second)
		require.ErrorIs(t, w.table.Write(ctx, w.count("x"), l.Guard()), table.ErrCondition)
		require.NoError(t, writer.Release(ctx))
		r, err := other.Inspect(ctx, catalogue)
		require.NoError(t, err)
		require.True(t, r.Held(), "the ghost is there")
		require.ErrorIs(t, w.table.Write(ctx, w.count("x"), l.Guard()), table.ErrCondition, "under another fence")
		start := time.Now()
		writer, err = other.Acquire(ctx, catalogue)
		require.NoError(t, err)
		assert.Less(t, time.Since(start), 30*time.Second)
		for _, l := range []*lock.Lease{writer, keeps} {
			require.NoError(t, l.Release(ctx))
		}
	})
}

// A reader has lost its lease, and its first attempt to write is late. A late copy of its entry brings its ticket back before that, and
// the attempt is applied. So the error does not tell that nothing was written.
func TestShared_LateWriteBehindALateEntryIsInDoubt(t *testing.T) {
	for name, write := range map[string]func(l *lock.Lease, ctx context.Context, ops ...table.Op) error{
		"write": (*lock.Lease).Write, "commit": (*lock.Lease).Commit,
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				reads, err := w.client(quiet).Acquire(ctx, catalogue, lock.Shared())
				require.NoError(t, err)
				c := w.client(quiet)
				keeps, err := c.Acquire(ctx, lock.Name("keeps the session"))
				require.NoError(t, err)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", For: 30 * time.Second, Times: 1})
				l, err := c.Acquire(ctx, catalogue, lock.Shared())
				require.NoError(t, err)
				require.NoError(t, w.client(quiet).ForceRelease(ctx, catalogue, l.Ticket()))
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", For: 40 * time.Second, Times: 1})
				err = write(l, ctx, w.count("x"))
				assert.ErrorIs(t, err, table.ErrUnreachable)
				assert.NotErrorIs(t, err, lock.ErrLost)
				assert.True(t, table.MayBeApplied(err))
				time.Sleep(time.Minute)
				assert.EqualValues(t, 1, w.counted("x"), "no writer has held since")
				require.NoError(t, keeps.Release(ctx))
				require.ErrorIs(t, reads.Release(ctx), lock.ErrLost, "which says nothing, after a force beside it")
			})
		})
	}
}

// Whichever answer is lost, a reader is released once, and told so.
func TestShared_IsReleasedThroughLostAnswers(t *testing.T) {
	for name, release := range map[string]func(ctx context.Context, w *world, l *lock.Lease) error{
		"release": func(ctx context.Context, _ *world, l *lock.Lease) error { return l.Release(ctx) },
		"commit":  func(ctx context.Context, w *world, l *lock.Lease) error { return l.Commit(ctx, w.count("x")) },
	} {
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
			t.Run(fmt.Sprint(name, order), func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					list := w.readers(ctx, 3)
					for _, i := range order {
						w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Times: 1})
						require.NoError(t, release(ctx, w, list[i]))
					}
					w.free(ctx, []lock.Target{catalogue})
					if name == "commit" {
						assert.EqualValues(t, 3, w.counted("x"))
					}
					l, err := w.client(quiet).TryAcquire(ctx, catalogue)
					require.NoError(t, err)
					assert.Equal(t, list[0].Fence()+1, l.Fence(), "the fence is raised once, by the last one")
					require.NoError(t, l.Release(ctx))
				})
			})
		}
	}
}

// Many readers end at once, and a writer behind them takes the lock from none of them.
func TestShared_ReadersEndAtOnce(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		list := w.readers(ctx, 30)
		w.latency(2 * time.Millisecond)
		writer := acquireAsync(ctx, w.client(quiet), catalogue)
		var all sync.WaitGroup
		ops := w.requests(func() {
			for i, l := range list {
				all.Go(func() {
					if i%3 == 0 {
						assert.NoError(t, l.Commit(ctx, w.put(fmt.Sprint("x", i))))
					} else {
						assert.NoError(t, l.Release(ctx))
					}
				})
			}
			all.Wait()
		})
		t.Logf("%d requests for 30 that end at once", len(ops))
		l := <-writer
		require.NotNil(t, l)
		assert.Equal(t, list[0].Fence()+1, l.Fence())
		require.NoError(t, l.Release(ctx))
	})
}

// A reader's ticket that nobody uses is found by writers that give up soon, also if readers of their client hold meanwhile.
func TestGhost_OfAReaderIsFoundByWritersThatGiveUpSoon(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		require.NoError(t, errOf(c.Acquire(ctx, lock.Name("keeps the session"))))
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Shared())
		require.NoError(t, err)
		ghost, err := w.table.Get(ctx, l.Key(), true)
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		ghost["fence"] = numeral(l.Fence() + 2)
		require.NoError(t, w.table.Write(ctx, table.Put(ghost)))
		start, free := time.Now(), false
		for !free && time.Since(start) < 10*time.Minute {
			l, err := other.Acquire(ctx, lock.Name("report"), lock.Shared())
			require.NoError(t, err)
			require.NoError(t, l.Release(ctx))
			short, cancel := context.WithTimeout(ctx, 5*time.Second)
			free = errOf(other.Acquire(short, lock.Name("report"))) == nil
			cancel()
			time.Sleep(time.Second)
		}
		assert.Less(t, time.Since(start), freeOfGhost+6*time.Second)
	})
}
