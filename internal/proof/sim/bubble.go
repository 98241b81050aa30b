package sim

import (
	"os"
	"runtime/debug"
	"testing"
)

// Bubble calls f with a *testing.T, which virtual time needs, outside of a test. It ends the program with the code
// that f returns. If the T has failed, it prints the T's messages, and the code is at least 1. Otherwise it prints
// nothing.
//
// Worlds may run at the same time, each in a t.Run of its own. Parse the program's flags before; otherwise package
// testing parses them.
func Bubble(f func(t *testing.T) int) {
	debug.SetGCPercent(800) // worlds are small, and there are thousands: half of the time would be garbage collection
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "sim", F: func(t *testing.T) {
		if code := f(t); !t.Failed() {
			os.Exit(code)
		}
	}}}, nil, nil)
}
