//go:build !race

package testkit

// RaceEnabled reports whether the race detector is on. With it, everything takes five to ten times as long.
const RaceEnabled = false
