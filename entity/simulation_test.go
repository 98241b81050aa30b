package entity_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/sim"
)

var simSeeds = flag.Uint64("sim.seeds", 8, "worlds to simulate, for each workload on entities")

// simulated plays a workload, which must not violate anything, and its negative twins, of each of
// which must be found what it is there for.
func simulated(t *testing.T, name string) {
	t.Helper()
	load, err := sim.WorkloadNamed(name)
	require.NoError(t, err)
	var sum sim.Tally
	for seed := range *simSeeds {
		r := load.Play(t, sim.Options{Seed: seed})
		sum.Add(r.Tally)
		assert.Empty(t, r.Violations, load.Replay(seed))
	}
	t.Logf("%d worlds: %+v", *simSeeds, sum)
	assert.NotZero(t, sum.Acknowledged)
	assert.NotZero(t, sum.Refused, "nobody was in anybody's way")
	for _, named := range load.Twins {
		twin, _, err := load.Twin(named.Name)
		require.NoError(t, err)
		var runs [2]sim.Result
		for seed := range runs {
			runs[seed] = twin.Play(t, sim.Options{Seed: uint64(seed)})
			assert.False(t, runs[seed].Broken, "%s: %v", twin.Replay(uint64(seed)), runs[seed].Violations)
		}
		for _, text := range named.Shows {
			assert.True(t, runs[0].Says(text) || runs[1].Says(text), "%s: nothing %q", named.About, text)
		}
	}
}

// What was acknowledged counts once, what was refused does not, whatever was lost on the way.
func TestVersionsCountOnce(t *testing.T) { simulated(t, "versions") }

// A value is never that of two rows, and a row and its sentinel are never without each other.
func TestUniqueValuesStayUnique(t *testing.T) { simulated(t, "unique") }
