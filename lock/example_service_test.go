package lock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// work is what a leader does. It ends when ctx ends: with the process, or when the lock is lost.
type work func(ctx context.Context, lease *lock.Lease) error

// service runs until ctx ends. Pass it a context from signal.NotifyContext, with SIGTERM.
func service(ctx context.Context, tbl *table.Table, mux *http.ServeMux, dispatch work) (err error) {
	locks, err := lock.New(tbl, lock.Config{
		OnAtRisk: func(atRisk bool) { fmt.Println("renewals fail:", atRisk) }, // for an alarm
	})
	if err != nil {
		return err
	}
	defer func() { // releases all locks, within the time that is left before SIGKILL
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, locks.Close(end))
	}()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := locks.Healthy(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	err = locks.Lead(ctx, lock.Name("dispatcher"), dispatch)
	if errors.Is(err, context.Canceled) {
		return nil // the process was asked to end
	}
	return err
}

// The main function of such a service. It is compiled, and not run: it needs a table on AWS.
func Example_onAWS() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	cfg, err := config.LoadDefaultConfig(ctx) // region and credentials, as for each program on AWS
	check(err)
	tbl, err := table.Open(dynamodb.NewFromConfig(cfg), table.Schema{Name: "app", MustExist: true})
	check(err)
	check(service(ctx, tbl, http.DefaultServeMux, func(context.Context, *lock.Lease) error {
		return nil // … after the leader's work …
	}))
}

// A client of AWS in place of the in-process engine. It is compiled, and not run.
func Example_clientOfAWS() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx) // region and credentials, as for each program on AWS
	check(err)
	client := dynamodb.NewFromConfig(cfg)
	tbl, err := table.Open(client, table.Schema{Name: "app", Keys: keys.Scheme{PK: "pk", SK: "sk"}})
	check(err)
	check(tbl.Ensure(ctx))
}

// A long-running service that leads, answers health checks, and ends without leaving a lock behind.
func Example_service() {
	ctx, stop := context.WithCancel(context.Background())
	tbl := openTable(ctx)
	fmt.Println(service(ctx, tbl, http.NewServeMux(), func(ctx context.Context, lease *lock.Lease) error {
		fmt.Println("leading, with a fence:", lease.Fence() > 0)
		stop() // for the example: SIGTERM
		<-ctx.Done()
		return ctx.Err()
	}))
	locks, err := lock.New(tbl, lock.Config{})
	check(err)
	record, err := locks.Inspect(context.Background(), lock.Name("dispatcher"))
	fmt.Println("held:", record.Held(), err)
	// Output:
	// leading, with a fence: true
	// <nil>
	// held: false <nil>
}
