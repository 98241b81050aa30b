package mutants

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// binary is the compiled tests of one package.
type binary struct {
	path    string
	dir     string // directory of the package, in which the tests run
	overlay string // for what the tests compile themselves; may be empty
	args    []string
}

// compile compiles the tests of a package, which run with the given arguments. overlay may be empty.
func compile(ctx context.Context, root, pkg, overlay, to string, with []string) (*binary, error) {
	b := &binary{path: filepath.Join(to, strings.ReplaceAll(pkg, "/", "-")+".test"), dir: filepath.Join(root, filepath.FromSlash(pkg)), overlay: overlay, args: with}
	args := []string{"test", "-c", "-ldflags=-s -w", "-o", b.path}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mutants: compile the tests of %s: %w: %s", pkg, err, bytes.TrimSpace(out))
	}
	return b, nil
}

// outcome is the result of a run of tests.
type outcome struct {
	failed string                   // the first test that failed; empty if none did
	how    how                      // how it failed
	took   map[string]time.Duration // of the tests that passed, without subtests
	last   []string                 // the lines before the first failure, or before the end
}

// lines is how many lines of output are kept.
const lines = 60

// how is how a test failed.
type how string

const (
	failed   how = "failed"
	panicked how = "panicked"
	hung     how = "hung"
)

// Lines in the output of tests.
var (
	began = regexp.MustCompile(`^=== RUN +([^/\s]+)$`)
	fell  = regexp.MustCompile(`^\s*--- FAIL: (\S+)`)
	stood = regexp.MustCompile(`^--- (?:PASS|SKIP): ([^/\s]+) \(([0-9.]+)s\)$`)
)

// run runs the named tests, or all if there are no names, until the first failure. It stops a test that takes longer
// than limit returns.
func (b *binary) run(ctx context.Context, tests []string, limit func(test string) time.Duration) (outcome, error) {
	inner, stop := context.WithCancel(ctx)
	defer stop()
	args := append([]string{"-test.v=test2json", "-test.failfast", "-test.timeout=0"}, b.args...)
	if len(tests) > 0 {
		args = append(args, "-test.run=^("+strings.Join(tests, "|")+")$")
	}
	cmd := exec.CommandContext(inner, b.path, args...)
	cmd.Dir, cmd.Env = b.dir, environment()
	if b.overlay != "" {
		cmd.Env = append(cmd.Env, strings.TrimSpace("GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+b.overlay))
	}
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	cmd.WaitDelay = 5 * time.Second // a program that a test has started may keep the output open
	if err := cmd.Start(); err != nil {
		return outcome{}, fmt.Errorf("mutants: run the tests: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		_ = write.Close() // it never fails
		ended <- err
	}()
	watch := time.AfterFunc(limit(""), stop)
	defer watch.Stop()
	o := outcome{took: map[string]time.Duration{}}
	running := o.read(read, func(test string) { watch.Reset(limit(test)) })
	err := <-ended
	switch {
	case ctx.Err() != nil:
		return o, ctx.Err()
	case err == nil:
		o.failed, o.how = "", ""
	case o.failed == "" && inner.Err() != nil:
		o.failed, o.how = running, hung
	case o.failed == "":
		o.failed, o.how = cmp.Or(running, "TestMain"), cmp.Or(o.how, failed)
	}
	return o, nil
}

// read reads what the tests print, to its end. It returns the last test that began and has not passed, and calls
// begins for each test.
func (o *outcome) read(from io.Reader, begins func(test string)) (running string) {
	final := false // examples run after a test has failed
	for in := bufio.NewReader(from); ; {
		line, err := in.ReadString('\n')
		if _, after, ok := strings.Cut(line, "\x16"); ok {
			line = after // a test may have printed something before it on the same line
		}
		line = strings.TrimRight(line, "\r\n")
		if o.failed == "" {
			o.last = append(o.last, line)[max(len(o.last)+1-lines, 0):]
		}
		if m := began.FindStringSubmatch(line); m != nil {
			running = m[1]
			begins(running)
		}
		if m := fell.FindStringSubmatch(line); m != nil && !final {
			o.failed, o.how = cmp.Or(o.failed, m[1]), cmp.Or(o.how, failed)
			final = !strings.Contains(m[1], "/")
		}
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			o.how = panicked
		}
		if m := stood.FindStringSubmatch(line); m != nil && !final {
			// The test expected the panics before that.
			running, o.failed, o.how = "", "", ""
			if took, err := time.ParseDuration(m[2] + "s"); err == nil {
				o.took[m[1]] = took
			}
		}
		if err != nil {
			return running
		}
	}
}

// list returns the names of the tests that match a pattern, without benchmarks.
func (b *binary) list(ctx context.Context, pattern string) ([]string, error) {
	cmd := exec.CommandContext(ctx, b.path, "-test.list="+pattern)
	cmd.Dir, cmd.Env = b.dir, environment()
	if b.overlay != "" {
		cmd.Env = append(cmd.Env, strings.TrimSpace("GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+b.overlay))
	}
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("mutants: list the tests: %w", err)
	}
	var list []string
	for name := range strings.FieldsSeq(string(out)) {
		if !strings.HasPrefix(name, "Benchmark") {
			list = append(list, name)
		}
	}
	return list, nil
}

// environment is the environment for a run of tests: on the in-process engine, and without settings for other runs.
func environment() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "MORTISE_") {
			env = append(env, entry)
		}
	}
	return append(env, "MORTISE_ENGINE=inprocess")
}
