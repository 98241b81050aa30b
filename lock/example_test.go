package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// openTable is an application's table, on an engine inside this process.
func openTable(ctx context.Context) *table.Table {
	tbl, err := table.Open(tabletest.NewEngine().Client(), table.Schema{Name: "app"})
	check(err)
	check(tbl.Ensure(ctx))
	return tbl
}

func Example() {
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

	o, err := orders.Create(ctx, Order{ID: "42", Status: "open"})
	check(err)
	lease, err := locks.Acquire(ctx, lock.Beside(orders.Key(o)))
	check(err)
	fmt.Println("lock row:", lease.Key().PK, lease.Key().SK)

	// Commits only while the lock is held, and releases it.
	check(lease.Commit(ctx, orders.UpdateOp(o, entity.Set("status", "settled"))))
	err = lease.Write(ctx, orders.UpdateOp(o, entity.Set("status", "again")))
	fmt.Println(errors.Is(err, lock.ErrReleased))
	o, err = orders.Get(ctx, o)
	fmt.Println(o.Status, err)
	// Output:
	// lock row: ORDER#42 LOCK#ORDER
	// true
	// settled <nil>
}

func ExampleNew() {
	ctx := context.Background()
	locks, err := lock.New(openTable(ctx), lock.Config{
		Lease: 10 * time.Second,
		Owner: "settler-1",
		OnLost: func(_ *lock.Lease, cause error) {
			log.Fatal(cause) // where going on would do harm
		},
	})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	lease, err := locks.Acquire(ctx, lock.Name("nightly-report"))
	check(err)
	fmt.Println("held:", lease.Context().Err() == nil)
	fmt.Println("released:", lease.Release(ctx))
	fmt.Println("why the context ended:", context.Cause(lease.Context()))
	// Output:
	// held: true
	// released: <nil>
	// why the context ended: lock released
}

// TryAcquire does not wait. The error tells who holds the lock.
func ExampleClient_TryAcquire() {
	ctx := context.Background()
	tbl := openTable(ctx)
	first, err := lock.New(tbl, lock.Config{Owner: "first"})
	check(err)
	defer func() { check(first.Close(ctx)) }()
	second, err := lock.New(tbl, lock.Config{Owner: "second"})
	check(err)
	defer func() { check(second.Close(ctx)) }()

	_, err = first.TryAcquire(ctx, lock.Name("nightly-report"))
	check(err)
	_, err = second.TryAcquire(ctx, lock.Name("nightly-report"))
	var held *lock.HeldError
	if errors.As(err, &held) {
		fmt.Println("held by", held.Owner)
	}
	// Output: held by first
}

// Do acquires, runs a function and releases, also after an error or a panic.
func ExampleClient_Do() {
	ctx := context.Background()
	locks, err := lock.New(openTable(ctx), lock.Config{})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	err = locks.Do(ctx, lock.Name("nightly-report"), report)
	fmt.Println(err)
	// Output:
	// working under a lock with a name
	// <nil>
}

// A job that every instance starts: one runs it, the others skip it.
func ExampleClient_TryDo() {
	ctx := context.Background()
	locks, err := lock.New(openTable(ctx), lock.Config{Owner: "instance-1"})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	job := func() {
		held, err := locks.TryDo(ctx, lock.Name("nightly-report"), report)
		check(err)
		fmt.Println("skipped:", held != nil)
	}
	job()
	lease, err := locks.Acquire(ctx, lock.Name("nightly-report")) // as another instance would
	check(err)
	job()
	check(lease.Release(ctx))
	// Output:
	// working under a lock with a name
	// skipped: false
	// skipped: true
}

// report gets a context that ends with the lease. Locks are not reentrant: pass the lease to the functions
// that need it.
func report(ctx context.Context, lease *lock.Lease) error {
	fmt.Println("working under a", lease.Target())
	return ctx.Err()
}

// A serverless function takes a lease for as long as it may run. Nothing has to be renewed.
func ExampleFixed() {
	ctx := context.Background()
	locks, err := lock.New(openTable(ctx), lock.Config{})
	check(err)
	lease, err := locks.Acquire(ctx, lock.Name("import"), lock.Fixed(15*time.Minute))
	check(err)
	fmt.Println(lease.Remaining() > 14*time.Minute)
	fmt.Println(lease.Release(ctx))
	// Output:
	// true
	// <nil>
}

