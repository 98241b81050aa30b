package tabletest

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
	"github.com/mortise-go/mortise/table/tabletest/internal/shape"
)

// Engine is an in-process DynamoDB: tables, a clock, a request log and faults. It is safe for concurrent use; each
// request is atomic.
type Engine struct {
	now   func() time.Time
	model map[string]*shape.Shape // shapes of requests, by operation

	mu     sync.Mutex // guards the fields down to inflight; never held during a delay or I/O
	tables map[string]*table
	tokens map[string]*pastTransaction // by ClientRequestToken
	past   []*pastTransaction          // the same transactions, oldest first
	log    requestLog
	ids    uint64 // last identifier; each executed request gets one, and CreateTable uses it for its table

	faults   []*armed
	late     []lateRequest
	inflight map[placed]int // number of delayed transactions (Fault.Hold) that use each item

	serverMu sync.Mutex // guards servers and closed
	servers  []*http.Server
	serving  sync.WaitGroup // listeners, and requests that came through them
	closed   bool
}

// Option configures an [Engine].
type Option func(*Engine)

// WithClock sets the engine's clock, which determines creation times, idempotency tokens, time to live and the Date
// header. Defaults to [time.Now], which is the virtual clock inside a testing/synctest bubble.
func WithClock(now func() time.Time) Option {
	return func(e *Engine) { e.now = now }
}

// New returns an engine that t.Cleanup closes.
func New(t testing.TB, opts ...Option) *Engine {
	t.Helper()
	e := NewEngine(opts...)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("tabletest: close: %v", err)
		}
	})
	return e
}

// NewEngine returns an engine for use outside tests. Call [Engine.Close] if [Engine.Listen] was called.
func NewEngine(opts ...Option) *Engine {
	e := &Engine{now: time.Now, model: model(), tables: map[string]*table{}, tokens: map[string]*pastTransaction{}}
	for _, o := range opts {
		o(e)
	}
	return e
}

// call is one request that the engine handles.
type call struct {
	e   *Engine
	op  string
	in  fields
	now time.Time

	tables []string
	arns   map[*table]string // of tables that the request names by ARN
	keys   []touchedKey
	units  float64

	stale       int // number of writes that eventually consistent reads miss
	unprocessed int // number of requests of a batch to process; 0 for all
	conflicts   []*armed
	request     *incoming
}

// arm notes the faults that change how the handler processes the request.
func (c *call) arm() {
	if c.request.faults == nil {
		return
	}
	for _, f := range c.request.all(StaleRead) {
		c.stale = max(c.stale, 1, f.Writes)
	}
	for _, f := range c.request.all(Unprocessed) {
		take := max(1, f.Take)
		if c.unprocessed == 0 || take < c.unprocessed {
			c.unprocessed = take
		}
	}
	c.conflicts = c.request.all(TransactionConflict)
}

// touch records a table and a primary key for the request log.
func (c *call) touch(t *table, key touchedKey) {
	c.noteTable(t.name)
	c.keys = append(c.keys, key)
}

func (c *call) noteTable(name string) {
	if !slices.Contains(c.tables, name) {
		c.tables = append(c.tables, name)
	}
}

func (c *call) spent(t *table, u *usage) {
	c.noteTable(t.name)
	c.units += u.total()
}

// handler answers one operation with the JSON of its output.
type handler func(*call) ([]byte, error)

func handlerOf(op string) handler {
	switch op {
	case "CreateTable":
		return createTable
	case "DescribeTable":
		return describeTable
	case "UpdateTable":
		return updateTable
	case "DeleteTable":
		return deleteTable
	case "ListTables":
		return listTables
	case "UpdateTimeToLive":
		return updateTimeToLive
	case "DescribeTimeToLive":
		return describeTimeToLive
	case "PutItem":
		return putItem
	case "GetItem":
		return getItem
	case "UpdateItem":
		return updateItem
	case "DeleteItem":
		return deleteItem
	case "Query":
		return query
	case "Scan":
		return scan
	case "BatchGetItem":
		return batchGetItem
	case "BatchWriteItem":
		return batchWriteItem
	case "TransactGetItems":
		return transactGetItems
	case "TransactWriteItems":
		return transactWriteItems
	case "ListTagsOfResource":
		return listTagsOfResource
	case "TagResource":
		return tagResource
	case "UntagResource":
		return untagResource
	case "DescribeContinuousBackups":
		return describeContinuousBackups
	case "UpdateContinuousBackups":
		return updateContinuousBackups
	}
	return nil
}

// answer is the answer to a request.
type answer struct {
	status int
	body   []byte
	cut    bool // only half of the body is sent
	date   time.Time
	id     uint64
}

// execute applies one request, logs it and returns the answer. The caller holds e.mu.
func (e *Engine) execute(in *incoming) *answer {
	e.ids++
	c := &call{e: e, op: in.op, in: fields{n: in.root}, now: e.now(), request: in}
	c.arm()
	a := &answer{status: http.StatusOK, date: c.now, id: e.ids}
	var err error
	h := handlerOf(in.op)
	refused := in.refused()
	switch {
	case refused != nil:
		err = refused
		c.tables, c.keys = in.tables, in.keys
	case h == nil:
		err = fail(codeUnknown, "")
	case in.root.Kind != jsontree.Object:
		err = errSerialization()
	default:
		if err = c.checkShape(); err == nil {
			a.body, err = h(c)
		}
	}
	code := ""
	if err != nil {
		api := asAPI(err)
		a.status, a.body, code = api.status, api.body(), api.code
	}
	e.log.add(c, code)
	return a
}

// Close stops every listener and waits for its requests to end. It can be called several times. The in-process client
// keeps working.
func (e *Engine) Close() error {
	e.serverMu.Lock()
	servers := e.servers
	e.servers = nil
	e.closed = true
	e.serverMu.Unlock()
	var first error
	for _, s := range servers {
		if err := s.Close(); err != nil && first == nil {
			first = err
		}
	}
	e.serving.Wait()
	return first
}

// Listen serves the engine on addr, which should be a loopback address such as "127.0.0.1:0", and returns the endpoint's
// URL. Requests are not authenticated.
func (e *Engine) Listen(addr string) (string, error) {
	e.serverMu.Lock()
	defer e.serverMu.Unlock()
	if e.closed {
		return "", errClosed
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return "", listenError(addr, err)
	}
	s := &http.Server{Handler: http.HandlerFunc(e.serveListener), ReadHeaderTimeout: readHeaderTimeout}
	e.servers = append(e.servers, s)
	e.serving.Go(func() {
		_ = s.Serve(l) // always returns http.ErrServerClosed after Close
	})
	return "http://" + l.Addr().String(), nil
}

// serveListener serves a request that came through a listener. Close waits for it: closing the server ends its connections, and so the
// contexts of requests, but does not wait.
func (e *Engine) serveListener(w http.ResponseWriter, r *http.Request) {
	e.serverMu.Lock()
	if e.closed {
		e.serverMu.Unlock()
		abort(w)
		return
	}
	e.serving.Add(1)
	e.serverMu.Unlock()
	defer e.serving.Done()
	e.ServeHTTP(w, r)
}
