package mutants

import (
	"fmt"
	"io"
	"time"
)

// Report prints results as they come, a line each, and their sum.
type Report struct {
	Out   io.Writer
	Total int // how many there will be

	start time.Time
	done  int
	by    map[Verdict]int
	left  []Result // that nobody has killed
}

// Began prints how the tests do without a mistake.
func (r *Report) Began(pkg string, tests int, took time.Duration) {
	r.print("%s: %d tests pass without a mistake, in %v\n", pkg, tests, took.Round(time.Second))
	if r.start.IsZero() {
		r.start = time.Now()
	}
}

// Done prints a result, and how long the others may take.
func (r *Report) Done(result Result) {
	if r.by == nil {
		r.by = map[Verdict]int{}
		r.print("%7s  %9s  %-8s  %6s  %-7s  %-36s  %-44s  %s\n", "", "left", "verdict", "took", "part", "mutant", "first failing test", "what it breaks")
	}
	r.done++
	r.by[result.Verdict]++
	if result.Verdict == Survived || result.Verdict == Broken {
		r.left = append(r.left, result)
	}
	left := time.Since(r.start) / time.Duration(r.done) * time.Duration(r.Total-r.done)
	r.print("%3d/%3d  %9v  %-8s  %5.1fs  %-7s  %-36s  %-44s  %s\n", r.done, r.Total, left.Round(time.Second),
		result.Verdict, result.Took.Seconds(), result.Mutant.Part, result.Mutant.Name, result.Test, result.Mutant.Breaks)
	for _, test := range result.Unsteady {
		r.print("%9s %s failed, but not again or without the mistake, too\n", "", test)
	}
	if result.Err != nil {
		r.print("%9s %v\n", "", result.Err)
	}
}

// Sum prints the sum, and returns how many mutants have survived and could not be run.
func (r *Report) Sum() (survived, broken int) {
	r.print("\nF16: %d of %d mutants killed (%d of them since a test hung), %d survived, %d could not be run; %v\n",
		r.by[Killed]+r.by[TimedOut], r.done, r.by[TimedOut], r.by[Survived], r.by[Broken], time.Since(r.start).Round(time.Second))
	for _, result := range r.left {
		r.print("%s: %s: %s\n", result.Verdict, result.Mutant.Name, result.Mutant.Breaks)
	}
	return r.by[Survived], r.by[Broken]
}

// print leaves failures to whoever reads the output: nobody else can be told.
func (r *Report) print(format string, args ...any) { _, _ = fmt.Fprintf(r.Out, format, args...) }