// A transaction of the caller's own, guarded by two locks.
func ExampleLease_Guard() {
	ctx := context.Background()
	tbl := openTable(ctx)
	locks, err := lock.New(tbl, lock.Config{})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	from, err := locks.Acquire(ctx, lock.Name("account-1"))
	check(err)
	to, err := locks.Acquire(ctx, lock.Name("account-2"))
	check(err)
	row := tbl.KeyItem(keys.NewKey("TRANSFER#1", "TRANSFER"))
	fmt.Println(tbl.Write(ctx, table.Put(row), from.Guard(), to.Guard()))

	check(to.Release(ctx))
	err = tbl.Write(ctx, table.Put(row), from.Guard(), to.Guard())
	var failed *table.ConditionError
	if errors.As(err, &failed) {
		fmt.Println("operation", failed.Index, "failed:", failed.Err)
	}
	// Output:
	// <nil>
	// operation 2 failed: lock released
}

func ExampleClient_Inspect() {
	ctx := context.Background()
	locks, err := lock.New(openTable(ctx), lock.Config{Owner: "settler-1"})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	_, err = locks.Inspect(ctx, lock.Name("import"))
	fmt.Println(errors.Is(err, table.ErrNotFound))
	_, err = locks.Acquire(ctx, lock.Name("import"))
	check(err)
	r, err := locks.Inspect(ctx, lock.Name("import"))
	fmt.Println(r.Holder().Owner, r.Waiting(), err)
	// Output:
	// true
	// settler-1 0 <nil>
}

// A sum over two accounts that sees no half-written transfer, without taking the lock.
func ExampleClient_View() {
	type Account struct {
		ID      string `dynamo:"id"`
		Balance int64  `dynamo:"balance"`
	}
	ctx := context.Background()
	tbl := openTable(ctx)
	accounts, err := entity.Define(tbl, entity.Spec[Account]{Type: "Account", PK: "ACCOUNT#{id}", SK: "ACCOUNT"})
	check(err)
	a, err := accounts.Create(ctx, Account{ID: "a", Balance: 60})
	check(err)
	b, err := accounts.Create(ctx, Account{ID: "b", Balance: 40})
	check(err)
	locks, err := lock.New(tbl, lock.Config{Owner: "teller-1"})
	check(err)
	defer func() { check(locks.Close(ctx)) }()

	both := []keys.Key{accounts.Key(a), accounts.Key(b)}
	sum := func(opts ...lock.ViewOption) {
		view, err := locks.View(ctx, lock.Name("accounts"), both, opts...)
		if err != nil {
			fmt.Println("somebody is writing:", errors.Is(err, lock.ErrHeld))
			return
		}
		var sum int64
		for _, row := range view.Rows {
			account, err := accounts.Decode(row)
			check(err)
			sum += account.Balance
		}
		fmt.Println("sum:", sum, "while somebody holds the lock:", view.Held != nil)
	}

	sum()
	lease, err := locks.Acquire(ctx, lock.Name("accounts"))
	check(err)
	sum()
	sum(lock.EvenIfHeld())
	check(lease.Commit(ctx,
		accounts.UpdateOp(a, entity.Add("balance", -10)),
		accounts.UpdateOp(b, entity.Add("balance", 10))))
	sum()
	// Output:
	// sum: 100 while somebody holds the lock: false
	// somebody is writing: true
	// sum: 100 while somebody holds the lock: true
	// sum: 100 while somebody holds the lock: false
}

func ExampleConfigFromEnviron() {
	config, err := lock.ConfigFromEnviron("MORTISE_LOCK", []string{"MORTISE_LOCK_LEASE=10s", "MORTISE_LOCK_EXPIRY=observed-only"})
	fmt.Println(config.Lease, config.Expiry, err)
	_, err = lock.ConfigFromEnviron("MORTISE_LOCK", []string{"MORTISE_LOCK_LEASE=10"})
	fmt.Println(err)
	// Output:
	// 10s observed-only <nil>
	// lock: config: invalid request: MORTISE_LOCK_LEASE: want a duration with its unit, such as "20s"
}

func ExampleConfig_Validate() {
	fmt.Println(lock.Config{Lease: time.Millisecond}.Validate() != nil)
	// Output: true
}

