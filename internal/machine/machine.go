// Package machine is what the toolkit uses of the machine that it runs on, besides the network and the wall clock: a monotonic clock,
// timers, and random values.
//
// Simulations replace it: the clock of a simulated machine can run too fast or too slow, its timers stand still while it is paused, and
// its random values depend on a seed.
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
	// Now reads the monotonic clock, which nobody can set. A reading may be compared only with other readings of the same machine, and
	// not with any other time.
	Now() time.Time
	// NewTimer returns a timer that sends a value to its channel after d.
	NewTimer(d time.Duration) Timer
	// AfterFunc calls f in a goroutine of its own after d. The timer has no channel.
	AfterFunc(d time.Duration, f func()) Timer
	// WithTimeout returns a context that ends after d.
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)

	// N returns a random duration in [0, d). It panics if d is not positive.
	N(d time.Duration) time.Duration
	// Text returns a random text of at least 128 bits, for values that must be globally unique.
	Text() string
}

// Timer is a *time.Timer, or one of a simulated machine.
type Timer interface {
	C() <-chan time.Time
	Stop() bool
	Reset(d time.Duration) bool
}

// Of returns the machine of a DynamoDB client. A simulated client has a method Machine that returns it. For all other clients it is the
// real machine.
func Of(client any) Machine {
	if c, ok := client.(interface{ Machine() Machine }); ok {
		return c.Machine()
	}
	return Real{}
}

// Since returns the time since at, a reading of the machine's clock.
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

// Backoff returns an exponential backoff that uses the machine's clock and random values. Waits are spread by ±50 %, as in package
// backoff, unless the options change that.
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

// NextBackOff implements backoff.BackOff.
func (b *spreading) NextBackOff() time.Duration {
	d := b.ExponentialBackOff.NextBackOff()
	by := time.Duration(float64(d) * b.spread)
	if d == backoff.Stop || by <= 0 {
		return d
	}
	return d - by + b.machine.N(2*by+1)
}

// Waits is a backoff.Timer that uses the machine's timers. It is not safe for concurrent use.
type Waits struct {
	Machine Machine
	timer   Timer
}

// Start implements backoff.Timer.
func (w *Waits) Start(d time.Duration) {
	if w.timer == nil {
		w.timer = w.Machine.NewTimer(d)
		return
	}
	w.timer.Reset(d)
}

// Stop implements backoff.Timer.
func (w *Waits) Stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// C implements backoff.Timer. It must be called after Start.
func (w *Waits) C() <-chan time.Time { return w.timer.C() }
