// Package simtest plays workloads of package sim in tests, with many seeds, and sums up the results.
package simtest

import (
	"cmp"
	"flag"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/proof/sim"
	"github.com/mortise-go/mortise/internal/testkit"
)

var (
	simSeeds = flag.Int("sim.seeds", 0, "the most seeds of each test of simulations: 20 (12 of a negative twin), or 2 with -short and under -race; 1000 for whole figures")
	simFrom  = flag.Uint64("sim.from", 0, "the first seed")
)

// Seeds returns how many seeds a test plays that is made for n of them: at most as many as -sim.seeds says.
func Seeds(n int) int {
	return min(n, cmp.Or(*simSeeds, testkit.IfSmall(2, 20)))
}

// Lazily makes garbage collection less frequent for the rest of a test. Worlds are small, and there are thousands:
// garbage collection took half of the time.
func Lazily(t *testing.T) {
	before := debug.SetGCPercent(1600)
	t.Cleanup(func() { debug.SetGCPercent(before) })
}

// Workload returns the workload with that name.
func Workload(t *testing.T, name string) sim.Workload {
	t.Helper()
	load, err := sim.WorkloadNamed(name)
	require.NoError(t, err)
	return load
}

// Play runs a workload for a test that is made for n seeds.
func Play(t *testing.T, name string, n int) Sum {
	t.Helper()
	return Simulate(t, Seeds(n), Workload(t, name))
}

// SkipTwins skips a test of negative twins where tests are small, unless -sim.seeds says how many seeds to play.
func SkipTwins(t *testing.T) {
	t.Helper()
	if testkit.Small() && *simSeeds == 0 {
		t.Skip("negative twins show that a test can fail: make proof plays them")
	}
}

// Twinned runs a negative twin of a workload, in a subtest, for a test that is made for n seeds, and has check look at the
// result. Unless -sim.seeds says more, it plays no more seeds than a share needs. Where that flag says too few for a share, it ends once
// the twin has shown all that it is there to show. See also [SkipTwins].
func Twinned(t *testing.T, name, twin string, n int, check func(*testing.T, Sum)) {
	t.Helper()
	t.Run(twin, func(t *testing.T) {
		SkipTwins(t)
		load, with, err := Workload(t, name).Twin(twin)
		require.NoError(t, err)
		check(t, Simulate(t, min(n, cmp.Or(*simSeeds, testkit.Enough)), load, with.Shows...))
	})
}

// Finds checks that what a twin is there to show was found in a share of its runs. about names the twin in the figure.
func Finds(about string, share float64) func(*testing.T, Sum) {
	return func(t *testing.T, s Sum) {
		t.Helper()
		testkit.Check(t, about, s.Found(share))
	}
}

// Simulate runs a workload once for each seed, a few at a time. It reports each violation with the command that shows
// it. Of a twin, it counts in how many runs each text of shows was found.
//
// If go test repeats tests (-count), each repetition plays other seeds, and the returned sum is that of all
// repetitions so far. Simulate uses at most nine tenths of the time that go test has left, since other tests need
// some. It fails if that is not enough.
func Simulate(t *testing.T, n int, load sim.Workload, shows ...string) Sum {
	t.Helper()
	Lazily(t)
	s, first, end := testkit.Sample[Sum](testkit.Repetition(t), n)
	before := s.Runs
	s.Wanted += end - first
	var mu sync.Mutex
	shown := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return shows != nil && n < testkit.Enough && s.rarest() > 0
	}
	const parts = 4
	late := func() bool { return false }
	if end, limited := t.Deadline(); limited {
		last := time.Now().Add(time.Until(end) / 10 * 9)
		late = func() bool { return time.Now().After(last) }
	}
	t.Run("seeds", func(t *testing.T) {
		for part := range parts {
			t.Run(strconv.Itoa(part), func(t *testing.T) {
				t.Parallel()
				for i := first + part; i < end && !late() && !shown(); i += parts {
					r := load.Play(t, sim.Options{Seed: *simFrom + uint64(i)})
					mu.Lock()
					s.add(r, shows)
					mu.Unlock()
					if shows == nil || r.Broken { // a run that panicked has found nothing
						Complain(t, load, r)
					}
				}
			})
		}
	})
	if played := s.Runs - before; played < end-first && !shown() {
		t.Errorf("cut short after %d of %d seeds, for which there is not enough time: give go test more with -timeout, or say with -sim.seeds how many are to be played", played, end-first)
		if s.Runs == 0 { // no run, so no figures
			t.FailNow()
		}
	}
	t.Logf("%d of %d runs: %d requests, %d faults, %.1f virtual hours; writes: %d acknowledged, %d refused, %d unknown", s.Runs, s.Wanted, s.requests, s.AllFaults(), s.virtual,
		s.Acknowledged, s.Refused, s.Unknown)
	return *s
}

// Complain fails the test for the violations of a world.
func Complain(t *testing.T, load sim.Workload, r sim.Result) {
	t.Helper()
	for _, v := range r.Violations {
		t.Errorf("seed %d: %s", r.Seed, v)
	}
	if len(r.Violations) > 0 {
		t.Log(load.Replay(r.Seed))
	}
}
