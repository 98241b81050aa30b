package mutants

import (
	_ "embed"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// killers has a line for each mutant that a test has killed before: their names.
//
//go:embed killers.txt
var killers string

// Killers are the tests that have killed mutants before, by the names of these.
func Killers() map[string]string {
	by := map[string]string{}
	for line := range strings.Lines(killers) {
		if mutant, test, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			by[mutant] = test
		}
	}
	return by
}

// Record writes which tests have killed the mutants into a file, for Killers of the next build. What
// it has of mutants that have not been run stays.
func Record(file string, results []Result) error {
	by := Killers()
	for _, r := range results {
		if r.Verdict == Killed || r.Verdict == TimedOut {
			by[r.Mutant.Name], _, _ = strings.Cut(r.Test, "/")
		}
	}
	known := map[string]bool{}
	for _, m := range All() {
		known[m.Name] = true
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if known[name] {
			fmt.Fprintln(&text, name, by[name])
		}
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("mutants: %w", err)
	}
	return nil
}
