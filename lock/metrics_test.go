package lock_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// twice repeats what fails two times, after 100 ms each.
func twice() table.Option {
	return table.WithRetry(table.Retry{Backoff: func() backoff.BackOff {
		return backoff.WithMaxRetries(backoff.NewConstantBackOff(100*time.Millisecond), 2)
	}})
}

// Every registered instrument is driven, with exact values, and the table in REFERENCE.md lists it.
func TestMetrics_EachInstrumentHasExactValues(t *testing.T) {
	r := newRecorder()
	config := lock.Config{MeterProvider: r}
	report := lock.Name("report")
	t.Run("acquire and release", func(t *testing.T) {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.coldClient(config)
			l, err := c.Acquire(ctx, report)
			require.NoError(t, err)
			time.Sleep(3 * time.Second)
			assert.Equal(t, map[string][]float64{
				"acquisitions free": {1}, "wait.duration": {0}, "held": {1}, "session.remaining": {16.8}, "clock.skew": {0},
				"requests": {2}, "retries": {0}, "consumed_capacity read": {0}, "consumed_capacity write": {2},
			}, r.take(ctx))
			require.NoError(t, l.Write(ctx, w.put("x")))
			require.NoError(t, l.Release(ctx))
			require.NoError(t, l.Release(ctx))
			_, err = c.Inspect(ctx, report)
			require.NoError(t, err)
			assert.Equal(t, map[string][]float64{
				"releases": {1}, "hold.duration": {3}, "held": {0}, "session.remaining": {16.8}, "clock.skew": {0},
				"requests": {5}, "retries": {0}, "consumed_capacity read": {1}, "consumed_capacity write": {7},
			}, r.take(ctx))
			require.NoError(t, c.Close(ctx))
			assert.Empty(t, r.take(ctx), "a closed client is not observed")
			_, err = c.Acquire(ctx, report)
			require.ErrorIs(t, err, lock.ErrClosed)
			assert.Equal(t, map[string][]float64{"wait.duration closed": {0}}, r.take(ctx))
		})
	})
	// measured leaves out observed values.
	measured := func(ctx context.Context) map[string][]float64 {
		m := r.take(ctx)
		for _, name := range []string{"held", "session.remaining", "clock.skew", "requests", "retries", "consumed_capacity read", "consumed_capacity write"} {
			delete(m, name)
		}
		return m
	}
	t.Run("failures", func(t *testing.T) {
		virtual(t, func(ctx context.Context, w *world) {
			l, err := w.client(lock.Config{}).Acquire(ctx, report)
			require.NoError(t, err)
			way := &line{to: w.engine.HTTPClient()}
			c := w.clientOver(way, config, twice())
			r.take(ctx)
			_, err = c.TryAcquire(ctx, report)
			require.ErrorIs(t, err, lock.ErrHeld)
			bounded, cancel := context.WithTimeout(ctx, time.Second)
			_, err = c.Acquire(bounded, report)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			_, err = c.TryAcquire(ctx, lock.Name(""))
			require.ErrorIs(t, err, lock.ErrInvalid)
			require.NoError(t, w.table.Write(ctx, table.Update(l.Key(), table.Attr("fence").Set("x"))))
			_, err = c.TryAcquire(ctx, report)
			require.ErrorIs(t, err, lock.ErrMalformed)
			require.NoError(t, w.table.Write(ctx, table.Put(w.table.KeyItem(l.Key()))))
			_, err = c.TryAcquire(ctx, report)
			require.ErrorIs(t, err, lock.ErrNotLock)
			time.Sleep(time.Millisecond) // the waiter's place is given up in the background
			before := r.take(ctx)
			retries := before["retries"][0]
			way.cut(refused)
			_, err = c.TryAcquire(ctx, lock.Name("other"))
			require.ErrorIs(t, err, table.ErrUnreachable)
			way.cut(open)
			for class, waited := range map[string]float64{"held": 0, "context": 1, "invalid": 0, "malformed": 0, "not_lock": 0} {
				assert.Equal(t, []float64{waited}, before["wait.duration "+class], class)
			}
			after := r.take(ctx)
			assert.InDelta(t, retries+2.5, after["retries"][0], 0.5, "and perhaps one that looks for the ticket, which may be in the line")
			assert.Equal(t, []float64{.3}, after["wait.duration unreachable"])
			assert.Len(t, after, 1+7, "nothing else")
		})
	})
	t.Run("several", func(t *testing.T) {
		virtual(t, func(ctx context.Context, w *world) {
			c, other := w.client(config), w.client(lock.Config{})
			measured(ctx)
			b, err := c.AcquireAll(ctx, names(3))
			require.NoError(t, err)
			assert.Equal(t, map[string][]float64{"acquisitions free": {1, 1, 1}, "wait.duration": {0}}, measured(ctx))
			require.NoError(t, b.Release(ctx))
			measured(ctx)
			_, err = c.AcquireAll(ctx, nil)
			require.ErrorIs(t, err, lock.ErrInvalid)
			assert.Equal(t, map[string][]float64{"wait.duration invalid": {0}}, measured(ctx))
			_, err = other.AcquireAll(ctx, names(3))
			require.NoError(t, err)
			for n := 1; n <= 3; n += 2 { // one is sent like an Acquire, and counts once as well
				bounded, cancel := context.WithTimeout(ctx, time.Second)
				_, err = c.AcquireAll(bounded, names(n))
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				_, err = c.TryAcquireAll(ctx, names(n))
				require.ErrorIs(t, err, lock.ErrHeld)
				assert.Equal(t, map[string][]float64{
					"wait.duration context": {1}, "wait.duration held": {0},
				}, measured(ctx))
			}
		})
	})
	t.Run("paths", func(t *testing.T) {
		virtual(t, func(ctx context.Context, w *world) {
			dead, err := w.client(lock.Config{}).Acquire(ctx, report, lock.Fixed(time.Minute))
			require.NoError(t, err)
			c := w.client(config)
			measured(ctx)
			time.Sleep(dead.Remaining() + 10*time.Second)
			l, err := c.Acquire(ctx, report)
			require.NoError(t, err)
			second := make(chan *lock.Lease)
			go func() {
				l, err := c.Acquire(ctx, report)
				assert.NoError(t, err)
				second <- l
			}()
			time.Sleep(2 * time.Second)
			require.NoError(t, l.Release(ctx))
			require.NoError(t, (<-second).Release(ctx))
			m := measured(ctx)
			delete(m, "renewal.remaining") // of the session, which has jitter
			assert.Equal(t, []float64{1}, m["acquisitions handed_over"])
			assert.Equal(t, []float64{0, 2}, m["wait.duration"])
			assert.Equal(t, []float64{2, 0}, m["hold.duration"])
			assert.Equal(t, []float64{1, 1}, m["releases"])

			holder := w.client(lock.Config{})
			crashed, err := holder.Acquire(ctx, lock.Name("fresh"), lock.Fixed(20*time.Second))
			require.NoError(t, err)
			_, err = c.Acquire(ctx, lock.Name("fresh"))
			require.NoError(t, err)
			assert.Equal(t, []float64{1}, measured(ctx)["acquisitions taken_over"])
			_ = crashed

			// A holder that releases while others wait has not died.
			live, err := holder.Acquire(ctx, lock.Name("live"))
			require.NoError(t, err)
			time.AfterFunc(time.Second, func() { _ = live.Release(ctx) })
			_, err = c.Acquire(ctx, lock.Name("live"))
			require.NoError(t, err)
			assert.Equal(t, []float64{1}, measured(ctx)["acquisitions waited"])
		})
	})
	t.Run("renewals and losses", func(t *testing.T) {
		virtual(t, func(ctx context.Context, w *world) {
			way := &line{to: w.engine.HTTPClient()}
			c := w.clientOver(way, config, twice())
			fixed, err := c.Acquire(ctx, lock.Name("fixed"), lock.Fixed(20*time.Second))
			require.NoError(t, err)
			measured(ctx)
			time.Sleep(4 * time.Second)
			require.NoError(t, fixed.Renew(ctx))
			assert.Equal(t, map[string][]float64{"renewal.remaining": {15.8}}, measured(ctx))
			way.cut(refused)
			require.ErrorIs(t, fixed.Renew(ctx), table.ErrUnreachable)
			require.ErrorIs(t, fixed.Release(ctx), table.ErrUnreachable)
			assert.Equal(t, map[string][]float64{
				"renewal.failures unreachable": {1, 1, 1}, "release.failures unreachable": {1},
			}, measured(ctx))
			way.cut(open)
			require.NoError(t, fixed.Release(ctx))
			assert.Equal(t, map[string][]float64{"releases": {1}, "hold.duration": {4.4}}, measured(ctx))

			overdue, err := c.Acquire(ctx, report, lock.Fixed(time.Minute), lock.MaxHold(time.Second))
			require.NoError(t, err)
			<-overdue.Context().Done()
			synctest.Wait() // measurements and log records come after
			time.Sleep(time.Millisecond)
			assert.Equal(t, map[string][]float64{
				"acquisitions free": {1}, "wait.duration": {0}, "hold.duration": {1}, "losses max_hold": {1}, "releases": {1},
			}, without(measured(ctx), "renewal.remaining"))

			expired, err := c.Acquire(ctx, report, lock.Fixed(10*time.Second))
			require.NoError(t, err)
			<-expired.Context().Done()
			synctest.Wait() // measurements and log records come after
			assert.Equal(t, map[string][]float64{
				"acquisitions free": {1}, "wait.duration": {0}, "hold.duration": {9.9}, "losses expired": {1},
			}, without(measured(ctx), "renewal.remaining"))

			stolen, err := c.Acquire(ctx, lock.Name("stolen"))
			require.NoError(t, err)
			require.NoError(t, w.table.Write(ctx, table.Delete(stolen.Key())))
			require.ErrorIs(t, stolen.Write(ctx, w.put("x")), lock.ErrLost)
			require.ErrorIs(t, stolen.Release(ctx), lock.ErrLost)
			assert.Equal(t, map[string][]float64{
				"acquisitions free": {1}, "wait.duration": {0}, "hold.duration": {0}, "losses stolen": {1}, "release.failures lost": {1},
			}, without(measured(ctx), "renewal.remaining"))
		})
	})
	t.Run("asked to release", func(t *testing.T) {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(config)
			l, err := c.Acquire(ctx, report)
			require.NoError(t, err)
			measured(ctx)
			w.askBack(ctx, c, l)
			<-l.Context().Done()
			synctest.Wait() // measurements and log records come after
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked)
			m := measured(ctx)
			require.Len(t, m["renewal.remaining"], 1)
			assert.InDelta(t, (20-.2)*3/4, m["renewal.remaining"][0], .5, "a quarter of the lease, less jitter")
			assert.Equal(t, map[string][]float64{"revocations": {1}}, without(m, "renewal.remaining"), "it is still held")
			require.NoError(t, l.Release(ctx))
			assert.Equal(t, []float64{1}, measured(ctx)["releases"])
		})
	})
	t.Run("skew", func(t *testing.T) {
		for _, slow := range []time.Duration{time.Hour, -time.Hour} {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.coldClient(config, at(-slow))
				_, err := c.Acquire(ctx, report, lock.Fixed(time.Minute))
				require.NoError(t, err)
				want := slow.Seconds()
				if slow < 0 {
					want++ // DynamoDB's time has whole seconds, rounded down
				}
				assert.Equal(t, []float64{want}, r.take(ctx)["clock.skew"])
			})
		}
	})

	assert.Contains(t, r.scopes, "github.com/mortise-go/mortise/lock")
	documented := documentedInstruments(t)
	for name, kind := range r.kinds {
		row, ok := documented[name]
		require.True(t, ok, "%s is not documented", name)
		assert.Equal(t, [2]string{row[1], row[2]}, kind, name)
		attributes := map[string]bool{}
		if row[3] != "-" {
			attributes[row[3]] = true
		}
		if r.keys[name] == nil {
			r.keys[name] = map[string]bool{}
		}
		assert.Equal(t, attributes, r.keys[name], name)
	}
	assert.Len(t, documented, len(r.kinds), "what is documented is registered")
}

