package main

import (
	"bytes"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/cli/clitest"
	"github.com/mortise-go/mortise/internal/proof/sim"
)

func played(seed uint64, violations ...string) sim.Result {
	return sim.Result{
		Seed: seed, Violations: violations, Requests: 20_000, Virtual: 13 * time.Hour, Faults: map[string]int{"lost": 3, "500": 1},
		Tally: sim.Tally{Acknowledged: 10, Refused: 2, Unknown: 1, Lost: len(violations)},
	}
}

func TestMain(m *testing.M) { clitest.Main(m, main) }

// Progress tells how much is left. A violation comes once, with the command that shows it.
func TestReport_TellsProgressAndViolations(t *testing.T) {
	var out bytes.Buffer
	load := sim.Workloads()[0]
	r := newReport(&out, plan{loads: []sim.Workload{load}, from: 5, seeds: 8, rounds: .5}, false)
	assert.Equal(t, "0 of 8 worlds, 0.0 %, ? left; 0 requests, 0s of virtual time, 0 with violations", r.progress(time.Second))
	r.add(load, played(5))
	r.add(load, played(6, "element 7 was acknowledged and is lost"))
	r.print(r.progress(10 * time.Second))
	assert.Equal(t, "VIOLATION: "+load.Name+", seed 6: element 7 was acknowledged and is lost\n"+
		"  go run ./internal/proof/sim/cmd/replay -workload "+load.Name+" -seed 6 -rounds 0.5\n"+
		"2 of 8 worlds, 25.0 %, 30s left; 40 thousand requests, 1.1 days of virtual time, 1 with violations\n", out.String())
	out.Reset()
	r.print("")
	assert.Empty(t, out.String())

	assert.Equal(t, 1, r.summary())
	lines := strings.Split(out.String(), "\n")
	assert.Equal(t, []string{load.Name, "2", "20", "4", "2", "1", "1", "writes"}, strings.Fields(lines[1]))
	assert.True(t, strings.HasPrefix(lines[2], "2 worlds from seed 5 on, 40 thousand requests, 1.1 days of virtual time, in "), lines[2])
	assert.Equal(t, "faults: 2 500, 6 lost", lines[3])
}

// On a terminal a line of progress replaces the one before.
func TestReport_ReplacesItsLineOnATerminal(t *testing.T) {
	var out bytes.Buffer
	r := newReport(&out, plan{loads: sim.Workloads(), seeds: 1, rounds: 1}, true)
	r.print("a line")
	assert.Equal(t, "\r\x1b[Ka line", out.String())
}

// A world that breaks down is a violation, and others continue.
func TestPlan_GoesOnAfterABrokenWorld(t *testing.T) {
	broken := sim.Workload{Name: "broken", Run: func(*sim.World) sim.Tally { return sim.Tally{} }}
	p := plan{rounds: 1}
	assert.Empty(t, p.one(t, broken, 1).Violations)
	broken.Run = func(w *sim.World) sim.Tally {
		w.Violation("a violation")
		return sim.Tally{Lost: 1}
	}
	got := p.one(t, broken, 2)
	assert.Equal(t, []string{"a violation"}, got.Violations)
	assert.Equal(t, 1, got.Tally.Lost)
	broken.Run = func(*sim.World) sim.Tally { panic("something") }
	got = p.one(t, broken, 3)
	require.Len(t, got.Violations, 1)
	assert.Contains(t, got.Violations[0], "the workload broke down: something\n")
}

// The error for a wrong call is one line, and help is not a failure.
func TestCommand_TellsOfAWrongCallInOneLine(t *testing.T) {
	run := clitest.Self(t)
	out, complaints, code := run("-workload unique -seeds 2 -from 3 -rounds .2")
	assert.Equal(t, []any{0, ""}, []any{code, complaints})
	assert.Contains(t, out, "2 worlds from seed 3 on")
	clitest.Calls(t, run, "sim", "-workload name")
}

func TestParse_RefusesWrongArguments(t *testing.T) {
	for args, want := range map[string]string{
		"-seeds 0": "-seeds", "-seeds 1000000000001": "-seeds", "-from 18446744073709551610 -seeds 7": "-from", "-rounds 101": "-rounds", "-rounds NaN": "-rounds", "-rounds 0": "-rounds", "-workload nonsense": `"nonsense"`, "nonsense": `"nonsense"`,
	} {
		_, err := parse(flag.NewFlagSet("sim", flag.ContinueOnError), strings.Fields(args))
		require.ErrorContains(t, err, want)
	}
	p, err := parse(flag.NewFlagSet("sim", flag.ContinueOnError), strings.Fields("-seeds 7 -from 3 -workload lockset"))
	require.NoError(t, err)
	assert.Equal(t, []any{uint64(7), uint64(3), 1, "lockset"}, []any{p.seeds, p.from, len(p.loads), p.loads[0].Name})
}
