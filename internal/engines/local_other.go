//go:build !linux

package engines

import "os/exec"

// dieWithParent does nothing, since the system has no parent-death signal. A test binary that is killed leaves its
// engine behind.
func dieWithParent(*exec.Cmd) {}
