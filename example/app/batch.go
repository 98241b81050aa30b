package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// batchIDBytes is how much of an input's digest goes into the ID of a batch:
// enough for two inputs never to meet, short enough to be read.
const batchIDBytes = 12

// loaders is how many orders are written at once.
const loaders = 8

// openBatch returns the batch that settles in: the unfinished one of an
// earlier start, or a new one. The choice is made under a lock, so two programs
// that start with the same input work on the same batch.
func openBatch(ctx context.Context, s *store, locks *lock.Client, in *Input) (b Batch, resumed bool, err error) {
	err = locks.Do(ctx, lock.Name("batches/"+in.Digest), func(ctx context.Context, lease *lock.Lease) error {
		newest := s.batches.Query(ctx, keys.Values{"input": in.Digest}, entity.Consistent(), entity.Descending(), entity.Limit(1))
		for last, err := range newest {
			if err != nil {
				return err
			}
			b = last
		}
		if b.Seq > 0 && b.Finished.IsZero() {
			resumed = true
			return nil
		}
		b = Batch{
			Input: in.Digest, Seq: b.Seq + 1, ID: fmt.Sprintf("%s-%d", in.Digest[:batchIDBytes], b.Seq+1),
			Orders: len(in.Orders), Total: in.Total, Started: s.table.Now().UTC(),
		}
		return lease.Write(ctx, s.batches.CreateOp(b))
	})
	if err != nil {
		return Batch{}, false, fmt.Errorf("open batch: %w", err)
	}
	return b, resumed, nil
}

// finish marks the batch as done: the next start with the same input begins a
// new one.
func (b Batch) finish(ctx context.Context, s *store, at time.Time) error {
	// The row as it is: another process that worked on the batch may have marked
	// it already.
	_, err := s.batches.AnyVersion().Update(ctx, Batch{Input: b.Input, Seq: b.Seq}, entity.Set("finished", at.UTC()))
	return err
}

// load writes the orders of the input that are not in the batch yet, and calls
// loaded, from one goroutine at a time, with the number that are through.
//
// An order and its lines appear in one transaction: whoever finds a pending
// order finds all of its lines.
func (b Batch) load(ctx context.Context, s *store, in *Input, loaded func(int)) error {
	through := make(chan struct{})
	var counted errgroup.Group
	counted.Go(func() error {
		for n := 1; ; n++ {
			if _, more := <-through; !more {
				return nil
			}
			loaded(n)
		}
	})
	err := b.write(ctx, s, in, through)
	close(through)
	return errors.Join(err, counted.Wait())
}

func (b Batch) write(ctx context.Context, s *store, in *Input, through chan<- struct{}) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(loaders)
	known := map[string]bool{}
	for _, o := range in.Orders {
		if known[o.Customer] {
			continue
		}
		known[o.Customer] = true
		group.Go(func() error {
			_, err := s.customers.Create(ctx, Customer{Batch: b.ID, Customer: o.Customer})
			return unlessExists("load customer", err)
		})
	}
	for _, o := range in.Orders {
		group.Go(func() error {
			err := s.table.Write(ctx, b.rows(s, o)...)
			if err := unlessExists("load order", err); err != nil {
				return err
			}
			through <- struct{}{}
			return nil
		})
	}
	return group.Wait()
}

// rows are the writes that add an order with its lines.
func (b Batch) rows(s *store, o InputOrder) []table.Op {
	ops := make([]table.Op, 0, 1+len(o.Lines))
	ops = append(ops, s.orders.CreateOp(Order{
		Batch: b.ID, Order: o.ID, Customer: o.Customer, Placed: o.Placed, Lines: len(o.Lines), Status: Pending,
	}))
	for i, l := range o.Lines {
		ops = append(ops, s.lines.CreateOp(OrderLine{
			Batch: b.ID, Order: o.ID, No: int64(i + 1), Product: l.Product, Price: l.Price, Quantity: l.Quantity, Discount: l.Discount,
		}))
	}
	return ops
}

// unlessExists lets pass what an earlier start, or another program, has loaded.
// The batch is named after the input, so it is the same.
func unlessExists(what string, err error) error {
	if err == nil || errors.Is(err, entity.ErrExists) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
