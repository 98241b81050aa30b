package main

import (
	"context"
	"errors"
	"math/big"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// collection is an order with its lines.
type collection struct {
	order Order
	lines []OrderLine
}

// errIncomplete means that somebody has deleted lines: orders are written with all of them.
var errIncomplete = errors.New("the order's lines are not complete")

// collect reads what stands in the partition of an order: one consistent query.
func (s *store) collect(ctx context.Context, o Order) (c collection, err error) {
	var heads []Order
	err = entity.Collect(ctx, s.table, s.orders.Key(o).PK, entity.Into(s.orders, &heads), entity.Into(s.lines, &c.lines))
	if err == nil && (len(heads) != 1 || heads[0].Lines != len(c.lines)) {
		err = errIncomplete
	}
	if err == nil {
		c.order = heads[0]
	}
	return c, err
}

func one() *big.Rat { return big.NewRat(1, 1) }

// Amount is price × quantity × (1 − discount).
func (l OrderLine) Amount() Money {
	amount := new(big.Rat).Mul(l.Price.rat(), big.NewRat(l.Quantity, 1))
	return Money{amount.Mul(amount, new(big.Rat).Sub(one(), l.Discount.rat()))}
}

// total is the sum of the lines.
func (c collection) total() (sum Money) {
	for _, l := range c.lines {
		sum = sum.Plus(l.Amount())
	}
	return sum
}

// settlement is the work on one order: it was read, and what is to be written is known.
type settlement struct {
	lease *lock.Lease
	order Order
	entry LedgerEntry
}

// prepare reads an order under its lock and works out what to write; nil if the order is settled already.
func (s *store) prepare(ctx context.Context, lease *lock.Lease, o Order, by string) (*settlement, error) {
	c, err := s.collect(ctx, o)
	if err != nil || c.order.Status == Settled {
		return nil, err
	}
	return &settlement{lease: lease, order: c.order, entry: LedgerEntry{
		Batch: o.Batch, Order: o.Order, Fence: lease.Fence(), Customer: c.order.Customer,
		Amount: c.total(), By: by, At: s.table.Now().UTC(),
	}}, nil
}

// commit settles the order and releases its lock, in one transaction. If the lock is not held any more, DynamoDB refuses all of
// it, and the error is lock.ErrLost.
func (s *store) commit(ctx context.Context, x *settlement) error {
	return x.lease.Commit(ctx, s.ops(x)...)
}

func (s *store) ops(x *settlement) []table.Op {
	e := x.entry
	return []table.Op{
		s.orders.UpdateOp(x.order, entity.Set("status", Settled), entity.Set("total", e.Amount), entity.Set("settled_by", e.By)),
		s.customers.UpdateOp(Customer{Batch: e.Batch, Customer: e.Customer}, entity.Add("balance", e.Amount)),
		s.ledger.CreateOp(e),
	}
}
