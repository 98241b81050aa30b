package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// The test binary is the worker process of the tests that need one.
func TestMain(m *testing.M) {
	if config := os.Getenv(workerEnv); config != "" {
		os.Exit(runWorker(config, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(engines.Main(m))
}

// outcome is what a run left behind.
type outcome struct {
	code           int
	stdout, stderr string
	result         result
}

// start runs the program in this process, without frozen workers unless args ask for them. watch may be nil.
func start(ctx context.Context, t *testing.T, args string, watch func(tally)) outcome {
	t.Helper()
	o, err := parseOptions(words("-stall 0 "+args), nil)
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	a := newApp(o, &stdout, &stderr)
	a.input, err = openInput(o.file, nil)
	require.NoError(t, err)
	a.watch = watch
	return finished(t, exitCode(ctx, a.run(ctx, a.job), &stderr), &stdout, &stderr)
}

// words splits arguments at spaces, except for those within a word.
func words(args string) []string {
	list := strings.Fields(args)
	for i, w := range list {
		list[i] = strings.ReplaceAll(w, "\x00", " ")
	}
	return list
}

// word makes one word of a name, which may have spaces: the directory for temporary files can.
func word(name string) string { return strings.ReplaceAll(name, " ", "\x00") }

func finished(t *testing.T, code int, stdout, stderr *bytes.Buffer) outcome {
	t.Helper()
	out := outcome{code: code, stdout: stdout.String(), stderr: stderr.String()}
	lines := strings.Split(strings.TrimSpace(out.stdout), "\n")
	if last := lines[len(lines)-1]; strings.HasPrefix(last, "{") {
		require.NoError(t, json.Unmarshal([]byte(last), &out.result))
	}
	return out
}

// requireSound checks that a run settled every order of its input once.
func requireSound(t *testing.T, out outcome, orders int, total Money) {
	t.Helper()
	require.Zero(t, out.code, out.stderr)
	r := out.result
	assert.Equal(t, []int{orders, orders, 0}, []int{r.Orders, r.Settled, r.SettledTwice})
	for _, sum := range []Money{r.Total, r.LedgerTotal, r.BalanceTotal} {
		assert.Equal(t, total.String(), sum.String())
	}
	assert.Positive(t, r.Requests)
	assert.Positive(t, r.Seconds)
}

func sampleInput(t *testing.T) *Input {
	t.Helper()
	in, err := openInput("", nil)
	require.NoError(t, err)
	return in
}

// writeOrders writes a file of n small orders of three customers and returns
// its name and their total.
func writeOrders(t *testing.T, n int) (string, Money) {
	t.Helper()
	var b strings.Builder
	total := 0
	for i := range n {
		fmt.Fprintf(&b, `{"id":"o#%d","customer":"c%d","placed":"2024-01-%02d","lines":[{"product":"p","price":"%d","quantity":2,"discount":"0"}]}`+"\n",
			i, i%3, 1+i%28, i+1)
		total += 2 * (i + 1)
	}
	name := filepath.Join(t.TempDir(), "orders.jsonl")
	require.NoError(t, os.WriteFile(name, []byte(b.String()), 0o600))
	return name, money(t, strconv.Itoa(total))
}

// listen starts an engine that other processes can reach.
func listen(t *testing.T) (*tabletest.Engine, string) {
	t.Helper()
	e := tabletest.New(t)
	url, err := e.Listen("127.0.0.1:0")
	require.NoError(t, err)
	return e, url
}

func TestRun_SettlesTheSample(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	in := sampleInput(t)
	out := start(t.Context(), t, "-json", nil)
	requireSound(t, out, len(in.Orders), in.Total)
	assert.Equal(t, "inprocess", out.result.Engine)
	assert.Zero(t, out.result.StaleWritesRefused)

	// The last line has exactly these members, in this order.
	lines := strings.Split(strings.TrimSpace(out.stdout), "\n")
	d := json.NewDecoder(strings.NewReader(lines[len(lines)-1]))
	var names []string
	for i := 0; ; i++ {
		token, err := d.Token()
		if err != nil {
			break
		}
		if name, ok := token.(string); ok && i%2 == 1 {
			names = append(names, name)
		}
	}
	assert.Equal(t, strings.Fields("engine orders settled settled_twice total ledger_total balance_total stale_writes_refused requests seconds"), names)

	// An order's rows, its lock among them.
	for _, text := range []string{"LINE#0001", "LOCK#ORDER", "settled by", "requests", "from index gsi2: "} {
		assert.Contains(t, out.stdout, text)
	}
}

// In virtual time: the leases of the frozen workers end at once.
func TestFreeze_LateWritesAreRefused(t *testing.T) {
	for _, args := range []string{"-workers 4 -stall 4", "-workers 1 -stall 1", "-workers 16 -stall 3"} {
		t.Run(args, func(t *testing.T) {
			in := sampleInput(t)
			synctest.Test(t, func(t *testing.T) {
				out := start(t.Context(), t, "-json "+args, nil)
				requireSound(t, out, len(in.Orders), in.Total)
				var stalls int64
				_, err := fmt.Sscan(args[strings.LastIndex(args, " "):], &stalls)
				require.NoError(t, err)
				assert.Equal(t, stalls, out.result.StaleWritesRefused)
			})
		})
	}
}

// There may be fewer orders than workers that are to freeze.
func TestFreeze_MayHaveMoreWorkersThanOrders(t *testing.T) {
	file, total := writeOrders(t, 2)
	synctest.Test(t, func(t *testing.T) {
		out := start(t.Context(), t, "-json -workers 5 -stall 5 -orders "+word(file), nil)
		requireSound(t, out, 2, total)
		assert.EqualValues(t, 2, out.result.StaleWritesRefused)
	})
}

func TestProcesses_SettleWithFrozenWorkers(t *testing.T) {
	t.Parallel()
	in := sampleInput(t)
	out := start(t.Context(), t, "-json -processes 4 -stall 2", nil)
	requireSound(t, out, len(in.Orders), in.Total)
	assert.Equal(t, "inprocess", out.result.Engine)
	assert.GreaterOrEqual(t, out.result.StaleWritesRefused, int64(2))
	for p := 1; p <= 4; p++ {
		assert.Contains(t, out.stdout, fmt.Sprintf("p%d:", p))
	}
}

func TestNaming_IsThatOfAnExistingTable(t *testing.T) {
	t.Parallel()
	e, url := listen(t)
	in := sampleInput(t)
	out := start(t.Context(), t, "-json -processes 2 -stall 1 -table shop -pk PartKey -sk SortKey -prefix shop/ -endpoint "+url, nil)
	requireSound(t, out, len(in.Orders), in.Total)
	assert.Equal(t, url, out.result.Engine)
	assert.Contains(t, out.stdout, "PartKey = shop/BATCH#")
	assert.Contains(t, out.stdout, "SortKey = LOCK#ORDER")
	pages := dynamodb.NewScanPaginator(e.Client(), &dynamodb.ScanInput{TableName: aws.String("shop")})
	rows := 0
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		for _, item := range page.Items {
			pk, ok := item["PartKey"].(*types.AttributeValueMemberS)
			require.True(t, ok)
			assert.True(t, strings.HasPrefix(pk.Value, "shop/"))
			rows++
		}
	}
	assert.Greater(t, rows, 3*len(in.Orders))
}

func TestInput_ThatIsRefusedWritesNothing(t *testing.T) {
	e, url := listen(t)
	file := filepath.Join(t.TempDir(), "orders.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(goodOrder+"\n\n"+with("10248", "1")+"\n"+with("14.00", "-1")+"\n"), 0o600))
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitFailure, run(t.Context(), []string{"-json", "-orders", file, "-endpoint", url}, nil, &stdout, &stderr))
	assert.Equal(t, file+":4: lines[0]: price: negative; id: the same as on line 1\n", stderr.String())
	assert.Empty(t, stdout.String())
	assert.Empty(t, e.Requests())
}

func TestRun_SettlesOrdersFromStandardInput(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-json", "-stall", "0", "-orders", "-"}, strings.NewReader(goodOrder), &stdout, &stderr)
	requireSound(t, finished(t, code, &stdout, &stderr), 1, money(t, "168"))
}

func TestRun_NamesAMissingFile(t *testing.T) {
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitFailure, run(t.Context(), []string{"-orders", "/no/such/file"}, nil, &stdout, &stderr))
	assert.Equal(t, "open /no/such/file: no such file or directory\n", stderr.String())
}

func TestTable_WithOtherKeysIsRefused(t *testing.T) {
	e, url := listen(t)
	file, total := writeOrders(t, 3)
	requireSound(t, start(t.Context(), t, "-json -orders "+word(file)+" -endpoint "+url, nil), 3, total)
	// A door of its own, since requests that the first run gave up may still arrive.
	var mu sync.Mutex
	var operations []string
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		mu.Lock()
		operations = append(operations, operation)
		mu.Unlock()
		e.ServeHTTP(w, r)
	}))
	defer door.Close()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), words("-pk PartKey -sk SortKey -orders "+word(file)+" -endpoint "+door.URL), nil, &stdout, &stderr)
	assert.Equal(t, exitFailure, code)
	assert.Contains(t, stderr.String(), "the schema wants PartKey:S, SortKey:S")
	assert.Equal(t, 1, strings.Count(stderr.String(), "\n"))
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, operations)
	for _, operation := range operations {
		assert.True(t, strings.HasPrefix(operation, "Describe"), operation)
	}
}

