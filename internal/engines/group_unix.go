//go:build unix

package engines

import (
	"os/exec"
	"syscall"
)

// ApartFromTerminal has a process not see interrupts from the terminal: it leads a process
// group of its own. Call it before the process is started.
func ApartFromTerminal(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// terminate asks a process to end in order. Where it is gone already that is
// what was wanted.
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) }
