//go:build !unix

package main

import (
	"context"
	"errors"
	"io"
)

// main needs these names. Without exec, its helper processes do not exist either.
const (
	watchdogName = "exec-watchdog"
	starterName  = "exec-start"
)

func watchdog(io.Reader, io.Writer) int               { return exitFailure }
func starter(string, string, []string, io.Writer) int { return exitFailure }

// runExec always fails. Without process groups and signals, nothing can guarantee that the command ends before the lease
// does. All other commands work.
func runExec(context.Context, *call) error {
	return errors.New("exec needs the process groups and signals of a Unix system")
}
