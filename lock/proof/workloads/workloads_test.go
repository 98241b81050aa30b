// Package workloads has tests of locks in several uses, under all faults: money under several locks, leaders,
// intervals, queues, wrong clocks, rows that disappear. Only the negative twins, which leave out the lock, go wrong.
package workloads

import (
	"testing"

	"github.com/mortise-go/mortise/internal/proof/sim/simtest"
	"github.com/mortise-go/mortise/internal/testkit"
)

// Money is neither made nor lost, at any time.
func TestBank_KeepsItsMoney(t *testing.T) {
	o := simtest.Play(t, "bank", 20)
	testkit.Check(t, "bank", o.Each(o.Acknowledged, "transfers", 40), o.Each(o.Refused, "refused", 1), o.Each(o.Audits, "audits", 2), o.Each(o.Views, "views", 2), o.None())
	simtest.Twinned(t, "bank", "unguarded", 20, simtest.Finds("bank, unguarded", .5))
	simtest.Twinned(t, "bank", "one-lock", 20, simtest.Finds("bank, one of two accounts locked", .5))
	simtest.Twinned(t, "bank", "one-by-one", 20, simtest.Finds("bank, views row by row", .5))
}

// The fences of leaders only grow, in the table and in any resource that compares them.
func TestLeader_FencesGrow(t *testing.T) {
	o := simtest.Play(t, "leader", 24)
	testkit.Check(t, "leaders", o.Each(o.Acknowledged, "lines", 100), o.Each(o.Refused, "refused", 1), o.None())
	simtest.Twinned(t, "leader", "uncompared", 24, simtest.Finds("leaders, fences not compared", .5))
	simtest.Twinned(t, "leader", "unguarded", 24, simtest.Finds("leaders, log not guarded", .5))
}

// The same while a change of settings is deployed.
func TestLeader_FencesGrowWhileSettingsDiffer(t *testing.T) {
	o := simtest.Play(t, "deployment", 12)
	testkit.Check(t, "leaders with other settings", o.Each(o.Acknowledged, "lines", 100), o.Each(o.Refused, "refused", 1), o.None())
	simtest.Twinned(t, "deployment", "unguarded", 12, simtest.Finds("leaders with other settings, log not guarded", .3))
}

// What the runs of intervals commit is applied once each, and no interval is left out.
func TestEvery_RunsIntervalsOnceWhateverFails(t *testing.T) {
	o := simtest.Play(t, "every", 32)
	testkit.Check(t, "every", o.Each(o.Acknowledged, "intervals", 10), o.Each(o.Audits, "that had to be run", 3), o.None())
	simtest.Twinned(t, "every", "apart", 32, simtest.Finds("every, apart from the record", .2))
	simtest.Twinned(t, "every", "forgetful", 16, simtest.Finds("every, some runs do nothing", .3))
}

// Waiters of a process are served in their order, and there is one holder at a time.
func TestQueue_IsServedInOrder(t *testing.T) {
	o := simtest.Play(t, "queue", 24)
	testkit.Check(t, "queue", o.Each(o.Acknowledged, "served of 216", 200), o.Each(o.Handed, "handed over", 100), o.Each(o.Audits, "alone inside", 50), o.None())
	simtest.Twinned(t, "queue", "apart", 24, func(t *testing.T, twin simtest.Sum) {
		testkit.Check(t, "queue, each process has its own lock", twin.Says("was given out after fence", .8),
			twin.Says("was let in while", .4)) // half of the worlds check this
	})
	simtest.Twinned(t, "queue", "greedy", 12, simtest.Finds("queue, processes do not give way", .5))
	simtest.Twinned(t, "queue", "unordered", 12, simtest.Finds("queue, no line", .8))
}

// A lease that is shorter than some reads is taken from nobody who is inside.
func TestBrief_LeasesAreTakenFromNobody(t *testing.T) {
	o := simtest.Play(t, "brief", 12)
	testkit.Check(t, "brief", o.Each(o.Acknowledged, "served of 216", 200), o.Each(o.Audits, "alone inside", 200), o.None())
	simtest.Twinned(t, "brief", "apart", 12, func(t *testing.T, twin simtest.Sum) {
		testkit.Check(t, "brief, each process has its own lock", twin.Says("was given out after fence", .8), twin.Says("was let in while", .8))
	})
}

