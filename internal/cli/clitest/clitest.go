// Package clitest tests commands by running them, as users do.
package clitest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asCommand is set in the environment of a test binary that runs as the command.
const asCommand = "MORTISE_TEST_RUNS_AS_COMMAND"

// Main is for TestMain of a command. It runs the tests, or main in a process that a function of [Self] has started.
func Main(m *testing.M, main func()) {
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	main()
	os.Exit(0)
}

// Self returns a function that runs the command under test with arguments, which are separated by spaces, and returns its output and exit
// code. The process is the test binary itself, so nothing has to be built; TestMain has to call [Main].
func Self(t *testing.T) func(args string) (stdout, stderr string, code int) {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return func(args string) (string, string, int) {
		var out, complaints bytes.Buffer
		cmd := exec.CommandContext(t.Context(), path, strings.Fields(args)...) //nolint:gosec // the test itself
		cmd.Env = append(os.Environ(), asCommand+"=1")
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
