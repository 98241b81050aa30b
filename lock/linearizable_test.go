package lock_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/sim"
)

// linearity runs a workload on registers, or a twin of it, in n worlds, and says what has come of
// them: where go test repeats tests, of those of all repetitions up to now, each of which has others.
// worlds is how many there had to be.
func linearity(t *testing.T, n int, name, twin string, registers sim.Register) (sum sim.Linearity, worlds int) {
	t.Helper()
	lazily(t)
	load := workload(t, name)
	if twin != "" {
		var err error
		load, _, err = load.Twin(twin)
		require.NoError(t, err)
	}
	s, first, end := sample[linearities](repeated(t), n)
	s.wanted += end - first
	const parallel = 2
	var mu sync.Mutex
	t.Run("worlds", func(t *testing.T) {
		for i := range parallel {
			t.Run(fmt.Sprint("from ", first+i), func(t *testing.T) {
				t.Parallel()
				for i := first + i; i < end; i += parallel {
					var l sim.Linearity
					load := load
					load.Run = func(w *sim.World) sim.Tally { // which a Tally says too little of
						l = sim.TheRegisters(w, registers)
						return l.Tally
					}
					r := load.Play(t, sim.Options{Seed: *simFrom + uint64(i)})
					mu.Lock()
					s.Add(l)
					mu.Unlock()
					if twin == "" || r.Broken {
						complain(t, load, r)
					}
				}
			})
		}
	})
	return s.Linearity, s.wanted
}

// linearities are what has come of many worlds.
type linearities struct {
	sim.Linearity

	wanted int // worlds
}

// F4: what clients of a lock and a register have done, and been told, could have happened one
// after the other: as a lock, as a register, and as both. A world has one history: of 8 clients
// with 50 operations each, and a little more, since whatever was begun is ended.
func TestLinearizable(t *testing.T) {
	l, worlds := linearity(t, seeds(200), "single", "", sim.Register{Registers: 1})
	figure(t, "F4", exactly(l.Histories, "histories of a world each", worlds), atLeast(l.Operations/l.Histories, "operations each", 400),
		exactly(l.Illegal, "not linearizable", 0), exactly(l.Undecided, "undecided", 0))
	t.Logf("writes: %d acknowledged, %d refused, %d without an answer", l.Acknowledged, l.Refused, l.Unknown)
	assert.NotZero(t, l.Refused, "no lock was lost before a write")
	assert.NotZero(t, l.Unknown, "no answer was lost for good")
}

// Clients that go from one register to another: 4 histories of a quarter of the operations each.
func TestLinearizableApart(t *testing.T) {
	l, worlds := linearity(t, seeds(40), "register", "", sim.Register{})
	figure(t, "F4, 4 registers", exactly(l.Histories, "histories", 4*worlds), atLeast(l.Operations/l.Worlds, "operations in a world", 400),
		exactly(l.Illegal, "not linearizable", 0), exactly(l.Undecided, "undecided", 0))
}

// The negative twins of F4: without the guard, or with one that does not look at whose lock it
// is, histories are not linearizable. Where rows of locks are deleted those of the lock are
// not, since holders lose it to nobody, while the register's are: the guard holds.
func TestLinearizableTwins(t *testing.T) {
	for name, twin := range map[string]struct {
		load sim.Register
		lock int // % of the histories that are not linearizable as a lock
		both int // or as a lock and a register
	}{
		"unguarded": {sim.Register{Guard: sim.Unguarded}, 10, 50},
		"unfenced":  {sim.Register{Guard: sim.Unfenced}, 5, 30},
		"swept":     {sim.Register{Swept: true}, 30, 30},
	} {
		t.Run(name, func(t *testing.T) {
			twin.load.Registers = 1
			l, worlds := linearity(t, max(seeds(20), enough), "single", name, twin.load) // of fewer the shares would tell little
			share := func(n int) float64 { return 100 * float64(n) / float64(l.Histories) }
			values := atLeast(l.By.Register, "not as a register", 1)
			if twin.load.Swept {
				values = exactly(l.By.Register, "not as a register", 0)
			}
			figure(t, "F4, "+name, exactly(l.Histories, "histories", worlds), atLeast(share(l.By.Object), "% not linearizable", float64(twin.both)),
				atLeast(share(l.By.Lock), "% not as a lock", float64(twin.lock)), values, exactly(l.Undecided, "undecided", 0))
		})
	}
}
