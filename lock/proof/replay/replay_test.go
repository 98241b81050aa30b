// Package replay plays worlds of the simulation again. The same seed gives the same history, and seeds that have
// found mistakes find none.
package replay

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/proof/sim"
	"github.com/mortise-go/mortise/internal/proof/sim/simtest"
	"github.com/mortise-go/mortise/internal/testkit"
)

var shareOfReplays = flag.Float64("replay.rounds", .1, "how much of its rounds a workload plays for TestReplay")

// seeded is a world that is played more than once.
type seeded struct {
	load sim.Workload
	seed uint64
}

func (w seeded) String() string { return fmt.Sprint(w.load.Name, " ", w.seed) }

// play plays the world with the given share of its rounds, and keeps its history.
func (w seeded) play(t *testing.T, rounds float64) sim.Result {
	r := w.load.Play(t, sim.Options{Seed: w.seed, Rounds: rounds, History: true})
	assert.NotEmpty(t, r.History)
	simtest.Complain(t, w.load.Longer(rounds), r)
	return r
}

// worlds returns the worlds from first to below end of an endless list, which has one of each workload for each seed.
func worlds(first, end int) (list []seeded) {
	loads := sim.Workloads()
	for i := first; i < end; i++ {
		list = append(list, seeded{loads[i%len(loads)], uint64(i / len(loads))})
	}
	return list
}

// The same seed gives the same history. Fewer histories are played where tests should do less.
func TestReplay(t *testing.T) {
	simtest.Lazily(t)
	loads := len(sim.Workloads())
	n := (900 + loads - 1) / loads
	n = testkit.IfSmall(n/30, n)
	twice := worlds(testkit.Repetition(t).Share(n * loads))
	var mu sync.Mutex
	played, differ := 0, 0
	side(t, twice, func(part *testing.T, w seeded) {
		difference := sim.Difference(w.play(part, *shareOfReplays).History, w.play(part, *shareOfReplays).History)
		mu.Lock()
		defer mu.Unlock()
		played++
		if difference != "" {
			differ++
			// Not part.Logf: what a part logs that passes is not shown.
			t.Logf("%s\n%s", w.load.Longer(*shareOfReplays).Replay(w.seed), difference)
		}
	})
	testkit.Check(t, "F3, the same seed twice", testkit.AtLeast(played, fmt.Sprintf("histories of %v of the rounds", *shareOfReplays), len(twice)).InFull(len(twice), 900), testkit.Exactly(differ, "differ", 0))
}

// Whole histories are the same with the race detector, in another process, as here.
func TestHistories_AreTheSameWithTheRaceDetector(t *testing.T) {
	if testkit.Small() {
		t.Skip("builds the simulation anew, with the race detector: make proof does")
	}
	simtest.Lazily(t)
	list := worlds(testkit.Repetition(t).Share(2 * len(sim.Workloads())))
	raced, folder := make(chan map[string]string, 1), t.TempDir()
	go func() {
		defer close(raced)
		if digests, err := digestsWithRaceDetector(t.Context(), folder, list); assert.NoError(t, err) {
			raced <- digests
		}
	}()
	var mu sync.Mutex
	here := map[string]string{}
	side(t, list, func(t *testing.T, w seeded) {
		whole := w.play(t, 1)
		mu.Lock()
		defer mu.Unlock()
		here[w.String()] = whole.Digest()
	})
	there, differ := <-raced, 0
	require.Len(t, there, len(list))
	for _, w := range list {
		if name := w.String(); there[name] != here[name] {
			differ++
			t.Logf("%s: %s here, %s with the race detector", name, here[name], there[name])
		}
	}
	testkit.Check(t, "F3, here and with the race detector", testkit.AtLeast(len(there), "whole histories", len(list)), testkit.Exactly(differ, "differ", 0))
}

// side plays worlds side by side.
func side(t *testing.T, list []seeded, play func(t *testing.T, w seeded)) {
	t.Helper()
	t.Run("worlds", func(t *testing.T) {
		parts := runtime.GOMAXPROCS(0)
		for part := range parts {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for i := part; i < len(list); i += parts {
					play(t, list[i])
				}
			})
		}
	})
}

// In these worlds, something once depended on chance, and the history differed in one of five runs or fewer. So each
// is played several times. Where tests should do less, it is twice.
func TestHistories_ThatDifferedOnceAreTheSame(t *testing.T) {
	simtest.Lazily(t)
	more := testkit.IfSmall(1, 5)
	for _, world := range []struct {
		name string
		seed uint64
	}{{"bank", 1}, {"gather", 0}, {"gather", 8}, {"gather", 34}, {"leader", 3}, {"leader", 4}, {"queue", 2}, {"queue", 24}, {"register", 1}, {"register", 24}} {
		t.Run(fmt.Sprint(world.name, world.seed), func(t *testing.T) {
			t.Parallel()
			w := seeded{simtest.Workload(t, world.name), world.seed}
			first := w.play(t, 1)
			for range more {
				require.Empty(t, sim.Difference(first.History, w.play(t, 1).History), "%v", w)
			}
		})
	}
}

// digestsWithRaceDetector builds the replay command with the race detector into a folder, and lets it play worlds.
func digestsWithRaceDetector(ctx context.Context, folder string, worlds []seeded) (map[string]string, error) {
	command := filepath.Join(folder, "replay")
	build := exec.CommandContext(ctx, "go", "build", "-race", "-o", command, "github.com/mortise-go/mortise/internal/proof/sim/cmd/replay")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the replay command (the race detector needs a C compiler): %w: %s", err, out)
	}
	digests := map[string]string{}
	for _, w := range worlds {
		out, err := exec.CommandContext(ctx, command, "-digest", "-workload", w.load.Name, "-seed", fmt.Sprint(w.seed)).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
		part := strings.Fields(string(out))
		if len(part) != 3 || part[0]+" "+part[1] != w.String() {
			return nil, fmt.Errorf("no line of a digest: %q", out)
		}
		digests[w.String()] = part[2]
	}
	return digests, nil
}

// Worlds that once showed a mistake (see lock/TESTING.md) show none.
func TestSeedsThatFoundMistakes(t *testing.T) {
	simtest.Lazily(t)
	list := []seeded{}
	for _, found := range []struct {
		name  string
		seeds []uint64
	}{
		{"register", []uint64{32, 132}},
		{"queue", []uint64{35, 61, 457, 110, 146, 318, 488}},
		{"fair", []uint64{13, 31, 199}},
		{"single", []uint64{34}},
		{"deletion", []uint64{150, 276, 777}},
		{"deployment", []uint64{883}},
		{"versions", []uint64{1, 3, 4}},
		{"unique", []uint64{319, 363}},
	} {
		for _, seed := range found.seeds {
			list = append(list, seeded{simtest.Workload(t, found.name), seed})
		}
	}
	first, end := testkit.Repetition(t).Share(len(list)) // of an endless list
	if testkit.Small() {                                 // the race detector makes each take ten times as long
		end = min(end, first+3)
	}
	side(t, list[min(first, len(list)):min(end, len(list))], func(t *testing.T, w seeded) { w.play(t, 1) })
}
