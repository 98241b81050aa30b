package lock_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/sim"
)

// shareOfReplays is how much of its rounds a workload plays: it is histories that are
// compared, and many short ones tell more than few long ones.
const shareOfReplays = .1

// The same seed gives the same history, with the race detector and without. Under it a tenth
// of the histories is played, since it takes ten times as long.
func TestReplay(t *testing.T) {
	lazily(t)
	loads := sim.Workloads()
	each := uint64((900 + len(loads) - 1) / len(loads)) // 900 histories at least
	if raceEnabled {
		each /= 10
	}
	compared := min(10, each) // with another build
	var mu sync.Mutex
	var played, differ int
	digests := map[string]string{} // of the first seeds
	t.Run("twice", func(t *testing.T) {
		for _, load := range loads {
			for part := range uint64(runtime.GOMAXPROCS(0)) {
				t.Run(fmt.Sprint(load.Name, part), func(t *testing.T) {
					t.Parallel()
					for seed := part; seed < each; seed += uint64(runtime.GOMAXPROCS(0)) {
						first := replayed(t, load, seed)
						difference := sim.Difference(first.History, replayed(t, load, seed).History)
						mu.Lock()
						played++
						if difference != "" {
							differ++
							t.Logf("%s, seed %d: %s", load.Name, seed, difference)
						}
						if seed < compared {
							digests[fmt.Sprint(load.Name, " ", seed)] = first.Digest()
						}
						mu.Unlock()
					}
				})
			}
		}
	})
	figure(t, "F3, the same seed twice", exactly(differ, fmt.Sprintf("of %d histories differ", played), 0))

	other, how := "-race", "with the race detector"
	if raceEnabled {
		other, how = "-race=false", "without the race detector"
	}
	got := digestsOf(t, other, compared)
	require.Len(t, got, len(digests))
	differ = 0
	for name, digest := range digests {
		if got[name] != digest {
			differ++
			t.Logf("%s: %s here, %s %s", name, digest, got[name], how)
		}
	}
	figure(t, "F3, here and "+how, exactly(differ, fmt.Sprintf("of %d histories differ", len(digests)), 0))
}

func replayed(t *testing.T, load sim.Workload, seed uint64) sim.Result {
	r := load.Play(t, sim.Options{Seed: seed, Rounds: shareOfReplays, History: true}, false)
	assert.NotEmpty(t, r.History)
	assert.Empty(t, r.Violations, "%s, seed %d", load.Name, seed)
	return r
}

// digestsOf has the replay command, built with a flag, play the first seeds.
func digestsOf(t *testing.T, flag string, seeds uint64) map[string]string {
	command := filepath.Join(t.TempDir(), "replay")
	build := exec.CommandContext(t.Context(), "go", "build", flag, "-o", command, "../internal/sim/cmd/replay")
	build.Env = os.Environ()
	if flag == "-race" {
		build.Env = append(build.Env, "CGO_ENABLED=1")
	}
	out, err := build.CombinedOutput()
	require.NoError(t, err, "building the replay command with %s (the race detector needs a C compiler): %s", flag, out)
	out, err = exec.CommandContext(t.Context(), command, "-digest", "-seeds", fmt.Sprint("0-", seeds-1), "-rounds", strconv.FormatFloat(shareOfReplays, 'g', -1, 64)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	digests := map[string]string{}
	for line := range strings.Lines(string(out)) {
		part := strings.Fields(line)
		require.Len(t, part, 3, line)
		digests[part[0]+" "+part[1]] = part[2]
	}
	return digests
}
