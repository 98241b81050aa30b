package mutants

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
)

// files are the files of a module with two packages. The second one tests the first one, too.
func files() map[string]string {
	return map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.25\n",
		"sum/sum.go": `package sum

func Of(list []int) (n int) {
	for i := 0; i < len(list); i++ {
		n += list[i]
	}
	return n
}

func Unused() int { return 1 }
`,
		"sum/sum_test.go": `package sum

import "testing"

func TestEmpty(t *testing.T) {
	if Of(nil) != 0 {
		t.Fatal("of nothing")
	}
}

func TestTwo(t *testing.T) {
	t.Run("different", func(t *testing.T) {
		if Of([]int{1, 2}) != 3 {
			t.Fatal("of two")
		}
	})
}
`,
		"twice/twice_test.go": `package twice

import (
	"testing"

	"example.com/m/sum"
)

func TestUnused(t *testing.T) {
	if sum.Unused() < 1 {
		t.Fatal("unused")
	}
}
`,
	}
}

// write writes a module, which the test compiles, and returns its directory. With -short it skips the test.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles a module: make proof and every run without -short do")
	}
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func TestRun_JudgesMutants(t *testing.T) {
	if testkit.Small() {
		t.Skip("compiles each mutant: make proof runs it")
	}
	mutant := func(name, from, to string) Mutant {
		return Mutant{Name: name, File: "sum/sum.go", Old: from, New: to, Part: Around, Breaks: "some promise"}
	}
	list := []Mutant{
		mutant("begins-late", "i := 0", "i := 1"),
		mutant("never-ends", "i++", "i += 0"),
		mutant("reads-past-the-end", "i < len(list)", "i <= len(list)"),
		mutant("seen-by-the-other", "return 1", "return 0"),
		mutant("seen-by-none", "return 1", "return 2"),
		mutant("does-not-compile", "return 1", "return n"),
		mutant("does-not-fit", "return 7", "return 8"),
	}
	want := map[string]struct {
		verdict   Verdict
		test, err string
	}{
		"begins-late":        {Killed, "TestTwo/different", ""},
		"never-ends":         {TimedOut, "TestTwo", ""},
		"reads-past-the-end": {Killed, "TestEmpty", ""},
		"seen-by-the-other":  {Killed, "TestUnused", ""},
		"seen-by-none":       {Survived, "", ""},
		"does-not-compile":   {Broken, "", "undefined: n"},
		"does-not-fit":       {Broken, "", "mutation does-not-fit does not fit sum/sum.go any more"},
	}
	dir := write(t, files())
	var out strings.Builder
	report := &Report{Out: &out, Total: len(list)}
	results, err := Run(t.Context(), Config{
		Root: dir, Mutants: list, Packages: []string{"sum", "twice"}, Parallel: 2, Patience: 3 * time.Second,
		Began: report.Began, Done: report.Done,
	})
	require.NoError(t, err)
	require.Len(t, results, len(list))
	for i, r := range results {
		assert.Equal(t, list[i], r.Mutant)
		w := want[r.Mutant.Name]
		assert.Equal(t, w.verdict, r.Verdict, "%s: %v", r.Mutant.Name, r.Err)
		assert.Equal(t, w.test, r.Test, r.Mutant.Name)
		if w.err == "" {
			assert.NoError(t, r.Err, r.Mutant.Name)
		} else {
			assert.ErrorContains(t, r.Err, w.err)
		}
		assert.Regexp(t, string(w.verdict)+` .* `+r.Mutant.Name+` `, out.String())
	}
	survived, broken, unseen := report.Sum()
	assert.Equal(t, []int{1, 2, 0}, []int{survived, broken, unseen})
	assert.Contains(t, out.String(), "F16: 4 of 7 mutants killed, 57.1 % (goal at least 60 mutants, all killed by all tests); "+
		"1 of them since a test hung, 1 survived, 2 could not be run")
	text, err := os.ReadFile(filepath.Join(dir, "sum", "sum.go"))
	require.NoError(t, err)
	assert.Equal(t, files()["sum/sum.go"], string(text), "the source is left alone")
}

// Programs that the tests build have the mistake, too.
func TestRun_ProgramsOfTestsHaveTheMistake(t *testing.T) {
	module := files()
	module["cmd/main.go"] = "package main\n\nimport \"example.com/m/sum\"\n\nfunc main() { println(sum.Unused()) }\n"
	module["cmd/main_test.go"] = `package main

import (
	"os/exec"
	"testing"
)

func TestProgram(t *testing.T) {
	if out, err := exec.Command("go", "run", ".").CombinedOutput(); string(out) != "1\n" {
		t.Fatal(string(out), err)
	}
}
`
	results, err := Run(t.Context(), Config{
		Root: write(t, module), Packages: []string{"cmd"},
		Mutants: []Mutant{{Name: "seen-by-a-program", File: "sum/sum.go", Old: "return 1", New: "return 2", Part: Around, Breaks: "some promise"}},
	})
	require.NoError(t, err)
	assert.Equal(t, Killed, results[0].Verdict, "%v", results[0].Err)
	assert.Equal(t, "TestProgram", results[0].Test)
}

