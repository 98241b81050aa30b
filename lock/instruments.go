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

// path is how a lock came to its holder.
type path string

const (
	pathFree       path = "free"
	pathTakenOver  path = "taken_over"
	pathHandedOver path = "handed_over"
)

// Attributes of measurements. All have few values, none of them the application's.
const (
	keyPath      = attribute.Key("mortise.lock.path")
	keyLoss      = attribute.Key("mortise.lock.loss")
	keyOperation = attribute.Key("mortise.lock.capacity")
	keyError     = attribute.Key("error.type") // of the semantic conventions, with its fallback
	errorOther   = "_OTHER"
)

// instruments measure what a client does. All methods do nothing on nil, which is what a
// client without a MeterProvider has.
type instruments struct {
	acquisitions, failures, releases, failedReleases, exhausted, failedRenewals, losses, revocations metric.Int64Counter

	waits, holds, remaining metric.Float64Histogram

	usage        table.Usage  // of all requests of the client
	repeated     atomic.Int64 // requests, besides those that the table has repeated itself
	registration metric.Registration
}

// maker registers instruments, and keeps the first error.
type maker struct {
	meter metric.Meter
	err   error
}

func made[T any](m *maker, instrument T, err error) T {
	if m.err == nil {
		m.err = err
	}
	return instrument
}

func (m *maker) counter(name, unit, description string) metric.Int64Counter {
	i, err := m.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	return made(m, i, err)
}

func (m *maker) seconds(name, description string, bounds ...float64) metric.Float64Histogram {
	i, err := m.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
	return made(m, i, err)
}

func (m *maker) gauge(name, description string) metric.Float64ObservableGauge {
	i, err := m.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(description))
	return made(m, i, err)
}

func (m *maker) total(name, unit, description string) metric.Int64ObservableCounter {
	i, err := m.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	return made(m, i, err)
}

// newInstruments registers the synchronous instruments; observe adds the others.
func newInstruments(m *maker) *instruments {
	return &instruments{
		acquisitions:   m.counter("mortise.lock.acquisitions", "{lock}", "Locks acquired"),
		failures:       m.counter("mortise.lock.acquisition.failures", "{acquisition}", "Calls that did not acquire"),
		releases:       m.counter("mortise.lock.releases", "{lock}", "Locks given up"),
		failedReleases: m.counter("mortise.lock.release.failures", "{release}", "Attempts to give up a lock that failed"),
		exhausted:      m.counter("mortise.lock.retries.exhausted", "{operation}", "Operations that failed after the last retry"),
		failedRenewals: m.counter("mortise.lock.renewal.failures", "{request}", "Renewals that failed"),
		losses:         m.counter("mortise.lock.losses", "{lock}", "Locks lost by their holder"),
		revocations:    m.counter("mortise.lock.revocations", "{lock}", "Locks asked back"),
		waits: m.seconds("mortise.lock.wait.duration", "From asking for a lock to the answer",
			.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300),
		holds: m.seconds("mortise.lock.hold.duration", "From acquiring a lock to its release or loss",
			.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600),
		remaining: m.seconds("mortise.lock.renewal.remaining", "What was left of the lease when a renewal succeeded",
			.1, .25, .5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 60, 300, 1800),
	}
}

