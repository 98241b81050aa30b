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
	Breaks string  // the mistake, in one sentence
	File   string  // the file with the mistake, relative to the module's root, with slashes
	Old    string  // the text that is replaced; it has to occur exactly once in the file
	New    string  // the text with the mistake
	Seen   []World // worlds in which the mistake shows; may be empty
}

// goal is the smallest number of mutants. All have to be killed (F16).
const goal = 60

// Part is a part of the protocol.
type Part string

// The parts, in the order of the lists.
const (
	Acquiring Part = "acquire"  // the update that acquires a lock: its conditions and effects
	Answers   Part = "answers"  // answers that are lost, late or doubled, and cancelled calls
	Renewal   Part = "renewal"  // how a lease is kept, and how its end is known
	Death     Part = "death"    // when a holder counts as dead
	Waiting   Part = "waiting"  // queues, polls and hand-overs
	Guarding  Part = "guard"    // writes that commit only while the lock is held
	Around    Part = "around"   // bundles, operators, intervals, Close
	Together  Part = "together" // permits and readers, which hold at once
)

// All returns all mutants, each list in the order of its file.
func All() []Mutant {
	return slices.Concat(acquiring(), answers(), renewal(), death(), waiting(), guarding(), around(), together())
}

// FitError means that a mutation does not fit the source any more. The source has changed, and the mutation has to be
// adapted.
type FitError struct {
	Name   string // of the mutation
	File   string
	Occurs int // how often Old occurs; 1 if New is the problem
}

func (e *FitError) Error() string {
	if e.Occurs == 1 {
		return fmt.Sprintf("mutants: mutation %s changes nothing in %s", e.Name, e.File)
	}
	return fmt.Sprintf("mutants: mutation %s does not fit %s any more: its old snippet occurs %d times, want once", e.Name, e.File, e.Occurs)
}

// Apply returns source with the mistake. If the mutation does not fit it, the error is a *FitError.
func (m *Mutant) Apply(source []byte) ([]byte, error) {
	n := bytes.Count(source, []byte(m.Old))
	if m.Old == "" || n != 1 || m.Old == m.New {
		return nil, &FitError{Name: m.Name, File: m.File, Occurs: n}
	}
	return bytes.Replace(source, []byte(m.Old), []byte(m.New), 1), nil
}
