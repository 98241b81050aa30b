package lock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/mortise-go/mortise/table"
)

// scope is the name under which the instruments are registered.
const scope = "github.com/mortise-go/mortise/lock"

// Attributes of measurements. All have few values, none of them the application's.
const (
	keyPath     = attribute.Key("mortise.lock.path")
	keyLoss     = attribute.Key("mortise.lock.loss")
	keyCapacity = attribute.Key("mortise.lock.capacity")
	keyError    = attribute.Key("error.type") // of the semantic conventions, with its fallback
	errorOther  = "_OTHER"
)

// metrics measure what a client does. All methods do nothing on nil, which is what a client without a MeterProvider has. It is
// an attempt.Observer.
type metrics struct {
	acquisitions, failures, releases, failedReleases, exhausted, failedRenewals, losses, revocations metric.Int64Counter

	waits, holds, remaining metric.Float64Histogram

	meter        metric.Meter
	usage        table.Usage  // of all requests of the client
	repeated     atomic.Int64 // requests, besides those that the table has repeated itself
	registration metric.Registration
}

// failing keeps the first error of making instruments.
type failing struct{ err error }

func made[T any](f *failing, instrument T, err error) T {
	if f.err == nil {
		f.err = err
	}
	return instrument
}

// newMetrics makes the synchronous instruments. It returns nil without a provider. [metrics.observe] adds the others.
func newMetrics(p metric.MeterProvider) (*metrics, error) {
	if p == nil {
		return nil, nil
	}
	var f failing
	meter := p.Meter(scope)
	counter := func(name, unit, description string) metric.Int64Counter {
		i, err := meter.Int64Counter("mortise.lock."+name, metric.WithUnit(unit), metric.WithDescription(description))
		return made(&f, i, err)
	}
	seconds := func(name, description string, bounds ...float64) metric.Float64Histogram {
		i, err := meter.Float64Histogram("mortise.lock."+name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
		return made(&f, i, err)
	}
	return &metrics{
		meter:          meter,
		acquisitions:   counter("acquisitions", "{lock}", "Locks acquired"),
		failures:       counter("acquisition.failures", "{acquisition}", "Calls that did not acquire"),
		releases:       counter("releases", "{lock}", "Locks given up"),
		failedReleases: counter("release.failures", "{release}", "Attempts to give up a lock that failed"),
		exhausted:      counter("retries.exhausted", "{operation}", "Operations that failed after the last retry"),
		failedRenewals: counter("renewal.failures", "{request}", "Renewals that failed"),
		losses:         counter("losses", "{lock}", "Locks lost by their holder"),
		revocations:    counter("revocations", "{lock}", "Locks asked back"),
		waits: seconds("wait.duration", "From asking for a lock to the answer",
			.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300),
		holds: seconds("hold.duration", "From acquiring a lock to its release or loss",
			.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600),
		remaining: seconds("renewal.remaining", "What was left of the lease when a renewal succeeded",
			.1, .25, .5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 60, 300, 1800),
	}, f.err
}

// metricSources are what the asynchronous instruments observe.
type metricSources struct {
	skew      func() (time.Duration, bool) // of the local clock; false where it is not known
	remaining func() (time.Duration, bool) // of the session; false without one
	held      func() int64                 // leases that were neither given up nor lost
}

// observe makes the asynchronous instruments, which are observed until stop.
func (m *metrics) observe(from metricSources) error {
	if m == nil {
		return nil
	}
	var f failing
	describe := metric.WithDescription
	gauge := func(name, description string) metric.Float64ObservableGauge {
		i, err := m.meter.Float64ObservableGauge("mortise.lock."+name, metric.WithUnit("s"), describe(description))
		return made(&f, i, err)
	}
	total := func(name, description string) metric.Int64ObservableCounter {
		i, err := m.meter.Int64ObservableCounter("mortise.lock."+name, metric.WithUnit("{request}"), describe(description))
		return made(&f, i, err)
	}
	skew := gauge("clock.skew", "How far the local clock is behind DynamoDB's for certain")
	session := gauge("session.remaining", "Until the session ends unless renewed")
	retries, requests := total("retries", "Requests sent again"), total("requests", "Requests sent")
	held, err := m.meter.Int64ObservableUpDownCounter("mortise.lock.held", metric.WithUnit("{lock}"), describe("Locks held now"))
	held = made(&f, held, err)
	units, err := m.meter.Float64ObservableCounter("mortise.lock.consumed_capacity", metric.WithUnit("{unit}"), describe("Capacity units consumed"))
	units = made(&f, units, err)
	if f.err != nil {
		return f.err
	}
	read, write := with(keyCapacity, "read"), with(keyCapacity, "write")
	m.registration, err = m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		if behind, ok := from.skew(); ok {
			o.ObserveFloat64(skew, behind.Seconds())
		}
		if left, ok := from.remaining(); ok {
			o.ObserveFloat64(session, left.Seconds())
		}
		o.ObserveInt64(held, from.held())
		totals := m.usage.Totals()
		o.ObserveInt64(retries, totals.Retries+m.repeated.Load())
		o.ObserveInt64(requests, totals.Requests)
		o.ObserveFloat64(units, totals.ReadUnits, read)
		o.ObserveFloat64(units, totals.WriteUnits, write)
		return nil
	}, skew, session, held, retries, requests, units)
	m.registration = made(&f, m.registration, err)
	return f.err
}

