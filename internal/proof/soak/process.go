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

// WorkerEnv is set in the environment of worker processes. A program that finds it there has to call Work and do
// nothing else.
const WorkerEnv = "MORTISE_SOAK_WORKER"

// process is a worker as its supervisor sees it.
type process struct {
	cmd      *exec.Cmd
	in       io.Closer
	problems tail
	ended    chan struct{} // closed when it has ended and all of its output was read
	err      error         // how it ended; to be read after ended is closed
}

// startProcess starts a worker. The worker ends with finish or kill. It also ends with the supervisor: on Linux at
// once, stopped or not, and elsewhere when it finds that its input has ended. each is called with every line of its
// output, also after its death.
func startProcess(ctx context.Context, program string, config workerConfig, each func(line []byte)) (*process, error) {
	p := &process{cmd: exec.CommandContext(context.WithoutCancel(ctx), program), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), WorkerEnv+"=1")
	p.cmd.Stderr = &p.problems
	// Interrupts go to the supervisor only. If the supervisor dies, the system also hangs up the worker's process
	// group if it is stopped.
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
	err = errors.Join(err, in.Close(), toOut.Close()) // the ends of the worker
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
	// If this fails, the worker has ended, which is noticed elsewhere. The line fits into the pipe.
	_, _ = toIn.Write(append(first, '\n'))
	return p, nil
}

// finish tells the worker to end.
func (p *process) finish() { _ = p.in.Close() }

// kill kills the worker, and returns when it has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it fails if the worker has ended, which is fine
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
