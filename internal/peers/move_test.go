package peers_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"cirello.io/dynamolock/v2"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// During the first deployment, an instance holds the lock of the old client around that of Mortise.
func Example_bothLocks() {
	ctx := context.Background()
	old, locks, tbl := clients(ctx)
	defer func() { check(errors.Join(locks.Close(ctx), old.CloseWithContext(ctx))) }()

	held, err := old.AcquireLockWithContext(ctx, "report")
	check(err)
	err = locks.Do(ctx, lock.Name("report"), func(ctx context.Context, lease *lock.Lease) error {
		row := tbl.KeyItem(keys.NewKey("REPORT#1", "REPORT#1"))
		return lease.Write(ctx, table.Put(row))
	})
	check(err)
	_, err = old.ReleaseLockWithContext(ctx, held)
	check(err)

	_, err = tbl.Get(ctx, keys.NewKey("REPORT#1", "REPORT#1"), true)
	check(err)
	fmt.Println("written under both locks")
	// Output: written under both locks
}

// clients returns a client of both kinds, each with its table on an in-process engine.
func clients(ctx context.Context) (*dynamolock.Client, *lock.Client, *table.Table) {
	client := tabletest.NewEngine().Client()
	old, err := dynamolock.New(client, "locks")
	check(err)
	_, err = old.CreateTableWithContext(ctx, "locks")
	check(err)
	tbl, err := table.Open(client, table.Schema{Name: "app"})
	check(err)
	check(tbl.Ensure(ctx))
	locks, err := lock.New(tbl, lock.Config{})
	check(err)
	return old, locks, tbl
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
