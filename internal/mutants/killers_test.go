package mutants

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A test that has killed a mutant before runs first, where there is one of that name: alone, where it
// kills again.
func TestKillersRunFirst(t *testing.T) {
	m := Mutant{Name: "off", File: "sum/sum.go", Old: "n += list[i]\n\t}\n", New: "n += list[i]\n\t}\n\tn++\n", Part: Around, Breaks: "some promise"}
	dir := write(t, files())
	for first, want := range map[string]string{"TestTwo": "TestTwo/different", "TestGone": "TestEmpty", "": "TestEmpty"} {
		all := false
		results, err := Run(t.Context(), Config{
			Root: dir, Mutants: []Mutant{m}, Packages: []string{"sum"}, First: map[string]string{"off": first},
			Began: func(string, int, time.Duration) { all = true },
		})
		require.NoError(t, err)
		assert.Equal(t, first != "TestTwo", all)
		assert.Equal(t, Killed, results[0].Verdict)
		assert.Equal(t, want, results[0].Test)
	}
}

// What is written down is of the mutants that there are, and keeps what is known of those that have not
// been run.
func TestKillersAreRecorded(t *testing.T) {
	list := All()
	known := Killers()
	names := map[string]bool{}
	for _, m := range list {
		names[m.Name] = true
	}
	for name, test := range known {
		assert.True(t, names[name], "%s is no mutant", name)
		assert.Contains(t, test, "Test")
	}
	file := filepath.Join(t.TempDir(), "killers")
	require.NoError(t, Record(file, []Result{
		{Mutant: list[0], Verdict: TimedOut, Test: "TestOne/of/two"},
		{Mutant: list[1], Verdict: Survived},
		{Mutant: Mutant{Name: "of somebody else"}, Verdict: Killed, Test: "TestTwo"},
	}))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(text), list[0].Name+" TestOne\n")
	if test := known[list[1].Name]; test != "" {
		assert.Contains(t, string(text), list[1].Name+" "+test+"\n")
	}
	assert.NotContains(t, string(text), "somebody else")
	require.Error(t, Record(filepath.Join(file, "below"), nil))
}
