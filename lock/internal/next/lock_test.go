package next_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/figure"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/next"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// sent is how many requests a process sends while f runs.
func (p *process) sent(f func()) int64 {
	before := p.wire.calls.Load()
	f()
	return p.wire.calls.Load() - before
}

// warm has a process open its session.
func (w *world) warm(p *process) *process {
	w.Helper()
	l, err := p.Acquire(w.Context(), key("warm"))
	require.NoError(w, err)
	require.NoError(w, l.Release(w.Context()))
	return p
}

func write(name string) table.Op {
	return table.Update(keys.NewKey("ROW#"+name, "ROW"), table.Attr("n").Add(1))
}

// P1, P2 and P7: what is sent where nobody else is there, and where somebody is.
func TestRequestCost(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		p, q := w.warm(w.process(1)), w.warm(w.process(2))
		var l *next.Lease
		var err error
		pair := p.sent(func() {
			l, err = p.Acquire(ctx, key("a"))
			require.NoError(t, err)
			require.NoError(t, l.Release(ctx))
		})
		first := l.Fence()
		l, err = p.Acquire(ctx, key("a"))
		require.NoError(t, err)
		assert.Equal(t, first+1, l.Fence())
		refused := q.sent(func() {
			_, err := q.TryAcquire(ctx, key("a"))
			var held *next.HeldError
			require.ErrorAs(t, err, &held)
			assert.Equal(t, "process/1", held.Line[0].Owner)
			assert.Equal(t, l.Fence(), held.Fence)
		})
		commit := p.sent(func() { require.NoError(t, l.Commit(ctx, write("a"))) })
		again := p.sent(func() { require.NoError(t, l.Release(ctx)) })
		fixed := w.process(3)
		_, err = fixed.table.Plan(ctx) // it has heard the time
		require.NoError(t, err)
		own := fixed.sent(func() {
			l, err := fixed.Acquire(ctx, key("a"), next.Fixed(5*time.Second))
			require.NoError(t, err)
			require.NoError(t, l.Release(ctx))
		})
		figure.Check(t, "P1", figure.Exactly(pair, "requests to acquire and release", 2))
		figure.Check(t, "P1, Fixed", figure.Exactly(own, "requests to acquire and release", 2))
		figure.Check(t, "P2", figure.Exactly(refused, "request of a failed try", 1))
		figure.Check(t, "P7", figure.Exactly(commit+again, "request of Commit and Release", 1))
	})
}

// P5 and P6: a holder that died is followed soon, also where nobody was watching.
func TestTakeover(t *testing.T) {
	t.Run("fresh crash", func(t *testing.T) {
		virtual(t, func(ctx context.Context, w *world) {
			w.latency(2 * time.Millisecond)
			p, q := w.warm(w.process(1)), w.warm(w.process(2))
			l, err := p.Acquire(ctx, key("a"))
			require.NoError(t, err)
			go func() {
				time.Sleep(7 * time.Second)
				p.wire.cut.Store(true)
			}()
			time.Sleep(7 * time.Second)
			began := time.Now()
			got, err := q.Acquire(ctx, key("a"))
			require.NoError(t, err)
			figure.Check(t, "P6", figure.AtMost(time.Since(began), " until the next one holds", 20*time.Second+2*time.Second+time.Second+750*time.Millisecond))
			assert.Greater(t, got.Fence(), l.Fence())
			require.Error(t, l.Context().Err(), "the old holder was told before")
			p.wire.cut.Store(false)
			require.ErrorIs(t, l.Write(ctx, write("a")), next.ErrLost)
			require.NoError(t, got.Write(ctx, write("a")))
		})
	})
	for _, how := range []string{"Acquire", "TryAcquire"} {
		t.Run("dead for an hour, "+how, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				w.latency(2 * time.Millisecond)
				p, q := w.warm(w.process(1)), w.warm(w.process(2))
				_, err := p.Acquire(ctx, key("a"))
				require.NoError(t, err)
				time.Sleep(7 * time.Second)
				p.wire.cut.Store(true)
				time.Sleep(time.Hour)
				w.warm(q)
				acquire := map[string]func(context.Context, keys.Key, ...next.Option) (*next.Lease, error){"Acquire": q.Acquire, "TryAcquire": q.TryAcquire}[how]
				began := time.Now()
				requests := q.sent(func() {
					_, err := acquire(ctx, key("a"))
					require.NoError(t, err)
				})
				figure.Check(t, "P5, "+how, figure.AtMost(requests, "requests", 3), figure.AtMost(time.Since(began), "", time.Second))
			})
		})
	}
	t.Run("waiters that died, too", func(t *testing.T) {
		virtual(t, func(ctx context.Context, w *world) {
			w.latency(2 * time.Millisecond)
			list := w.processes(4)
			for _, p := range list {
				w.warm(p)
			}
			_, err := list[0].Acquire(ctx, key("a"))
			require.NoError(t, err)
			for _, p := range list[1:3] {
				go func() { _, _ = p.Acquire(ctx, key("a")) }()
				time.Sleep(time.Second)
			}
			time.Sleep(6 * time.Second)
			for _, p := range list[:3] {
				p.wire.cut.Store(true)
			}
			began := time.Now()
			_, err = list[3].Acquire(ctx, key("a"))
			require.NoError(t, err)
			figure.Check(t, "three dead", figure.AtMost(time.Since(began), " until the one behind them holds", 3*22*time.Second))
		})
	})
}

