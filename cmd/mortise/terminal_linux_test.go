package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mortise-go/mortise/keys"
)

// terminal is a pseudo-terminal, as a person has it.
type terminal struct {
	*testing.T
	person *os.File

	mu     sync.Mutex
	screen bytes.Buffer
}

// onTerminal starts the program as a shell does: in the foreground of a terminal.
func onTerminal(t *testing.T, script string, flags ...string) (*terminal, *exec.Cmd) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = person.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetUint32(int(person.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	line, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, line.Close()) }()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, slices.Concat([]string{"exec", "report", "--engine", "demo"}, flags, []string{"--", "sh", "-c", script})...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), programEnv + "=1", "MORTISE=" + self, "GOCOVERDIR=" + coverage(t)}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = line, line, line
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	term := &terminal{T: t, person: person}
	go func() {
		for b := make([]byte, 1024); ; {
			n, err := person.Read(b)
			term.mu.Lock()
			term.screen.Write(b[:n])
			term.mu.Unlock()
			if err != nil {
				return // nobody has the terminal any more
			}
		}
	}()
	return term, cmd
}

// sees waits until a text is on the screen.
func (t *terminal) sees(text string) {
	t.Helper()
	for {
		t.mu.Lock()
		found := strings.Contains(t.screen.String(), text)
		t.mu.Unlock()
		if found {
			return
		}
		require.NoError(t, t.Context().Err())
		time.Sleep(5 * time.Millisecond)
	}
}

func (t *terminal) types(text string) {
	t.Helper()
	_, err := t.person.WriteString(text)
	require.NoError(t, err)
}

// stops waits until a process is stopped, and continues it, as fg does.
func stops(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	for state(t, cmd.Process.Pid) != "T" {
		time.Sleep(5 * time.Millisecond)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
}

// stopsAtLast repeats what stops a process until it does so, and then keeps it running. What comes while the command ends is for the command.
func stopsAtLast(t *testing.T, cmd *exec.Cmd, again func()) {
	t.Helper()
	for state(t, cmd.Process.Pid) != "T" {
		again()
		time.Sleep(20 * time.Millisecond)
	}
	go func() {
		for cmd.Process.Signal(syscall.SIGCONT) == nil { // more than one may have reached it
			time.Sleep(20 * time.Millisecond)
		}
	}()
}

// state is the letter that the kernel has for the state of a process: T is stopped.
func state(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), ") ")
	return rest[:1]
}

// The command has a group of its own, and the terminal when it asks for it.
func TestExec_OnATerminal(t *testing.T) {
	term, cmd := onTerminal(t, `echo name?; read x; echo "<$x>"; read y; echo "[$y]"; trap 'exit 9' INT; echo last; while :; do sleep 0.1; done`)
	term.sees("name?")
	term.types("ann\n")
	term.sees("<ann>")

	term.types("\x1a") // Ctrl-Z stops both, so that the shell has the terminal again
	stops(t, cmd)
	term.types("bob\n")
	term.sees("[bob]")

	term.sees("last")
	term.types("\x03") // Ctrl-C
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	assert.Equal(t, 9, exit.ExitCode())
}

// The command had the terminal, and its lock is lost. While the program waits for the command of --on-lost, Ctrl-Z and Ctrl-C work: the
// terminal is not left to a group that has ended.
func TestExec_OnATerminalAfterTheLockIsLost(t *testing.T) {
	term, cmd := onTerminal(t, `echo name?; read x; "$MORTISE" force report --yes; while :; do sleep 0.1; done`,
		"--lease", "4s", "--on-lost", `trap 'echo interrupted; exit 3' INT; echo hook; while :; do sleep 0.1; done`)
	term.sees("name?")
	term.types("ann\n")
	term.sees("hook")
	stopsAtLast(t, cmd, func() { term.types("\x1a") })
	term.types("\x03")
	term.sees("--on-lost: exit status 3")
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	assert.Equal(t, exitLost, exit.ExitCode())
}

// Signals reach the command of --on-lost, too. SIGTSTP stops the program while it waits, for the lock or for that command.
func TestExec_SignalsWhileItWaits(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		held := b.acquire(report)
		p := b.startWith([]string{
			"report", "--lease", "12s", "--grace", "6s", "--on-lost",
			`trap 'echo hook heard' USR1; trap 'exit 3' USR2; echo hook; while :; do sleep 0.1; done`,
		}, `trap '' TERM; trap 'echo command heard; exit' USR1; echo up; while :; do sleep 0.1; done`)
		b.waits(report, 2)
		p.signal(syscall.SIGTSTP)
		stops(b.T, p.cmd)
		require.NoError(b, held.Release(b.Context()))
		require.Equal(b, "up", p.line())
		b.force(report)
		require.Equal(b, "hook", p.line())
		p.signal(syscall.SIGUSR1)
		assert.ElementsMatch(b, []string{"hook heard", "command heard"}, []string{p.line(), p.line()})
		stopsAtLast(b.T, p.cmd, func() { p.signal(syscall.SIGTSTP) })
		p.signal(syscall.SIGUSR2)
		code, _ := p.wait()
		assert.Equal(b, exitLost, code)
		assert.Contains(b, p.stderr.String(), "--on-lost: exit status 3")
	})
}
