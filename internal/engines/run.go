package engines

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
)

// shared is what the tests of one binary share: the DynamoDB Local process and the count of tests. It is
// package-level state, since there is no other way to reach it from every test of a binary.
var shared = &session{ran: map[string]int{}, running: map[string]*running{}}

type session struct {
	startLocal sync.Once
	local      aws.Config // of a client for DynamoDB Local
	stopLocal  func()     // nil if this process has not started it
	localErr   error

	mu      sync.Mutex
	ran     map[string]int      // by engine
	running map[string]*running // by full test name
}

// running is a subtest that Run started and that has not ended.
type running struct {
	test   string // name of the test that called Run
	engine string
	only   bool
	why    string
}

// Main runs the tests of a binary and stops what Run started. If tests are verbose, it prints how many contract tests
// ran on each engine. It returns the exit code.
//
// The developer's settings of AWS are left out of the environment, unless the tests run on AWS: a profile that needs a login, an
// endpoint or a mode of retries would change the tests of programs that read them.
func Main(m *testing.M) int {
	if names, _, err := selection(os.Getenv("MORTISE_ENGINE")); err == nil && !slices.Contains(names, AWS) { // Run reports the error
		if err := leaveOutAWS(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	code := m.Run()
	shared.close()
	if testing.Verbose() {
		if counts := shared.counts(); counts != "" {
			fmt.Println("contract tests:", counts)
		}
	}
	return code
}

// leaveOutAWS removes all settings of the SDK from the environment of this process and of those that it starts.
func leaveOutAWS() error {
	var errs []error
	for _, setting := range os.Environ() {
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "AWS_") {
			errs = append(errs, os.Unsetenv(name))
		}
	}
	for _, file := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		errs = append(errs, os.Setenv(file, os.DevNull))
	}
	return errors.Join(append(errs, os.Setenv("AWS_EC2_METADATA_DISABLED", "true"))...)
}

// Run runs f as a subtest on every selected engine. The in-process engine is new for each call. The others are
// shared, so a test must get its table names from Engine.TableName.
func Run(t *testing.T, f func(t *testing.T, e *Engine)) {
	t.Helper()
	names, explicit, err := selection(os.Getenv("MORTISE_ENGINE"))
	if err != nil {
		t.Fatal(err)
	}
	mustRun := explicit || os.Getenv("CI") != ""
	for _, name := range names {
		if name == DynamoDBLocal && !mustRun {
			// Reported on the parent, since the subtest did not run at all.
			if _, _, err := installation(""); errors.Is(err, ErrNotInstalled) {
				t.Logf("not run on %s: %v", name, err)
				continue
			}
		}
		parent := t.Name()
		t.Run(name, func(t *testing.T) {
			e, err := open(t, name)
			if err != nil {
				t.Fatal(err)
			}
			shared.begin(t, parent, name)
			t.Cleanup(func() { shared.end(t) })
			f(t, e)
		})
	}
}

// Only skips the test on all engines except for the named one. It is for what other engines cannot do, such as faults or a clock of the
// test's own. why is printed in the test's log. Call it first in the function given to Run, with that function's t.
func Only(t *testing.T, engine, why string) {
	t.Helper()
	on, ok := shared.restrict(t, engine, why)
	if !ok {
		t.Fatal("engines: Only must be called with the t that Run passed")
	}
	if on != engine {
		t.Skipf("only on %s: %s", engine, why)
	}
}

