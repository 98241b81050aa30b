package lock_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Helpers whose files others port. The lead removes what is there twice.

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

// deleted is when time to live may delete a row.
func (w *world) deleted(ctx context.Context, key keys.Key) time.Time {
	w.Helper()
	row, err := w.table.Get(ctx, key, true)
	require.NoError(w, err)
	return time.Unix(number(w.T, row["ttl"]), 0)
}

// twice repeats what fails two times, after 100 ms each.
func twice() table.Option {
	return table.WithRetry(table.Retry{Backoff: func() backoff.BackOff {
		return backoff.WithMaxRetries(backoff.NewConstantBackOff(100*time.Millisecond), 2)
	}})
}

// writesTo counts the single writes to a partition since the log was reset.
func (w *world) writesTo(pk string) (n int) {
	for _, r := range w.requestsTo(pk) {
		if r.Operation == "UpdateItem" {
			n++
		}
	}
	return n
}

// forbidding is the way of a process to the table that must not do one operation.
type forbidding struct {
	to        aws.HTTPClient
	operation string
	times     atomic.Int64
}

func (f *forbidding) Do(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+f.operation) {
		return f.to.Do(r)
	}
	f.times.Add(1)
	text := `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"no identity-based policy allows it"}`
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{"X-Amzn-Requestid": {"forbidden"}},
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}, nil
}

// undated is a connection whose answers do not tell the time.
type undated struct{ to aws.HTTPClient }

func (u undated) Do(r *http.Request) (*http.Response, error) {
	resp, err := u.to.Do(r)
	if err == nil {
		resp.Header.Del("Date")
	}
	return resp, err
}

// nosy is a Logger's handler that asks the client about itself: called with one of the
// client's mutexes held it would never return.
type nosy struct {
	slog.Handler
	mu     sync.Mutex
	client *lock.Client
	lease  *lock.Lease
	events []string
}

func (*nosy) Enabled(context.Context, slog.Level) bool { return true }
func (n *nosy) WithAttrs([]slog.Attr) slog.Handler     { return n }

func (n *nosy) Handle(ctx context.Context, r slog.Record) error {
	n.mu.Lock()
	c, l := n.client, n.lease
	n.events = append(n.events, r.Level.String()+" "+r.Message)
	n.mu.Unlock()
	if c != nil {
		_ = c.Healthy(ctx)
		c.Remaining()
		// Through the room, the session and a lease.
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, _ = c.Acquire(ended, lock.Name("report"))
	}
	if l != nil {
		l.Remaining()
	}
	return nil
}

// count is how often an event has come.
func (n *nosy) count(event string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(n.events), func(e string) bool { return e != event }))
}

// replicated answers DescribeTable like a global table, and passes everything else on.
type replicated struct {
	table.Client
	requests int
}

func (r *replicated) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	r.requests++
	out, err := r.Client.DescribeTable(ctx, in, opts...)
	if err == nil {
		region := "eu-west-1"
		out.Table.Replicas = []types.ReplicaDescription{{RegionName: &region}}
	}
	return out, err
}

// recorder is a MeterProvider that remembers every measurement: exact values, where an SDK
// would have buckets. What it does not know records nothing, which a test would notice.
type recorder struct {
	noop.MeterProvider

	mu        sync.Mutex
	kinds     map[string][2]string // by name: kind and unit
	scopes    []string
	values    map[string][]float64       // by name and attributes: increments, and what histograms got
	keys      map[string]map[string]bool // by name: attributes seen
	callbacks map[*metric.Callback]bool
}

func newRecorder() *recorder {
	return &recorder{
		kinds: map[string][2]string{}, values: map[string][]float64{}, keys: map[string]map[string]bool{}, callbacks: map[*metric.Callback]bool{},
	}
}

func (r *recorder) Meter(name string, _ ...metric.MeterOption) metric.Meter {
	r.scopes = append(r.scopes, name)
	return &recordingMeter{r: r}
}

type recordingMeter struct {
	noop.Meter
	r *recorder
}

func (r *recorder) register(name, kind, unit string) string {
	r.kinds[name] = [2]string{kind, unit}
	return name
}

func (r *recorder) record(name string, set attribute.Set, value float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := name
	for _, kv := range set.ToSlice() {
		key += " " + kv.Value.AsString()
		if r.keys[name] == nil {
			r.keys[name] = map[string]bool{}
		}
		r.keys[name][string(kv.Key)] = true
	}
	r.values[key] = append(r.values[key], value)
}

