package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
)

// crew is the workers of one process. They find pending orders in the index, take their locks and settle them.
type crew struct {
	*store
	locks  *lock.Client
	batch  Batch
	name   string      // before the workers' names
	report func(tally) // called by one goroutine at a time

	mu    sync.Mutex
	tally tally
}

// tally is what a crew has counted. PID and Requests are those of a worker process.
type tally struct {
	Settled, Refused int64 // orders; stale writes that did not commit
	PID              int
	Requests         int64
}

// run settles the batch. Cancelling ctx ends it early.
func (c *crew) run(ctx context.Context, workers int) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range workers {
		group.Go(func() error { return c.work(ctx, fmt.Sprintf("%sw%d", c.name, i+1)) })
	}
	return group.Wait()
}

// work settles pending orders until there are none. It reads a page of them and tries some in random order, so that workers
// seldom meet.
func (c *crew) work(ctx context.Context, by string) error {
	acquire, found := c.locks.TryAcquire, time.Now()
	for {
		pending, err := all(c.orders.Query(ctx, keys.Values{"batch": c.batch.ID}, entity.On(pendingIndex), entity.Limit(100)))
		if err != nil {
			return fmt.Errorf("find pending orders: %w", err)
		}
		if len(pending) == 0 {
			const lag = 5 * time.Second // of the index, at most; a ledger that is complete needs no waiting
			if n, err := c.settled(ctx, c.batch); err != nil || n >= c.batch.Orders || time.Since(found) > lag {
				return err
			}
			time.Sleep(lag / 100)
			continue
		}
		found = time.Now()
		rand.Shuffle(len(pending), func(i, j int) { pending[i], pending[j] = pending[j], pending[i] })
		acquired := 0
		for _, o := range pending[:min(len(pending), 12)] {
			lease, err := acquire(ctx, lock.Beside(c.orders.Key(o)))
			if errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrLost) {
				continue // somebody else works on it
			}
			if err == nil {
				err = c.settle(ctx, lease, o, by)
			}
			if err != nil {
				return fmt.Errorf("settle: %w", err)
			}
			acquired++
		}
		// Where all are locked a worker waits in line. A lock whose holder is gone passes on when the lease ends.
		if acquire = c.locks.TryAcquire; acquired == 0 {
			acquire = c.locks.Acquire
		}
	}
}

// settle settles an order whose lock is held.
func (c *crew) settle(ctx context.Context, lease *lock.Lease, o Order, by string) error {
	x, err := c.prepare(ctx, lease, o, by)
	if err == nil && x == nil { // somebody else has settled it
		err = lease.Release(ctx)
	} else if err == nil {
		err = c.commit(ctx, x)
		c.count(err)
	}
	if errors.Is(err, lock.ErrLost) {
		return nil // somebody else has the lock by now, and settles the order
	}
	return err
}

// count counts a settlement that was committed, or refused.
func (c *crew) count(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.tally.Settled++
	} else if errors.Is(err, lock.ErrLost) {
		c.tally.Refused++
	}
	c.report(c.tally)
}

// settled counts the orders of a batch that have an entry in the ledger.
func (s *store) settled(ctx context.Context, b Batch) (int, error) {
	entries, err := all(s.ledger.Query(ctx, keys.Values{"batch": b.ID}, entity.Consistent()))
	orders := map[string]bool{}
	for _, e := range entries {
		orders[e.Order] = true
	}
	return len(orders), err
}
