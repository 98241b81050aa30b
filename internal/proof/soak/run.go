package soak

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

const (
	maxWorkers = 64
	maxFaults  = 0.5
	drainTime  = 10 * time.Second // longer than a proxy's longest delay
	deleteTime = 10 * time.Second
)

// Config is the configuration of a run.
type Config struct {
	// Endpoint is the URL of DynamoDB Local, or of another engine that does not check signatures, since a proxy is
	// in between.
	Endpoint string

	// Duration is how long the workloads run. Reading what they have written takes additional time.
	Duration time.Duration

	// Seed is the seed of the plan of faults and troubles.
	Seed uint64

	// Workers is the number of processes, 2 to 64. Defaults to 4.
	Workers int

	// Faults is the share of requests with a fault, above 0 and up to 0.5. A negative value means none. Defaults to
	// 0.06.
	Faults float64

	// Calm is the longest time between two troubles of a process, 300 ms or more. Defaults to 3 s.
	Calm time.Duration

	// Unguarded runs the control: writes without the lock's guard.
	Unguarded bool

	// Program is the program of the workers. It is started with WorkerEnv set. Defaults to this program.
	Program string

	// Progress is called every Period with the report so far. Defaults to nil.
	Progress func(*Report)

	// Period defaults to 10 s.
	Period time.Duration

	// For a short control: so many processes are left alone. The others are only paused, each time until another
	// process has written under the lock.
	spared         int
	untilOvertaken bool
}

// ErrInvalid means that a setting is not acceptable.
var ErrInvalid = errors.New("invalid setting")

// Check returns an error for settings that Run would refuse. It does not check Endpoint, which may not be known yet.
func (c Config) Check() error {
	_, err := c.withDefaults()
	return err
}

func (c Config) withDefaults() (Config, error) {
	if c.Workers == 0 {
		c.Workers = 4
	}
	if c.Faults == 0 {
		c.Faults = 0.06
	}
	if c.Calm == 0 {
		c.Calm = 3 * time.Second
	}
	if c.Period == 0 {
		c.Period = 10 * time.Second
	}
	var err error
	if c.Program == "" {
		c.Program, err = os.Executable()
	}
	for _, wrong := range []struct {
		is   bool
		name string
		want string
	}{
		{c.Duration <= 0, "Duration", "more than 0"},
		{c.Workers < 2 || c.Workers > maxWorkers, "Workers", "2 to 64"},
		{!(c.Faults <= maxFaults), "Faults", "at most 0.5"}, // also if it is NaN
		{c.Calm < minCalm, "Calm", "300 ms or more"},
		{c.Period < 0, "Period", "more than 0"},
	} {
		if wrong.is {
			err = errors.Join(err, fmt.Errorf("%w: %s: want %s", ErrInvalid, wrong.name, wrong.want))
		}
	}
	return c, err
}

// Run runs the workloads for their time, or until ctx ends. Then it ends the processes, reads what they have written,
// and reports. Violations are in the report. An error means that the workloads could not be run or not be judged.
func Run(ctx context.Context, config Config) (*Report, error) {
	config, err := config.withDefaults()
	if config.Endpoint == "" {
		err = errors.Join(err, fmt.Errorf("%w: Endpoint: want a URL", ErrInvalid))
	}
	if err != nil {
		return nil, fmt.Errorf("soak: run: %w", err)
	}
	r := &run{Config: config, ledger: newLedger()}
	if err := r.open(ctx); err != nil {
		return nil, fmt.Errorf("soak: run: %w", err)
	}
	err = r.work(ctx)
	a := &audit{ledger: r.ledger, table: r.table, locks: r.locks}
	after := context.WithoutCancel(ctx)
	if err == nil {
		err = a.run(after, config.Unguarded)
	}
	err = errors.Join(err, r.close(after))
	report := r.report()
	report.Lost = a.lost
	if err == nil && report.acknowledged() == 0 {
		err = errors.New("no operation was acknowledged")
	}
	if err != nil {
		return report, fmt.Errorf("soak: run: %w", err)
	}
	return report, nil
}

// run is one call of Run.
type run struct {
	Config
	ledger  *ledger
	began   time.Time
	table   *table.Table
	locks   *lock.Client
	keepers []*keeper
}

// open creates the table and the proxies.
func (r *run) open(ctx context.Context) (err error) {
	r.table, err = table.Open(connect(r.Endpoint), table.Schema{Name: fmt.Sprintf("soak-%d-%d", r.Seed, time.Now().UnixNano()), NoTTL: true})
	if err != nil {
		return err
	}
	if err = r.table.Ensure(ctx); err != nil {
		return err
	}
	if err = openAccounts(ctx, r.table); err != nil {
		return err
	}
	if r.locks, err = lock.New(r.table, lock.Config{Owner: "audit", Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return err
	}
	for i := range r.Workers {
		x, err := newProxy(ctx, r.Endpoint, newPlan(r.Seed, i, r.Faults).next)
		if err != nil {
			return errors.Join(err, r.drain(ctx))
		}
		r.keepers = append(r.keepers, &keeper{
			number: i, config: r.Config, table: r.table.Name(), ledger: r.ledger, proxy: x, begins: make(chan string, 1),
			schedule: &schedule{rand: rand.New(rand.NewPCG(^r.Seed, uint64(i))), calm: r.Calm, pausesOnly: r.untilOvertaken, never: i < r.spared},
		})
	}
	return nil
}

// work keeps the processes until the time is over. It returns when all have ended and everything that they have sent
// has arrived.
func (r *run) work(ctx context.Context) error {
	r.began = time.Now()
	bounded, cancel := context.WithTimeout(ctx, r.Duration)
	defer cancel()
	var keeping sync.WaitGroup
	failed := make(chan error, len(r.keepers))
	for _, k := range r.keepers {
		keeping.Go(func() {
			err := k.keep(bounded)
			if err != nil {
				cancel() // the others end, too
			}
			failed <- err
		})
	}
	ticks := time.NewTicker(r.Period)
	defer ticks.Stop()
	for bounded.Err() == nil {
		select {
		case <-ticks.C:
			if r.Progress != nil {
				r.Progress(r.report())
			}
		case <-bounded.Done():
		}
	}
	keeping.Wait()
	close(failed)
	var errs []error
	for err := range failed {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, r.drain(context.WithoutCancel(ctx)))...)
}

// drain closes the proxies after they have delivered late requests.
func (r *run) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	var errs []error
	for _, k := range r.keepers {
		errs = append(errs, k.proxy.close(ctx))
	}
	return errors.Join(errs...)
}

// close releases all resources.
func (r *run) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deleteTime)
	defer cancel()
	err := r.locks.Close(ctx)
	name := r.table.Name()
	_, dropped := connect(r.Endpoint).DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
	return errors.Join(err, dropped)
}
