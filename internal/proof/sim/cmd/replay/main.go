// Command replay runs one seed of a simulated world and shows what happened.
//
//	replay -seed N [-workload lockset] [-twin[=name]] [-requests] [-from 10s -to 20s] [-width 120]
//	replay -digest [-seeds 0-9] [-workload lockset] [-twin[=name]]
//
// It prints a description of the world, a picture of which client held which lock when, the events, and the result.
// With -digest it prints only a fingerprint of the history of each workload and seed. The exit code is 1 if there
// were violations, and 2 if the command was called wrongly.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/term"

	"github.com/mortise-go/mortise/internal/cli"
	"github.com/mortise-go/mortise/internal/proof/sim"
)

// settings are what the command was called with.
type settings struct {
	seeds    cli.Seeds
	loads    []sim.Workload
	twin     twin
	rounds   float64
	digest   bool
	requests bool
	from, to time.Duration
	width    int
}

func main() {
	s := cli.Settings(flag.CommandLine, "replay", // which sim.Bubble wants parsed
		"replay -seed N [flags]: play a simulated world and show what happened\nreplay -digest [flags]: print fingerprints of histories", parse)
	sim.Bubble(func(t *testing.T) int {
		out := bufio.NewWriter(os.Stdout)
		defer out.Flush()
		if s.digest {
			s.digests(t, out)
			return 0
		}
		return s.show(t, out)
	})
}

func parse(f *flag.FlagSet, args []string) (settings, error) {
	var s settings
	seed := f.Uint64("seed", 0, "what decides everything")
	f.Var(&s.seeds, "seeds", "the `first-last` seeds, for -digest")
	load := f.String("workload", "", "its `name`: "+strings.Join(sim.WorkloadNames(), ", ")+"; defaults to lockset, and with -digest to all")
	f.Var(&s.twin, "twin", "run the workload without what it checks, as its twin of this `name` or, without one, as the first: violations are what has to come")
	f.Float64Var(&s.rounds, "rounds", 1, "how many of its rounds the workload plays, as a `share`: of more than 1, it goes on for longer")
	f.BoolVar(&s.digest, "digest", false, "print fingerprints of histories")
	f.BoolVar(&s.requests, "requests", false, "list requests, too")
	f.DurationVar(&s.from, "from", 0, "show what happened from then on, in virtual time")
	f.DurationVar(&s.to, "to", 0, "show what happened until then")
	f.IntVar(&s.width, "width", 0, "in `columns`; defaults to the terminal's, or 120")
	if err := cli.Parse(f, args); err != nil {
		return s, err
	}
	if err := s.goTogether(f); err != nil {
		return s, err
	}
	if !cli.Given(f)["seeds"] {
		s.seeds = cli.Seeds{First: *seed, Last: *seed}
	}
	switch {
	case !(s.rounds > 0 && s.rounds <= 100): // also if it is NaN
		return s, fmt.Errorf("-rounds: %g is not more than 0 and at most 100", s.rounds)
	case s.from < 0 || s.to < 0 || s.to > 0 && s.to < s.from:
		return s, fmt.Errorf("-from %v -to %v is no span of time", s.from, s.to)
	case s.width < 0 || s.width > 0 && s.width < 40:
		return s, fmt.Errorf("-width: %d is less than 40", s.width)
	case s.width == 0:
		s.width = width()
	}
	if *load == "" {
		if s.loads = sim.Workloads(); !s.digest {
			*load = "lockset"
		}
	}
	if *load != "" {
		l, err := sim.WorkloadNamed(*load)
		if err != nil {
			return s, err
		}
		s.loads = []sim.Workload{l}
	}
	if !s.twin.wanted {
		return s, nil
	}
	for i, l := range s.loads {
		var err error
		if s.loads[i], _, err = l.Twin(s.twin.name); err != nil {
			return s, err
		}
	}
	return s, nil
}

// twin is the flag that selects a twin. Without a value it selects the first one.
type twin struct {
	wanted bool
	name   string
}

func (*twin) IsBoolFlag() bool { return true }

func (w *twin) String() string { return w.name }

