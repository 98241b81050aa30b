package lock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// An owner that another program has written does not fill logs.
func TestHeldError_TextIsBounded(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Update(l.Key(), table.Attr("owner").Set(strings.Repeat("x", 100_000)))))
		_, err = w.client(lock.Config{}).TryAcquire(ctx, lock.Name("report"))
		require.ErrorIs(t, err, lock.ErrHeld)
		assert.Less(t, len(err.Error()), lock.MaxOwner+200)
	})
}
