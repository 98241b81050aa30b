// Package clitest tests commands as their users call them.
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

// Build builds the command in the test's directory, and returns what it prints and its exit
// code for given arguments.
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

// Calls checks what every command of this module does where it is called wrongly, or asked
// for its usage, which names the flag given.
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

// SlowReader is a person who takes a while to answer. Before is called before the text comes.
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
