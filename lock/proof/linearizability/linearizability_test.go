// Package linearizability has porcupine judge histories of package sim.
package linearizability

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/proof/sim/simtest"
	"github.com/mortise-go/mortise/internal/testkit"
)

// F4: what clients of a lock and a register have done, and been told, could have happened one
// after the other: as a lock, as a register, and as both. A world has one history: of 8 clients
// with 400 operations each, and a little more, since whatever was begun is ended.
func TestLinearizable(t *testing.T) {
	l := simtest.Simulate(t, simtest.Seeds(200), simtest.Workload(t, "single").Longer(8))
	testkit.Check(t, "F4", testkit.Exactly(l.Histories, "histories of a world each", l.Wanted).InFull(l.Wanted, 200), testkit.AtLeast(l.Operations/l.Histories, "operations each", 8*400),
		testkit.Exactly(l.Illegal, "not linearizable", 0), testkit.Exactly(l.Undecided, "undecided", 0))
	t.Logf("writes: %d acknowledged, %d refused, %d without an answer", l.Acknowledged, l.Refused, l.Unknown)
	assert.NotZero(t, l.Refused, "no lock was lost before a write")
	assert.NotZero(t, l.Unknown, "no answer was lost for good")
}

// Clients that go from one register to another: 4 histories of a quarter of the operations each.
func TestLinearizableApart(t *testing.T) {
	l := simtest.Play(t, "register", 40)
	testkit.Check(t, "F4, 4 registers", testkit.Exactly(l.Histories, "histories", 4*l.Wanted), testkit.AtLeast(l.Operations/l.Runs, "operations in a world", 400),
		testkit.Exactly(l.Illegal, "not linearizable", 0), testkit.Exactly(l.Undecided, "undecided", 0))
	twin := simtest.Twinned(t, "register", "unguarded", 12)
	testkit.Check(t, "F4, 4 registers, unguarded", twin.Found(.5))
}

// The negative twins of F4: without the guard, or with one that does not look at whose lock it
// is, histories are not linearizable. Where rows of locks are deleted those of the lock are
// not, since holders lose it to nobody, while the register's are: the guard holds.
func TestLinearizableTwins(t *testing.T) {
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
			l := simtest.Simulate(t, max(simtest.Seeds(20), testkit.Enough), load, twin.Shows...) // of fewer the shares would tell little
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
