package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// How workers are set up: so that a fault is over soon.
const (
	leaseTime      = lock.MinLease
	requestTimeout = 1 * time.Second // of requests of the workloads' own
	retryTime      = 3 * time.Second // after that the outcome is left unknown

	roundTime = 8 * time.Second // of waiting, reading and writing; more than retryTime and a takeover
	closeTime = 5 * time.Second
	endTime   = 20 * time.Second // from being told to end to having ended
)

// workerConfig is the first line that a worker reads.
type workerConfig struct {
	Endpoint  string `json:"endpoint"`
	Table     string `json:"table"`
	Name      string `json:"name"` // no other has, also where a process is started again
	Seed      uint64 `json:"seed"`
	Unguarded bool   `json:"unguarded,omitempty"`
	Observed  bool   `json:"observed,omitempty"` // lock.ObservedOnly
}

// worker is a process that works under locks.
type worker struct {
	workerConfig
	table   *table.Table
	locks   *lock.Client
	journal *journal
	ops     atomic.Int64
	leases  atomic.Int64
}

// Work is the whole of a worker process: it reads its configuration from in, works until in
// ends, and writes what it does to out. It returns the exit code, having written to problems
// what has kept it from working.
func Work(in io.Reader, out, problems io.Writer) int {
	if err := work(in, out); err != nil {
		_, _ = fmt.Fprintln(problems, err) // who cannot be told does not read
		return 1
	}
	return 0
}

func work(in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	commands := bufio.NewReader(in)
	line, err := commands.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("soak: worker: configuration: %w", err)
	}
	w := &worker{journal: &journal{to: out, fail: func(err error) { cancel(err) }}}
	if err := json.Unmarshal(line, &w.workerConfig); err != nil {
		return fmt.Errorf("soak: worker: configuration: %w", err)
	}
	if err := w.open(); err != nil {
		return fmt.Errorf("soak: worker: %w", err)
	}
	go func() { // ends with the input, which ends with the supervisor
		_, err := io.Copy(io.Discard, commands)
		cancel(err)
	}()
	var lanes sync.WaitGroup
	for name, round := range w.rounds() {
		lanes.Go(func() { w.lane(ctx, name, round) })
	}
	lanes.Wait()
	bounded, done := context.WithTimeout(context.Background(), closeTime)
	defer done()
	// What Close could not release others take when the session has ended.
	if err := w.locks.Close(bounded); unexpected(err) {
		w.journal.write(record{Kind: odd, Workload: "close", Error: err.Error()})
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// connect is an SDK client of an engine on a loopback address.
func connect(endpoint string) *dynamodb.Client {
	return dynamodb.NewFromConfig(aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("mortise", "mortise", ""), BaseEndpoint: &endpoint,
	})
}

func (w *worker) open() (err error) {
	w.table, err = table.Open(connect(w.Endpoint), table.Schema{Name: w.Table}, table.WithRetry(table.Retry{
		Timeout: requestTimeout,
		Backoff: func() backoff.BackOff {
			return backoff.NewExponentialBackOff(
				backoff.WithInitialInterval(25*time.Millisecond), backoff.WithMaxInterval(500*time.Millisecond), backoff.WithMaxElapsedTime(retryTime))
		},
	}))
	if err != nil {
		return err
	}
	config := lock.Config{Lease: leaseTime, Owner: w.Name, Logger: slog.New(slog.DiscardHandler)}
	if w.Observed {
		config.Expiry = lock.ObservedOnly
	}
	w.locks, err = lock.New(w.table, config)
	return err
}

// rounds are what the process's goroutines do, again and again, by their names.
func (w *worker) rounds() map[string]round {
	rounds := map[string]round{
		"set 0": (*lane).set, "set 1": (*lane).set, "counter": (*lane).count,
		"bank 0": (*lane).transfer, "bank 1": (*lane).transfer, "fences": (*lane).fence, "every": (*lane).every,
	}
	if w.Unguarded {
		delete(rounds, "every") // which is nothing without its commit
	}
	return rounds
}