func TestRun_NeedsTestsThatPass(t *testing.T) {
	for name, tc := range map[string]struct{ file, text, err string }{ // err is a pattern
		"failing":   {"sum/bad_test.go", "package sum\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Fatal(\"so bad\") }\n", `TestBad of sum failed without any mistake:\n(.*\n)* +bad_test.go:5: so bad\n--- FAIL: TestBad`},
		"no tests":  {"sum/sum_test.go", "package sum\n", "sum has no tests"},
		"no source": {"sum/bad_test.go", "package other\n", "compile the tests of sum"},
	} {
		t.Run(name, func(t *testing.T) {
			module := files()
			module[tc.file] = tc.text
			unnoticed := Mutant{Name: "seen-by-none", File: "sum/sum.go", Old: "return 1", New: "return 2"}
			_, err := Run(t.Context(), Config{Root: write(t, module), Mutants: []Mutant{unnoticed, unnoticed}, Packages: []string{"sum"}})
			require.Error(t, err)
			assert.Regexp(t, tc.err, err.Error())
		})
	}
}

// If only some tests run, a mutant that only others would notice survives. Packages without a selected test do not
// matter.
func TestRun_OfSomeTestsSparesWhatOnlyOthersNotice(t *testing.T) {
	module := files()
	module["sum/bad_test.go"] = "package sum\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Fatal(\"so bad\") }\n\nfunc BenchmarkTwo(b *testing.B) {}\n"
	config := Config{
		Root: write(t, module), Packages: []string{"twice", "sum"}, Tests: regexp.MustCompile("Empty|Two"),
		Mutants: []Mutant{
			{Name: "begins-late", File: "sum/sum.go", Old: "i := 0", New: "i := 1"},
			{Name: "seen-by-the-other", File: "sum/sum.go", Old: "return 1", New: "return 0"},
		},
	}
	var out strings.Builder
	report := &Report{Out: &out, Total: 2, Tests: "Empty|Two"}
	config.Began, config.Done = report.Began, report.Done
	results, err := Run(t.Context(), config)
	require.NoError(t, err)
	assert.Equal(t, Killed, results[0].Verdict)
	assert.Equal(t, "TestTwo/different", results[0].Test)
	assert.Equal(t, Survived, results[1].Verdict)
	report.Sum()
	assert.Contains(t, out.String(), "sum: 2 tests pass")
	assert.NotContains(t, out.String(), "twice: ")
	assert.Contains(t, out.String(), `F16: 1 of 2 mutants killed by the tests that match "Empty|Two" alone, 50.0 %`)

	config.Tests = regexp.MustCompile("Nonsense")
	_, err = Run(t.Context(), config)
	require.ErrorContains(t, err, `no test matches "Nonsense"`)
}

// A flaky test kills nothing.
func TestRun_UnsteadyTestKillsNothing(t *testing.T) {
	module := files()
	module["sum/flaky_test.go"] = `package sum

import (
	"os"
	"testing"
)

func TestPassesOnce(t *testing.T) {
	if os.Mkdir("passed", 0o700) != nil {
		t.Fatal("it has passed before")
	}
}

func TestFailsOnce(t *testing.T) {
	if Unused() == 2 && os.Mkdir("failed", 0o700) == nil {
		t.Fatal("it has not failed before")
	}
}
`
	results, err := Run(t.Context(), Config{
		Root: write(t, module), Packages: []string{"sum"},
		Mutants: []Mutant{{Name: "seen-by-none", File: "sum/sum.go", Old: "return 1", New: "return 2"}},
	})
	require.NoError(t, err)
	assert.Equal(t, Survived, results[0].Verdict, results[0].Err)
	assert.ElementsMatch(t, []string{"TestPassesOnce failed, but without the mistake it failed, too", "TestFailsOnce failed, but not again"}, results[0].Unsteady)
}

// Workers share the measurement of a suite without a mistake. If one of them cannot measure it, no other may take it
// for measured, and its mutant for a survivor.
func TestSuite_ThatCannotRunIsMeasuredByNobody(t *testing.T) {
	r := &runner{fail: func(error) {}}
	s := &suite{control: &binary{path: filepath.Join(t.TempDir(), "missing"), dir: t.TempDir()}, tests: []string{"TestOne"}}
	for range 2 {
		require.ErrorIs(t, r.measure(t.Context(), s), os.ErrNotExist)
	}
}

func TestRun_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	module := files()
	done := 0
	list := []Mutant{
		{Name: "seen-by-none", File: "sum/sum.go", Old: "return 1", New: "return 2"},
		{Name: "seen-by-none-either", File: "sum/sum.go", Old: "return 1", New: "return 3"},
	}
	_, err := Run(ctx, Config{Root: write(t, module), Packages: []string{"sum"}, Mutants: list, Done: func(Result) {
		done++
		cancel()
	}})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 1, done)
}

func TestOutcome_PassesOverAPanicThatWasMeant(t *testing.T) {
	var o outcome
	o.took = map[string]time.Duration{}
	running := o.read(strings.NewReader(strings.Join([]string{
		"\x16=== RUN   TestPanics", "panic: as it should", "\x16--- PASS: TestPanics (0.25s)",
		"\x16=== RUN   TestFails", "\x16=== RUN   TestFails/one", "some text\x16    --- FAIL: TestFails/one (0.00s)", "\x16--- FAIL: TestFails (0.00s)",
		"\x16=== RUN   ExampleOf", "\x16--- PASS: ExampleOf (0.00s)", "FAIL",
	}, "\n")), func(string) {})
	assert.Equal(t, "ExampleOf", running)
	assert.Equal(t, "    --- FAIL: TestFails/one (0.00s)", o.last[len(o.last)-1], "whatever comes after the first failure does not explain it")
	o.last = nil
	assert.Equal(t, outcome{failed: "TestFails/one", how: failed, took: map[string]time.Duration{"TestPanics": 250 * time.Millisecond}}, o)
}
