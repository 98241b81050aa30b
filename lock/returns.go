package lock

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// betweenReturns is how long waiters that enter again wait for each other: a table that has just come back gets at most
// 500 of them a second from one process.
const betweenReturns = 2 * time.Millisecond

// returns are the waiters that are about to enter again. Those come first that have waited for longest: they all wake at
// once when their session ends, in any order, and the same run is to send the same requests.
type returns struct {
	mu   sync.Mutex
	list []returning
}

type returning struct {
	of   *acquisition
	turn chan struct{}
}

func (r returning) compare(other returning) int {
	return cmp.Or(r.of.began.Compare(other.of.began), slices.CompareFunc(r.of.wanted, other.of.wanted, func(v, w wanted) int {
		return cmp.Or(cmp.Compare(v.key.PK, w.key.PK), cmp.Compare(v.key.SK, w.key.SK))
	}))
}

// awaitTurn waits until a waiter may enter again.
func (c *Client) awaitTurn(ctx context.Context, a *acquisition) error {
	r, own := &c.returns, returning{of: a, turn: make(chan struct{})}
	r.mu.Lock()
	at, _ := slices.BinarySearchFunc(r.list, own, returning.compare)
	r.list = slices.Insert(r.list, at, own)
	first := len(r.list) == 1
	r.mu.Unlock()
	if first {
		c.work.group.Go(func() {
			for c.clk().Sleep(c.closing, betweenReturns) == nil && r.next() {
			}
		})
	}
	select {
	case <-own.turn:
		return nil
	case <-ctx.Done():
		return causeOf(ctx)
	}
}

// next gives the first one its turn, and reports whether others wait for theirs.
func (r *returns) next() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.list[0].turn)
	r.list = slices.Delete(r.list, 0, 1)
	return len(r.list) > 0
}
