package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
)

// Exit codes.
const (
	exitFailure     = 1 // bad input, no table, an invariant does not hold
	exitUsage       = 2
	exitInterrupted = 130
)

// run is the program. It ends early when ctx does.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		say(stderr, "app: %s\n", oneLine(err))
		return exitUsage
	}
	if o.command != nil {
		return o.migrate(ctx, stdin, stdout, stderr)
	}
	in, err := openInput(o.orders, stdin)
	if err == nil {
		err = newApp(o, in, stdout, stderr).run(ctx)
	}
	return exitCode(ctx, err, stderr)
}

// exitCode says on stderr what err is, in one line, and which code it gives.
func exitCode(ctx context.Context, err error, stderr io.Writer) int {
	var refused *InputError
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		say(stderr, "app: interrupted\n")
		return exitInterrupted
	case errors.As(err, &refused):
		say(stderr, "%s\n", oneLine(err))
	default:
		say(stderr, "app: %s\n", oneLine(err))
	}
	return exitFailure
}

// oneLine returns the text of an error without line breaks.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// app is one run.
type app struct {
	options
	input    *Input
	stdout   io.Writer
	progress *progress
	started  time.Time

	// watch is the foreman's. Nil but in tests.
	watch func(*foreman, event)
}

func newApp(o options, in *Input, stdout, stderr io.Writer) *app {
	return &app{options: o, input: in, stdout: stdout, progress: newProgress(stderr), started: time.Now()}
}

func (a *app) run(ctx context.Context) (err error) {
	client, closing, err := a.target.open(ctx, a.processes > 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing()) }()
	return a.on(ctx, client)
}

// on is the run on a DynamoDB.
func (a *app) on(ctx context.Context, client *dynamodb.Client) (err error) {
	defer a.progress.endBar()
	s, err := openStore(client, a.table, a.scheme)
	if err != nil {
		return err
	}
	if err := a.migrated(ctx, s, client); err != nil {
		return err
	}
	locks, err := newLocks(s, ownerName())
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, locks.Close(closing))
	}()
	return a.settle(ctx, s, locks)
}

// migrated brings the table up to date before it is used. Where it is that
// already this costs a few reads and no lock.
func (a *app) migrated(ctx context.Context, s *store, client *dynamodb.Client) error {
	up := func(m *migrations.Migrator) error {
		report, err := m.Up(ctx)
		for _, r := range report.Done {
			a.progress.note("migrated: %s, %s", r.ID, r.Name)
		}
		return err
	}
	err := s.withMigrator(ctx, client, ownerName(), up,
		migrations.WithProgress(func(p migrations.Progress) { a.progress.note("%s", p) }),
		migrations.WithLogger(slog.New(slog.DiscardHandler))) // the report says the same
	if err != nil {
		return err
	}
	// What was taken away by hand is better found out now than by a query.
	return s.table.Verify(ctx)
}

// settle does the whole job on a table that is ready.
func (a *app) settle(ctx context.Context, s *store, locks *lock.Client) error {
	b, resumed, err := openBatch(ctx, s, locks, a.input)
	if err != nil {
		return err
	}
	total := len(a.input.Orders)
	if err := b.load(ctx, s, a.input, func(n int) { a.progress.update("loading", n, total, "") }); err != nil {
		return err
	}
	f := newForeman(s, b.ID, a.progress)
	f.watch, f.total = a.watch, total
	for _, o := range a.input.Orders {
		f.remaining[o.ID] = true
	}
	if err := f.check(ctx); err != nil {
		return err
	}
	if len(f.remaining) > 0 {
		if err := a.employ(ctx, f, locks); err != nil {
			return err
		}
	}
	sum := &summary{target: a.target, table: a.table, batch: b, resumed: resumed}
	if sum.audit, err = newAudit(ctx, s, b, a.input); err != nil {
		return err
	}
	if len(sum.audit.broken) == 0 {
		if err := b.finish(ctx, s, time.Now()); err != nil {
			return err
		}
	}
	if err := sum.show(ctx, s, locks, f.stalled, a.input); err != nil {
		return err
	}
	sum.stats = f.stats().plus(stats{Usage: s.usage.Totals()})
	sum.took = time.Since(a.started)
	a.progress.endBar()
	if err := sum.write(a.stdout); err != nil {
		return err
	}
	if a.json {
		if err := sum.writeJSON(a.stdout); err != nil {
			return err
		}
	}
	if len(sum.audit.broken) > 0 {
		return fmt.Errorf("an invariant is broken: %s", strings.Join(sum.audit.broken, "; "))
	}
	return nil
}

// employ starts the crews and waits until they have settled everything.
func (a *app) employ(ctx context.Context, f *foreman, locks *lock.Client) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if a.processes == 0 {
		f.startLocal(ctx, locks, a.workers, a.stall)
		return f.run(ctx)
	}
	for i := range a.processes {
		err := f.startProcess(ctx, workerConfig{
			Target: a.target, Table: a.table, Scheme: a.scheme, Batch: f.batch, Name: fmt.Sprintf("p%d", i+1), Workers: a.workers,
			// Dealt out like cards.
			Stalls: a.stall/a.processes + min(1, max(0, a.stall%a.processes-i)),
		})
		if err != nil {
			cancel(err) // ends the ones that were started
			break
		}
	}
	return f.run(ctx)
}
