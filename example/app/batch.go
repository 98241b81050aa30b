package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// openBatch finds the unfinished batch of an earlier start, or makes a new one. The choice is made under a lock with a name, so
// two programs that start with the same input work on the same batch.
func (a *app) openBatch(ctx context.Context) error {
	return a.locks.Do(ctx, lock.Name("batches/"+a.input.Digest), func(ctx context.Context, lease *lock.Lease) error {
		input := keys.Values{"input": a.input.Digest}
		newest, err := all(a.batches.Query(ctx, input, entity.Consistent(), entity.Descending(), entity.Limit(1)))
		if err != nil {
			return err
		}
		if len(newest) > 0 {
			a.batch, a.resumed = newest[0], newest[0].Finished.IsZero()
		}
		if a.resumed {
			return nil
		}
		seq := a.batch.Seq + 1
		a.batch = Batch{
			Input: a.input.Digest, Seq: seq, ID: fmt.Sprintf("%s-%d", a.input.Digest[:12], seq),
			Orders: len(a.input.Orders), Total: a.input.Total, Started: a.table.Now().UTC(),
		}
		return lease.Commit(ctx, a.batches.CreateOp(a.batch)) // and release, in one transaction
	})
}

// load writes the orders of the input that are not in the batch yet. An order and its lines appear in one transaction: a worker
// that finds the order finds all of its lines.
func (a *app) load(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	known := map[string]bool{}
	for _, c := range a.input.Orders {
		if customer := c.order.Customer; !known[customer] {
			known[customer] = true
			group.Go(func() error {
				_, err := a.customers.Create(ctx, Customer{Batch: a.batch.ID, Customer: customer})
				return unlessExists(err)
			})
		}
		group.Go(func() error {
			c.order.Batch = a.batch.ID
			ops := []table.Op{a.orders.CreateOp(c.order)}
			for _, l := range c.lines {
				l.Batch = a.batch.ID
				ops = append(ops, a.lines.CreateOp(l))
			}
			return unlessExists(a.table.Write(ctx, ops...))
		})
	}
	return group.Wait()
}

// unlessExists drops the error of a row that is there: an earlier start, or another program, has loaded it from the same input.
func unlessExists(err error) error {
	if err == nil || errors.Is(err, entity.ErrExists) {
		return nil
	}
	return fmt.Errorf("load: %w", err)
}
