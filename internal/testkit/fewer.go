package testkit

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Small reports whether tests that repeat something, or take long, should do less: with -short, and under the race detector, which checks
// the order of accesses and does not need many repetitions. `make proof` runs them in full.
func Small() bool { return RaceEnabled || testing.Short() }

// IfSmall returns small if tests should do less, otherwise full.
func IfSmall(small, full int) int {
	if Small() {
		return small
	}
	return full
}

// Fewer returns a number of repetitions: n, or a tenth of n if tests should do less.
func Fewer(n int) int { return IfSmall(n/10, n) }

// Met fails a test if its random draws never led to a case. With -short it does nothing, since there are too few draws for each case.
func Met(t testing.TB, times int, what string) {
	t.Helper()
	if !testing.Short() {
		assert.Positive(t, times, "not met: %s", what)
	}
}
