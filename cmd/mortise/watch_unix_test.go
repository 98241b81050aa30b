//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
)

// Nothing changes any more: a reader that has gone, such as head, ends it all the same, as it ends any program.
func TestWatch_EndsWithItsReader(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		self, err := os.Executable()
		require.NoError(b, err)
		cmd := exec.CommandContext(b.Context(), self, "watch", "--every", leastEvery.String())
		cmd.Env = b.environ(programEnv + "=1")
		out, err := cmd.StdoutPipe()
		require.NoError(b, err)
		require.NoError(b, cmd.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(b, err)
		assert.Contains(b, line, b.table.Name())
		require.NoError(b, out.Close())
		err = cmd.Wait()
		var exit *exec.ExitError
		require.ErrorAs(b, err, &exit)
		assert.Equal(b, syscall.SIGPIPE, exit.Sys().(syscall.WaitStatus).Signal())
	})
}
