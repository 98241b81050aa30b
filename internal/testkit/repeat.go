package testkit

import (
	"flag"
	"strings"
	"sync"
	"testing"
)

// repetitions are the tests that divide their work among the repetitions of -count, by name. All repetitions run in one process. They are
// counted here, since go test does not tell a test its repetition.
var repetitions = struct {
	sync.Mutex

	of map[string]*Run // by the test's name
}{of: map[string]*Run{}}

// Run is the current repetition of a test. All repetitions of the test use the same Run.
type Run struct {
	Number, All int // Number counts from 0; All is the number of repetitions

	sums    []any // pointers to the test's sums, one for each call of Sample in a repetition
	next    int   // index of the next call's sum
	running bool  // a repetition has begun and not ended
}

// Repetition returns the current repetition of the test. A test may call it more than once.
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

// Enough is the number of seeds that a goal about an average or a share needs.
const Enough = 12

// part is like Share, but the first repetition plays at least Enough seeds, or all n.
func (r *Run) part(n int) (first, end int) { return r.split(n, min(n, Enough)) }

// Share returns which of n seeds this repetition plays: from first to below end. No other repetition plays them. Each plays at least one
// seed, so the last repetitions may play seeds from n on.
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

// Sample returns which seeds of a simulation this repetition plays, and the sum of the earlier repetitions, to which the caller adds.
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

// Turn reports whether this repetition runs the case. Each case belongs to one repetition.
func (r *Run) Turn(number int) bool { return number%r.All == r.Number }
