package engines

import (
	"os/exec"
	"runtime"
)

// StartBound starts a process that on Linux dies with the calling process, however that ends, and also while the
// child is stopped. wait returns how the process ended, and may be called more than once. wait does not read the rest
// of a pipe, so give the process files to write to instead of StdoutPipe.
func StartBound(cmd *exec.Cmd) (wait func() error, err error) {
	dieWithParent(cmd)
	started, exited := make(chan error, 1), make(chan struct{})
	var ended error
	go func() {
		// The kernel's parent-death signal belongs to the thread that started the child, so that thread must live
		// as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended = cmd.Wait()
		}
		close(exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return func() error {
		<-exited
		return ended
	}, nil
}
