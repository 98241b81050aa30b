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

var shareOfReplays = flag.Float64("replay.rounds", .4, "how much of its rounds a workload plays for TestReplay; between builds it is all of them")

// The same seed gives the same history, with the race detector and without. Under it a tenth
// of the histories is played, since it takes ten times as long.
func TestReplay(t *testing.T) {
	lazily(t)
	loads := sim.Workloads()
	n, between := (900+len(loads)-1)/len(loads), 5 // 900 histories, and 55 between builds
	if raceEnabled {
		n, between = n/10, 2
	}
	repetition := repeated(t)
	first, end := repetition.share(n)
	firstBetween, endBetween := repetition.share(between)
	other, how := "-race", "with the race detector"
	if raceEnabled {
		other, how = "-race=false", "without the race detector"
	}
	elsewhere := make(chan map[string]string, 1)
	go func() {
		defer close(elsewhere)
		if digests, err := digestsOf(t.Context(), t.TempDir(), other, firstBetween, endBetween); assert.NoError(t, err) {
			elsewhere <- digests
		}
	}()
	var mu sync.Mutex
	var played, differ int
	digests := map[string]string{}
	t.Run("twice", func(t *testing.T) {
		for _, load := range loads {
			for part := range runtime.GOMAXPROCS(0) {
				t.Run(fmt.Sprint(load.Name, part), func(t *testing.T) {
					t.Parallel()
					for i := first + part; i < end; i += runtime.GOMAXPROCS(0) {
						seed := uint64(i)
						difference := sim.Difference(replayed(t, load, seed, *shareOfReplays).History, replayed(t, load, seed, *shareOfReplays).History)
						mu.Lock()
						played++
						if difference != "" {
							differ++
							t.Logf("%s, seed %d: %s", load.Name, seed, difference)
						}
						mu.Unlock()
					}
					for i := firstBetween + part; i < endBetween; i += runtime.GOMAXPROCS(0) {
						seed := uint64(i)
						whole := replayed(t, load, seed, 1)
						mu.Lock()
						digests[fmt.Sprint(load.Name, " ", seed)] = whole.Digest()
						mu.Unlock()
					}
				})
			}
		}
	})
	figure(t, "F3, the same seed twice", atLeast(played, fmt.Sprintf("histories of %v of the rounds", *shareOfReplays), (end-first)*len(loads)), exactly(differ, "differ", 0))

	got := <-elsewhere
	require.Len(t, got, len(digests))
	differ = 0
	for name, digest := range digests {
		if got[name] != digest {
			differ++
			t.Logf("%s: %s here, %s %s", name, digest, got[name], how)
		}
	}
	figure(t, "F3, here and "+how, atLeast(len(digests), "histories of all rounds", (endBetween-firstBetween)*len(loads)), exactly(differ, "differ", 0))
}

func replayed(t *testing.T, load sim.Workload, seed uint64, rounds float64) sim.Result {
	r := load.Play(t, sim.Options{Seed: seed, Rounds: rounds, History: true}, false)
	assert.NotEmpty(t, r.History)
	assert.Empty(t, r.Violations, "%s, seed %d", load.Name, seed)
	return r
}

// digestsOf has the replay command, built with a flag into a folder, play seeds from first to
// below end.
func digestsOf(ctx context.Context, folder, flag string, first, end int) (map[string]string, error) {
	command := filepath.Join(folder, "replay")
	build := exec.CommandContext(ctx, "go", "build", flag, "-o", command, "../internal/sim/cmd/replay")
	build.Env = os.Environ()
	if flag == "-race" {
		build.Env = append(build.Env, "CGO_ENABLED=1")
	}
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the replay command with %s (the race detector needs a C compiler): %w: %s", flag, err, out)
	}
	out, err := exec.CommandContext(ctx, command, "-digest", "-seeds", fmt.Sprintf("%d-%d", first, end-1)).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	digests := map[string]string{}
	for line := range strings.Lines(string(out)) {
		part := strings.Fields(line)
		if len(part) != 3 {
			return nil, fmt.Errorf("no line of a digest: %q", line)
		}
		digests[part[0]+" "+part[1]] = part[2]
	}
	return digests, nil
}
