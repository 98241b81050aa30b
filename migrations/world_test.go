package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(victimTable); name != "" {
		os.Exit(victim(name))
	}
	os.Exit(engines.Main(m))
}

// world is a table on an engine, with what tests need around it.
type world struct {
	*testing.T
	engine  *tabletest.Engine // nil on other engines
	connect func(optFns ...func(*dynamodb.Options)) *dynamodb.Client
	schema  table.Schema
	table   *table.Table // of nobody's process
	watch   *watcher
	opts    []table.Option // of the tables of processes
}

func newWorld(t *testing.T, schema table.Schema, connect func(optFns ...func(*dynamodb.Options)) *dynamodb.Client) *world {
	t.Helper()
	w := &world{T: t, connect: connect, schema: schema, watch: &watcher{last: map[string]position{}}}
	var err error
	// Its requests have no timeout: one that is sent again would be applied twice, and some of them count.
	w.table, err = table.Open(connect(), schema, table.WithRetry(table.Retry{Timeout: -1}))
	require.NoError(t, err)
	require.NoError(t, w.table.Ensure(t.Context()))
	return w
}

// virtual runs f in virtual time on the in-process engine.
func virtual(t *testing.T, f func(ctx context.Context, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine := tabletest.New(t)
		w := newWorld(t, table.Schema{Name: "app"}, engine.Client)
		w.engine = engine
		f(t.Context(), w)
	})
}

// contract runs f on every engine.
func contract(t *testing.T, f func(ctx context.Context, w *world)) {
	t.Helper()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f(t.Context(), newWorld(t, table.Schema{Name: e.TableName(t)}, e.Client))
	})
}

// everywhere runs f on every engine, in virtual time where that can be had.
func everywhere(t *testing.T, f func(ctx context.Context, w *world)) {
	t.Helper()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		if e.Name == engines.InProcess {
			virtual(t, f)
			return
		}
		f(t.Context(), newWorld(t, table.Schema{Name: e.TableName(t)}, e.Client))
	})
}

// process is one instance of the application.
type process struct {
	line  *line
	table *table.Table
	locks *lock.Client
	m     *migrations.Migrator
	ctx   context.Context // ends when it is killed
}

// start starts an instance. Its line is cut, and its context ended, when it is killed.
func (w *world) start(config lock.Config, list []migrations.Migration, opts ...migrations.Option) *process {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	p := &process{ctx: ctx, line: &line{die: cancel}}
	sdk := w.connect(func(o *dynamodb.Options) {
		p.line.to = o.HTTPClient
		if p.line.to == nil {
			p.line.to = http.DefaultClient
		}
		o.HTTPClient = p.line
	})
	var err error
	p.table, err = table.Open(spy{sdk, w.watch}, w.schema, w.opts...)
	require.NoError(w, err)
	if config.Logger == nil {
		config.Logger = discard
	}
	p.locks, err = lock.New(p.table, config)
	require.NoError(w, err)
	w.Cleanup(func() {
		cancel()
		if !p.line.dead.Load() {
			assert.NoError(w, p.locks.Close(context.Background()))
		} else if w.engine != nil {
			_ = p.locks.Close(context.Background())
			time.Sleep(time.Minute) // until its session has ended
		}
	})
	opts = append([]migrations.Option{migrations.WithLogger(discard)}, opts...)
	p.m, err = migrations.New(p.table, p.locks, list, opts...)
	require.NoError(w, err)
	return p
}

// migrator is a migrator of an instance of its own.
func (w *world) migrator(list []migrations.Migration, opts ...migrations.Option) *migrations.Migrator {
	w.Helper()
	return w.start(lock.Config{}, list, opts...).m
}

// line is a process's way to the engine.
type line struct {
	to    aws.HTTPClient
	die   func()
	calls atomic.Int64
	at    int64 // the call at which the process dies; 0 for never
	after bool  // with the request applied
	quiet bool  // its context ends at that call, and no more
	dead  atomic.Bool

	before func(call int64) // is called before each call is sent; nil for nothing
}

func (l *line) kill() {
	l.dead.Store(true)
	l.die()
}

func (l *line) Do(r *http.Request) (*http.Response, error) {
	n := l.calls.Add(1)
	if l.dead.Load() {
		return nil, errors.New("killed")
	}
	if l.before != nil {
		l.before(n)
	}
	if n != l.at {
		return l.to.Do(r)
	}
	if l.quiet {
		l.die()
		return l.to.Do(r)
	}
	if l.after {
		if resp, err := l.to.Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}
	l.kill()
	return nil, errors.New("killed")
}

