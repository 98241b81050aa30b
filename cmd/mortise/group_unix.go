//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mortise-go/mortise/internal/tty"
)

// exitStatus tells how a process has ended, or that it has stopped.
type exitStatus struct{ syscall.WaitStatus }

// group is the process group of a command: the command and the processes that it started, except for those that left the group.
type group struct {
	id      int
	changes chan exitStatus // gets a value when the command stops or ends

	ended       bool // the command has ended
	hasTerminal bool // the terminal was given to it
}

// starterName is the argument that makes this program a starter.
const starterName = "exec-start"

// startGroup starts a process in a new group. The process becomes the command when begin is called, and ends if this program
// dies before. So the watchdog can be told of the group before the command runs.
func startGroup(path string, argv, env []string) (g *group, begin func() error, err error) {
	program, err := self()
	if err != nil {
		return nil, nil, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = in.Close() }()
	gate, err := inherit(in)
	if err != nil {
		return nil, nil, errors.Join(err, out.Close())
	}
	cmd := &exec.Cmd{
		Path: program, Args: slices.Concat([]string{argv[0], starterName, strconv.Itoa(gate), path}, argv), Env: env,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	bind(cmd.SysProcAttr)
	g = &group{changes: make(chan exitStatus, 1)}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel sends the signal of bind when this thread ends
		err := cmd.Start()
		if err == nil {
			g.id = cmd.Process.Pid
			_ = cmd.Process.Release() // reap waits for the process, and for others of the group
		}
		started <- err
		if err == nil {
			g.reap()
		}
	}()
	if err := <-started; err != nil {
		return nil, nil, errors.Join(err, out.Close())
	}
	return g, func() error {
		_, err := out.Write([]byte{'\n'})
		return errors.Join(err, out.Close())
	}, nil
}

// inherit lets processes that are started from now on have a file under the number that it has here. The numbers that
// exec.Cmd.ExtraFiles would use, from 3 on, may be those of files that the command gets from the caller.
func inherit(file *os.File) (number int, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		number = int(fd)
		_, failed = unix.FcntlInt(fd, unix.F_SETFD, 0)
		failed = errors.Join(failed, syscall.SetNonblock(number, false)) // they share the mode, and wait in a read
	})
	return number, errors.Join(err, failed)
}

// starter runs a starter: it waits for begin, and becomes the command. gate is the number of the file on which it waits. It
// returns an exit code only if that fails.
func starter(gate, path string, argv []string, stderr io.Writer) int {
	fd, err := strconv.Atoi(gate)
	if err != nil {
		return exitExec
	}
	n, err := 0, error(syscall.EINTR)
	for errors.Is(err, syscall.EINTR) {
		n, err = syscall.Read(fd, make([]byte, 1))
	}
	if n <= 0 {
		return exitExec // the program that holds the lock has gone
	}
	_ = syscall.Close(fd)
	err = syscall.Exec(path, argv, os.Environ()) //nolint:gosec // the caller's command
	tty.Say(stderr, "%s exec: %s: %v\n", program, path, err)
	return exitNotRunnable
}

// reap waits until this program has no more children in the group: the command and, on Linux (bind), the processes that it
// left behind. It also waits for a command that has left its group.
func (g *group) reap() {
	ended := false
	for which := -g.id; ; {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(which, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil && (ended || which > 0): // no more children
			return
		case err != nil:
			which = g.id
		case pid == g.id:
			ended = !status.Stopped()
			g.changes <- exitStatus{status}
		}
	}
}

// exists reports whether the group has a process.
func (g *group) exists() bool { return !errors.Is(syscall.Kill(-g.id, 0), syscall.ESRCH) }

// signal sends a signal to all processes of the group. If there are none, since the command has left it, only the command gets it.
func (g *group) signal(sig syscall.Signal) {
	to := -g.id
	if !g.exists() && !g.ended {
		to = g.id
	}
	_ = syscall.Kill(to, sig)   // fails if all have ended, or run as another user
	if sig == syscall.SIGTERM { // a stopped process handles it only after SIGCONT
		_ = syscall.Kill(to, syscall.SIGCONT)
	}
}

// giveTerminal gives the terminal to the group, if this program's group has it, and continues the group.
func (g *group) giveTerminal() {
	if setForeground(syscall.Getpgrp(), g.id) {
		g.hasTerminal = true
		_ = syscall.Kill(-g.id, syscall.SIGCONT)
	}
}

// takeTerminalBack undoes giveTerminal.
func (g *group) takeTerminalBack() {
	if g.hasTerminal {
		setForeground(g.id, syscall.Getpgrp())
		g.hasTerminal = false
	}
}

// setForeground makes to the terminal's foreground group, if from is the foreground group. It reports whether it did.
func setForeground(from, to int) bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false // there is no terminal
	}
	defer func() { _ = tty.Close() }()
	fd := int(tty.Fd())
	if now, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || now != from {
		return false
	}
	signal.Ignore(syscall.SIGTTOU) // the kernel sends it to a background group that does this
	defer signal.Reset(syscall.SIGTTOU)
	return unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, to) == nil
}

// suspend stops this program, as Ctrl-Z does, until it gets SIGCONT.
func suspend() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

// catchSignals returns a channel that gets all signals with which others end this program, or tell it something. SIGHUP and SIGINT that
// were ignored when it was started stay ignored, as nohup needs it. Of other signals, the Go runtime does not tell whether they were.
func catchSignals() (caught <-chan os.Signal, stop func()) {
	// A message that nobody reads must not end this program, and with it the command. It is caught until the program ends, so that
	// its exit code stays, too. Ignoring it instead would be inherited by the command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 64) // a signal is lost if the channel is full
	for n := syscall.Signal(1); n < lastSignal; n++ {
		switch n {
		case syscall.SIGKILL, syscall.SIGSTOP, // cannot be caught
			syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE, syscall.SIGPROF, // the program itself causes them
			syscall.SIGTTIN, syscall.SIGTTOU, // the program's own use of the terminal causes them
			syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP: // errors of the program
			continue
		}
		if !signal.Ignored(n) {
			signal.Notify(signals, n)
		}
	}
	return signals, func() { signal.Stop(signals) }
}

// lastSignal is one more than the greatest number of a signal that all systems have.
const lastSignal = 32
