package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A try that removes a dead holder has taken over, also where it cannot just replace the holder's ticket.
func TestMetrics_TryTakesOverFromSeveral(t *testing.T) {
	for name, opts := range map[string][]lock.Option{"a holder and a waiter": nil, "permits": {lock.Permits(2)}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way := &line{to: w.engine.HTTPClient()}
				for range 2 {
					acquireAsync(ctx, w.clientOver(way, quiet), lock.Name("report"), opts...)
					time.Sleep(time.Second)
				}
				way.cut(refused)
				time.Sleep(time.Hour)
				r := newRecorder()
				c := w.client(lock.Config{MeterProvider: r})
				r.take(ctx)
				_, err := c.TryAcquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				assert.Equal(t, []float64{1}, r.take(ctx)["acquisitions taken_over"])
				way.cut(open)
			})
		})
	}
}

// Close goes on if it cannot delete the session's row. That is no failed renewal.
func TestMetrics_CloseRenewsNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		r := newRecorder()
		c := w.client(lock.Config{MeterProvider: r})
		r.take(ctx)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "DeleteItem"})
		require.NoError(t, c.Close(ctx))
		assert.Empty(t, r.take(ctx))
	})
}

// An instance that waits while another one makes the run has not failed.
func TestMetrics_WaitForTheRunOfAnotherIsNoFailure(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		r := newRecorder()
		first, second := w.client(quiet), w.client(lock.Config{MeterProvider: r})
		r.take(ctx)
		bounded, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		run := func(c *lock.Client) {
			err := c.Every(bounded, lock.Name("job"), time.Hour, func(context.Context, *lock.Lease, time.Time) error {
				time.Sleep(10 * time.Second)
				return nil
			})
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		}
		go run(first)
		time.Sleep(time.Second)
		run(second)
		m := r.take(ctx)
		assert.Len(t, m["wait.duration"], 1)
		assert.NotContains(t, m, "wait.duration _OTHER")
		assert.NotContains(t, m, "acquisitions waited")
	})
}
