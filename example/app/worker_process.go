package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// errOrphaned says that the end of the input told a worker process to stop.
var errOrphaned = errors.New("the parent process has stopped this one, or is gone")

// runWorker is the life of a worker process: a configuration and commands come
// in by line, events go out by line. It returns the exit code.
func runWorker(ctx context.Context, stdin io.Reader, stdout io.Writer) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	events := make(chan event)
	written := make(chan struct{})
	go func() {
		defer close(written)
		out := json.NewEncoder(stdout)
		for e := range events {
			if err := out.Encode(e); err != nil {
				cancel(fmt.Errorf("write to the parent process: %w", err))
			}
		}
	}()
	err := work(ctx, cancel, bufio.NewReader(stdin), func(e event) { events <- e })
	if err != nil {
		events <- event{Kind: crewFailed, Error: oneLine(err)}
	}
	close(events)
	<-written
	if err != nil {
		return exitFailure
	}
	return 0
}

func work(ctx context.Context, cancel context.CancelCauseFunc, commands *bufio.Reader, report func(event)) error {
	line, err := commands.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	var config workerConfig
	if err := json.Unmarshal(line, &config); err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	sig := newSignals(cancel)
	go sig.follow(commands)
	client, err := config.Target.client(ctx)
	if err != nil {
		return err
	}
	s, err := openStore(client, config.Table, config.Scheme)
	if err != nil {
		return err
	}
	locks, err := newLocks(s, fmt.Sprintf("%s (pid %d)", config.Name, os.Getpid()))
	if err != nil {
		return err
	}
	c := &crew{
		store: s, locks: locks, batch: config.Batch, name: config.Name + "/", workers: config.Workers, stalls: config.Stalls,
		report: report, start: sig.started, finish: sig.finished, ownTable: true,
	}
	return c.run(ctx)
}

// follow turns commands into signals until the input ends.
func (s *signals) follow(commands *bufio.Reader) {
	for {
		line, err := commands.ReadString('\n')
		if err != nil {
			s.cancel(errOrphaned)
			return
		}
		switch line {
		case startCommand + "\n":
			s.start()
		case finishCommand + "\n":
			s.finish()
		}
	}
}
