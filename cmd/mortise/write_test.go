package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// put is a transaction that counts up.
const put = `[{"Put": {"Item": {"pk": {"S": "a"}, "sk": {"S": "b"}, "n": {"N": "%d"}}, "ConditionExpression": "attribute_not_exists(n) OR n < :n",
	"ExpressionAttributeValues": {":n": {"N": "%d"}}}}]`

// The guard token names the table. Neither a flag nor the environment has to, and the environment cannot change it.
func TestWrite_TakesTheTableFromTheToken(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		token := b.acquire(report).GuardToken().String()
		environ := func(more ...string) []string { return append([]string{envEngine + "=" + b.endpoint}, more...) }
		n := 0
		write := func(args string, environ []string) outcome {
			n++
			return invoke(b.Context(), "write - "+args, environ, fmt.Sprintf(put, n, n))
		}
		for args, environ := range map[string][]string{
			"":                               environ(envGuard + "=" + token),
			"--guard " + token:               environ(),
			"--json":                         environ(envGuard+"="+token, envTable+"=another"),
			"--table " + b.table.Name() + "": environ(envGuard+"="+token, envTable+"=another"),
		} {
			o := write(args, environ)
			assert.Zero(b, o.code, o.stderr)
			assert.Equal(b, fmt.Sprint(n), b.value("a"), args)
		}
		o := write("--table another", environ(envGuard+"="+token))
		assert.Equal(b, exitUsage, o.code)
		assert.Contains(b, o.stderr, "the lock is in table "+b.table.Name())
		o = write("--guard nothing", environ(envGuard+"="+token))
		assert.Equal(b, exitUsage, o.code)
		assert.Contains(b, o.stderr, "mortise write: --guard or MORTISE_GUARD: ", "the variable alone is in order")
	})
}

// What cannot be sent is not, and the lock stays as it is.
func TestWrite_RefusesWhatItCannotSend(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		token := b.acquire(report).GuardToken().String()
		const action = `{"Delete": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}}}`
		for _, tt := range []struct {
			args, text, want string
			code             int
		}{
			{"", "", "want a JSON array", exitFailure},
			{"", "null", "want a JSON array", exitFailure},
			{"", "[]", "no actions", exitFailure},
			{"", "[{}]", "action 0: want one member", exitFailure},
			{"", "[" + strings.Repeat(action+",", 99) + action + "]", "100 actions, and the guard is one: at most 99", exitFailure},
			{"--engine demo", "[" + action + "]", "--engine demo: a demo is the engine of exec", exitUsage},
			{"--scheme none.json", "[" + action + "]", "none.json", exitUsage},
		} {
			o := invoke(b.Context(), "write - --json "+tt.args, b.environ(envGuard+"="+token), tt.text)
			assert.Equal(b, tt.code, o.code, tt.text)
			assert.Contains(b, o.stderr, tt.want)
			assert.Empty(b, o.stdout)
		}
	})
}

// The settings of locks can name an index, which write does not need.
func TestWrite_WhereLocksHaveAnIndex(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		file := filepath.Join(t.TempDir(), "scheme.json")
		require.NoError(b, os.WriteFile(file, []byte(`{"lock": {"index": "locks"}, "indexes": [{"name": "locks", "pk": "GPK", "sk": "GSK"}]}`), 0o600))
		token := b.acquire(report).GuardToken().String()
		o := invoke(b.Context(), "write -", b.environ(envGuard+"="+token, envScheme+"="+file), fmt.Sprintf(put, 1, 1))
		assert.Equal(b, outcome{}, o)
		assert.Equal(b, "1", b.value("a"))
	})
}