func ExampleClient_Healthy() {
	ctx := context.Background()
	locks, err := lock.New(openTable(ctx), lock.Config{})
	check(err)
	_, err = locks.Acquire(ctx, lock.Name("report"))
	check(err)
	left, ok := locks.Remaining()
	fmt.Println(locks.Healthy(ctx), ok, left > 10*time.Second)
	check(locks.Close(ctx))
	fmt.Println(locks.Healthy(ctx))
	// Output:
	// <nil> true true
	// lock: healthy: lock client closed
}

// A transfer between two accounts, under the locks of both.
func ExampleClient_AcquireAll() {
	type Account struct {
		ID      string `dynamo:"id"`
		Balance int64  `dynamo:"balance"`
	}
	ctx := context.Background()
	tbl := openTable(ctx)
	accounts, err := entity.Define(tbl, entity.Spec[Account]{Type: "Account", PK: "ACCOUNT#{id}", SK: "ACCOUNT"})
	check(err)
	locks, err := lock.New(tbl, lock.Config{})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	from, err := accounts.Create(ctx, Account{ID: "1", Balance: 100})
	check(err)
	to, err := accounts.Create(ctx, Account{ID: "2"})
	check(err)

	// The order of the targets does not matter: there is no deadlock.
	both, err := locks.AcquireAll(ctx, []lock.Target{lock.Beside(accounts.Key(from)), lock.Beside(accounts.Key(to))})
	check(err)
	defer func() { check(both.Release(ctx)) }() // for all other ways out: after Commit it does nothing
	_, err = locks.TryAcquireAll(ctx, []lock.Target{lock.Beside(accounts.Key(to)), lock.Name("report")})
	var held *lock.HeldAllError
	fmt.Println(errors.As(err, &held), len(held.Held))
	fmt.Println("enough time left:", both.Remaining() > 10*time.Second)

	// Commits only while both locks are held, and releases both.
	check(both.Commit(ctx,
		accounts.UpdateOp(from, entity.Set("balance", from.Balance-30)),
		accounts.UpdateOp(to, entity.Set("balance", to.Balance+30))))
	from, err = accounts.Get(ctx, from, entity.Consistent())
	fmt.Println(from.Balance, err)
	// Output:
	// true 1
	// enough time left: true
	// 70 <nil>
}

