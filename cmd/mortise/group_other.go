//go:build unix && !linux

package main

import (
	"os"
	"syscall"
)

// bind does nothing where the kernel does not tell of a parent's death: there the watchdog alone does.
func bind(*syscall.SysProcAttr) {}

// self is this program.
func self() (string, error) { return os.Executable() }
