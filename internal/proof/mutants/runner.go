package mutants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Config is the configuration of Run.
type Config struct {
	// Root is the module's directory.
	Root string

	// Mutants are the mutants to run.
	Mutants []Mutant

	// Packages are the packages whose tests have to notice, relative to Root, with slashes. The tests of a package
	// run after those of all packages before it have passed.
	Packages []string

	// Tests selects tests by name, to find out what those kill alone. Defaults to all. Packages without such a test
	// are left out.
	Tests *regexp.Regexp

	// First are tests that are likely to kill mutants, by the names of the mutants. Such a test runs before all
	// others. If it kills the mutant, no others run, also not without a mistake. For a mutant without one, the tests
	// of its own package run first.
	First map[string]Killer

	// Flags are passed to the tests of a package.
	Flags map[string][]string

	// Parallel is how many mutants run at once. Defaults to 1.
	Parallel int

	// Patience is added to five times the time that a test takes without a mistake. After that the test counts as
	// hung. Defaults to 20 s.
	Patience time.Duration

	// Began is called with how a package's tests run without a mistake, before they run with one. It may be nil. It
	// is not called while Done is.
	Began func(pkg string, tests int, took time.Duration)

	// Done is called with each result, by one goroutine at a time. It may be nil.
	Done func(Result)
}

// Verdict is what happened to a mutant.
type Verdict string

// The verdicts.
const (
	Killed   Verdict = "killed"   // a test has failed
	TimedOut Verdict = "timeout"  // a test has hung
	Survived Verdict = "SURVIVED" // all tests have passed
	Broken   Verdict = "ERROR"    // it could not be run
)

// Result is what happened to one mutant.
type Result struct {
	Mutant  Mutant
	Verdict Verdict
	Package string // of Test
	Test    string // the first test that noticed; empty if none did
	Took    time.Duration
	Err     error // of Broken

	// Sightings are the results of the worlds in which the mistake was seen once. They kill nothing.
	Sightings []Sighting

	// Unsteady are tests that have failed, but not again, or also without the mistake; and how they failed.
	Unsteady []string
}

// steps divides tests into classes by the time that they take without a mistake. Faster ones run first.
var steps = [...]time.Duration{300 * time.Millisecond, 3 * time.Second}

