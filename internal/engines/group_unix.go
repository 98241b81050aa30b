//go:build unix

package engines

import (
	"os/exec"
	"syscall"
)

// ApartFromTerminal puts a process into a process group of its own, so that it does not get interrupts from the
// terminal. Call it before the process is started.
func ApartFromTerminal(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// terminate asks a process to end. It ignores errors, since the process may have ended already.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) }
