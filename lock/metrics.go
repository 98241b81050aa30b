package lock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/mortise-go/mortise/table"
)

// Attributes of measurements. Each has few values, and no value comes from the application.
const (
	keyPath     = attribute.Key("mortise.lock.path")
	keyLoss     = attribute.Key("mortise.lock.loss")
	keyCapacity = attribute.Key("mortise.lock.capacity")
	keyError    = attribute.Key("error.type") // from the semantic conventions of OpenTelemetry, as errorOther is
	errorOther  = "_OTHER"
)

type counter int

const (
	acquisitions counter = iota
	releases
	failedReleases
	failedRenewals
	losses
	revocations
	counters // their number
)

type timing int

const (
	waitDuration timing = iota
	holdDuration
	renewalRemaining
	timings // their number
)

// metrics measure what a client does; nil without a MeterProvider.
type metrics struct {
	counters     [counters]metric.Int64Counter
	timings      [timings]metric.Float64Histogram
	registration metric.Registration // of the callback that reads gauges and totals when measurements are collected
}

// newMetrics makes the instruments of a client. REFERENCE.md describes them.
func newMetrics(c *Client) (*metrics, error) {
	if c.config.MeterProvider == nil {
		return nil, nil
	}
	const prefix = "mortise.lock."
	m, meter := &metrics{}, c.config.MeterProvider.Meter("github.com/mortise-go/mortise/lock")
	var failed, err error
	for which, x := range [counters]struct{ name, unit, means string }{
		acquisitions:   {"acquisitions", "{lock}", "Locks acquired"},
		releases:       {"releases", "{lock}", "Locks given up"},
		failedReleases: {"release.failures", "{release}", "Attempts to give up a lock that failed"},
		failedRenewals: {"renewal.failures", "{request}", "Renewals that failed"},
		losses:         {"losses", "{lock}", "Locks lost by their holder"},
		revocations:    {"revocations", "{lock}", "Requests of others to release a lock (Revoke)"},
	} {
		m.counters[which], err = meter.Int64Counter(prefix+x.name, metric.WithUnit(x.unit), metric.WithDescription(x.means))
		failed = cmp.Or(failed, err)
	}
	for which, x := range [timings]struct {
		name, means string
		bounds      []float64
	}{
		waitDuration:     {"wait.duration", "From asking for a lock to the answer", []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}},
		holdDuration:     {"hold.duration", "From acquiring a lock to its release or loss", []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600}},
		renewalRemaining: {"renewal.remaining", "What was left of the lease when a renewal succeeded", []float64{.1, .25, .5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 60, 300, 1800}},
	} {
		m.timings[which], err = meter.Float64Histogram(prefix+x.name, metric.WithUnit("s"), metric.WithDescription(x.means), metric.WithExplicitBucketBoundaries(x.bounds...))
		failed = cmp.Or(failed, err)
	}
	gauge := func(name, means string) metric.Float64Observable {
		i, err := meter.Float64ObservableGauge(prefix+name, metric.WithUnit("s"), metric.WithDescription(means))
		failed = cmp.Or(failed, err)
		return i
	}
	total := func(name, unit, means string) metric.Float64Observable {
		i, err := meter.Float64ObservableCounter(prefix+name, metric.WithUnit(unit), metric.WithDescription(means))
		failed = cmp.Or(failed, err)
		return i
	}
	skew := gauge("clock.skew", "How far the local clock is behind DynamoDB's for certain")
	remaining := gauge("session.remaining", "Until the session ends unless renewed")
	requests, retries := total("requests", "{request}", "Requests sent"), total("retries", "{request}", "Requests sent again")
	units := total("consumed_capacity", "{unit}", "Capacity units consumed")
	held, err := meter.Int64ObservableUpDownCounter(prefix+"held", metric.WithUnit("{lock}"), metric.WithDescription("Locks held now"))
	if failed = cmp.Or(failed, err); failed != nil {
		return nil, failed
	}
	m.registration, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		if behind, ok := c.clk().Behind(); ok {
			o.ObserveFloat64(skew, behind.Seconds())
		}
		if left, ok := c.Remaining(); ok {
			o.ObserveFloat64(remaining, left.Seconds())
		}
		o.ObserveInt64(held, int64(len(c.tickets.leases(func(l *Lease) bool { return !l.is().Ended() }))))
		totals := c.usage.Totals()
		o.ObserveFloat64(requests, float64(totals.Requests))
		o.ObserveFloat64(retries, float64(totals.Retries+c.repeater.Repeated.Load()))
		o.ObserveFloat64(units, totals.ReadUnits, metric.WithAttributes(keyCapacity.String("read")))
		o.ObserveFloat64(units, totals.WriteUnits, metric.WithAttributes(keyCapacity.String("write")))
		return nil
	}, skew, remaining, held, requests, retries, units)
	return m, err
}

func (m *metrics) stop() {
	if m != nil {
		_ = m.registration.Unregister() // nobody can do anything about an error
	}
}

func (m *metrics) count(ctx context.Context, which counter, of ...attribute.KeyValue) {
	if m != nil {
		m.counters[which].Add(ctx, 1, metric.WithAttributes(of...))
	}
}

func (m *metrics) record(ctx context.Context, which timing, d time.Duration, of ...attribute.KeyValue) {
	if m != nil {
		m.timings[which].Record(ctx, d.Seconds(), metric.WithAttributes(of...))
	}
}

type class struct {
	is   error
	name string
}

// classOf returns the name of the first class that an error matches, or errorOther.
func classOf(err error, list ...class) string {
	for _, c := range list {
		if errors.Is(err, c.is) {
			return c.name
		}
	}
	return errorOther
}

// lossOf returns the attribute of a lost lock.
func lossOf(cause error) attribute.KeyValue {
	return keyLoss.String(classOf(cause, class{ErrMaxHold, "max_hold"}, class{ErrExpired, "expired"}, class{ErrStolen, "stolen"}))
}

// failureOf returns the attribute of a failure; none if err is nil. A wait of Every that ends since the interval is settled did not fail.
func failureOf(ctx context.Context, err error) []attribute.KeyValue {
	switch {
	case err == nil, errors.Is(err, errSettled):
		return nil
	case ctx.Err() != nil:
		return []attribute.KeyValue{keyError.String("context")}
	}
	return []attribute.KeyValue{keyError.String(classOf(err,
		class{ErrClosed, "closed"},
		class{ErrHeld, "held"},
		class{ErrNotLock, "not_lock"},
		class{ErrMalformed, "malformed"},
		class{ErrMultiRegion, "multi_region"},
		class{ErrInvalid, "invalid"},
		class{ErrLost, "lost"},
		class{table.ErrThrottled, "throttled"},
		class{table.ErrUnreachable, "unreachable"},
		class{context.DeadlineExceeded, "unreachable"}, // the timeout of a single request
	))}
}
