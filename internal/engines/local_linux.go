package engines

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the process when the one that starts it
// dies without having stopped it, as a timed out test binary does.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
