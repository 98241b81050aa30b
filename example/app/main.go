// Command app is a small order-settlement service on one DynamoDB table, and
// the example of Mortise: workers take the lock that stands beside an order,
// compute its total from its lines, and settle it in one transaction that
// commits only while the lock is still held.
//
//	go run ./example/app
//	go run ./example/app -processes 4 -stall 2 -json
//	go run ./example/app migrate status
//
// README.md, beside this file, tells what to look at.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if os.Getenv(workerEnv) != "" {
		// An interrupt from the terminal reaches the parent too, which ends
		// its workers in order.
		signal.Ignore(os.Interrupt)
		os.Exit(runWorker(context.Background(), os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
