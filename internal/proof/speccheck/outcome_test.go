package speccheck

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// searched is what a verifier prints that has seen all states and found no error.
const searched = `
(Spin Version 6.5.2 -- 6 December 2019)

Full statespace search for:
	never claim         	- (none specified)
	assertion violations	+
	cycle checks       	- (disabled by -DSAFETY)
	invalid end states	+

State-vector 104 byte, depth reached 4180, errors: 0
  1091947 states, stored
  1803222 states, matched
  2895169 transitions (= stored+matched)

Stats on memory usage (in Megabytes):
  178.125	total actual memory usage

`

func TestParseSearch_ReadsACompleteSearch(t *testing.T) {
	require.Equal(t, Outcome{States: 1091947, Depth: 4180, MB: 178.125}, parseSearch(searched, true))
}

func TestParseSearch_ReadsLargeNumbersOfStates(t *testing.T) {
	o := parseSearch(strings.Replace(searched, "1091947 states, stored", "1.1913416e+07 states, stored", 1), true)
	require.EqualValues(t, 11913416, o.States)
	require.Empty(t, o.Incomplete)
}

// A search that has not seen all states is no proof, whatever else it prints.
func TestParseSearch_TruncatedSearchIsIncomplete(t *testing.T) {
	_, last, _ := strings.Cut(searched, "State-vector")
	for name, c := range map[string]struct{ was, is string }{
		"depth":              {"\nFull", "error: max search depth too small\n\nFull"},
		"memory limit":       {"\nFull", "pan: reached -DMEMLIM bound\n\nFull"},
		"memory":             {"\nFull", "pan: out of memory\n\nFull"},
		"state vector":       {"\nFull", "pan: VECTORSZ too small, recompile with -DVECTORSZ=N\n\nFull"},
		"not completed":      {"\nFull", "Warning: Search not completed\n\nFull"},
		"approximate search": {"Full statespace", "Bit statespace"},
		"assertions off":     {"assertion violations	+", "assertion violations	- (disabled by -A flag)"},
		"end states off":     {"invalid end states	+", "invalid end states	- (disabled by -E flag)"},
		"killed":             {"State-vector" + last, ""},
		"nothing":            {searched, ""},
	} {
		t.Run(name, func(t *testing.T) {
			output := strings.Replace(searched, c.was, c.is, 1)
			require.NotEqual(t, searched, output)
			o := parseSearch(output, true)
			require.NotEmpty(t, o.Incomplete)
			verdict, what := Run{}.Judge(o)
			require.Equal(t, Undecided, verdict)
			require.Contains(t, what, o.Incomplete)
			verdict, _ = Run{Breaks: "a promise"}.Judge(o)
			require.Equal(t, Undecided, verdict, "nor has a twin shown anything")
		})
	}
}

func TestParseSearch_WantsASearchForStuckProcessesWhereItIsAskedFor(t *testing.T) {
	require.Empty(t, parseSearch(searched, true).Incomplete)
	require.NotEmpty(t, parseSearch(searched, false).Incomplete)
}

func TestParseSearch_ErrorsHaveTheVerifiersNames(t *testing.T) {
	for said, broken := range map[string]string{
		"pan:1: invalid end state (at depth 17)":    Stuck,
		"pan:1: assertion violated 0 (at depth 41)": "assertion violated 0 (at depth 41)",
		"": "something that the verifier does not name",
	} {
		output := said + "\npan: wrote run.pml.trail\n" + strings.Replace(searched, "errors: 0", "errors: 1", 1)
		require.Equal(t, broken, parseSearch(output, true).Broken)
	}
}

func TestParseReplay_NamesThePromiseAndTheSteps(t *testing.T) {
	promise, steps := parseReplay(`ENTER of ticket 1 (fence 0, x 0): applied 1; line 1 0 0, fence 1, writes 0
late: BROKEN: only the dead are evicted
spin: run.pml:2, Error: assertion violated
spin: text of failed assertion: assert(0)
spin: trail ends after 12 steps
#processes: 4
		line[0] = 1
`)
	require.Equal(t, "only the dead are evicted", promise)
	require.Equal(t, []string{
		"ENTER of ticket 1 (fence 0, x 0): applied 1; line 1 0 0, fence 1, writes 0",
		"late: BROKEN: only the dead are evicted",
	}, steps)
	promise, _ = parseReplay("spin: cannot find 'trail' file\n")
	require.Empty(t, promise)
}

func TestRun_IsJudgedByWhatItHasToShow(t *testing.T) {
	const promise, other = "one holder per fence", "only the dead are evicted"
	for name, c := range map[string]struct {
		breaks, broken string
		want           Verdict
	}{
		"holds":               {"", "", Expected},
		"breaks":              {"", promise, Unexpected},
		"twin":                {promise, promise, Expected},
		"twin that holds":     {promise, "", Unexpected},
		"twin, other promise": {promise, other, Unexpected},
	} {
		t.Run(name, func(t *testing.T) {
			verdict, what := Run{Breaks: c.breaks}.Judge(Outcome{Broken: c.broken})
			require.Equal(t, c.want, verdict)
			require.Equal(t, c.want == Expected, what == "")
		})
	}
}
