package lock_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/internal/sim"
)

// linearity runs a workload on registers in worlds of the seeds from first to below end.
func linearity(t *testing.T, first, end uint64, load sim.Register) (sum sim.Linearity, violations []string) {
	t.Helper()
	lazily(t)
	const parallel = 2
	var mu sync.Mutex
	t.Run("worlds", func(t *testing.T) {
		for i := range uint64(parallel) {
			t.Run(fmt.Sprint("from ", first+i), func(t *testing.T) {
				t.Parallel()
				for seed := first + i; seed < end; seed += parallel {
					var l sim.Linearity
					r := sim.Run(t, sim.Options{Seed: seed, Profile: sim.Swarm(seed)}, func(w *sim.World) { l = load.Run(w) })
					mu.Lock()
					sum.Add(l)
					for _, v := range r.Violations {
						violations = append(violations, fmt.Sprintf("seed %d: %s", seed, v))
					}
					mu.Unlock()
				}
			})
		}
	})
	return sum, violations
}

// registers are F4's: 8 clients with 50 operations each, 400 in a world.
func registers(guard sim.Guard) sim.Register {
	return sim.Register{Clients: 8, Operations: 50, Overslept: .1, Guard: guard}
}

// F4: what clients of locks and registers have done, and been told, could have happened one
// after the other. A world has 12 histories: of 4 registers, as a lock, as a register and as
// both.
func TestLinearizable(t *testing.T) {
	n := uint64(max(seeds(60), 17)) // fewer would not make 200 histories
	l, violations := linearity(t, *simFrom, *simFrom+n, registers(sim.Guarded))
	assert.Empty(t, violations)
	figure(t, "F4", atLeast(l.Histories, "histories", 200), atLeast(l.Operations, "operations", 8*400),
		exactly(l.Illegal, "not linearizable", 0), exactly(l.Undecided, "undecided", 0))
	t.Logf("writes: %d acknowledged, %d refused, %d without an answer", l.Acknowledged, l.Refused, l.Unknown)
	assert.NotZero(t, l.Refused, "no lock was lost before a write")
	assert.NotZero(t, l.Unknown, "no answer was lost for good")
}

// Seeds that were not linearizable once: 32 since a release did not look at the fence, and an
// acquisition had come in late once more; 132 since a release without an answer was taken for
// one that had been applied, by a holder that knew to have lost the lock.
func TestLinearizableReplay(t *testing.T) {
	for _, seed := range []uint64{32, 132} {
		l, violations := linearity(t, seed, seed+1, registers(sim.Guarded))
		assert.Empty(t, violations)
		assert.NotZero(t, l.Histories)
	}
}

// The negative twins of F4: without the guard, or with one that does not look at whose lock it
// is, histories are not linearizable.
func TestLinearizableTwins(t *testing.T) {
	for name, guard := range map[string]sim.Guard{"unguarded": sim.Unguarded, "whoever holds the lock": sim.Unfenced} {
		t.Run(name, func(t *testing.T) {
			l, _ := linearity(t, 0, 6, registers(guard))
			figure(t, "F4, "+name, atLeast(l.Illegal, fmt.Sprintf("of %d histories not linearizable", l.Histories), 1), exactly(l.Undecided, "undecided", 0))
		})
	}
}
