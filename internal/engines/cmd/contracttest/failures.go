package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// failures writes the output of go test to out, and keeps the lines about failures. repeat prints these once more. A hosted CI often shows
// only the end of a long output, and a failure can be anywhere in it.
type failures struct {
	out  io.Writer
	rest []byte   // the beginning of a line whose end has not come yet
	pkg  []string // the lines of the package that prints
	kept []string
}

// atBegin and atEnd are how many lines of a failure are kept. Its reason is mostly among the last ones.
const atBegin, atEnd = 15, 20

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

// line adds a line. The last line of a package tells whether it failed. go test prints no other line of a package that passed.
func (f *failures) line(l string) {
	if f.pkg = append(f.pkg, l); !begins(l, "ok  \t", "?   \t", "FAIL\t") {
		return
	}
	list, failed := parts(f.pkg), begins(l, "FAIL\t")
	if failed && len(list) == 0 { // such as a TestMain that exits
		list = [][]string{f.pkg[:len(f.pkg)-1]}
	}
	for _, part := range list {
		if left := len(part) - atBegin - atEnd; left > 1 {
			part = append(append(part[:atBegin:atBegin], fmt.Sprintf("    … %d lines", left)), part[len(part)-atEnd:]...)
		}
		f.kept = append(f.kept, part...)
	}
	if f.pkg = nil; failed {
		f.kept = append(f.kept, l)
	}
}

// parts are the failures among the lines of a package: of a test, with what it has logged, or of the whole package.
func parts(lines []string) (list [][]string) {
	open, ofTest := false, false
	for _, l := range lines {
		test := begins(strings.TrimLeft(l, " "), "--- FAIL")
		switch {
		case test || begins(l, "panic:", "fatal error:", "WARNING: DATA RACE", "# "):
			list = append(list, nil)
			open, ofTest = true, test && !strings.Contains(l, ": Example") // what an example has printed is not indented
		case begins(strings.TrimLeft(l, " "), "--- ", "=== ") || begins(l, "FAIL", "ok  \t", "?   \t") || ofTest && !begins(l, " "):
			open = false // what follows was printed by other tests
		}
		if open {
			list[len(list)-1] = append(list[len(list)-1], l)
		}
	}
	return list
}

func begins(l string, prefixes ...string) bool {
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
		fmt.Fprintf(f.out, "\nThe failures once more:\n%s\n", strings.Join(f.kept, "\n"))
	}
}
