package lock_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Copies of helpers of contract_test.go, data_test.go and time_test.go of the first edition, for tests that
// are ported apart from those.

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // worlds are small, and made by the thousand
	code := engines.Main(m)
	if testing.Verbose() {
		fmt.Println("checked against policy.json:", checked)
	}
	os.Exit(code)
}

// place is a table on one of the engines.
type place struct {
	*testing.T
	table  *table.Table // the test's own hand
	client *lock.Client
	locks  func() *table.Table // opens the table as a process with locks does
}

// contract runs f on every engine.
func contract(t *testing.T, scheme keys.Scheme, f func(ctx context.Context, p *place)) {
	t.Helper()
	contractWith(t, table.Schema{Keys: scheme}, lock.Config{Owner: "test"}, f)
}

// contractWith runs f on every engine, in a table of that schema.
func contractWith(t *testing.T, schema table.Schema, config lock.Config, f func(ctx context.Context, p *place)) {
	t.Helper()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		schema := schema
		schema.Name = e.TableName(t)
		tbl, err := table.Open(e.Client(), schema)
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		p := &place{T: t, table: tbl}
		p.locks = func() *table.Table {
			var guard []func(*dynamodb.Options)
			if in := e.InProcess(); in != nil {
				to := newGuardian(t, tbl.Name(), tbl.Scheme()).over(in.HTTPClient())
				guard = append(guard, func(o *dynamodb.Options) { o.HTTPClient = to })
			}
			opened, err := table.Open(e.Client(guard...), tbl.Schema())
			require.NoError(t, err)
			_, err = opened.Plan(ownHand(t.Context())) // it has talked to DynamoDB: knows the time
			require.NoError(t, err)
			return opened
		}
		p.client = p.open(config)
		f(t.Context(), p)
	})
}

func (p *place) open(config lock.Config) *lock.Client {
	p.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	c, err := lock.New(p.locks(), config)
	require.NoError(p, err)
	p.Cleanup(func() { assert.NoError(p, c.Close(context.Background())) })
	return c
}

// raw is the lock's row as it stands in the table.
func (p *place) raw(l *lock.Lease) table.Item {
	p.Helper()
	item, err := p.table.Get(p.Context(), l.Key(), true)
	require.NoError(p, err)
	return item
}

// totals runs f and says what it cost.
func totals(ctx context.Context, f func(ctx context.Context)) table.Totals {
	ctx, usage := table.WithUsage(ctx)
	f(ctx)
	return usage.Totals()
}

// lockRow is a lock's row in order, as another client would have left it: free, or held under a lease of its
// own that ended long ago.
func (p *place) lockRow(key keys.Key, held bool, change func(table.Item)) table.Item {
	now := time.Now()
	item := p.table.KeyItem(key)
	item["type"], item["fence"], item["line"] = text("mortise.Lock"), numeral(7), listOf()
	item["since"], item["ttl"] = numeral(now.Add(-time.Hour).UnixMilli()), numeral(now.Add(48*time.Hour).Unix())
	if held {
		item["line"] = listOf(text(fmt.Sprintf("ANOTHER@%013d+1000 another", now.Add(-time.Hour).UnixMilli())))
	}
	if change != nil {
		change(item)
	}
	return item
}

func (p *place) keyOf(target lock.Target) keys.Key {
	p.Helper()
	l, err := p.client.Acquire(p.Context(), target)
	require.NoError(p, err)
	require.NoError(p, l.Release(p.Context()))
	return l.Key()
}

type progress struct {
	Host  string   `dynamo:"host"`
	Done  int      `dynamo:"done"`
	Parts []string `dynamo:"parts"`
}

// decoded is a payload as text, "none" without one.
func decoded(t *testing.T, d lock.Data) string {
	t.Helper()
	var s string
	err := d.Decode(&s)
	if d.IsZero() {
		require.ErrorIs(t, err, table.ErrNotFound)
		return "none"
	}
	require.NoError(t, err)
	return s
}

// handOver has another acquisition wait for a lease and then gives it that.
func (p *place) handOver(l *lock.Lease, opts ...lock.Option) *lock.Lease {
	p.Helper()
	got := make(chan *lock.Lease, 1)
	go func() {
		next, err := p.client.Acquire(p.Context(), l.Target(), opts...)
		assert.NoError(p, err)
		got <- next
	}()
	require.Eventually(p, func() bool { return lock.Queued(p.client, l.Key()) == 1 }, 10*time.Second, time.Millisecond)
	require.NoError(p, l.Release(p.Context()))
	next := <-got
	require.NotNil(p, next)
	assert.Equal(p, l.Fence()+1, next.Fence())
	return next
}

// wallClock is a wall clock that can be set.
type wallClock struct {
	mu sync.Mutex
	by time.Duration
}

func (c *wallClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.by)
}

func at(by time.Duration) table.Option { return table.WithClock((&wallClock{by: by}).now) }
