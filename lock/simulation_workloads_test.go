package lock_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/sim"
)

// workload is one that replaying finds.
func workload(t *testing.T, name string) sim.Workload {
	t.Helper()
	load, err := sim.WorkloadNamed(name)
	require.NoError(t, err)
	return load
}

// play runs a workload for a test that is made for n seeds.
func play(t *testing.T, name string, n int) summary {
	t.Helper()
	return simulate(t, seeds(n), workload(t, name))
}

// twinned runs a negative twin of a workload.
func twinned(t *testing.T, name, twin string, n int) summary {
	t.Helper()
	load, with, err := workload(t, name).Twin(twin)
	require.NoError(t, err)
	return simulate(t, seeds(n), load, with.Shows...)
}

// none says that no run has violations.
func (s *summary) none() measure {
	return exactly(s.bad, fmt.Sprintf("of %d runs with violations", s.runs), 0)
}

// found is the share of runs in which a twin's checker finds the violations that it is there
// for; of several, those that it finds most rarely.
func (s *summary) found(goal float64) measure {
	return s.share(slices.Min(slices.Collect(maps.Values(s.shown))), goal)
}

// says is the share of runs in which a twin's checker finds violations with a text.
func (s *summary) says(text string, goal float64) measure {
	return s.share(s.shown[text], goal)
}

func (s *summary) share(shown int, goal float64) measure {
	if s.runs < enough { // of which a share would tell little
		return atLeast(shown, fmt.Sprintf("of %d runs found", s.runs), 1)
	}
	return atLeast(100*float64(shown)/float64(s.runs), fmt.Sprintf("%% of %d runs found", s.runs), 100*goal)
}

// each is a number of things with a goal for each run.
func (s *summary) each(got int, unit string, goal int) measure {
	return atLeast(got, unit, goal*s.runs)
}

// What is added under a lock is added once, also where transactions keep meeting others. A
// transaction is one for its caller: it is sent as often as it takes.
func TestCounterAddsOnce(t *testing.T) {
	o := play(t, "counter", 16)
	figure(t, "F15", o.each(o.All(), "transactions", 625).inFull(625*o.runs, 10_000),
		atLeast(100*float64(o.conflicts)/float64(o.transactions), fmt.Sprintf("%% of the %d transactions sent met a conflict", o.transactions), 30),
		exactly(o.Lost, "lost", 0), exactly(o.Twice, "applied twice", 0), o.none())
	twin := twinned(t, "counter", "anew", 8)
	figure(t, "F15, repeated as new transactions", twin.found(.5))
	twin = twinned(t, "counter", "unguarded", 8)
	figure(t, "F15, not guarded", twin.found(.5))
}

// Money is neither made nor lost, at no time.
func TestBankKeepsItsMoney(t *testing.T) {
	o := play(t, "bank", 20)
	figure(t, "bank", o.each(o.Acknowledged, "transfers", 40), o.each(o.Refused, "refused", 1), o.each(o.Audits, "audits", 2), o.none())
	twin := twinned(t, "bank", "unguarded", 20)
	figure(t, "bank, unguarded", twin.found(.5))
	twin = twinned(t, "bank", "one-lock", 20)
	figure(t, "bank, one of two accounts locked", twin.found(.5))
}

// Fences of leaders only grow, in the table and wherever they are compared.
func TestLeadersFencesGrow(t *testing.T) {
	o := play(t, "leader", 24)
	figure(t, "leaders", o.each(o.Acknowledged, "lines", 100), o.each(o.Refused, "refused", 1), o.none())
	twin := twinned(t, "leader", "uncompared", 24)
	figure(t, "leaders, fences not compared", twin.found(.5))
	twin = twinned(t, "leader", "unguarded", 24)
	figure(t, "leaders, log not guarded", twin.found(.5))
}

// What the runs of intervals commit is applied once each, and no interval is forgotten.
func TestEveryIntervalOnceWhateverFails(t *testing.T) {
	o := play(t, "every", 32)
	figure(t, "every", o.each(o.Acknowledged, "intervals", 10), o.each(o.Audits, "that had to be run", 3), o.none())
	twin := twinned(t, "every", "apart", 32)
	figure(t, "every, apart from the record", twin.found(.2))
	twin = twinned(t, "every", "forgetful", 16)
	figure(t, "every, some runs do nothing", twin.found(.3))
}

// Waiters of a process are served as they came, and nobody is inside with somebody else.
func TestQueueIsServedInOrder(t *testing.T) {
	o := play(t, "queue", 24)
	figure(t, "queue", o.each(o.Acknowledged, "served of 216", 200), o.each(o.Handed, "handed over", 100), o.each(o.Audits, "alone inside", 50), o.none())
	twin := twinned(t, "queue", "apart", 24)
	figure(t, "queue, each process has its own lock", twin.says("was given out after fence", .8),
		twin.says("was let in while", .4)) // half of the worlds judge who is inside
	twin = twinned(t, "queue", "greedy", 12)
	figure(t, "queue, processes do not give way", twin.found(.5))
	twin = twinned(t, "queue", "unordered", 12)
	figure(t, "queue, no line", twin.found(.8))
}

// Whatever the clocks say, guarded writes are exclusive.
func TestWrongClocks(t *testing.T) {
	o := play(t, "clocks", 20)
	figure(t, "F11", o.played().inFull(o.wanted, 1000), o.each(o.All(), "guarded writes", 100), exactly(o.Lost, "lost", 0), exactly(o.Twice, "applied twice", 0), o.none(),
		o.each(o.faults["clock jumped"], "times a clock was set", 10), o.each(o.faults["skewed date"], "wrong dates", 10))
	twin := twinned(t, "clocks", "unguarded", 20)
	figure(t, "F11, unguarded", twin.found(.5))
}

// Fences do not decrease where rows of locks disappear, and time to live spares those of locks
// that are held.
func TestRowsDisappear(t *testing.T) {
	o := play(t, "deletion", 24)
	figure(t, "F12", o.each(o.Acquired, "acquisitions", 20), o.each(o.Acknowledged, "writes", 30), exactly(o.Lost, "lost", 0), o.each(o.Audits, "rows held and spared", 8), o.none(),
		o.met("deleted by time to live", "row deleted by hand", "table restored"))
	twin := twinned(t, "deletion", "rewound", 24)
	figure(t, "F12, fences begin at one", twin.found(.5))
	twin = twinned(t, "deletion", "brief", 12)
	figure(t, "F12, rows of held locks expire", twin.found(.3))
}

// Worlds that have shown a mistake once, in the source of that time (see TESTING.md), show none.
func TestSeedsThatFoundMistakes(t *testing.T) {
	lazily(t)
	list := []seeded{}
	for _, found := range []struct {
		name  string
		seeds []uint64
	}{
		{"register", []uint64{32, 132}},
		{"queue", []uint64{35, 61, 457, 110, 146, 318, 488}},
		{"deletion", []uint64{150, 276, 777}},
		{"versions", []uint64{1, 3, 4}},
		{"unique", []uint64{319, 363}},
	} {
		for _, seed := range found.seeds {
			list = append(list, seeded{workload(t, found.name), seed})
		}
	}
	first, end := repeated(t).share(len(list)) // of a list that has no end
	if raceEnabled {                           // which makes each ten times as long
		end = min(end, first+3)
	}
	side(t, list[min(first, len(list)):min(end, len(list))], func(t *testing.T, w seeded) { w.play(t, 1) })
}