// A key attribute that is an attribute of the application too.
func TestNaming_RefusesANameThatIsTaken(t *testing.T) {
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitFailure, run(t.Context(), []string{"-pk", "order"}, nil, &stdout, &stderr))
	assert.Contains(t, stderr.String(), `attribute "order" is the table's partition key`)
	assert.Equal(t, 1, strings.Count(stderr.String(), "\n"))
}

func TestRun_TellsThatAnEndpointIsUnreachable(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-endpoint", "http://127.0.0.1:1"}, nil, &stdout, &stderr) // no other test gets this port
	assert.Equal(t, exitFailure, code)
	assert.Contains(t, stderr.String(), table.ErrUnreachable.Error())
	assert.Equal(t, 1, strings.Count(stderr.String(), "\n"))
	assert.Empty(t, stdout.String())
}

func TestRun_TellsThatCredentialsAreMissing(t *testing.T) {
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
	} {
		t.Setenv(name, "")
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")

	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitFailure, run(t.Context(), []string{"-aws"}, nil, &stdout, &stderr))
	assert.Equal(t, "app: no AWS region is configured: set AWS_REGION\n", stderr.String())

	stderr.Reset()
	t.Setenv("AWS_REGION", "eu-central-1")
	assert.Equal(t, exitFailure, run(t.Context(), []string{"-aws"}, nil, &stdout, &stderr))
	assert.Contains(t, stderr.String(), table.ErrCredentials.Error())
	assert.Equal(t, 1, strings.Count(stderr.String(), "\n"))

	// An endpoint on this machine needs none.
	file, total := writeOrders(t, 3)
	_, url := listen(t)
	requireSound(t, start(t.Context(), t, "-json -orders "+word(file)+" -endpoint "+url, nil), 3, total)
}

