package lock_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/proof/sim"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// world is an engine in virtual time, with what tests need around it.
type world struct {
	*testing.T
	engine   *tabletest.Engine
	table    *table.Table // the test's own hand
	guardian *guardian    // of what all others send; nil where a test has had the same checked before
}

// virtual runs f in virtual time: hours of it take milliseconds.
func virtual(t *testing.T, f func(ctx context.Context, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		require.NoError(t, w.table.Ensure(t.Context()))
		w.guardian = newGuardian(t, "app", w.table.Scheme())
		f(t.Context(), w)
	})
}

// newWorld has an engine without tables, and the test's hand. Nobody checks what is sent.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, engine: tabletest.New(t)}
	var err error
	w.table, err = table.Open(w.engine.Client(), table.Schema{Name: "app"})
	require.NoError(t, err)
	return w
}

// indexed gives the table an index, by the test's own hand, and opens it anew.
func (w *world) indexed(x table.Index) *table.Table {
	w.Helper()
	tbl, err := table.Open(w.engine.Client(), table.Schema{Name: "app", Indexes: []table.Index{x}})
	require.NoError(w, err)
	require.NoError(w, tbl.Ensure(w.Context()))
	return tbl
}

// open opens the table as another process would.
func (w *world) open(opts ...table.Option) *table.Table {
	w.Helper()
	return w.openOver(w.engine.HTTPClient(), table.Schema{Name: "app"}, opts...)
}

// openOver opens a table whose requests the policy has to cover.
func (w *world) openOver(to aws.HTTPClient, schema table.Schema, opts ...table.Option) *table.Table {
	w.Helper()
	tbl, err := table.Open(w.sdk(to), schema, opts...)
	require.NoError(w, err)
	return tbl
}

// sdk is an SDK client whose requests the policy has to cover.
func (w *world) sdk(to aws.HTTPClient) *dynamodb.Client {
	if w.guardian != nil {
		to = w.guardian.over(to)
	}
	return w.engine.Client(sim.Frugal, func(o *dynamodb.Options) { o.HTTPClient = to })
}

// client is a client of a process of its own, which has held a lock before.
func (w *world) client(config lock.Config, opts ...table.Option) *lock.Client {
	w.Helper()
	return w.clientOver(&line{to: w.engine.HTTPClient()}, config, opts...)
}

// coldClient is a client of a process of its own, which has done no more than talk to DynamoDB.
func (w *world) coldClient(config lock.Config, opts ...table.Option) *lock.Client {
	w.Helper()
	return w.coldClientOver(&line{to: w.engine.HTTPClient()}, config, opts...)
}

func (w *world) requests(f func()) []string {
	w.engine.ResetRequests()
	f()
	var ops []string
	for _, r := range w.engine.Requests() {
		ops = append(ops, r.Operation)
	}
	return ops
}

// times is how often an operation is among those that were requested.
func times(operation string, ops []string) (n int) {
	for _, op := range ops {
		if op == operation {
			n++
		}
	}
	return n
}

// row is the key of a row that is no lock.
func (*world) row(name string) keys.Key { return keys.NewKey("ROW#"+name, "ROW") }

func number(t *testing.T, av types.AttributeValue) int64 {
	t.Helper()
	n, ok := av.(*types.AttributeValueMemberN)
	require.True(t, ok, "%T is no number", av)
	i, err := strconv.ParseInt(n.Value, 10, 64)
	require.NoError(t, err)
	return i
}

type order struct {
	Tenant  string `dynamo:"tenant"`
	ID      string `dynamo:"id"`
	Status  string `dynamo:"status"`
	Version int64  `dynamo:"version"`
}

func (w *world) orders() *entity.Entity[order] {
	return defineOrders(w.T, w.table)
}

func defineOrders(t *testing.T, tbl *table.Table) *entity.Entity[order] {
	t.Helper()
	e, err := entity.Define(tbl, entity.Spec[order]{Type: "Order", PK: "TENANT#{tenant}", SK: "ORDER#{id}", Version: "version"})
	require.NoError(t, err)
	return e
}

func TestUncontendedCost(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		ops := w.requests(func() {
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.NoError(t, l.Release(ctx))
		})
		assert.Equal(t, []string{"UpdateItem", "UpdateItem"}, ops)
	})
}

