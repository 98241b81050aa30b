// Package clitest tests commands by running them, as users do.
package clitest

import (
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Build builds the command in the test's directory. The function that it returns runs the command with arguments, which are separated by
// spaces, and returns its output and exit code.
func Build(t *testing.T) func(args string) (stdout, stderr string, code int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "command.exe")
	build, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput() //nolint:gosec // a path of this test's
	require.NoError(t, err, string(build))
	return func(args string) (string, string, int) {
		var out, complaints bytes.Buffer
		cmd := exec.CommandContext(t.Context(), path, strings.Fields(args)...) //nolint:gosec // built above
		cmd.Stdout, cmd.Stderr = &out, &complaints
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil {
			require.ErrorAs(t, err, &exit)
		}
		return out.String(), complaints.String(), cmd.ProcessState.ExitCode()
	}
}

// Calls checks what every command of this module does if it is called with a wrong flag or argument, or is asked for help. The help must
// contain usage.
func Calls(t *testing.T, run func(args string) (stdout, stderr string, code int), name, usage string) {
	t.Helper()
	for args, want := range map[string]string{
		"-nonsense": "flag provided but not defined: -nonsense",
		"nonsense":  `unknown argument "nonsense"`,
	} {
		out, complaints, code := run(args)
		assert.Equal(t, []any{2, "", name + ": " + want + "\n"}, []any{code, out, complaints})
	}
	out, complaints, code := run("-help")
	assert.Equal(t, []any{0, ""}, []any{code, complaints})
	assert.Contains(t, out, usage)
}

// SlowReader is an input that takes time, such as a person who answers. Before is called before each part of the text is read.
type SlowReader struct {
	Text   string
	Before func()
}

// Read implements io.Reader.
func (r *SlowReader) Read(b []byte) (int, error) {
	if r.Text == "" {
		return 0, io.EOF
	}
	r.Before()
	n := copy(b, r.Text)
	r.Text = r.Text[n:]
	return n, nil
}
