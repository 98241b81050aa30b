package testkit

import (
	"flag"
	"strings"
	"sync"
	"testing"
)

// repetitions are the tests that share their work out among the repetitions of go test's
// -count. These are all of one process, and nothing else tells one from the other.
var repetitions = struct {
	sync.Mutex

	of map[string]*Run
}{of: map[string]*Run{}}

// Run is one run of a test of those that go test was told to make of it.
type Run struct {
	Number, All int // from 0, and of how many

	sums    []any // pointers to what has come of its simulations, in their order, up to now
	next    int   // which of them comes next
	running bool
}

// Repetition is the repetition that the test is in. It may be asked for as often as one likes.
func Repetition(t *testing.T) *Run {
	t.Helper()
	repetitions.Lock()
	defer repetitions.Unlock()
	r := repetitions.of[t.Name()]
	if r == nil {
		r = &Run{All: times(flag.Lookup("test.count"), flag.Lookup("test.cpu"))}
		repetitions.of[t.Name()] = r
	}
	if !r.running {
		r.running, r.next = true, 0
		t.Cleanup(func() {
			repetitions.Lock()
			defer repetitions.Unlock()
			r.Number, r.running = r.Number+1, false
		})
	}
	return r
}

// times is how often go test runs each test: -count times for each entry of -cpu.
func times(count, cpu *flag.Flag) int {
	n := 1
	if v, ok := count.Value.(flag.Getter); ok {
		if c, ok := v.Get().(uint); ok {
			n = int(max(c, 1))
		}
	}
	return n * len(strings.Split(cpu.Value.String(), ","))
}

// Enough is how many seeds goals need that are about their average, or a share of them.
const Enough = 12

// part is Share, but for the first repetition, which plays as many seeds as averages need.
func (r *Run) part(n int) (first, end int) { return r.split(n, min(n, Enough)) }

// Share is what this repetition plays of n seeds: from first to below end, at least one, and
// none that another one plays.
func (r *Run) Share(n int) (first, end int) { return r.split(n, 1) }

func (r *Run) split(n, least int) (first, end int) {
	if r.All == 1 {
		return 0, n
	}
	begin := max((n+r.All-1)/r.All, least)
	if r.Number == 0 {
		return 0, begin
	}
	others := r.All - 1
	each := max((n-begin+others-1)/others, 1)
	return begin + (r.Number-1)*each, begin + r.Number*each
}

// Sample is what a simulation has to play, and the sum of what has come of it in the
// repetitions before, to which it adds.
func Sample[S any](r *Run, n int) (sum *S, first, end int) {
	repetitions.Lock()
	defer repetitions.Unlock()
	if r.next == len(r.sums) {
		r.sums = append(r.sums, new(S))
	}
	sum = r.sums[r.next].(*S)
	r.next++
	first, end = r.part(n)
	return sum, first, end
}

// Turn says whether a case is this repetition's, of those that all share.
func (r *Run) Turn(number int) bool { return number%r.All == r.Number }
