// Package testkit contains what tests of several packages share:
//
//   - Figures: measured numbers, compared with their goals.
//   - How much a test does with -short and under the race detector.
//   - Repetitions (go test -count): each one does another part of a test's work.
package testkit
