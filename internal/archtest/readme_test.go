package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the README shows is part of an example that is compiled and run.
func TestReadmeShowsCompiledCode(t *testing.T) {
	root := filepath.Join("..", "..")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	example, err := os.ReadFile(filepath.Join(root, "lock", "readme_test.go"))
	require.NoError(t, err)
	blocks := strings.Split(string(readme), "```go\n")[1:]
	require.NotEmpty(t, blocks)
	for i, block := range blocks {
		code, _, ok := strings.Cut(block, "```")
		require.True(t, ok, "block %d has no end", i)
		assert.Contains(t, string(example), code, "block %d", i)
	}
}
