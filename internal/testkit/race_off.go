//go:build !race

package testkit

// RaceEnabled reports whether the race detector is on. Everything takes five to ten times as long then.
const RaceEnabled = false