// Run runs the tests with each mistake. The tests of a package run if a mutant has survived those of the packages
// before. Tests have to pass without a mistake, and run so first. The results are in the order of the mutants. An
// error means that there are no results.
func Run(ctx context.Context, config Config) ([]Result, error) {
	root, err := filepath.Abs(config.Root)
	if err != nil {
		return nil, fmt.Errorf("mutants: %w", err)
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, fmt.Errorf("mutants: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // files that are left there do no harm
	config.Root = root
	if config.Patience == 0 {
		config.Patience = 20 * time.Second
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &runner{Config: config, dir: dir, fail: cancel}
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
	dir    string // for compiled files
	suites []*suite
	fail   context.CancelCauseFunc // ends the run
	mu     sync.Mutex              // held while Began or Done is called

	once   sync.Once // guards the following
	player *Player   // without a mistake
	err    error
}

// suite is the tests of one package.
type suite struct {
	pkg string

	built    sync.Once // guards the following
	err      error
	control  *binary // without a mistake
	tests    []string
	measured sync.Once  // guards the following
	failed   error      // why it was not measured
	classes  [][]string // of tests, the fastest first

	mu   sync.Mutex
	took map[string]time.Duration // times of tests without a mistake, of those that have run
}

// first builds the first suite that has tests to run.
func (r *runner) first(ctx context.Context) error {
	for _, s := range r.suites {
		if err := r.build(ctx, s); err != nil {
			return err
		}
		if len(s.tests) > 0 {
			return nil
		}
	}
	if r.Tests != nil {
		return fmt.Errorf("mutants: no test matches %q", r.Tests)
	}
	return nil
}

// build compiles a suite without a mistake, when it is needed for the first time.
func (r *runner) build(ctx context.Context, s *suite) error {
	s.built.Do(func() {
		pattern := "." // all
		if r.Tests != nil {
			pattern = r.Tests.String()
		}
		if s.control, s.err = compile(ctx, r.Root, s.pkg, "", filepath.Join(r.dir, "control"), r.Flags[s.pkg]); s.err == nil {
			s.tests, s.err = s.control.list(ctx, pattern)
		}
		if s.err == nil && r.Tests == nil && len(s.tests) == 0 {
			s.err = fmt.Errorf("mutants: %s has no tests", s.pkg)
		}
	})
	return s.err
}

// alone runs one test without a mistake to learn how long it takes, unless it has run before.
func (r *runner) alone(ctx context.Context, s *suite, test string) error {
	s.mu.Lock()
	_, known := s.took[test]
	s.mu.Unlock()
	if known {
		return nil
	}
	return r.pass(ctx, s, []string{test})
}

// measure runs a suite without a mistake, when it is needed for the first time: a mutant has survived the test that
// was likely to kill it.
func (r *runner) measure(ctx context.Context, s *suite) error {
	s.measured.Do(func() {
		start := time.Now()
		if s.failed = r.pass(ctx, s, s.tests); s.failed != nil {
			return
		}
		s.classes = make([][]string, len(steps)+1)
		for _, test := range slices.Sorted(slices.Values(s.tests)) {
			class, _ := slices.BinarySearch(steps[:], s.took[test])
			s.classes[class] = append(s.classes[class], test)
		}
		if r.Began != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.Began(s.pkg, len(s.tests), time.Since(start))
		}
	})
	return s.failed
}

// pass runs tests without a mistake. If they fail, everything ends, since mutants cannot be judged then.
func (r *runner) pass(ctx context.Context, s *suite, tests []string) error {
	o, err := s.control.run(ctx, tests, func(string) time.Duration { return 10 * time.Minute })
	if err == nil && o.failed != "" {
		err = fmt.Errorf("mutants: %s of %s %s without any mistake:\n%s", o.failed, s.pkg, o.how, strings.Join(o.last, "\n"))
		r.fail(err)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.took == nil {
		s.took = map[string]time.Duration{}
	}
	maps.Copy(s.took, o.took)
	return nil
}

// limit returns how long a test may take.
func (r *runner) limit(s *suite) func(string) time.Duration {
	return func(test string) time.Duration {
		s.mu.Lock()
		defer s.mu.Unlock()
		return 5*s.took[test] + r.Patience
	}
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
	if err := context.Cause(ctx); errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("mutants: %w", err)
	} else if err != nil {
		return nil, err
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
	for _, s := range r.order(&result.Mutant) {
		if err != nil || result.Verdict != Survived {
			break
		}
		if err = r.build(ctx, s); err != nil {
			break
		}
		if len(s.tests) == 0 {
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

// order returns the suites in the order in which they run with a mistake.
func (r *runner) order(m *Mutant) []*suite {
	likely := cmp.Or(r.First[m.Name].Package, path.Dir(m.File))
	suites := slices.Clone(r.suites)
	if i := slices.IndexFunc(suites, func(s *suite) bool { return s.pkg == likely }); i > 0 {
		suites = slices.Insert(slices.Delete(suites, i, i+1), 0, r.suites[i])
	}
	return suites
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
	if first := r.First[result.Mutant.Name]; first.Package == s.pkg && slices.Contains(s.tests, first.Test) {
		if err := r.alone(ctx, s, first.Test); err != nil {
			return err
		}
		if err := r.tests(ctx, s, b, []string{first.Test}, result); err != nil || result.Verdict != Survived {
			return err
		}
	}
	if err := r.measure(ctx, s); err != nil {
		return err
	}
	for _, tests := range s.classes {
		if err := r.tests(ctx, s, b, tests, result); err != nil || result.Verdict != Survived {
			return err
		}
	}
	return nil
}

// tests runs some tests with a mistake, until one kills it.
func (r *runner) tests(ctx context.Context, s *suite, b *binary, tests []string, result *Result) error {
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
		again, err := r.steady(ctx, s, b, test)
		switch {
		case err != nil:
			return err
		case again == "":
			result.Verdict, result.Package, result.Test = Killed, s.pkg, o.failed
			if o.how == hung {
				result.Verdict = TimedOut
			}
			return nil
		}
		result.Unsteady = append(result.Unsteady, fmt.Sprintf("%s %s, but %s", o.failed, o.how, again))
		tests = slices.DeleteFunc(slices.Clone(tests), func(other string) bool { return other == test })
	}
	return nil
}

// steady checks that a failed test fails once more with the mistake, and passes without it. If not, but says which of
// the two it does not.
func (r *runner) steady(ctx context.Context, s *suite, mistaken *binary, test string) (but string, err error) {
	without, err := s.control.run(ctx, []string{test}, r.limit(s))
	if err != nil {
		return "", err
	}
	if without.failed != "" {
		return fmt.Sprintf("without the mistake it %s, too", without.how), nil
	}
	with, err := mistaken.run(ctx, []string{test}, r.limit(s))
	if err == nil && with.failed == "" {
		return "not again", nil
	}
	return "", err
}
