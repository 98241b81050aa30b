//go:build !race

package sim_test

// The faults of worlds are the same with the race detector, which makes them take four times as long. So `make proof`
// runs these tests without it.

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/proof/sim"
	"github.com/mortise-go/mortise/internal/testkit"
)

// Worlds that last seconds have repeated events, too: over 20 seeds, each kind occurs about as often as there are
// worlds.
func TestWeather_MeetsShortWorlds(t *testing.T) {
	if testkit.Small() {
		t.Skip("make proof plays them")
	}
	for name, goal := range map[string]int{"versions": 15, "unique": 10, "queue": 8, "register": 5} {
		load, err := sim.WorkloadNamed(name)
		require.NoError(t, err)
		met := map[string]int{}
		for seed := range uint64(20) {
			for kind, n := range load.Play(t, sim.Options{Seed: seed}).Faults {
				met[kind] += n
			}
		}
		for _, kind := range []string{"paused", "suspended", "partitioned", "crashed", "clock jumped", "throttling storm"} {
			assert.GreaterOrEqual(t, met[kind], goal, "%s, %s", name, kind)
		}
	}
}

// Every fault really occurs: over 30 seeds all of them do.
func TestSwarmMeetsEverything(t *testing.T) {
	if testkit.Small() {
		t.Skip("make proof plays them")
	}
	load, err := sim.WorkloadNamed("lockset")
	require.NoError(t, err)
	met := map[string]int{}
	for seed := range uint64(30) {
		for kind, n := range load.Play(t, sim.Options{Seed: seed, Rounds: .2}).Faults {
			met[kind] += n
		}
	}
	for _, kind := range []string{
		"lost", "lost, arrives late", "reply lost", "duplicated", "slow", "cut off", "partitioned",
		"throttled", "throttling storm", "500", "500 after", "conflict", "expired credentials", "stale", "skewed date",
		"paused", "suspended", "crashed", "clock jumped", "deleted by time to live",
	} {
		assert.GreaterOrEqual(t, met[kind], 2, kind)
		delete(met, kind)
	}
	assert.Empty(t, met, "these are left out above")
}
