package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
)

// on runs the program on an engine.
func on(t *testing.T, e *engines.Engine, in *Input, args string) outcome {
	t.Helper()
	o, err := parseOptions(strings.Fields(args+" -json -table "+e.TableName(t)), nil)
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	a := newApp(o, in, &stdout, &stderr)
	return finished(t, exitCode(t.Context(), a.on(t.Context(), e.Client()), &stderr), &stdout, &stderr)
}

func TestContractSettlesWithFrozenWorkers(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		in := sampleInput(t)
		out := on(t, e, in, "-stall 2")
		requireSound(t, out, len(in.Orders), in.Total)
		assert.GreaterOrEqual(t, out.result.StaleWritesRefused, int64(2))
	})
}

func TestContractSettlesUnderOtherNames(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		in := sampleInput(t)
		out := on(t, e, in, "-pk PartKey -sk SortKey -prefix shop/")
		requireSound(t, out, len(in.Orders), in.Total)
		assert.Contains(t, out.stdout, "PartKey = shop/BATCH#")
	})
}

func TestContractProcessesSettle(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		engines.Only(t, engines.DynamoDBLocal, "worker processes reach the in-process engine through the program's own listener, which other tests cover")
		in := sampleInput(t)
		out := start(t.Context(), t, "-json -processes 4 -stall 2 -table "+e.TableName(t)+" -endpoint "+*e.Client().Options().BaseEndpoint, nil)
		requireSound(t, out, len(in.Orders), in.Total)
		assert.GreaterOrEqual(t, out.result.StaleWritesRefused, int64(2))
	})
}

// bench is a batch of two orders in a table, with the crew to settle it.
type bench struct {
	*crew
	store *store
	batch Batch
	in    *Input
}

func newBench(t *testing.T, e *engines.Engine) bench {
	t.Helper()
	in, err := readInput("f", strings.NewReader(goodOrder+"\n"+with("10248", "a#ORDER#1")))
	require.NoError(t, err)
	s, err := openStore(e.Client(), e.TableName(t), keys.Scheme{})
	require.NoError(t, err)
	require.NoError(t, s.table.Ensure(t.Context()))
	locks, err := newLocks(s, "test")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, locks.Close(t.Context())) })
	b, resumed, err := openBatch(t.Context(), s, locks, in)
	require.NoError(t, err)
	require.False(t, resumed)
	require.NoError(t, b.load(t.Context(), s, in, func(int) {}))
	c := &crew{store: s, locks: locks, batch: b.ID, workers: 1, report: func(event) {}}
	return bench{crew: c, store: s, batch: b, in: in}
}

// staleLease is short, so that tests need not wait long for its end, but long
// enough for a busy machine to acquire it.
const staleLease = time.Second

// acquire takes an order's lock, waiting for it, and prepares its settlement.
func (b bench) acquire(t *testing.T, id string, opts ...lock.Option) *settlement {
	t.Helper()
	o := b.store.order(b.batch.ID, id)
	lease, err := b.locks.Acquire(t.Context(), lock.Beside(b.store.orders.Key(o)), opts...)
	require.NoError(t, err)
	s, err := b.prepare(t.Context(), lease, o, "w1")
	require.NoError(t, err)
	require.NotNil(t, s)
	return s
}

func (b bench) audit(t *testing.T) *audit {
	t.Helper()
	a, err := newAudit(t.Context(), b.store, b.batch, b.in)
	require.NoError(t, err)
	return a
}

func TestContractStaleWriteIsRefused(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		b := newBench(t, e)
		stale := b.acquire(t, "10248", lock.Fixed(staleLease))
		require.NoError(t, b.acquire(t, "10248").commit(t.Context())) // waits for the end of the lease
		require.NoError(t, b.acquire(t, "a#ORDER#1").commit(t.Context()))
		require.ErrorIs(t, stale.commit(t.Context()), lock.ErrLost)
		a := b.audit(t)
		assert.Empty(t, a.broken)
		assert.Equal(t, 2, a.settled)
	})
}

// The control: the same stale write without the lock's guard, by a program
// that reads the version right before it writes, settles the order again and
// is found by the audit. If it were not, the tests above would test nothing.
func TestContractUnguardedStaleWriteSettlesTwice(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		b := newBench(t, e)
		stale := b.acquire(t, "10248", lock.Fixed(staleLease))
		require.NoError(t, b.acquire(t, "10248").commit(t.Context()))
		require.NoError(t, b.acquire(t, "a#ORDER#1").commit(t.Context()))

		var err error
		stale.order, err = b.store.orders.Get(t.Context(), stale.order, entity.Consistent())
		require.NoError(t, err)
		require.NoError(t, b.store.table.Write(t.Context(), stale.ops()...))
		a := b.audit(t)
		assert.Equal(t, 1, a.settledTwice)
		assert.Contains(t, a.broken, "1 orders are settled more than once")
	})
}

// The lock's guard holds alone, without the version's help.
func TestContractGuardRefusesACurrentVersionToo(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		b := newBench(t, e)
		stale := b.acquire(t, "10248", lock.Fixed(staleLease))
		require.NoError(t, b.acquire(t, "10248").commit(t.Context()))
		require.NoError(t, b.acquire(t, "a#ORDER#1").commit(t.Context()))
		var err error
		stale.order, err = b.store.orders.Get(t.Context(), stale.order, entity.Consistent())
		require.NoError(t, err)
		require.ErrorIs(t, stale.commit(t.Context()), lock.ErrLost)
		assert.Empty(t, b.audit(t).broken)
	})
}

// Orders and their lines are written together; if lines are gone, somebody has
// meddled, and the order is not settled with less.
func TestContractIncompleteOrderIsNotSettled(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		b := newBench(t, e)
		require.NoError(t, b.store.lines.Delete(t.Context(), OrderLine{Batch: b.batch.ID, Order: "10248", No: 1}))
		o := b.store.order(b.batch.ID, "10248")
		lease, err := b.locks.TryAcquire(t.Context(), lock.Beside(b.store.orders.Key(o)))
		require.NoError(t, err)
		_, err = b.prepare(t.Context(), lease, o, "w1")
		require.ErrorIs(t, err, errIncomplete)
	})
}

// Loading again changes nothing, settled orders included.
func TestContractLoadIsIdempotent(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		b := newBench(t, e)
		require.NoError(t, b.acquire(t, "10248").commit(t.Context()))
		require.NoError(t, b.acquire(t, "a#ORDER#1").commit(t.Context()))
		counted := 0
		require.NoError(t, b.batch.load(t.Context(), b.store, b.in, func(n int) { counted = n }))
		assert.Equal(t, 2, counted)
		assert.Empty(t, b.audit(t).broken)
	})
}

// The longest order that is accepted is written in one transaction.
func TestContractLongestOrderIsSettled(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		line := `{"product":"11","price":"14.00","quantity":12,"discount":"0"}`
		in, err := readInput("f", strings.NewReader(with(line, strings.Repeat(line+",", maxOrderLines-1)+line)))
		require.NoError(t, err)
		requireSound(t, on(t, e, in, ""), 1, dec(t, "16632"))
	})
}
