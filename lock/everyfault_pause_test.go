package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/lock"
)

// standstill is how long a process is halted: for longer than two leases.
const standstill = 2*caseLease + casePeriod

// halting is the machine of a process that can be halted. While it is halted, its clocks go on, but its timers, its requests
// and its answers wait. Requests can time out meanwhile, but nothing that follows from that is sent.
type halting struct {
	machine.Real

	mu    sync.Mutex
	until chan struct{} // closed when the machine goes on; nil while it runs
}

// halt halts the machine, and reports false if it was halted already.
func (m *halting) halt() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.until != nil {
		return false
	}
	m.until = make(chan struct{})
	return true
}

// goOn ends the halt.
func (m *halting) goOn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.until)
	m.until = nil
}

// runs returns a channel that is closed when the machine goes on, or nil if it is not halted.
func (m *halting) runs() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.until
}

// stands reports whether the machine is halted.
func (m *halting) stands() bool { return m.runs() != nil }

// stand returns while the machine runs.
func (m *halting) stand() {
	for until := m.runs(); until != nil; until = m.runs() {
		<-until
	}
}

// NewTimer implements machine.Machine.
func (m *halting) NewTimer(d time.Duration) machine.Timer {
	b := &haltingTimer{machine: m, c: make(chan time.Time, 1)}
	b.Reset(d)
	return b
}

// AfterFunc implements machine.Machine.
func (m *halting) AfterFunc(d time.Duration, f func()) machine.Timer {
	b := &haltingTimer{machine: m, f: f}
	b.Reset(d)
	return b
}

// haltingTimer is a timer of a halting machine.
type haltingTimer struct {
	machine *halting
	c       chan time.Time
	f       func()

	mu    sync.Mutex
	timer *time.Timer
	set   int // how often it was set or stopped
	live  bool
}

// C implements machine.Timer.
func (b *haltingTimer) C() <-chan time.Time { return b.c }

// Stop implements machine.Timer.
func (b *haltingTimer) Stop() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stop()
}

func (b *haltingTimer) stop() bool {
	was := b.live
	b.live = false
	b.set++
	if b.timer != nil {
		b.timer.Stop()
	}
	select { // nothing stale is received
	case <-b.c:
	default:
	}
	return was
}

// Reset implements machine.Timer.
func (b *haltingTimer) Reset(d time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.stop()
	b.live = true
	set := b.set
	b.timer = time.AfterFunc(d, func() { b.fire(set) })
	return was
}

// fire makes the timer go off, unless it was reset or stopped since.
func (b *haltingTimer) fire(set int) {
	b.machine.stand()
	b.mu.Lock()
	due := b.set == set
	if due {
		b.live = false
		if b.f == nil {
			b.c <- time.Now()
		}
	}
	b.mu.Unlock()
	if due && b.f != nil {
		b.f()
	}
}

// onMachine is an SDK client with its own machine.
type onMachine struct {
	*dynamodb.Client

	machine machine.Machine
}

// Machine tells package machine which one to use.
func (c onMachine) Machine() machine.Machine { return c.machine }

// stall halts the process here. With others, another process acquires the locks of the scenario as soon as it can, and holds
// them for longer than the halt.
func (p *process) stall(others bool) {
	c := p.c
	if p.machine.halt() {
		c.stalls.Go(func() {
			var all sync.WaitGroup
			if others {
				for _, target := range c.asked() {
					all.Go(func() { c.comesIn(target) })
				}
			}
			time.Sleep(standstill)
			p.machine.goOn()
			time.Sleep(100 * time.Millisecond) // F10's
			c.told(p)
			all.Wait()
		})
	}
	p.machine.stand()
}

// comesIn lets another process acquire a lock while its holder is halted, write under it, and hold it until the holder has
// gone on for a while.
func (c *faultCase) comesIn(target lock.Target) {
	begin := time.Now()
	bounded, cancel := context.WithTimeout(c.other.ctx, standstill-time.Second)
	defer cancel()
	before := c.asks(target)
	l, err := c.other.takes(bounded, target)
	if err != nil { // others hold it, and they go on
		if !errors.Is(err, context.DeadlineExceeded) && c.alone() {
			c.violated("answer: somebody else could not acquire: %v", err)
		}
		return
	}
	c.came.Add(1)
	h := c.other.granted(l, before)
	h.keeps(h.write())
	time.Sleep(standstill + 5*time.Second - time.Since(begin))
	h.keeps(context.Cause(h.Context()))
	h.parts()
	h.keeps(h.Release(h.of.ctx))
}

// alone reports whether there is one fault only, so that none can hit the other process.
func (c *faultCase) alone() bool { return len(c.strikes) == 1 }

// keeps checks the calls of the other process: none of them may fail.
func (h *holding) keeps(err error) {
	if err != nil && (errors.Is(err, lock.ErrLost) || h.of.c.alone()) {
		h.of.c.violated("exclusion: somebody else's lock was lost: %v", err)
	}
}

// told checks that a process that was halted knows which locks it has lost meanwhile. If it is halted again, this is checked
// later.
func (c *faultCase) told(p *process) {
	if p.machine.stands() {
		return
	}
	for _, h := range c.all() {
		c.mu.Lock()
		givenUp := h.givenUp
		c.mu.Unlock()
		if h.of != p || givenUp || h.Context().Err() != nil {
			continue
		}
		for _, later := range c.before(h.Target()) {
			if later.Fence() > h.Fence() {
				c.violated("exclusion: a holder that went on was not told that somebody else has the lock")
			}
		}
	}
}

// asked lists the locks that the scenario has tried to acquire.
func (c *faultCase) asked() []lock.Target {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]lock.Target(nil), c.targets...)
}

// Timers of a halted machine go off when it goes on, unless they are stopped or reset then.
func TestHaltedMachine_TimersWaitUntilItGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, begin := &halting{}, time.Now()
		var went []time.Duration
		m.AfterFunc(time.Second, func() { went = append(went, time.Since(begin)) })
		late, stopped, again := m.NewTimer(2*time.Second), m.NewTimer(2*time.Second), m.NewTimer(2*time.Second)
		time.Sleep(1500 * time.Millisecond)
		assert.True(t, m.halt())
		assert.False(t, m.halt())
		time.AfterFunc(10*time.Second, m.goOn)
		time.Sleep(time.Second)
		assert.True(t, m.stands())
		assert.True(t, stopped.Stop())
		assert.True(t, again.Reset(20*time.Second))
		<-late.C()
		assert.Equal(t, 11500*time.Millisecond, time.Since(begin))
		m.stand()
		assert.False(t, m.stands())
		<-again.C()
		assert.Equal(t, 22500*time.Millisecond, time.Since(begin))
		synctest.Wait()
		assert.Empty(t, stopped.C())
		assert.Equal(t, []time.Duration{time.Second}, went)
		assert.False(t, late.Stop())
	})
}
