package mutants

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test that has killed a mutant before runs first, if there is one with that name. If it kills the mutant again,
// no other test runs, in whichever package.
func TestKillers_RunFirst(t *testing.T) {
	off := Mutant{Name: "off", File: "sum/sum.go", Old: "n += list[i]\n\t}\n", New: "n += list[i]\n\t}\n\tn++\n", Part: Around, Breaks: "some promise"}
	unused := Mutant{Name: "unused", File: "sum/sum.go", Old: "return 1", New: "return 0", Part: Around, Breaks: "some promise"}
	dir := write(t, files())
	cases := []struct {
		mutant Mutant
		first  Killer
		want   Killer
		all    []string // packages all of whose tests run without a mistake
	}{
		{off, Killer{"sum", "TestTwo"}, Killer{"sum", "TestTwo/different"}, nil},
		{off, Killer{"sum", "TestGone"}, Killer{"sum", "TestEmpty"}, []string{"sum"}},
		{off, Killer{}, Killer{"sum", "TestEmpty"}, []string{"sum"}},
		{unused, Killer{"twice", "TestUnused"}, Killer{"twice", "TestUnused"}, nil},
		{unused, Killer{"gone", "TestUnused"}, Killer{"twice", "TestUnused"}, []string{"twice"}},
		{unused, Killer{}, Killer{"twice", "TestUnused"}, []string{"sum", "twice"}},
	}
	for _, tc := range cases {
		var all []string
		results, err := Run(t.Context(), Config{
			Root: dir, Mutants: []Mutant{tc.mutant}, Packages: []string{"twice", "sum"}, First: map[string]Killer{tc.mutant.Name: tc.first},
			Began: func(pkg string, _ int, _ time.Duration) { all = append(all, pkg) },
		})
		require.NoError(t, err)
		assert.Equal(t, tc.all, all, "%+v", tc.first)
		assert.Equal(t, Killed, results[0].Verdict)
		assert.Equal(t, tc.want, Killer{results[0].Package, results[0].Test})
	}
}

// Each mutant has a test that is known to kill it. Without that, make mutants takes hours.
func TestKillers_HaveOneForEveryMutant(t *testing.T) {
	known := Killers()
	tests := map[string]*regexp.Regexp{}
	for _, m := range All() {
		killer := known[m.Name]
		delete(known, m.Name)
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(killer.Package), "*_test.go"))
		require.NoError(t, err)
		if tests[killer.Test] == nil {
			tests[killer.Test] = regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(killer.Test) + `\(`)
		}
		found := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			found = found || tests[killer.Test].Match(text)
		}
		assert.True(t, found, "%s: there is no test %s in %q", m.Name, killer.Test, killer.Package)
	}
	assert.Empty(t, known, "they are no mutants")
}

// Killers are recorded for the mutants of the list. What is known of mutants that were not run stays.
func TestKillers_AreRecorded(t *testing.T) {
	list := All()
	known := Killers()
	file := filepath.Join(t.TempDir(), "killers")
	require.NoError(t, Record(file, []Result{
		{Mutant: list[0], Verdict: TimedOut, Package: "one", Test: "TestOne/of/two"},
		{Mutant: list[1], Verdict: Survived},
		{Mutant: Mutant{Name: "of somebody else"}, Verdict: Killed, Package: "one", Test: "TestTwo"},
	}))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(text), list[0].Name+" one TestOne\n")
	stays := known[list[1].Name]
	assert.Contains(t, string(text), list[1].Name+" "+stays.Package+" "+stays.Test+"\n")
	assert.NotContains(t, string(text), "somebody else")
	require.Error(t, Record(filepath.Join(file, "below"), nil))
}
