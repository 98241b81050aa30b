// Command soak runs locks in real processes that are killed, stopped and cut off, over a faulty network, and checks
// what they have written: see package soak.
//
//	soak [-minutes 30] [-seed N] [-workers 4] [-faults 0.06] [-calm 3s] [-endpoint URL] [-unguarded]
//
// It starts DynamoDB Local itself, unless -endpoint names a running one. An interrupt ends the workloads early, and
// what they have written is checked. A second interrupt ends everything.
//
// The exit code is 0 without violations, 1 with violations, and 2 if the run was impossible or could not be judged.
// With -unguarded, the control, it is 0 if updates were lost and 1 if none was.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/mortise-go/mortise/internal/cli"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/proof/soak"
)

func main() {
	if os.Getenv(soak.WorkerEnv) != "" {
		os.Exit(soak.Work(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(run(cli.Settings(flag.CommandLine, "soak", "soak [flags]: run locks in real processes that are killed, stopped and cut off", parse)))
}

func parse(f *flag.FlagSet, args []string) (soak.Config, error) {
	var config soak.Config
	minutes := f.Float64("minutes", 30, "how long to run, in `minutes`")
	f.Uint64Var(&config.Seed, "seed", 0, "`number` of the plan of faults; 0 draws one")
	f.IntVar(&config.Workers, "workers", 4, "`number` of processes")
	f.Float64Var(&config.Faults, "faults", 0.06, "`share` of the requests that meet a fault, up to 0.5")
	f.DurationVar(&config.Calm, "calm", 3*time.Second, "`time` that a process is left alone at most")
	f.StringVar(&config.Endpoint, "endpoint", "", "`URL` of a DynamoDB Local that runs already")
	f.BoolVar(&config.Unguarded, "unguarded", false, "run the control: writes without the lock's guard, which lose updates")
	if err := cli.Parse(f, args); err != nil {
		return config, err
	}
	if !(*minutes > 0 && *minutes <= 1e6) { // also if it is NaN
		return config, fmt.Errorf("-minutes: %g is not more than 0 and at most a million", *minutes)
	}
	config.Duration = time.Duration(*minutes * float64(time.Minute))
	if config.Seed == 0 {
		config.Seed = rand.Uint64()
	}
	if !(config.Faults >= 0) { // also if it is NaN
		return config, fmt.Errorf("-faults: %g is not a share from 0 to 0.5", config.Faults)
	}
	// A 0 on the command line must not become the default.
	config.Workers, config.Faults, config.Calm = cmp.Or(config.Workers, -1), cmp.Or(config.Faults, -1), cmp.Or(config.Calm, -1)
	return config, config.Check()
}

func run(config soak.Config) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second one is not caught
	report, err := soakFor(ctx, config)
	if report != nil {
		_, _ = report.WriteTo(os.Stdout)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "soak:", err)
		return 2
	case config.Unguarded && report.Lost == 0, !config.Unguarded && len(report.Violations) > 0:
		return 1
	}
	return 0
}

func soakFor(ctx context.Context, config soak.Config) (*soak.Report, error) {
	if config.Endpoint == "" {
		local, err := engines.StartApart(ctx, "")
		if err != nil {
			return nil, err
		}
		defer local.Stop()
		config.Endpoint = local.URL
	}
	fmt.Printf("seed %d, %d processes, %v\n", config.Seed, config.Workers, config.Duration)
	finish := showProgress(os.Stdout, &config)
	defer finish()
	return soak.Run(ctx, config)
}

// showProgress updates one line on a terminal, and elsewhere writes a line every 10 s. finish ends it.
func showProgress(out *os.File, config *soak.Config) (finish func()) {
	if !term.IsTerminal(int(out.Fd())) {
		config.Period = 10 * time.Second
		config.Progress = func(r *soak.Report) { fmt.Fprintln(out, r.Line()) }
		return func() {}
	}
	config.Period = time.Second
	drawn := false
	config.Progress = func(r *soak.Report) {
		line := r.Line()
		if width, _, err := term.GetSize(int(out.Fd())); err == nil && width > 0 {
			line = line[:min(len(line), width-1)] // a line that wraps could not be overwritten
		}
		drawn = true
		fmt.Fprint(out, "\r\x1b[K", line)
	}
	return func() {
		if drawn {
			fmt.Fprintln(out)
		}
	}
}
