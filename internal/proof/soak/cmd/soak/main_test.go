package main

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/cli/clitest"
	"github.com/mortise-go/mortise/internal/proof/soak"
)

func parsed(args string) (soak.Config, error) {
	return parse(flag.NewFlagSet("soak", flag.ContinueOnError), strings.Fields(args))
}

func TestMain(m *testing.M) { clitest.Main(m, main) }

func TestParse_ReadsArguments(t *testing.T) {
	config, err := parsed("-minutes .5 -seed 7 -workers 2 -faults 0 -calm 1s")
	require.NoError(t, err)
	assert.Equal(t, soak.Config{Duration: 30 * time.Second, Seed: 7, Workers: 2, Faults: -1, Calm: time.Second}, config)
	config, err = parsed("")
	require.NoError(t, err)
	assert.NotZero(t, config.Seed)
	assert.Equal(t, 30*time.Minute, config.Duration)
	for _, minutes := range []string{"0", "-1", "NaN", "1e300"} {
		_, err = parsed("-minutes " + minutes)
		require.ErrorContains(t, err, "-minutes", minutes)
	}
	for _, faults := range []string{"-.1", "NaN"} {
		_, err = parsed("-faults " + faults)
		require.ErrorContains(t, err, "-faults", faults)
	}
	for _, wrong := range []string{"-faults .6", "-workers 0", "-workers 1", "-workers 65", "-calm 0", "-calm 299ms"} {
		_, err = parsed(wrong)
		require.ErrorIs(t, err, soak.ErrInvalid, wrong)
	}
}

func TestCommand_TellsOfAWrongCallInOneLine(t *testing.T) {
	clitest.Calls(t, clitest.Self(t), "soak", "-unguarded")
}
