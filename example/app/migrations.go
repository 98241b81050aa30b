package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// rowsPerCheckpoint is small, so that there is something to see.
const rowsPerCheckpoint = 100

// changes lists all migrations, in their order. Each is written once and stays.
func (s *store) changes(client *dynamodb.Client) ([]migrations.Migration, error) {
	revision, err := s.revision()
	if err != nil {
		return nil, err
	}
	return []migrations.Migration{
		{
			ID: "1_pending_index", Name: "index of pending orders", Idempotent: true,
			Up: s.ensure(client, 1), Down: keepIndex,
		},
		{
			ID: "2_customer_index", Name: "index of customers' orders", Idempotent: true,
			Up: s.ensure(client, 2), Down: keepIndex,
		},
		{
			ID: "3_orders_by_customer", Name: "put all orders into the index", Idempotent: true,
			Up: s.fillOrders((*store).addCustomerKeys), Down: s.fillOrders((*store).dropCustomerKeys),
		},
		{
			ID: "catalogue", Name: "what rows the table has", Revision: revision, Idempotent: true, Repeatable: true,
			Up: s.writeCatalogue,
		},
	}, nil
}

// provision makes a table that migrations can be recorded in: it has its keys,
// and they add the rest.
func (s *store) provision(ctx context.Context, client *dynamodb.Client) error {
	t, err := s.withIndexes(client, 0)
	if err != nil {
		return err
	}
	return t.Ensure(ctx)
}

// withIndexes is the table as it was when it had only the first n indexes.
func (s *store) withIndexes(client *dynamodb.Client, n int) (*table.Table, error) {
	schema := s.table.Schema()
	schema.Indexes = schema.Indexes[:n]
	return table.Open(client, schema)
}

// ensure changes the schema: it adds what is missing, up to the n-th index.
func (s *store) ensure(client *dynamodb.Client, n int) func(context.Context, *migrations.Run) error {
	return func(ctx context.Context, _ *migrations.Run) error {
		t, err := s.withIndexes(client, n)
		if err != nil {
			return err
		}
		return t.Ensure(ctx)
	}
}

// keepIndex takes nothing back. The program before this change works with the
// index as well, and nothing that is in it gets lost.
func keepIndex(context.Context, *migrations.Run) error { return nil }

// fillOrders changes all orders of all batches.
func (s *store) fillOrders(change func(*store, table.Item, Order) error) func(context.Context, *migrations.Run) error {
	return func(ctx context.Context, run *migrations.Run) error {
		_, err := run.Backfill(ctx, migrations.Backfill{
			Name: "orders", PageSize: rowsPerCheckpoint,
			// A Filter would read as much, and leave the progress without a measure:
			// DynamoDB's estimate counts all rows.
			Transform: func(_ context.Context, item table.Item) (table.Item, error) {
				if !s.orders.Owns(item) {
					return nil, nil
				}
				o, err := s.orders.Decode(item)
				if err == nil {
					err = change(s, item, o)
				}
				return item, err
			},
		})
		return err
	}
}

// addCustomerKeys puts an order into the index, as every write of an order by
// this version of the program does.
func (s *store) addCustomerKeys(item table.Item, o Order) error {
	pk, err := s.customerOrdersPK.Format(o.Batch, o.Customer)
	if err != nil {
		return err
	}
	sk, err := s.customerOrdersSK.Format(o.Placed, o.Order)
	if err != nil {
		return err
	}
	item[customerIndex+"pk"] = &types.AttributeValueMemberS{Value: pk}
	item[customerIndex+"sk"] = &types.AttributeValueMemberS{Value: sk}
	return nil
}

func (s *store) dropCustomerKeys(item table.Item, _ Order) error {
	delete(item, customerIndex+"pk")
	delete(item, customerIndex+"sk")
	return nil
}

// withMigrator provisions the table and lends out what brings it up to date.
// Its lock has the usual lease: the short one of orders is for watching.
func (s *store) withMigrator(ctx context.Context, client *dynamodb.Client, owner string, use func(*migrations.Migrator) error, opts ...migrations.Option) (err error) {
	if err := reach(ctx, s.table); err != nil {
		return err
	}
	if err := s.provision(ctx, client); err != nil {
		return err
	}
	locks, err := lock.New(s.table, lock.Config{Owner: owner})
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, locks.Close(closing))
	}()
	list, err := s.changes(client)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	m, err := migrations.New(s.table, locks, list, opts...)
	if err != nil {
		return err
	}
	return use(m)
}