// One instance leads. The others wait in Lead until its lock is free.
func ExampleClient_Lead() {
	ctx, stop := context.WithCancel(context.Background())
	locks, err := lock.New(openTable(ctx), lock.Config{})
	check(err)
	defer func() { check(locks.Close(context.Background())) }()
	err = locks.Lead(ctx, lock.Name("dispatcher"), func(ctx context.Context, _ *lock.Lease) error {
		fmt.Println("leading")
		stop()       // for the example: the process ends
		<-ctx.Done() // ends with the process, or when the lock is lost
		return nil
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// leading
	// true
}

// A job that runs once per day, in one of all instances.
func ExampleClient_Every() {
	ctx, stop := context.WithCancel(context.Background())
	tbl := openTable(ctx)
	locks, err := lock.New(tbl, lock.Config{})
	check(err)
	defer func() { check(locks.Close(context.Background())) }()
	err = locks.Every(ctx, lock.Name("invoices"), 24*time.Hour, func(ctx context.Context, lease *lock.Lease, at time.Time) error {
		fmt.Println("midnight:", at.Equal(at.Truncate(24*time.Hour)))
		defer stop() // for the example, one run is enough
		// Written once for this day, also if a run was interrupted and another instance begins it again.
		row := keys.NewKey("INVOICES#"+at.Format(time.DateOnly), "INVOICES")
		return lease.Commit(ctx, table.Put(tbl.KeyItem(row)))
	})
	fmt.Println(errors.Is(err, context.Canceled))
	record, err := locks.Inspect(context.Background(), lock.Name("invoices"))
	check(err)
	fmt.Println(record.LastRun().IsZero())
	// Output:
	// midnight: true
	// true
	// false
}

// A job at half past two in the morning in Berlin, on every day of the year. If it fails, it counts as failed for
// that day, and runs again on the next day.
func ExampleAt() {
	ctx, stop := context.WithCancel(context.Background())
	locks, err := lock.New(openTable(ctx), lock.Config{})
	check(err)
	defer func() { check(locks.Close(context.Background())) }()
	berlin, err := time.LoadLocation("Europe/Berlin")
	check(err)
	err = locks.Every(ctx, lock.Name("nightly"), 24*time.Hour,
		func(_ context.Context, _ *lock.Lease, at time.Time) error {
			fmt.Println(at.Location())
			return errors.New("no paper")
		},
		lock.At(2*time.Hour+30*time.Minute, berlin),
		lock.OnFailed(func(_ time.Time, err error) {
			fmt.Println("failed:", err)
			stop() // for the example, one run is enough
		}),
	)
	fmt.Println(errors.Is(err, context.Canceled))
	record, err := locks.Inspect(context.Background(), lock.Name("nightly"))
	check(err)
	fmt.Println(record.LastFailed().Equal(record.LastRun()))
	// Output:
	// Europe/Berlin
	// failed: no paper
	// true
	// true
}

// A run that has failed is repeated while its interval lasts: here twice, without a wait.
func ExampleRetryFailed() {
	ctx, stop := context.WithCancel(context.Background())
	locks, err := lock.New(openTable(ctx), lock.Config{})
	check(err)
	defer func() { check(locks.Close(context.Background())) }()
	runs := 0
	err = locks.Every(ctx, lock.Name("import"), 24*time.Hour,
		func(context.Context, *lock.Lease, time.Time) error {
			if runs++; runs == 3 {
				stop() // for the example, this is enough
				return nil
			}
			return errors.New("busy")
		},
		lock.RetryFailed(func() backoff.BackOff { return backoff.WithMaxRetries(&backoff.ZeroBackOff{}, 2) }),
		lock.OnFailed(func(_ time.Time, err error) { fmt.Println("failed:", err) }),
	)
	fmt.Println(runs, errors.Is(err, context.Canceled))
	// Output:
	// failed: busy
	// failed: busy
	// 3 true
}

// No more than two exports at a time, over all instances: the third one waits, or is refused.
func ExamplePermits() {
	ctx := context.Background()
	locks, err := lock.New(openTable(ctx), lock.Config{})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	export := func() (*lock.Lease, error) { return locks.TryAcquire(ctx, lock.Name("exports"), lock.Permits(2)) }
	first, err := export()
	check(err)
	second, err := export()
	check(err)
	_, err = export()
	var held *lock.HeldError
	fmt.Println(errors.As(err, &held), held.Holding, "of", held.Permits)

	check(first.Write(ctx, table.Put(table.Item{"pk": text("EXPORT#1"), "sk": text("EXPORT")})))
	check(first.Release(ctx))
	third, err := export()
	check(err)
	fmt.Println("the third one exports")
	check(second.Release(ctx))
	check(third.Release(ctx))
	// Output:
	// true 2 of 2
	// the third one exports
}

// The number of permits is changed for all clients. One that names the number of before is told the new one.
func ExampleClient_SetPermits() {
	ctx := context.Background()
	locks, err := lock.New(openTable(ctx), lock.Config{})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	lease, err := locks.Acquire(ctx, lock.Name("exports"), lock.Permits(2))
	check(err)
	check(locks.SetPermits(ctx, lock.Name("exports"), 5))
	_, err = locks.Acquire(ctx, lock.Name("exports"), lock.Permits(2))
	var other *lock.PermitsError
	if errors.As(err, &other) {
		fmt.Println(err)
		another, err := locks.Acquire(ctx, lock.Name("exports"), lock.Permits(other.Row))
		check(err)
		check(another.Release(ctx))
	}
	check(lease.Release(ctx))
	// Output:
	// lock: acquire: the row has 5 permits, and the call names 2: all clients have to name the same number (SetPermits changes it)
}

// Readers hold together, and a writer alone.
func ExampleShared() {
	ctx := context.Background()
	locks, err := lock.New(openTable(ctx), lock.Config{})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	catalogue := lock.Name("catalogue")
	one, err := locks.Acquire(ctx, catalogue, lock.Shared())
	check(err)
	two, err := locks.Acquire(ctx, catalogue, lock.Shared())
	check(err)
	_, err = locks.TryAcquire(ctx, catalogue)
	var held *lock.HeldError
	fmt.Println(errors.As(err, &held), held.Holding, "read")
	check(one.Release(ctx))
	check(two.Release(ctx))

	writer, err := locks.TryAcquire(ctx, catalogue)
	check(err)
	_, err = locks.TryAcquire(ctx, catalogue, lock.Shared())
	fmt.Println(errors.Is(err, lock.ErrHeld), writer.Fence() > one.Fence())
	check(writer.Release(ctx))
	// Output:
	// true 2 read
	// true true
}
