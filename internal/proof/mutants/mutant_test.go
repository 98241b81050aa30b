package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/mortise-go/mortise"

// root is the module's root, as seen from the tests.
var root = filepath.Join("..", "..", "..")

// Each mutation fits the source, and the result compiles.
func TestMutation_FitsTheSource(t *testing.T) {
	packages := map[string]*source{}
	for _, m := range All() {
		dir := path.Dir(m.File)
		if packages[dir] == nil {
			packages[dir] = load(t, dir)
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.File)))
		require.NoError(t, err, m.Name)
		mutated, err := m.Apply(text)
		if assert.NoError(t, err) {
			assert.NoError(t, packages[dir].check(m.File, mutated), m.Name)
		}
	}
	t.Logf("F16: %d mutations (goal at least %d)", len(All()), goal)
	assert.GreaterOrEqual(t, len(All()), goal)
}

func TestMutation_IsDescribed(t *testing.T) {
	names, changes := map[string]bool{}, map[[3]string]string{}
	for _, m := range All() {
		assert.Regexp(t, `^[a-z]+(-[a-z]+)+$`, m.Name)
		assert.False(t, names[m.Name], "%s is there twice", m.Name)
		names[m.Name] = true
		change := [3]string{m.File, m.Old, m.New}
		assert.Empty(t, changes[change], "%s does the same", m.Name)
		changes[change] = m.Name
		assert.Contains(t, []Part{Acquiring, Answers, Renewal, Death, Waiting, Guarding, Around, Together}, m.Part, m.Name)
		assert.NotEmpty(t, m.Breaks, m.Name)
		assert.False(t, strings.HasSuffix(m.Breaks, "."), m.Name)
	}
}

func TestMutation_ThatDoesNotFitIsRefused(t *testing.T) {
	m := Mutant{Name: "some", File: "lock/x.go", Old: "a", New: "b"}
	got, err := m.Apply([]byte("xay"))
	require.NoError(t, err)
	assert.Equal(t, "xby", string(got))
	for text, occurs := range map[string]int{"xyz": 0, "aya": 2} {
		_, err := m.Apply([]byte(text))
		var misfit *FitError
		require.ErrorAs(t, err, &misfit)
		assert.Equal(t, FitError{Name: "some", File: "lock/x.go", Occurs: occurs}, *misfit)
		assert.ErrorContains(t, err, "mutation some does not fit lock/x.go any more")
	}
	m.New = m.Old
	_, err = m.Apply([]byte("xay"))
	assert.ErrorContains(t, err, "changes nothing")
}

// source is a parsed package, and what is needed to check a changed file of it.
type source struct {
	path     string
	fset     *token.FileSet
	files    map[string]*ast.File // by name
	importer types.Importer
}

// load parses a package's files except for tests.
func load(t *testing.T, dir string) *source {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export,GoFiles", module+"/"+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	s := &source{path: module + "/" + dir, fset: token.NewFileSet(), files: map[string]*ast.File{}}
	exports := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Export string
			GoFiles            []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			require.NoError(t, err)
		}
		exports[p.ImportPath] = p.Export
		if p.ImportPath != s.path {
			continue
		}
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(s.fset, filepath.Join(root, filepath.FromSlash(dir), name), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			s.files[name] = f
		}
	}
	require.NotEmpty(t, s.files, "no files of %s", dir)
	s.importer = importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return s
}

// check type-checks the package with another text of one of its files.
func (s *source) check(file string, text []byte) error {
	changed, err := parser.ParseFile(s.fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var files []*ast.File
	for name, f := range s.files {
		if name == path.Base(file) {
			f = changed
		}
		files = append(files, f)
	}
	config := types.Config{Importer: s.importer}
	_, err = config.Check(s.path, s.fset, files, nil)
	return err
}
