// Package testkit has what tests of all packages share:
//
//   - Figures: measured numbers beside their goals.
//   - Whether the race detector is on, and how much a test does then, and with -short.
//   - Repetitions (go test -count): each repetition does a part of a test's work, so that each tries something else.
package testkit
