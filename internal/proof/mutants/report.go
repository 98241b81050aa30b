package mutants

import (
	"fmt"
	"io"
	"time"
)

// Report prints results as they come, one line each, and their sum.
type Report struct {
	Out   io.Writer
	Total int    // the number of results to come
	Tests string // the pattern of the tests that run; empty for all

	start time.Time
	done  int
	by    map[Verdict]int
	left  []Result // mutants that no test has killed
	seen  [2]int   // worlds in which a mistake was seen once: how many show it no more, and how many there are
}

// Began prints how the tests run without a mistake.
func (r *Report) Began(pkg string, tests int, took time.Duration) {
	r.print("%9s %s: %d tests pass without a mistake, in %v\n", "", pkg, tests, took.Round(time.Second))
}

// Done prints a result, and how long the remaining mutants may take.
func (r *Report) Done(result Result) {
	if r.by == nil {
		r.by, r.start = map[Verdict]int{}, time.Now().Add(-result.Took)
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
		r.print("%9s %s\n", "", test)
	}
	for _, s := range result.Sightings {
		r.seen[1]++
		if s.Err != nil {
			r.seen[0]++
		}
		r.print("%9s %v\n", "", s)
	}
	if result.Err != nil {
		r.print("%9s %v\n", "", result.Err)
	}
}

// Sum prints the sum. It returns how many mutants have survived, how many could not be run, and in how many worlds a
// mistake shows no more.
func (r *Report) Sum() (survived, broken, unseen int) {
	by := ""
	if r.Tests != "" {
		by = fmt.Sprintf(" by the tests that match %q alone", r.Tests)
	}
	killed := r.by[Killed] + r.by[TimedOut]
	r.print("\nF16: %d of %d mutants killed%s, %.1f %% (goal at least %d mutants, all killed by all tests); %d of them since a test hung, %d survived, %d could not be run; %v\n",
		killed, r.done, by, 100*float64(killed)/float64(max(r.done, 1)), goal, r.by[TimedOut], r.by[Survived], r.by[Broken], time.Since(r.start).Round(time.Second))
	if r.seen[1] > 0 {
		r.print("worlds in which a mistake was seen: it shows in %d of %d\n", r.seen[1]-r.seen[0], r.seen[1])
	}
	for _, result := range r.left {
		r.print("%s: %s: %s\n", result.Verdict, result.Mutant.Name, result.Mutant.Breaks)
	}
	return r.by[Survived], r.by[Broken], r.seen[0]
}

// print ignores errors: there is nobody else to report them to.
func (r *Report) print(format string, args ...any) { _, _ = fmt.Fprintf(r.Out, format, args...) }