// Clients are served in the order in which they came, in whichever process. A process passes the lock to its own
// goroutines only so many times in a row. A dead process delays the others by one lease, once.
func TestLine_IsFair(t *testing.T) {
	o := simtest.Play(t, "fair", 24)
	testkit.Check(t, "fair", o.Each(o.Acknowledged, "turns of 300", 200), o.Each(o.Handed, "passed on", 50), o.Each(o.Audits, "first places looked at", 50), o.None())
	simtest.Twinned(t, "fair", "overtakes", 12, simtest.Finds("fair, the last one overtakes", .8))
	simtest.Twinned(t, "fair", "greedy", 12, simtest.Finds("fair, processes do not give way", .5))
	simtest.Twinned(t, "fair", "tardy", 12, simtest.Finds("fair, some holders do nothing", .3)) // half of the worlds check this
}

// Locks that are acquired together cause no deadlock, in whatever order they are named, and every caller is served.
func TestGather_PairsAreServedWithoutDeadlock(t *testing.T) {
	o := simtest.Play(t, "gather", 24)
	testkit.Check(t, "gather", o.Each(o.Acquired, "pairs of 96", 60), o.Each(o.Acknowledged, "writes", 90), testkit.Exactly(o.Lost, "lost", 0), testkit.Exactly(o.Twice, "applied twice", 0), o.None())
	simtest.Twinned(t, "gather", "one-by-one", 12, func(t *testing.T, twin simtest.Sum) {
		testkit.Check(t, "gather, one lock after the other", twin.Says("by two requests", .8), twin.Says("stuck: ", .2)) // unless a crash undoes it
	})
	simtest.Twinned(t, "gather", "unguarded", 24, simtest.Finds("gather, unguarded", .1))
}

// No more permits are used at once than there are, whatever happens to their holders and to their number.
func TestPermits_AreNeverTooMany(t *testing.T) {
	o := simtest.Play(t, "permits", 24)
	testkit.Check(t, "permits", o.Each(o.Acquired, "permits of 96", 50), o.Each(o.Acknowledged, "lines", 100), o.Each(o.Refused, "refused", 1), testkit.Exactly(o.Lost, "lost", 0), testkit.Exactly(o.Twice, "applied twice", 0), o.None())
	simtest.Twinned(t, "permits", "unguarded", 24, simtest.Finds("permits, unguarded", .5))
	simtest.Twinned(t, "permits", "one-more", 12, simtest.Finds("permits, one more than is told", .5))
}

// No reader sees a half-written pair.
func TestReaders_SeeWholePairs(t *testing.T) {
	o := simtest.Play(t, "readers", 24)
	testkit.Check(t, "readers", o.Each(o.Acknowledged, "writes and readings", 80), o.Each(o.Refused, "refused", 1), o.Each(o.Audits, "whole pairs", 30), testkit.Exactly(o.Lost, "lost", 0), testkit.Exactly(o.Twice, "applied twice", 0), o.None())
	simtest.Twinned(t, "readers", "unguarded", 24, simtest.Finds("readers, readings not guarded", .3))
	simtest.Twinned(t, "readers", "unlocked", 12, simtest.Finds("readers, without the lock", .8))
	simtest.Twinned(t, "readers", "together", 12, simtest.Finds("readers, writers share the lock", .8))
}

// Guarded writes are exclusive, whatever the clocks show.
func TestWrongClocks_LoseNoGuardedWrites(t *testing.T) {
	o := simtest.Play(t, "clocks", 20)
	testkit.Check(t, "F11", o.Played().InFull(o.Wanted, 1000), o.Each(o.All(), "guarded writes", 100), testkit.Exactly(o.Lost, "lost", 0), testkit.Exactly(o.Twice, "applied twice", 0), o.None(),
		o.Each(o.Faults["clock jumped"], "times a clock was set", 10), o.Each(o.Faults["skewed date"], "wrong dates", 10))
	simtest.Twinned(t, "clocks", "unguarded", 20, simtest.Finds("F11, unguarded", .5))
}

// Fences do not decrease if rows of locks disappear, and time to live spares the rows of held locks.
func TestRowsDisappear_FencesDoNotDecrease(t *testing.T) {
	o := simtest.Play(t, "deletion", 24)
	testkit.Check(t, "F12", o.Each(o.Acquired, "acquisitions", 20), o.Each(o.Acknowledged, "writes", 30), testkit.Exactly(o.Lost, "lost", 0), o.Each(o.Audits, "rows held and spared", 8), o.None(),
		o.Met("deleted by time to live", "row deleted by hand", "table restored"))
	simtest.Twinned(t, "deletion", "rewound", 24, simtest.Finds("F12, fences begin at one", .5))
	simtest.Twinned(t, "deletion", "brief", 12, simtest.Finds("F12, rows of held locks expire", .3))
}
