package waitqueue_test

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
)

// runs reports whether the goroutine of a poller runs.
func runs() bool {
	stacks := make([]byte, 1<<20)
	return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("waitqueue.(*Poller).run("))
}

// The goroutine runs while somebody watches, also when that begins anew.
func TestPoller_RunsWhileSomebodyWatches(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
		for range 3 {
			a, b := newLog(t, key(1)), newLog(t, key(2))
			first := watch(p, key(1), time.Hour, a.each(time.Hour))
			watch(p, key(2), 50*ms, b.each(-1))
			pause(time.Second)
			require.Len(t, b.looks(), 1)
			require.True(t, runs())
			first.Stop()
			synctest.Wait()
			require.False(t, runs())
			assert.Empty(t, a.looks())
		}
		assert.Len(t, r.sent(), 3)
	})
}

// A read that nobody waits for any more is not told, and is bounded by its timeout.
func TestStop_EndsAReadThatNobodyWaitsFor(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{Timeout: 2 * time.Second}, func(r *reader, p *waitqueue.Poller) {
		r.answers(hangs(key(1)))
		w := watch(p, key(1), 0, newLog(t, key(1)).each(0))
		pause(time.Second)
		w.Stop()
		pause(2 * time.Second)
		require.False(t, runs())
		assert.Len(t, r.sent(), 1)
	})
}

func TestClose_EndsThePoller(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
		r.latency = time.Second
		l := newLog(t, key(1))
		w := watch(p, key(1), 0, l.each(0))
		pause(1500 * ms) // a read is under way
		start := time.Now()
		p.Close()
		require.False(t, runs())
		assert.Zero(t, time.Since(start))
		require.Len(t, l.looks(), 1)
		w.Stop()
		late := watch(p, key(2), 0, l.each(0))
		late.Stop()
		pause(time.Minute)
		assert.Len(t, l.looks(), 1)
		assert.Len(t, r.sent(), 2)
		p.Close()
	})
}

// A poller that is closed while it tells watchers tells no more of them.
func TestClose_TellsNoMoreWhileLooksAreDelivered(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(_ *reader, p *waitqueue.Poller) {
		told := 0
		for i := range 10 {
			watch(p, key(i), 10*ms, func(waitqueue.Look) time.Duration {
				told++
				time.Sleep(time.Second)
				return 0
			})
		}
		pause(500 * ms)
		p.Close()
		assert.Equal(t, 1, told)
		pause(time.Minute)
		assert.Equal(t, 1, told)
	})
}

// Whatever many goroutines do at once: each watcher is called by one goroutine at a time, not after its Stop, but for
// the call that was running, and looks go on coming. The race detector sees the rest.
func TestPoller_CallsAWatcherOnceAtATime(t *testing.T) {
	for seed := range uint64(testkit.Fewer(50)) {
		inTime(t, waitqueue.PollerConfig{}, func(_ *reader, p *waitqueue.Poller) {
			var wg sync.WaitGroup
			var told atomic.Int64
			for i := range 40 {
				chance := rand.New(rand.NewPCG(seed, uint64(i)))
				wg.Go(func() {
					for range 10 {
						var inside, stopped atomic.Int32
						n := chance.IntN(20)
						w := watch(p, key(chance.IntN(8)), time.Duration(chance.IntN(30))*ms, func(look waitqueue.Look) time.Duration {
							assert.EqualValues(t, 1, inside.Add(1))
							defer inside.Add(-1)
							if stopped.Load() > 0 {
								assert.EqualValues(t, 1, stopped.Add(1)-1, "only the call that was running")
							}
							assert.NotNil(t, look.Item)
							told.Add(1)
							n--
							return time.Duration(min(n, 20)) * ms
						})
						for range chance.IntN(5) {
							time.Sleep(time.Duration(chance.Int64N(int64(20 * ms))))
						}
						w.Stop()
						stopped.Store(1)
					}
				})
			}
			wg.Wait()
			assert.Positive(t, told.Load())
			l := newLog(t, key(1))
			watch(p, key(1), 10*ms, l.each(-1))
			pause(time.Second)
			assert.Len(t, l.looks(), 1)
		})
	}
}
