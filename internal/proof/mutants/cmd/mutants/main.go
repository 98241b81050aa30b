// Command mutants breaks the lock protocol in every way of its list, one at a time, and shows which test notices.
//
//	mutants [-run REGEXP] [-tests REGEXP] [-seeds 0-29] [-parallel N] [-record] [-list]
//	mutants -search WORKLOAD,WORKLOAD|all [-seeds 0-99] [-run REGEXP] [-parallel N]
//
// The test that has killed a mutant before runs first. -record writes down which tests those are.
//
// With -tests only those tests run, and the sum tells what they kill alone:
//
//	mutants -tests 'LockSet|Linearizable|CounterAdds|BankKeeps|LeadersFences|OnceWhatever|QueueIs|WrongClocks|RowsDisappear'
//
// With -search no tests run. The command plays worlds of the simulation with each mistake, and prints those in which
// the mistake shows. They belong into the mutant's list Seen.
//
// Run it in the module's directory. The exit code is 1 if a mutant has survived, or does not show any more in a world
// of its list. It is 2 if a mutant could not be run, or if the tests fail without a mistake. For a search it is 1 if
// nothing was found.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strings"

	"github.com/mortise-go/mortise/internal/cli"
	"github.com/mortise-go/mortise/internal/proof/mutants"
	"github.com/mortise-go/mortise/internal/proof/sim"
)

// most is the largest number of seeds that simulations in tests can play.
const most = 1_000_000

// settings are what the command was called with.
type settings struct {
	mutants  []mutants.Mutant
	tests    *regexp.Regexp // nil for all
	parallel int
	list     bool
	record   bool
	search   []string  // workloads
	seeds    cli.Seeds // of a search, or of the simulations in the tests
}

func main() {
	os.Exit(cli.Settings(flag.CommandLine, "mutants",
		"mutants [-run REGEXP] [-tests REGEXP | -search WORKLOADS] [-seeds 0-99] [-parallel N] [-record] [-list]", parse).run())
}

func parse(f *flag.FlagSet, args []string) (settings, error) {
	var s settings
	only := f.String("run", "", "run the mutants whose names match `regexp`")
	tests := f.String("tests", "", "run the tests alone whose names match `regexp`")
	f.IntVar(&s.parallel, "parallel", runtime.NumCPU(), "how `many` mutants run at once, or worlds are played")
	f.BoolVar(&s.list, "list", false, "list the mutants and run none")
	f.BoolVar(&s.record, "record", false, "write down which tests have killed the mutants, to run first the next time")
	search := f.String("search", "", "look for worlds of these `workloads` (a list with commas, or all) in which the mutants show")
	f.Var(&s.seeds, "seeds", "the `first-last` seeds to search, 0-99 if not given, or that each simulation of locks plays, 0-29")
	if err := cli.Parse(f, args); err != nil {
		return s, err
	}
	given := cli.Given(f)
	for _, pair := range [][2]string{{"list", "tests"}, {"list", "search"}, {"list", "parallel"}, {"list", "seeds"}, {"search", "tests"}, {"list", "record"}, {"search", "record"}} {
		if given[pair[0]] && given[pair[1]] {
			return s, fmt.Errorf("-%s does not go with -%s", pair[1], pair[0])
		}
	}
	if s.parallel < 1 {
		return s, fmt.Errorf("-parallel: %d is less than 1", s.parallel)
	}
	names, err := regexp.Compile(*only)
	if err != nil {
		return s, fmt.Errorf("-run: %w", err)
	}
	for _, m := range mutants.All() {
		if names.MatchString(m.Name) {
			s.mutants = append(s.mutants, m)
		}
	}
	if len(s.mutants) == 0 {
		return s, fmt.Errorf("-run: no mutant matches %q", *only)
	}
	if *tests != "" {
		if s.tests, err = regexp.Compile(*tests); err != nil {
			return s, fmt.Errorf("-tests: %w", err)
		}
	}
	if s.search, err = workloads(*search); err != nil {
		return s, fmt.Errorf("-search: %w", err)
	}
	switch {
	case given["seeds"] && s.search == nil && s.seeds.Last-s.seeds.First >= most:
		return s, fmt.Errorf("-seeds: %v are more than %d, which no test plays", &s.seeds, most)
	case given["seeds"]:
	case s.search != nil:
		s.seeds = cli.Seeds{Last: 99}
	default:
		s.seeds = cli.Seeds{Last: 29} // more seeds find more and take longer
	}
	return s, nil
}

