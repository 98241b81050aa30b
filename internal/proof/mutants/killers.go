package mutants

import (
	_ "embed"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// killers has a line for each mutant that a test has killed before: its name, the test's package, and the test's name.
//
//go:embed killers.txt
var killers string

// Killer is a test that has killed a mutant before.
type Killer struct {
	Package string // relative to the module's root, with slashes
	Test    string
}

// Killers returns the tests that have killed mutants before, by the names of the mutants.
func Killers() map[string]Killer {
	by := map[string]Killer{}
	for line := range strings.Lines(killers) {
		if parts := strings.Fields(line); len(parts) == 3 {
			by[parts[0]] = Killer{parts[1], parts[2]}
		}
	}
	return by
}

// Record writes into a file which tests have killed the mutants, for Killers of the next build. Lines of mutants that
// were not run stay.
func Record(file string, results []Result) error {
	by := Killers()
	for _, r := range results {
		if r.Verdict == Killed || r.Verdict == TimedOut {
			test, _, _ := strings.Cut(r.Test, "/")
			by[r.Mutant.Name] = Killer{r.Package, test}
		}
	}
	known := map[string]bool{}
	for _, m := range All() {
		known[m.Name] = true
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if known[name] {
			fmt.Fprintln(&text, name, by[name].Package, by[name].Test)
		}
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("mutants: %w", err)
	}
	return nil
}