func TestHeldByAnother(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b := w.client(lock.Config{Owner: "a"}), w.client(lock.Config{Owner: "b"})
		l, err := a.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		ops := w.requests(func() {
			_, err = b.TryAcquire(ctx, lock.Name("report"))
		})
		var held *lock.HeldError
		require.ErrorAs(t, err, &held)
		require.ErrorIs(t, err, lock.ErrHeld)
		assert.Equal(t, "a", held.Owner)
		assert.Equal(t, l.Fence(), held.Fence)
		assert.Equal(t, time.Now().UTC(), held.Since)
		assert.Zero(t, held.Until, "it renews")
		assert.Equal(t, lock.Name("report"), held.Target)
		assert.Len(t, ops, 1)
		assert.NotContains(t, err.Error(), "report")

		_, err = a.Acquire(ctx, lock.Name("other"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		_, err = b.TryAcquire(ctx, lock.Name("other"))
		require.ErrorAs(t, err, &held)
		assert.Equal(t, time.Now().UTC().Add(20*time.Second), held.Until)
	})
}

func TestRenewalKeepsTheLock(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := a.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(10 * time.Hour)
		require.NoError(t, context.Cause(l.Context()))
		_, err = b.TryAcquire(ctx, lock.Name("report"))
		require.ErrorIs(t, err, lock.ErrHeld)
		require.NoError(t, l.Release(ctx))
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrReleased)
		require.NotErrorIs(t, context.Cause(l.Context()), lock.ErrLost)
		next, err := b.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Equal(t, l.Fence()+1, next.Fence())
	})
}

func TestWaiterGetsReleasedLock(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := a.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.AfterFunc(time.Minute, func() { _ = l.Release(ctx) })
		start := time.Now()
		next, err := b.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Greater(t, next.Fence(), l.Fence())
		assert.InDelta(t, time.Minute.Seconds(), time.Since(start).Seconds(), 2)
	})
}

// leases are the two kinds of them, as tests call them and as Acquire is told.
func leases() map[string][]lock.Option {
	return map[string][]lock.Option{"session": nil, "Fixed": {lock.Fixed(20 * time.Second)}}
}

// P5: nobody has watched since the holder died.
func TestTakeoverLongDead(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				_, err := w.clientOver(wire, lock.Config{}).Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				wire.cut(refused)
				time.Sleep(time.Hour)
				for how, acquire := range map[string]func(*lock.Client, context.Context, lock.Target, ...lock.Option) (*lock.Lease, error){
					"Acquire": (*lock.Client).Acquire, "TryAcquire": (*lock.Client).TryAcquire,
				} {
					c, again := w.client(lock.Config{}), w.engine.Snapshot()
					start := time.Now()
					ops := w.requests(func() { _, err = acquire(c, ctx, lock.Name("report")) })
					require.NoError(t, err)
					testkit.Check(t, "P5, "+kind+", "+how, testkit.AtMost(len(ops), "requests", 3), testkit.Exactly(time.Since(start), " waited", 0))
					w.engine.Restore(again)
				}
			})
		})
	}
}

// P6: a waiter is there when the holder dies, right after a renewal.
func TestTakeoverFreshCrash(t *testing.T) {
	const lease, skew, poll = 20 * time.Second, 2 * time.Second, 1125 * time.Millisecond // the longest poll, jitter included
	for kind, opts := range leases() {
		for how, expiry := range map[string]lock.Expiry{"recorded or observed": lock.RecordedOrObserved, "observed": lock.ObservedOnly} {
			t.Run(kind+"/"+how, func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					wire := &line{to: w.engine.HTTPClient()}
					c := w.client(lock.Config{Expiry: expiry})
					dead := w.clientOver(wire, lock.Config{})
					l, err := dead.Acquire(ctx, lock.Name("report"), opts...)
					require.NoError(t, err)
					if opts == nil { // until a renewal has just gone through
						before := l.Remaining()
						for l.Remaining() <= before {
							before = l.Remaining()
							time.Sleep(10 * time.Millisecond)
						}
					}
					wire.cut(refused)
					start := time.Now()
					next, err := c.Acquire(ctx, lock.Name("report"))
					require.NoError(t, err)
					took := time.Since(start)
					testkit.Check(t, "P6, "+kind+", "+how, testkit.AtMost(took, "", lease+skew+poll), testkit.AtLeast(took, "", lease-10*time.Millisecond))
					require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
					wire.cut(open)
					require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
					require.NoError(t, next.Write(ctx, w.put("x")))
				})
			})
		}
	}
}

