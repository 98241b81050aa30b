package speccheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Config is the configuration of Check.
type Config struct {
	Dir      string        // the directory of the models
	Parallel int           // how many runs are made at once
	MB       int           // memory of one run
	Limit    time.Duration // time of one run
	Trace    bool          // find the shortest path to what breaks, which needs more memory
	Done     func(Result)  // is called after each run, by one goroutine at a time
}

// Result is the result of a run.
type Result struct {
	Run     Run
	Outcome Outcome
	Steps   []string      // of the path to what broke
	CPU     time.Duration // of Spin, of the compiler and of the search
	Err     error         // why the run could not be made
}

// ErrNotInstalled means that a program is missing that Check needs.
var ErrNotInstalled = errors.New("not installed")

// Installed looks for Spin and the C compiler that Spin needs. If one is missing, the error is ErrNotInstalled, and
// its text tells how to install it.
func Installed() error {
	for _, program := range []string{"spin", "cc"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is %w: the specification is checked by Spin and a C compiler. "+
				"Debian and Ubuntu: apt-get install spin gcc. macOS: xcode-select --install, and brew install spin. "+
				"Others: https://spinroot.com", program, ErrNotInstalled)
		}
	}
	return nil
}

// preprocessor is the preprocessor that Spin uses for a model. Its default is gcc.
const preprocessor = "-Pcc -E -x c"

// Check makes the runs. The results are in the order of the runs. If ctx ends, the remaining results have its error.
func Check(ctx context.Context, c Config, runs []Run) []Result {
	results := make([]Result, len(runs))
	var wg sync.WaitGroup
	var mu sync.Mutex // for Done
	next := make(chan int)
	for range max(c.Parallel, 1) {
		wg.Go(func() {
			for i := range next {
				r := c.check(ctx, runs[i])
				mu.Lock()
				results[i] = r
				if c.Done != nil {
					c.Done(r)
				}
				mu.Unlock()
			}
		})
	}
	for i := range runs {
		next <- i
	}
	close(next)
	wg.Wait()
	return results
}

// check makes one run in a directory of its own.
func (c Config) check(ctx context.Context, run Run) Result {
	r := Result{Run: run}
	dir, err := os.MkdirTemp("", "speccheck-")
	if err != nil {
		r.Err = err
		return r
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is temporary
	w := &workplace{dir: dir}
	r.Outcome, r.Steps, r.Err = c.search(ctx, w, run)
	r.CPU = w.cpu
	return r
}

func (c Config) search(ctx context.Context, w *workplace, run Run) (o Outcome, steps []string, err error) {
	model, err := os.ReadFile(filepath.Join(c.Dir, run.Model))
	if err != nil {
		return o, nil, err
	}
	if err := errors.Join(w.write(run.Model, model), w.write("run.pml", []byte(run.source()))); err != nil {
		return o, nil, err
	}
	if out, err := w.run(ctx, "spin", preprocessor, "-a", "run.pml"); err != nil {
		return o, nil, fmt.Errorf("spin: %w\n%s", err, out)
	}
	if out, err := w.run(ctx, "cc", c.compile(run)...); err != nil {
		return o, nil, fmt.Errorf("cc: %w\n%s", err, out)
	}
	limited, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	args := []string{"-m100000", "-w24", "-n"}
	if !run.looksForStuck() {
		args = append(args, "-E")
	}
	out, err := w.run(limited, "./pan", args...)
	o = parseSearch(out, run.looksForStuck())
	switch {
	case ctx.Err() != nil:
		return o, nil, ctx.Err()
	case limited.Err() != nil:
		o.Incomplete = fmt.Sprintf("it takes longer than %v", c.Limit)
		return o, nil, nil
	case o.Broken == "" && o.Incomplete == "" && err != nil:
		return o, nil, fmt.Errorf("the verifier: %w\n%s", err, out)
	case o.Broken == "":
		return o, nil, nil
	}
	out, _ = w.run(ctx, "spin", preprocessor, "-t", "-T", "run.pml") // it fails in any case, since the path ends in an error
	promise, steps := parseReplay(out)
	if promise != "" {
		o.Broken = promise
	}
	return o, steps, ctx.Err()
}

// compile returns the compiler's arguments. A twin's search ends early, so optimizing it is not worth the time.
func (c Config) compile(run Run) []string {
	args := []string{"-w", "-DSAFETY", "-DCOLLAPSE", fmt.Sprintf("-DMEMLIM=%d", c.MB), "-o", "pan", "pan.c"}
	if c.Trace {
		args = append(args, "-DBFS")
	}
	if run.Twin() {
		return append(args, "-O0")
	}
	return append(args, "-O2")
}

// workplace is a directory in which programs run, and the time that they took.
type workplace struct {
	dir string
	cpu time.Duration
}

func (w *workplace) write(name string, text []byte) error {
	return os.WriteFile(filepath.Join(w.dir, name), text, 0o600)
}

// run runs a program and returns everything that it has printed.
func (w *workplace) run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = w.dir
	cmd.WaitDelay = time.Second // a compiler that was killed may leave a child process
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState != nil {
		w.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return string(out), err
}
