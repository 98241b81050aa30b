package lock_test

import (
	"cmp"
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-go/mortise/internal/sim"
)

var (
	simSeeds = flag.Int("sim.seeds", 0, "seeds of each test of simulations; 0 for as many as each is made for, where it is named with -run, a fifth otherwise, and a twentieth under -race")
	simFrom  = flag.Uint64("sim.from", 0, "the first seed")
)

// seeds is how many seeds a test tries that is made for n of them. What go test is asked for by
// name is played in full; of everything a share, which fits into the ten minutes of go test.
func seeds(n int) int {
	switch {
	case *simSeeds > 0:
		return *simSeeds
	case raceEnabled:
		return max(n/20, 5)
	case flag.Lookup("test.run").Value.String() == "":
		return min(n, max(n/5, 40))
	}
	return n
}

// lazily has garbage collected more rarely for the rest of a test: worlds are small, made by
// the thousand, and half of the time went into looking through them.
func lazily(t *testing.T) {
	before := debug.SetGCPercent(1600)
	t.Cleanup(func() { debug.SetGCPercent(before) })
}

// summary is what came of many runs.
type summary struct {
	sim.Tally

	wanted         int // seeds that there are to play
	runs, requests int
	bad            int            // runs with violations
	shown          map[string]int // runs with those that were looked for, by what they say
	virtual        float64
	faults         map[string]int // by kind

	transactions, conflicts int // TransactWriteItems, and those of them that were cancelled since they met another one
}

// simulate runs a workload once for each seed, a few at a time, and reports what it finds with the
// command that shows it; of a twin it counts in how many runs it found each of what it shows.
// Where go test is told to repeat tests, each repetition plays other seeds, and the summary is
// of all up to now. It uses no more than nine tenths of the time that go test has left, since
// others need some, and fails where that was not enough.
func simulate(t *testing.T, n int, load sim.Workload, shows ...string) summary {
	t.Helper()
	lazily(t)
	s, first, end := sample[summary](repeated(t), n)
	before := s.runs
	s.wanted += end - first
	var mu sync.Mutex
	const parts = 4
	late := func() bool { return false }
	if end, limited := t.Deadline(); limited {
		last := time.Now().Add(time.Until(end) / 10 * 9)
		late = func() bool { return time.Now().After(last) }
	}
	t.Run("seeds", func(t *testing.T) {
		for part := range parts {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for i := first + part; i < end && !late(); i += parts {
					r := load.Play(t, sim.Options{Seed: *simFrom + uint64(i)})
					mu.Lock()
					s.add(r, shows)
					mu.Unlock()
					if shows == nil || r.Broken { // what panics has found nothing
						complain(t, load, r)
					}
				}
			})
		}
	})
	if played := s.runs - before; played < end-first {
		t.Errorf("cut short after %d of %d seeds, for which there is not enough time: give go test more with -timeout, or say with -sim.seeds how many are to be played", played, end-first)
	}
	t.Logf("%d of %d runs: %d requests, %d faults, %.1f virtual hours; writes: %d acknowledged, %d refused, %d unknown", s.runs, s.wanted, s.requests, s.allFaults(), s.virtual,
		s.Acknowledged, s.Refused, s.Unknown)
	return *s
}

// complain fails for what has gone wrong in a world.
func complain(t *testing.T, load sim.Workload, r sim.Result) {
	t.Helper()
	for _, v := range r.Violations {
		t.Errorf("seed %d: %s", r.Seed, v)
	}
	if len(r.Violations) > 0 {
		t.Log(load.Replay(r.Seed))
	}
}

// add adds a run.
func (s *summary) add(r sim.Result, shows []string) {
	if s.runs == 0 {
		s.shown, s.faults = map[string]int{}, map[string]int{}
	}
	s.Add(r.Tally)
	s.runs++
	s.requests += r.Requests
	s.virtual += r.Virtual.Hours()
	for kind, hits := range r.Faults {
		s.faults[kind] += hits
	}
	s.transactions += r.Transactions
	s.conflicts += r.Conflicts
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

// allFaults is how many there were.
func (s *summary) allFaults() (all int) {
	for _, hits := range s.faults {
		all += hits
	}
	return all
}

// met says that each of some kinds of faults has happened: what nothing has met, nothing has stood.
func (s *summary) met(kinds ...string) measure {
	rarest := slices.MinFunc(kinds, func(a, b string) int { return cmp.Compare(s.faults[a], s.faults[b]) })
	unit := fmt.Sprintf("times %q", rarest)
	if len(kinds) > 1 {
		unit += fmt.Sprintf(", the rarest of %d kinds of faults", len(kinds))
	}
	return atLeast(s.faults[rarest], unit, 1)
}

// played is that as many seeds were played as had to be.
func (s *summary) played() measure { return atLeast(s.runs, "seeds", s.wanted) }

// F1: clients that sleep beyond their leases lose no update that was acknowledged.
func TestLockSetGuarded(t *testing.T) {
	s := play(t, "overslept", 1000)
	figure(t, "F1, guarded", s.played().inFull(s.wanted, 1000), exactly(s.Lost, "acknowledged updates lost", 0), atLeast(s.Refused, "writes of stale holders refused", s.runs))
}

// F2: the same without the guard shows that there was something to lose.
func TestLockSetUnguarded(t *testing.T) {
	s := twinned(t, "overslept", "unguarded", 100)
	figure(t, "F2, not guarded", s.played(), atLeast(100*float64(s.Lost)/float64(s.Acknowledged), "% of acknowledged updates lost", 20.1))
}

// The same as F1 while everything else goes wrong, too.
func TestFaultsAroundALockSet(t *testing.T) {
	s := play(t, "lockset", 100)
	figure(t, "F1, under faults", s.played(), exactly(s.Lost, "acknowledged updates lost", 0), atLeast(s.allFaults(), "faults", s.runs))
	twin := twinned(t, "lockset", "unguarded", 20)
	figure(t, "F1, under faults and not guarded", twin.found(.8))
}
