package engines

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// Line is one record of the file that MORTISE_CONTRACT_LOG names: a contract test that ran on an engine.
type Line struct {
	Engine  string `json:"engine"`
	Package string `json:"package"`
	Test    string `json:"test"`
	// Only is true for a test that is meant for this engine alone; Why is the reason.
	Only bool   `json:"only,omitempty"`
	Why  string `json:"why,omitempty"`
}

// appendLine writes a line in one call, so that test binaries that run at the same time do not mix their lines.
func appendLine(file string, l Line) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}

// Count adds up a log and returns a sentence for people, such as "84 on dynamodb-local, 84 on inprocess". A test that
// ran several times counts once. Count fails if the log is malformed, if one of the wanted engines ran no test, or if
// a test that is not restricted to one engine did not run on every engine of the log.
func Count(r io.Reader, want []string) (string, error) {
	type test struct{ pkg, name string }
	byEngine := map[string]map[test]bool{}
	for _, engine := range want {
		byEngine[engine] = map[test]bool{}
	}
	shared, only := map[test]bool{}, map[string]map[test]bool{}
	scan := bufio.NewScanner(r)
	for n := 1; scan.Scan(); n++ {
		var l Line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			return "", fmt.Errorf("engines: count: line %d: %w", n, err)
		}
		if l.Engine == "" || l.Test == "" {
			return "", fmt.Errorf("engines: count: line %d: engine or test is missing", n)
		}
		into := byEngine
		if l.Only {
			into = only
		} else {
			shared[test{l.Package, l.Test}] = true
		}
		if into[l.Engine] == nil {
			into[l.Engine] = map[test]bool{}
		}
		into[l.Engine][test{l.Package, l.Test}] = true
	}
	if err := scan.Err(); err != nil {
		return "", fmt.Errorf("engines: count: %w", err)
	}

	counts, errs := map[string]int{}, []error(nil)
	for _, engine := range slices.Sorted(maps.Keys(byEngine)) {
		ran := byEngine[engine]
		counts[engine] = len(ran)
		if len(ran) == 0 {
			errs = append(errs, fmt.Errorf("engines: count: no contract test ran on %s", engine))
			continue
		}
		var missing []string
		for t := range shared {
			if !ran[t] {
				missing = append(missing, t.pkg+"."+t.name)
			}
		}
		if len(missing) > 0 {
			slices.Sort(missing)
			errs = append(errs, fmt.Errorf("engines: count: %s did not run: %s", engine, strings.Join(missing, ", ")))
		}
	}
	var sentence strings.Builder
	sentence.WriteString(joinCounts(counts))
	for _, engine := range slices.Sorted(maps.Keys(only)) {
		fmt.Fprintf(&sentence, "; %d for %s alone", len(only[engine]), engine)
	}
	return sentence.String(), errors.Join(errs...)
}

func joinCounts(counts map[string]int) string {
	var parts []string
	for _, engine := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d on %s", counts[engine], engine))
	}
	return strings.Join(parts, ", ")
}
