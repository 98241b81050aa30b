package simtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/mortise-go/mortise/internal/proof/sim"
	"github.com/mortise-go/mortise/internal/testkit"
)

// Sum is what came of many runs.
type Sum struct {
	sim.Tally

	Wanted int            // seeds that there are to play
	Runs   int            // those that were played
	Faults map[string]int // by kind

	Transactions, Conflicts int // TransactWriteItems, and those of them that were cancelled since they met another one

	requests int
	virtual  float64        // hours
	bad      int            // runs with violations
	shown    map[string]int // runs with those that were looked for, by what they say
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
		s.shown[text] += 0 // a key also where it is never found
		if r.Says(text) {
			s.shown[text]++
		}
	}
}

// AllFaults is how many there were.
func (s *Sum) AllFaults() (all int) {
	for _, hits := range s.Faults {
		all += hits
	}
	return all
}

// Met says that each of some kinds of faults has happened: what nothing has met, nothing has stood.
func (s *Sum) Met(kinds ...string) testkit.Measure {
	rarest := slices.MinFunc(kinds, func(a, b string) int { return cmp.Compare(s.Faults[a], s.Faults[b]) })
	unit := fmt.Sprintf("times %q", rarest)
	if len(kinds) > 1 {
		unit += fmt.Sprintf(", the rarest of %d kinds of faults", len(kinds))
	}
	return testkit.AtLeast(s.Faults[rarest], unit, 1)
}

// Played is that as many seeds were played as had to be.
func (s *Sum) Played() testkit.Measure { return testkit.AtLeast(s.Runs, "seeds", s.Wanted) }

// None says that no run has violations.
func (s *Sum) None() testkit.Measure {
	return testkit.Exactly(s.bad, fmt.Sprintf("of %d runs with violations", s.Runs), 0)
}

// Found is the share of runs in which a twin's checker finds the violations that it is there
// for; of several, those that it finds most rarely.
func (s *Sum) Found(goal float64) testkit.Measure {
	return s.share(slices.Min(slices.Collect(maps.Values(s.shown))), goal)
}

// Says is the share of runs in which a twin's checker finds violations with a text.
func (s *Sum) Says(text string, goal float64) testkit.Measure {
	return s.share(s.shown[text], goal)
}

func (s *Sum) share(shown int, goal float64) testkit.Measure {
	if s.Runs < testkit.Enough { // of which a share would tell little
		return testkit.AtLeast(shown, fmt.Sprintf("of %d runs found", s.Runs), 1)
	}
	return testkit.AtLeast(100*float64(shown)/float64(s.Runs), fmt.Sprintf("%% of %d runs found", s.Runs), 100*goal)
}

// Each is a number of things with a goal for each run.
func (s *Sum) Each(got int, unit string, goal int) testkit.Measure {
	return testkit.AtLeast(got, unit, goal*s.Runs)
}
