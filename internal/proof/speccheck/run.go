// Package speccheck checks the specification of the lock protocol, the models in lock/spec, with Spin. The search is
// exhaustive within the bounds of each run.
//
// Some runs are the protocol as it is, and every promise has to hold. The others are negative twins: they replace one
// rule, and the promise that depends on it has to break.
package speccheck

import (
	"fmt"
	"slices"
	"strings"
)

// Run is one check of a model.
type Run struct {
	Name   string   // what is checked, or which mistake is made
	Model  string   // a file of lock/spec
	Bounds []string // macros of the model: "CLIENTS 3"
	Rules  []string // what replaces rules of the model: "guard(t, f) (line[0] == (t))"
	Breaks string   // the promise that has to break; empty if all have to hold
	Deep   bool     // with larger bounds: it takes longer, and runs on request only
}

// Stuck is the promise that breaks when a process can never continue. Spin calls that an invalid end state.
const Stuck = "nobody waits for ever"

// Twin reports whether a promise has to break.
func (r Run) Twin() bool { return r.Breaks != "" }

// looksForStuck reports whether the model is searched for processes that can never continue. Models with a clock are
// not: their time ends.
func (r Run) looksForStuck() bool {
	return !slices.Contains([]string{fixed, session, rowLife}, r.Model)
}

// source returns the text for Spin.
func (r Run) source() string {
	var b strings.Builder
	for _, macro := range append(r.Bounds, r.Rules...) {
		fmt.Fprintf(&b, "#define %s\n", macro)
	}
	fmt.Fprintf(&b, "#include %q\n", r.Model)
	return b.String()
}

// Verdict is what a run has shown.
type Verdict int

// The verdicts.
const (
	Undecided  Verdict = iota // the search has not ended, and shows nothing
	Expected                  // the run held, or the twin broke what it has to break
	Unexpected                // a promise broke that has to hold, or a twin did not break its promise
)

// Judge compares an outcome with the expected one, and describes what was wrong.
func (r Run) Judge(o Outcome) (Verdict, string) {
	switch {
	case o.Incomplete != "":
		return Undecided, "says nothing: " + o.Incomplete
	case o.Broken == r.Breaks:
		return Expected, ""
	case o.Broken == "":
		return Unexpected, fmt.Sprintf("holds, but has to break %q", r.Breaks)
	case r.Twin():
		return Unexpected, fmt.Sprintf("breaks %q, but has to break %q", o.Broken, r.Breaks)
	}
	return Unexpected, fmt.Sprintf("breaks %q", o.Broken)
}
