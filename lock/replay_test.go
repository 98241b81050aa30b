package lock_test

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

	"github.com/mortise-go/mortise/internal/sim"
)

var shareOfReplays = flag.Float64("replay.rounds", .15, "how much of its rounds a workload plays for TestReplay; between builds it is all of them")

// seeded is a world that is played more than once.
type seeded struct {
	load sim.Workload
	seed uint64
}

func (w seeded) String() string { return fmt.Sprint(w.load.Name, " ", w.seed) }

// worlds are those from the first to below the end of a list that has no end: each seed has one of each
// workload.
func worlds(first, end int) (list []seeded) {
	loads := sim.Workloads()
	for i := first; i < end; i++ {
		list = append(list, seeded{loads[i%len(loads)], uint64(i / len(loads))})
	}
	return list
}

// The same seed gives the same history, with the race detector and without. Under it a tenth
// of the histories is played, since it takes ten times as long.
func TestReplay(t *testing.T) {
	lazily(t)
	loads := len(sim.Workloads())
	n := (900 + loads - 1) / loads
	other, how := "-race", "with the race detector"
	if raceEnabled {
		n /= 10
		other, how = "-race=false", "without the race detector"
	}
	repetition := repeated(t)
	twice := worlds(repetition.share(n * loads))
	once := worlds(repetition.share(2 * loads))
	elsewhere := make(chan map[string]string, 1)
	go func() {
		defer close(elsewhere)
		if digests, err := digestsOf(t.Context(), t.TempDir(), other, once); assert.NoError(t, err) {
			elsewhere <- digests
		}
	}()
	var mu sync.Mutex
	var played, differ int
	digests := map[string]string{}
	t.Run("twice", func(t *testing.T) {
		for part := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for i := part; i < len(twice); i += runtime.GOMAXPROCS(0) {
					difference := sim.Difference(twice[i].play(t, *shareOfReplays).History, twice[i].play(t, *shareOfReplays).History)
					mu.Lock()
					played++
					if difference != "" {
						differ++
						t.Logf("%s\n%s", twice[i].load.Longer(*shareOfReplays).Replay(twice[i].seed), difference)
					}
					mu.Unlock()
				}
				for i := part; i < len(once); i += runtime.GOMAXPROCS(0) {
					whole := once[i].play(t, 1)
					mu.Lock()
					digests[once[i].String()] = whole.Digest()
					mu.Unlock()
				}
			})
		}
	})
	figure(t, "F3, the same seed twice", atLeast(played, fmt.Sprintf("histories of %v of the rounds", *shareOfReplays), len(twice)), exactly(differ, "differ", 0))

	got := <-elsewhere
	require.Len(t, got, len(digests))
	differ = 0
	for name, digest := range digests {
		if got[name] != digest {
			differ++
			t.Logf("%s, with all of its rounds: %s here, %s %s", name, digest, got[name], how)
		}
	}
	figure(t, "F3, here and "+how, atLeast(len(digests), "histories of all rounds", len(once)), exactly(differ, "differ", 0))
}

// Worlds whose histories were left to chance once, in one of five runs or fewer: hence several times,
// under -race, which makes each ten times as long, twice.
func TestReplayOfWhatDifferedOnce(t *testing.T) {
	lazily(t)
	more := 5
	if raceEnabled {
		more = 1
	}
	for _, world := range []struct {
		name string
		seed uint64
	}{{"leader", 4}, {"queue", 2}, {"queue", 24}, {"register", 1}, {"register", 24}} {
		t.Run(fmt.Sprint(world.name, world.seed), func(t *testing.T) {
			t.Parallel()
			w := seeded{workload(t, world.name), world.seed}
			first := w.play(t, 1)
			for range more {
				require.Empty(t, sim.Difference(first.History, w.play(t, 1).History), "%v", w)
			}
		})
	}
}

func (w seeded) play(t *testing.T, rounds float64) sim.Result {
	r := w.load.Play(t, sim.Options{Seed: w.seed, Rounds: rounds, History: true})
	assert.NotEmpty(t, r.History)
	complain(t, w.load.Longer(rounds), r)
	return r
}

// digestsOf has the replay command, built with a flag into a folder, play worlds.
func digestsOf(ctx context.Context, folder, flag string, worlds []seeded) (map[string]string, error) {
	command := filepath.Join(folder, "replay")
	build := exec.CommandContext(ctx, "go", "build", flag, "-o", command, "../internal/sim/cmd/replay")
	build.Env = os.Environ()
	if flag == "-race" {
		build.Env = append(build.Env, "CGO_ENABLED=1")
	}
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the replay command with %s (the race detector needs a C compiler): %w: %s", flag, err, out)
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
