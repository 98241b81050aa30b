package testkit

import (
	"flag"
	"strings"
	"sync"
	"testing"
)

// repetitions are the tests that share their work among the repetitions of -count. All repetitions run in one
// process, and go test does not tell a test which one it is.
var repetitions = struct {
	sync.Mutex

	of map[string]*Run
}{of: map[string]*Run{}}

// Run is one of the repetitions of a test.
type Run struct {
	Number, All int // Number counts from 0; All is how many repetitions there are

	sums    []any // pointers to the sums of its simulations so far, in their order
	next    int   // the index of the next sum
	running bool
}

// Repetition returns the repetition that the test is in. It may be called more than once.
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

// times returns how often go test runs each test: -count times for each entry of -cpu.
func times(count, cpu *flag.Flag) int {
	n := 1
	if v, ok := count.Value.(flag.Getter); ok {
		if c, ok := v.Get().(uint); ok {
			n = int(max(c, 1))
		}
	}
	return n * len(strings.Split(cpu.Value.String(), ","))
}

// Enough is how many seeds a goal needs that is about an average or a share.
const Enough = 12

// part is Share, but the first repetition plays as many seeds as averages need.
func (r *Run) part(n int) (first, end int) { return r.split(n, min(n, Enough)) }

// Share returns which of n seeds this repetition plays: from first to below end. It is at least one, and no other
// repetition plays it.
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

// Sample returns which seeds a simulation has to play, and the sum of the earlier repetitions, to which it adds.
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

// Turn reports whether a case belongs to this repetition. All repetitions share the cases.
func (r *Run) Turn(number int) bool { return number%r.All == r.Number }
