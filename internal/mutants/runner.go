package mutants

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Config is what Run is told.
type Config struct {
	// Root is the module's directory.
	Root string

	// Mutants are what to run.
	Mutants []Mutant

	// Packages are the packages whose tests have to notice, relative to Root, with slashes:
	// those of a later one run where all before it have passed.
	Packages []string

	// Tests are which tests of the packages run, by their names: what they kill, they kill
	// alone. Defaults to all; packages that have none of them are left out.
	Tests *regexp.Regexp

	// First are tests that are likely to kill mutants, by the names of these: they run before
	// all others.
	First map[string]string

	// Flags are given to the tests of a package.
	Flags map[string][]string

	// Parallel is how many mutants run at once. Defaults to 1.
	Parallel int

	// Patience is how long a test may take on top of five times what it takes without a
	// mistake, before it counts as hung. Defaults to 20 s.
	Patience time.Duration

	// Began is told how a package's tests do without a mistake, before they run with one; nil
	// is allowed. It is not called while Done is.
	Began func(pkg string, tests int, took time.Duration)

	// Done is told each result as it comes, by one goroutine at a time; nil is allowed.
	Done func(Result)
}

// Verdict says what became of a mutant.
type Verdict string

// The verdicts.
const (
	Killed   Verdict = "killed"   // a test has failed
	TimedOut Verdict = "timeout"  // a test has hung
	Survived Verdict = "SURVIVED" // all tests have passed
	Broken   Verdict = "ERROR"    // it could not be run
)

// Result is what became of one mutant.
type Result struct {
	Mutant  Mutant
	Verdict Verdict
	Test    string // that noticed first; empty where none did
	Took    time.Duration
	Err     error // of Broken

	// Sightings are what became of the worlds in which the mistake was seen once. They kill
	// nothing.
	Sightings []Sighting

	// Unsteady are tests that have failed, but either not again or without the mistake, too.
	Unsteady []string
}

// steps bound the classes of tests by what they take without a mistake: faster ones run first.
var steps = [...]time.Duration{300 * time.Millisecond, 3 * time.Second}

