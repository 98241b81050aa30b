package waitqueue_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
	"github.com/mortise-go/mortise/table"
)

// next watches a row as one does that is next in a line in which nothing changes.
func next(m machine.Machine, p *waitqueue.Poller, key keys.Key, told func(waitqueue.Look)) {
	start := m.Now()
	interval := func() time.Duration {
		return waitqueue.Estimate{Ahead: 1, Hold: 200 * ms, Unchanged: machine.Since(m, start), Longest: 20 * time.Second}.Look(m)
	}
	watch(p, key, interval(), func(look waitqueue.Look) time.Duration {
		told(look)
		return interval()
	})
}

// The poller's part of P17: 4,000 waiters on 4,000 rows in which nothing changes.
func TestPoller_WatchesThousandsOfRows(t *testing.T) {
	const n, seconds = 4000, 60
	for name, watch := range map[string]func(p *waitqueue.Poller, key keys.Key, told func(waitqueue.Look)){
		"next in line": func(p *waitqueue.Poller, key keys.Key, told func(waitqueue.Look)) {
			next(machine.Real{}, p, key, told)
		},
		"3 to 5 s":    jittered(3*time.Second, 5*time.Second),
		"10 to 12 s":  jittered(10*time.Second, 12*time.Second),
		"50 ms, 20 s": jittered(50*ms, 20*time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
				last := make([]time.Time, n)
				var longest time.Duration
				for i := range n {
					last[i] = time.Now()
					watch(p, key(i), func(look waitqueue.Look) {
						longest = max(longest, look.At.Sub(last[i]))
						last[i] = look.At
					})
				}
				pause(20 * time.Second)
				begin := r.sent()
				pause(seconds * time.Second)
				sent := r.sent()
				testkit.Check(t, "P17, poller, "+name,
					testkit.AtMost(float64(len(sent))/seconds, "requests/s", 25),
					testkit.AtMost(float64(rowsOf(sent))/seconds, "rows/s", 1000),
				)
				t.Logf("longest time between two looks at a row: %v", longest)
				bounded(t, append(begin, sent...))
			})
		})
	}
}

// jittered looks again after times between two bounds.
func jittered(low, high time.Duration) func(p *waitqueue.Poller, key keys.Key, told func(waitqueue.Look)) {
	return func(p *waitqueue.Poller, key keys.Key, told func(waitqueue.Look)) {
		interval := func() time.Duration { return low + rand.N(high-low) }
		watch(p, key, interval(), func(look waitqueue.Look) time.Duration {
			told(look)
			return interval()
		})
	}
}

// Where more is asked for than the rate allows, all wait longer by the same share: a lock that changes hands quickly is
// not as slow as thousands in which nothing happens.
func TestPoller_BusyRowAmongThousandsWaitsByTheSameShare(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(_ *reader, p *waitqueue.Poller) {
		quiet := newLog(t, key(0))
		watch(p, key(0), 0, quiet.each(750*ms))
		for i := range 4000 {
			next(machine.Real{}, p, key(i+1), func(waitqueue.Look) {})
		}
		pause(20 * time.Second)
		busy := newLog(t, key(-1))
		watch(p, key(-1), 0, busy.each(5*ms))
		pause(time.Minute)
		gaps := func(l *log) []time.Duration {
			var list []time.Duration
			for i := range l.times()[1:] {
				list = append(list, l.times()[i+1]-l.times()[i])
			}
			slices.Sort(list)
			return list
		}
		b, q := gaps(busy), gaps(quiet)
		t.Logf("times between looks, 5 ms asked for: median %v, longest %v; 750 ms: median %v, longest %v",
			b[len(b)/2], b[len(b)-1], q[len(q)/2], q[len(q)-1])
		assert.LessOrEqual(t, b[len(b)/2], 60*ms)
		assert.LessOrEqual(t, b[len(b)-1], 500*ms)
		assert.LessOrEqual(t, q[len(q)-1], 10*time.Second)
	})
}

