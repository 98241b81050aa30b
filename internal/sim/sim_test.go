package sim_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/sim"
)

// The same seed gives the same history, whatever the workload.
func TestSameSeedSameHistory(t *testing.T) {
	for _, load := range sim.Workloads() {
		t.Run(load.Name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(5) {
				run := func() string {
					r := load.Play(t, sim.Options{Seed: seed, History: true}, false)
					assert.Empty(t, r.Violations, "seed %d", seed)
					return r.History
				}
				first := run()
				require.NotEmpty(t, first)
				assert.Empty(t, sim.Difference(first, run()), "seed %d", seed)
			}
		})
	}
}

// Keeping a history changes nothing.
func TestHistoryChangesNothing(t *testing.T) {
	load := sim.Workloads()[0]
	for seed := range uint64(5) {
		kept := load.Play(t, sim.Options{Seed: seed, Rounds: .2, History: true}, false)
		bare := load.Play(t, sim.Options{Seed: seed, Rounds: .2}, false)
		require.Empty(t, bare.History)
		kept.History, kept.Events = "", nil
		assert.Equal(t, kept, bare)
	}
}

// A workload plays the share of its rounds that was asked for, and another seed is another
// world.
func TestRoundsAndSeeds(t *testing.T) {
	load := sim.Workloads()[0]
	all := load.Play(t, sim.Options{Seed: 1, Rounds: .5, History: true}, false)
	some := load.Play(t, sim.Options{Seed: 1, Rounds: .1, History: true}, false)
	other := load.Play(t, sim.Options{Seed: 2, Rounds: .1, History: true}, false)
	assert.Less(t, some.Requests, all.Requests)
	assert.NotEqual(t, some.Digest(), other.Digest())
	assert.Contains(t, sim.Difference(some.History, other.History), "the histories differ from line 1 on")
}

func TestWorkloadNamed(t *testing.T) {
	for _, l := range sim.Workloads() {
		got, err := sim.WorkloadNamed(l.Name)
		require.NoError(t, err)
		assert.Equal(t, l.About, got.About)
	}
	_, err := sim.WorkloadNamed("nonsense")
	require.ErrorContains(t, err, `no workload "nonsense"; there are lockset`)
}