// measure sets up what the Config's MeterProvider asks for. It is the last step of New.
func (c *Client) measure(i *instruments, m *maker) error {
	if i == nil {
		return nil
	}
	skew := m.gauge("mortise.lock.clock.skew", "How far the local clock is behind DynamoDB's for certain")
	session := m.gauge("mortise.lock.session.remaining", "Until the session ends unless renewed")
	held, err := m.meter.Int64ObservableUpDownCounter("mortise.lock.held", metric.WithUnit("{lock}"), metric.WithDescription("Locks held now"))
	held = made(m, held, err)
	retries := m.total("mortise.lock.retries", "{request}", "Requests sent again")
	requests := m.total("mortise.lock.requests", "{request}", "Requests sent")
	units, err := m.meter.Float64ObservableCounter("mortise.lock.consumed_capacity", metric.WithUnit("{unit}"), metric.WithDescription("Capacity units consumed"))
	units = made(m, units, err)
	if m.err != nil {
		return m.err
	}
	read := metric.WithAttributeSet(attribute.NewSet(keyOperation.String("read")))
	write := metric.WithAttributeSet(attribute.NewSet(keyOperation.String("write")))
	i.registration, err = m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		if offset := c.clock.offset(); offset.known {
			by, _ := offset.beyond(0)
			o.ObserveFloat64(skew, by.Seconds())
		}
		if left, ok := c.Remaining(); ok {
			o.ObserveFloat64(session, left.Seconds())
		}
		o.ObserveInt64(held, int64(c.holding()))
		totals := i.usage.Totals()
		o.ObserveInt64(retries, totals.Retries+i.repeated.Load())
		o.ObserveInt64(requests, totals.Requests)
		o.ObserveFloat64(units, totals.ReadUnits, read)
		o.ObserveFloat64(units, totals.WriteUnits, write)
		return nil
	}, skew, session, held, retries, requests, units)
	return err
}

// holding is how many leases go on. Those that were lost are known until somebody releases them.
func (c *Client) holding() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.leases {
		if l.over.Load() != isOver {
			n++
		}
	}
	return n
}

// stop ends the observation of a client that was closed.
func (i *instruments) stop() {
	if i != nil && i.registration != nil {
		_ = i.registration.Unregister() // whatever it says, nobody can do anything about it
	}
}

func attributes(list ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(list...))
}

// asked tells how a call that asks for a lock has ended.
func (i *instruments) asked(ctx context.Context, took time.Duration, err error) {
	if i == nil {
		return
	}
	waited := took.Seconds()
	if err == nil {
		i.waits.Record(ctx, waited)
		return
	}
	why := attributes(keyError.String(errorType(ctx, err)))
	i.waits.Record(ctx, waited, why)
	i.failures.Add(ctx, 1, why)
}

func (i *instruments) acquired(l *Lease) {
	if i != nil {
		i.acquisitions.Add(l.ctx, 1, attributes(keyPath.String(string(l.path))))
	}
}

func (i *instruments) released(l *Lease) {
	if i != nil && !l.began.IsZero() {
		i.releases.Add(l.ctx, 1)
	}
}

func (i *instruments) releaseFailed(ctx context.Context, err error) {
	if i != nil && err != nil {
		i.failedReleases.Add(ctx, 1, attributes(keyError.String(errorType(ctx, err))))
	}
}

// held tells that a lease is not held any more; the first time counts.
func (i *instruments) held(l *Lease) {
	if i != nil && !l.began.IsZero() && l.measured.CompareAndSwap(false, true) {
		i.holds.Record(l.ctx, l.client.clock.ago(l.began).Seconds())
	}
}

func (i *instruments) lost(l *Lease, cause error) {
	if i == nil {
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
	i.losses.Add(l.ctx, 1, attributes(keyLoss.String(loss)))
}

func (i *instruments) revoked(l *Lease) {
	if i != nil {
		i.revocations.Add(l.ctx, 1)
	}
}

// renewed tells of a renewal that succeeded with so much of the lease left.
func (i *instruments) renewed(ctx context.Context, left time.Duration) {
	if i != nil {
		i.remaining.Record(ctx, left.Seconds())
	}
}

func (i *instruments) renewalFailed(ctx context.Context, err error) {
	if i != nil {
		// Its own timeout is no end of the caller's context: an answer that did not come.
		why := errorType(ctx, err)
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			why = "unreachable"
		}
		i.failedRenewals.Add(ctx, 1, attributes(keyError.String(why)))
	}
}

// again tells of a request that is sent again.
func (i *instruments) again() {
	if i != nil {
		i.repeated.Add(1)
	}
}

// gaveUp tells of an operation that is not tried again although that would be worth it.
func (i *instruments) gaveUp(ctx context.Context) {
	if i != nil {
		i.exhausted.Add(ctx, 1)
	}
}

// errorType classes errors, those first that say more.
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
