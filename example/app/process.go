package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
)

// workerEnv holds an assignment, in JSON, and makes the program a worker process.
const workerEnv = "MORTISE_EXAMPLE_WORKER"

// assignment is all that a worker process is told. Everything else is in the table.
type assignment struct {
	Target  engines.Target
	Table   string
	Scheme  keys.Scheme
	Batch   Batch
	Name    string
	Workers int
}

// runProcess runs a crew in a process of its own, and returns when that has ended. The end of ctx ends it.
func runProcess(ctx context.Context, a assignment, report func(tally)) error {
	config, err := json.Marshal(a)
	program, err2 := os.Executable()
	cmd := exec.CommandContext(ctx, program) //nolint:gosec // the program is this one
	cmd.Env = append(os.Environ(), workerEnv+"="+string(config))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err3 := cmd.StdinPipe()
	stdout, err4 := cmd.StdoutPipe()
	cmd.Cancel, cmd.WaitDelay = func() error { return stdin.Close() }, 5*leaseTime // then it is killed
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var t tally
	for lines := json.NewDecoder(stdout); lines.Decode(&t) == nil; {
		report(t)
	}
	_, _ = io.Copy(io.Discard, stdout) // whatever it is: the process must not block on a full pipe
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}

// runWorker is the life of a worker process: it settles orders, and writes a tally after each of them, as a line of JSON. It
// ends when all orders are settled, and when its input ends, as it does with the parent. It returns the exit code.
func runWorker(config string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel(errors.New("the parent process has stopped this one, or is gone"))
	}()
	if err := work(ctx, config, json.NewEncoder(stdout)); err != nil {
		say(stderr, "%s\n", oneLine(errors.Join(context.Cause(ctx), err)))
		return exitFailure
	}
	return 0
}

func work(ctx context.Context, config string, out *json.Encoder) error {
	var a assignment
	if err := json.Unmarshal([]byte(config), &a); err != nil {
		return err
	}
	client, err := a.Target.Client(ctx)
	if err != nil {
		return err
	}
	s, err := openStore(client, a.Table, a.Scheme)
	if err != nil {
		return err
	}
	locks, err := newLocks(s, a.Name, leaseTime)
	if err != nil {
		return err
	}
	report := func(t tally) {
		t.PID, t.Requests = os.Getpid(), s.usage.Totals().Requests
		_ = out.Encode(t) // where the parent is gone the input has ended, too
	}
	c := &crew{store: s, locks: locks, batch: a.Batch, name: a.Name + "/", report: report}
	err = errors.Join(c.run(ctx, a.Workers), closeLocks(ctx, locks))
	report(c.tally) // with the requests since the last order
	return err
}
