//go:build !unix

package engines

import "os/exec"

// ApartFromTerminal does nothing where there are no process groups: there an
// interrupt ends the process too.
func ApartFromTerminal(*exec.Cmd) {}

// terminate kills where there is no way to ask.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
