package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Names of the indexes, and the states of an order.
const (
	pendingIndex  = "gsi1" // sparse: holds the orders that are not settled
	customerIndex = "gsi2" // a customer's orders, by date

	Pending = "pending"
	Settled = "settled"
)

// Batch is one settlement of one input. Every batch has books of its own: all other rows have its ID in their partition key.
type Batch struct {
	Input    string    `dynamo:"input"` // Input.Digest
	Seq      int64     `dynamo:"seq"`   // counts the batches of one input, from 1
	ID       string    `dynamo:"batch"`
	Orders   int       `dynamo:"orders"`
	Total    Money     `dynamo:"total"` // of the input
	Started  time.Time `dynamo:"started"`
	Finished time.Time `dynamo:"finished,omitempty"`
	Version  int64     `dynamo:"-"`
}

// Customer is a customer's account in a batch.
type Customer struct {
	Batch    string `dynamo:"batch"`
	Customer string `dynamo:"customer"`
	Balance  Money  `dynamo:"balance"` // what the customer owes
}

// Order is the head of an order. Its lines are rows of the same item collection, and so is its lock.
type Order struct {
	Batch     string    `dynamo:"batch"`
	Order     string    `dynamo:"order"`
	Customer  string    `dynamo:"customer"`
	Placed    time.Time `dynamo:"placed"`
	Lines     int       `dynamo:"lines"` // how many there are
	Status    string    `dynamo:"status"`
	Total     Money     `dynamo:"total"` // 0 until settled
	SettledBy string    `dynamo:"settled_by,omitempty"`
	Version   int64     `dynamo:"-"`
}

// OrderLine is one line of an order.
type OrderLine struct {
	Batch    string `dynamo:"batch"`
	Order    string `dynamo:"order"`
	No       int64  `dynamo:"no"` // from 1
	Product  string `dynamo:"product"`
	Price    Money  `dynamo:"price"` // per piece, before discount
	Quantity int64  `dynamo:"quantity"`
	Discount Money  `dynamo:"discount"` // share of the price, 0 to 1
}

// LedgerEntry books one settlement. Its key contains the fence of the lock under which it was written: a second settlement of
// an order would add a second entry, and not hide behind the first.
type LedgerEntry struct {
	Batch    string    `dynamo:"batch"`
	Order    string    `dynamo:"order"`
	Fence    int64     `dynamo:"fence"`
	Customer string    `dynamo:"customer"`
	Amount   Money     `dynamo:"amount"`
	By       string    `dynamo:"by"`
	At       time.Time `dynamo:"at"`
}

// CatalogueEntry tells people who look at the table without this program how one kind of row is found.
type CatalogueEntry struct {
	Row       string `dynamo:"row"` // the entity's type
	Partition string `dynamo:"partition_template"`
	Sort      string `dynamo:"sort_template"`
}

// store is the table and what is in it.
type store struct {
	client    *dynamodb.Client
	table     *table.Table
	usage     *table.Usage // of table
	batches   *entity.Entity[Batch]
	customers *entity.Entity[Customer]
	orders    *entity.Entity[Order]
	lines     *entity.Entity[OrderLine]
	ledger    *entity.Entity[LedgerEntry]
	catalogue *entity.Entity[CatalogueEntry]

	contents []CatalogueEntry // of the catalogue
}

// openStore defines the entities. It sends nothing. A part such as {order:shard8} splits a partition that would become hot:
// queries read all shards.
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
	s := &store{client: client, usage: &table.Usage{}}
	s.table = tbl.Metered(s.usage)
	return s, errors.Join(
		define(s, &s.batches, entity.Spec[Batch]{Type: "Batch", PK: "BATCHES#{input}", SK: "{seq:uint6}", Version: "Version"}),
		define(s, &s.customers, entity.Spec[Customer]{
			Type: "Customer", PK: "BATCH#{batch}#CUSTOMERS#{customer:shard4}", SK: "CUSTOMER#{customer}",
		}),
		define(s, &s.orders, entity.Spec[Order]{
			Type: "Order", PK: "BATCH#{batch}#ORDER#{order}", SK: "ORDER", Version: "Version",
			Indexes: []entity.Index[Order]{{
				Name: pendingIndex, PK: "BATCH#{batch}#PENDING#{order:shard8}", SK: "{placed:date}#{order}",
				When: func(o Order) bool { return o.Status == Pending },
			}, {
				Name: customerIndex, PK: "BATCH#{batch}#CUSTOMER#{customer}", SK: "{placed:date}#{order}",
			}},
		}),
		define(s, &s.lines, entity.Spec[OrderLine]{Type: "OrderLine", PK: "BATCH#{batch}#ORDER#{order}", SK: "LINE#{no:uint4}"}),
		define(s, &s.ledger, entity.Spec[LedgerEntry]{
			Type: "LedgerEntry", PK: "BATCH#{batch}#LEDGER#{order:shard8}", SK: "ENTRY#{order}#{fence:uint19}",
		}),
		define(s, &s.catalogue, entity.Spec[CatalogueEntry]{Type: "CatalogueEntry", PK: "CATALOGUE", SK: "ROW#{row}"}),
	)
}

// define defines an entity, and adds it to the catalogue.
func define[T any](s *store, dst **entity.Entity[T], spec entity.Spec[T]) (err error) {
	*dst, err = entity.Define(s.table, spec)
	s.contents = append(s.contents, CatalogueEntry{Row: spec.Type, Partition: spec.PK, Sort: spec.SK})
	return err
}

// leaseTime is how long an order stays locked when its worker dies. The work takes milliseconds.
const leaseTime = 2 * time.Second

// newLocks returns a client of locks. Nothing is logged: this program counts the locks that it loses.
func newLocks(s *store, name string, lease time.Duration) (*lock.Client, error) {
	return lock.New(s.table, lock.Config{Lease: lease, Owner: fmt.Sprintf("%s (pid %d)", name, os.Getpid()), Logger: slog.New(slog.DiscardHandler)})
}

// closeLocks releases what is held, also where ctx has ended. Later than in a lease it is free anyway.
func closeLocks(ctx context.Context, locks *lock.Client) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTime)
	defer cancel()
	return locks.Close(ctx)
}

// all collects what a query finds.
func all[T any](rows func(yield func(T, error) bool)) (list []T, err error) {
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, nil
}
