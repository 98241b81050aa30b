package engines

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the process when the process that starts it dies without having stopped it, as
// a test binary does at its timeout.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
