//go:build unix

package engines

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStartBound_TellsHowTheProcessEnded(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "read line; exit 3")
	ApartFromTerminal(cmd)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	wait, err := StartBound(cmd)
	require.NoError(t, err)
	group, err := syscall.Getpgid(cmd.Process.Pid)
	require.NoError(t, err)
	assert.Equal(t, cmd.Process.Pid, group, "interrupts of the terminal go to another group")
	require.NoError(t, in.Close())
	for range 2 {
		var exit *exec.ExitError
		require.ErrorAs(t, wait(), &exit)
		assert.Equal(t, 3, exit.ExitCode())
	}
}

func TestStartBound_RefusesAProgramThatDoesNotExist(t *testing.T) {
	_, err := StartBound(exec.CommandContext(t.Context(), filepath.Join(t.TempDir(), "none")))
	require.Error(t, err)
}
