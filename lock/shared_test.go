package lock_test

import (
	"context"
	"fmt"
	"slices"
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

var catalogue = lock.Name("catalogue")

// readers acquire the same target, each by a client of its own.
func (w *world) readers(ctx context.Context, n int) (list []*lock.Lease) {
	w.Helper()
	for _, c := range w.clients(n) {
		l, err := c.Acquire(ctx, catalogue, lock.Shared())
		require.NoError(w, err)
		list = append(list, l)
	}
	return list
}

func TestSharedReadersTogetherAWriterAlone(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		key := keys.NewKey("TENANT#t", "ORDER")
		order := table.Update(key, table.Attr("n").Add(1))
		first, err := p.client.Acquire(ctx, catalogue, lock.Shared())
		require.NoError(p, err)
		second, err := p.client.TryAcquire(ctx, catalogue, lock.Shared())
		require.NoError(p, err, "also of one client")
		assert.Equal(p, first.Fence(), second.Fence())
		_, err = p.client.TryAcquire(ctx, catalogue)
		var held *lock.HeldError
		require.ErrorAs(p, err, &held)
		assert.Equal(p, 2, held.Holding)
		assert.Zero(p, held.Permits)
		assert.True(p, held.Line[0].Shared)
		for _, l := range []*lock.Lease{first, second} {
			require.NoError(p, l.Write(ctx, order))
			require.NoError(p, p.table.Write(ctx, order, l.Guard()))
		}
		r, err := p.client.Inspect(ctx, catalogue)
		require.NoError(p, err)
		assert.Len(p, r.Holders(), 2)
		assert.Zero(p, r.Waiting())
		require.NoError(p, first.Release(ctx))
		require.NoError(p, first.Release(ctx), "again")
		require.ErrorIs(p, first.Write(ctx, order), lock.ErrReleased)
		require.ErrorIs(p, p.table.Write(ctx, order, first.Guard()), table.ErrCondition)
		require.NoError(p, second.Commit(ctx, order))
		writer, err := p.client.TryAcquire(ctx, catalogue)
		require.NoError(p, err)
		assert.Greater(p, writer.Fence(), first.Fence())
		_, err = p.client.TryAcquire(ctx, catalogue, lock.Shared())
		require.ErrorAs(p, err, &held)
		assert.Equal(p, 1, held.Holding)
		require.NoError(p, writer.Commit(ctx, order))
		require.NoError(p, p.client.Do(ctx, catalogue, func(_ context.Context, l *lock.Lease) error {
			assert.Greater(p, l.Fence(), writer.Fence())
			return nil
		}, lock.Shared()))
		item, err := p.table.Get(ctx, key, true)
		require.NoError(p, err)
		assert.EqualValues(p, 6, number(p.T, item["n"]))
		require.NoError(p, errOf(p.client.Inspect(ctx, catalogue)))
	})
}

// The line decides: a writer that waits stops the readers behind it, and readers that stand together hold together.
func TestSharedInTheOrderOfTheLine(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		readers := w.readers(ctx, 2)
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		wait := func(name string, opts ...lock.Option) {
			c := w.client(quiet)
			all.Go(func() {
				l, err := c.Acquire(ctx, catalogue, opts...)
				assert.NoError(t, err)
				mu.Lock()
				order = append(order, fmt.Sprint(name, " at ", time.Now().Unix()%1000))
				mu.Unlock()
				time.Sleep(10 * time.Second)
				assert.NoError(t, l.Release(ctx))
			})
			time.Sleep(time.Second)
		}
		start := time.Now().Unix() % 1000
		wait("writer")
		wait("reader", lock.Shared())
		wait("reader", lock.Shared())
		wait("another writer")
		wait("last reader", lock.Shared())
		require.ErrorIs(t, errOf(w.client(quiet).TryAcquire(ctx, catalogue, lock.Shared())), lock.ErrHeld, "a writer waits")
		assert.Empty(t, order)
		for _, l := range readers {
			require.NoError(t, l.Release(ctx))
		}
		all.Wait()
		var names []string
		var at []int64
		for _, s := range order {
			var when int64
			name := s[:len(s)-len(" at ")-len(fmt.Sprint(time.Now().Unix()%1000))]
			_, err := fmt.Sscanf(s[len(name):], " at %d", &when)
			require.NoError(t, err)
			names, at = append(names, name), append(at, when-start)
		}
		assert.Equal(t, []string{"writer", "reader", "reader", "another writer", "last reader"}, names)
		assert.InDelta(t, at[1], at[2], 1, "together")
		assert.GreaterOrEqual(t, at[3]-at[2], int64(10))
	})
}

