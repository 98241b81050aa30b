// Package linearizability judges histories of the simulation with porcupine.
package linearizability

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/proof/sim/simtest"
	"github.com/mortise-go/mortise/internal/testkit"
)

// F4: what clients of a lock and a register did and were told could have happened in one order: as a lock, as a
// register, and as both together. Each world has one history of 8 clients with 400 operations each, and a few more,
// since operations that have begun are completed.
func TestLinearizable(t *testing.T) {
	l := simtest.Simulate(t, simtest.Seeds(200), simtest.Workload(t, "single").Longer(8))
	testkit.Check(t, "F4", testkit.Exactly(l.Histories, "histories of a world each", l.Wanted).InFull(l.Wanted, 200), testkit.AtLeast(l.Operations/l.Histories, "operations each", 8*400),
		testkit.Exactly(l.Illegal, "not linearizable", 0), testkit.Exactly(l.Undecided, "undecided", 0))
	t.Logf("writes: %d acknowledged, %d refused, %d without an answer", l.Acknowledged, l.Refused, l.Unknown)
	assert.NotZero(t, l.Refused, "no lock was lost before a write")
	assert.NotZero(t, l.Unknown, "no answer was lost for good")
}

// Clients that use four registers in turn: 4 histories with a quarter of the operations each.
func TestLinearizableApart(t *testing.T) {
	l := simtest.Play(t, "register", 40)
	testkit.Check(t, "F4, 4 registers", testkit.Exactly(l.Histories, "histories", 4*l.Wanted), testkit.AtLeast(l.Operations/l.Runs, "operations in a world", 400),
		testkit.Exactly(l.Illegal, "not linearizable", 0), testkit.Exactly(l.Undecided, "undecided", 0))
	simtest.Twinned(t, "register", "unguarded", 12, simtest.Finds("F4, 4 registers, unguarded", .5))
}

// The negative twins of F4. Without the guard, or with a guard that accepts any holder, histories are not
// linearizable. If rows of held locks are deleted, the histories of the lock are not linearizable, since holders lose
// it although nobody else has acquired it. Those of the register still are, since the guard holds.
func TestLinearizableTwins(t *testing.T) {
	simtest.SkipTwins(t)
	for name, goals := range map[string]struct {
		lock int // % of the histories that are not linearizable as a lock
		both int // or as a lock and a register
	}{
		"unguarded": {10, 50},
		"unfenced":  {5, 30},
		"swept":     {30, 30},
	} {
		t.Run(name, func(t *testing.T) {
			load, twin, err := simtest.Workload(t, "single").Twin(name)
			require.NoError(t, err)
			l := simtest.Simulate(t, max(simtest.Seeds(20), testkit.Enough), load, twin.Shows...) // with fewer worlds, shares would tell little
			share := func(n int) float64 { return 100 * float64(n) / float64(l.Histories) }
			values := testkit.AtLeast(l.By.Register, "not as a register", 1)
			if name == "swept" {
				values = testkit.Exactly(l.By.Register, "not as a register", 0)
			}
			testkit.Check(t, "F4, "+name, testkit.Exactly(l.Histories, "histories", l.Wanted), testkit.AtLeast(share(l.By.Object), "% not linearizable", float64(goals.both)),
				testkit.AtLeast(share(l.By.Lock), "% not as a lock", float64(goals.lock)), values, testkit.Exactly(l.Undecided, "undecided", 0))
		})
	}
}
