package waitqueue_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock/internal/waitqueue"
)

const ms = time.Millisecond

func TestPoller_LooksAsOftenAsAWatcherAsks(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
		l := newLog(t, key(1))
		start := time.Now()
		w := watch(p, key(1), 5*ms, l.each(5*ms))
		pause(time.Minute)
		w.Stop()
		for i, look := range l.looks() {
			require.Equal(t, time.Duration(i)*6*ms+6*ms, look.At.Sub(start), "5 ms after the last answer, and it took 1 ms")
		}
		assert.InDelta(t, 10_000, len(l.looks()), 1)
		assert.InDelta(t, 10_000, len(r.sent()), 1)
	})
}

func TestPoller_RowsThatAreDueShareARequest(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
		for i := range 250 {
			watch(p, key(i), time.Second, newLog(t, key(i)).each(time.Second))
		}
		pause(1500 * ms)
		var sizes []int
		for _, q := range r.sent() {
			sizes = append(sizes, len(q.list))
		}
		assert.Equal(t, []int{50, 50, 50, 50, 50}, sizes)
	})
}

// A row that is past half of its interval comes along. One that is not does not, and nothing is read for its sake.
func TestPoller_RowsComeAlongFromHalfOfTheirInterval(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
		a, b, c := newLog(t, key(1)), newLog(t, key(2)), newLog(t, key(3))
		watch(p, key(1), 100*ms, a.each(time.Hour))
		watch(p, key(2), 190*ms, b.each(time.Hour))
		watch(p, key(3), 210*ms, c.each(time.Hour))
		pause(time.Second)
		assert.Equal(t, "[101ms]", a.String())
		assert.Equal(t, "[101ms]", b.String())
		assert.Equal(t, "[211ms]", c.String())
		assert.Len(t, r.sent(), 2)
	})
}

// The watchers of one row share its reads, and none is told more often than twice per interval of its own.
func TestPoller_WatchersOfOneRowShareItsReads(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
		often, seldom := newLog(t, key(1)), newLog(t, key(1))
		watch(p, key(1), 100*ms, often.each(100*ms))
		last := watch(p, key(1), 10*time.Second, seldom.each(10*time.Second))
		pause(time.Minute)
		assert.Len(t, r.sent(), len(often.looks()))
		require.Len(t, seldom.looks(), 11)
		for i, at := range seldom.times()[1:] {
			assert.InDelta(t, 5*time.Second, at-seldom.times()[i], float64(150*ms))
		}
		last.Stop()
	})
}

// A watcher is called once. What it returns is called when all watchers of the request have been called.
func TestWatch_IsToldOnceAndThenOfAll(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
		var order []string
		for i := range 3 {
			p.Watch(key(i), 10*ms, func(waitqueue.Look) func() {
				order = append(order, "told")
				return func() { order = append(order, "then") }
			})
		}
		pause(time.Minute)
		assert.Equal(t, []string{"told", "told", "told", "then", "then", "then"}, order)
		assert.Len(t, r.sent(), 1)
	})
}

// A look that had begun before the watch did may lack what the watcher has written.
func TestWatch_IsNotToldOfAReadUnderWay(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
		r.latency = 100 * ms
		first, second := newLog(t, key(1)), newLog(t, key(1))
		watch(p, key(1), 0, first.each(time.Hour))
		pause(50 * ms)
		watch(p, key(1), 0, second.each(time.Hour))
		pause(time.Second)
		assert.Equal(t, "[100ms]", first.String())
		assert.Equal(t, "[200ms]", second.String())
		assert.Len(t, r.sent(), 2)
	})
}

func TestWatch_MayWatchAndStop(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
		inner, other, third := newLog(t, key(1)), newLog(t, key(2)), newLog(t, key(1))
		var own, otherWatch *watching
		own = watch(p, key(1), 10*ms, func(waitqueue.Look) time.Duration {
			own.Stop()
			own.Stop()
			otherWatch.Stop() // of the same request, and not told yet
			watch(p, key(1), 20*ms, inner.each(time.Hour))
			return 0
		})
		otherWatch = watch(p, key(2), 11*ms, other.each(0))
		watch(p, key(1), time.Minute, third.each(time.Hour))
		pause(10 * time.Second)
		assert.Equal(t, "[32ms]", inner.String())
		assert.Empty(t, other.looks())
		assert.Empty(t, third.looks())
		assert.Equal(t, 3, rowsOf(r.sent()))
	})
}

// When Stop returns, at most the call that was running goes on.
func TestStop_LeavesTheRunningCallAtMost(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
		var running, stopped atomic.Bool
		var after atomic.Int64
		w := watch(p, key(1), 0, func(waitqueue.Look) time.Duration {
			if stopped.Load() {
				after.Add(1)
			}
			running.Store(true)
			time.Sleep(time.Second) // it must not, but this makes it run for long
			running.Store(false)
			return 0
		})
		pause(500 * ms)
		require.True(t, running.Load())
		w.Stop()
		stopped.Store(true)
		require.True(t, running.Load(), "Stop does not wait")
		pause(time.Minute)
		assert.Zero(t, after.Load())
		assert.Len(t, r.sent(), 1)

		// Stopped while the row is being read: it is not told.
		l := newLog(t, key(2))
		w = watch(p, key(2), 0, l.each(0))
		pause(ms / 2)
		w.Stop()
		pause(time.Second)
		assert.Empty(t, l.looks())
	})
}
