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

// The indexes.
const (
	pendingIndex  = "gsi1" // sparse: holds the orders that are not settled
	customerIndex = "gsi2" // a customer's orders, by date
)

// Keys of orders in customerIndex.
const (
	customerOrdersPK = "BATCH#{batch}#CUSTOMER#{customer}"
	customerOrdersSK = "{placed:date}#{order}"
)

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
	usage     *table.Usage // of table
	batches   *entity.Entity[Batch]
	customers *entity.Entity[Customer]
	orders    *entity.Entity[Order]
	lines     *entity.Entity[OrderLine]
	ledger    *entity.Entity[LedgerEntry]
	catalogue *entity.Entity[CatalogueEntry]

	contents []CatalogueEntry // what the catalogue should say

	// A query names one partition key; these list all shards of one.
	pending, entries, accounts *keys.Template

	// A migration computes the keys of orders in customerIndex.
	customerOrdersPK, customerOrdersSK *keys.Template
}

// openStore defines the entities. It sends nothing.
func openStore(client *dynamodb.Client, name string, scheme keys.Scheme) (*store, error) {
	tbl, err := table.Open(client, table.Schema{
		Name: name,
		Keys: scheme,
		Indexes: []table.Index{ // in the order in which migrations add them
			{Name: pendingIndex, PK: pendingIndex + "pk", SK: pendingIndex + "sk"},
			{Name: customerIndex, PK: customerIndex + "pk", SK: customerIndex + "sk"},
		},
	})
	if err != nil {
		return nil, err
	}
	usage := &table.Usage{}
	s := &store{table: tbl.Metered(usage), usage: usage}
	define(s, &err, &s.batches, entity.Spec[Batch]{
		Type: "Batch", PK: "BATCHES#{input}", SK: "{seq:uint6}", Version: "Version",
	})
	define(s, &err, &s.customers, entity.Spec[Customer]{
		Type: "Customer", PK: accountPK, SK: "CUSTOMER#{customer}",
	})
	define(s, &err, &s.orders, entity.Spec[Order]{
		Type: "Order", PK: "BATCH#{batch}#ORDER#{order}", SK: "ORDER", Version: "Version",
		Indexes: []entity.Index[Order]{{
			Name: pendingIndex, PK: pendingPK, SK: "{placed:date}#{order}",
			When: func(o Order) bool { return o.Status == Pending },
		}, {
			Name: customerIndex, PK: customerOrdersPK, SK: customerOrdersSK,
		}},
	})
	define(s, &err, &s.lines, entity.Spec[OrderLine]{
		Type: "OrderLine", PK: "BATCH#{batch}#ORDER#{order}", SK: "LINE#{no:uint4}",
	})
	define(s, &err, &s.ledger, entity.Spec[LedgerEntry]{
		Type: "LedgerEntry", PK: ledgerPK, SK: "ENTRY#{order}#{fence:uint19}",
	})
	define(s, &err, &s.catalogue, entity.Spec[CatalogueEntry]{Type: "CatalogueEntry", PK: "CATALOGUE", SK: "ROW#{row}"})
	for text, dst := range map[string]**keys.Template{
		pendingPK: &s.pending, ledgerPK: &s.entries, accountPK: &s.accounts, customerOrdersPK: &s.customerOrdersPK,
	} {
		tpl, cause := tbl.Scheme().PKTemplate(text)
		err = errors.Join(err, cause)
		*dst = tpl
	}
	tpl, cause := tbl.Scheme().SKTemplate(customerOrdersSK)
	err = errors.Join(err, cause)
	s.customerOrdersSK = tpl
	if err != nil {
		return nil, err
	}
	return s, nil
}

// define defines an entity, and notes it down for the catalogue.
func define[T any](s *store, err *error, dst **entity.Entity[T], spec entity.Spec[T]) {
	e, cause := entity.Define(s.table, spec)
	*err = errors.Join(*err, cause)
	*dst = e
	entry := CatalogueEntry{Row: spec.Type, Partition: spec.PK, Sort: spec.SK}
	for _, x := range spec.Indexes {
		entry.Indexes = append(entry.Indexes, x.Name+": "+x.PK+", "+x.SK)
	}
	s.contents = append(s.contents, entry)
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

// ordersOf reads a customer's orders, by date, from the index: those of a moment
// ago may be missing.
func (s *store) ordersOf(ctx context.Context, batch, customer string) (orders []Order, err error) {
	for o, err := range s.orders.Query(ctx, keys.Values{"batch": batch, "customer": customer}, entity.On(customerIndex)) {
		if err != nil {
			return nil, fmt.Errorf("read a customer's orders: %w", err)
		}
		orders = append(orders, o)
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
