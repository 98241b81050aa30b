package lock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
)

// Owns also knows the rows of sessions.
func TestOwns_LocksAndSessions(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, w.put("x")))
		for key, want := range map[keys.Key]bool{l.Key(): true, sessionKey(c): true, w.row("x"): false} {
			item, err := w.table.Get(ctx, key, true)
			require.NoError(t, err)
			assert.Equal(t, want, c.Owns(item), "%v", item)
		}
	})
}
