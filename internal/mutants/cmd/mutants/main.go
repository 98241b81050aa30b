// Command mutants breaks the lock protocol in every way of its list, one at a time, and shows
// which test notices.
//
//	mutants [-run REGEXP] [-parallel N] [-list]
//
// It is run in the module's directory. The exit code is 1 if a mutant has survived, and 2 if
// one could not be run or the tests fail without any.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"regexp"
	"runtime"
	"strings"

	"github.com/mortise-go/mortise/internal/mutants"
)

func main() { os.Exit(run()) }

func run() int {
	only := flag.String("run", "", "run the mutants whose names match `regexp`")
	parallel := flag.Int("parallel", runtime.NumCPU(), "how `many` mutants run at once")
	list := flag.Bool("list", false, "list the mutants and run none")
	flag.Parse()
	names, err := regexp.Compile(*only)
	if err != nil || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: mutants [-run REGEXP] [-parallel N] [-list]")
		flag.PrintDefaults()
		return 2
	}
	var chosen []mutants.Mutant
	for _, m := range mutants.All() {
		if names.MatchString(m.Name) {
			chosen = append(chosen, m)
		}
	}
	if *list {
		for _, m := range chosen {
			fmt.Printf("%-7s  %-36s  %-18s  %s\n", m.Part, m.Name, m.File, m.Breaks)
		}
		fmt.Println(len(chosen), "mutants")
		return 0
	}
	if len(chosen) == 0 {
		fmt.Fprintln(os.Stderr, "mutants: none has such a name")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	packages, err := suites(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	report := &mutants.Report{Out: os.Stdout, Total: len(chosen)}
	_, err = mutants.Run(ctx, mutants.Config{
		Root: ".", Mutants: chosen, Packages: packages, Parallel: *parallel, Began: report.Began, Done: report.Done,
		Flags: map[string][]string{"lock": {"-sim.seeds=30"}}, // more find more, and take longer to
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	switch survived, broken := report.Sum(); {
	case broken > 0:
		return 2
	case survived > 0:
		return 1
	}
	return 0
}

// suites are the packages whose tests have to notice: those of the locks, and the simulations
// of them.
func suites(ctx context.Context) ([]string, error) {
	list := []string{"lock"}
	if _, err := os.Stat("internal/sim"); os.IsNotExist(err) {
		return list, nil
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./internal/sim/...")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("mutants: list the simulations: %w", err)
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		_, dir, _ := strings.Cut(pkg, "/internal/")
		list = append(list, path.Join("internal", dir))
	}
	return list, nil
}
