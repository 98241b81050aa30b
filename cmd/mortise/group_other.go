//go:build unix && !linux

package main

import (
	"os"
	"syscall"
)

// bind does nothing: these kernels do not signal the death of a parent, so only the watchdog kills the command.
func bind(*syscall.SysProcAttr) {}

// self returns the path of this program.
func self() (string, error) { return os.Executable() }

// onlyZombies always returns false: there is no common way to find out.
func (*group) onlyZombies() bool { return false }
