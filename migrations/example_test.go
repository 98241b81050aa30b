package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// openTable is an application's table, on an engine inside this process, with two orders.
func openTable(ctx context.Context) (*table.Table, *lock.Client) {
	tbl, err := table.Open(tabletest.NewEngine().Client(), table.Schema{Name: "app"})
	check(err)
	check(tbl.Ensure(ctx))
	for _, id := range []string{"1", "2"} {
		check(tbl.Write(ctx, table.Update(keys.NewKey("ORDER#"+id, "ORDER"), table.Attr("cents").Set(250))))
	}
	locks, err := lock.New(tbl, lock.Config{})
	check(err)
	return tbl, locks
}

func Example() {
	ctx := context.Background()
	tbl, locks := openTable(ctx)
	defer func() { check(locks.Close(ctx)) }()

	m, err := migrations.New(tbl, locks, []migrations.Migration{
		{ID: "1_counter", Name: "count orders", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
			// Applied together with the record: once, whatever happens.
			return run.Atomic(ctx, table.Update(keys.NewKey("STATS", "ORDERS"), table.Attr("count").Add(2)))
		}},
		{ID: "2_currency", Name: "prices have a currency", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
			p, err := run.Backfill(ctx, migrations.Backfill{
				Name:   "orders",
				Filter: table.And(table.Attr("cents").Exists(), table.Attr("currency").NotExists()),
				Transform: func(_ context.Context, item table.Item) (table.Item, error) {
					var err error
					item["currency"], err = table.Encode("EUR")
					return item, err
				},
			})
			fmt.Println("changed:", p.Changed)
			return err
		}},
	}, migrations.WithLogger(discard))
	check(err)

	plan, err := m.Plan(ctx)
	check(err)
	for _, action := range plan {
		fmt.Println(action.Text)
	}
	report, err := m.Up(ctx)
	check(err)
	fmt.Println("done:", len(report.Done))
	report, err = m.Up(ctx) // as every instance does when it starts
	check(err)
	fmt.Println("done:", len(report.Done))
	// Output:
	// run 1_counter count orders
	// run 2_currency prices have a currency
	// changed: 2
	// done: 2
	// done: 0
}

func ExampleMigrator_Repair() {
	ctx := context.Background()
	tbl, locks := openTable(ctx)
	defer func() { check(locks.Close(ctx)) }()

	broken := true
	m, err := migrations.New(tbl, locks, []migrations.Migration{{ID: "1_mail", Up: func(ctx context.Context, run *migrations.Run) error {
		if err := run.AtomicStep(ctx, "orders", table.Delete(keys.NewKey("ORDER#1", "ORDER"))); err != nil {
			return err
		}
		if broken {
			return errors.New("the mail server is down")
		}
		return nil
	}}}, migrations.WithLogger(discard))
	check(err)

	_, err = m.Up(ctx)
	fmt.Println(err)
	_, err = m.Up(ctx)
	fmt.Println(err)
	broken = false
	_, err = m.Repair(ctx, func(fix migrations.Fix) bool {
		fmt.Println(fix.Text)
		return fix.Kind == migrations.Retry
	})
	check(err)
	report, err := m.Up(ctx)
	check(err)
	fmt.Println(report.Done[0].State, "in attempt", report.Done[0].Attempts)
	// Output:
	// migrations: up: 1_mail: the mail server is down (0 before it done)
	// migrations: up: a migration was not finished: 1_mail failed: Repair decides
	// let Up run 1_mail again, without the steps that are done: it has failed: the mail server is down (attempt 1), and is not marked idempotent
	// applied in attempt 2
}

func ExampleMigrator_DryRun() {
	ctx := context.Background()
	tbl, locks := openTable(ctx)
	defer func() { check(locks.Close(ctx)) }()
	m, err := migrations.New(tbl, locks, nil)
	check(err)
	preview, err := m.DryRun(ctx, migrations.Backfill{
		Filter: table.Attr("cents").Exists(),
		Transform: func(_ context.Context, item table.Item) (table.Item, error) {
			delete(item, "cents")
			return item, nil
		},
	}, 1)
	check(err)
	fmt.Println(preview)
	fmt.Println(len(preview.Samples[0].Before), len(preview.Samples[0].After))
	// Output:
	// 2 items read, 2 would be written, 0 would fail
	// 3 2
}

