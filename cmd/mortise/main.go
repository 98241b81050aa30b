// Command mortise runs commands under locks in a DynamoDB table, lets their scripts write to the table only while they hold the
// lock, and shows who holds which lock, and who waits.
//
//	go install github.com/mortise-go/mortise/cmd/mortise@latest
//	mortise help
//
// README.md, beside this file, introduces it.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/mortise-go/mortise/internal/tty"
)

// Exit codes. Otherwise exec ends with the code of its command.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitNotAcquired = 75  // exec: the lock was not acquired within --wait
	exitLost        = 76  // exec, write: the lock was lost
	exitRefused     = 77  // write: a condition in the transaction does not hold
	exitUnknown     = 78  // write: the transaction may have been applied
	exitDiffers     = 79  // table: the table differs from its description
	exitExec        = 125 // exec: another error
	exitNotRunnable = 126 // exec: the command cannot be run
	exitNoCommand   = 127 // exec: the command was not found
	exitSignal      = 128 // plus the signal's number
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == watchdogName {
		os.Exit(watchdog(os.Stdin, os.Stderr))
	}
	if len(os.Args) > 4 && os.Args[1] == starterName {
		os.Exit(starter(os.Args[2], os.Args[3], os.Args[4:], os.Stderr))
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// run is the program. environ is in the form of os.Environ.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &call{environ: environ, stdin: stdin, stdout: stdout, stderr: stderr, width: tty.Width}
	err := c.parse(args)
	if err == nil && !c.command.ownSignals {
		var stop func()
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // a second signal ends the program at once
	}
	if err == nil {
		err = c.command.run(ctx, c)
	}
	code, text := c.verdict(ctx, err)
	if text != "" {
		tty.Say(stderr, "%s: %s\n", c.name(), tty.Clean(text))
	}
	return code
}

// exit is an error that ends the program with an exit code. err is nil if there is no message to print.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// verdict returns the exit code and the message for an error.
func (c *call) verdict(ctx context.Context, err error) (code int, text string) {
	if err == nil {
		return 0, ""
	}
	var known *exit
	switch {
	case errors.As(err, &known):
		code = known.code
		if known.err == nil {
			return code, ""
		}
	case errors.Is(err, errUsage):
		code = exitUsage
	case ctx.Err() != nil:
		return exitSignal + int(syscall.SIGINT), "interrupted"
	default:
		code = exitFailure
	}
	if c.command != nil && c.command.ownSignals && (code == exitFailure || code == exitUsage) {
		code = exitExec
	}
	return code, c.explain(err)
}
