package cli_test

import (
	"flag"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/cli"
)

func TestSeeds_AreTheFirstToTheLast(t *testing.T) {
	for text, want := range map[string][]uint64{
		"0-0": {0}, "3-5": {3, 4, 5}, "18446744073709551614-18446744073709551615": {math.MaxUint64 - 1, math.MaxUint64},
	} {
		var s cli.Seeds
		require.NoError(t, s.Set(text))
		assert.Equal(t, want, slices.Collect(s.All()))
		assert.Equal(t, text, s.String())
	}
	for range (cli.Seeds{Last: 9}).All() {
		break
	}
	for _, text := range []string{"", "1", "1-", "-1", "2-1", "1-2x", "1-2-3", "+1-2", "0-18446744073709551616"} {
		assert.ErrorContains(t, new(cli.Seeds).Set(text), "first-last", strconv.Quote(text))
	}
}

func TestParse_RefusesWhatIsNoFlag(t *testing.T) {
	f := flag.NewFlagSet("test", flag.ContinueOnError)
	f.Bool("a", false, "")
	f.Bool("b", false, "")
	require.NoError(t, cli.Parse(f, []string{"-a"}))
	assert.Equal(t, map[string]bool{"a": true}, cli.Given(f))
	assert.ErrorContains(t, cli.Parse(f, []string{"-b", "nonsense"}), `"nonsense"`)
}
