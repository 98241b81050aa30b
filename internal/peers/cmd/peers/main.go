// Command peers measures package lock beside other locks on DynamoDB Local, and prints a report in Markdown: see
// package peers.
//
//	peers [-only pairs,herd,contention,lost,held] [-rounds 5] [-pairs 1000] … [-endpoint URL]
//
// It starts DynamoDB Local itself, unless -endpoint names a running one. The exit code is 0 whatever was measured,
// and 2 if something could not be measured.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/mortise-go/mortise/internal/cli"
	"github.com/mortise-go/mortise/internal/peers"
)

func main() {
	os.Exit(run(cli.Settings(flag.CommandLine, "peers", "peers [flags]: measure Mortise's lock beside other locks", parse)))
}

func parse(f *flag.FlagSet, args []string) (peers.Config, error) {
	c := peers.Defaults()
	only := f.String("only", strings.Join(c.Scenes, ","), "`scenes` to measure")
	f.StringVar(&c.Endpoint, "endpoint", "", "`URL` of a DynamoDB Local that runs already")
	f.DurationVar(&c.Lease, "lease", c.Lease, "`length` of leases")

	f.IntVar(&c.Rounds, "rounds", c.Rounds, "pairs: `number` of rounds")
	f.IntVar(&c.Pairs, "pairs", c.Pairs, "pairs: `number` that are timed per round and candidate")
	f.IntVar(&c.Blocks, "blocks", c.Blocks, "pairs: `number` whose allocations are counted per round and candidate")
	f.IntVar(&c.Warm, "warm", c.Warm, "pairs: `number` before all rounds per candidate")

	f.IntVar(&c.Clients, "clients", c.Clients, "herd, contention: `number` of processes")
	f.IntVar(&c.Goroutines, "goroutines", c.Goroutines, "herd, contention: `number` in each process")
	f.DurationVar(&c.Hold, "hold", c.Hold, "herd, contention: `time` that the lock is held")
	f.DurationVar(&c.Limit, "limit", c.Limit, "herd: `time` after which it is given up")
	f.DurationVar(&c.Window, "window", c.Window, "contention: `time` that is measured")
	f.DurationVar(&c.Refresh, "refresh", c.Refresh, "herd, contention: `time` between two looks of cirello's client in its second setting")

	f.IntVar(&c.Trials, "trials", c.Trials, "lost: `number` of lost answers per call and candidate")
	f.DurationVar(&c.Renewed, "renewed-lease", c.Renewed, "lost: `length` of leases where answers of renewals are lost")

	f.IntVar(&c.Locks, "locks", c.Locks, "held: `number` of locks")
	f.Float64Var(&c.Leases, "leases", c.Leases, "held: how long, in `leases`")
	f.DurationVar(&c.Latency, "latency", c.Latency, "held: `time` that is added to each request")
	if err := cli.Parse(f, args); err != nil {
		return c, err
	}
	c.Scenes = strings.Split(*only, ",")
	return c, c.Check()
}

func run(config peers.Config) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal is not caught, so it ends the process
	report, err := peers.Run(ctx, config, os.Stderr)
	if report != nil {
		if _, failed := report.WriteTo(os.Stdout); err == nil {
			err = failed
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		return 2
	}
	return 0
}
