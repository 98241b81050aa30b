package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

func TestSessions_AreReadByTheIDsOfPlaces(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a := w.cold(lock.Config{Owner: "a", Lease: 8 * time.Second})
		_, err := a.Acquire(ctx, lock.Name("x"))
		require.NoError(w, err)
		seen, err := a.Inspect(ctx, lock.Name("x"))
		require.NoError(w, err)

		list, err := a.Sessions(ctx, "of nobody", seen.Holder().Session)
		require.NoError(w, err)
		require.Len(w, list, 1)
		s := list[0]
		assert.Equal(w, lock.Session{ID: seen.Holder().Session, Owner: "a", Lease: 8 * time.Second, Expires: s.Expires}, s)
		assert.WithinDuration(w, time.Now().Add(s.Lease), s.Expires, 2*time.Second)
		// One question is in the mailbox until the next renewal.
		require.NoError(w, w.cold(lock.Config{Owner: "b"}).Revoke(ctx, lock.Name("x")))
		list, err = a.Sessions(ctx, s.ID)
		require.NoError(w, err)
		assert.Equal(w, 1, list[0].Asked)

		// Somebody marks it dead, as a client does that takes over.
		dead := time.Now().Truncate(time.Millisecond).UTC()
		require.NoError(w, w.table.Write(ctx, table.Update(sessionKey(a), table.Attr("dead").Set(dead.UnixMilli()))))
		list, err = a.Sessions(ctx, s.ID)
		require.NoError(w, err)
		assert.Equal(w, dead, list[0].Dead)

		list, err = a.Sessions(ctx)
		require.NoError(w, err)
		assert.Empty(w, list)
	})
}
