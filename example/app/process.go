package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
)

// workerEnv makes the program a worker process. What it is to do comes on its
// standard input.
const workerEnv = "MORTISE_EXAMPLE_WORKER"

// killTimeout is how long a worker process may take to end when told to.
const killTimeout = 5 * closeTimeout

// workerConfig is the first line that a worker process reads.
type workerConfig struct {
	Target  target      `json:"target"`
	Table   string      `json:"table"`
	Scheme  keys.Scheme `json:"scheme"`
	Batch   string      `json:"batch"`
	Name    string      `json:"name"`
	Workers int         `json:"workers"`
	Stalls  int         `json:"stalls"`
}

// Commands to a worker process, one per line. The end of its standard input,
// which comes with the death of its parent too, means abort.
const (
	startCommand  = "start"
	finishCommand = "finish"
)

// newLocks is how all processes of a run lock.
func newLocks(s *store, owner string) (*lock.Client, error) {
	return lock.New(s.table, lock.Config{
		Lease: leaseTime, Owner: owner,
		// Lost locks are what this program is about: it counts them, and lines
		// of a log would tear its progress bar.
		Logger: slog.New(slog.DiscardHandler),
	})
}

// signals are the commands as channels.
type signals struct {
	started, finished     chan struct{}
	startOnce, finishOnce sync.Once
	cancel                context.CancelCauseFunc
}

func newSignals(cancel context.CancelCauseFunc) *signals {
	return &signals{started: make(chan struct{}), finished: make(chan struct{}), cancel: cancel}
}

func (s *signals) start()  { s.startOnce.Do(func() { close(s.started) }) }
func (s *signals) finish() { s.finishOnce.Do(func() { close(s.finished) }) }
func (s *signals) abort()  { s.cancel(errAborted) }

var errAborted = errors.New("told to stop")

// startLocal runs a crew in this process.
func (f *foreman) startLocal(ctx context.Context, locks *lock.Client, workers, stalls int) {
	i := f.add("")
	ctx, cancel := context.WithCancelCause(ctx)
	sig := newSignals(cancel)
	f.members[i].hand = sig
	send := func(e event) {
		e.crew = i
		f.events <- e
	}
	c := &crew{
		store: f.store, locks: locks, batch: f.batch, workers: workers, stalls: stalls,
		report: send, start: sig.started, finish: sig.finished,
	}
	go func() {
		defer cancel(nil)
		send(event{Kind: crewGone, err: c.run(ctx)})
	}()
}

// process is a worker process, from its parent's side.
type process struct {
	commands chan string // to the one goroutine that writes; has room for all there are
	stop     context.CancelFunc
}

// startProcess runs a crew in a process of its own. The end of ctx ends it.
func (f *foreman) startProcess(ctx context.Context, config workerConfig) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start worker process: %w", err)
	}
	first, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("start worker process: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, program) //nolint:gosec // the program is this one
	cmd.Env = append(os.Environ(), workerEnv+"=1")
	var stderr tail
	cmd.Stderr = &stderr
	stdin, stdout, err := pipes(cmd)
	if err == nil {
		// The end of its input tells the process to stop; if it does not follow it is killed.
		cmd.Cancel, cmd.WaitDelay = stdin.Close, killTimeout
		err = cmd.Start()
	}
	if err != nil {
		stop()
		return fmt.Errorf("start worker process: %w", err)
	}
	i := f.add(fmt.Sprintf("%s (pid %d)", config.Name, cmd.Process.Pid))
	p := &process{commands: make(chan string, 3), stop: stop}
	p.commands <- string(first)
	f.members[i].hand = p
	go p.write(ctx, stdin)
	go func() {
		defer stop()
		err := readEvents(stdout, func(e event) {
			e.crew = i
			f.events <- e
		})
		// Wait closes the pipe, so it comes after the reading.
		if wait := cmd.Wait(); wait != nil {
			err = errors.New(strings.TrimSpace(wait.Error() + " " + stderr.String()))
		}
		f.events <- event{Kind: crewGone, crew: i, err: err}
	}()
	return nil
}

func pipes(cmd *exec.Cmd) (stdin io.WriteCloser, stdout io.ReadCloser, err error) {
	if stdin, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	stdout, err = cmd.StdoutPipe()
	return stdin, stdout, err
}

// write sends the commands, so that the foreman never waits for a pipe. Errors
// mean that the process is gone, which its output tells too.
func (p *process) write(ctx context.Context, stdin io.Writer) {
	for {
		select {
		case command := <-p.commands:
			_, _ = io.WriteString(stdin, command+"\n")
		case <-ctx.Done():
			return
		}
	}
}

func (p *process) start()  { p.commands <- startCommand }
func (p *process) finish() { p.commands <- finishCommand }
func (p *process) abort()  { p.stop() }

// readEvents passes on the events of a worker process until its output ends.
func readEvents(r io.Reader, pass func(event)) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			// Whatever it is, the process must not block on a full pipe.
			_, _ = io.Copy(io.Discard, r)
			return fmt.Errorf("unexpected output: %w", err)
		}
		pass(e)
	}
	return lines.Err()
}

// tail keeps the beginning of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b[:min(len(b), tailBytes-len(t.text))]...)
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
