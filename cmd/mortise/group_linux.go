package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// bind has a child die with this program, also where the watchdog was killed with it. What the command leaves behind becomes a
// child of this program's, so that reap sees it end whatever the first process of the container does.
func bind(a *syscall.SysProcAttr) {
	a.Pdeathsig = syscall.SIGKILL
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // not possible on a kernel before 3.4
}

// self is this program, also where its file was replaced meanwhile.
func self() (string, error) { return "/proc/self/exe", nil }
