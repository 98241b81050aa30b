package lock_test

import (
	"context"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// recorder is a MeterProvider that keeps every measurement, with exact values instead of an SDK's buckets. Instruments that
// it does not implement record nothing, which a test would notice.
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

// take returns the measurements since its last call, and the present observations, by name without prefix and by the values
// of attributes.
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
