package lock

import (
	"context"
	"slices"
	"sync"
	"time"
)

// betweenReturns is the time between two waiters of this process that enter again. A table that has just recovered from an outage gets at
// most 500 of them a second from one process.
const betweenReturns = 2 * time.Millisecond

// returns are the waiters that are about to enter again. They take turns; the one that has waited longest comes first. Without an order of
// their own, chance would decide: they all wake at once when their session ends, and a simulation that is repeated must send the same
// requests. (In place of turns, a pause that follows from each waiter's ticket was tried: it sent bursts, and delayed single waiters.)
type returns struct {
	mu      sync.Mutex
	list    []*acquisition
	running bool // a goroutine gives the turns
}

func (r *returns) turn(ctx context.Context, a *acquisition) error {
	c, turn := a.client, make(chan struct{})
	r.mu.Lock()
	a.turn = turn
	at, _ := slices.BinarySearchFunc(r.list, a, (*acquisition).compare)
	r.list = slices.Insert(r.list, at, a)
	if !r.running {
		r.running = true
		c.work.Go(func() {
			for c.clk().Sleep(c.closing, betweenReturns) == nil && r.next() {
			}
		})
	}
	r.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
		r.leave(a)
	}
	return causeOf(ctx)
}

// next gives the first waiter its turn. It returns false if nobody waits for one.
func (r *returns) next() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = len(r.list) > 0
	if r.running {
		close(r.list[0].turn)
		r.list = slices.Delete(r.list, 0, 1)
	}
	return r.running
}

func (r *returns) leave(a *acquisition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = slices.DeleteFunc(r.list, func(other *acquisition) bool { return other == a })
}

func (a *acquisition) compare(other *acquisition) int {
	if c := a.began.Compare(other.began); c != 0 {
		return c
	}
	return slices.CompareFunc(a.entries, other.entries, func(d, e *entry) int {
		return d.key.Compare(e.key)
	})
}
