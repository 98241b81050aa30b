package waitqueue_test

import (
	"fmt"
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
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
)

type (
	queues = waitqueue.Queues[string, int]
	waiter = waitqueue.Waiter[string, int]
	place  = waitqueue.Place[string, int]
)

func key(i int) keys.Key { return keys.NewKey(fmt.Sprintf("LOCK#%d", i), "LOCK") }

func ready(w *waiter) bool { return len(w.Turn()) > 0 }

// turn expects that it is the waiter's turn to enter the line itself.
func turn(t *testing.T, w *waiter) *place {
	t.Helper()
	require.True(t, ready(w))
	got := <-w.Turn()
	require.Zero(t, got.Grant)
	require.NotNil(t, got.Place)
	return got.Place
}

func TestQueues_FirstComeFirstServed(t *testing.T) {
	var q queues
	a, b, c, other := q.Join(key(1), "a"), q.Join(key(1), "b"), q.Join(key(1), "c"), q.Join(key(2), "other")
	assert.Equal(t, 2, q.Waiting(key(1)))
	turn(t, other).Over()
	p := turn(t, a)
	assert.False(t, ready(b))
	p.Over()
	p = turn(t, b)
	assert.False(t, ready(c))
	assert.Equal(t, 1, q.Waiting(key(1)))
	p.Over()
	turn(t, c).Over()
	assert.Zero(t, q.Waiting(key(1)))
	turn(t, q.Join(key(1), "d")).Over()
}

func TestTake_WaitsBehindNobody(t *testing.T) {
	var q queues
	p := q.Take(key(1))
	require.NotNil(t, p)
	assert.Nil(t, q.Take(key(1)))
	require.NotNil(t, q.Take(key(2)))
	a := q.Join(key(1), "a")
	p.Over()
	assert.Nil(t, q.Take(key(1)), "it is the waiter's")
	turn(t, a).Over()
	assert.NotNil(t, q.Take(key(1)))
}

func TestPlace_IsPassedOn(t *testing.T) {
	var q queues
	a, b, c := q.Join(key(1), "a"), q.Join(key(1), "b"), q.Join(key(1), "c")
	p := turn(t, a)
	assert.Equal(t, "b", p.First().Request)
	assert.Same(t, b, p.First())
	assert.False(t, ready(b), "the pass is under way")
	assert.Equal(t, 2, q.Waiting(key(1)), "it keeps its position")
	assert.False(t, p.Hand(c, 7), "it is not the first")

	require.True(t, p.Hand(b, 8))
	assert.False(t, p.Hand(b, 9), "it has its turn")
	got := <-b.Turn()
	assert.Equal(t, 8, got.Grant)
	_, came := b.Leave()
	assert.False(t, came, "b answers for it already")
	assert.Same(t, p, got.Place, "the process is where it was in the line")
	assert.False(t, ready(c))
	p.Over()
	turn(t, c).Over()
	assert.Nil(t, p.First(), "it is over")
}

// A waiter that leaves may have the turn, or a grant, without knowing it.
func TestLeave_LosesNothing(t *testing.T) {
	var q queues
	a, b, c, d := q.Join(key(1), "a"), q.Join(key(1), "b"), q.Join(key(1), "c"), q.Join(key(1), "d")
	got, came := a.Leave()
	assert.True(t, came, "the caller passes the turn on")
	_, came = a.Leave()
	assert.False(t, came, "once")
	got.Place.Over()
	assert.False(t, ready(c))

	p := turn(t, b)
	_, came = c.Leave()
	assert.False(t, came)
	assert.False(t, p.Hand(c, 1), "it has left")
	assert.False(t, ready(c))

	require.True(t, p.Hand(d, 2))
	got, came = d.Leave()
	require.True(t, came, "the caller gives it back")
	assert.Equal(t, 2, got.Grant)
	assert.Same(t, p, got.Place)
	_, came = d.Leave()
	assert.False(t, came, "once")
	e := q.Join(key(1), "e")
	assert.False(t, ready(e), "the place is still there")
	p.Over()
	turn(t, e).Over()
}

// What ends a place may do so more than once: its release, its loss, the end of its session.
func TestPlace_EndsOnce(t *testing.T) {
	var q queues
	a, b, c := q.Join(key(1), "a"), q.Join(key(1), "b"), q.Join(key(1), "c")
	p := turn(t, a)
	p.Over()
	p.Over()
	next := turn(t, b)
	assert.False(t, ready(c), "two places of one process stand in the line")
	assert.False(t, p.Hand(c, 1), "it is over")
	assert.Nil(t, p.First())
	next.Over()
	turn(t, c).Over()
	d := q.Join(key(1), "d")
	p.Over()
	next.Over()
	e := q.Join(key(1), "e")
	assert.False(t, ready(e))
	turn(t, d).Over()
	turn(t, e).Over()
}

// Many goroutines wait for few locks, give up, pass on and release at random. Each lock has one owner at any time, who
// are served in the order in which they joined, and nobody waits for ever: that would be a deadlock of the bubble.
func TestQueues_ServeInOrderAmongGoroutines(t *testing.T) {
	for seed := range uint64(testkit.Fewer(200)) {
		synctest.Test(t, func(t *testing.T) { amongGoroutines(t, seed) })
	}
}

