//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// process is the program in a process of its own.
type process struct {
	b      *bench
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr strings.Builder
	life   *os.File // a pipe that only what the program starts has open for writing
}

// start runs the program's exec with a shell script. Flags are separated by spaces. The script finds the program as $MORTISE, and
// $LIFE, which it opens to show that it lives.
func (b *bench) start(flags, script string) *process {
	b.Helper()
	return b.startWith(strings.Fields(flags), script)
}

func (b *bench) startWith(flags []string, script string, more ...string) *process {
	b.Helper()
	return b.startAs(nil, flags, script, more...)
}

// startAs lets another program start the one that is tested.
func (b *bench) startAs(through, flags []string, script string, more ...string) *process {
	b.Helper()
	p := &process{b: b}
	path := filepath.Join(b.TempDir(), "life")
	require.NoError(b, syscall.Mkfifo(path, 0o600))
	life, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(b, err)
	p.life = life
	b.Cleanup(func() { _ = life.Close() })
	self, err := os.Executable()
	require.NoError(b, err)
	args := slices.Concat(through, []string{self, "exec"}, flags, []string{"--", "sh", "-c", script})
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Env = b.environ(append(more, programEnv+"=1", "MORTISE="+self, "LIFE="+path, "GOCOVERDIR="+coverage(b.T))...)
	p.cmd.Stderr = &p.stderr
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(b, err)
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(b, err)
	p.stdout = bufio.NewReader(stdout)
	require.NoError(b, p.cmd.Start())
	b.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
		if b.Failed() {
			b.Logf("standard error of %s: %s", flags, p.stderr.String())
		}
	})
	return p
}

// line reads a line from standard output.
func (p *process) line() string {
	p.b.Helper()
	text, err := p.stdout.ReadString('\n')
	require.NoError(p.b, err)
	return strings.TrimSuffix(text, "\n")
}

func (p *process) say(text string) {
	p.b.Helper()
	_, err := io.WriteString(p.stdin, text+"\n")
	require.NoError(p.b, err)
}

func (p *process) signal(sig syscall.Signal) {
	p.b.Helper()
	require.NoError(p.b, p.cmd.Process.Signal(sig))
}

func (p *process) kill() {
	p.b.Helper()
	p.signal(syscall.SIGKILL)
	_, _ = io.Copy(io.Discard, p.stdout)
	_ = p.cmd.Wait() // it was killed
}

// wait returns the exit code and what was left on standard output.
func (p *process) wait() (code int, rest string) {
	p.b.Helper()
	text, err := io.ReadAll(p.stdout)
	require.NoError(p.b, err)
	err = p.cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(p.b, err, &exit)
	}
	return p.cmd.ProcessState.ExitCode(), string(text)
}

// lives reports whether something that has opened $LIFE is left. It does not wait.
func (p *process) lives() bool {
	p.b.Helper()
	raw, err := p.life.SyscallConn()
	require.NoError(p.b, err)
	lives := false
	require.NoError(p.b, raw.Read(func(fd uintptr) bool {
		_, err := syscall.Read(int(fd), make([]byte, 1))
		lives = errors.Is(err, syscall.EAGAIN)
		return true
	}))
	return lives
}

// dies waits until nothing is left that has opened $LIFE.
func (p *process) dies() {
	p.b.Helper()
	for p.lives() {
		require.NoError(p.b, p.b.Context().Err())
		time.Sleep(5 * time.Millisecond)
	}
}

// left is the line about a place whose release got no answer in time, as can be on a slow machine.
var left = regexp.MustCompile("(?m)^mortise exec: the place in the line could not be given up: .*\n")

// ends starts the program and returns how it has ended. It starts it again where DynamoDB did not answer within --wait, and leaves out
// the line of a late answer to its leaving the line: a slow machine can do both.
func (b *bench) ends(flags, script string) (code int, stderr string) {
	b.Helper()
	for {
		p := b.start(flags, script)
		code, _ = p.wait()
		stderr = left.ReplaceAllString(p.stderr.String(), "")
		if code != exitExec || !strings.Contains(stderr, context.DeadlineExceeded.Error()) {
			return code, stderr
		}
	}
}

