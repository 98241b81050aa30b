package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// quiet keeps expected losses out of the tests' output.
var quiet = lock.Config{Logger: slog.New(slog.DiscardHandler)}

func names(n int) []lock.Target {
	list := make([]lock.Target, n)
	for i := range list {
		list[i] = lock.Name(fmt.Sprintf("n%02d", i))
	}
	return list
}

// acquireAsync acquires in a goroutine of its own, which waits by the time that it returns.
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

// latency makes every request take as long as one over a network.
func (w *world) latency(d time.Duration) {
	w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: d})
}

func (w *world) put(name string) table.Op {
	return table.Put(w.table.KeyItem(w.row(name)))
}

// free says that nobody holds any of the locks.
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

// cold is a client of a process that has not talked to DynamoDB yet.
func (w *world) cold(config lock.Config, opts ...table.Option) *lock.Client {
	w.Helper()
	c, err := lock.New(w.open(opts...), config)
	require.NoError(w, err)
	w.Cleanup(func() { assert.NoError(w, c.Close(context.Background())) })
	return c
}

// heap is what is in use after everything that can be freed has been.
func heap() uint64 {
	for range 3 { // pools let go with the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// outcome is how an acquisition in a goroutine of its own ends.
func outcome(ctx context.Context, c *lock.Client, target lock.Target) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := c.Acquire(ctx, target)
		ended <- err
	}()
	return ended
}

func numeral(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// canary stands in for what must not be shown.
const canary = "s3cret-canary"

// byTime is the index of locks.
var byTime = table.Index{Name: "gsi1", PK: "gsi1pk", SK: "gsi1sk"}

// count is an operation that shows how often it was applied.
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

// force releases a lock in the place of its holder.
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
