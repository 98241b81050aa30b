package speccheck

import (
	"regexp"
	"strconv"
	"strings"
)

// Outcome is the result of a search.
type Outcome struct {
	States     int64   // different states
	Depth      int     // steps of the longest path
	MB         float64 // memory
	Broken     string  // the promise that broke; empty if none did
	Incomplete string  // why the search shows nothing; empty if it was complete or has found an error
}

var (
	errorCount = regexp.MustCompile(`(?m)^State-vector .* depth reached (\d+), errors: (\d+)$`)
	stateCount = regexp.MustCompile(`(?m)^\s*([0-9.e+]+) states, stored`)
	memory     = regexp.MustCompile(`(?m)^\s*([0-9.]+)\s+total actual memory usage`)
	promised   = regexp.MustCompile(`(?m)BROKEN:\s+(.*\S)\s*$`)
)

// limits are the lines by which a verifier reports that it has not seen everything, and what they mean.
var limits = []struct{ line, means string }{
	{"max search depth too small", "paths are longer than the search is deep"},
	{"reached -DMEMLIM bound", "the memory that it may use is full"},
	{"out of memory", "there is no more memory"},
	{"VECTORSZ", "its states are larger than the verifier was built for"},
	{"Search not completed", "the search was not completed"},
}

// parseSearch reads what a verifier has printed. It does not know the name of a promise that broke, since the
// verifier does not print it: see parseReplay.
func parseSearch(output string, looksForStuck bool) Outcome {
	var o Outcome
	if m := stateCount.FindStringSubmatch(output); m != nil {
		states, _ := strconv.ParseFloat(m[1], 64) // large numbers have an exponent
		o.States = int64(states)
	}
	if m := memory.FindStringSubmatch(output); m != nil {
		o.MB, _ = strconv.ParseFloat(m[1], 64)
	}
	m := errorCount.FindStringSubmatch(output)
	if m != nil {
		o.Depth, _ = strconv.Atoi(m[1])
	}
	if m != nil && m[2] != "0" {
		o.Broken = whatBroke(output)
		return o
	}
	switch {
	case !strings.Contains(output, "Full statespace search for:"):
		o.Incomplete = "it was no search of all states"
	case !is(output, "assertion violations"):
		o.Incomplete = "promises were not checked"
	case is(output, "invalid end states") != looksForStuck:
		o.Incomplete = "whether processes can go on was not checked as it has to be"
	case m == nil:
		o.Incomplete = "the search has not ended"
	}
	for _, limit := range limits {
		if strings.Contains(output, limit.line) {
			o.Incomplete = limit.means
			break
		}
	}
	return o
}

// is reports whether the verifier says that it checks something.
func is(output, checks string) bool {
	_, rest, found := strings.Cut(output, checks)
	setting, _, _ := strings.Cut(rest, "\n")
	return found && strings.TrimSpace(setting) == "+"
}

// whatBroke returns the verifier's name of an error.
func whatBroke(output string) string {
	for line := range strings.Lines(output) {
		if _, what, found := strings.Cut(strings.TrimSpace(line), "pan:1: "); found {
			if strings.HasPrefix(what, "invalid end state") {
				return Stuck
			}
			return what
		}
	}
	return "something that the verifier does not name"
}

// parseReplay reads what Spin prints when it follows a path to an error. It returns the promise that broke, and the
// steps.
func parseReplay(output string) (promise string, steps []string) {
	output, _, _ = strings.Cut(output, "spin: trail ends")
	if m := promised.FindStringSubmatch(output); m != nil {
		promise = m[1]
	}
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "spin: ") {
			steps = append(steps, line)
		}
	}
	return promise, steps
}
