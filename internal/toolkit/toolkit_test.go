package toolkit_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/table"
)

func TestTypesAreClaimedPerTable(t *testing.T) {
	open := func() *table.Table {
		tbl, err := table.Open(dynamodb.NewFromConfig(aws.Config{Region: "us-east-1"}), table.Schema{Name: "app"})
		require.NoError(t, err)
		return tbl
	}
	mine, other := open(), open()
	assert.False(t, toolkit.Claimed(mine, toolkit.Lock))
	require.NoError(t, toolkit.Claim(mine, toolkit.Lock, toolkit.Session))
	require.NoError(t, toolkit.Claim(mine, toolkit.Lock))
	assert.True(t, toolkit.Claimed(mine, toolkit.Lock))
	assert.True(t, toolkit.Claimed(mine, toolkit.Session))
	assert.False(t, toolkit.Claimed(mine, toolkit.Migration))
	assert.False(t, toolkit.Claimed(other, toolkit.Lock))
	// An application cannot: its own value under that name is none.
	require.NoError(t, other.Register("claim of "+toolkit.Lock, struct{}{}, func(string, any) error { return nil }))
	assert.False(t, toolkit.Claimed(other, toolkit.Lock))
	assert.True(t, toolkit.Has(toolkit.Unique+"User.email"))
	assert.False(t, toolkit.Has("Lock"))
	assert.False(t, toolkit.Has("mortise"))
}