func ExampleProgress_String() {
	fmt.Println(migrations.Progress{
		Migration: "2_currency", Step: "orders", Seen: 5000, Changed: 4800, Total: 20_000, Rate: 1000, Left: 15 * time.Second,
	})
	// Output: 2_currency orders: 5000 items of about 20000 (25 %), 4800 changed, 1000/s, about 15s left
}

// noop stands for a migration of the application.
func noop(context.Context, *migrations.Run) error { return nil }

// The table was changed by hand before the program had migrations: the first one is recorded, and not run.
func ExampleMigrator_Baseline() {
	ctx := context.Background()
	tbl, locks := openTable(ctx)
	defer func() { check(locks.Close(ctx)) }()
	m, err := migrations.New(tbl, locks, []migrations.Migration{
		{ID: "1_index", Up: noop}, {ID: "2_currency", Up: noop},
	}, migrations.WithLogger(discard))
	check(err)
	_, err = m.Baseline(ctx, "1_index")
	check(err)
	report, err := m.Up(ctx)
	check(err)
	fmt.Println("run:", report.Done[0].ID)
	list, err := m.Status(ctx)
	check(err)
	for _, s := range list {
		fmt.Println(s.ID, s.State, "without having run:", s.Record.Baseline)
	}
	fmt.Println(m.Validate(ctx))
	// Output:
	// run: 2_currency
	// 1_index applied without having run: true
	// 2_currency applied without having run: false
	// <nil>
}

// A migration can be taken back if it has a Down.
func ExampleMigrator_Down() {
	ctx := context.Background()
	tbl, locks := openTable(ctx)
	defer func() { check(locks.Close(ctx)) }()
	counter := keys.NewKey("STATS", "ORDERS")
	m, err := migrations.New(tbl, locks, []migrations.Migration{
		{ID: "1_index", Up: noop},
		{
			ID: "2_counter", Idempotent: true,
			Up: func(ctx context.Context, run *migrations.Run) error {
				return run.Atomic(ctx, table.Update(counter, table.Attr("count").Set(2)))
			},
			Down: func(ctx context.Context, run *migrations.Run) error {
				return run.Atomic(ctx, table.Delete(counter))
			},
		},
	}, migrations.WithLogger(discard))
	check(err)
	_, err = m.Up(ctx)
	check(err)
	report, err := m.Down(ctx) // the last one
	check(err)
	fmt.Println(report.Done[0].ID, report.Done[0].State)
	_, err = m.Down(ctx)
	fmt.Println(errors.Is(err, migrations.ErrIrreversible))
	// Output:
	// 2_counter pending
	// true
}

// A deployment still has instances of the version before, which do not know the newest migration.
func ExampleOnUnknown() {
	ctx := context.Background()
	tbl, locks := openTable(ctx)
	defer func() { check(locks.Close(ctx)) }()
	newer, err := migrations.New(tbl, locks, []migrations.Migration{{ID: "1_index", Up: noop}, {ID: "2_currency", Up: noop}}, migrations.WithLogger(discard))
	check(err)
	_, err = newer.Up(ctx)
	check(err)

	older, err := migrations.New(tbl, locks, []migrations.Migration{{ID: "1_index", Up: noop}}, migrations.WithLogger(discard))
	check(err)
	_, err = older.Up(ctx)
	var unknown *migrations.UnknownError
	fmt.Println(errors.As(err, &unknown), unknown.IDs)
	older, err = older.With(migrations.OnUnknown(migrations.Warn))
	check(err)
	_, err = older.Up(ctx)
	fmt.Println(err)
	// Output:
	// true [2_currency]
	// <nil>
}