func without(m map[string][]float64, name string) map[string][]float64 {
	delete(m, name)
	return m
}

// askBack asks the holder for the lock, as another process does.
func (w *world) askBack(ctx context.Context, _ *lock.Client, l *lock.Lease) {
	w.Helper()
	require.NoError(w, w.client(quiet).Revoke(ctx, l.Target()))
}

// documentedInstruments are the rows of the reference's table, by name: instrument, kind, unit, attribute, meaning.
func documentedInstruments(t *testing.T) map[string][]string {
	t.Helper()
	doc, err := os.ReadFile("REFERENCE.md")
	require.NoError(t, err)
	rows := map[string][]string{}
	for line := range strings.Lines(string(doc)) {
		if !strings.HasPrefix(line, "| mortise.lock.") {
			continue
		}
		row := strings.Split(strings.Trim(line, "| \n"), " | ")
		require.Len(t, row, 5, line)
		assert.NotContains(t, rows, row[0])
		rows[row[0]] = row
	}
	return rows
}

// New reports an instrument that cannot be created.
func TestMetrics_BrokenMeterProviderIsRefused(t *testing.T) {
	virtual(t, func(_ context.Context, w *world) {
		_, err := lock.New(w.open(), lock.Config{MeterProvider: brokenProvider{}})
		require.ErrorIs(t, err, errBroken)
		require.ErrorContains(t, err, "Config.MeterProvider")
	})
}

