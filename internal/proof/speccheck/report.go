package speccheck

import (
	"fmt"
	"io"
	"time"
)

// Report prints the results of runs for people.
type Report struct {
	Out   io.Writer
	Steps bool // print the path to what broke

	held, failed int // as expected: runs that hold, and twins
	states       int64
	wrong        int
}

// Done prints the result of a run.
func (r *Report) Done(one Result) {
	verdict, what := one.Run.Judge(one.Outcome)
	word := "ok  "
	switch {
	case one.Err != nil:
		word, what = "FAIL", one.Err.Error()
		r.wrong++
	case verdict != Expected:
		word = "FAIL"
		r.wrong++
	case one.Run.Twin():
		what = fmt.Sprintf("breaks %q, as it has to", one.Outcome.Broken)
		r.failed++
	default:
		what = fmt.Sprintf("holds in %s states", grouped(one.Outcome.States))
		r.held++
		r.states += one.Outcome.States
	}
	r.print("%s  %-13s  %-50s  %5.1f s  %5.0f MB  %s\n", word, one.Run.Model, one.Run.Name, one.CPU.Seconds(), one.Outcome.MB, what)
	if r.Steps {
		for i, step := range one.Steps {
			r.print("%8d  %s\n", i+1, step)
		}
	}
}

// Sum prints the sum, and reports whether everything was as expected.
func (r *Report) Sum(took time.Duration) bool {
	r.print("%d runs hold, in %s states together; %d negative twins break what they have to break; %s\n",
		r.held, grouped(r.states), r.failed, took.Round(time.Second))
	if r.wrong > 0 {
		r.print("%d runs are not as expected\n", r.wrong)
	}
	return r.wrong == 0
}

func (r *Report) print(format string, args ...any) { _, _ = fmt.Fprintf(r.Out, format, args...) }

// grouped writes a number in groups of three digits.
func grouped(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
