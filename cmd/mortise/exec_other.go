//go:build !unix

package main

import (
	"context"
	"errors"
	"io"
)

// There is no exec, and so none of its helpers.
const (
	watchdogName = "exec-watchdog"
	starterName  = "exec-start"
)

func watchdog(io.Reader, io.Writer) int       { return exitFailure }
func starter(string, []string, io.Writer) int { return exitFailure }

// runExec is not possible where there are neither process groups nor signals: nothing could promise that the command ends
// before the lease does. All other commands work.
func runExec(context.Context, *call) error {
	return errors.New("exec needs the process groups and signals of a Unix system")
}