// A reader's guarded write is applied only if no writer has held since the lease was granted.
func TestSharedReaderThatWasEvictedWritesNoMore(t *testing.T) {
	const lease, skew, poll = 20 * time.Second, 2 * time.Second, 1125 * time.Millisecond
	for dead := range 3 {
		t.Run(fmt.Sprint("place ", dead), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				var list []*lock.Lease
				for i := range 3 {
					c := w.client(quiet)
					if i == dead {
						c = w.clientOver(wire, quiet)
					}
					l, err := c.Acquire(ctx, catalogue, lock.Shared())
					require.NoError(t, err)
					list = append(list, l)
				}
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

// A reader that was evicted while others read on, with no writer since: what it has read is as it was, and its late ghost is
// not its lease.
func TestSharedReaderEvictedWhileOthersReadOn(t *testing.T) {
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

// A late copy of a reader's enter stands in the line as a ghost: it is nobody's lease, and keeps a writer waiting for no longer
// than one.
func TestSharedAndLateCopies(t *testing.T) {
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

func TestSharedOptionIsChecked(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		work := func(context.Context, *lock.Lease) error { return nil }
		ops := w.requests(func() {
			for text, err := range map[string]error{
				"Shared and Fixed":    errOf(c.Acquire(ctx, catalogue, lock.Shared(), lock.Fixed(time.Second))),
				"Shared and WithData": errOf(c.Acquire(ctx, catalogue, lock.WithData(1), lock.Shared())),
				"Permits and Shared":  errOf(c.TryAcquire(ctx, catalogue, lock.Shared(), lock.Permits(2))),
				"of AcquireAll":       errOf(c.AcquireAll(ctx, names(2), lock.Shared())),
				"of Lead":             c.Lead(ctx, catalogue, work, lock.Shared()),
				"of Every":            c.Every(ctx, catalogue, time.Hour, func(context.Context, *lock.Lease, time.Time) error { return nil }, lock.Shared()),
			} {
				require.ErrorIs(t, err, lock.ErrInvalid, text)
				require.ErrorContains(t, err, text)
			}
		})
		assert.Empty(t, ops)
		l, err := c.Acquire(ctx, catalogue, lock.Shared())
		require.NoError(t, err)
		require.ErrorIs(t, l.SetData(ctx, "x"), lock.ErrInvalid)
		require.NoError(t, l.Release(ctx))
	})
}

// What a reader costs beside a lock.
func TestSharedCost(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b := w.client(quiet), w.client(quiet)
		var l, m *lock.Lease
		for _, s := range []struct {
			what string
			want []string
			do   func() error
		}{
			{"acquire without a row", []string{"UpdateItem"}, func() (err error) { l, err = a.Acquire(ctx, catalogue, lock.Shared()); return err }},
			{"acquire beside another", []string{"UpdateItem"}, func() (err error) { m, err = b.Acquire(ctx, catalogue, lock.Shared()); return err }},
			{"write", []string{"TransactWriteItems"}, func() error { return m.Write(ctx, w.put("x")) }},
			{"release of the second", []string{"UpdateItem"}, func() error { return m.Release(ctx) }},
			{"try beside another", []string{"UpdateItem", "UpdateItem"}, func() (err error) { m, err = b.TryAcquire(ctx, catalogue, lock.Shared()); return err }},
			{"release of the first", []string{"UpdateItem", "UpdateItem"}, func() error { return l.Release(ctx) }},
			{"commit where one before it has left", []string{"TransactWriteItems", "TransactWriteItems"}, func() error { return m.Commit(ctx, w.put("x")) }},
		} {
			ops := w.requests(func() { require.NoError(t, s.do(), s.what) })
			assert.Equal(t, s.want, ops, s.what)
		}
	})
}

// Whatever answer is lost, a reader is released once, and told so.
func TestSharedIsReleasedThoughAnswersAreLost(t *testing.T) {
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

// One reader is forced out, and the others read on; all of them are asked to give way.
func TestSharedIsForcedOneByOneAndRevokedTogether(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		list := w.readers(ctx, 3)
		op := w.client(quiet)
		require.NoError(t, op.ForceRelease(ctx, catalogue, list[1].Ticket(), "stuck"))
		require.ErrorIs(t, list[1].Write(ctx, w.put("x")), lock.ErrLost)
		require.NoError(t, list[0].Write(ctx, w.put("x")))
		var held *lock.HeldError
		require.ErrorAs(t, op.ForceRelease(ctx, catalogue, list[1].Ticket()), &held)
		later, err := op.Acquire(ctx, catalogue, lock.Shared())
		require.NoError(t, err)
		require.NoError(t, op.Revoke(ctx, catalogue))
		time.Sleep(6 * time.Second)
		for _, l := range []*lock.Lease{list[0], list[2], later} {
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked)
		}
		require.NoError(t, later.Release(ctx), "of a lease that was granted after the force")
		require.ErrorIs(t, list[0].Release(ctx), lock.ErrLost, "that of one that was granted before is not told apart from the one that was forced")
		require.NoError(t, list[2].Commit(ctx, w.put("x")), "a commit is known by its token")
		w.free(ctx, []lock.Target{catalogue})
	})
}

