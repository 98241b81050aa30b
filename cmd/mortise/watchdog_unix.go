//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/mortise-go/mortise/internal/tty"
)

// watchdogName is the argument that makes this program a watchdog.
const watchdogName = "exec-watchdog"

// A watchdog is a second process of this program. The first process tells it again and again until when the command may live.
// If that time passes, since the first process is stopped or hangs, or if that process is gone, it kills the command.

// dog is the watchdog as the first process sees it.
type dog struct {
	cmd  *exec.Cmd
	pipe *os.File
}

func startDog(stderr io.Writer) (*dog, error) {
	path, err := self()
	if err != nil {
		return nil, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	d := &dog{pipe: out, cmd: &exec.Cmd{Path: path, Args: []string{program, watchdogName}, Env: os.Environ(), Stdin: in, Dir: "/"}}
	if file, ok := stderr.(*os.File); ok {
		d.cmd.Stderr = file
	}
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no signal of a terminal reaches it
	if err := d.cmd.Start(); err != nil {
		_ = out.Close()
		return nil, fmt.Errorf("start a watchdog: %w", err)
	}
	return d, nil
}

// tell tells the watchdog which group to watch and when the group must be dead: by the wall clock, and in how long. If the pipe
// is full, since the watchdog is stopped, tell does not wait: the watchdog then keeps an earlier deadline.
func (d *dog) tell(group int, end deadline) error {
	raw, err := d.pipe.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	text := fmt.Appendf(nil, "%d %d %d\n", group, end.at.UnixNano(), time.Until(end.at))
	err = raw.Write(func(fd uintptr) bool {
		_, failed = syscall.Write(int(fd), text) // atomic: a pipe takes or refuses so few bytes as a whole
		return true
	})
	if errors.Is(failed, syscall.EAGAIN) {
		failed = nil
	}
	return errors.Join(err, failed)
}

// stop ends the watchdog when there is nothing left to watch.
func (d *dog) stop() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait() // its error is that it was killed
	_ = d.pipe.Close()
}

// watchdog runs a watchdog. from has the lines that tell writes; its end means that the first process is gone.
func watchdog(from io.Reader, stderr io.Writer) int {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2)
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(from); s.Scan(); {
			lines <- s.Text()
		}
	}()
	const often, seldom = 5 * time.Millisecond, 250 * time.Millisecond // between two checks: the wall clock can jump, and no timer notices
	group, why := 0, "is gone"
	wall, end := deadline{}, deadline{}
	for {
		select {
		case line, ok := <-lines:
			if ok {
				var at, left int64
				if _, err := fmt.Sscan(line, &group, &at, &left); err == nil {
					wall, end = deadline{time.Unix(0, at)}, in(time.Duration(left))
				}
				continue
			}
		case <-time.After(max(often, min(seldom, time.Until(end.at)))):
			if !wall.passed() && !end.passed() {
				continue
			}
			why = "does not answer, and the lease ends"
		}
		break
	}
	if group > 0 && syscall.Kill(-group, syscall.SIGKILL) == nil {
		tty.Say(stderr, "%s exec: the process that holds the lock %s: the command was killed\n", program, why)
	}
	return 0
}