// selection parses MORTISE_ENGINE.
func selection(env string) (names []string, explicit bool, err error) {
	if env == "" {
		return []string{InProcess, DynamoDBLocal}, false, nil
	}
	for name := range strings.SplitSeq(env, ",") {
		name = strings.TrimSpace(name)
		switch name {
		case InProcess, DynamoDBLocal, AWS:
		default:
			u, err := url.Parse(name)
			if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
				return nil, false, fmt.Errorf("engines: MORTISE_ENGINE: %q is neither %s, %s, %s nor an endpoint URL",
					name, InProcess, DynamoDBLocal, AWS)
			}
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, true, nil
}

func open(t *testing.T, name string) (*Engine, error) {
	switch name {
	case InProcess:
		return openInProcess(t)
	case DynamoDBLocal:
		cfg, err := shared.sharedLocal()
		if err != nil {
			return nil, err
		}
		// A connection that stays open has goroutines and buffers, and ends in the middle of another test, which may count its own.
		connections := awshttp.NewBuildableClient().GetTransport()
		t.Cleanup(connections.CloseIdleConnections)
		cfg.HTTPClient = patient{&http.Client{Transport: connections}}
		return &Engine{Name: name, config: cfg}, nil
	case AWS:
		cfg, err := config.LoadDefaultConfig(t.Context())
		if err != nil {
			return nil, fmt.Errorf("engines: aws: %w", err)
		}
		return &Engine{Name: name, config: cfg}, nil
	default:
		return &Engine{Name: name, config: endpointConfig(name)}, nil
	}
}

// envShared names the endpoint of a DynamoDB Local that is running already, for the test binaries that share it.
const envShared = "MORTISE_DYNAMODB_LOCAL"

// Share starts the DynamoDB Local that the test binaries of a command share, if MORTISE_ENGINE selects it; a process for
// each binary would cost each one its start and its slow first requests. Share returns the selected engines, what the
// command's environment has to contain, and stop, which ends the process.
func Share(ctx context.Context, env string) (selected, environ []string, stop func(), err error) {
	selected, _, err = selection(env)
	if err != nil {
		return nil, nil, nil, err
	}
	environ = []string{"MORTISE_ENGINE=" + strings.Join(selected, ",")}
	if !slices.Contains(selected, DynamoDBLocal) || os.Getenv(envShared) != "" {
		return selected, environ, func() {}, nil
	}
	local, err := Start(ctx, "")
	if err != nil {
		return nil, nil, nil, err
	}
	return selected, append(environ, envShared+"="+local.URL), local.Stop, nil
}

// sharedLocal starts the binary's DynamoDB Local on first use, if there is none that it shares with other binaries.
func (s *session) sharedLocal() (aws.Config, error) {
	s.startLocal.Do(func() {
		if url := os.Getenv(envShared); url != "" {
			s.local = endpointConfig(url)
			return
		}
		local, err := Start(context.Background(), "")
		if err != nil {
			s.localErr = err
			return
		}
		s.local, s.stopLocal = local.Config(), local.Stop
	})
	return s.local, s.localErr
}

func (s *session) close() {
	// After this call of Do, sharedLocal does not start a process any more.
	s.startLocal.Do(func() { s.localErr = errors.New("engines: the tests have ended") })
	if s.stopLocal != nil {
		s.stopLocal()
	}
}

func (s *session) begin(t *testing.T, test, engine string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[t.Name()] = &running{test: test, engine: engine}
}

func (s *session) restrict(t *testing.T, engine, why string) (on string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.running[t.Name()]
	if !ok {
		return "", false
	}
	r.only, r.why = true, why
	return r.engine, engine != ""
}

// end counts a test that was not skipped, and appends it to the file that contracttest reads.
func (s *session) end(t *testing.T) {
	s.mu.Lock()
	r := s.running[t.Name()]
	delete(s.running, t.Name())
	if !t.Skipped() {
		s.ran[r.engine]++
	}
	s.mu.Unlock()

	file := os.Getenv("MORTISE_CONTRACT_LOG")
	if file == "" || t.Skipped() {
		return
	}
	if err := appendLine(file, Line{Engine: r.engine, Package: testedPackage(), Test: r.test, Only: r.only, Why: r.why}); err != nil {
		t.Errorf("engines: MORTISE_CONTRACT_LOG: %v", err)
	}
}

func (s *session) counts() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return joinCounts(s.ran)
}

// testedPackage returns the import path of the package under test.
func testedPackage() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" {
		return strings.TrimSuffix(info.Path, ".test")
	}
	return os.Args[0]
}
