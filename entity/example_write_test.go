package entity_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/table"
)

// Account is what the examples of writing write.
type Account struct {
	ID    string   `dynamo:"id"`
	Cents int64    `dynamo:"cents"`
	Owner string   `dynamo:"owner,omitempty"`
	Cards []string `dynamo:"cards,set,omitempty"`
	Log   []string `dynamo:"log,omitempty"`
	Rev   int64    `dynamo:"rev"`
}

// newAccounts are some accounts, as they were created.
func newAccounts(ctx context.Context, list ...Account) (*entity.Entity[Account], []Account) {
	accounts, err := entity.Define(newTable(ctx), entity.Spec[Account]{Type: "Account", PK: "ACCOUNT#{id}", SK: "ACCOUNT", Version: "rev"})
	check(err)
	created := make([]Account, len(list))
	for i, a := range list {
		created[i], err = accounts.Create(ctx, a)
		check(err)
	}
	return accounts, created
}

func ExampleEntity_Create() {
	ctx := context.Background()
	accounts, _ := newAccounts(ctx)
	a, err := accounts.Create(ctx, Account{ID: "1", Cents: 500})
	fmt.Println(a.Cents, a.Rev, err)
	_, err = accounts.Create(ctx, Account{ID: "1"})
	fmt.Println(errors.Is(err, entity.ErrExists))
	// Output:
	// 500 1 <nil>
	// true
}

func ExampleEntity_Put() {
	ctx := context.Background()
	accounts, list := newAccounts(ctx, Account{ID: "1", Cents: 500, Owner: "ann"})
	first, second := list[0], list[0] // two programs have read the row

	first.Owner = "bob"
	first, err := accounts.Put(ctx, first)
	fmt.Println(first.Owner, first.Rev, err)

	second.Cents = 400
	_, err = accounts.Put(ctx, second) // would have made ann its owner again
	fmt.Println(errors.Is(err, entity.ErrStale))
	// Output:
	// bob 2 <nil>
	// true
}

func ExampleEntity_Update() {
	ctx := context.Background()
	accounts, list := newAccounts(ctx, Account{ID: "1", Cents: 500, Owner: "ann"})

	// The row as it was read: of any other version it is refused.
	a, err := accounts.Update(ctx, list[0], entity.Set("owner", "bob"))
	fmt.Println(a.Owner, a.Cents, a.Rev, err)
	_, err = accounts.Update(ctx, list[0], entity.Set("owner", "cyd"))
	fmt.Println(errors.Is(err, entity.ErrStale))

	_, err = accounts.Update(ctx, Account{ID: "1"}, entity.Set("owner", "cyd")) // a value that was not read
	fmt.Println(errors.Is(err, entity.ErrStale))

	_, err = accounts.Update(ctx, Account{ID: "2"}, entity.Add("cents", 1))
	fmt.Println(errors.Is(err, entity.ErrNotFound))
	// Output:
	// bob 500 2 <nil>
	// true
	// true
	// true
}

// What is added does not depend on what was there, so the row need not be read.
func ExampleEntity_AnyVersion() {
	ctx := context.Background()
	accounts, list := newAccounts(ctx, Account{ID: "1", Cents: 500, Owner: "ann"})
	blind := accounts.AnyVersion()

	a, err := blind.Update(ctx, Account{ID: "1"}, entity.Add("cents", -100), entity.Append("log", []string{"paid"}))
	fmt.Println(a.Owner, a.Cents, a.Rev, a.Log, err)

	// The version is counted, so who has read the row before notices.
	_, err = accounts.Update(ctx, list[0], entity.Set("owner", "bob"))
	fmt.Println(errors.Is(err, entity.ErrStale))

	a, err = blind.Put(ctx, Account{ID: "1", Owner: "cyd"}) // whatever was there
	fmt.Println(a.Owner, a.Cents, a.Rev, err)
	fmt.Println(blind.Delete(ctx, Account{ID: "1"}), blind.Delete(ctx, Account{ID: "1"}))
	// Output:
	// ann 400 2 [paid] <nil>
	// true
	// cyd 0 3 <nil>
	// <nil> <nil>
}

func ExampleSet() {
	ctx := context.Background()
	accounts, list := newAccounts(ctx, Account{ID: "1", Owner: "ann"})
	changes := []entity.Change{entity.Set("owner", "bob"), entity.Set("Cents", int64(7))} // by attribute, or by Go name
	fmt.Println(accounts.Update(ctx, list[0], changes...))
	_, err := accounts.Update(ctx, list[0], entity.Set("cents", "7"))
	fmt.Println(errors.Is(err, entity.ErrInvalid))
	// Output:
	// {1 7 bob [] [] 2} <nil>
	// true
}

func ExampleAdd() {
	ctx := context.Background()
	accounts, list := newAccounts(ctx, Account{ID: "1", Cents: 500, Cards: []string{"blue"}})
	// A number grows, a set gets more elements.
	a, err := accounts.Update(ctx, list[0], entity.Add("cents", -20), entity.Add("cards", []string{"red", "blue"}))
	fmt.Println(a.Cents, a.Cards, err)
	// Output: 480 [blue red] <nil>
}

func ExampleAppend() {
	ctx := context.Background()
	accounts, list := newAccounts(ctx, Account{ID: "1", Log: []string{"opened"}})
	a, err := accounts.Update(ctx, list[0], entity.Append("log", []string{"paid", "closed"}))
	fmt.Println(a.Log, err)
	// Output: [opened paid closed] <nil>
}