// workloads returns the workloads named in a list with commas.
func workloads(list string) ([]string, error) {
	var names []string
	switch list {
	case "":
	case "all":
		names = sim.WorkloadNames()
	default:
		for name := range strings.SplitSeq(list, ",") {
			if _, err := sim.WorkloadNamed(name); err != nil {
				return nil, err
			}
			names = append(names, name)
		}
	}
	return names, nil
}

// run does what the command was called for, and returns the exit code.
func (s settings) run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	do := s.judge
	switch {
	case s.list:
		do = s.print
	case len(s.search) > 0:
		do = s.find
	}
	code, err := do(ctx, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return code
}

// print lists the mutants.
func (s settings) print(_ context.Context, out io.Writer) (int, error) {
	for _, m := range s.mutants {
		fmt.Fprintf(out, "%-7s  %-36s  %-18s  %s\n", m.Part, m.Name, m.File, m.Breaks)
	}
	fmt.Fprintln(out, len(s.mutants), "mutants")
	return 0, nil
}

// judge lets the tests judge the mutants.
func (s settings) judge(ctx context.Context, out io.Writer) (int, error) {
	packages, err := suites(ctx)
	if err != nil {
		return 2, err
	}
	report := &mutants.Report{Out: out, Total: len(s.mutants)}
	if s.tests != nil {
		report.Tests = s.tests.String()
	}
	results, err := mutants.Run(ctx, mutants.Config{
		Root: ".", Mutants: s.mutants, Packages: packages, Tests: s.tests, Parallel: s.parallel, Began: report.Began, Done: report.Done,
		First: mutants.Killers(), Flags: s.flags(packages),
	})
	if err != nil {
		return 2, err
	}
	if s.record {
		if err := mutants.Record("internal/proof/mutants/killers.txt", results); err != nil {
			return 2, err
		}
	}
	switch survived, broken, unseen := report.Sum(); {
	case broken > 0:
		return 2, nil
	case survived > 0, unseen > 0:
		return 1, nil
	}
	return 0, nil
}

// find looks for worlds in which the mutants show.
func (s settings) find(ctx context.Context, out io.Writer) (int, error) {
	found := 0
	err := mutants.Search{
		Root: ".", Mutants: s.mutants, Workloads: s.search, First: s.seeds.First, Last: s.seeds.Last, Parallel: s.parallel,
		Seen: func(m mutants.Mutant, one mutants.Sighting) { fmt.Fprintf(out, "%-36s  %v\n", m.Name, one) },
		Done: func(m mutants.Mutant, workload string, played, seen int) {
			fmt.Fprintf(out, "%-36s  shows in %d of %d worlds of %s\n", m.Name, seen, played, workload)
			found += seen
		},
	}.Run(ctx)
	if err == nil && found == 0 {
		return 1, nil
	}
	return 0, err
}

// suites returns the packages whose tests have to notice: those of the locks, and their simulations.
func suites(ctx context.Context) ([]string, error) {
	const prefix = "github.com/mortise-go/mortise/"
	cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./lock/...", "./internal/proof/sim/...")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("mutants: list the tests of locks: %w", err)
	}
	list := strings.Fields(string(out))
	for i, pkg := range list {
		list[i] = strings.TrimPrefix(pkg, prefix)
	}
	return list, nil
}

// flags returns the flags of packages whose tests play seeds.
func (s settings) flags(packages []string) map[string][]string {
	flags := map[string][]string{}
	for _, pkg := range packages {
		if strings.HasPrefix(pkg, "lock/proof/") {
			flags[pkg] = []string{fmt.Sprintf("-sim.from=%d", s.seeds.First), fmt.Sprintf("-sim.seeds=%d", s.seeds.Last-s.seeds.First+1)}
		}
	}
	return flags
}
