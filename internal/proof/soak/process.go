package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"github.com/mortise-go/mortise/internal/engines"
)

// WorkerEnv is set in the environment of worker processes: a program that finds it there has
// to call Work and nothing else.
const WorkerEnv = "MORTISE_SOAK_WORKER"

// process is a worker from the supervisor's side.
type process struct {
	cmd      *exec.Cmd
	in       io.Closer
	problems tail
	ended    chan struct{} // closed when it is gone and all that it wrote has been read
	err      error         // how it ended; to be read after that
}

// startProcess starts a worker. It ends with finish or kill; on Linux also, stopped or not,
// with the supervisor, and elsewhere when it finds that its input has ended. each gets every
// line that it writes, also when it has died meanwhile.
func startProcess(ctx context.Context, program string, config workerConfig, each func(line []byte)) (*process, error) {
	p := &process{cmd: exec.CommandContext(context.WithoutCancel(ctx), program), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), WorkerEnv+"=1")
	p.cmd.Stderr = &p.problems
	// Interrupts are for the supervisor. Where that dies, the system also hangs up the group
	// if it is stopped.
	engines.ApartFromTerminal(p.cmd)
	first, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("soak: start worker: %w", err)
	}
	in, toIn, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("soak: start worker: %w", err)
	}
	out, toOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("soak: start worker: %w", err), in.Close(), toIn.Close())
	}
	p.cmd.Stdin, p.cmd.Stdout, p.in = in, toOut, toIn
	wait, err := engines.StartBound(p.cmd)
	err = errors.Join(err, in.Close(), toOut.Close()) // the worker's ends
	if err != nil {
		return nil, errors.Join(fmt.Errorf("soak: start worker: %w", err), toIn.Close(), out.Close())
	}
	go func() {
		defer close(p.ended)
		scan := bufio.NewScanner(out)
		for scan.Scan() {
			each(scan.Bytes())
		}
		p.err = errors.Join(wait(), scan.Err(), out.Close())
	}()
	// Where this fails the worker is gone, and says so itself. It fits into the pipe.
	_, _ = toIn.Write(append(first, '\n'))
	return p, nil
}

// finish tells the worker to end.
func (p *process) finish() { _ = p.in.Close() }

// kill ends it at once, and returns when it has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // where it is gone already that is what was wanted
	<-p.ended
	p.finish()
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 8 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if more := len(t.text) - tailBytes; more > 0 {
		t.text = append(t.text[:0], t.text[more:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