// stop ends the observation of a client that was closed.
func (m *metrics) stop() {
	if m != nil && m.registration != nil {
		_ = m.registration.Unregister() // nobody can do anything about an error
	}
}

func with(key attribute.Key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(key.String(value)))
}

// asked counts the end of a call that asks for a lock, or for several.
func (m *metrics) asked(ctx context.Context, took time.Duration, err error) {
	switch {
	case m == nil:
	case err == nil:
		m.waits.Record(ctx, took.Seconds())
	default:
		why := with(keyError, errorType(ctx, err))
		m.waits.Record(ctx, took.Seconds(), why)
		m.failures.Add(ctx, 1, why)
	}
}

// acquired counts a lock that is held now. path is how it came to its holder.
func (m *metrics) acquired(ctx context.Context, path string) {
	if m != nil {
		m.acquisitions.Add(ctx, 1, with(keyPath, path))
	}
}

// released counts a lock that was given up.
func (m *metrics) released(ctx context.Context) {
	if m != nil {
		m.releases.Add(ctx, 1)
	}
}

func (m *metrics) releaseFailed(ctx context.Context, err error) {
	if m != nil && err != nil {
		m.failedReleases.Add(ctx, 1, with(keyError, errorType(ctx, err)))
	}
}

// held records for how long a lock was held. It is called once for each lease.
func (m *metrics) held(ctx context.Context, d time.Duration) {
	if m != nil {
		m.holds.Record(ctx, d.Seconds())
	}
}

func (m *metrics) lost(ctx context.Context, cause error) {
	if m == nil {
		return
	}
	loss := errorOther
	switch {
	case errors.Is(cause, ErrMaxHold):
		loss = "max_hold"
	case errors.Is(cause, ErrExpired):
		loss = "expired"
	case errors.Is(cause, ErrStolen):
		loss = "stolen"
	}
	m.losses.Add(ctx, 1, with(keyLoss, loss))
}

func (m *metrics) revoked(ctx context.Context) {
	if m != nil {
		m.revocations.Add(ctx, 1)
	}
}

// renewed records a renewal that succeeded with so much of the lease left.
func (m *metrics) renewed(ctx context.Context, left time.Duration) {
	if m != nil {
		m.remaining.Record(ctx, left.Seconds())
	}
}

func (m *metrics) renewalFailed(ctx context.Context, err error) {
	if m == nil {
		return
	}
	why := errorType(ctx, err)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) { // the request's own timeout
		why = "unreachable"
	}
	m.failedRenewals.Add(ctx, 1, with(keyError, why))
}

// Repeated counts a request that is sent again.
func (m *metrics) Repeated() {
	if m != nil {
		m.repeated.Add(1)
	}
}

// GaveUp counts an operation that is not tried again, since the table's policy has come to its end.
func (m *metrics) GaveUp(ctx context.Context) {
	if m != nil {
		m.exhausted.Add(ctx, 1)
	}
}

// errorType classes errors. Of several classes that match, the first says most.
func errorType(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "context"
	}
	for _, class := range [...]struct {
		is   error
		name string
	}{
		{ErrClosed, "closed"},
		{ErrHeld, "held"},
		{ErrNotLock, "not_lock"},
		{ErrMalformed, "malformed"},
		{ErrMultiRegion, "multi_region"},
		{ErrInvalid, "invalid"},
		{ErrLost, "lost"},
		{table.ErrThrottled, "throttled"},
		{table.ErrUnreachable, "unreachable"},
		{context.DeadlineExceeded, "unreachable"}, // of a single request
	} {
		if errors.Is(err, class.is) {
			return class.name
		}
	}
	return errorOther
}
