package console_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/console"
	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// marker is in each value that is hidden.
const marker = "m4rker"

// world is a table in virtual time, and a console that looks at it through a connection of its own.
type world struct {
	*testing.T
	engine *tabletest.Engine
	schema table.Schema
	table  *table.Table // the test's own hand
	locks  lock.Config
	eyes   *eyes
	config console.Config
	c      *console.Console
}

// setting changes a world before its console is made.
type setting func(*world)

// indexed gives the locks an index.
func indexed(w *world) { w.locks.Index = "gsi1" }

func showData(w *world) { w.config.ShowData = true }

// virtual runs f in virtual time: hours of it take milliseconds.
func virtual(t *testing.T, f func(w *world), settings ...setting) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, engine: tabletest.New(t), schema: table.Schema{Name: "app", Indexes: []table.Index{{Name: "gsi1", PK: "gsi1pk", SK: "gsi1sk"}}}}
		w.locks = lock.Config{Logger: slog.New(slog.DiscardHandler)}
		w.eyes = &eyes{to: w.engine.HTTPClient()}
		var err error
		w.table, err = table.Open(w.engine.Client(), w.schema)
		require.NoError(t, err)
		require.NoError(t, w.table.Ensure(t.Context()))
		w.config.Table, err = table.Open(w.engine.Client(func(o *dynamodb.Options) { o.HTTPClient = w.eyes }), w.schema)
		require.NoError(t, err)
		for _, s := range settings {
			s(w)
		}
		w.config.Locks = w.clientOf(w.config.Table, "operator")
		w.c, err = console.New(w.config)
		require.NoError(t, err)
		defer func() { require.NoError(t, w.c.Close()) }()
		f(w)
	})
}

// client is the client of another process.
func (w *world) client(owner string) *lock.Client {
	w.Helper()
	tbl, err := table.Open(w.engine.Client(), w.schema)
	require.NoError(w, err)
	return w.clientOf(tbl, owner)
}

func (w *world) clientOf(tbl *table.Table, owner string) *lock.Client {
	w.Helper()
	config := w.locks
	config.Owner = owner
	c, err := lock.New(tbl, config)
	require.NoError(w, err)
	w.Cleanup(func() { assert.NoError(w, c.Close(context.Background())) })
	return c
}

// hold has processes enter the line of a lock, in their order.
func (w *world) hold(target lock.Target, owners ...string) *lock.Lease {
	w.Helper()
	lease, err := w.client(owners[0]).Acquire(w.Context(), target, lock.WithData(marker))
	require.NoError(w, err)
	for _, owner := range owners[1:] {
		c := w.client(owner)
		go func() { _, _ = c.Acquire(w.Context(), target) }() // ends with the test
		synctest.Wait()
	}
	return lease
}

// order is a type of the application.
type order struct {
	Tenant string            `dynamo:"tenant"`
	ID     string            `dynamo:"id"`
	Status string            `dynamo:"status"`
	Tags   []string          `dynamo:"tags,set"`
	More   map[string]string `dynamo:"more"`
}

// orders is the entity of orders.
func (w *world) orders(tbl *table.Table) *entity.Entity[order] {
	w.Helper()
	e, err := entity.Define(tbl, entity.Spec[order]{
		Type: "Order", PK: "TENANT#{tenant}", SK: "ORDER#{id}", Indexes: []entity.Index[order]{{Name: "gsi1", PK: "STATUS#{status}", SK: "{id}"}},
	})
	require.NoError(w, err)
	return e
}

func withOrders(w *world) { w.config.Entities = []console.Entity{w.orders(w.config.Table)} }

// fill writes orders with a marker in every attribute that is not a key.
func (w *world) fill(n int) {
	w.Helper()
	e := w.orders(w.table)
	for i := range n {
		_, err := e.Put(w.Context(), order{"acme", fmt.Sprintf("%03d", i), marker, []string{marker}, map[string]string{"a": marker}})
		require.NoError(w, err)
	}
}

// migrator is the application's, whose list the console knows.
func (w *world) migrator(tbl *table.Table, locks *lock.Client, list []migrations.Migration) *migrations.Migrator {
	w.Helper()
	m, err := migrations.New(tbl, locks, list, migrations.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(w, err)
	return m
}

// get loads a page, and requires a status.
func (w *world) get(path string, status int) string {
	w.Helper()
	return w.do(httptest.NewRequestWithContext(w.Context(), http.MethodGet, "http://localhost/ops/"+path, nil), status).Body.String()
}

func (w *world) do(r *http.Request, status int) *httptest.ResponseRecorder {
	w.Helper()
	out := httptest.NewRecorder()
	w.c.ServeHTTP(out, r)
	require.Equal(w, status, out.Code, out.Body.String())
	return out
}

// reader is a browser that has a page open.
type reader struct {
	mu     sync.Mutex
	header http.Header
	status int
	all    bytes.Buffer
	close  context.CancelFunc
	ended  chan struct{}
}

func (r *reader) Header() http.Header    { return r.header }
func (r *reader) WriteHeader(status int) { r.status = status }
func (r *reader) Flush()                 {}
func (r *reader) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.Write(p)
}

// text is everything that the reader has got.
func (r *reader) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.String()
}

// last is the content of the last event.
func (r *reader) last() string {
	events := strings.Split(r.text(), "\n\n")
	for _, e := range slices.Backward(events) {
		if text, ok := strings.CutPrefix(e, "data: "); ok {
			return strings.ReplaceAll(text, "\ndata: ", "\n")
		}
	}
	return ""
}

// open has a browser follow a page.
func (w *world) open(page string) *reader {
	w.Helper()
	return w.follow("events?page=" + page)
}

func (w *world) follow(events string) *reader {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	r := &reader{header: http.Header{}, close: cancel, ended: make(chan struct{})}
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/ops/"+events, nil)
	go func() {
		defer close(r.ended)
		w.c.ServeHTTP(r, request)
	}()
	synctest.Wait()
	return r
}

// eyes are a connection that notes what goes over it, and when.
type eyes struct {
	to interface {
		Do(*http.Request) (*http.Response, error)
	}

	mu    sync.Mutex
	times []time.Time
	ops   map[string]int
}

func (e *eyes) Do(r *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	e.mu.Lock()
	e.times = append(e.times, time.Now())
	if e.ops == nil {
		e.ops = map[string]int{}
	}
	e.ops[op]++
	e.mu.Unlock()
	return e.to.Do(r)
}

// count is how many requests were sent so far.
func (e *eyes) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.times)
}

// operations are the names of what was requested so far, each once.
func (e *eyes) operations() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.ops))
}

// most is the greatest number of requests within a second.
func (e *eyes) most() (most int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, at := range e.times {
		n := 0
		for _, other := range e.times[i:] {
			if other.Sub(at) < time.Second {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func beside(i int) lock.Target {
	return lock.Beside(keys.NewKey("TENANT#acme", fmt.Sprintf("ORDER#%03d", i)))
}
