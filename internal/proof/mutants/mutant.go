package mutants

import (
	"bytes"
	"fmt"
	"slices"
)

// Mutant is one mistake that the tests have to notice.
type Mutant struct {
	Name   string  // unique; for -run and the table
	Part   Part    // of the protocol
	Breaks string  // what the mistake is, in one sentence
	File   string  // that has it, relative to the module's root, with slashes
	Old    string  // what the file says; it has to occur exactly once
	New    string  // what it says with the mistake
	Seen   []World // in which the mistake shows; may be empty
}

// goal is how many mutants there have to be at least, and all have to be killed (F16).
const goal = 60

// Part is what a mutation breaks of the protocol.
type Part string

// The parts, in the order of the lists.
const (
	Acquiring Part = "acquire"  // conditions and effects of the update that takes a lock
	Answers   Part = "answers"  // lost ones, late ones, duplicates, and cancelled calls
	Renewal   Part = "renewal"  // keeping a lease, and knowing its end
	Death     Part = "death"    // when a holder may be taken for dead
	Waiting   Part = "waiting"  // queues, polls and hand-overs
	Guarding  Part = "guard"    // writes that commit only under the lock
	Around    Part = "around"   // bundles, operators, intervals, closing
	Together  Part = "together" // permits and readers, which hold at once
)

// All are the mutations, each list in the order of its file.
func All() []Mutant {
	return slices.Concat(acquiring(), answers(), renewal(), death(), waiting(), guarding(), around(), together())
}

// FitError says that a mutation does not fit the source any more: the source has changed, and
// the mutation has to follow.
type FitError struct {
	Name   string // of the mutation
	File   string
	Occurs int // how often Old does; 1 where New is what is wrong
}

func (e *FitError) Error() string {
	if e.Occurs == 1 {
		return fmt.Sprintf("mutants: mutation %s changes nothing in %s", e.Name, e.File)
	}
	return fmt.Sprintf("mutants: mutation %s does not fit %s any more: its old snippet occurs %d times, want once", e.Name, e.File, e.Occurs)
}

// Apply returns source with the mistake. A source that it does not fit is a *FitError.
func (m *Mutant) Apply(source []byte) ([]byte, error) {
	n := bytes.Count(source, []byte(m.Old))
	if m.Old == "" || n != 1 || m.Old == m.New {
		return nil, &FitError{Name: m.Name, File: m.File, Occurs: n}
	}
	return bytes.Replace(source, []byte(m.Old), []byte(m.New), 1), nil
}