func amongGoroutines(t *testing.T, seed uint64) {
	const locks, goroutines, rounds = 3, 20, 20
	var q queues
	var inside [locks]atomic.Int32
	var order sync.Mutex
	joined, served := [locks][]*waiter{}, [locks][]*waiter{}
	var wg sync.WaitGroup
	for i := range goroutines {
		chance := rand.New(rand.NewPCG(seed, uint64(i)))
		wait := func(most time.Duration) { time.Sleep(time.Duration(chance.Int64N(int64(most)))) }
		release := func(p *place, lock int) {
			if chance.IntN(3) > 0 {
				if w := p.First(); w != nil {
					wait(10 * time.Millisecond)
					inside[lock].Add(-1)
					if chance.IntN(4) == 0 || !p.Hand(w, 1) {
						p.Over()
					}
					return
				}
			}
			inside[lock].Add(-1)
			p.Over()
		}
		wg.Go(func() {
			for range rounds {
				lock := chance.IntN(locks)
				order.Lock()
				w := q.Join(key(lock), "")
				joined[lock] = append(joined[lock], w)
				order.Unlock()
				patience := time.NewTimer(time.Duration(chance.Int64N(int64(time.Second))))
				var turn waitqueue.Turn[string, int]
				select {
				case turn = <-w.Turn():
				case <-patience.C:
					if turn, came := w.Leave(); came {
						assert.EqualValues(t, 1, inside[lock].Add(1))
						release(turn.Place, lock)
					}
					continue
				}
				assert.EqualValues(t, 1, inside[lock].Add(1), "seed %d", seed)
				order.Lock()
				served[lock] = append(served[lock], w)
				order.Unlock()
				wait(10 * time.Millisecond)
				release(turn.Place, lock)
			}
		})
	}
	wg.Wait()
	for lock := range locks {
		assert.Zero(t, q.Waiting(key(lock)))
		rest := joined[lock]
		for _, w := range served[lock] {
			for rest[0] != w {
				require.NotContains(t, served[lock], rest[0], "seed %d: it was overtaken", seed)
				rest = rest[1:]
			}
			rest = rest[1:]
		}
		assert.True(t, ready(q.Join(key(lock), "")), "a place was left behind")
	}
}

// So many waiters that looking through the others whenever one leaves would take hours.
func TestLeave_IsQuickForMany(t *testing.T) {
	var q queues
	p := turn(t, q.Join(key(1), ""))
	n := testkit.Fewer(1_000_000)
	list := make([]*waiter, n)
	for i := range list {
		list[i] = q.Join(key(1), "")
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
	for _, w := range list {
		w.Leave()
	}
	assert.Zero(t, q.Waiting(key(1)))
	assert.Nil(t, p.First())
	p.Over()
}

// A key for which nobody waits takes no memory of its own: the map grows to what was needed at once, and no further.
func TestQueues_KeysWithoutEntriesTakeNoMemory(t *testing.T) {
	var q queues
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const n = 10_000
	places := make([]*place, n)
	var first, last uint64
	for round := range 10 {
		for i := range places {
			places[i] = (<-q.Join(key(round*n+i), "").Turn()).Place
		}
		for _, p := range places {
			p.Over()
		}
		clear(places) // the places themselves are the test's
		if last = heap(); round == 0 {
			first = last
		}
	}
	assert.Less(t, last, first+2<<20, "%d bytes at first", first)
	runtime.KeepAlive(&q)
	runtime.KeepAlive(places)
}

func TestHandoffs_AreLimitedWhileOthersWait(t *testing.T) {
	var q queues
	a, b := q.Join(key(1), ""), q.Join(key(1), "")
	p := turn(t, a)
	for range 100 {
		require.True(t, p.MayPass(2, false), "without limit while nobody else stands in the line")
		p.Passed(false)
	}
	for range 2 {
		require.True(t, p.MayPass(2, true))
		p.Passed(true)
	}
	assert.False(t, p.MayPass(2, true))
	assert.True(t, p.MayPass(2, false), "the others have left")
	p.Passed(false)
	assert.True(t, p.MayPass(2, true), "it is no longer in a row")
	assert.False(t, p.MayPass(0, true))
	assert.True(t, p.MayPass(0, false))

	p.Passed(true)
	p.Over()
	assert.True(t, turn(t, b).MayPass(1, true), "the place is another")
}

func BenchmarkUncontended(b *testing.B) {
	var q queues
	b.ReportAllocs()
	for b.Loop() {
		(<-q.Join(key1, "").Turn()).Place.Over()
	}
}

var key1 = key(1)

func BenchmarkLeave(b *testing.B) {
	for _, n := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				var q queues
				list := make([]*waiter, n)
				for i := range list {
					list[i] = q.Join(key1, "")
				}
				for i := range list {
					list[len(list)-1-i].Leave()
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(n), "ns/waiter")
		})
	}
}