// watcher sees to it that checkpoints never go backwards.
type watcher struct {
	mu    sync.Mutex
	last  map[string]position
	seen  int
	backs []string
}

type position struct {
	base, seq, seen int64
	done            bool
}

// spy shows the watcher what was committed.
type spy struct {
	*dynamodb.Client
	watch *watcher
}

func (s spy) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := s.Client.TransactWriteItems(ctx, in, opts...)
	if err == nil {
		for _, item := range in.TransactItems {
			if item.Put != nil {
				s.watch.saw(item.Put.Item)
			}
		}
	}
	return out, err
}

func (w *watcher) saw(item table.Item) {
	if typ, ok := item["type"].(*types.AttributeValueMemberS); !ok || typ.Value != "mortise.MigrationCheckpoint" {
		return
	}
	key := item["sk"].(*types.AttributeValueMemberS).Value
	done, _ := item["done"].(*types.AttributeValueMemberBOOL)
	now := position{base: integer(item["base"]), seq: integer(item["seq"]), seen: integer(item["seen"]), done: done != nil && done.Value}
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.last[key]
	if now.base < before.base || now.base == before.base && (now.seq <= before.seq || now.seen < before.seen || before.done) {
		w.backs = append(w.backs, fmt.Sprintf("%s: %+v after %+v", key, now, before))
	}
	w.last[key] = now
	w.seen++
}

func integer(av types.AttributeValue) int64 {
	if n, ok := av.(*types.AttributeValueMemberN); ok {
		i, _ := strconv.ParseInt(n.Value, 10, 64)
		return i
	}
	return 0
}

func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// itemKey is the key of the i-th item of the application's.
func itemKey(i int) keys.Key { return keys.NewKey(fmt.Sprint("ITEM#", i), "ITEM") }

// fill writes items with n = their number.
func (w *world) fill(count int) {
	w.Helper()
	for from := 0; from < count; from += table.MaxOps {
		var ops []table.Op
		for i := from; i < min(count, from+table.MaxOps); i++ {
			item := w.table.KeyItem(itemKey(i))
			item["n"] = num(int64(i))
			ops = append(ops, table.Put(item))
		}
		require.NoError(w, w.table.Write(w.Context(), ops...))
	}
}

func (w *world) get(key keys.Key) table.Item {
	w.Helper()
	item, err := w.table.Get(w.Context(), key, true)
	require.NoError(w, err)
	return item
}

// increment is not idempotent: each item counts how often it was applied.
func increment(_ context.Context, item table.Item) (table.Item, error) {
	item["m"] = num(integer(item["m"]) + 1)
	return item, nil
}

// double is idempotent.
func double(_ context.Context, item table.Item) (table.Item, error) {
	if item["double"] != nil {
		return nil, nil
	}
	item["double"] = num(2 * integer(item["n"]))
	return item, nil
}

// once adds 1 to a counter: applied twice it shows.
func once(name string) table.Op {
	return table.Update(keys.NewKey("COUNTER#"+name, "COUNTER"), table.Attr("count").Add(1))
}

func (w *world) count(name string) int64 {
	w.Helper()
	item, err := w.table.Get(w.Context(), keys.NewKey("COUNTER#"+name, "COUNTER"), true)
	if errors.Is(err, table.ErrNotFound) {
		return 0
	}
	require.NoError(w, err)
	return integer(item["count"])
}

// only takes the application's items, not the counters.
func only() table.Cond { return table.Attr("n").Exists() }

// simple is a migration that can be seen to have run once.
func simple(id string) migrations.Migration {
	return migrations.Migration{ID: id, Up: func(ctx context.Context, run *migrations.Run) error {
		return run.Atomic(ctx, once(id))
	}, Down: func(ctx context.Context, run *migrations.Run) error {
		return run.Atomic(ctx, once("down "+id))
	}}
}

// listOf is a list of simple migrations. Those whose IDs end in "seed" are repeatable.
func listOf(ids ...string) (list []migrations.Migration) {
	for _, id := range ids {
		m := simple(id)
		if strings.HasSuffix(id, "seed") {
			m.Repeatable, m.Down = true, nil
		}
		list = append(list, m)
	}
	return list
}

var discard = slog.New(slog.DiscardHandler)
