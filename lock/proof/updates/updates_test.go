// Package updates has tests of clients that add to what they have read under a lock. No acknowledged update may be
// lost, and none may count twice.
package updates

import (
	"fmt"
	"testing"

	"github.com/mortise-go/mortise/internal/proof/sim/simtest"
	"github.com/mortise-go/mortise/internal/testkit"
)

// F1: clients that sleep beyond their leases lose no acknowledged update.
func TestLockSetGuarded(t *testing.T) {
	s := simtest.Play(t, "overslept", 1000)
	testkit.Check(t, "F1, guarded", s.Played().InFull(s.Wanted, 1000), testkit.Exactly(s.Lost, "acknowledged updates lost", 0), s.Each(s.Refused, "writes of stale holders refused", 1))
}

// F2: the same without the guard loses updates, so there was something to lose.
func TestLockSetUnguarded(t *testing.T) {
	simtest.Twinned(t, "overslept", "unguarded", 100, func(t *testing.T, s simtest.Sum) {
		lost := testkit.AtLeast(100*float64(s.Lost)/float64(s.Acknowledged), "% of acknowledged updates lost", 20.1)
		if s.Runs < testkit.Enough { // too few for a share
			lost = testkit.AtLeast(s.Lost, "acknowledged updates lost", 1)
		}
		testkit.Check(t, "F2, not guarded", lost)
	})
}

// The same as F1, under all other faults.
func TestFaults_AroundALockSetLoseNothing(t *testing.T) {
	s := simtest.Play(t, "lockset", 100)
	testkit.Check(t, "F1, under faults", s.Played(), testkit.Exactly(s.Lost, "acknowledged updates lost", 0), s.Each(s.AllFaults(), "faults", 1))
	simtest.Twinned(t, "lockset", "unguarded", 20, simtest.Finds("F1, under faults and not guarded", .8))
}

// F15: an addition under a lock counts once, also if transactions meet conflicts again and again. A transaction is
// sent as often as necessary.
func TestCounter_AddsOnce(t *testing.T) {
	o := simtest.Play(t, "counter", 18)
	testkit.Check(t, "F15", o.Each(o.All(), "transactions", 560).InFull(560*o.Runs, 10_000),
		testkit.AtLeast(100*float64(o.Conflicts)/float64(o.Transactions), fmt.Sprintf("%% of the %d transactions sent met a conflict", o.Transactions), 30),
		testkit.Exactly(o.Lost, "lost", 0), testkit.Exactly(o.Twice, "applied twice", 0), o.None())
	simtest.Twinned(t, "counter", "anew", 8, simtest.Finds("F15, repeated as new transactions", .5))
	simtest.Twinned(t, "counter", "unguarded", 8, simtest.Finds("F15, not guarded", .5))
}