// Whatever comes after an attempt that got no clear answer, the transaction may have been applied.
func TestWrite_DoesNotTakeAnUnclearAnswerForARefusal(t *testing.T) {
	for name, c := range map[string]struct {
		first, others tabletest.FaultKind // of the first attempt, and of all others
		applied       bool
	}{
		"500, applied":              {tabletest.InternalErrorAfter, tabletest.InternalErrorAfter, true},
		"500, not applied":          {tabletest.InternalError, tabletest.InternalError, false},
		"no answer":                 {tabletest.DropReply, tabletest.DropReply, true},
		"500, then throttled":       {tabletest.InternalErrorAfter, tabletest.Throttle, true},
		"no answer, then throttled": {tabletest.DropReply, tabletest.Throttle, true},
		"no answer, then denied":    {tabletest.DropReply, tabletest.ExpiredCredentials, true},
	} {
		t.Run(name, func(t *testing.T) {
			d, code, applied := judged(t, c.first, c.others)
			assert.Equal(t, c.applied, applied)
			assert.Equal(t, exitUnknown, code)
			assert.True(t, d.Unknown)
			assert.Contains(t, d.Error, "the transaction may have been applied")
		})
	}
}

// judged sends a transaction of one action and a guard, whose attempts fail. It returns what write makes of that, and whether the
// transaction was applied.
func judged(t *testing.T, first, others tabletest.FaultKind) (d writeDocument, code int, applied bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { // in virtual time: the table tries for 10 s
		engine := tabletest.New(t)
		tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		attempt := 0
		engine.Inject(
			tabletest.Fault{Kind: others, Operation: "TransactWriteItems", When: func(tabletest.Request) bool { attempt++; return attempt > 1 }},
			tabletest.Fault{Kind: first, Operation: "TransactWriteItems", Times: 1},
		)
		key := keys.NewKey("a", "b")
		err = tbl.Write(t.Context(), table.Put(tbl.KeyItem(key)), table.Check(keys.NewKey("no", "lock"), table.Attr("pk").NotExists()))
		d, err = judge(t.Context(), err, 1)
		var result *exit
		require.ErrorAs(t, err, &result)
		code = result.code
		engine.ClearFaults()
		_, err = tbl.Get(t.Context(), key, true)
		applied = err == nil
	})
	return d, code, applied
}

// A transaction of which every attempt was refused was not applied.
func TestWrite_TakesARefusalOfEachAttemptForWhatItIs(t *testing.T) {
	for name, kind := range map[string]tabletest.FaultKind{"throttled": tabletest.Throttle, "denied": tabletest.ExpiredCredentials} {
		t.Run(name, func(t *testing.T) {
			d, code, applied := judged(t, kind, kind)
			assert.False(t, applied)
			assert.Equal(t, exitFailure, code)
			assert.False(t, d.Unknown)
			assert.NotContains(t, d.Error, "may have been applied")
		})
	}
}

// A result that cannot be shown is still the result.
func TestWrite_TellsWhatHappenedIfItsOutputFails(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		lease := b.acquire(report)
		write := func() (code int, stderr string) {
			var out bytes.Buffer
			environ := b.environ(envGuard + "=" + lease.GuardToken().String())
			code = run(b.Context(), []string{"write", "-", "--json"}, environ, strings.NewReader(fmt.Sprintf(put, 1, 1)), full{}, &out)
			return code, out.String()
		}
		code, text := write()
		assert.Equal(b, exitFailure, code)
		assert.Contains(b, text, "it was written, but no space left")
		require.NoError(b, lease.Release(b.Context()))
		code, text = write()
		assert.Equal(b, exitLost, code)
		assert.Contains(b, text, "nothing was written")
	})
}

// full is an output that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// A write that is ended while it waits for its input has written nothing, and ends at once.
func TestWrite_EndsWhileItReadsItsInput(t *testing.T) {
	onEngines(t, keys.Scheme{}, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		var stderr bytes.Buffer
		environ := b.environ(envGuard + "=" + b.acquire(report).GuardToken().String())
		code := run(ctx, []string{"write", "-"}, environ, endless{begun: cancel, end: b.Context().Done()}, io.Discard, &stderr)
		assert.Equal(b, exitSignal+int(syscall.SIGINT), code)
		assert.Contains(b, stderr.String(), "interrupted")
	})
}

// endless is an input that does not end before end is closed. begun is called when it is read.
type endless struct {
	begun func()
	end   <-chan struct{}
}

func (e endless) Read([]byte) (int, error) {
	e.begun()
	<-e.end
	return 0, io.EOF
}
