package speccheck

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The functions that the README names as the place of a rule are in the files that it names.
func TestReadme_NamesFunctionsThatExist(t *testing.T) {
	text, err := os.ReadFile("../../../lock/spec/README.md")
	require.NoError(t, err)
	named := 0
	for _, place := range regexp.MustCompile("`(lock/[a-z/_]+\\.go)` \\(([^)]*)\\)").FindAllStringSubmatch(string(text), -1) {
		code, err := os.ReadFile(filepath.Join("../../..", place[1]))
		require.NoError(t, err)
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(place[2], -1) {
			named++
			assert.Regexp(t, `\) `+name[1]+`\(|func `+name[1]+`\(|type `+name[1]+` `, string(code), "%s in %s", name[1], place[1])
		}
	}
	assert.Greater(t, named, 20)
}
