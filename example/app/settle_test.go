package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
)

// sampleFile has the orders of the sample, and where tests are small the first 100 (40 with -short).
func sampleFile(t *testing.T) string {
	t.Helper()
	orders := bytes.SplitAfter(sample, []byte("\n"))
	file := filepath.Join(t.TempDir(), "orders.jsonl")
	require.NoError(t, os.WriteFile(file, bytes.Join(orders[:testkit.IfSmall(40, len(orders))], nil), 0o600))
	return file
}

// on runs the program on an engine with the orders of a file, and checks each row.
func on(t *testing.T, e *engines.Engine, file, args string) outcome {
	t.Helper()
	in, err := openInput(file, nil)
	require.NoError(t, err)
	args += " -json -orders " + word(file) + " -table " + e.TableName(t) + " " + at(t, e)
	out := start(t.Context(), t, args, nil)
	requireSound(t, out, len(in.Orders), in.Total)
	o, err := parseOptions(words(args), nil)
	require.NoError(t, err)
	s, err := openStore(e.Client(), o.tableName, o.scheme)
	require.NoError(t, err)
	requireBooks(t, s, in)
	return out
}

// at is the flag that leads to an engine.
func at(t *testing.T, e *engines.Engine) string {
	t.Helper()
	url := e.Client().Options().BaseEndpoint
	switch {
	case e.InProcess() != nil:
		url, err := e.InProcess().Listen("127.0.0.1:0")
		require.NoError(t, err)
		return "-endpoint " + url
	case url != nil:
		return "-endpoint " + *url
	}
	return "-aws"
}

func TestRun_SettlesWithFrozenWorkers(t *testing.T) {
	t.Parallel()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		out := on(t, e, sampleFile(t), "-stall 2")
		assert.GreaterOrEqual(t, out.result.StaleWritesRefused, int64(2))
	})
}

func TestRun_SettlesUnderOtherNames(t *testing.T) {
	t.Parallel()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		out := on(t, e, sampleFile(t), "-pk PartKey -sk SortKey -prefix shop/")
		assert.Contains(t, out.stdout, "PartKey = shop/BATCH#")
	})
}

func TestProcesses_SettleOnEachEngine(t *testing.T) {
	t.Parallel()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		out := on(t, e, sampleFile(t), "-processes 4 -stall 2")
		assert.GreaterOrEqual(t, out.result.StaleWritesRefused, int64(2))
	})
}

// bench is a batch of two orders in a table.
type bench struct{ *app }

func newBench(t *testing.T, e *engines.Engine) bench {
	t.Helper()
	in, err := readInput("f", strings.NewReader(goodOrder+"\n"+with("10248", "a#ORDER#1")))
	require.NoError(t, err)
	a := newApp(options{workers: 1}, io.Discard, io.Discard)
	a.input = in
	a.store, err = openStore(e.Client(), e.TableName(t), keys.Scheme{})
	require.NoError(t, err)
	require.NoError(t, a.table.Ensure(t.Context()))
	a.locks, err = newLocks(a.store, "test", leaseTime)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.locks.Close(t.Context())) })
	require.NoError(t, a.openBatch(t.Context()))
	require.False(t, a.resumed)
	require.NoError(t, a.load(t.Context()))
	return bench{a}
}

func (b bench) order(id string) Order { return Order{Batch: b.batch.ID, Order: id} }

// staleLease is short, so that tests need not wait long for its end, but long
// enough for a busy machine to acquire it.
const staleLease = time.Second

// acquire takes an order's lock, waiting for it, and prepares its settlement.
func (b bench) acquire(t *testing.T, id string, opts ...lock.Option) *settlement {
	t.Helper()
	lease, err := b.locks.Acquire(t.Context(), lock.Beside(b.orders.Key(b.order(id))), opts...)
	require.NoError(t, err)
	x, err := b.prepare(t.Context(), lease, b.order(id), "w1")
	require.NoError(t, err)
	require.NotNil(t, x)
	return x
}

func (b bench) settled(t *testing.T, id string) {
	t.Helper()
	require.NoError(t, b.commit(t.Context(), b.acquire(t, id)))
}

func (b bench) audit(t *testing.T) *audit {
	t.Helper()
	a, err := b.app.audit(t.Context())
	require.NoError(t, err)
	return a
}

