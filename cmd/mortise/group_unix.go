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
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mortise-go/mortise/internal/tty"
)

// exitStatus is how a process has ended, or that it has stopped.
type exitStatus struct{ syscall.WaitStatus }

// group is a process group: a command, and what it has started, unless that has left the group.
type group struct {
	id      int
	changes chan exitStatus // of the command

	ended       bool // the command has
	hasTerminal bool // the terminal was given to it
}

// starterName is the argument that makes this program a starter.
const starterName = "exec-start"

// startGroup makes a group for a command, and a process that becomes the command when begin is called. If this program dies
// before, that process ends: so the watchdog knows the group before anything runs in it.
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
	cmd := &exec.Cmd{
		Path: program, Args: slices.Concat([]string{argv[0], starterName, path}, argv), Env: env,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, ExtraFiles: []*os.File{in},
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
			_ = cmd.Process.Release() // reap waits for it, and for others of the group
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

// starterGate is the descriptor from which a starter reads that it may begin.
const starterGate = 3

// starter is the life of one: it becomes the command. The exit code is that of a command that cannot be run.
func starter(path string, argv []string, stderr io.Writer) int {
	gate := make([]byte, 1)
	n, err := syscall.Read(starterGate, gate)
	for errors.Is(err, syscall.EINTR) {
		n, err = syscall.Read(starterGate, gate)
	}
	if n <= 0 {
		return exitExec // there is nobody any more who holds the lock
	}
	_ = syscall.Close(starterGate)
	err = syscall.Exec(path, argv, os.Environ()) //nolint:gosec // the caller's command
	tty.Say(stderr, "%s exec: %s: %v\n", program, path, err)
	return exitNotRunnable
}

// reap waits for all children of this program in the group: the command, and what it has left behind, where that comes to
// this program, until there are none. A command that has left its group is waited for, too.
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

// exists reports whether a process of the group is left.
func (g *group) exists() bool { return !errors.Is(syscall.Kill(-g.id, 0), syscall.ESRCH) }

// signal sends a signal to all of the group, and to a command that has left it.
func (g *group) signal(sig syscall.Signal) {
	to := -g.id
	if !g.exists() && !g.ended {
		to = g.id
	}
	_ = syscall.Kill(to, sig)   // or it has ended, or runs as another user
	if sig == syscall.SIGTERM { // a stopped process would not notice
		_ = syscall.Kill(to, syscall.SIGCONT)
	}
}

// giveTerminal gives the group the terminal that this program's group has, and has it go on.
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

// setForeground makes a group the terminal's foreground group, if another one is that.
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
	signal.Ignore(syscall.SIGTTOU) // which a group in the background gets for this
	defer signal.Reset(syscall.SIGTTOU)
	return unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, to) == nil
}

// suspend stops this program, as Ctrl-Z does, until it gets SIGCONT.
func suspend() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

// catchSignals has all signals come to a channel that others send to end this program, or to tell it something. Those that it
// was started without stay ignored, as nohup wants it.
func catchSignals() (caught <-chan os.Signal, stop func()) {
	signals := make(chan os.Signal, 64) // more than come at once, or they get lost
	for n := syscall.Signal(1); n < lastSignal; n++ {
		switch n {
		case syscall.SIGKILL, syscall.SIGSTOP, // cannot be caught
			syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE, syscall.SIGPROF, // the program itself causes them
			syscall.SIGTTIN, syscall.SIGTTOU, // of its own use of the terminal
			syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP: // errors of the program
			continue
		}
		if !signal.Ignored(n) {
			signal.Notify(signals, n)
		}
	}
	return signals, func() { signal.Stop(signals) }
}

// lastSignal is the first number behind those of signals that all systems know.
const lastSignal = 32
