package migrations_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

type customer struct {
	ID      string `dynamo:"-"`
	Country string `dynamo:"country"`
	Version int64  `dynamo:"version"`
}

// addKeys gives the rows of an older schema the keys of all indexes. It can be repeated.
func addKeys(ctx context.Context, run *migrations.Run, customers *entity.Entity[customer]) error {
	return run.Step(ctx, "customers", func(ctx context.Context) error {
		for c, err := range customers.Scan(ctx, entity.Consistent()) {
			if err != nil {
				return err
			}
			_, err = customers.Update(ctx, c)
			// A row that another write has changed since has its keys by that.
			if err != nil && !errors.Is(err, entity.ErrStale) && !errors.Is(err, entity.ErrNotFound) {
				return err
			}
		}
		return nil
	})
}

func ExampleRun_Step() {
	ctx := context.Background()
	tbl, err := table.Open(tabletest.NewEngine().Client(), table.Schema{
		Name: "app", Indexes: []table.Index{{Name: "gsi1", PK: "gsi1pk", SK: "gsi1sk"}},
	})
	check(err)
	check(tbl.Ensure(ctx))
	// A row from the time before the index.
	check(tbl.Write(ctx, table.Update(keys.NewKey("CUSTOMER#1", "CUSTOMER"),
		table.Attr("type").Set("customer"), table.Attr("country").Set("PT"), table.Attr("version").Set(4))))
	customers, err := entity.Define(tbl, entity.Spec[customer]{
		Type: "customer", PK: "CUSTOMER#{id}", SK: "CUSTOMER", Version: "version",
		Indexes: []entity.Index[customer]{{Name: "gsi1", PK: "COUNTRY#{country}", SK: "CUSTOMER#{id}"}},
		// A new schema with rows as they are: the next write of a row makes all its index keys.
		Upgrades: []func(table.Item) (table.Item, error){func(row table.Item) (table.Item, error) { return row, nil }},
	})
	check(err)
	locks, err := lock.New(tbl, lock.Config{})
	check(err)
	defer func() { check(locks.Close(ctx)) }()

	m, err := migrations.New(tbl, locks, []migrations.Migration{
		{ID: "1_countries", Name: "customers by country", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
			return addKeys(ctx, run, customers)
		}},
	}, migrations.WithLogger(discard))
	check(err)
	_, err = m.Up(ctx)
	check(err)
	for c, err := range customers.Query(ctx, keys.Values{"country": "PT"}, entity.On("gsi1")) {
		check(err)
		fmt.Println(c.ID, "of version", c.Version)
	}
	// Output: 1 of version 5
}
