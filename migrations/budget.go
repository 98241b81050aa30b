package migrations

import (
	"context"
	"sync"
	"time"
)

// budget holds capacity units per second to a rate. What a request costs is known only when
// its answer comes, so the budget goes into debt and the next request waits until that is paid.
type budget struct {
	rate float64 // 0 for no limit

	mu      sync.Mutex
	balance float64
	at      time.Time // when balance was right
}

// burst is how long unused units are kept.
const burst = 100 * time.Millisecond

// wait returns when there is no debt.
func (b *budget) wait(ctx context.Context) error {
	for {
		d := b.debt()
		if d <= 0 {
			return ctx.Err()
		}
		timer := time.NewTimer(d)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// debt returns how long until the balance is even.
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
	const longest = time.Minute // then it looks again
	return max(time.Duration(min(-b.balance/b.rate, longest.Seconds())*float64(time.Second)), time.Microsecond)
}

// refill adds what time has brought. It is called with mu held.
func (b *budget) refill() {
	now := time.Now()
	if !b.at.IsZero() {
		b.balance = min(b.balance+b.rate*now.Sub(b.at).Seconds(), b.rate*burst.Seconds())
	}
	b.at = now
}

// spend books what a request has cost.
func (b *budget) spend(units float64) {
	if b.rate == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill()
	b.balance -= units
}
