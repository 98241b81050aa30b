package main

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// programEnv makes the test binary the program.
const programEnv = "MORTISE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(leaverEnv) != "" {
		os.Exit(leave())
	}
	// exec starts its own program again. In a test that calls it in this process, that would be all tests, which start themselves again.
	helper := len(os.Args) > 1 && (os.Args[1] == watchdogName || os.Args[1] == starterName)
	if helper || os.Getenv(programEnv) != "" {
		main()
	}
	// A signal that these tests were started with as ignored, by nohup or a shell without job control, would be ignored by the
	// programs that they start. One that is caught is not.
	for _, sig := range []os.Signal{syscall.SIGHUP, os.Interrupt} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	os.Exit(engines.Main(m))
}

// leaverEnv makes the test binary a command that leaves its process group.
const leaverEnv = "MORTISE_TEST_LEAVER"

// coverage is where a process that these tests start leaves what it has covered. With -cover, it would print a warning without.
func coverage(t *testing.T) string {
	t.Helper()
	return cmp.Or(os.Getenv("GOCOVERDIR"), t.TempDir())
}

var report = lock.Name("report")

// bench is a table, and another process's locks in it.
type bench struct {
	*testing.T
	endpoint string
	engine   *tabletest.Engine // nil for another program
	client   *dynamodb.Client
	table    *table.Table
	rival    *lock.Client
}

// onEngines runs f on each engine.
func onEngines(t *testing.T, scheme keys.Scheme, f func(b *bench)) {
	t.Helper()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		b := &bench{T: t, engine: e.InProcess()}
		if b.engine != nil {
			url, err := b.engine.Listen("127.0.0.1:0")
			require.NoError(t, err)
			b.endpoint = url
		} else if base := e.Client().Options().BaseEndpoint; base != nil {
			b.endpoint = *base
		} else {
			b.endpoint = engineAWS
		}
		tbl, err := table.Open(e.Client(), table.Schema{Name: e.TableName(t), Keys: scheme})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		b.client, b.table = e.Client(), tbl
		b.rival, err = lock.New(tbl, lock.Config{Owner: "rival", Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, b.rival.Close(context.Background())) })
		f(b)
	})
}

// environ is that of the program.
func (b *bench) environ(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), envEngine + "=" + b.endpoint, envTable + "=" + b.table.Name()}, more...)
}

// outcome is how the program has ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// run runs the program in this process. Arguments are separated by spaces.
func (b *bench) run(args string, more ...string) outcome {
	b.Helper()
	return invoke(b.Context(), args, b.environ(more...), "")
}

func invoke(ctx context.Context, args string, environ []string, stdin string) outcome {
	var stdout, stderr bytes.Buffer
	code := run(ctx, strings.Fields(args), environ, strings.NewReader(stdin), &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

func (b *bench) acquire(target lock.Target) *lock.Lease {
	b.Helper()
	l, err := b.rival.Acquire(b.Context(), target)
	require.NoError(b, err)
	return l
}

// value is the attribute n of a row; empty where there is none.
func (b *bench) value(pk string) string {
	b.Helper()
	for item, err := range b.table.Query(b.Context(), table.Query{PK: pk, Consistent: true}) {
		require.NoError(b, err)
		return plain(item["n"])
	}
	return ""
}

// waits waits until so many stand in a lock's line, the holder included.
func (b *bench) waits(target lock.Target, n int) {
	b.Helper()
	for {
		r, err := b.rival.Inspect(b.Context(), target)
		if err == nil && len(r.Line) == n {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
