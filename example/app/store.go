package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// pendingIndex is the sparse index: it holds the orders that are not settled.
const pendingIndex = "gsi1"

// Shards of what would otherwise be one hot partition per batch.
const (
	pendingPK = "BATCH#{batch}#PENDING#{order:shard8}"
	ledgerPK  = "BATCH#{batch}#LEDGER#{order:shard8}"
	accountPK = "BATCH#{batch}#CUSTOMERS#{customer:shard4}"
)

// Batch is one start of the settlement of one input. Every batch keeps books
// of its own: all other rows carry its ID in their partition key.
type Batch struct {
	Input    string    `dynamo:"input"` // Input.Digest
	Seq      int64     `dynamo:"seq"`   // counts the batches of one input, from 1
	ID       string    `dynamo:"batch"`
	Orders   int       `dynamo:"orders"`
	Total    Decimal   `dynamo:"total"` // what the input adds up to
	Started  time.Time `dynamo:"started"`
	Finished time.Time `dynamo:"finished,omitempty"`
	Version  int64     `dynamo:"-"`
}

// Customer is a customer's account in a batch.
type Customer struct {
	Batch    string  `dynamo:"batch"`
	Customer string  `dynamo:"customer"`
	Balance  Decimal `dynamo:"balance"` // what the customer owes
}

// Status of an order.
type Status string

// The states an order goes through.
const (
	Pending Status = "pending"
	Settled Status = "settled"
)

// Order is the head of an order. Its lines are rows of the same item
// collection, and so is its lock.
type Order struct {
	Batch     string    `dynamo:"batch"`
	Order     string    `dynamo:"order"`
	Customer  string    `dynamo:"customer"`
	Placed    time.Time `dynamo:"placed"`
	Lines     int       `dynamo:"lines"` // how many there are
	Status    Status    `dynamo:"status"`
	Total     Decimal   `dynamo:"total"` // 0 until settled
	SettledBy string    `dynamo:"settled_by,omitempty"`
	Version   int64     `dynamo:"-"`
}

// OrderLine is one line of an order.
type OrderLine struct {
	Batch    string  `dynamo:"batch"`
	Order    string  `dynamo:"order"`
	No       int64   `dynamo:"no"` // from 1
	Product  string  `dynamo:"product"`
	Price    Decimal `dynamo:"price"`
	Quantity int64   `dynamo:"quantity"`
	Discount Decimal `dynamo:"discount"`
}

// Amount is what the line costs.
func (l OrderLine) Amount() (Decimal, error) { return lineAmount(l.Price, l.Quantity, l.Discount) }

// LedgerEntry books one settlement. Its key contains the fence under which it
// was made, so a second settlement of an order would add a second entry
// instead of hiding behind the first.
type LedgerEntry struct {
	Batch    string    `dynamo:"batch"`
	Order    string    `dynamo:"order"`
	Fence    int64     `dynamo:"fence"`
	Customer string    `dynamo:"customer"`
	Amount   Decimal   `dynamo:"amount"`
	By       string    `dynamo:"by"`
	At       time.Time `dynamo:"at"`
}

// store is the table and what is in it.
type store struct {
	table     *table.Table
	batches   *entity.Entity[Batch]
	customers *entity.Entity[Customer]
	orders    *entity.Entity[Order]
	lines     *entity.Entity[OrderLine]
	ledger    *entity.Entity[LedgerEntry]

	// A query names one partition key; these list all shards of one.
	pending, entries, accounts *keys.Template
}

// openStore defines the entities. It sends nothing.
func openStore(client *dynamodb.Client, name string, scheme keys.Scheme) (*store, error) {
	tbl, err := table.Open(client, table.Schema{
		Name:    name,
		Keys:    scheme,
		Indexes: []table.Index{{Name: pendingIndex, PK: pendingIndex + "pk", SK: pendingIndex + "sk"}},
	})
	if err != nil {
		return nil, err
	}
	s := &store{table: tbl}
	define(&err, &s.batches, tbl, entity.Spec[Batch]{
		Type: "Batch", PK: "BATCHES#{input}", SK: "{seq:uint6}", Version: "Version",
	})
	define(&err, &s.customers, tbl, entity.Spec[Customer]{
		Type: "Customer", PK: accountPK, SK: "CUSTOMER#{customer}",
	})
	define(&err, &s.orders, tbl, entity.Spec[Order]{
		Type: "Order", PK: "BATCH#{batch}#ORDER#{order}", SK: "ORDER", Version: "Version",
		Indexes: []entity.Index[Order]{{
			Name: pendingIndex, PK: pendingPK, SK: "{placed:date}#{order}",
			When: func(o Order) bool { return o.Status == Pending },
		}},
	})
	define(&err, &s.lines, tbl, entity.Spec[OrderLine]{
		Type: "OrderLine", PK: "BATCH#{batch}#ORDER#{order}", SK: "LINE#{no:uint4}",
	})
	define(&err, &s.ledger, tbl, entity.Spec[LedgerEntry]{
		Type: "LedgerEntry", PK: ledgerPK, SK: "ENTRY#{order}#{fence:uint19}",
	})
	for text, dst := range map[string]**keys.Template{pendingPK: &s.pending, ledgerPK: &s.entries, accountPK: &s.accounts} {
		tpl, cause := tbl.Scheme().PKTemplate(text)
		err = errors.Join(err, cause)
		*dst = tpl
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func define[T any](err *error, dst **entity.Entity[T], tbl *table.Table, spec entity.Spec[T]) {
	e, cause := entity.Define(tbl, spec)
	*err = errors.Join(*err, cause)
	*dst = e
}

// order returns an order of which only the key is known.
func (s *store) order(batch, id string) Order { return Order{Batch: batch, Order: id} }

// getOrders reads the heads of orders, consistently, in the order of their IDs.
func (s *store) getOrders(ctx context.Context, batch string, ids []string) ([]Order, error) {
	list := make([]keys.Key, len(ids))
	for i, id := range ids {
		list[i] = s.orders.Key(s.order(batch, id))
	}
	items, err := s.table.BatchGet(ctx, list, true)
	if err != nil {
		return nil, fmt.Errorf("read orders: %w", err)
	}
	orders := make([]Order, len(items))
	for i, item := range items {
		if item == nil {
			return nil, fmt.Errorf("read orders: %w", entity.ErrNotFound)
		}
		if orders[i], err = s.orders.Decode(item); err != nil {
			return nil, fmt.Errorf("read orders: %w", err)
		}
	}
	return orders, nil
}

// all reads the rows of one entity from every shard of a batch, consistently.
func all[T any](ctx context.Context, e *entity.Entity[T], shards *keys.Template, batch string) ([]T, error) {
	partitions, err := shards.Shards(batch)
	if err != nil {
		return nil, err
	}
	var rows []T
	for _, pk := range partitions {
		if err := entity.Collect(ctx, e.Table(), pk, entity.Into(e, &rows)); err != nil {
			return nil, err
		}
	}
	return rows, nil
}
