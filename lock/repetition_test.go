package lock_test

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// repetitions are the tests that share their work out among the repetitions of go test's
// -count. These are all of one process, and nothing else tells one from the other.
var repetitions = struct {
	sync.Mutex

	of map[string]*repetition
}{of: map[string]*repetition{}}

// repetition is one run of a test of those that go test was told to make of it.
type repetition struct {
	number, all int // from 0, and of how many

	sums    []any // pointers to what has come of its simulations, in their order, up to now
	next    int   // which of them comes next
	running bool
}

// repeated is the repetition that the test is in. It may be asked for as often as one likes.
func repeated(t *testing.T) *repetition {
	t.Helper()
	repetitions.Lock()
	defer repetitions.Unlock()
	r := repetitions.of[t.Name()]
	if r == nil {
		r = &repetition{all: times(flag.Lookup("test.count"), flag.Lookup("test.cpu"))}
		repetitions.of[t.Name()] = r
	}
	if !r.running {
		r.running, r.next = true, 0
		t.Cleanup(func() {
			repetitions.Lock()
			defer repetitions.Unlock()
			r.number, r.running = r.number+1, false
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

// enough is how many seeds goals need that are about their average, or a share of them.
const enough = 12

// part is share, but for the first repetition, which plays as many seeds as averages need.
func (r *repetition) part(n int) (first, end int) { return r.split(n, min(n, enough)) }

// share is what this repetition plays of n seeds: from first to below end, at least one, and
// none that another one plays.
func (r *repetition) share(n int) (first, end int) { return r.split(n, 1) }

func (r *repetition) split(n, least int) (first, end int) {
	if r.all == 1 {
		return 0, n
	}
	begin := max((n+r.all-1)/r.all, least)
	if r.number == 0 {
		return 0, begin
	}
	others := r.all - 1
	each := max((n-begin+others-1)/others, 1)
	return begin + (r.number-1)*each, begin + r.number*each
}

// sample is what a simulation has to play, and the sum of what has come of it in the
// repetitions before, to which it adds.
func sample[S any](r *repetition, n int) (sum *S, first, end int) {
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

// turn says whether a case is this repetition's, of those that all share.
func (r *repetition) turn(number int) bool { return number%r.all == r.number }

// All repetitions together play every seed once, and hardly more.
func TestRepetitionsShareTheSeeds(t *testing.T) {
	for _, c := range []struct{ n, all, first, total int }{
		{1000, 1, 1000, 1000},
		{1000, 20, 50, 1000},
		{1000, 3, 334, 1000},
		{50, 20, 12, 50},
		{5, 20, 5, 24},
		{5, 2, 5, 6},
		{1, 20, 1, 20},
	} {
		name := fmt.Sprintf("%d seeds, %d repetitions", c.n, c.all)
		next := 0
		for number := range c.all {
			r := &repetition{number: number, all: c.all}
			first, end := r.part(c.n)
			assert.Equal(t, next, first, name)
			assert.Greater(t, end, first, name)
			if number == 0 {
				assert.Equal(t, c.first, end, name)
			}
			next = end
		}
		assert.Equal(t, c.total, next, name)
	}
}

// Repetitions of a test are counted.
func TestRepetitionIsCounted(t *testing.T) {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	count, cpu := set.Uint("count", 1, ""), set.String("cpu", "", "")
	assert.Equal(t, 1, times(set.Lookup("count"), set.Lookup("cpu")))
	*count, *cpu = 20, "1,2"
	assert.Equal(t, 40, times(set.Lookup("count"), set.Lookup("cpu")))
	var r *repetition
	number := 0
	t.Run("one", func(t *testing.T) {
		r = repeated(t)
		assert.Same(t, r, repeated(t))
		assert.Less(t, r.number, r.all)
		number = r.number
	})
	assert.Equal(t, number+1, r.number)
}