var errBroken = errors.New("broken")

type brokenProvider struct{ noop.MeterProvider }

func (brokenProvider) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{} }

type brokenMeter struct{ noop.Meter }

func (brokenMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errBroken
}

func TestMetrics_LostLocksAreNotCountedAsHeld(t *testing.T) {
	for reason, lose := range map[string]func(ctx context.Context, w *world, c *lock.Client, way *line){
		"stolen": func(ctx context.Context, w *world, c *lock.Client, _ *line) {
			require.NoError(w, w.table.Write(ctx, table.Delete(sessionKey(c))))
		},
		"max_hold": func(_ context.Context, _ *world, _ *lock.Client, way *line) { way.cut(refused) }, // it cannot be released
	} {
		t.Run(reason, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				r, config, way := newRecorder(), quiet, &line{to: w.engine.HTTPClient()}
				config.MeterProvider = r
				if reason == "max_hold" {
					config.MaxHold = time.Second
				}
				c := w.clientOver(way, config)
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				assert.Equal(t, []float64{1}, r.take(ctx)["held"])
				lose(ctx, w, c, way)
				<-l.Context().Done()
				synctest.Wait()
				m := r.take(ctx)
				assert.Equal(t, []float64{1}, m["losses "+reason])
				assert.Equal(t, []float64{0}, m["held"])
			})
		})
	}
}

