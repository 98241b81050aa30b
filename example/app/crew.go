package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

const (
	// leaseTime is how long an order stays locked when its worker dies. The
	// work takes milliseconds.
	leaseTime = 2 * time.Second

	// closeTimeout bounds the release of what is still held at the end: later
	// it is free anyway.
	closeTimeout = leaseTime
)

// crew is the workers of one process. They find pending orders in the index,
// take their locks and settle them, until there is nothing left.
type crew struct {
	store   *store
	locks   *lock.Client
	batch   string
	name    string // before the workers' names
	workers int
	stalls  int         // workers that freeze before the others start
	report  func(event) // safe for concurrent use

	start  <-chan struct{} // closed: the workers may begin
	finish <-chan struct{} // closed: everything is settled

	ownTable bool // the crew is all there is in its process, so its stats include the table's usage

	waits, vain, refused, frozen atomic.Int64
}

// run does the crew's work. Its locks are released when it returns. Cancelling
// ctx ends it early, with the cause.
func (c *crew) run(ctx context.Context) (err error) {
	defer func() {
		// ctx may have ended, and what is held has to be released all the same.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, c.locks.Close(closing))
		c.tell(event{Kind: crewProgress})
	}()
	group, ctx := errgroup.WithContext(ctx)
	frozen, err := c.freezeSome(ctx)
	if err != nil {
		return err
	}
	c.tell(event{Kind: crewReady})
	select {
	case <-c.start:
	case <-ctx.Done():
		return context.Cause(ctx)
	}

	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	group.Go(func() error {
		select {
		case <-c.finish:
			stop(errFinished)
		case <-working.Done():
		}
		return nil
	})
	for _, f := range frozen {
		group.Go(func() error { return c.thaw(ctx, f) })
	}
	// A frozen worker has been replaced, as a supervisor would do with one
	// that does not answer.
	for i := range c.workers {
		group.Go(func() error {
			w := worker{crew: c, name: c.workerName(i), seen: map[string]time.Time{}}
			if err := w.run(working); !errors.Is(context.Cause(working), errFinished) {
				return err
			}
			return nil
		})
	}
	return group.Wait()
}

// errFinished is why workers stop when all is settled.
var errFinished = errors.New("all orders are settled")

func (c *crew) workerName(i int) string { return fmt.Sprintf("%sw%d", c.name, i+1) }

func (c *crew) stats() stats {
	s := stats{Waits: c.waits.Load(), Vain: c.vain.Load(), Refused: c.refused.Load(), Frozen: c.frozen.Load()}
	if c.ownTable {
		s.Usage = c.store.usage.Totals()
	}
	return s
}

func (c *crew) tell(e event) {
	e.Stats = c.stats()
	c.report(e)
}

// pending reads some pending orders of one shard. The index is eventually
// consistent: an order may be settled by now.
func (c *crew) pending(ctx context.Context, shard int) ([]Order, error) {
	shards, err := c.store.pending.Shards(c.batch)
	if err != nil {
		return nil, err
	}
	var found []Order
	query := table.Query{Index: pendingIndex, PK: shards[shard%len(shards)], Limit: pageSize}
	for item, err := range c.store.table.Query(ctx, query) {
		if err != nil {
			return nil, fmt.Errorf("find pending orders: %w", err)
		}
		o, err := c.store.orders.Decode(item)
		if err != nil {
			return nil, fmt.Errorf("find pending orders: %w", err)
		}
		found = append(found, o)
	}
	return found, nil
}
