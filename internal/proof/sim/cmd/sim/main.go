// Command sim plays workloads over many seeds in simulated worlds, on all cores.
//
//	sim [-seeds 1000] [-from 0] [-workload lockset] [-rounds 1]
//
// It prints its progress (one line on a terminal, elsewhere a line every 10 s), each violation with the command that
// shows it, and a summary at the end, also if it is interrupted. The exit code is 1 if there were violations, 2 if
// the command was called wrongly, and 130 if it was interrupted and there were none up to then.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/term"

	"github.com/mortise-go/mortise/internal/cli"
	"github.com/mortise-go/mortise/internal/proof/sim"
)

// most is the largest number of seeds. More would never end.
const most = 1_000_000_000_000

// plan is what to play.
type plan struct {
	loads  []sim.Workload
	from   uint64
	seeds  uint64
	rounds float64
}

func main() {
	p := cli.Settings(flag.CommandLine, "sim", // which sim.Bubble wants parsed
		"sim [flags]: play workloads over many seeds in simulated worlds", parse)
	sim.Bubble(p.play)
}

func parse(f *flag.FlagSet, args []string) (plan, error) {
	var p plan
	f.Uint64Var(&p.seeds, "seeds", 1000, "how many `seeds` of each workload to play")
	f.Uint64Var(&p.from, "from", 0, "the first `seed`")
	f.Float64Var(&p.rounds, "rounds", 1, "how many of its rounds a workload plays, as a `share`: of more than 1, it goes on for longer")
	load := f.String("workload", "", "its `name`: "+strings.Join(sim.WorkloadNames(), ", ")+"; defaults to all")
	if err := cli.Parse(f, args); err != nil {
		return p, err
	}
	switch {
	case p.seeds < 1 || p.seeds > most:
		return p, fmt.Errorf("-seeds: %d is not from 1 to %d", p.seeds, uint64(most))
	case p.from > math.MaxUint64-(p.seeds-1):
		return p, fmt.Errorf("-from: there are no %d seeds from %d on", p.seeds, p.from)
	case !(p.rounds > 0 && p.rounds <= 100): // also if it is NaN
		return p, fmt.Errorf("-rounds: %g is not more than 0 and at most 100", p.rounds)
	}
	p.loads = sim.Workloads()
	if *load != "" {
		l, err := sim.WorkloadNamed(*load)
		if err != nil {
			return p, err
		}
		p.loads = []sim.Workload{l}
	}
	return p, nil
}

// play plays the plan and returns the exit code.
func (p plan) play(t *testing.T) int {
	ctx, cancel := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	r := newReport(os.Stdout, p, term.IsTerminal(int(os.Stdout.Fd())))
	shown := make(chan struct{})
	showing, stop := context.WithCancel(context.Background())
	go func() {
		defer close(shown)
		r.show(showing)
	}()

	var next atomic.Uint64
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i/uint64(len(p.loads)) >= p.seeds {
					return
				}
				load, seed := p.loads[i%uint64(len(p.loads))], p.from+i/uint64(len(p.loads))
				r.add(load, p.one(t, load, seed))
			}
		})
	}
	group.Wait()
	stop()
	<-shown
	switch {
	case r.summary() > 0:
		return 1
	case ctx.Err() != nil:
		return 130
	}
	return 0
}

// one plays one seed. A world that does not come to its end is a violation, too.
func (p plan) one(t *testing.T, load sim.Workload, seed uint64) sim.Result {
	result := sim.Result{Seed: seed, Violations: []string{"the world did not come to its end"}}
	t.Run(load.Name+" "+strconv.FormatUint(seed, 10), func(t *testing.T) {
		result = load.Play(t, sim.Options{Seed: seed, Rounds: p.rounds})
	})
	return result
}

// every is how often progress is shown.
func every(terminal bool) time.Duration {
	if terminal {
		return 200 * time.Millisecond
	}
	return 10 * time.Second
}
