package toolkit_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/internal/toolkit"
)

func TestClaim_IsPerTable(t *testing.T) {
	mine, other := &inside.Names{}, &inside.Names{}
	assert.False(t, toolkit.Claimed(mine, toolkit.Lock))
	toolkit.Claim(mine, toolkit.Lock, toolkit.Session)
	toolkit.Claim(mine, toolkit.Lock)
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
