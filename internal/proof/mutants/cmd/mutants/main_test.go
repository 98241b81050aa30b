package main

import (
	"bytes"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/cli"
	"github.com/mortise-go/mortise/internal/cli/clitest"
	"github.com/mortise-go/mortise/internal/proof/mutants"
	"github.com/mortise-go/mortise/internal/proof/sim"
)

func parsed(args ...string) (settings, error) {
	f := flag.NewFlagSet("mutants", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return parse(f, args)
}

func TestMain(m *testing.M) { clitest.Main(m, main) }

func TestParse_ReadsArguments(t *testing.T) {
	s, err := parsed()
	require.NoError(t, err)
	assert.Len(t, s.mutants, len(mutants.All()))
	assert.Nil(t, s.tests)
	s, err = parsed("-tests", "Bank|Queue", "-run", "^guard-")
	require.NoError(t, err)
	assert.Equal(t, "Bank|Queue", s.tests.String())
	assert.Equal(t, "guard-of-anybody", s.mutants[0].Name)
	assert.Equal(t, cli.Seeds{Last: 29}, s.seeds)
	s, err = parsed("-search", "queue,bank", "-seeds", "7-9")
	require.NoError(t, err)
	assert.Equal(t, []string{"queue", "bank"}, s.search)
	assert.Equal(t, cli.Seeds{First: 7, Last: 9}, s.seeds)
	s, err = parsed("-search", "all")
	require.NoError(t, err)
	assert.Len(t, s.search, len(sim.Workloads()))
	assert.Equal(t, cli.Seeds{Last: 99}, s.seeds)
}

func TestParse_RefusesWrongArguments(t *testing.T) {
	for args, want := range map[string]string{
		"nonsense": `"nonsense"`, "-nonsense": "-nonsense", "-run (": "-run", "-run nonsense": `matches "nonsense"`, "-tests (": "-tests",
		"-parallel 0": "-parallel", "-search nonsense": `"nonsense"`, "-search queue,": `""`, "-seeds 1": "first-last", "-list -seeds 1-2": "-list", "-search queue -seeds 2-1": "first-last",
		"-search queue -seeds 2": "first-last", "-search queue -seeds 1-2x": "first-last", "-search queue -tests x": "-search", "-list -search queue": "-list", "-seeds 0-1000000": "more than 1000000", "-seeds 0-18446744073709551615": "more than 1000000",
	} {
		_, err := parsed(strings.Fields(args)...)
		require.ErrorContains(t, err, want, args)
	}
}

// Among the packages with tests of locks, those of the protocol come first. Those that play seeds get flags that
// select them.
func TestSuites_BeginWithThoseOfTheProtocol(t *testing.T) {
	t.Chdir("../../../../..")
	packages, err := suites(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "lock", packages[0])
	assert.Contains(t, packages, "internal/proof/sim")
	s, err := parsed("-seeds", "7-9")
	require.NoError(t, err)
	seeds := []string{"-sim.from=7", "-sim.seeds=3"}
	assert.Equal(t, map[string][]string{
		"lock/proof/linearizability": seeds, "lock/proof/replay": seeds, "lock/proof/updates": seeds, "lock/proof/workloads": seeds,
	}, s.flags(packages))
}

func TestCommand_TellsOfAWrongCallInOneLine(t *testing.T) {
	clitest.Calls(t, clitest.Self(t), "mutants", "-search workloads")
}

func TestList_HasTheSelectedMutants(t *testing.T) {
	s, err := parsed("-list", "-run", "^commit-|^force-is-")
	require.NoError(t, err)
	var out bytes.Buffer
	code, err := s.print(t.Context(), &out)
	require.NoError(t, err)
	assert.Zero(t, code)
	assert.Contains(t, out.String(), "commit-keeps-the-lock")
	assert.True(t, strings.HasSuffix(out.String(), "\n4 mutants\n"), out.String())
}
