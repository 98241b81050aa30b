package testkit

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// All repetitions together play every seed once, and hardly more.
func TestRepetition_SharesTheSeeds(t *testing.T) {
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
			r := &Run{Number: number, All: c.all}
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
func TestRepetition_IsCounted(t *testing.T) {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	count, cpu := set.Uint("count", 1, ""), set.String("cpu", "", "")
	assert.Equal(t, 1, times(set.Lookup("count"), set.Lookup("cpu")))
	*count, *cpu = 20, "1,2"
	assert.Equal(t, 40, times(set.Lookup("count"), set.Lookup("cpu")))
	var r *Run
	number := 0
	t.Run("one", func(t *testing.T) {
		r = Repetition(t)
		assert.Same(t, r, Repetition(t))
		assert.Less(t, r.Number, r.All)
		number = r.Number
	})
	assert.Equal(t, number+1, r.Number)
}