// Set implements flag.Value.
func (w *twin) Set(name string) error {
	if wanted, err := strconv.ParseBool(name); err == nil {
		*w = twin{wanted: wanted}
	} else {
		*w = twin{wanted: true, name: name}
	}
	return nil
}

// goTogether returns an error if the given flags cannot be combined.
func (s settings) goTogether(f *flag.FlagSet) error {
	given := cli.Given(f)
	if given["seeds"] && !s.digest {
		return errors.New("-seeds goes with -digest; one seed is shown at a time")
	}
	if given["seeds"] && given["seed"] {
		return errors.New("-seed does not go with -seeds")
	}
	for _, name := range []string{"requests", "from", "to", "width"} {
		if given[name] && s.digest {
			return fmt.Errorf("-%s does not go with -digest, which shows no history", name)
		}
	}
	return nil
}

// width returns the width of the terminal.
func width() int {
	if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && w >= 40 {
		return w
	}
	return 120
}

func (s settings) digests(t *testing.T, out io.Writer) {
	for _, l := range s.loads {
		for seed := range s.seeds.All() {
			r := l.Play(t, sim.Options{Seed: seed, Rounds: s.rounds, History: true})
			fmt.Fprintln(out, l.Name, seed, r.Digest())
		}
	}
}

// show runs a seed and shows it.
func (s settings) show(t *testing.T, out io.Writer) int {
	l := s.loads[0]
	r := l.Play(t, sim.Options{Seed: s.seeds.First, Rounds: s.rounds, History: true})
	fmt.Fprintf(out, "seed %d, workload %s: %s\n", r.Seed, l.Name, l.About)
	if s.twin.wanted {
		fmt.Fprintln(out, "This is the twin: violations are what has to come.")
	}
	if s.rounds != 1 {
		fmt.Fprintf(out, "It plays %g of its rounds.\n", s.rounds)
	}
	fmt.Fprintln(out, "\nThe world:")
	for _, line := range r.Profile.Words() {
		fmt.Fprintln(out, "  "+line)
	}
	if n := stopped(r); n > 0 {
		fmt.Fprintf(out, "  the workload itself pauses or suspends its processes, %d times here\n", n)
	}
	fmt.Fprintln(out, "\nThe processes:")
	for _, e := range r.Events {
		if e.Kind == sim.Booted {
			fmt.Fprintf(out, "  p%-3d %-8s from %8.3f s: %s\n", e.Process, e.Client, e.At.Seconds(), strings.TrimPrefix(e.Text, "boots: "))
		}
	}
	picture := sim.Picture{Events: r.Events, From: s.from, To: s.to, Width: s.width}
	fmt.Fprintf(out, "\nWho held what when:\n\n%s%s\nWhat happened (seconds, process, client, worker):\n\n", picture.Legend(), picture)
	if s.from > r.Virtual {
		fmt.Fprintf(out, "Nothing: the world has ended at %.3f s.\n", r.Virtual.Seconds())
	}
	for _, e := range r.Events {
		if e.At >= s.from && (s.to == 0 || e.At <= s.to) && (s.requests || e.Kind != sim.Traffic) {
			fmt.Fprintln(out, e)
		}
	}
	fmt.Fprintf(out, "\nWhat came of it: %s %d acknowledged, %d refused, %d unanswered; %d acknowledged and lost.\n",
		l.Counts(), r.Tally.Acknowledged, r.Tally.Refused, r.Tally.Unknown, r.Tally.Lost)
	fmt.Fprintf(out, "%d requests in %v of virtual time. Faults:\n", r.Requests, r.Virtual.Round(time.Millisecond))
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		fmt.Fprintf(out, "  %6d %s\n", r.Faults[name], name)
	}
	if len(r.Violations) == 0 {
		fmt.Fprintln(out, "No violations.")
		return 0
	}
	fmt.Fprintf(out, "%d violations:\n", len(r.Violations))
	for _, v := range r.Violations {
		fmt.Fprintln(out, "  "+v)
	}
	return 1
}

// stopped returns how often the workload itself stopped processes, as opposed to the world.
func stopped(r sim.Result) int {
	n := -r.Faults["paused"] - r.Faults["suspended"]
	for _, e := range r.Events {
		if e.Kind == sim.Paused || e.Kind == sim.Suspended {
			n++
		}
	}
	return n
}
