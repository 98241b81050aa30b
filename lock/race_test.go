//go:build race

package lock_test

const raceDetector = true
