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

// Settings of workers. They are short, so that the effect of a fault is soon over.
const (
	leaseTime      = lock.MinLease
	requestTimeout = 1 * time.Second // for requests of the workloads themselves
	retryTime      = 3 * time.Second // after that the outcome stays unknown

	roundTime = 8 * time.Second // for waiting, reading and writing; more than retryTime and a take-over
	closeTime = 5 * time.Second
	endTime   = 20 * time.Second // from the order to end until the process has ended
)

// workerConfig is the first line that a worker reads.
type workerConfig struct {
	Endpoint  string `json:"endpoint"`
	Table     string `json:"table"`
	Name      string `json:"name"` // unique, also if a process is started again
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

// Work is the whole work of a worker process. It reads its configuration from in, works until in ends, and writes
// what it does to out. It returns the exit code. If it cannot work, it writes the reason to problems.
func Work(in io.Reader, out, problems io.Writer) int {
	if err := work(in, out); err != nil {
		_, _ = fmt.Fprintln(problems, err) // there is nobody to report an error to
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
	// Locks that Close could not release are free when the session has ended.
	if err := w.locks.Close(bounded); unexpected(err) {
		w.journal.write(record{Kind: odd, Workload: "close", Error: err.Error()})
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// connect returns an SDK client for an engine on a loopback address.
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

// rounds returns what the goroutines of the process do again and again, by their names.
func (w *worker) rounds() map[string]round {
	rounds := map[string]round{
		"set 0": (*lane).set, "set 1": (*lane).set, "counter": (*lane).count,
		"bank 0": (*lane).transfer, "bank 1": (*lane).transfer, "fences": (*lane).fence, "every": (*lane).every,
	}
	if w.Unguarded {
		delete(rounds, "every") // it depends on the commit
	}
	return rounds
}
