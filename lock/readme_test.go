package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Account is a row of the application.
type Account struct {
	Tenant  string `dynamo:"tenant"`
	ID      string `dynamo:"id"`
	Balance int64  `dynamo:"balance"`
	Version int64  `dynamo:"version"`
}

// The README shows parts of this example.
func Example_readme() {
	ctx := context.Background()
	engine := tabletest.NewEngine() // or dynamodb.NewFromConfig(cfg)
	defer engine.Close()
	client := engine.Client()

	// The table as it is: its attribute names, its delimiter, its prefix.
	tbl, err := table.Open(client, table.Schema{
		Name: "app",
		Keys: keys.Scheme{PK: "PartitionKey", SK: "SortKey", Type: "_t", TTL: "expiresAt", Prefix: "shop/"},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := tbl.Ensure(ctx); err != nil { // creates or completes, never destroys
		log.Fatal(err)
	}
	accounts, err := entity.Define(tbl, entity.Spec[Account]{
		Type: "Account", PK: "TENANT#{tenant}", SK: "ACCOUNT#{id}", Version: "version",
	})
	if err != nil {
		log.Fatal(err)
	}
	account, err := accounts.Create(ctx, Account{Tenant: "acme", ID: "42", Balance: 100})
	if err != nil {
		log.Fatal(err)
	}

	locks, err := lock.New(tbl, lock.Config{Lease: 20 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	// The lock row stands beside the account's row, in the same item collection.
	err = locks.Do(ctx, lock.Beside(accounts.Key(account)), func(ctx context.Context, lease *lock.Lease) error {
		// … whatever takes long and must not be done twice …

		// Commits only while the lock is still held, and releases it: one transaction.
		return lease.Commit(ctx, accounts.UpdateOp(account, entity.Add("balance", -30)))
	})
	if errors.Is(err, lock.ErrLost) {
		log.Fatal("somebody else holds the lock by now: nothing was written")
	}

	account, err = accounts.Get(ctx, account, entity.Consistent())
	fmt.Println(account.Balance, err)
	key := accounts.Key(account)
	fmt.Println(key.PK, key.SK)
	// Output:
	// 70 <nil>
	// shop/TENANT#acme ACCOUNT#42
}
