package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

type change = func(context.Context, *migrations.Run) error

// changes lists all migrations, in their order. Each is written once and stays.
func (s *store) changes() []migrations.Migration {
	revision := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, s.contents)))[:16]
	// The program of before works with an index that it does not know.
	keep := func(context.Context, *migrations.Run) error { return nil }
	return []migrations.Migration{
		{ID: "1_pending_index", Name: "index of pending orders", Idempotent: true, Up: s.ensure(1), Down: keep},
		{ID: "2_customer_index", Name: "index of customers' orders", Idempotent: true, Up: s.ensure(2), Down: keep},
		{
			ID: "3_orders_by_customer", Name: "put all orders into the index", Idempotent: true,
			Up: s.indexOrders(true), Down: s.indexOrders(false),
		},
		{
			ID: "catalogue", Name: "what rows the table has", Idempotent: true,
			Repeatable: true, Revision: revision, Up: s.writeCatalogue, // whenever the entities have changed
		},
	}
}

// ensure is a change of the schema: it adds what is missing, up to the n-th index.
func (s *store) ensure(n int) change {
	return func(ctx context.Context, _ *migrations.Run) error {
		schema := s.table.Schema()
		schema.Indexes = schema.Indexes[:n]
		t, err := table.Open(s.client, schema)
		if err != nil {
			return err
		}
		return t.Ensure(ctx)
	}
}

// indexOrders is a change of the data: it puts all orders of all batches into customerIndex, or takes them out again.
func (s *store) indexOrders(in bool) change {
	transform := func(_ context.Context, item table.Item) (table.Item, error) {
		if !s.orders.Owns(item) {
			return nil, nil
		}
		o, err := s.orders.Decode(item)
		written := s.orders.PutOp(o).Item() // as this version of the program writes it
		for _, name := range []string{customerIndex + "pk", customerIndex + "sk"} {
			if delete(item, name); in {
				item[name] = written[name]
			}
		}
		return item, err
	}
	return func(ctx context.Context, run *migrations.Run) error {
		// The page is small, so that there is progress to see.
		_, err := run.Backfill(ctx, migrations.Backfill{Name: "orders", PageSize: 100, Transform: transform})
		return err
	}
}

// writeCatalogue writes all entries and deletes those of rows that there are no more, in one transaction.
func (s *store) writeCatalogue(ctx context.Context, run *migrations.Run) error {
	old, err := all(s.catalogue.Query(ctx, keys.Values{}, entity.Consistent()))
	if err != nil {
		return err
	}
	var ops []table.Op
	current := map[string]bool{}
	for _, entry := range s.contents {
		current[entry.Row] = true
		ops = append(ops, s.catalogue.PutOp(entry))
	}
	for _, entry := range old {
		if !current[entry.Row] {
			ops = append(ops, s.catalogue.DeleteOp(entry))
		}
	}
	return run.Atomic(ctx, ops...)
}

// withMigrator makes the table with its keys and nothing else, so that migrations can be recorded, and calls use with what brings
// it up to date. Their lock has a longer lease than those of orders.
func (s *store) withMigrator(ctx context.Context, use func(*migrations.Migrator) error, opts ...migrations.Option) (err error) {
	// A mistyped endpoint is reported sooner than by the table's patient retry policy.
	if _, err := s.table.Plan(table.WithoutRetry(ctx)); errors.Is(err, table.ErrUnreachable) {
		return err
	}
	if err := s.ensure(0)(ctx, nil); err != nil {
		return err
	}
	locks, err := newLocks(s, "app", 10*leaseTime)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLocks(ctx, locks)) }()
	m, err := migrations.New(s.table, locks, s.changes(), opts...)
	if err != nil {
		return err
	}
	return use(m)
}

// migrate brings the table up to date before it is used. Where there is nothing to do this is a few reads and no lock.
func (a *app) migrate(ctx context.Context) error {
	up := func(m *migrations.Migrator) error {
		report, err := m.Up(ctx)
		for _, r := range report.Done {
			a.note("migrated: %s, %s", r.ID, r.Name)
		}
		return err
	}
	progress := migrations.WithProgress(func(p migrations.Progress) { a.note("%s", p) })
	if err := a.withMigrator(ctx, up, progress, migrations.WithLogger(slog.New(slog.DiscardHandler))); err != nil {
		return err
	}
	return a.table.Verify(ctx) // an index may have been dropped by hand
}
