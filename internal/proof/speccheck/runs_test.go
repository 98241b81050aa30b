package speccheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const models = "../../../lock/spec"

var (
	replaceable = regexp.MustCompile(`(?m)^#ifndef (\w+)$`)
	optional    = regexp.MustCompile(`(?m)^#ifdef (\w+)$`)
	promises    = regexp.MustCompile(`promise\("([^"]+)"`)
)

func model(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(models, name))
	require.NoError(t, err)
	return string(text)
}

func found(re *regexp.Regexp, text string) []string {
	var list []string
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// name returns the name of the macro that a definition defines.
func name(definition string) string {
	name, _, _ := strings.Cut(definition, " ")
	name, _, _ = strings.Cut(name, "(")
	return name
}

func TestRuns_HaveNamesOfTheirOwn(t *testing.T) {
	names := map[string]bool{}
	for _, r := range Runs() {
		require.NotEmpty(t, r.Name)
		require.False(t, names[r.Name], "%s: twice", r.Name)
		names[r.Name] = true
	}
}

// A run replaces only macros that its model has. Otherwise it would silently be another run.
func TestRuns_ReplaceWhatModelsHave(t *testing.T) {
	for _, r := range Runs() {
		text := model(t, r.Model)
		for _, bound := range r.Bounds {
			require.Regexp(t, `^[A-Z]`, bound, r.Name)
			require.Contains(t, append(found(replaceable, text), found(optional, text)...), name(bound), r.Name)
		}
		for _, rule := range r.Rules {
			require.Regexp(t, `^[a-z]`, rule, r.Name)
			require.Contains(t, found(replaceable, text), name(rule), r.Name)
		}
	}
}

// A run that has to hold replaces no rule. A twin breaks a promise that its model makes.
func TestRuns_HaveAnExpectationEach(t *testing.T) {
	for _, r := range Runs() {
		if !r.Twin() {
			require.Empty(t, r.Rules, r.Name)
			continue
		}
		if r.Breaks == Stuck {
			require.True(t, r.looksForStuck(), r.Name)
			continue
		}
		require.Contains(t, found(promises, model(t, r.Model)), r.Breaks, r.Name)
		require.NotEmpty(t, r.Rules, r.Name)
	}
}

// Each rule of each model has a twin without it. A rule that nobody misses is not tested.
func TestRules_HaveATwinEach(t *testing.T) {
	replaced := map[string]bool{}
	for _, r := range Runs() {
		for _, rule := range r.Rules {
			replaced[r.Model+" "+name(rule)] = true
		}
	}
	for _, file := range modelFiles(t) {
		for _, rule := range found(replaceable, model(t, file)) {
			if strings.ToUpper(rule) != rule {
				require.True(t, replaced[file+" "+rule], "%s: no twin replaces %s", file, rule)
			}
		}
	}
}

// Each promise is broken by a twin of some model. A promise that cannot break checks nothing.
func TestPromises_HaveATwinEach(t *testing.T) {
	broken := map[string]bool{
		Stuck:                              true,
		"the bounds of the model are kept": true, // of the model, and not of the protocol
	}
	for _, r := range Runs() {
		broken[r.Breaks] = true
	}
	for _, file := range modelFiles(t) {
		for _, promise := range found(promises, model(t, file)) {
			require.True(t, broken[promise], "%s: no twin breaks %q", file, promise)
		}
	}
}

func TestModels_HaveARunThatHolds(t *testing.T) {
	held := map[string]bool{}
	for _, r := range Runs() {
		held[r.Model] = held[r.Model] || !r.Twin() && !r.Deep
	}
	for _, file := range modelFiles(t) {
		require.True(t, held[file], file)
	}
}

func modelFiles(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(models, "*.pml"))
	require.NoError(t, err)
	require.NotEmpty(t, list)
	for i := range list {
		list[i] = filepath.Base(list[i])
	}
	return list
}
