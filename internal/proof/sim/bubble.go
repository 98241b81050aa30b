package sim

import (
	"os"
	"runtime/debug"
	"testing"
)

// Bubble calls f with what virtual time needs outside of tests, a *testing.T, and ends the
// program with the code that f returns. Nothing is printed, unless the T has failed: then
// what it has to say, and the code is at least 1.
//
// Worlds may run side by side, each in a t.Run of its own. The program's flags have to be
// parsed before, or package testing would do it.
func Bubble(f func(t *testing.T) int) {
	debug.SetGCPercent(800) // worlds are small, made by the thousand, and half of the time would go into looking through them
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "sim", F: func(t *testing.T) {
		if code := f(t); !t.Failed() {
			os.Exit(code)
		}
	}}}, nil, nil)
}
