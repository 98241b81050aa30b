package sim

import (
	"context"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/bits"
	"sync"
	"time"

	"github.com/mortise-go/mortise/internal/machine"
)

// Clock describes how wrong the clocks of a process are.
type Clock struct {
	Offset time.Duration // of the wall clock
	Wall   float64       // how fast the wall clock is; 0 for 1
	Rate   float64       // how fast the monotonic clock and timers are; 0 for 1
}

// String describes the clock in words.
func (c Clock) String() string {
	c = c.withDefaults()
	wall := "right"
	switch {
	case c.Offset > 0:
		wall = c.Offset.Round(time.Millisecond).String() + " fast"
	case c.Offset < 0:
		wall = (-c.Offset).Round(time.Millisecond).String() + " slow"
	}
	return fmt.Sprintf("wall clock %s, at %.3g times the rate; timers at %.3g", wall, c.Wall, c.Rate)
}

func (c Clock) withDefaults() Clock {
	if c.Wall == 0 {
		c.Wall = 1
	}
	if c.Rate == 0 {
		c.Rate = 1
	}
	return c
}

// simulated is the machine of a process. It computes its clocks from true time, which is the time of the bubble.
type simulated struct {
	seed  uint64
	boot  time.Time
	clock Clock
	call  func(f func()) // how functions of timers are called

	mu        sync.Mutex
	offset    time.Duration // of the wall clock, jumps included
	stopped   bool          // nothing runs
	suspended time.Time     // since when the whole machine is suspended, with its monotonic clock; zero if it is not
	asleep    time.Duration // for how long it was suspended in total
	parked    []*alarm      // timers that were due while the machine was stopped
	drawn     time.Time     // when Text was called last
	draws     uint64        // how often Text was called at that instant
}

func newMachine(seed uint64, clock Clock) *simulated {
	clock = clock.withDefaults()
	return &simulated{seed: seed, boot: time.Now(), clock: clock, offset: clock.Offset, call: func(f func()) { f() }}
}

// Now implements machine.Machine.
func (m *simulated) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now()
}

func (m *simulated) now() time.Time {
	at := time.Now()
	if !m.suspended.IsZero() {
		at = m.suspended
	}
	return m.boot.Round(0).Add(scale(at.Sub(m.boot)-m.asleep, m.clock.Rate))
}

// Wall is the wall clock.
func (m *simulated) Wall() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boot.Round(0).Add(scale(time.Since(m.boot), m.clock.Wall) + m.offset)
}

// jump sets the wall clock forward or back.
func (m *simulated) jump(by time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.offset += by
}

func scale(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }

// lateness is how late a timer fires. Real timers are late as well. It makes two timers of one process hardly ever
// fire at the same instant.
func (m *simulated) lateness(d time.Duration) time.Duration {
	return time.Duration(m.chance("timer", uint64(d)) % uint64(50*time.Microsecond))
}

// alarm is a timer of a simulated machine.
type alarm struct {
	m    *simulated
	c    chan time.Time
	f    func()
	due  time.Time   // by the machine's clock; guarded by the machine's mu
	wake *time.Timer // in true time
	live bool        // has neither fired nor been stopped
}

// NewTimer implements machine.Machine.
func (m *simulated) NewTimer(d time.Duration) machine.Timer {
	a := &alarm{m: m, c: make(chan time.Time, 1)}
	a.Reset(d)
	return a
}

// AfterFunc implements machine.Machine.
func (m *simulated) AfterFunc(d time.Duration, f func()) machine.Timer {
	a := &alarm{m: m, f: f}
	a.Reset(d)
	return a
}

// C implements machine.Timer.
func (a *alarm) C() <-chan time.Time { return a.c }

// Stop implements machine.Timer.
func (a *alarm) Stop() bool {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	return a.stop()
}

func (a *alarm) stop() bool {
	was := a.live
	a.live = false
	if a.wake != nil {
		a.wake.Stop()
	}
	if a.c != nil { // as since Go 1.23: no stale value is received
		select {
		case <-a.c:
		default:
		}
	}
	return was
}

// Reset implements machine.Timer.
func (a *alarm) Reset(d time.Duration) bool {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	was := a.stop()
	a.live = true
	a.due = a.m.now().Add(max(d, 0))
	a.arm(a.m.lateness(d))
	return was
}

// arm sets the timer in true time. It is called with the machine's mu held.
func (a *alarm) arm(late time.Duration) {
	wait := max(scale(a.due.Sub(a.m.now()), 1/a.m.clock.Rate), 0) + late
	if a.wake == nil {
		a.wake = time.AfterFunc(max(wait, 1), a.ring)
		return
	}
	a.wake.Reset(max(wait, 1))
}

func (a *alarm) ring() {
	m := a.m
	m.mu.Lock()
	switch {
	case !a.live:
		m.mu.Unlock()
		return
	case m.stopped:
		m.parked = append(m.parked, a)
		m.mu.Unlock()
		return
	case m.now().Before(a.due): // the machine was suspended meanwhile
		a.arm(m.lateness(0))
		m.mu.Unlock()
		return
	}
	a.live = false
	if a.f == nil {
		a.c <- m.now()
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	m.call(a.f)
}

// stop stops everything on the machine. With suspend, the monotonic clock stops, too.
func (m *simulated) stop(suspend bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	if suspend && m.suspended.IsZero() {
		m.suspended = time.Now()
	}
}

// resume lets everything run again. Timers that were due meanwhile fire within moments, in an order that the seed
// decides.
func (m *simulated) resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = false
	if !m.suspended.IsZero() {
		m.asleep += time.Since(m.suspended)
		m.suspended = time.Time{}
	}
	for _, a := range m.parked { // the order does not matter: timers of one instant fire in any order
		a.arm(time.Duration(m.chance("resume", uint64(a.due.Sub(m.boot))) % uint64(200*time.Microsecond)))
	}
	m.parked = nil
}

// WithTimeout implements machine.Machine. The timeout passes while the machine is stopped. What it ends can do
// nothing before the machine continues.
func (m *simulated) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, scale(d, 1/m.clock.Rate)+m.lateness(d))
}

// chance is a random number that depends only on the seed, the instant and its purpose.
func (m *simulated) chance(what string, n uint64) uint64 {
	return mix(m.seed, what, uint64(time.Since(m.boot)), n)
}

// N implements machine.Machine.
func (m *simulated) N(d time.Duration) time.Duration {
	hi, _ := bits.Mul64(m.chance("n", uint64(d)), uint64(d))
	return time.Duration(hi)
}

// Text implements machine.Machine.
func (m *simulated) Text() string {
	m.mu.Lock()
	if now := time.Now(); !now.Equal(m.drawn) {
		m.drawn, m.draws = now, 0
	}
	m.draws++
	n := m.draws
	m.mu.Unlock()
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], m.chance("text", n))
	binary.BigEndian.PutUint64(b[8:], m.chance("more", n))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])
}

// mix makes one number of several.
func mix(seed uint64, what string, numbers ...uint64) uint64 {
	b := append(binary.BigEndian.AppendUint64(make([]byte, 0, 64), seed), what...)
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	h := fnv.New64a()
	_, _ = h.Write(b)
	x := h.Sum64() // FNV's upper bits are poor: the finalizer of SplitMix64
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
