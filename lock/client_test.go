package lock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

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

func TestHomeRegion_IsNeededInAMultiRegionTable(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		client := &replicated{Client: w.sdk(w.engine.HTTPClient())}
		tbl, err := table.Open(client, table.Schema{Name: "app"})
		require.NoError(t, err)
		c, err := lock.New(tbl, lock.Config{})
		require.NoError(t, err)
		for _, opts := range [][]lock.Option{nil, {lock.Fixed(time.Minute)}} {
			_, err = c.Acquire(ctx, lock.Name("report"), opts...)
			require.ErrorIs(t, err, lock.ErrMultiRegion)
			_, err = c.TryAcquire(ctx, lock.Name("report"), opts...)
			require.ErrorIs(t, err, lock.ErrMultiRegion)
		}
		assert.Equal(t, 1, client.requests)
		_, err = c.Inspect(ctx, lock.Name("report"))
		require.ErrorIs(t, err, table.ErrNotFound, "nothing was written")

		home, err := lock.New(w.open(), lock.Config{HomeRegion: w.table.Region()})
		require.NoError(t, err)
		l, err := home.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		require.NoError(t, home.Close(ctx))
		require.NoError(t, c.Close(ctx))

		_, err = lock.New(w.open(), lock.Config{HomeRegion: "mars-north-1"})
		require.ErrorIs(t, err, lock.ErrInvalid)
		assert.ErrorContains(t, err, "HomeRegion")
	})
}

// An operator's client is in another region than the holder, as by the region of its profile. Its write would overwrite the row at home.
func TestHomeRegion_IsNeededByAnOperator(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		tbl, err := table.Open(&replicated{Client: w.sdk(w.engine.HTTPClient())}, table.Schema{Name: "app"})
		require.NoError(t, err)
		operator, err := lock.New(tbl, quiet)
		require.NoError(t, err)
		for name, err := range map[string]error{
			"force":       operator.ForceRelease(ctx, l.Target(), l.Ticket()),
			"revoke":      operator.Revoke(ctx, l.Target()),
			"set permits": operator.SetPermits(ctx, l.Target(), 3),
		} {
			require.ErrorIs(t, err, lock.ErrMultiRegion, name)
		}
		time.Sleep(time.Minute)
		assert.NoError(t, l.Context().Err())
		assert.NoError(t, l.Write(ctx, w.put("x")))
		require.NoError(t, operator.Close(ctx))
	})
}

// denied may not describe tables.
type denied struct{ table.Client }

func (denied) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return nil, &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not allowed"}
}

func TestHomeRegion_IsNamedToACallerWithoutPermissionToAsk(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		tbl, err := table.Open(&denied{w.sdk(w.engine.HTTPClient())}, table.Schema{Name: "app"})
		require.NoError(t, err)
		c, err := lock.New(tbl, lock.Config{})
		require.NoError(t, err)
		_, err = c.Acquire(ctx, lock.Name("report"))
		require.Error(t, err)
		require.ErrorIs(t, err, table.ErrDenied)
		require.ErrorContains(t, err, "Config.HomeRegion")
		require.NoError(t, c.Close(ctx))
	})
}

// Calls that wait for one answer, which cannot be had, do not ask one after the other.
func TestHomeRegion_CallsThatAskInAnOutageEndTogether(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c, err := lock.New(w.openOver(way, table.Schema{Name: "app"}), quiet)
		require.NoError(t, err)
		way.cut(refused)
		start := time.Now()
		var all sync.WaitGroup
		for _, target := range names(30) {
			all.Go(func() { assert.Error(t, errOf(c.TryAcquire(ctx, target))) })
		}
		all.Wait()
		assert.Less(t, time.Since(start), 30*time.Second)
		require.NoError(t, c.Close(ctx))
	})
}