// Run runs the tests without a mistake, which have to pass, and then with each in turn; those
// of a later package once a mutant has survived those before. The
// results are in the order of the mutants. An error means that there are none.
func Run(ctx context.Context, config Config) ([]Result, error) {
	root, err := filepath.Abs(config.Root)
	if err != nil {
		return nil, fmt.Errorf("mutants: %w", err)
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, fmt.Errorf("mutants: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left there harms nobody
	config.Root = root
	if config.Patience == 0 {
		config.Patience = 20 * time.Second
	}
	r := &runner{Config: config, dir: dir}
	for _, pkg := range config.Packages {
		r.suites = append(r.suites, &suite{pkg: pkg})
	}
	if err := r.first(ctx); err != nil {
		return nil, err
	}
	return r.all(ctx)
}

type runner struct {
	Config
	dir    string // for what is compiled
	suites []*suite
	mu     sync.Mutex // held while Began or Done is told

	once   sync.Once // guards the following
	player *Player   // without a mistake
	err    error
}

// suite is the tests of one package.
type suite struct {
	pkg     string
	once    sync.Once // guards the following, and err
	err     error
	control *binary // without a mistake
	took    map[string]time.Duration
	classes [][]string // of tests, the fastest first; none where none of the tests is to run
}

// first gets the first suite ready that has tests to run.
func (r *runner) first(ctx context.Context) error {
	for _, s := range r.suites {
		if err := r.ready(ctx, s); err != nil {
			return err
		}
		if len(s.classes) > 0 {
			return nil
		}
	}
	if r.Tests != nil {
		return fmt.Errorf("mutants: no test matches %q", r.Tests)
	}
	return nil
}

// ready runs a suite without a mistake when it is first needed: most mutants are killed by the
// first.
func (r *runner) ready(ctx context.Context, s *suite) error {
	s.once.Do(func() { s.err = r.control(ctx, s) })
	return s.err
}

// control runs a suite without a mistake, to learn what it takes.
func (r *runner) control(ctx context.Context, s *suite) error {
	to := filepath.Join(r.dir, "control")
	b, err := compile(ctx, r.Root, s.pkg, "", to, r.Flags[s.pkg])
	if err != nil {
		return err
	}
	var tests []string
	if r.Tests != nil {
		if tests, err = b.list(ctx, r.Tests.String()); err != nil || len(tests) == 0 {
			return err
		}
	}
	start := time.Now()
	o, err := b.run(ctx, tests, func(string) time.Duration { return 10 * time.Minute })
	switch {
	case err != nil:
		return err
	case o.failed != "":
		return fmt.Errorf("mutants: %s of %s %s without any mistake:\n%s", o.failed, s.pkg, o.how, strings.Join(o.last, "\n"))
	case len(o.took) == 0:
		return fmt.Errorf("mutants: %s has no tests", s.pkg)
	}
	s.control, s.took = b, o.took
	s.classes = make([][]string, len(steps)+1)
	for _, test := range slices.Sorted(maps.Keys(o.took)) {
		class, _ := slices.BinarySearch(steps[:], o.took[test])
		s.classes[class] = append(s.classes[class], test)
	}
	if r.Began != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.Began(s.pkg, len(o.took), time.Since(start))
	}
	return nil
}

// limit is how long a test may take.
func (r *runner) limit(s *suite) func(string) time.Duration {
	return func(test string) time.Duration { return 5*s.took[test] + r.Patience }
}

// all runs the mutants, several at once.
func (r *runner) all(ctx context.Context) ([]Result, error) {
	results := make([]Result, len(r.Mutants))
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(r.Parallel, 1) {
		workers.Go(func() {
			for i := range next {
				results[i] = r.one(ctx, i)
				if r.Done != nil && ctx.Err() == nil {
					r.mu.Lock()
					r.Done(results[i])
					r.mu.Unlock()
				}
			}
		})
	}
	for i := range r.Mutants {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("mutants: %w", ctx.Err())
	}
	return results, nil
}

// one runs the i-th mutant.
func (r *runner) one(ctx context.Context, i int) Result {
	start := time.Now()
	result := Result{Mutant: r.Mutants[i], Verdict: Survived}
	dir := filepath.Join(r.dir, strconv.Itoa(i))
	err := os.Mkdir(dir, 0o700)
	var overlay string
	if err == nil {
		overlay, err = result.Mutant.overlay(r.Root, dir)
	}
	for _, s := range r.suites {
		if err != nil || result.Verdict != Survived {
			break
		}
		if err = r.ready(ctx, s); err != nil {
			break
		}
		if len(s.classes) == 0 {
			continue
		}
		var b *binary
		if b, err = compile(ctx, r.Root, s.pkg, overlay, dir, r.Flags[s.pkg]); err == nil {
			err = r.suite(ctx, s, b, &result)
		}
	}
	if err == nil {
		result.Sightings, err = r.look(ctx, result.Mutant, dir)
	}
	if remove := os.RemoveAll(dir); err == nil && remove != nil { // each is as large as the tests
		err = fmt.Errorf("mutants: %w", remove)
	}
	if err != nil {
		result.Verdict, result.Err = Broken, err
	}
	result.Took = time.Since(start)
	return result
}

// look plays the worlds in which a mistake was seen.
func (r *runner) look(ctx context.Context, m Mutant, dir string) ([]Sighting, error) {
	if len(m.Seen) == 0 {
		return nil, nil
	}
	r.once.Do(func() { r.player, r.err = NewPlayer(ctx, r.Root, r.dir, nil) })
	if r.err != nil {
		return nil, r.err
	}
	with, err := NewPlayer(ctx, r.Root, dir, &m)
	if err != nil {
		return nil, err
	}
	return Look(ctx, r.player, with, m.Seen), nil
}

// suite runs one suite with a mistake.
func (r *runner) suite(ctx context.Context, s *suite, b *binary, result *Result) error {
	classes := s.classes
	first := r.First[result.Mutant.Name]
	if _, has := s.took[first]; has {
		classes = append([][]string{{first}}, classes...)
	}
	for _, tests := range classes {
		for len(tests) > 0 {
			o, err := b.run(ctx, tests, r.limit(s))
			if err != nil {
				return err
			}
			if o.failed == "" {
				break
			}
			test, _, _ := strings.Cut(o.failed, "/")
			if !slices.Contains(tests, test) {
				return fmt.Errorf("mutants: the tests of %s %s outside of a test", s.pkg, o.how)
			}
			steady, err := r.steady(ctx, s, b, test)
			switch {
			case err != nil:
				return err
			case steady:
				result.Verdict, result.Test = Killed, o.failed
				if o.how == hung {
					result.Verdict = TimedOut
				}
				return nil
			}
			result.Unsteady = append(result.Unsteady, o.failed)
			tests = slices.DeleteFunc(slices.Clone(tests), func(other string) bool { return other == test })
		}
	}
	return nil
}

// steady says that a test which has failed with the mistake fails with it once more, and
// passes without.
func (r *runner) steady(ctx context.Context, s *suite, mistaken *binary, test string) (bool, error) {
	without, err := s.control.run(ctx, []string{test}, r.limit(s))
	if err != nil || without.failed != "" {
		return false, err
	}
	with, err := mistaken.run(ctx, []string{test}, r.limit(s))
	return with.failed != "", err
}
