package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	require.NoError(t, err)
	return string(text)
}

// A package's page is read in one sitting. What it leaves out is in files beside it, which it names.
func TestPackagePages_AreShort(t *testing.T) {
	named := regexp.MustCompile(`[A-Z]+\.md`)
	for _, dir := range []string{"keys", "table", "table/tabletest", "entity", "lock", "migrations", "migrations/migratecmd", "console"} {
		page := read(t, dir, "doc.go")
		assert.LessOrEqual(t, strings.Count(page, "\n"), 150, dir)
		for _, name := range named.FindAllString(page, -1) {
			read(t, dir, name)
		}
	}
}
