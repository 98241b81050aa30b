package sim_test

import (
	"slices"
	"strings"
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
					r := sim.Run(t, sim.Options{Seed: seed, Profile: sim.Swarm(seed), History: true}, func(w *sim.World) { load.Run(w, false) })
					assert.Empty(t, r.Violations, "seed %d", seed)
					return r.History
				}
				same(t, seed, run(), run())
			}
		})
	}
}

// same shows where two histories begin to differ.
func same(t *testing.T, seed uint64, first, second string) {
	t.Helper()
	require.NotEmpty(t, first)
	if first == second {
		return
	}
	a, b := strings.Split(first, "\n"), strings.Split(second, "\n")
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	around := func(list []string) string {
		return strings.Join(slices.Clip(list[max(0, at-8):min(len(list), at+4)]), "\n")
	}
	t.Errorf("seed %d: the histories differ from line %d on:\n%s\n\n%s", seed, at+1, around(a), around(b))
}