// Many readers that end at once, with a writer behind them that takes the lock from none.
func TestSharedReadersThatEndAtOnce(t *testing.T) {
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

// A view is not refused where nobody but readers hold: they see what the last writer has left, and so does it.
func TestViewBesideReaders(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		list := w.readers(ctx, 2)
		c := w.client(quiet)
		v, err := c.View(ctx, catalogue, rowKeys(1))
		require.NoError(t, err)
		assert.Equal(t, list[0].Fence(), v.Fence)
		require.NotNil(t, v.Held)
		assert.Equal(t, 2, v.Held.Holding)
		writer := acquireAsync(ctx, c, catalogue)
		_, err = c.View(ctx, catalogue, rowKeys(1))
		require.NoError(t, err, "the writer waits")
		for _, l := range list {
			require.NoError(t, l.Release(ctx))
		}
		l := <-writer
		_, err = c.View(ctx, catalogue, rowKeys(1))
		require.ErrorIs(t, err, lock.ErrHeld)
		require.NoError(t, l.Release(ctx))
	})
}

// Readers and writers of a client pass nothing to each other but from a writer to a writer.
func TestSharedWithinAProcess(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		held, err := c.Acquire(ctx, catalogue)
		require.NoError(t, err)
		var waits []<-chan *lock.Lease
		for i := range 6 {
			var opts []lock.Option
			if i%2 == 0 {
				opts = append(opts, lock.Shared())
			}
			waits = append(waits, acquireAsync(ctx, c, catalogue, opts...))
		}
		require.NoError(t, held.Release(ctx))
		for len(waits) > 0 {
			time.Sleep(time.Second)
			waits = slices.DeleteFunc(waits, func(got <-chan *lock.Lease) bool {
				select {
				case l := <-got:
					require.NotNil(t, l)
					require.NoError(t, l.Commit(ctx, w.put("x")))
					return true
				default:
					return false
				}
			})
		}
		w.free(ctx, []lock.Target{catalogue})
	})
}
