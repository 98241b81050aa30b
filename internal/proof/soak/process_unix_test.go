//go:build unix

package soak

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table/tabletest"
)

// A supervisor that is killed leaves no worker behind, stopped or not.
func TestProcess_EndsWithItsSupervisor(t *testing.T) {
	endpoint, err := tabletest.New(t).Listen("127.0.0.1:0")
	require.NoError(t, err)
	alive, held, err := os.Pipe() // it ends when no process has it open any more
	require.NoError(t, err)
	defer func() { assert.NoError(t, alive.Close()) }()
	program, err := os.Executable()
	require.NoError(t, err)
	supervisor := exec.CommandContext(t.Context(), program)
	supervisor.Env = append(os.Environ(), supervisorEnv+"="+endpoint)
	supervisor.ExtraFiles = []*os.File{held} // its workers inherit it
	var problems bytes.Buffer
	supervisor.Stderr = &problems
	out, err := supervisor.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, supervisor.Start())
	require.NoError(t, held.Close())
	scan := bufio.NewScanner(out)
	stopped := false
	for !stopped && scan.Scan() {
		stopped = scan.Text() != "0" // stopped for longer than the rest of this takes
	}
	require.True(t, stopped, "%s", &problems)
	require.NoError(t, supervisor.Process.Kill())
	require.NoError(t, alive.SetReadDeadline(time.Now().Add(30*time.Second)))
	_, err = alive.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "some process is left")
	_ = supervisor.Wait() // it was killed
}

// The output of a process is read to its end, also if the process was killed.
func TestProcess_IsReadToItsEndThoughKilled(t *testing.T) {
	program := filepath.Join(t.TempDir(), "worker")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nread config\necho \"$config\"\necho trouble >&2\necho b\nkill -9 $$\n"), 0o700))
	var lines []string
	p, err := startProcess(t.Context(), program, workerConfig{Name: "p0.1"}, func(line []byte) { lines = append(lines, string(line)) })
	require.NoError(t, err)
	<-p.ended
	assert.Equal(t, []string{`{"endpoint":"","table":"","name":"p0.1","seed":0}`, "b"}, lines)
	assert.ErrorContains(t, p.err, "killed")
	assert.Equal(t, "trouble\n", p.problems.String())
	require.ErrorIs(t, p.resume(), os.ErrProcessDone)
	p.kill()
}

func TestStartProcess_RefusesAProgramThatIsNotThere(t *testing.T) {
	_, err := startProcess(t.Context(), filepath.Join(t.TempDir(), "none"), workerConfig{}, func([]byte) {})
	require.ErrorIs(t, err, os.ErrNotExist)
}
