package table

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// described answers DescribeTable.
type described struct {
	Client
	table *types.TableDescription
	err   error
	calls int
}

func (d *described) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	d.calls++
	return &dynamodb.DescribeTableOutput{Table: d.table}, d.err
}

// waiting answers once it is told to.
type waiting struct {
	described
	answer chan struct{}
}

func (w *waiting) DescribeTable(ctx context.Context, _ *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	w.calls++
	select {
	case <-w.answer:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &dynamodb.DescribeTableOutput{Table: w.table}, w.err
}

func TestReplicated_ConcurrentCallsShareARequest(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		err, want    error
		first, other bool // whose context ends before the answer
		calls        int
	}{
		"answer": {calls: 1}, "error": {err: broken, want: broken, calls: 1}, "no table": {err: &types.ResourceNotFoundException{}, want: ErrNoTable, calls: 1},
		"the first is cancelled": {first: true, calls: 2}, "another is cancelled": {other: true, calls: 1},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := &waiting{described: described{table: &types.TableDescription{}, err: c.err}, answer: make(chan struct{})}
			tbl, err := Open(w, Schema{Name: "app"})
			require.NoError(t, err)
			var errs [3]error
			var all sync.WaitGroup
			for i := range errs {
				ctx, cancel := context.WithCancel(t.Context())
				all.Go(func() { _, errs[i] = tbl.Replicated(ctx) })
				defer cancel()
				synctest.Wait()
				if i == 0 && c.first || i == 1 && c.other {
					time.AfterFunc(time.Second, cancel)
				}
			}
			time.Sleep(2 * time.Second)
			close(w.answer)
			all.Wait()
			for i, err := range errs {
				if i == 0 && c.first || i == 1 && c.other {
					require.ErrorIs(t, err, context.Canceled)
				} else {
					require.ErrorIs(t, err, c.want)
				}
			}
			assert.Equal(t, c.calls, w.calls)
		})
	}
}

func TestReplicated_TellsGlobalTables(t *testing.T) {
	for name, c := range map[string]struct {
		table *types.TableDescription
		want  bool
	}{
		"one region":          {&types.TableDescription{}, false},
		"global table":        {&types.TableDescription{Replicas: []types.ReplicaDescription{{RegionName: ptr("eu-west-1")}}}, true},
		"legacy global table": {&types.TableDescription{GlobalTableVersion: ptr("2017.11.29")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := &described{table: c.table}
			tbl, err := Open(d, Schema{Name: "app"})
			require.NoError(t, err)
			for range 2 {
				got, err := tbl.Replicated(t.Context())
				require.NoError(t, err)
				assert.Equal(t, c.want, got)
			}
			assert.Equal(t, 1, d.calls, "the answer is remembered")
			assert.Empty(t, tbl.Region(), "this client does not say")
		})
	}

	missing, err := Open(&described{err: &types.ResourceNotFoundException{}}, Schema{Name: "app"})
	require.NoError(t, err)
	_, err = missing.Replicated(t.Context())
	require.ErrorIs(t, err, ErrNoTable)

	broken := errors.New("broken")
	failing, err := Open(&described{err: broken}, Schema{Name: "app"})
	require.NoError(t, err)
	_, err = failing.Replicated(t.Context())
	require.ErrorIs(t, err, broken)

	unknown, err := missing.Estimate(t.Context())
	require.ErrorIs(t, err, ErrNoTable)
	assert.Zero(t, unknown)

	real, err := Open(dynamodb.New(dynamodb.Options{Region: "eu-central-1"}), Schema{Name: "app"})
	require.NoError(t, err)
	assert.Equal(t, "eu-central-1", real.Region())
}
