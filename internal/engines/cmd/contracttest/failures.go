package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// failures passes the output of go test on and keeps what it says about tests that failed. Many packages print a lot:
// who looks at the end of it, which is often all that a hosted CI shows, sees which tests failed, and why.
type failures struct {
	out  io.Writer
	rest []byte // the beginning of a line whose end has not come yet
	kept []string
	more int // lines that still belong to the last failure
}

// perFailure bounds how many lines are kept after the one that names a failure.
const perFailure = 30

func (f *failures) Write(p []byte) (int, error) {
	f.rest = append(f.rest, p...)
	for {
		line, rest, whole := bytes.Cut(f.rest, []byte("\n"))
		if !whole {
			return f.out.Write(p)
		}
		f.line(string(line))
		f.rest = rest
	}
}

func (f *failures) line(l string) {
	switch {
	case startsWith(l, "--- FAIL", "panic:", "fatal error:", "WARNING: DATA RACE", "FAIL\t"):
		f.more = perFailure
	case startsWith(l, "--- ", "=== ", "ok  ", "?   ", "PASS", "FAIL"):
		f.more = 0
		return
	case f.more == 0:
		return
	default:
		f.more--
	}
	f.kept = append(f.kept, l)
}

func startsWith(l string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(l, p) {
			return true
		}
	}
	return false
}

// repeat prints what was kept.
func (f *failures) repeat() {
	if len(f.kept) > 0 {
		fmt.Fprintf(f.out, "\nthe failures once more:\n%s\n", strings.Join(f.kept, "\n"))
	}
}
