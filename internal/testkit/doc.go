// Package testkit is what tests of all packages share: figures, which are measured numbers beside their goals; whether the race
// detector is on; and the share that a repetition of a test (go test -count) has in its work, so that each tries something else.
package testkit
