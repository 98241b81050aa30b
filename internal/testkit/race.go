package testkit

import "testing"

// Fewer returns the number of repetitions: n, or a tenth under the race detector. The race detector checks the order
// of accesses, and does not need many repetitions.
func Fewer(n int) int {
	if RaceEnabled {
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
