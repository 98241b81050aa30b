// Package race tells tests whether the race detector is at work, under which everything takes five to ten
// times as long.
package race

// Fewer is a number of repetitions: a tenth under the race detector, which looks at the order of
// things, not at how often they happen.
func Fewer(n int) int {
	if Enabled {
		return n / 10
	}
	return n
}