type recordingCounter struct {
	noop.Int64Counter
	r    *recorder
	name string
}

func (c recordingCounter) Add(_ context.Context, n int64, opts ...metric.AddOption) {
	config := metric.NewAddConfig(opts)
	c.r.record(c.name, config.Attributes(), float64(n))
}

type recordingHistogram struct {
	noop.Float64Histogram
	r    *recorder
	name string
}

func (h recordingHistogram) Record(_ context.Context, v float64, opts ...metric.RecordOption) {
	config := metric.NewRecordConfig(opts)
	h.r.record(h.name, config.Attributes(), v)
}

type (
	observedGauge struct {
		noop.Float64ObservableGauge
		name string
	}
	observedUnits struct {
		noop.Float64ObservableCounter
		name string
	}
	observedCounter struct {
		noop.Int64ObservableCounter
		name string
	}
	observedUpDown struct {
		noop.Int64ObservableUpDownCounter
		name string
	}
)

func (g observedGauge) called() string   { return g.name }
func (u observedUnits) called() string   { return u.name }
func (c observedCounter) called() string { return c.name }
func (u observedUpDown) called() string  { return u.name }

func (m *recordingMeter) Int64Counter(name string, opts ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return recordingCounter{r: m.r, name: m.r.register(name, "counter", metric.NewInt64CounterConfig(opts...).Unit())}, nil
}

func (m *recordingMeter) Float64Histogram(name string, opts ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return recordingHistogram{r: m.r, name: m.r.register(name, "histogram", metric.NewFloat64HistogramConfig(opts...).Unit())}, nil
}

func (m *recordingMeter) Float64ObservableGauge(name string, opts ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	return observedGauge{name: m.r.register(name, "gauge", metric.NewFloat64ObservableGaugeConfig(opts...).Unit())}, nil
}

func (m *recordingMeter) Float64ObservableCounter(name string, opts ...metric.Float64ObservableCounterOption) (metric.Float64ObservableCounter, error) {
	return observedUnits{name: m.r.register(name, "counter", metric.NewFloat64ObservableCounterConfig(opts...).Unit())}, nil
}

func (m *recordingMeter) Int64ObservableCounter(name string, opts ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	return observedCounter{name: m.r.register(name, "counter", metric.NewInt64ObservableCounterConfig(opts...).Unit())}, nil
}

func (m *recordingMeter) Int64ObservableUpDownCounter(name string, opts ...metric.Int64ObservableUpDownCounterOption) (metric.Int64ObservableUpDownCounter, error) {
	return observedUpDown{name: m.r.register(name, "updowncounter", metric.NewInt64ObservableUpDownCounterConfig(opts...).Unit())}, nil
}

type registration struct {
	noop.Registration
	stop func()
}

func (r registration) Unregister() error {
	r.stop()
	return nil
}

func (m *recordingMeter) RegisterCallback(f metric.Callback, _ ...metric.Observable) (metric.Registration, error) {
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	m.r.callbacks[&f] = true
	return registration{stop: func() {
		m.r.mu.Lock()
		defer m.r.mu.Unlock()
		delete(m.r.callbacks, &f)
	}}, nil
}

type observer struct {
	noop.Observer
	r *recorder
}

func (o observer) ObserveFloat64(i metric.Float64Observable, v float64, opts ...metric.ObserveOption) {
	config := metric.NewObserveConfig(opts)
	o.r.record(i.(interface{ called() string }).called(), config.Attributes(), v)
}

func (o observer) ObserveInt64(i metric.Int64Observable, v int64, opts ...metric.ObserveOption) {
	config := metric.NewObserveConfig(opts)
	o.r.record(i.(interface{ called() string }).called(), config.Attributes(), float64(v))
}

// take returns what was measured since it was called last, and what is observed now, by the
// name without its prefix and the values of attributes.
func (r *recorder) take(ctx context.Context) map[string][]float64 {
	r.mu.Lock()
	callbacks := slices.Collect(maps.Keys(r.callbacks))
	r.mu.Unlock()
	for _, f := range callbacks {
		if err := (*f)(ctx, observer{r: r}); err != nil {
			panic(err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	values := map[string][]float64{}
	for name, list := range r.values {
		values[name[len("mortise.lock."):]] = list
	}
	r.values = map[string][]float64{}
	return values
}