func ExampleRemove() {
	ctx := context.Background()
	accounts, list := newAccounts(ctx, Account{ID: "1", Owner: "ann", Cents: 500})
	a, err := accounts.Update(ctx, list[0], entity.Remove("owner"))
	fmt.Printf("%q %d %v\n", a.Owner, a.Cents, err)
	// Output: "" 500 <nil>
}

func ExampleRemoveFrom() {
	ctx := context.Background()
	accounts, list := newAccounts(ctx, Account{ID: "1", Cards: []string{"blue", "red"}})
	a, err := accounts.Update(ctx, list[0], entity.RemoveFrom("cards", []string{"red", "green"}))
	fmt.Println(a.Cards, err)
	// Output: [blue] <nil>
}

func ExampleEntity_Upsert() {
	ctx := context.Background()
	accounts, _ := newAccounts(ctx)
	deposit := func(a *Account) error {
		a.Cents += 250
		return nil
	}
	for range 2 { // makes the row, then changes it
		a, err := accounts.Upsert(ctx, Account{ID: "1", Owner: "ann"}, deposit)
		fmt.Println(a.Owner, a.Cents, a.Rev, err)
	}
	// Output:
	// ann 250 1 <nil>
	// ann 500 2 <nil>
}

func ExampleEntity_Delete() {
	ctx := context.Background()
	accounts, list := newAccounts(ctx, Account{ID: "1"})
	_, err := accounts.Update(ctx, list[0], entity.Add("cents", 1)) // by somebody else
	check(err)
	fmt.Println(errors.Is(accounts.Delete(ctx, list[0]), entity.ErrStale)) // as it was read
	a, err := accounts.Get(ctx, Account{ID: "1"})
	check(err)
	fmt.Println(accounts.Delete(ctx, a))
	fmt.Println(errors.Is(accounts.Delete(ctx, a), entity.ErrNotFound)) // there is none
	// Output:
	// true
	// <nil>
	// true
}

func ExampleEntity_CreateOp() {
	ctx := context.Background()
	accounts, _ := newAccounts(ctx, Account{ID: "2"})
	err := accounts.Table().Write(ctx, accounts.CreateOp(Account{ID: "1"}), accounts.CreateOp(Account{ID: "2"}))
	fmt.Println(errors.Is(err, entity.ErrExists))
	_, err = accounts.Get(ctx, Account{ID: "1"}) // both or none
	fmt.Println(errors.Is(err, entity.ErrNotFound))
	// Output:
	// true
	// true
}

func ExampleEntity_PutOp() {
	ctx := context.Background()
	accounts, list := newAccounts(ctx, Account{ID: "1", Owner: "ann"})
	list[0].Owner = "bob"
	err := accounts.Table().Write(ctx, accounts.PutOp(list[0]), accounts.PutOp(Account{ID: "2", Owner: "ann"}))
	check(err)
	for _, id := range []string{"1", "2"} {
		a, err := accounts.Get(ctx, Account{ID: id})
		fmt.Println(a.ID, a.Owner, a.Rev, err)
	}
	// Output:
	// 1 bob 2 <nil>
	// 2 ann 1 <nil>
}

func ExampleEntity_UpdateOp() {
	ctx := context.Background()
	accounts, _ := newAccounts(ctx, Account{ID: "1", Cents: 500}, Account{ID: "2"})
	enough := accounts.Field("cents").AtLeast(400)
	blind := accounts.AnyVersion() // the condition is all that it takes
	for range 2 {
		err := accounts.Table().Write(ctx,
			blind.UpdateOp(Account{ID: "1"}, entity.Add("cents", -400)).If(enough),
			blind.UpdateOp(Account{ID: "2"}, entity.Add("cents", 400)))
		fmt.Println(err == nil, errors.Is(err, table.ErrCondition))
	}
	// Output:
	// true false
	// false true
}

func ExampleEntity_DeleteOp() {
	ctx := context.Background()
	accounts, list := newAccounts(ctx, Account{ID: "old", Cents: 500})
	moved := list[0]
	moved.ID, moved.Rev = "new", 0
	// A row gets another key: with the version that was read, nothing that came after is lost.
	fmt.Println(accounts.Table().Write(ctx, accounts.DeleteOp(list[0]), accounts.CreateOp(moved)))
	a, err := accounts.Get(ctx, moved)
	fmt.Println(a.Cents, err)
	// Output:
	// <nil>
	// 500 <nil>
}

func ExampleEntity_ModifyOp() {
	ctx := context.Background()
	accounts, list := newAccounts(ctx, Account{ID: "1", Cents: 300, Owner: "ann"}, Account{ID: "2", Cents: 200})
	from, to := list[0], list[1]
	to.Cents, to.Owner = to.Cents+from.Cents, from.Owner
	from.Cents, from.Owner = 0, ""
	// Both rows as they were read, or neither changes.
	fmt.Println(accounts.Table().Write(ctx, accounts.ModifyOp(list[0], from), accounts.ModifyOp(list[1], to)))
	fmt.Println(accounts.Get(ctx, Account{ID: "2"}))
	// Output:
	// <nil>
	// {2 500 ann [] [] 2} <nil>
}