// force takes the lock away from its holder.
func (b *bench) force(target lock.Target) {
	b.Helper()
	r, err := b.rival.Inspect(b.Context(), target)
	require.NoError(b, err)
	require.NoError(b, b.rival.ForceRelease(b.Context(), target, r.Holder().Ticket))
}

func TestExec_RunsTheCommandUnderTheLock(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		p := b.start("report --lease 30s", `echo $MORTISE_LOCK $MORTISE_FENCE; read word; echo got $word; echo to stderr >&2; exit 7`)
		said := strings.Fields(p.line())
		require.Len(b, said, 2)
		assert.Equal(b, "report", said[0])
		r, err := b.rival.Inspect(b.Context(), report)
		require.NoError(b, err)
		assert.True(b, r.Held())
		assert.Equal(b, strconv.FormatInt(r.Fence, 10), said[1])
		p.say("hello")
		code, rest := p.wait()
		assert.Equal(b, 7, code)
		assert.Equal(b, "got hello\n", rest)
		assert.Equal(b, "to stderr\n", p.stderr.String())
		r, err = b.rival.Inspect(b.Context(), report)
		require.NoError(b, err)
		assert.False(b, r.Held(), "it was given up")

		p = b.start("--beside TENANT#acme ORDER#1", `echo $MORTISE_LOCK; read word`)
		assert.Equal(b, "TENANT#acme ORDER#1", p.line())
		_, err = b.rival.TryAcquire(b.Context(), lock.Beside(keys.NewKey("TENANT#acme", "ORDER#1")))
		require.ErrorIs(b, err, lock.ErrHeld)
		p.say("done")
		code, _ = p.wait()
		assert.Zero(b, code)
	})
}

func TestExec_ExitCodes(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		held := b.acquire(lock.Name("held"))
		for _, tt := range []struct {
			flags, script string
			code          int
			stderr        string
		}{
			{"a", "exit 0", 0, ""},
			{"a", "exit 200", 200, ""},
			{"a", "kill -9 $$", 128 + 9, ""},
			{"a", "kill -TERM $$", 128 + 15, ""},
			{"held --wait 0", "exit 0", exitNotAcquired, "held was not acquired: lock is held by \"rival\""},
			{"held --wait 2s", "exit 0", exitNotAcquired, "held was not acquired: lock is held by \"rival\""},
			{"a --table none", "exit 0", exitExec, "no table none"},
			{"a --wait -1s", "exit 0", exitExec, "want a duration"},
			{"a --lease 10ms", "exit 0", exitExec, "--lease"},
			{"a --lease 2s --grace 2s", "exit 0", exitExec, "--grace 2s: want 200ms to 1s with a lease of 2s"},
			{"a b", "exit 0", exitExec, `unexpected argument "b"`},
		} {
			code, stderr := b.ends(tt.flags, tt.script)
			assert.Equal(b, tt.code, code, "%s %s", tt.flags, tt.script)
			if tt.stderr == "" {
				assert.Empty(b, stderr)
			}
			assert.Contains(b, stderr, tt.stderr, tt.flags)
			assert.LessOrEqual(b, strings.Count(stderr, "\n"), 1, "one line")
		}
		require.NoError(b, held.Release(b.Context()))
		assert.Equal(b, exitNoCommand, b.run("exec a -- ./no-such-command").code)
		assert.Equal(b, exitNotRunnable, b.run("exec a -- /").code)
		assert.Equal(b, exitExec, b.run("exec a").code)
		assert.Equal(b, exitExec, b.run("exec -- true").code)
		b.waits(lock.Name("a"), 0)
	})
}

// The network is cut while it waits: it ends with its bound, and does not wait for an answer to its leaving the line.
func TestExec_WaitsNoLongerThanItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := tabletest.New(t)
		tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		clients := make([]*lock.Client, 2)
		for i := range clients {
			clients[i], err = lock.New(tbl, lock.Config{Owner: "rival", Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			defer func() { assert.NoError(t, clients[i].Close(context.Background())) }()
		}
		_, err = clients[0].Acquire(t.Context(), report)
		require.NoError(t, err)
		var stderr strings.Builder
		wait := 3 * time.Second
		c := &call{command: find("exec"), operands: []string{"report"}, maxWait: &wait, stderr: &stderr, width: func(any) (int, bool) { return 0, false }}
		x := &execution{call: c, store: &store{table: tbl, locks: clients[1], end: func() error { return nil }}}
		time.AfterFunc(time.Second, func() { engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Hour}) })
		began := time.Now()
		code, text := c.verdict(t.Context(), x.enter(t.Context()))
		assert.LessOrEqual(t, time.Since(began), wait+leaving+200*time.Millisecond)
		assert.Equal(t, exitNotAcquired, code)
		assert.Contains(t, text, `report was not acquired: lock is held by "rival"`)
		assert.Contains(t, stderr.String(), "the place in the line could not be given up")
		engine.ClearFaults()
	})
}

