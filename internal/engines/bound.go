package engines

import (
	"os/exec"
	"runtime"
)

// StartBound starts a child process. On Linux the child dies when the calling process ends, however that ends, and even while the child
// is stopped by a signal. wait returns how the child ended, and may be called more than once. wait does not read the rest of a pipe, so
// give the child files to write to instead of StdoutPipe.
func StartBound(cmd *exec.Cmd) (wait func() error, err error) {
	dieWithParent(cmd)
	started, exited := make(chan error, 1), make(chan struct{})
	var ended error
	go func() {
		// The kernel sends the parent-death signal when the thread that started the child ends. So this thread must live as long as
		// the child.
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
