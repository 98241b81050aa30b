package lock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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
}

// The README shows a part of this example.
func Example_readme() {
	ctx := context.Background()
	client := tabletest.NewEngine().Client() // or dynamodb.NewFromConfig(cfg)
	account := Account{Tenant: "acme", ID: "42", Balance: 100}
	fill(ctx, client, account)

	// Your table, with its own names.
	tbl, err := table.Open(client, table.Schema{Name: "app", Keys: keys.Scheme{PK: "PartitionKey", SK: "SortKey"}})
	check(err)
	accounts, err := entity.Define(tbl, entity.Spec[Account]{Type: "Account", PK: "TENANT#{tenant}", SK: "ACCOUNT#{id}"})
	check(err)
	locks, err := lock.New(tbl, lock.Config{})
	check(err)
	defer locks.Close(ctx)

	// The row of the lock is beside the row of the account.
	err = locks.Do(ctx, lock.Beside(accounts.Key(account)), func(ctx context.Context, lease *lock.Lease) error {
		// … work that takes long, and must not be done twice …
		return lease.Commit(ctx, accounts.UpdateOp(account, entity.Add("balance", -30)))
	})
	if errors.Is(err, lock.ErrLost) {
		fmt.Println("the lock was lost: read again before you repeat the work")
	}

	account, err = accounts.Get(ctx, account, entity.Consistent())
	fmt.Println(account.Balance, err)
	// Output:
	// 70 <nil>
}

// fill is the program that made the table and its rows.
func fill(ctx context.Context, client *dynamodb.Client, account Account) {
	tbl, err := table.Open(client, table.Schema{Name: "app", Keys: keys.Scheme{PK: "PartitionKey", SK: "SortKey"}})
	check(err)
	check(tbl.Ensure(ctx))
	accounts, err := entity.Define(tbl, entity.Spec[Account]{Type: "Account", PK: "TENANT#{tenant}", SK: "ACCOUNT#{id}"})
	check(err)
	_, err = accounts.Create(ctx, account)
	check(err)
}