// kill kills the process that a tally came from, without any warning.
func kill(t *testing.T, from tally) {
	p, err := os.FindProcess(from.PID)
	require.NoError(t, err)
	require.NoError(t, p.Kill())
}

// A process is killed at work: it may hold locks, and its last commits go unreported.
func TestWorker_ThatIsKilledLosesNothing(t *testing.T) {
	for _, args := range []string{"-processes 2", "-processes 3 -stall 1"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			e, url := listen(t)
			in := sampleInput(t)
			var once sync.Once
			out := start(t.Context(), t, "-json "+args+" -endpoint "+url, func(from tally) {
				once.Do(func() { kill(t, from) })
			})
			requireSound(t, out, len(in.Orders), in.Total)
			assert.Contains(t, out.stderr, "has ended early: signal: killed")
			s, err := openStore(e.Client(), "mortise-example", keys.Scheme{})
			require.NoError(t, err)
			requireBooks(t, s, in)
		})
	}
}

func TestRun_FailsWhenAllWorkersAreKilled(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	killed := map[int]bool{}
	out := start(t.Context(), t, "-json -processes 2 -stall 2", func(from tally) {
		mu.Lock()
		defer mu.Unlock()
		if !killed[from.PID] {
			killed[from.PID] = true
			kill(t, from)
		}
	})
	assert.Equal(t, exitFailure, out.code)
	assert.Contains(t, out.stderr, " of 360 orders are not settled")
	assert.Empty(t, out.stdout)
}

