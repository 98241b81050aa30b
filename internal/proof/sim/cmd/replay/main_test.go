package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/cli/clitest"
	"github.com/mortise-go/mortise/internal/proof/sim"
)

func parsed(t *testing.T, args string) settings {
	s, err := parse(flag.NewFlagSet("replay", flag.ContinueOnError), strings.Fields(args))
	require.NoError(t, err)
	return s
}

func TestMain(m *testing.M) { clitest.Main(m, main) }

// Show prints the world, its processes, the picture, the events and the result.
func TestShow_PrintsTheWorld(t *testing.T) {
	var out bytes.Buffer
	assert.Equal(t, 0, parsed(t, "-seed 4 -rounds .1 -width 100").show(t, &out))
	got := out.String()
	for _, part := range []string{
		"seed 4, workload lockset", "The world:\n  every way takes", "p1   client1  from    0.000 s: wall clock",
		"Fences are counted from 946684800000.", "\nclient8  ^", " client1  w   acquires set\n", "What came of it: writes ", "No violations.",
	} {
		assert.Contains(t, got, part)
	}
	assert.NotContains(t, got, " sends ")

	var window bytes.Buffer
	parsed(t, "-seed 4 -rounds .1 -width 100 -requests -from 1s -to 2s").show(t, &window)
	_, events, _ := strings.Cut(window.String(), "What happened")
	assert.Contains(t, events, " sends ")
	for line := range strings.Lines(events) {
		var at float64
		if n, _ := fmt.Sscan(line, &at); n == 1 && strings.Contains(line, " p") {
			assert.True(t, at >= 1 && at <= 2, line)
		}
	}
}

// Processes are stopped by the world, by the workload, or by both. Each is reported.
func TestShow_TellsWhoStopsProcesses(t *testing.T) {
	const seed = "-seed 6 -width 100 -workload " // a world that pauses processes
	for load, itself := range map[string]bool{"lockset": true, "versions": false} {
		var out bytes.Buffer
		parsed(t, seed+load).show(t, &out)
		assert.Regexp(t, ` [1-9]\d* paused\n`, out.String())
		assert.Equal(t, itself, strings.Contains(out.String(), "the workload itself pauses or suspends its processes"), load)
	}
}

// If nothing happens in the window, the output tells when the world has ended.
func TestShow_TellsWhenTheWorldHasEnded(t *testing.T) {
	var out bytes.Buffer
	parsed(t, "-seed 4 -rounds .1 -from 100h").show(t, &out)
	assert.Contains(t, out.String(), "Nothing to draw: what happened last was at ")
	assert.Regexp(t, `worker\):\n\nNothing: the world has ended at [0-9.]+ s\.\n`, out.String())
}

// The twin's violations are shown, and the exit code is 1.
func TestShow_PrintsTheTwinsViolations(t *testing.T) {
	var out bytes.Buffer
	assert.Equal(t, 1, parsed(t, "-seed 2 -twin -rounds .5").show(t, &out))
	assert.Contains(t, out.String(), "was acknowledged and is lost")
	assert.Contains(t, out.String(), "This is the twin")
	assert.Equal(t, parsed(t, "").loads[0].Replay(0), parsed(t, "-twin=false").loads[0].Replay(0))
	for _, args := range []string{"-workload queue -twin=greedy", "-digest -workload queue -twin=greedy"} {
		assert.Contains(t, parsed(t, args).loads[0].Replay(3), "-workload queue -twin=greedy -seed 3")
	}
	assert.Contains(t, parsed(t, "-twin=1 -workload queue").loads[0].Replay(3), "-workload queue -twin=apart -seed 3")
}

func TestDigests_HaveALineForEachSeed(t *testing.T) {
	var out bytes.Buffer
	parsed(t, "-digest -seeds 3-4 -rounds .1 -workload lockset").digests(t, &out)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	r := sim.Workloads()[0].Play(t, sim.Options{Seed: 3, Rounds: .1, History: true})
	assert.Equal(t, "lockset 3 "+r.Digest(), lines[0])
	assert.True(t, strings.HasPrefix(lines[1], "lockset 4 "), lines[1])
}

// The error for a wrong call is one line, and help is not a failure.
func TestCommand_TellsOfAWrongCallInOneLine(t *testing.T) {
	run := clitest.Self(t)
	out, complaints, code := run("-workload unique -seed 3 -rounds .2")
	assert.Equal(t, []any{0, ""}, []any{code, complaints})
	assert.Contains(t, out, "No violations.\n")
	out, complaints, code = run("-twin -seed 2 -rounds .5")
	assert.Equal(t, []any{1, ""}, []any{code, complaints})
	assert.Contains(t, out, " violations:\n")
	clitest.Calls(t, run, "replay", "-workload name")
}

func TestParse_RefusesWrongArguments(t *testing.T) {
	for args, want := range map[string]string{
		"-digest -from 1s": "-from", "-digest -to 1s": "-to", "-digest -requests": "-requests", "-digest -width 90": "-width",
		"-digest -seed 1 -seeds 2-3": "-seed ", "-nonsense": "-nonsense",
		"-seeds 0-9": "-digest", "-digest -seeds 9-0": "less", "-digest -seeds 9": "first-last", "-rounds 0": "-rounds", "-rounds 101": "-rounds", "-rounds NaN": "-rounds",
		"-from 5s -to 1s": "no span", "-from -1s": "no span", "-width 3": "-width", "-workload nonsense": `"nonsense"`, "nonsense": `"nonsense"`,
		"-twin=nonsense": `no twin "nonsense"; there are ["unguarded"]`, "-digest -twin=greedy": `no twin "greedy"`,
	} {
		f := flag.NewFlagSet("replay", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		_, err := parse(f, strings.Fields(args))
		require.ErrorContains(t, err, want, args)
	}
	f := flag.NewFlagSet("replay", flag.ContinueOnError)
	_, err := parse(f, nil)
	require.NoError(t, err)
	for _, l := range sim.Workloads() {
		assert.Contains(t, f.Lookup("workload").Usage, l.Name)
	}
	s := parsed(t, "-to 10s")
	assert.Equal(t, 10*time.Second, s.to)
	assert.GreaterOrEqual(t, s.width, 40)
}
