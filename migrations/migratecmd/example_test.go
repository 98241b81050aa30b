package migratecmd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/migrations/migratecmd"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// An application's main hands over what follows its own subcommand.
func Example() {
	ctx := context.Background()
	engine := tabletest.NewEngine() // or dynamodb.NewFromConfig(cfg)
	tbl, err := table.Open(engine.Client(), table.Schema{Name: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	if err := tbl.Ensure(ctx); err != nil {
		log.Fatal(err)
	}
	locks, err := lock.New(tbl, lock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	migrator, err := migrations.New(tbl, locks, []migrations.Migration{{
		ID: "1_counter", Name: "a counter of orders", Idempotent: true,
		Up: func(ctx context.Context, run *migrations.Run) error {
			return run.Atomic(ctx, table.Update(keys.NewKey("COUNTER", "orders"), table.Attr("n").Set(0)))
		},
	}})
	if err != nil {
		log.Fatal(err)
	}

	command := migratecmd.Command{Name: "shop migrate", Stderr: io.Discard}
	for _, args := range []string{"plan", "up", "validate", "sideways"} {
		err := command.Run(ctx, migrator, strings.Fields(args)) // os.Args[2:]
		fmt.Println("exit", migratecmd.ExitCode(err))
	}
	if err := errors.Join(locks.Close(ctx), engine.Close()); err != nil {
		log.Fatal(err)
	}

	// Output:
	// ID         STATE    UP WOULD
	// 1_counter  pending  run 1_counter a counter of orders
	// exit 0
	// applied: 1_counter
	// exit 0
	// the table's records and this program agree
	// exit 0
	// exit 2
}