// Without an answer, it is not known whether another holds the lock: 125, and not 75. A try, which does not wait, is short all the same.
func TestExec_WithoutAnAnswer(t *testing.T) {
	for _, fault := range []tabletest.Fault{{Kind: tabletest.Delay, For: time.Hour}, {Kind: tabletest.DropRequest}, {Kind: tabletest.DropReply}, {Kind: tabletest.Throttle}} {
		for wait, most := range map[time.Duration]time.Duration{0: answering + leaving, time.Minute: 20 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				engine, s := newStore(t)
				var stderr strings.Builder
				c := &call{command: find("exec"), operands: []string{"report"}, maxWait: &wait, stderr: &stderr, width: func(any) (int, bool) { return 0, false }}
				s.end = func() error { return nil }
				x := &execution{call: c, store: s}
				engine.Inject(fault)
				began := time.Now()
				code, text := c.verdict(t.Context(), x.enter(t.Context()))
				assert.LessOrEqual(t, time.Since(began), most, fault.Kind)
				assert.Equal(t, exitExec, code, "%v, %v: %s", fault.Kind, wait, text)
				assert.Regexp(t, "^(no clear answer from DynamoDB within 5s|no answer from|table .* has not enough capacity)", text)
				engine.ClearFaults()
			})
		}
	}
}

// The lease is nearly over when the processes around the command are started, as on a machine that is suspended or slow: the command does not
// begin.
func TestExec_DoesNotBeginWithoutTheLock(t *testing.T) {
	_, s := newStore(t)
	c := &call{command: find("exec"), operands: []string{"report"}, argv: []string{"sh", "-c", "echo begun"}, stderr: io.Discard}
	lease, err := s.locks.Acquire(t.Context(), report)
	require.NoError(t, err)
	defer func() { require.NoError(t, lease.Release(context.Background())) }()
	x := &execution{call: c, path: "/bin/sh", store: s, lease: lease, timing: timing{grace: lease.Remaining(), margin: time.Second, tick: time.Hour}}
	require.NoError(t, x.run())
	assert.Error(t, x.lost)
	assert.Equal(t, syscall.SIGTERM, x.leader.Signal(), "it was the starter that has ended")
}

// Signals end the waiting, and the place in the line with it (consul #4439).
func TestExec_ASignalEndsTheWaiting(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1} {
			name := fmt.Sprint("report", int(sig))
			held := b.acquire(lock.Name(name))
			p := b.start(name, "echo started")
			b.waits(lock.Name(name), 2)
			p.signal(syscall.SIGWINCH) // ends no program
			p.signal(sig)
			code, rest := p.wait()
			assert.Equal(b, 128+int(sig), code)
			assert.Empty(b, rest)
			assert.Contains(b, p.stderr.String(), sig.String())
			if !left.MatchString(p.stderr.String()) { // the answer to its leaving the line was not late, as it can be on a slow machine
				b.waits(lock.Name(name), 1)
			}
			require.NoError(b, held.Release(b.Context()))
		}
	})
}

// Every signal reaches the command and what it has started (consul #797, #1210, #2489, #2022), and none ends the program alone.
func TestExec_ForwardsSignals(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		names := []string{"HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "WINCH", "TERM"}
		var traps strings.Builder
		for _, name := range names {
			fmt.Fprintf(&traps, "trap 'echo %s' %s; ", name, name)
		}
		p := b.start("report", traps.String()+"echo ready; while :; do sleep 0.1; done")
		require.Equal(b, "ready", p.line())
		for i, sig := range []syscall.Signal{
			syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGTERM,
		} {
			p.signal(sig)
			assert.Equal(b, names[i], p.line())
		}
		p.kill()
	})
}

