package testkit

// Fewer is a number of repetitions: a tenth under the race detector, which looks at the order of
// things, not at how often they happen.
func Fewer(n int) int {
	if RaceEnabled {
		return n / 10
	}
	return n
}
