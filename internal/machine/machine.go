// Package machine is what the toolkit takes from the machine that it runs on, besides the
// network and the wall clock: time that passes, timers, and chance.
//
// It is a seam for simulations: the clock of a simulated machine can run too fast or too
// slow, its timers stand still while it is paused, and its chance is decided by a seed.
package machine

import (
	"context"
	"crypto/rand"
	random "math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Machine is a machine. Its methods may be called from many goroutines.
type Machine interface {
	// Now is a reading of the clock that nobody can set. Readings are compared with others
	// of the same machine, and with nothing else.
	Now() time.Time
	// NewTimer makes a timer whose channel gets a value after d.
	NewTimer(d time.Duration) Timer
	// AfterFunc calls f in a goroutine of its own after d. The timer has no channel.
	AfterFunc(d time.Duration, f func()) Timer
	// WithTimeout bounds what may take d at most.
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)

	// N is a random duration in [0, d). It panics unless d is positive.
	N(d time.Duration) time.Duration
	// Text is a random text of at least 128 bits, for what must be unique in the world.
	Text() string
}

// Timer is a *time.Timer.
type Timer interface {
	C() <-chan time.Time
	Stop() bool
	Reset(d time.Duration) bool
}

// Of is the machine that a DynamoDB client brings along by a method Machine, as simulated
// ones do, or else the real one.
func Of(client any) Machine {
	if c, ok := client.(interface{ Machine() Machine }); ok {
		return c.Machine()
	}
	return Real{}
}

// Since is how long ago at was, by the machine's clock.
func Since(m Machine, at time.Time) time.Duration { return m.Now().Sub(at) }

// Real is the machine that the process runs on.
type Real struct{}

// Now is time.Now.
func (Real) Now() time.Time { return time.Now() }

// NewTimer is time.NewTimer.
func (Real) NewTimer(d time.Duration) Timer { return timer{time.NewTimer(d)} }

// AfterFunc is time.AfterFunc.
func (Real) AfterFunc(d time.Duration, f func()) Timer { return timer{time.AfterFunc(d, f)} }

// WithTimeout is context.WithTimeout.
func (Real) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// N is rand.N of math/rand/v2.
func (Real) N(d time.Duration) time.Duration { return random.N(d) }

// Text is rand.Text of crypto/rand.
func (Real) Text() string { return rand.Text() }

type timer struct{ *time.Timer }

func (t timer) C() <-chan time.Time { return t.Timer.C }

// Backoff is an exponential backoff whose clock and whose chance are the machine's. Waits
// are spread over ±50 %, like those of the library, unless the options say otherwise.
func Backoff(m Machine, opts ...backoff.ExponentialBackOffOpts) backoff.BackOff {
	b := backoff.NewExponentialBackOff(append(opts, backoff.WithClockProvider(m))...)
	spread := b.RandomizationFactor
	b.RandomizationFactor = 0
	return &spreading{ExponentialBackOff: b, machine: m, spread: spread}
}

type spreading struct {
	*backoff.ExponentialBackOff

	machine Machine
	spread  float64
}

// NextBackOff is for package backoff.
func (b *spreading) NextBackOff() time.Duration {
	d := b.ExponentialBackOff.NextBackOff()
	by := time.Duration(float64(d) * b.spread)
	if d == backoff.Stop || by <= 0 {
		return d
	}
	return d - by + b.machine.N(2*by+1)
}

// Waits is a timer for package backoff. It is not safe for concurrent use.
type Waits struct {
	Machine Machine
	timer   Timer
}

// Start is for package backoff.
func (w *Waits) Start(d time.Duration) {
	if w.timer == nil {
		w.timer = w.Machine.NewTimer(d)
		return
	}
	w.timer.Reset(d)
}

// Stop is for package backoff.
func (w *Waits) Stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// C is for package backoff.
func (w *Waits) C() <-chan time.Time { return w.timer.C() }