// What was ignored when the program was started stays ignored: nohup.
func TestExec_LeavesIgnoredSignalsIgnored(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		p := b.startAs([]string{"sh", "-c", `trap '' HUP; exec "$@"`, "sh"}, []string{"report"}, "echo ready; read word; echo $word")
		require.Equal(b, "ready", p.line())
		p.signal(syscall.SIGHUP)
		p.say("alive")
		code, rest := p.wait()
		assert.Zero(b, code)
		assert.Equal(b, "alive\n", rest)
	})
}

// leave moves this process into the group of the program that has started it, and waits to be ended.
func leave() int {
	group, err := syscall.Getpgid(os.Getppid())
	if err == nil {
		err = syscall.Setpgid(0, group)
	}
	if err != nil {
		return 1
	}
	fmt.Println("left")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return 5
}

// A command that leaves its group is waited for, and gets signals.
func TestExec_ACommandThatLeavesItsGroup(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		for name, tt := range map[string]struct {
			end  func(p *process)
			code int
		}{
			"ends itself": {func(p *process) { p.say("") }, 5},
			"is signaled": {func(p *process) { p.signal(syscall.SIGTERM) }, 128 + 15},
		} {
			p := b.start("report", `exec env `+leaverEnv+`=1 "$MORTISE"`)
			require.Equal(b, "left", p.line(), name)
			tt.end(p)
			code, _ := p.wait()
			assert.Equal(b, tt.code, code, name)
		}
	})
}

// Nothing that the command has started runs on without the lock, also where it does not hear SIGTERM.
func TestExec_EndsWhatTheCommandLeavesBehind(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		for name, background := range map[string]string{
			"polite": `(exec 9>$LIFE; echo up; exec sleep 1000) &`,
			"deaf":   `(trap '' TERM HUP; exec 9>$LIFE; echo up; while :; do sleep 1; done) &`,
			"nested": `sh -c 'sh -c "exec 9>\$LIFE; echo up; exec sleep 1000" & exit' &`,
		} {
			p := b.start("report --lease 5s --grace 500ms", background+" read word; exit 3")
			require.Equal(b, "up", p.line(), name)
			require.True(b, p.lives(), name)
			p.say("end")
			code, _ := p.wait()
			assert.Equal(b, 3, code, name)
			assert.False(b, p.lives(), name)
			b.waits(report, 0)
		}
	})
}

// An operator takes the lock: the command gets SIGTERM, and SIGKILL where it does not care; 76 whatever its own code.
func TestExec_EndsTheCommandWhenTheLockIsTaken(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		for name, script := range map[string]string{
			"polite": `trap 'echo term; exit 0' TERM; exec 9>$LIFE; echo up; while :; do sleep 0.1; done`,
			"deaf":   `trap '' TERM; exec 9>$LIFE; echo up; while :; do sleep 1; done`,
		} {
			p := b.startWith([]string{"report", "--lease", "4s", "--grace", "1s", "--on-lost", `echo "$MORTISE_LOCK $MORTISE_LOST"`}, script)
			require.Equal(b, "up", p.line(), name)
			b.force(report)
			code, rest := p.wait()
			assert.Equal(b, exitLost, code, name)
			assert.False(b, p.lives(), name)
			assert.Contains(b, rest, "report lock lost", name)
			assert.Contains(b, p.stderr.String(), "report is lost", name)
		}
	})
}

// The holder is asked: its command gets SIGTERM, and has the lock until it has ended.
func TestExec_RevokeAsks(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		p := b.start("report --lease 4s", `trap 'echo asked; read word; exit 4' TERM; echo up; while :; do sleep 0.1; done`)
		require.Equal(b, "up", p.line())
		assert.Equal(b, outcome{0, "asked", ""}, func() outcome {
			o := b.run("revoke report")
			o.stdout = strings.Fields(o.stdout)[0]
			return o
		}())
		require.Equal(b, "asked", p.line())
		r, err := b.rival.Inspect(b.Context(), report)
		require.NoError(b, err)
		assert.True(b, r.Held())
		p.say("done")
		code, _ := p.wait()
		assert.Equal(b, 4, code)
		assert.Contains(b, p.stderr.String(), "somebody asks for report")
	})
}

