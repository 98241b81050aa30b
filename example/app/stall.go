package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/lock"
)

// thawCheck is how often it is looked whether a frozen worker's order has been
// settled by somebody else.
const thawCheck = 100 * time.Millisecond

// freezeSome has workers enter the critical section of an order and stop right
// before the write, before the other workers begin. Like a process that was
// suspended they renew nothing: their leases are fixed. A worker that finds no
// free order does not freeze.
func (c *crew) freezeSome(ctx context.Context) ([]*settlement, error) {
	frozen := make([]*settlement, c.stalls)
	group, ctx := errgroup.WithContext(ctx)
	for i := range frozen {
		group.Go(func() (err error) {
			frozen[i], err = c.freeze(ctx, c.workerName(i)+"-frozen")
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("freeze: %w", err)
	}
	held := frozen[:0]
	for _, f := range frozen {
		if f != nil {
			held = append(held, f)
		}
	}
	return held, nil
}

func (c *crew) freeze(ctx context.Context, name string) (*settlement, error) {
	shards, err := c.store.pending.Shards(c.batch)
	if err != nil {
		return nil, err
	}
	for _, shard := range rand.Perm(len(shards)) {
		found, err := c.pending(ctx, shard)
		if err != nil {
			return nil, err
		}
		for _, i := range rand.Perm(len(found)) {
			lease, err := c.locks.TryAcquire(ctx, lock.Beside(c.store.orders.Key(found[i])), lock.Fixed(leaseTime))
			if notAcquired(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			s, err := c.prepare(ctx, lease, found[i], name)
			if err != nil {
				return nil, err
			}
			if s == nil {
				if err := release(ctx, lease); err != nil {
					return nil, err
				}
				continue
			}
			c.frozen.Add(1)
			c.tell(event{Kind: workerFroze, Worker: name, Order: found[i].Order})
			return s, nil
		}
	}
	return nil, nil
}

// thaw lets a frozen worker go on once somebody else has settled its order. The
// worker knows nothing of that and writes what it had prepared; the guard in
// its transaction has to refuse it.
func (c *crew) thaw(ctx context.Context, s *settlement) error {
	for {
		o, err := c.store.orders.Get(ctx, s.order, entity.Consistent())
		if err != nil {
			return fmt.Errorf("thaw: %w", err)
		}
		if o.Status == Settled {
			break
		}
		if err := pause(ctx, thawCheck); err != nil {
			return err
		}
	}
	e := event{Worker: s.entry.By, Order: s.entry.Order}
	switch err := s.commit(ctx); {
	case err == nil:
		// The audit will find two ledger entries.
		e.Kind = orderSettled
	case errors.Is(err, lock.ErrLost):
		c.refused.Add(1)
		e.Kind = staleRefused
	default:
		return fmt.Errorf("thaw: %w", err)
	}
	c.tell(e)
	return nil
}
