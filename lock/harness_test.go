package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
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
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// quiet logs nothing: losses are expected.
var quiet = lock.Config{Logger: slog.New(slog.DiscardHandler)}

func names(n int) []lock.Target {
	list := make([]lock.Target, n)
	for i := range list {
		list[i] = lock.Name(fmt.Sprintf("n%02d", i))
	}
	return list
}

// acquireAsync acquires in a goroutine, which waits by the time that acquireAsync returns.
func acquireAsync(ctx context.Context, c *lock.Client, target lock.Target, opts ...lock.Option) <-chan *lock.Lease {
	got := make(chan *lock.Lease, 1)
	go func() {
		l, err := c.Acquire(ctx, target, opts...)
		if err != nil {
			l = nil
		}
		got <- l
	}()
	time.Sleep(500 * time.Millisecond)
	return got
}

// latency delays every request, like a network.
func (w *world) latency(d time.Duration) {
	w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: d})
}

func (w *world) put(name string) table.Op {
	return table.Put(w.table.KeyItem(w.row(name)))
}

// free checks that nobody holds any of the locks.
func (w *world) free(ctx context.Context, targets []lock.Target) {
	w.Helper()
	c := w.cold(lock.Config{})
	for i, target := range targets {
		r, err := c.Inspect(ctx, target)
		if errors.Is(err, table.ErrNotFound) {
			continue
		}
		require.NoError(w, err)
		require.False(w, r.Held(), "target %d", i)
	}
}

// cold is a client of a process that has had no answer from DynamoDB yet.
func (w *world) cold(config lock.Config, opts ...table.Option) *lock.Client {
	w.Helper()
	c, err := lock.New(w.open(opts...), config)
	require.NoError(w, err)
	w.Cleanup(func() { assert.NoError(w, c.Close(context.Background())) })
	return c
}

// heap is the memory in use after garbage collection.
func heap() uint64 {
	for range 3 { // pools are emptied by the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// outcome acquires in a goroutine, releases, and sends the error.
func outcome(ctx context.Context, c *lock.Client, target lock.Target, opts ...lock.Option) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := c.Acquire(ctx, target, opts...)
		ended <- err
	}()
	return ended
}

func numeral(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// canary stands for a secret that must not be printed.
const canary = "s3cret-canary"

// byTime is the index of locks.
var byTime = table.Index{Name: "gsi1", PK: "gsi1pk", SK: "gsi1sk"}

// count is an operation that counts how often it was applied.
func (w *world) count(name string) table.Op {
	key := w.row(name)
	return table.Update(key, table.Attr("n").Set(table.Attr("n").OrElse(0).Plus(1)))
}

func (w *world) counted(name string) int64 {
	w.Helper()
	item, err := w.table.Get(context.Background(), w.row(name), true)
	if errors.Is(err, table.ErrNotFound) {
		return 0
	}
	require.NoError(w, err)
	return number(w.T, item["n"])
}

// force takes a lock from its holder.
func (w *world) force(ctx context.Context, op *lock.Client, target lock.Target) {
	w.Helper()
	r, err := op.Inspect(ctx, target)
	require.NoError(w, err)
	require.NoError(w, op.ForceRelease(ctx, target, r.Holder().Ticket))
}

func sessionKey(c *lock.Client) keys.Key {
	id := lock.SessionID(c)
	return keys.NewKey("SESSION#"+id, "SESSION#"+id)
}

func (w *world) requestsTo(pk string) (list []tabletest.Request) {
	for _, r := range w.engine.Requests() {
		if slices.ContainsFunc(r.Keys, func(k tabletest.Key) bool {
			v, ok := k.Attrs["pk"].(*types.AttributeValueMemberS)
			return ok && v.Value == pk
		}) {
			list = append(list, r)
		}
	}
	return list
}

// world is an engine in virtual time, and what tests need with it.
type world struct {
	*testing.T
	engine   *tabletest.Engine
	table    *table.Table // the test's own, which is not checked
	guardian *guardian    // checks the permissions of all other requests; nil if they were checked before
}

// virtual runs f in virtual time: hours take milliseconds.
func virtual(t *testing.T, f func(ctx context.Context, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		require.NoError(t, w.table.Ensure(t.Context()))
		w.guardian = newGuardian(t, "app", w.table.Scheme())
		f(t.Context(), w)
	})
}

// newWorld has an engine without tables. Permissions are not checked.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, engine: tabletest.New(t)}
	var err error
	w.table, err = table.Open(w.engine.Client(), table.Schema{Name: "app"})
	require.NoError(t, err)
	return w
}

// indexed adds an index to the table, without a check of permissions, and opens the table again.
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

// openOver opens a table over a connection. The policy has to cover its requests.
func (w *world) openOver(to aws.HTTPClient, schema table.Schema, opts ...table.Option) *table.Table {
	w.Helper()
	tbl, err := table.Open(w.sdk(to), schema, opts...)
	require.NoError(w, err)
	return tbl
}

// sdk is an SDK client. The policy has to cover its requests.
func (w *world) sdk(to aws.HTTPClient, opts ...func(*dynamodb.Options)) *dynamodb.Client {
	if w.guardian != nil {
		to = w.guardian.over(to)
	}
	return w.engine.Client(append([]func(*dynamodb.Options){sim.Frugal, func(o *dynamodb.Options) { o.HTTPClient = to }}, opts...)...)
}

// client is a client in its own process, which has held a lock before.
func (w *world) client(config lock.Config, opts ...table.Option) *lock.Client {
	w.Helper()
	return w.clientOver(&line{to: w.engine.HTTPClient()}, config, opts...)
}

// coldClient is a client in its own process, which has had an answer from DynamoDB and no more.
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

// times counts an operation among those that were requested.
func times(operation string, ops []string) (n int) {
	for _, op := range ops {
		if op == operation {
			n++
		}
	}
	return n
}

// row is the key of a row that is not a lock.
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
