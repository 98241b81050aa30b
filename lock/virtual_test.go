package lock_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// world is an engine in virtual time, with what tests need around it.
type world struct {
	*testing.T
	engine *tabletest.Engine
	table  *table.Table
}

// virtual runs f in virtual time: hours of it take milliseconds.
func virtual(t *testing.T, f func(ctx context.Context, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, engine: tabletest.New(t)}
		w.table = w.open()
		require.NoError(t, w.table.Ensure(t.Context()))
		f(t.Context(), w)
	})
}

// open opens the table as another process would.
func (w *world) open(opts ...table.Option) *table.Table {
	w.Helper()
	tbl, err := table.Open(w.engine.Client(), table.Schema{Name: "app"}, opts...)
	require.NoError(w, err)
	return tbl
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

func TestTakeoverLongDead(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		dead, c := w.client(lock.Config{}), w.client(lock.Config{})
		_, err := dead.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		time.Sleep(time.Hour)
		start := time.Now()
		var l *lock.Lease
		ops := w.requests(func() { l, err = c.Acquire(ctx, lock.Name("report")) })
		require.NoError(t, err)
		assert.Zero(t, time.Since(start))
		assert.LessOrEqual(t, len(ops), 3)
		t.Logf("P5 takeover of a long dead holder: %d requests (goal at most 3), waited %v", len(ops), time.Since(start))
		_ = l
	})
}

func TestTakeoverFreshCrash(t *testing.T) {
	for _, expiry := range []lock.Expiry{lock.RecordedOrObserved, lock.ObservedOnly} {
		virtual(t, func(ctx context.Context, w *world) {
			dead, c := w.client(lock.Config{}), w.client(lock.Config{Expiry: expiry})
			_, err := dead.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
			require.NoError(t, err)
			start := time.Now()
			_, err = c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			t.Logf("P6 takeover of a fresh crash, lease 20s, expiry %v: %v", expiry, time.Since(start))
			assert.GreaterOrEqual(t, time.Since(start), 20*time.Second)
			assert.LessOrEqual(t, time.Since(start), 24*time.Second)
		})
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
		err = stale.Write(ctx, orders.UpdateOp(order{Tenant: "acme", ID: "42"}, entity.Set("status", "stale")))
		require.ErrorIs(t, err, lock.ErrLost)
		err = stale.Commit(ctx, orders.UpdateOp(order{Tenant: "acme", ID: "42"}, entity.Set("status", "stale")))
		require.ErrorIs(t, err, lock.ErrLost)
		require.ErrorIs(t, stale.Release(ctx), lock.ErrLost)
		require.NoError(t, fresh.Commit(ctx, orders.UpdateOp(order{Tenant: "acme", ID: "42"}, entity.Set("status", "settled"))))
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

func TestCloseEndsWaitersAndReleases(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		errs := make(chan error, 100)
		for range 100 {
			go func() {
				_, err := c.Acquire(ctx, lock.Name("report"))
				errs <- err
			}()
		}
		time.Sleep(5 * time.Second)
		start := time.Now()
		require.NoError(t, c.Close(ctx))
		t.Logf("F9 Close with 100 waiters: %v (goal within 1s)", time.Since(start))
		for range 100 {
			require.ErrorIs(t, <-errs, lock.ErrClosed)
		}
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrReleased)
		_, err = c.Acquire(ctx, lock.Name("report"))
		require.ErrorIs(t, err, lock.ErrClosed)
		assert.Equal(t, keys.Key{}, lock.Name("x").Beside())
	})
}
