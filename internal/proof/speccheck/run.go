// Package speccheck checks the specification of the lock protocol, which is the models in
// lock/spec, with Spin: exhaustively, within the bounds of each run.
//
// Some runs are the protocol as it is, and have to hold. The others are negative twins: they
// replace one rule, and the promise that rests on it has to break.
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
	Deep   bool     // within larger bounds: takes longer, and is made on request
}

// Stuck is the promise that breaks when a process can never go on. Spin calls that an invalid
// end state.
const Stuck = "nobody waits for ever"

// Twin reports whether something has to break.
func (r Run) Twin() bool { return r.Breaks != "" }

// looksForStuck reports whether the model is made to be searched for processes that cannot go
// on. Those with a clock are not: time ends in them.
func (r Run) looksForStuck() bool {
	return !slices.Contains([]string{fixed, session, rowLife}, r.Model)
}

// source is the text that Spin is given.
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

// What a run can show.
const (
	Undecided  Verdict = iota // the search has not ended, and says nothing
	Expected                  // it held, or the twin broke what it has to break
	Unexpected                // a promise broke that has to hold, or the twin's did not
)

// Judge compares what was found with what has to be, and says in words what was wrong.
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
