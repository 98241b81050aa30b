//go:build !unix

package engines

import "os/exec"

// apartFromTerminal does nothing where there are no process groups: there an
// interrupt ends the process too.
func apartFromTerminal(*exec.Cmd) {}

// terminate kills where there is no way to ask.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