// First looks of many that start at once are spread by the bound on the rate, in the order in which they began.
func TestPoller_SpreadsManyFirstLooks(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
		const n = 3000
		var order []int
		for i := range n {
			watch(p, key(i), time.Duration(i), func(waitqueue.Look) time.Duration { // as their clock goes on
				order = append(order, i)
				return -1
			})
		}
		pause(3 * time.Second)
		require.Len(t, order, n)
		assert.True(t, slices.IsSorted(order))
		sent := r.sent()
		bounded(t, sent)
		assert.LessOrEqual(t, len(sent), 62)
	})
}

// A burst after a quiet time is read at once, although it is more than the rate allows for long.
func TestPoller_BurstIsNotSlowedDown(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(_ *reader, p *waitqueue.Poller) {
		logs := make([]*log, 250)
		for i := range logs {
			logs[i] = newLog(t, key(i))
			watch(p, key(i), 5*ms, logs[i].each(-1))
		}
		pause(5*ms + 5*ms) // for five requests
		synctest.Wait()
		for i, l := range logs {
			assert.Len(t, l.looks(), 1, "row %d", i)
		}
	})
}

// As many watchers of one row, such as the session row of a process that holds thousands of locks.
func TestPoller_TellsThousandsOfWatchersOfOneRow(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
		const n, seconds = 4000, 60
		told := 0
		for range n {
			jittered(5*time.Second, 6*time.Second)(p, key(1), func(waitqueue.Look) { told++ })
		}
		pause(seconds * time.Second)
		requests := len(r.sent())
		t.Logf("%d requests and %d calls of watchers in a minute", requests, told)
		assert.LessOrEqual(t, requests, 2*seconds/5)
		assert.LessOrEqual(t, told, 2*n*seconds/5)
		assert.GreaterOrEqual(t, told, n*seconds/6)
	})
}

// BenchmarkThousandsOfWatchers measures what a second of virtual time costs: CPU time that is, since nothing waits.
func BenchmarkThousandsOfWatchers(b *testing.B) {
	m := &warp{now: time.Now()}
	second := make(chan struct{})
	ticks := m.Now()
	requests, rows := 0, 0
	items := make([]table.Item, 100)
	p := waitqueue.NewPoller(waitqueue.PollerConfig{
		Machine: m, Fatal: never, Timeout: 5 * time.Second,
		Read: func(ctx context.Context, list []keys.Key) ([]table.Item, error) {
			requests, rows = requests+1, rows+len(list)
			if machine.Since(m, ticks) >= time.Second {
				ticks = ticks.Add(time.Second)
				select {
				case second <- struct{}{}:
				case <-ctx.Done():
				}
			}
			return items[:len(list)], nil
		},
	})
	defer p.Close()
	for i := range 4000 {
		next(m, p, key(i), func(waitqueue.Look) {})
	}
	for range 10 { // until the intervals are at their longest
		<-second
	}
	first, firstRows, n := requests, rows, 0
	b.ReportAllocs()
	for b.Loop() {
		<-second
		n++
	}
	b.ReportMetric(float64(requests-first)/float64(n), "requests/s")
	b.ReportMetric(float64(rows-firstRows)/float64(n), "rows/s")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(n), "ms-CPU/s")
}

// warp is a machine on which a timer is over as soon as it begins.
type warp struct {
	machine.Real

	mu  sync.Mutex
	now time.Time
}

func (m *warp) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *warp) NewTimer(d time.Duration) machine.Timer {
	w := &warped{m: m, c: make(chan time.Time, 1)}
	w.Reset(d)
	return w
}

func (*warp) WithTimeout(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

type warped struct {
	m *warp
	c chan time.Time
}

func (w *warped) C() <-chan time.Time { return w.c }

func (w *warped) Reset(d time.Duration) bool {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	w.m.now = w.m.now.Add(d)
	w.c <- w.m.now
	return true
}

func (w *warped) Stop() bool {
	select {
	case <-w.c:
	default:
	}
	return true
}
