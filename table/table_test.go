package table_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestOpen_RefusesANilClient(t *testing.T) {
	var typed *dynamodb.Client
	var none table.Client
	for name, client := range map[string]table.Client{"nil": none, "nil pointer": typed} {
		_, err := table.Open(client, table.Schema{Name: "app"})
		require.ErrorIs(t, err, table.ErrInvalid, name)
		assert.EqualError(t, err, "table: open: invalid request: nil client", name)
	}
}

func TestOpen_RefusesANilOption(t *testing.T) {
	_, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"}, nil)
	require.ErrorIs(t, err, table.ErrInvalid)
}

func TestTable_RefusesANilContextBeforeAnythingIsSent(t *testing.T) {
	client := dynamodb.NewFromConfig(config(), func(o *dynamodb.Options) { o.HTTPClient = counting{t} })
	tbl, err := table.Open(client, table.Schema{Name: "app"})
	require.NoError(t, err)
	var usage table.Usage
	tbl = tbl.Metered(&usage)
	calls := allCalls(tbl)
	calls["verify"] = tbl.Verify
	calls["replicated"] = func(ctx context.Context) error { _, err := tbl.Replicated(ctx); return err }
	calls["estimate"] = func(ctx context.Context) error { _, err := tbl.Estimate(ctx); return err }
	calls["apply"] = func(ctx context.Context) error {
		_, err := tbl.Apply(ctx, table.Delete(key("p", "s")), table.ReturnOld)
		return err
	}
	for _, derive := range []func(context.Context) context.Context{
		func(ctx context.Context) context.Context { return ctx },
		table.WithoutRetry,
		func(ctx context.Context) context.Context { ctx, _ = table.WithUsage(ctx); return ctx },
	} {
		for name, call := range calls {
			var none context.Context
			err := call(derive(none))
			require.ErrorIs(t, err, table.ErrInvalid, name)
			assert.ErrorContains(t, err, "nil context", name)
		}
	}
	assert.Zero(t, usage.Totals())
}