// A worker process whose parent is gone reads the end of its input.
func TestWorker_EndsWithItsParent(t *testing.T) {
	_, url := listen(t)
	target := engines.Target{Endpoint: url, Own: true}
	client, err := target.Client(t.Context())
	require.NoError(t, err)
	s, err := openStore(client, "orphan", keys.Scheme{})
	require.NoError(t, err)
	require.NoError(t, s.table.Ensure(t.Context()))
	config, err := json.Marshal(assignment{Target: target, Table: "orphan", Batch: Batch{ID: "b", Orders: 1}, Name: "p1", Workers: 2})
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitFailure, runWorker(string(config), strings.NewReader(""), &stdout, &stderr))
	assert.Contains(t, stderr.String(), "the parent process has stopped this one, or is gone")

	stderr.Reset()
	assert.Equal(t, exitFailure, runWorker("garbage", strings.NewReader(""), &stdout, &stderr))
	assert.Contains(t, stderr.String(), "invalid character")
}

func TestRun_IsResumedAfterAnInterrupt(t *testing.T) {
	for _, args := range []string{"", "-processes 2 "} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			_, url := listen(t)
			file, total := writeOrders(t, 20)
			args := "-json -workers 2 " + args + "-orders " + word(file) + " -endpoint " + url
			ctx, cancel := context.WithCancel(t.Context())
			out := start(ctx, t, args+" -stall 2", func(tally) { cancel() })
			assert.Equal(t, exitInterrupted, out.code)
			assert.True(t, strings.HasSuffix(out.stderr, "app: interrupted\n"), out.stderr)
			assert.NotContains(t, out.stderr, "has ended early")
			assert.Empty(t, out.stdout)

			out = start(t.Context(), t, args, nil)
			requireSound(t, out, 20, total)
			assert.Contains(t, out.stdout, "-1 (resumed")

			// What is finished is not resumed.
			out = start(t.Context(), t, args, nil)
			requireSound(t, out, 20, total)
			assert.Contains(t, out.stdout, "-2 (new)")
		})
	}
}

// Two programs that start at once with the same input share one batch.
func TestBatch_IsSharedByTwoPrograms(t *testing.T) {
	t.Parallel()
	_, url := listen(t)
	file, total := writeOrders(t, 40)
	args := "-json -workers 2 -orders " + word(file) + " -endpoint " + url
	var outs [2]outcome
	var both sync.WaitGroup
	begun, joined := make(chan struct{}), make(chan struct{})
	var begin, join sync.Once
	both.Go(func() {
		defer begin.Do(func() { close(begun) }) // if it has failed
		outs[0] = start(t.Context(), t, args, func(tally) {
			begin.Do(func() {
				close(begun)
				<-joined // its workers wait: one reports at a time
			})
		})
	})
	<-begun
	both.Go(func() {
		defer join.Do(func() { close(joined) }) // if it has failed
		outs[1] = start(t.Context(), t, args, func(tally) { join.Do(func() { close(joined) }) })
	})
	both.Wait()
	for i, kind := range []string{"-1 (new)", "-1 (resumed"} {
		requireSound(t, outs[i], 40, total)
		assert.Contains(t, outs[i].stdout, kind)
	}
}

// A write past the locks is found out.
func TestAudit_ReportsABrokenInvariant(t *testing.T) {
	e, url := listen(t)
	in := sampleInput(t)
	var once sync.Once
	out := start(t.Context(), t, "-json -endpoint "+url, func(tally) {
		once.Do(func() {
			s, err := openStore(e.Client(), "mortise-example", keys.Scheme{})
			require.NoError(t, err)
			again := LedgerEntry{
				Batch: in.Digest[:12] + "-1", Order: in.Orders[0].order.Order, Fence: 1, Customer: "nobody", Amount: money(t, "0.01"),
			}
			_, err = s.ledger.Create(t.Context(), again)
			require.NoError(t, err)
		})
	})
	assert.Equal(t, exitFailure, out.code)
	assert.Equal(t, 1, out.result.SettledTwice)
	assert.Contains(t, out.stderr, "an invariant is broken: 1 orders are settled more than once; ")
	assert.Contains(t, out.stderr, "the balances' total is")
}
