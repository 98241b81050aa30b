package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// bind makes the kernel kill a child when this program dies, even if the watchdog dies, too. Processes that the command leaves
// behind become children of this program. So reap can wait for them, even if the first process of a container reaps nothing.
func bind(a *syscall.SysProcAttr) {
	a.Pdeathsig = syscall.SIGKILL
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // fails on a kernel before 3.4
}

// self returns a path of this program that is valid even if its file was replaced meanwhile.
func self() (string, error) { return "/proc/self/exe", nil }
