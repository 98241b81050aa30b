// Command contracttest runs go test, with contract tests that run on one engine or on several, and then prints how many ran
// on each. If tests failed, it prints their failures once more at the end: the first and the last lines of each.
//
//	contracttest LOG COMMAND [ARGUMENT]...
//
// MORTISE_ENGINE selects the engines, as for a single test. If DynamoDB Local is one of them, contracttest starts it
// once, and all test binaries of the command share it. LOG is the file to which the tests append what has run. The exit
// code is 1 if the command fails, if an engine ran no test, or if the engines did not run the same tests.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"github.com/mortise-go/mortise/internal/engines"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: contracttest LOG COMMAND [ARGUMENT]...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "contracttest:", err)
		os.Exit(1)
	}
}

func run(log string, command []string) error {
	log, err := filepath.Abs(log) // go test runs each package's tests in the package's directory
	if err != nil {
		return err
	}
	// An interrupt reaches the command, too. This process lives on until the command has ended, and then stops DynamoDB Local.
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := errors.Join(os.RemoveAll(log), os.MkdirAll(filepath.Dir(log), 0o755)); err != nil {
		return err
	}
	selected, env, stop, err := engines.Share(ctx, os.Getenv("MORTISE_ENGINE"))
	if err != nil {
		return err
	}
	defer stop()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), append(env, "MORTISE_CONTRACT_LOG="+log)...)
	out := &failures{out: os.Stdout}
	cmd.Stdout, cmd.Stderr = out, out // in their order
	if err := cmd.Run(); err != nil {
		out.repeat()
		return fmt.Errorf("%s: %w", command[0], err)
	}
	f, err := os.Open(log)
	if err != nil {
		return fmt.Errorf("no contract test ran: %w", err)
	}
	sentence, err := engines.Count(f, selected)
	_ = f.Close() // it was only read
	if sentence != "" {
		fmt.Println("contract tests:", sentence)
	}
	return err
}