func TestCommit_RefusesAStaleWrite(t *testing.T) {
	t.Parallel()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		b := newBench(t, e)
		stale := b.acquire(t, "10248", lock.Fixed(staleLease))
		b.settled(t, "10248") // waits for the end of the lease
		b.settled(t, "a#ORDER#1")
		require.ErrorIs(t, b.commit(t.Context(), stale), lock.ErrLost)
		a := b.audit(t)
		assert.NoError(t, a.broken)
		assert.Equal(t, 2, a.settled)
	})
}

// The control: the same stale write without the lock's guard, by a program
// that reads the version right before it writes, settles the order again and
// is found by the audit. If it were not, the tests above would test nothing.
func TestCommit_WithoutTheGuardSettlesTwice(t *testing.T) {
	t.Parallel()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		b := newBench(t, e)
		stale := b.acquire(t, "10248", lock.Fixed(staleLease))
		b.settled(t, "10248")
		b.settled(t, "a#ORDER#1")

		var err error
		stale.order, err = b.orders.Get(t.Context(), stale.order, entity.Consistent())
		require.NoError(t, err)
		require.NoError(t, b.table.Write(t.Context(), b.ops(stale)...))
		a := b.audit(t)
		assert.Equal(t, 1, a.settledTwice)
		assert.ErrorContains(t, a.broken, "1 orders are settled more than once")
	})
}

// The lock's guard holds alone, without the version's help.
func TestGuard_RefusesACurrentVersionToo(t *testing.T) {
	t.Parallel()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		b := newBench(t, e)
		stale := b.acquire(t, "10248", lock.Fixed(staleLease))
		b.settled(t, "10248")
		b.settled(t, "a#ORDER#1")
		var err error
		stale.order, err = b.orders.Get(t.Context(), stale.order, entity.Consistent())
		require.NoError(t, err)
		require.ErrorIs(t, b.commit(t.Context(), stale), lock.ErrLost)
		assert.NoError(t, b.audit(t).broken)
	})
}

// Orders and their lines are written together; if lines are gone, somebody has
// meddled, and the order is not settled with less.
func TestPrepare_RefusesAnIncompleteOrder(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		b := newBench(t, e)
		require.NoError(t, b.lines.Delete(t.Context(), OrderLine{Batch: b.batch.ID, Order: "10248", No: 1}))
		o := b.order("10248")
		lease, err := b.locks.TryAcquire(t.Context(), lock.Beside(b.orders.Key(o)))
		require.NoError(t, err)
		_, err = b.prepare(t.Context(), lease, o, "w1")
		require.ErrorIs(t, err, errIncomplete)
	})
}

// Loading again changes nothing, settled orders included.
func TestLoad_IsIdempotent(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		b := newBench(t, e)
		b.settled(t, "10248")
		b.settled(t, "a#ORDER#1")
		require.NoError(t, b.load(t.Context()))
		assert.NoError(t, b.audit(t).broken)
	})
}

// The longest order that is accepted is written in one transaction.
func TestRun_SettlesTheLongestOrder(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		line := `{"product":"11","price":"14.00","quantity":12,"discount":"0"}`
		file := filepath.Join(t.TempDir(), "orders.jsonl")
		require.NoError(t, os.WriteFile(file, []byte(with(line, strings.Repeat(line+",", maxOrderLines-1)+line)), 0o600))
		in, err := openInput(file, nil)
		require.NoError(t, err)
		assert.Equal(t, "16632", in.Total.String())
		on(t, e, file, "")
	})
}

// The lines that a newcomer reads, before the summary and apart from it.
func TestFreeze_LateWriteIsExplainedInThreeLines(t *testing.T) {
	file, total := writeOrders(t, 3)
	synctest.Test(t, func(t *testing.T) {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), words("-json -orders "+word(file)), nil, &stdout, &stderr) // one worker freezes by default
		out := finished(t, code, &stdout, &stderr)
		requireSound(t, out, 3, total)
		assert.EqualValues(t, 1, out.result.StaleWritesRefused)
		assert.Regexp(t, `(?m)
^Worker frozen-1 locked order "o#\d" \(fence (\d+)\), worked out its total, and froze for longer than its lease of 2s\.
When the lease had ended, worker w\d got the lock \(fence \d+\) and settled the order: \d\.
Then frozen-1 woke up and tried to write its result\. DynamoDB refused the write, since the lock's row no longer named frozen-1\. The order was settled once\.\n$`, out.stderr)

		stderr.Reset()
		require.Zero(t, run(t.Context(), words("-stall 0 -orders "+word(file)), nil, &stdout, &stderr))
		assert.NotContains(t, stderr.String(), "frozen")
	})
}
