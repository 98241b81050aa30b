package testkit

import "testing"

// Fewer is a number of repetitions: a tenth under the race detector, which looks at the order of
// things, not at how often they happen.
func Fewer(n int) int {
	if RaceEnabled {
		return n / 10
	}
	return n
}

// IfShort is how much of something a test tries: short with -short, else all of it.
func IfShort(short, all int) int {
	if testing.Short() {
		return short
	}
	return all
}
