package entity_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/internal/sim"
)

var simSeeds = flag.Uint64("sim.seeds", 8, "worlds to simulate, for each workload on entities")

// simulate runs a workload in worlds of the seeds below n.
func simulate(t *testing.T, n uint64, run func(w *sim.World) sim.Tally) (sum sim.Tally, broken int) {
	t.Helper()
	for seed := range n {
		r := sim.Run(t, sim.Options{Seed: seed, Profile: sim.EntityProfile(seed)}, func(w *sim.World) { sum.Add(run(w)) })
		if len(r.Violations) > 0 {
			broken++
			t.Logf("seed %d: %d violations, such as: %s", seed, len(r.Violations), r.Violations[0])
		}
	}
	t.Logf("%d worlds, %d with violations: %+v", n, broken, sum)
	return sum, broken
}

// What was acknowledged counts once, what was refused does not, whatever was lost on the way.
func TestVersionsCountOnce(t *testing.T) {
	run := func(twin bool) func(w *sim.World) sim.Tally {
		return func(w *sim.World) sim.Tally {
			return sim.Versions{Clients: 8, Rounds: 20, Blind: twin}.Run(w)
		}
	}
	sum, broken := simulate(t, *simSeeds, run(false))
	assert.Zero(t, broken)
	assert.NotZero(t, sum.Refused, "nobody was in anybody's way")
	_, broken = simulate(t, 2, run(true))
	assert.NotZero(t, broken, "the check finds nothing where there are no versions")
}

// A value is never that of two rows, and a row and its sentinel are never without each other.
func TestUniqueValuesStayUnique(t *testing.T) {
	run := func(twin bool) func(w *sim.World) sim.Tally {
		return func(w *sim.World) sim.Tally {
			return sim.Unique{Clients: 8, Rounds: 20, Shared: twin}.Run(w)
		}
	}
	sum, broken := simulate(t, *simSeeds, run(false))
	assert.Zero(t, broken)
	assert.NotZero(t, sum.Refused, "nobody was in anybody's way")
	_, broken = simulate(t, 2, run(true))
	assert.NotZero(t, broken, "the check finds nothing where values are not unique")
}
