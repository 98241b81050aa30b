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

// A watchdog is a second process of this program. The first one tells it again and again until when the command may live. If
// it hears nothing it kills the command: at that moment where the first one is stopped or hangs, at once where it is gone.

// dog is the watchdog, as the first process has it.
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

// tell tells the watchdog which group it watches over, and when that has to be dead: by the wall clock, and in how long. It does
// not wait for a watchdog that is stopped and whose pipe is full: that one knows of a moment before.
func (d *dog) tell(group int, end deadline) error {
	raw, err := d.pipe.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	text := fmt.Appendf(nil, "%d %d %d\n", group, end.at.UnixNano(), time.Until(end.at))
	err = raw.Write(func(fd uintptr) bool {
		_, failed = syscall.Write(int(fd), text) // at once: it is less than a pipe takes or refuses as a whole
		return true
	})
	if errors.Is(failed, syscall.EAGAIN) {
		failed = nil
	}
	return errors.Join(err, failed)
}

// stop ends the watchdog, which has nothing to watch over any more.
func (d *dog) stop() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait() // killed
	_ = d.pipe.Close()
}

// watchdog is the life of one.
func watchdog(from io.Reader, stderr io.Writer) int {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2)
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(from); s.Scan(); {
			lines <- s.Text()
		}
	}()
	const often, seldom = 5 * time.Millisecond, 250 * time.Millisecond // the wall clock can jump, so it is looked at
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
