// Command speccheck checks the specification of the lock protocol with Spin. It also checks that each negative twin
// breaks what it has to break.
//
//	speccheck [-run REGEXP] [-deep] [-dir lock/spec] [-parallel N] [-memory MB] [-limit 10m] [-trace] [-list]
//
// With -trace it prints, for each run that breaks something, the shortest way to it: one line per request, in the
// order in which DynamoDB applied them.
//
// Run it in the module's directory. The exit code is 1 if a result was not as expected or shows nothing, and 2 if the
// command was called wrongly or a program is not installed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"time"

	"github.com/mortise-go/mortise/internal/cli"
	"github.com/mortise-go/mortise/internal/proof/speccheck"
)

// settings are what the command was called with.
type settings struct {
	speccheck.Config
	runs []speccheck.Run
	list bool
}

func main() {
	os.Exit(cli.Settings(flag.CommandLine, "speccheck",
		"speccheck [-run REGEXP] [-deep] [-dir lock/spec] [-parallel N] [-memory MB] [-limit 10m] [-trace] [-list]", parse).run())
}

func parse(f *flag.FlagSet, args []string) (settings, error) {
	var s settings
	only := f.String("run", "", "make the runs whose names match `regexp`")
	deep := f.Bool("deep", false, "make also the runs within larger bounds")
	f.StringVar(&s.Dir, "dir", "lock/spec", "the `directory` of the models")
	f.IntVar(&s.Parallel, "parallel", min(runtime.NumCPU(), 2), "how `many` runs are made at once")
	f.IntVar(&s.MB, "memory", 1900, "`MB` that a search may use")
	f.DurationVar(&s.Limit, "limit", 10*time.Minute, "how `long` a search may take")
	f.BoolVar(&s.Trace, "trace", false, "print the shortest path to what breaks")
	f.BoolVar(&s.list, "list", false, "list the runs and make none")
	if err := cli.Parse(f, args); err != nil {
		return s, err
	}
	names, err := regexp.Compile(*only)
	if err != nil {
		return s, fmt.Errorf("-run: %w", err)
	}
	for _, r := range speccheck.Runs() {
		if names.MatchString(r.Name) && (*deep || !r.Deep) {
			s.runs = append(s.runs, r)
		}
	}
	switch {
	case len(s.runs) == 0:
		return s, fmt.Errorf("-run: no run matches %q", *only)
	case s.Parallel < 1:
		return s, fmt.Errorf("-parallel: %d is less than 1", s.Parallel)
	case s.MB < 1:
		return s, fmt.Errorf("-memory: %d is less than 1", s.MB)
	case s.Limit <= 0:
		return s, fmt.Errorf("-limit: %v is not positive", s.Limit)
	}
	return s, nil
}

// run does what the command was called for, and returns the exit code.
func (s settings) run() int {
	if s.list {
		print(os.Stdout, s.runs)
		return 0
	}
	if err := speccheck.Installed(); err != nil {
		fmt.Fprintln(os.Stderr, "speccheck:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	report := speccheck.Report{Out: os.Stdout, Steps: s.Trace}
	s.Done = report.Done
	begun := time.Now()
	speccheck.Check(ctx, s.Config, s.runs)
	if !report.Sum(time.Since(begun)) {
		return 1
	}
	return 0
}

// print lists runs.
func print(out io.Writer, runs []speccheck.Run) {
	for _, r := range runs {
		what := "holds"
		if r.Twin() {
			what = fmt.Sprintf("breaks %q", r.Breaks)
		}
		fmt.Fprintf(out, "%-13s  %-50s  %s\n", r.Model, r.Name, what)
	}
	fmt.Fprintln(out, len(runs), "runs")
}