// Files beyond the first three are the command's, too, as of env, nice and flock. make hands its jobs over this way.
func TestExec_LeavesTheCallersFilesToTheCommand(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		files := []string{"sh", "-c", `echo three >"$LIFE.3"; echo four >"$LIFE.4"; exec "$0" "$@" 3<"$LIFE.3" 4<"$LIFE.4"`}
		p := b.startAs(files, []string{"report"}, `cat <&3; cat <&4`)
		require.Equal(b, "three", p.line())
		require.Equal(b, "four", p.line())
		code, _ := p.wait()
		assert.Zero(b, code)
	})
}

// Nobody reads what this program prints: it has the same end as otherwise, and not that of SIGPIPE.
func TestExec_WithoutAReaderOfItsMessages(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		deaf := []string{"sh", "-c", `mkfifo "$LIFE.err"; (: <"$LIFE.err") & exec "$0" "$@" 2>"$LIFE.err"`}
		p := b.startAs(deaf, []string{"report", "--lease", "4s"}, `exec 2>/dev/null; trap 'echo asked; read word; exit 4' TERM; echo up; while :; do sleep 0.1; done`)
		require.Equal(b, "up", p.line())
		require.Zero(b, b.run("revoke report").code)
		require.Equal(b, "asked", p.line())
		p.say("done")
		code, _ := p.wait()
		assert.Equal(b, 4, code)
		l, err := b.rival.TryAcquire(b.Context(), report)
		require.NoError(b, err, "it was given up")
		require.NoError(b, l.Release(b.Context()))

		p = b.startAs(deaf, []string{"report"}, `trap - PIPE; yes | head -n 1; kill -PIPE $$`)
		require.Equal(b, "y", p.line())
		code, _ = p.wait()
		assert.Equal(b, exitSignal+int(syscall.SIGPIPE), code, "the command gets the signal as usual")
	})
}

// This program is stopped for longer than its lease: its command is dead before another holds the lock.
func TestExec_StoppedHolderLeavesNothing(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		var p *process
		for lease := 2 * time.Second; ; lease *= 2 {
			p = b.start(fmt.Sprint("report --lease ", lease), `trap '' TERM; exec 9>$LIFE; echo up; while :; do sleep 1; done`)
			if text, err := p.stdout.ReadString('\n'); err == nil {
				require.Equal(b, "up\n", text)
				break
			}
			code, _ := p.wait() // on a slow machine, the lease is over before the command begins
			require.NotZero(b, code)
		}
		p.signal(syscall.SIGSTOP)
		time.Sleep(2 * time.Second) // as long as clocks may differ: no process has to be punctual to less
		require.NoError(b, b.acquire(report).Release(b.Context()))
		assert.False(b, p.lives(), "nothing of it is left when another acquires")
		p.signal(syscall.SIGCONT)
		code, _ := p.wait()
		assert.Equal(b, exitLost, code)
		assert.Contains(b, p.stderr.String(), "does not answer, and the lease ends")
	})
}

// This program is killed: all that its command has started is.
func TestExec_KilledHolderLeavesNothing(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		p := b.start("report", `trap '' TERM; (trap '' TERM HUP; exec 9>$LIFE; echo up; while :; do sleep 1; done) & wait`)
		require.Equal(b, "up", p.line())
		p.kill()
		p.dies()
	})
}

// A program within a program: the outer one loses its lock, and nothing of the inner one's command is left.
func TestExec_Nested(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		p := b.start("report --lease 4s --grace 1s",
			`trap '' TERM; "$MORTISE" exec inner -- sh -c 'trap "" TERM; exec 9>$LIFE; echo $MORTISE_LOCK; while :; do sleep 1; done'`)
		require.Equal(b, "inner", p.line())
		b.force(report)
		code, _ := p.wait()
		assert.Equal(b, exitLost, code)
		p.dies() // the inner one's watchdog notices
	})
}

// The engine is gone: the lease cannot be renewed, and the command has ended before its end.
func TestExec_WithoutRenewals(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		engines.Only(b.T, engines.InProcess, "another program's engine cannot be ended")
		// The command has two seconds to say that it got the signal.
		p := b.start("report --lease 5s --grace 2500ms", `trap 'echo term' TERM; exec 9>$LIFE; echo up; while :; do sleep 0.1; done`)
		require.Equal(b, "up", p.line())
		require.NoError(b, b.engine.Close())
		require.Equal(b, "term", p.line())
		code, _ := p.wait()
		assert.Equal(b, exitLost, code)
		assert.False(b, p.lives())
		assert.Contains(b, p.stderr.String(), "could not be renewed")
	})
}

