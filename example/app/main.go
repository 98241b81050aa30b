// Command app is a small order-settlement service on one DynamoDB table, and the example of Mortise. Workers take the lock beside an
// order, add up the order's lines, and settle it in one transaction that commits only while the lock is held.
//
//	go run ./example/app
//	go run ./example/app -processes 4 -stall 2 -json
//	go run ./example/app migrate status
//
// README.md, beside this file, tells in which order to read the others.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/mortise-go/mortise/internal/tty"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/migrations/migratecmd"
)

// Exit codes.
const (
	exitFailure     = 1 // bad input, no table, an invariant does not hold
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	if config := os.Getenv(workerEnv); config != "" {
		signal.Ignore(os.Interrupt) // the parent has it too, and ends its workers
		os.Exit(runWorker(config, os.Stdin, os.Stdout, os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the program. It ends early when ctx does.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		say(stderr, "app: %s (-h lists the flags)\n", oneLine(err))
		return exitUsage
	}
	a, code := newApp(o, stdout, stderr), 0
	job := a.job
	if o.command != nil {
		command := migratecmd.Command{Name: "app migrate", Stdin: stdin, Stdout: stdout, Stderr: stderr}
		if done, err := command.Help(o.command); done {
			return migratecmd.ExitCode(err)
		}
		if o.target.Data != "" {
			say(stderr, "table %s in DynamoDB Local, kept in %s\n", o.tableName, o.target.Data)
		}
		job = func(ctx context.Context) error {
			return a.withMigrator(ctx, func(m *migrations.Migrator) error {
				code = migratecmd.ExitCode(command.Run(ctx, m, o.command)) // prints its error
				return nil
			})
		}
	} else if a.input, err = openInput(o.file, stdin); err != nil {
		say(stderr, "%s\n", oneLine(err)) // begins with the file's name
		return exitFailure
	}
	return max(exitCode(ctx, a.run(ctx, job), stderr), code)
}

// exitCode prints an error in one line and returns the exit code that belongs to it.
func exitCode(ctx context.Context, err error, stderr io.Writer) int {
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		say(stderr, "app: interrupted\n")
		return exitInterrupted
	}
	say(stderr, "app: %s\n", oneLine(err))
	return exitFailure
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// say writes for people. A text from the table cannot control the terminal: it stays one line of printable characters. An error is ignored:
// there is nobody left to tell.
func say(w io.Writer, format string, args ...any) {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = tty.Clean(text)
		}
	}
	tty.Say(w, format, args...)
}