// A request that comes in late enters a ticket that nobody waits for.
func TestGhostIsRemoved(t *testing.T) {
	for _, ghost := range []tabletest.Fault{
		{Kind: tabletest.DuplicateLate, Operation: "UpdateItem", For: 3 * time.Second, Times: 1},
		{Kind: tabletest.DropRequest, Operation: "UpdateItem", For: 30 * time.Second, Times: 1},
	} {
		t.Run(ghost.Kind.String(), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				p, q := w.warm(w.process(1)), w.warm(w.process(2))
				keep, err := p.Acquire(ctx, key("other")) // its session goes on
				require.NoError(t, err)
				w.engine.Inject(ghost)
				l, err := p.Acquire(ctx, key("a"))
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))
				time.Sleep(40 * time.Second) // the ghost has come, and holds
				began := time.Now()
				got, err := q.Acquire(ctx, key("a"))
				require.NoError(t, err)
				figure.Check(t, "F19, "+ghost.Kind.String(), figure.AtMost(time.Since(began), " until it is free", 20*time.Second+6*time.Second))
				require.NoError(t, got.Write(ctx, write("a")))
				require.NoError(t, keep.Context().Err())
				again, err := p.TryAcquire(ctx, key("b"))
				require.NoError(t, err)
				require.NoError(t, again.Release(ctx))
			})
		})
	}
}

// Lost answers neither make a client wait for itself, nor lose its lock, nor leave a lock held.
func TestLostAnswers(t *testing.T) {
	for call := range 12 {
		t.Run(fmt.Sprint(call), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				p, q := w.warm(w.process(1)), w.warm(w.process(2))
				w.engine.ResetRequests()
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Call: call + 1})
				for range 3 {
					began := time.Now()
					l, err := p.Acquire(ctx, key("a"))
					require.NoError(t, err)
					require.NoError(t, l.Write(ctx, write("a")))
					require.NoError(t, l.Release(ctx))
					assert.Less(t, time.Since(began), time.Second)
				}
				l, err := q.TryAcquire(ctx, key("a"))
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))
				item, err := q.table.Get(ctx, keys.NewKey("ROW#a", "ROW"), true)
				require.NoError(t, err)
				assert.Equal(t, "3", fmt.Sprint(number(item["n"])))
			})
		})
	}
}

// Who gives up waiting leaves no ticket behind.
func TestGivingUpLeavesTheLine(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		list := w.processes(3)
		for _, p := range list {
			w.warm(p)
		}
		l, err := list[0].Acquire(ctx, key("a"))
		require.NoError(t, err)
		short, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		_, err = list[1].Acquire(short, key("a"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, next.ErrHeld)
		time.Sleep(time.Second)
		_, err = list[2].TryAcquire(ctx, key("a"))
		var held *next.HeldError
		require.ErrorAs(t, err, &held)
		assert.Len(t, held.Line, 1)
		require.NoError(t, l.Release(ctx))
	})
}