// A script writes while the lock is held. A stale one cannot.
func TestWrite_CommitsOnlyWhileTheLockIsHeld(t *testing.T) {
	onEngines(t, keys.Scheme{Type: "_t", Prefix: "shop/"}, func(b *bench) {
		p := b.startWith([]string{"report", "--lease", "60s"},
			`trap '' TERM; echo up; while read text; do echo "$text" | "$MORTISE" write -; echo $?; done`, envKeys+"TYPE=_t", envKeys+"PREFIX=shop/")
		require.Equal(b, "up", p.line())
		send := func(old, n int) string {
			p.say(strings.ReplaceAll(fmt.Sprintf(put, n, old), "\n", ""))
			return p.line()
		}
		assert.Equal(b, "0", send(1, 1))
		assert.Equal(b, "1", b.value("a"))
		assert.Equal(b, "77", send(1, 2), "its own condition does not hold")
		assert.Equal(b, "0", send(5, 5))
		p.say("nonsense")
		assert.Equal(b, "1", p.line())

		rival, err := lock.New(b.table, lock.Config{Owner: "next"})
		require.NoError(b, err)
		defer func() { assert.NoError(b, rival.Close(context.Background())) }()
		b.force(report)
		_, err = rival.Acquire(b.Context(), report)
		require.NoError(b, err)
		assert.Equal(b, "76", send(9, 9))
		assert.Equal(b, "76", send(1, 9), "neither guard nor condition holds")
		assert.Equal(b, "5", b.value("a"))
		require.NoError(b, p.stdin.Close())
		code, _ := p.wait()
		assert.Equal(b, exitLost, code)
		for _, text := range []string{"the lock is not held any more: nothing was written", "the condition of action 0 does not hold"} {
			assert.Contains(b, p.stderr.String(), text)
		}
	})
}

// Several commands run at once, and no more. All have to name the same number.
func TestExec_Permits(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		script := `trap '' TERM; echo up; while read text; do echo "$text" | "$MORTISE" write -; echo $?; done`
		first, second := b.start("report --permits 2 --lease 60s", script), b.start("report --permits 2 --lease 60s", script)
		require.Equal(b, "up", first.line())
		require.Equal(b, "up", second.line())
		for wait, code := range map[string]int{"--permits 2 --wait 0s": exitNotAcquired, "--permits 3": exitExec, "--permits 1": exitExec, "--permits x": exitExec, "": exitExec} {
			got, stderr := b.ends("report "+wait, "echo up")
			assert.Equal(b, code, got, wait)
			assert.NotEmpty(b, stderr)
		}
		shown := asJSON[lockDocument](b.T, b.run("show report --json"))
		require.Equal(b, []int{2, 2, 2}, []int{shown.Permits, shown.Holders, len(shown.Line)})
		assert.Contains(b, b.run("show report").stdout, "2, of which 2 are held")

		// One of them loses its permit, and cannot write any more. The other can.
		assert.Equal(b, exitUsage, b.run("force report --yes").code, "which of them?")
		require.Zero(b, b.run("force report --yes --ticket "+shown.Line[0].Ticket).code)
		write := strings.ReplaceAll(fmt.Sprintf(put, 1, 1), "\n", "")
		codes := map[string]int{}
		for _, p := range []*process{first, second} {
			p.say(write)
			codes[p.line()]++
			require.NoError(b, p.stdin.Close())
			code, _ := p.wait()
			codes[fmt.Sprint("exit ", code)]++
		}
		assert.Equal(b, map[string]int{"76": 1, "0": 1, "exit 76": 1, "exit 0": 1}, codes)
		assert.Equal(b, "1", b.value("a"))
	})
}

// A demo needs nothing: the command reaches its engine.
func TestExec_Demo(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "exec", "report", "--engine", "demo", "--", "sh", "-c",
		`echo '`+strings.ReplaceAll(fmt.Sprintf(put, 1, 1), "\n", "")+`' | "$MORTISE" write - && "$MORTISE" collection a && "$MORTISE" show report`)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), programEnv + "=1", "MORTISE=" + self}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "n=1")
	assert.Contains(t, string(out), "held by")
}
