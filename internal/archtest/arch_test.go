// Package archtest holds the direction of imports:
//
//	internal/{machine,nilctx,pace,errs,attrvalue} <- keys <- internal/inside <- table <- entity <- lock <- migrations <- {migrations/migratecmd, console} <- example, cmd
//	                                            ^
//	                                            table/tabletest
//
// and between the packages within lock.
package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/mortise-go/mortise"

// layers are the packages from the bottom up: each may import those before it, and the
// module's internal packages that have a rule below.
var layers = []string{"internal/machine", "internal/nilctx", "internal/pace", "internal/errs", "internal/attrvalue", "keys", "internal/inside", "table", "entity", "lock", "migrations", "migrations/migratecmd", "console", "example", "cmd"}

// parts are packages that know of little: all that they may import of the module. Those of lock point down:
//
//	lock -> {waitqueue, session} -> attempt -> lockrow -> clock -> table
var parts = map[string][]string{
	"internal/attrvalue":      {},
	"internal/settings":       {"internal/errs"},
	"internal/toolkit":        {"table"},
	"internal/tty":            {},
	"lock/internal/attempt":   {"internal/errs", "lock/internal/clock", "table"},
	"lock/internal/clock":     {"internal/inside", "internal/machine", "table"},
	"lock/internal/lease":     {},
	"lock/internal/lockrow":   {"internal/attrvalue", "internal/inside", "internal/toolkit", "keys", "table"},
	"lock/internal/session":   {"internal/attrvalue", "internal/machine", "internal/toolkit", "keys", "lock/internal/attempt", "lock/internal/clock", "table"},
	"lock/internal/waitqueue": {"internal/machine", "keys", "table"},
}

// testSupport are packages outside _test files that exist for tests.
var testSupport = []string{"table/tabletest", "internal/engines", "internal/proof/differential", "internal/proof/sim", "internal/proof/soak", "internal/proof/mutants", "internal/cli/clitest", "internal/docscheck", "internal/testkit"}

// owners says which packages may use a module directly; the others get it through them.
var owners = map[string][]string{
	"github.com/guregu/dynamo/v2":                          {"table", "entity", "lock"},
	"github.com/cenkalti/backoff/v4":                       {"internal/machine", "table", "entity", "lock", "migrations", "internal/engines"},
	"go.opentelemetry.io/otel":                             {"lock"},
	"github.com/aws/aws-sdk-go-v2/service/dynamodb":        {"internal/attrvalue", "table", "entity", "lock", "migrations", "console", "example", "cmd"},
	"github.com/aws/aws-sdk-go-v2/config":                  {"internal/engines"},
	"golang.org/x/term":                                    {"internal/tty"},
	"github.com/yuin/goldmark":                             {},
	"github.com/stretchr/testify":                          {},
	"pgregory.net/rapid":                                   {},
	"go.uber.org/goleak":                                   {},
	"github.com/anishathalye/porcupine":                    {},
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb":        {},
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams": {},
}

type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

func load(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	packages := map[string]pkg{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			require.NoError(t, err)
		}
		packages[p.ImportPath] = p
	}
}

// ours are the module's packages, by path within the module.
func ours(packages map[string]pkg) map[string]pkg {
	list := map[string]pkg{}
	for path, p := range packages {
		if name, ok := strings.CutPrefix(path, module+"/"); ok {
			list[name] = p
		}
	}
	return list
}

// within says whether a package is one of list, or below one.
func within(name string, list []string) bool {
	return slices.ContainsFunc(list, func(dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") })
}

func layer(name string) int {
	for i := range slices.Backward(layers) {
		if within(name, layers[i:i+1]) {
			return i
		}
	}
	return -1
}

func TestImports_PointDown(t *testing.T) {
	packages := ours(load(t))
	require.Contains(t, packages, "lock", "the packages were not found")
	for name, p := range packages {
		if within(name, testSupport) {
			continue
		}
		for _, imported := range p.Imports {
			target, ok := strings.CutPrefix(imported, module+"/")
			if !ok || within(target, []string{"table/tabletest/internal"}) {
				continue
			}
			if within(target, testSupport) {
				assert.True(t, within(name, append([]string{"example", "cmd"}, testSupport...)), "%s imports %s, which is for tests", name, target)
				continue
			}
			if from, to := layer(name), layer(target); from >= 0 && to >= 0 {
				assert.LessOrEqual(t, to, from, "%s imports %s, which is above it", name, target)
			}
		}
	}
}

func TestParts_KnowOfLittle(t *testing.T) {
	packages := ours(load(t))
	for name := range packages {
		if within(name, []string{"lock/internal"}) {
			assert.Contains(t, parts, name, "a package of lock's own needs a rule")
		}
	}
	for name, allowed := range parts {
		require.Contains(t, packages, name)
		for _, imported := range packages[name].Imports {
			if target, ok := strings.CutPrefix(imported, module+"/"); ok {
				assert.Contains(t, allowed, target, "%s imports %s", name, target)
			}
		}
	}
}

// longest is how many lines a file of package lock, and of the packages below it, has at most, tests aside.
const longest = 400

func TestLock_HasShortFiles(t *testing.T) {
	found := 0
	require.NoError(t, filepath.WalkDir(filepath.Join("..", "..", "lock"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		found++
		assert.LessOrEqual(t, bytes.Count(text, []byte("\n")), longest, path)
		return err
	}))
	assert.Positive(t, found, "the files were not found")
}

func TestEngine_StandsOnTableAtMost(t *testing.T) {
	for name, p := range ours(load(t)) {
		if !within(name, []string{"table/tabletest"}) {
			continue
		}
		for _, dep := range p.Deps {
			if target, ok := strings.CutPrefix(dep, module+"/"); ok && layer(target) >= 0 {
				assert.LessOrEqual(t, layer(target), layer("table"), "%s depends on %s", name, target)
			}
		}
	}
}

func TestKeys_IsPure(t *testing.T) {
	packages := load(t)
	for _, dep := range packages[module+"/keys"].Deps {
		assert.True(t, packages[dep].Standard, "keys depends on %s", dep)
	}
}

func TestTesting_StaysInTests(t *testing.T) {
	for name, p := range ours(load(t)) {
		if within(name, testSupport) {
			continue
		}
		for _, imported := range p.Imports {
			assert.False(t, imported == "testing" || strings.HasPrefix(imported, "testing/"), "%s imports %s", name, imported)
		}
	}
}

func TestModules_HaveOwners(t *testing.T) {
	for name, p := range ours(load(t)) {
		if within(name, testSupport) {
			continue
		}
		for _, imported := range p.Imports {
			for dependency, allowed := range owners {
				if imported == dependency || strings.HasPrefix(imported, dependency+"/") {
					assert.True(t, within(name, allowed), "%s imports %s", name, imported)
				}
			}
		}
	}
}
