package table

import (
	"context"
	"errors"
	"testing"

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

	real, err := Open(dynamodb.New(dynamodb.Options{Region: "eu-central-1"}), Schema{Name: "app"})
	require.NoError(t, err)
	assert.Equal(t, "eu-central-1", real.Region())
}