// A lock that was revoked is held until it is released.
func TestMetrics_RevokedLocksAreCountedAsHeld(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		r := newRecorder()
		c := w.client(lock.Config{MeterProvider: r})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.askBack(ctx, w.client(lock.Config{}), l)
		<-l.Context().Done()
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked)
		assert.Equal(t, []float64{1}, r.take(ctx)["held"])
		require.NoError(t, l.Release(ctx))
		assert.Equal(t, []float64{0}, r.take(ctx)["held"])
	})
}

// Metrics tell throttling from other failures, and errors tell the end of the caller's context from both.
func TestMetrics_TellFailuresApart(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		r := newRecorder()
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, lock.Config{MeterProvider: r, Logger: slog.New(slog.DiscardHandler)}, twice())
		r.take(ctx)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle})
		_, err := c.TryAcquire(ctx, lock.Name("report"))
		require.ErrorIs(t, err, table.ErrThrottled)
		w.engine.ClearFaults()
		assert.Len(t, r.take(ctx)["wait.duration throttled"], 1)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(refused)
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.Write(short, w.put("x")), context.DeadlineExceeded)
		require.ErrorIs(t, l.Release(l.Context()), table.ErrUnreachable)
		assert.Equal(t, []float64{1}, r.take(ctx)["release.failures unreachable"], "the release itself has ended the lease's context")
		way.cut(open)
		require.NoError(t, l.Release(ctx))
	})
}

// What is recorded as left before a renewal tells of an outage before it.
func TestMetrics_RenewalRemainingIsLessAfterAnOutage(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		r, way := newRecorder(), &line{to: w.engine.HTTPClient()}
		l, err := w.clientOver(way, lock.Config{MeterProvider: r, Logger: quiet.Logger}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(refused)
		time.Sleep(l.Remaining() - 4*time.Second)
		r.take(ctx)
		way.cut(open)
		time.Sleep(2 * time.Second)
		m := r.take(ctx)
		require.Len(t, m["renewal.remaining"], 1)
		assert.LessOrEqual(t, m["renewal.remaining"][0], 4.0)
	})
}
