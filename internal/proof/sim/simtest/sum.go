package simtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/mortise-go/mortise/internal/proof/sim"
	"github.com/mortise-go/mortise/internal/testkit"
)

// Sum is the result of many runs.
type Sum struct {
	sim.Tally

	Wanted int            // seeds that are to be played
	Runs   int            // seeds that were played
	Faults map[string]int // by kind

	Transactions, Conflicts int // TransactWriteItems, and those that were cancelled because of a conflict

	requests int
	virtual  float64        // in hours
	bad      int            // runs with violations
	shown    map[string]int // runs in which each text that was looked for was found
}

// add adds a run.
func (s *Sum) add(r sim.Result, shows []string) {
	if s.Runs == 0 {
		s.shown, s.Faults = map[string]int{}, map[string]int{}
	}
	s.Add(r.Tally)
	s.Runs++
	s.requests += r.Requests
	s.virtual += r.Virtual.Hours()
	for kind, hits := range r.Faults {
		s.Faults[kind] += hits
	}
	s.Transactions += r.Transactions
	s.Conflicts += r.Conflicts
	if len(r.Violations) > 0 {
		s.bad++
	}
	for _, text := range shows {
		s.shown[text] += 0 // so that there is a key also if it is never found
		if r.Says(text) {
			s.shown[text]++
		}
	}
}

// AllFaults returns the number of all faults.
func (s *Sum) AllFaults() (all int) {
	for _, hits := range s.Faults {
		all += hits
	}
	return all
}

// Met requires that each of these kinds of faults has happened. If tests should do less, there are too few worlds to expect that.
func (s *Sum) Met(kinds ...string) testkit.Measure {
	rarest := slices.MinFunc(kinds, func(a, b string) int { return cmp.Compare(s.Faults[a], s.Faults[b]) })
	unit := fmt.Sprintf("times %q", rarest)
	if len(kinds) > 1 {
		unit += fmt.Sprintf(", the rarest of %d kinds of faults", len(kinds))
	}
	return testkit.AtLeast(s.Faults[rarest], unit, testkit.IfSmall(0, 1))
}

// Played requires that all wanted seeds were played.
func (s *Sum) Played() testkit.Measure { return testkit.AtLeast(s.Runs, "seeds", s.Wanted) }

// None requires that no run has violations.
func (s *Sum) None() testkit.Measure {
	return testkit.Exactly(s.bad, fmt.Sprintf("of %d runs with violations", s.Runs), 0)
}

// Found requires that the violations for which a twin is there were found in a share of the runs. If there are
// several, the rarest one counts.
func (s *Sum) Found(goal float64) testkit.Measure {
	return s.share(s.rarest(), goal)
}

func (s *Sum) rarest() (runs int) {
	if len(s.shown) > 0 {
		runs = slices.Min(slices.Collect(maps.Values(s.shown)))
	}
	return runs
}

// Says requires that violations with this text were found in a share of the runs.
func (s *Sum) Says(text string, goal float64) testkit.Measure {
	return s.share(s.shown[text], goal)
}

func (s *Sum) share(shown int, goal float64) testkit.Measure {
	if s.Runs < testkit.Enough { // too few runs for a share
		return testkit.AtLeast(shown, fmt.Sprintf("of %d runs found", s.Runs), 1)
	}
	return testkit.AtLeast(100*float64(shown)/float64(s.Runs), fmt.Sprintf("%% of %d runs found", s.Runs), 100*goal)
}

// Each requires a number of things for each run.
func (s *Sum) Each(got int, unit string, goal int) testkit.Measure {
	return testkit.AtLeast(got, unit, goal*s.Runs)
}