func TestGuardRefusesStaleHolder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		orders := w.orders()
		o, err := orders.Create(ctx, order{Tenant: "acme", ID: "42", Status: "open"})
		require.NoError(t, err)
		a, b := w.client(lock.Config{}), w.client(lock.Config{})
		target := lock.Beside(orders.Key(o))
		stale, err := a.Acquire(ctx, target, lock.Fixed(time.Second))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.ErrorIs(t, context.Cause(stale.Context()), lock.ErrExpired)
		// Expired, but nobody took it: still exclusive.
		require.NoError(t, stale.Write(ctx, orders.UpdateOp(o, entity.Set("status", "checked"))))
		fresh, err := b.Acquire(ctx, target)
		require.NoError(t, err)
		err = stale.Write(ctx, orders.AnyVersion().UpdateOp(order{Tenant: "acme", ID: "42"}, entity.Set("status", "stale")))
		require.ErrorIs(t, err, lock.ErrLost)
		err = stale.Commit(ctx, orders.AnyVersion().UpdateOp(order{Tenant: "acme", ID: "42"}, entity.Set("status", "stale")))
		require.ErrorIs(t, err, lock.ErrLost)
		require.ErrorIs(t, stale.Release(ctx), lock.ErrLost)
		require.NoError(t, fresh.Commit(ctx, orders.AnyVersion().UpdateOp(order{Tenant: "acme", ID: "42"}, entity.Set("status", "settled"))))
		o, err = orders.Get(ctx, o, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, "settled", o.Status)
		r, err := b.Inspect(ctx, target)
		require.NoError(t, err)
		assert.False(t, r.Held())
	})
}

func TestFenceSurvivesDeletion(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		require.NoError(t, w.table.Write(ctx, table.Delete(l.Key())))
		time.Sleep(time.Millisecond)
		next, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Greater(t, next.Fence(), l.Fence())
	})
}

func TestForeignRowIsNotTouched(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		key := l.Key()
		require.NoError(t, l.Release(ctx))
		item := w.table.KeyItem(key)
		require.NoError(t, w.table.Write(ctx, table.Put(item)))
		ops := w.requests(func() { _, err = c.Acquire(ctx, lock.Name("report")) })
		require.ErrorIs(t, err, lock.ErrNotLock)
		assert.Len(t, ops, 1)
		got, err := w.table.Get(ctx, key, true)
		require.NoError(t, err)
		assert.Equal(t, item, got)
	})
}

// F9: also where a guarded write holds a release up for far longer than a lease.
func TestCloseEndsWaitersAndReleases(t *testing.T) {
	const waiters, period = 100, 5 * time.Second
	for _, busy := range []time.Duration{0, time.Minute} {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(lock.Config{})
			w.latency(10 * time.Millisecond)
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			told := make(chan time.Time, waiters)
			for range waiters {
				go func() {
					_, err := c.Acquire(ctx, lock.Name("report"))
					assert.ErrorIs(t, err, lock.ErrClosed)
					told <- time.Now()
				}()
			}
			w.engine.ResetRequests()
			time.Sleep(2 * period)
			var write sync.WaitGroup
			if busy > 0 {
				w.engine.ClearFaults() // of two delays the first counts
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: busy, Operation: "TransactWriteItems", Times: 1})
				w.latency(10 * time.Millisecond)
				write.Go(func() { assert.NoError(t, l.Write(ctx, w.put("x"))) })
				time.Sleep(time.Second)
			}
			session := sessionKey(c).PK
			start := time.Now()
			require.NoError(t, c.Close(ctx))
			closed := time.Since(start)
			write.Wait()
			var ended, gap time.Duration
			for range waiters {
				ended = max(ended, (<-told).Sub(start))
			}
			renewals := w.requestsTo(session)
			for i, r := range renewals[1:] {
				gap = max(gap, r.Time.Sub(renewals[i].Time))
			}
			testkit.Check(t, fmt.Sprintf("F9, %v of a write under way", busy),
				testkit.AtMost(ended, fmt.Sprintf(" until %d waiters were told", waiters), time.Second),
				testkit.AtMost((closed-max(busy-time.Second, 0)), " more than the write until closed", time.Second),
				// Periods have a jitter of 10 %.
				testkit.AtMost(gap, " between renewals meanwhile", period+period/10+20*time.Millisecond))
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrReleased)
			_, err = c.Acquire(ctx, lock.Name("report"))
			require.ErrorIs(t, err, lock.ErrClosed)
		})
	}
}
