package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the README shows is part of code that is compiled and run.
func TestReadmeShowsCompiledCode(t *testing.T) {
	example := read(t, "lock", "readme_test.go")
	for i, code := range blocks(t, "README.md", "go") {
		assert.Contains(t, example, code, "block %d", i)
	}
}

// The code of ADOPTING.md is the whole program, in the program's order, and its last block is what the program prints.
func TestAdoptingShowsTheWholeProgram(t *testing.T) {
	var program strings.Builder
	for _, code := range blocks(t, "ADOPTING.md", "go") {
		program.WriteString(code + "\n")
	}
	assert.Equal(t, strings.TrimSpace(read(t, "example", "northwind", "main.go")), strings.TrimSpace(program.String()))

	cmd := exec.CommandContext(t.Context(), "go", "run", module+"/example/northwind")
	printed, err := cmd.CombinedOutput()
	require.NoError(t, err, string(printed))
	shown := blocks(t, "ADOPTING.md", "")
	assert.Equal(t, string(printed), shown[len(shown)-1])
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	require.NoError(t, err)
	return string(text)
}

// blocks are the fenced blocks of a document that are in a language.
func blocks(t *testing.T, document, language string) (list []string) {
	t.Helper()
	for i, part := range strings.Split(read(t, document), "```") {
		if lang, code, ok := strings.Cut(part, "\n"); ok && i%2 == 1 && lang == language {
			list = append(list, code)
		}
	}
	require.NotEmpty(t, list, document)
	return list
}

// A package's page is read in one sitting. What it leaves out is in files beside it, which it names.
func TestPackagePagesAreShort(t *testing.T) {
	named := regexp.MustCompile(`[A-Z]+\.md`)
	for _, dir := range []string{"keys", "table", "table/tabletest", "entity", "lock", "migrations", "migrations/migratecmd"} {
		page := read(t, dir, "doc.go")
		assert.LessOrEqual(t, strings.Count(page, "\n"), 150, dir)
		for _, name := range named.FindAllString(page, -1) {
			if name != "ADOPTING.md" {
				read(t, dir, name)
			}
		}
	}
}
