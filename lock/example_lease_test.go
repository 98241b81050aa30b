package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Acquire waits until the lock is free, but no longer than its context allows. The error then tells who holds the lock.
func ExampleClient_Acquire() {
	ctx := context.Background()
	tbl := openTable(ctx)
	first, err := lock.New(tbl, lock.Config{Owner: "first"})
	check(err)
	defer func() { check(first.Close(ctx)) }()
	second, err := lock.New(tbl, lock.Config{Owner: "second"})
	check(err)
	defer func() { check(second.Close(ctx)) }()

	lease, err := first.Acquire(ctx, lock.Name("nightly-report"))
	check(err)
	time.AfterFunc(50*time.Millisecond, func() { check(lease.Release(ctx)) })

	patient, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	next, err := second.Acquire(patient, lock.Name("nightly-report"))
	var held *lock.HeldError
	if errors.As(err, &held) {
		fmt.Println("still held by", held.Owner)
		return
	}
	check(err)
	fmt.Println("acquired by", next.Owner())
	fmt.Println("a greater fence:", next.Fence() > lease.Fence())
	check(next.Release(ctx))
	// Output:
	// acquired by second
	// a greater fence: true
}

// A write that comes too late is refused. Here an operator takes the lock away while its holder works.
func ExampleLease_Write() {
	type Order struct {
		ID     string `dynamo:"id"`
		Status string `dynamo:"status"`
	}
	ctx := context.Background()
	tbl := openTable(ctx)
	orders, err := entity.Define(tbl, entity.Spec[Order]{Type: "Order", PK: "ORDER#{id}", SK: "ORDER"})
	check(err)
	locks, err := lock.New(tbl, lock.Config{})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	order, err := orders.Create(ctx, Order{ID: "42", Status: "open"})
	check(err)

	lease, err := locks.Acquire(ctx, lock.Beside(orders.Key(order)))
	check(err)
	fmt.Println(lease.Write(ctx, orders.UpdateOp(order, entity.Set("status", "packed"))))

	check(locks.ForceRelease(ctx, lease.Target(), lease.Ticket()))
	err = lease.Write(ctx, orders.UpdateOp(order, entity.Set("status", "sent")))
	fmt.Println("lost:", errors.Is(err, lock.ErrLost))
	order, err = orders.Get(ctx, order, entity.Consistent())
	fmt.Println(order.Status, err)
	// Output:
	// <nil>
	// lost: true
	// packed <nil>
}

// The last write under a lock releases it, in the same transaction: one request for both.
func ExampleLease_Commit() {
	ctx := context.Background()
	tbl := openTable(ctx)
	locks, err := lock.New(tbl, lock.Config{})
	check(err)
	defer func() { check(locks.Close(ctx)) }()

	lease, err := locks.Acquire(ctx, lock.Name("invoices"))
	check(err)
	defer func() { check(lease.Release(ctx)) }() // for all other ways out: after Commit it does nothing
	invoice := tbl.KeyItem(keys.NewKey("INVOICE#2026-11", "INVOICE"))
	fmt.Println(lease.Commit(ctx, table.Put(invoice)))
	record, err := locks.Inspect(ctx, lock.Name("invoices"))
	fmt.Println("held:", record.Held(), err)
	// Output:
	// <nil>
	// held: false <nil>
}

// A long job under a lease of a fixed length, which nothing renews in the background. (A lease without Fixed needs no Renew.)
func ExampleLease_Renew() {
	ctx := context.Background()
	locks, err := lock.New(openTable(ctx), lock.Config{})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	lease, err := locks.Acquire(ctx, lock.Name("import"), lock.Fixed(time.Minute))
	check(err)
	for _, file := range []string{"a.csv", "b.csv"} {
		check(lease.Renew(ctx)) // a minute for each file
		fmt.Println(file, "with time left:", lease.Remaining() > 50*time.Second)
	}
	check(lease.Release(ctx))
	fmt.Println(errors.Is(lease.Renew(ctx), lock.ErrReleased))
	// Output:
	// a.csv with time left: true
	// b.csv with time left: true
	// true
}

// An order, its lines and its lock are in one item collection: one query reads them all.
func ExampleClient_Records() {
	type Order struct {
		ID     string `dynamo:"id"`
		Status string `dynamo:"status"`
	}
	type Line struct {
		Order string `dynamo:"-"`
		No    int    `dynamo:"-"`
		SKU   string `dynamo:"sku"`
	}
	ctx := context.Background()
	tbl := openTable(ctx)
	orders, err := entity.Define(tbl, entity.Spec[Order]{Type: "Order", PK: "ORDER#{id}", SK: "ORDER"})
	check(err)
	lines, err := entity.Define(tbl, entity.Spec[Line]{Type: "Line", PK: "ORDER#{order}", SK: "LINE#{no:uint4}"})
	check(err)
	locks, err := lock.New(tbl, lock.Config{Owner: "packer-1"})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	order := Order{ID: "42", Status: "open"}
	check(tbl.Write(ctx, orders.CreateOp(order), lines.CreateOp(Line{"42", 1, "chair"}), lines.CreateOp(Line{"42", 2, "table"})))
	_, err = locks.Acquire(ctx, lock.Beside(orders.Key(order)))
	check(err)

	var order42 []Order
	var itsLines []Line
	var itsLock []lock.Record
	check(entity.Collect(ctx, tbl, orders.Key(order).PK,
		entity.Into(orders, &order42), entity.Into(lines, &itsLines), entity.Into(locks.Records(), &itsLock)))
	fmt.Println(order42[0].Status, itsLines[0].SKU, itsLines[1].SKU, "held by", itsLock[0].Holder().Owner)
	// Output: open chair table held by packer-1
}

// A lock that nobody has acquired before is not created, for example by a name with a typing error.
func ExampleExisting() {
	ctx := context.Background()
	locks, err := lock.New(openTable(ctx), lock.Config{})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	_, err = locks.TryAcquire(ctx, lock.Name("nihgtly-report"), lock.Existing())
	fmt.Println(errors.Is(err, table.ErrNotFound))
	// Output: true
}
