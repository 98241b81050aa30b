package lock_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// timeless is a proxy that removes the date from the first refusal.
type timeless struct {
	to   aws.HTTPClient
	done atomic.Bool
}

func (h *timeless) Do(r *http.Request) (*http.Response, error) {
	ans, err := h.to.Do(r)
	if err == nil && ans.StatusCode == http.StatusBadRequest && !h.done.Swap(true) {
		ans.Header.Del("Date")
	}
	return ans, err
}

// The correction of a fence that began by a wrong clock is repeated, and recognised. It is needed if the acquire is the very
// first request: no request before it asks for the table's replicas or opens a session, and its refusal, for lack of a row,
// does not tell the time.
func TestFence_IsCorrectedThroughFaults(t *testing.T) {
	single := func(ctx context.Context, c *lock.Client, opts ...lock.Option) (*lock.Lease, error) {
		return c.Acquire(ctx, lock.Name("report"), opts...)
	}
	several := func(ctx context.Context, c *lock.Client, opts ...lock.Option) (*lock.Lease, error) {
		b, err := c.AcquireAll(ctx, []lock.Target{lock.Name("report"), lock.Name("other")}, opts...)
		if err != nil {
			return nil, err
		}
		return b.Leases()[0], nil
	}
	for _, acquire := range []func(context.Context, *lock.Client, ...lock.Option) (*lock.Lease, error){single, several} {
		for _, kind := range []tabletest.FaultKind{tabletest.DropReply, tabletest.DropRequest, tabletest.InternalErrorAfter, tabletest.Throttle} {
			for call := range 5 { // 0: none
				for home, opts := range map[string][]lock.Option{"": nil, tabletest.Region: {lock.Fixed(20 * time.Second)}} {
					virtual(t, func(ctx context.Context, w *world) {
						tbl := w.openOver(&timeless{to: w.engine.HTTPClient()}, table.Schema{Name: "app"}, at(-10*365*24*time.Hour))
						c, err := lock.New(tbl, lock.Config{HomeRegion: home})
						require.NoError(t, err)
						defer func() { require.NoError(t, c.Close(context.Background())) }()
						if call > 0 {
							w.engine.Inject(tabletest.Fault{Kind: kind, Call: call})
						}
						w.engine.ResetRequests()
						l, err := acquire(ctx, c, opts...)
						require.NoError(t, err)
						assert.GreaterOrEqual(t, l.Fence(), time.Now().Add(-2*time.Second).UnixMilli(), "%v at call %d", kind, call)
						r, err := c.Inspect(ctx, lock.Name("report"))
						require.NoError(t, err)
						assert.Equal(t, l.Fence(), r.Fence)
					})
				}
			}
		}
	}
}

// A resource outside of the table compares the fence.
func TestFence_ResourceOutsideRefusesOlderHolders(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		row := w.row("report")
		fenced := func(l *lock.Lease) table.Op {
			fence := table.Attr("fence")
			return table.Update(row, fence.Set(l.Fence()), table.Attr("by").Set(l.Fence())).
				If(table.Or(fence.NotExists(), fence.AtMost(l.Fence())))
		}
		stale, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, fenced(stale)))
		time.Sleep(time.Minute)
		fresh, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, fenced(stale)), "the limit of this tier: the new holder has not touched the row yet")
		require.NoError(t, w.table.Write(ctx, fenced(fresh)))
		require.ErrorIs(t, w.table.Write(ctx, fenced(stale)), table.ErrCondition)
	})
}

// A client that does not know DynamoDB's time creates no row: its fence would have to be corrected, and would stay wrong
// should the correction fail.
func TestFence_OfANewRowIsRightAtOnce(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		time.Sleep(8 * 24 * time.Hour)
		w.engine.Sweep()
		_, err = w.table.Get(ctx, l.Key(), true)
		require.ErrorIs(t, err, table.ErrNotFound)

		slow := func() *lock.Client { // by ten years. It does not know before the first answer
			return w.cold(lock.Config{HomeRegion: tabletest.Region}, at(-10*365*24*time.Hour))
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, When: func(r tabletest.Request) bool { return r.Index > 1 && short.Err() == nil }})
		_, err = slow().Acquire(short, lock.Name("report"), lock.Fixed(20*time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		w.engine.ClearFaults()
		var next *lock.Lease
		require.Len(t, w.requests(func() { next, err = slow().TryAcquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second)) }), 2)
		require.NoError(t, err)
		require.Greater(t, next.Fence(), l.Fence())
		require.NoError(t, next.Release(ctx))

		b, err := slow().TryAcquireAll(ctx, names(3), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		for _, one := range b.Leases() {
			require.Greater(t, one.Fence(), l.Fence())
		}
		require.NoError(t, b.Release(ctx))
	})
}

// frozen is a machine that was suspended: its monotonic clock stood still meanwhile.
type frozen struct {
	machine.Real

	by atomic.Int64
}

func (f *frozen) Now() time.Time { return time.Now().Add(-time.Duration(f.by.Load())) }

type frozenClient struct {
	table.Client

	machine *frozen
}

func (c frozenClient) Machine() machine.Machine { return c.machine }

// A machine was suspended for longer than rows are kept. It does not use what it knew of DynamoDB's time before.
func TestFence_AfterASuspension(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		m := &frozen{}
		tbl, err := table.Open(frozenClient{w.sdk(w.engine.HTTPClient()), m}, table.Schema{Name: "app"})
		require.NoError(t, err)
		config := lock.Config{Retention: day, HomeRegion: tabletest.Region}
		suspended, err := lock.New(tbl, config)
		require.NoError(t, err)
		defer func() { require.NoError(t, suspended.Close(ctx)) }()
		l, err := suspended.Acquire(ctx, lock.Name("warm"), lock.Fixed(time.Second))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))

		time.Sleep(day)
		other, err := w.client(config).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
		require.NoError(t, err)
		require.NoError(t, other.Release(ctx))
		time.Sleep(2 * day)
		w.engine.Sweep()
		_, err = w.table.Get(ctx, other.Key(), true)
		require.ErrorIs(t, err, table.ErrNotFound)
		m.by.Store(int64(3 * day))

		next, err := suspended.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
		require.NoError(t, err)
		require.Greater(t, next.Fence(), other.Fence())
		w.engine.Sweep()
		r, err := suspended.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.True(t, r.DeleteAfter.After(time.Now()), "it is held")
		require.NoError(t, next.Release(ctx))
	})
}
