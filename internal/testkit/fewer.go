package testkit

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Fewer returns the number of repetitions: n, or a tenth with -short and under the race detector. The race detector
// checks the order of accesses, and does not need many repetitions. `make proof` makes all of them.
func Fewer(n int) int {
	if RaceEnabled || testing.Short() {
		return n / 10
	}
	return n
}

// IfShort returns short if tests run with -short, otherwise all.
func IfShort(short, all int) int {
	if testing.Short() {
		return short
	}
	return all
}

// Met fails a test whose random draws have not met a case. With -short there are too few draws to expect each case.
func Met(t testing.TB, times int, what string) {
	t.Helper()
	if !testing.Short() {
		assert.Positive(t, times, "not met: %s", what)
	}
}
