//go:build !unix

package engines

import "os/exec"

// ApartFromTerminal does nothing on systems without process groups. There an interrupt ends the process, too.
func ApartFromTerminal(*exec.Cmd) {}

// terminate kills the process, since there is no way to ask it to end.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
