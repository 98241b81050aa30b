package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mortise-go/mortise/lock"
)

// app is one run.
type app struct {
	options
	stdout, stderr io.Writer
	started        time.Time

	*store
	locks   *lock.Client
	input   *Input
	batch   Batch
	resumed bool
	frozen  []*settlement
	refused int64 // late writes of frozen workers

	mu      sync.Mutex
	tallies []tally     // by crew
	shown   time.Time   // the last line of progress
	watch   func(tally) // sees each tally first; nil but in tests
}

func newApp(o options, stdout, stderr io.Writer) *app {
	return &app{options: o, stdout: stdout, stderr: stderr, started: time.Now(), tallies: make([]tally, max(1, o.processes))}
}

// job is what the program is for.
func (a *app) job(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		a.migrate,   // bring the table up to date, under a lock
		a.openBatch, // choose what is to be settled, under a lock that has a name
		a.load,      // write the orders
		a.freeze,    // stop some workers in the middle of their work
		a.settle,    // settle all orders, each under the lock that stands beside it
		a.thaw,      // let the frozen workers go on: they write too late
		a.report,    // read everything back, and tell what came out
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// run opens the table and does a job on it.
func (a *app) run(ctx context.Context, job func(context.Context) error) (err error) {
	client, closing, err := a.target.Open(ctx, a.processes > 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing()) }()
	if a.store, err = openStore(client, a.tableName, a.scheme); err != nil {
		return err
	}
	if a.locks, err = newLocks(a.store, "app", leaseTime); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLocks(ctx, a.locks)) }()
	return job(ctx)
}

// settle has the batch settled: by a crew in this process, or by one in each worker process. A worker process may die: the
// others take its locks when its leases have ended.
func (a *app) settle(ctx context.Context) error {
	errs := make([]error, len(a.tallies))
	var group sync.WaitGroup
	for i := range a.tallies {
		report := func(t tally) { a.heard(i, t) }
		group.Go(func() {
			if a.processes == 0 {
				errs[i] = (&crew{store: a.store, locks: a.locks, batch: a.batch, report: report}).run(ctx, a.workers)
				return
			}
			name := fmt.Sprintf("p%d", i+1)
			errs[i] = runProcess(ctx, assignment{a.target, a.tableName, a.scheme, a.batch, name, a.workers}, report)
			if errs[i] != nil && ctx.Err() == nil {
				a.note("worker process %s has ended early: %v; the others settle its orders when its leases end", name, errs[i])
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	settled, err := a.settled(ctx, a.batch)
	if err != nil || settled >= a.batch.Orders {
		return err
	}
	return errors.Join(append(errs, fmt.Errorf("all workers have ended, and %d of %d orders are not settled", a.batch.Orders-settled, a.batch.Orders))...)
}

// heard notes what a crew has counted, and shows progress once a second.
func (a *app) heard(i int, t tally) {
	if a.watch != nil {
		a.watch(t)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tallies[i] = t
	if time.Since(a.shown) >= time.Second {
		a.shown = time.Now()
		say(a.stderr, "settled: %d of %d orders\n", a.counted().Settled, a.batch.Orders)
	}
}

// note writes a line to standard error: standard output is for the summary.
func (a *app) note(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	say(a.stderr, format+"\n", args...)
}
