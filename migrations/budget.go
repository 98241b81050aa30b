package migrations

import (
	"context"
	"sync"
	"time"
)

// budget limits the capacity units per second. The cost of a request is known only from its answer. So the balance can
// become negative, and then the next request waits until it is 0.
type budget struct {
	rate float64 // 0 for no limit

	mu      sync.Mutex // guards the following
	balance float64
	at      time.Time // when balance was computed
}

// burst limits the balance: at most the unused units of so much time are kept.
const burst = 100 * time.Millisecond

// wait returns when the balance is not negative.
func (b *budget) wait(ctx context.Context) error {
	for {
		d := b.debt()
		if d <= 0 {
			return endOf(ctx, ctx)
		}
		if err := sleep(ctx, d); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return endOf(ctx, ctx)
	}
}

// debt returns the time until the balance is zero.
func (b *budget) debt() time.Duration {
	if b.rate == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill()
	if b.balance >= 0 {
		return 0
	}
	const longest = time.Minute // then check again
	return max(time.Duration(min(-b.balance/b.rate, longest.Seconds())*float64(time.Second)), time.Microsecond)
}

// refill adds the units of the time that has passed. The caller holds mu.
func (b *budget) refill() {
	now := time.Now()
	if !b.at.IsZero() {
		b.balance = min(b.balance+b.rate*now.Sub(b.at).Seconds(), b.rate*burst.Seconds())
	}
	b.at = now
}

// spend subtracts the cost of a request.
func (b *budget) spend(units float64) {
	if b.rate == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill()
	b.balance -= units
}
