// Command quickstart goes from nothing to the first guarded write: a table, an entity, a lock, and a write that commits only
// while the lock is held. It runs on a DynamoDB in this process and needs no AWS.
package main

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

// Account is a row. Its key is made of its fields.
type Account struct {
	ID      string `dynamo:"id"`
	Balance int64  `dynamo:"balance"` // cents
	Version int64  `dynamo:"version"`
}

func main() {
	ctx := context.Background()
	client := tabletest.NewEngine().Client() // dynamodb.NewFromConfig(cfg) for the service

	// A table: Ensure creates it, or completes what is there. It destroys nothing.
	tbl, err := table.Open(client, table.Schema{Name: "app", Keys: keys.Scheme{PK: "pk", SK: "sk"}})
	check(err)
	check(tbl.Ensure(ctx))

	// An entity: how a type's keys are made.
	accounts, err := entity.Define(tbl, entity.Spec[Account]{Type: "Account", PK: "ACCOUNT#{id}", SK: "ACCOUNT", Version: "version"})
	check(err)
	account, err := accounts.Create(ctx, Account{ID: "42", Balance: 10000})
	check(err)
	fmt.Println("created:", account.Balance, "at", accounts.Key(account).PK)

	// A lock: its row is beside the account's. Commit writes and releases, in one transaction.
	locks, err := lock.New(tbl, lock.Config{})
	check(err)
	beside := lock.Beside(accounts.Key(account))
	check(locks.Do(ctx, beside, func(ctx context.Context, lease *lock.Lease) error {
		return lease.Commit(ctx, accounts.UpdateOp(account, entity.Add("balance", -3000)))
	}))
	account, err = accounts.Get(ctx, account, entity.Consistent())
	check(err)
	fmt.Println("after the guarded write:", account.Balance)

	// What a lock is for: this holder sleeps past its lease, and another one takes over and writes.
	slow, err := locks.Acquire(ctx, beside, lock.Fixed(time.Second))
	check(err)
	check(locks.Do(ctx, beside, func(ctx context.Context, lease *lock.Lease) error { // waits until the lease has ended
		return lease.Commit(ctx, accounts.UpdateOp(account, entity.Add("balance", -500)))
	}))
	// AnyVersion compares no version, so that only the lock can refuse this write.
	err = slow.Commit(ctx, accounts.AnyVersion().UpdateOp(account, entity.Set("balance", 0)))
	fmt.Println("the late write was refused:", errors.Is(err, lock.ErrLost))
	account, err = accounts.Get(ctx, account, entity.Consistent())
	check(err)
	fmt.Println("nothing was overwritten:", account.Balance)
	check(locks.Close(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
