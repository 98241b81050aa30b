package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the documents show is part of code that is compiled and run.
func TestReadmeShowsCompiledCode(t *testing.T) {
	root := filepath.Join("..", "..")
	for document, source := range map[string]string{
		"README.md":   filepath.Join("lock", "readme_test.go"),
		"ADOPTING.md": filepath.Join("internal", "adoption", "adoption_test.go"),
	} {
		text, err := os.ReadFile(filepath.Join(root, document))
		require.NoError(t, err)
		example, err := os.ReadFile(filepath.Join(root, source))
		require.NoError(t, err)
		blocks := strings.Split(string(text), "```go\n")[1:]
		require.NotEmpty(t, blocks, document)
		for i, block := range blocks {
			code, _, ok := strings.Cut(block, "```")
			require.True(t, ok, "%s: block %d has no end", document, i)
			assert.Contains(t, string(example), code, "%s: block %d", document, i)
		}
	}
}
