package lock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func ExampleWithData() {
	ctx := context.Background()
	locks, err := lock.New(openTable(ctx), lock.Config{})
	check(err)
	defer func() { check(locks.Close(ctx)) }()

	type Progress struct {
		Worker string `dynamo:"worker"`
		Done   int    `dynamo:"done"`
	}
	lease, err := locks.Acquire(ctx, lock.Name("import"), lock.WithData(Progress{Worker: "a"}))
	check(err)
	_, err = locks.TryAcquire(ctx, lock.Name("import"))
	var held *lock.HeldError
	if errors.As(err, &held) {
		var p Progress
		check(held.Data.Decode(&p))
		fmt.Println("held by worker", p.Worker)
	}
	check(lease.SetData(ctx, Progress{Worker: "a", Done: 120}))
	check(lease.Release(ctx))

	// The next holder goes on where this one has stopped.
	lease, err = locks.Acquire(ctx, lock.Name("import"))
	check(err)
	var p Progress
	check(lease.Data().Decode(&p))
	fmt.Println("done so far:", p.Done)
	fmt.Println("logs show:", lease.Data())
	// Output:
	// held by worker a
	// done so far: 120
	// logs show: data
}

func ExampleClient_List() {
	ctx := context.Background()
	tbl, err := table.Open(tabletest.NewEngine().Client(), table.Schema{
		Name:    "app",
		Indexes: []table.Index{{Name: "gsi1", PK: "gsi1pk", SK: "gsi1sk"}},
	})
	check(err)
	check(tbl.Ensure(ctx))
	locks, err := lock.New(tbl, lock.Config{Owner: "settler-1", Index: "gsi1"})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	_, err = locks.Acquire(ctx, lock.Beside(keys.NewKey("TENANT#acme", "ORDER#42")))
	check(err)
	free, err := locks.Acquire(ctx, lock.Beside(keys.NewKey("TENANT#acme", "ORDER#43")))
	check(err)
	check(free.Release(ctx))

	for _, from := range []lock.Source{lock.In("TENANT#acme"), lock.Index()} {
		for r, err := range locks.List(ctx, from) {
			check(err)
			fmt.Printf("%s %s held: %t by %q\n", r.Partition, r.Of, r.Held(), r.Holder().Owner)
		}
	}
	// Output:
	// TENANT#acme ORDER#42 held: true by "settler-1"
	// TENANT#acme ORDER#43 held: false by ""
	// TENANT#acme ORDER#42 held: true by "settler-1"
}

func ExampleClient_ForceRelease() {
	ctx := context.Background()
	locks, err := lock.New(openTable(ctx), lock.Config{})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	lease, err := locks.Acquire(ctx, lock.Name("import"))
	check(err)

	seen, err := locks.Inspect(ctx, lock.Name("import"))
	check(err)
	check(locks.ForceRelease(ctx, lock.Name("import"), seen.Holder().Ticket, "its host is on fire"))
	fmt.Println(context.Cause(lease.Context()))
	now, err := locks.Inspect(ctx, lock.Name("import"))
	check(err)
	fmt.Println(now.Held(), now.Fence-seen.Fence, now.Forced)
	fmt.Println(errors.Is(locks.ForceRelease(ctx, lock.Name("import"), seen.Holder().Ticket), lock.ErrNotHeld))
	// Output:
	// lock lost: the row does not name this holder any more
	// false 1 its host is on fire
	// true
}

func ExampleClient_Revoke() {
	ctx := context.Background()
	tbl := openTable(ctx)
	locks, err := lock.New(tbl, lock.Config{})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	lease, err := locks.Acquire(ctx, lock.Name("import"))
	check(err)

	check(locks.Revoke(ctx, lock.Name("import")))
	<-lease.Context().Done()
	fmt.Println(errors.Is(context.Cause(lease.Context()), lock.ErrRevoked))
	// Still held: there is time to finish.
	fmt.Println(lease.Commit(ctx, table.Put(tbl.KeyItem(keys.NewKey("IMPORT", "checkpoint")))))
	fmt.Println(errors.Is(locks.Revoke(ctx, lock.Name("import")), lock.ErrNotHeld))
	// Output:
	// true
	// <nil>
	// true
}
