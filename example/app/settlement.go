package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// errIncomplete says that an order's collection lacks rows. Orders are written
// with all their lines, so somebody has meddled with the table.
var errIncomplete = errors.New("the order's lines are not complete")

// collection is what stands in the partition of one order.
type collection struct {
	order Order
	lines []OrderLine
	locks []lock.Record
}

// collect reads the collection of an order: one consistent query.
func (s *store) collect(ctx context.Context, locks *lock.Client, batch, id string) (collection, error) {
	var c collection
	var heads []Order
	pk := s.orders.Key(s.order(batch, id)).PK
	err := entity.Collect(ctx, s.table, pk,
		entity.Into(s.orders, &heads), entity.Into(s.lines, &c.lines), entity.Into(locks.Records(), &c.locks))
	if err != nil {
		return c, err
	}
	if len(heads) != 1 || heads[0].Lines != len(c.lines) {
		return c, errIncomplete
	}
	c.order = heads[0]
	return c, nil
}

// settlement is the write that settles an order.
type settlement struct {
	store *store
	lease *lock.Lease
	order Order // as it was read under the lease
	entry LedgerEntry
}

// prepare reads the order under its lock and computes what to write; nil if the
// order is settled already.
func (c *crew) prepare(ctx context.Context, lease *lock.Lease, o Order, by string) (*settlement, error) {
	read, err := c.store.collect(ctx, c.locks, o.Batch, o.Order)
	if err != nil {
		return nil, fmt.Errorf("read order: %w", err)
	}
	if read.order.Status == Settled {
		return nil, nil
	}
	var total Decimal
	for _, l := range read.lines {
		amount, err := l.Amount()
		if err == nil {
			total, err = total.Add(amount)
		}
		if err != nil {
			return nil, fmt.Errorf("total of an order: %w", err)
		}
	}
	return &settlement{store: c.store, lease: lease, order: read.order, entry: LedgerEntry{
		Batch: o.Batch, Order: o.Order, Fence: lease.Fence(), Customer: read.order.Customer,
		Amount: total, By: by, At: c.store.table.Now().UTC(),
	}}, nil
}

// ops are the writes of the settlement.
func (s *settlement) ops() []table.Op {
	e := s.entry
	return []table.Op{
		s.store.orders.UpdateOp(s.order,
			entity.Set("status", Settled), entity.Set("total", e.Amount), entity.Set("settled_by", e.By)),
		s.store.customers.UpdateOp(Customer{Batch: e.Batch, Customer: e.Customer}, entity.Add("balance", e.Amount)),
		s.store.ledger.CreateOp(e),
	}
}

// commit writes the settlement and releases the lock, in one transaction that
// commits only while the lock is held; otherwise the error is lock.ErrLost.
func (s *settlement) commit(ctx context.Context) error {
	if err := s.lease.Commit(ctx, s.ops()...); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	return nil
}
