package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// before1970 is the clock of a machine that has lost its time.
var before1970 = table.WithClock(func() time.Time { return time.Now().AddDate(-80, 0, 0) })

// The client opens its session and gets no answer, so that no answer has corrected its clock. The row is in order, and its
// end is past.
func TestClockBefore1970_SessionRowIsInOrder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c, err := lock.New(w.openOver(way, table.Schema{Name: "app"}, before1970),
			lock.Config{Logger: quiet.Logger, HomeRegion: tabletest.Region})
		require.NoError(t, err)
		way.cut(unanswered)
		short, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		_, err = c.Acquire(short, lock.Name("report"))
		require.Error(t, err)

		var rows []session.Row
		for item, err := range w.table.Scan(ctx, table.Scan{}) {
			require.NoError(t, err)
			row, err := session.NamesOf(w.table.Scheme(), "").Parse(item)
			require.NoError(t, err)
			assert.Positive(t, number(t, item["ttl"]))
			rows = append(rows, row)
		}
		require.Len(t, rows, 1)
		assert.Positive(t, rows[0].Expires)
		assert.Less(t, rows[0].Expires, time.Now().UnixMilli())
		require.NoError(t, c.Close(ctx))
	})
}

// No answer tells the time either: the lock's row is in order for everybody else.
func TestClockBefore1970_LockRowIsInOrder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		for name, opts := range map[string][]lock.Option{"session": nil, "fixed": {lock.Fixed(time.Minute)}} {
			c, err := lock.New(w.openOver(undated{w.engine.HTTPClient()}, table.Schema{Name: "app"}, before1970),
				lock.Config{Logger: quiet.Logger, HomeRegion: tabletest.Region})
			require.NoError(t, err)
			other := w.client(lock.Config{Logger: quiet.Logger, Expiry: lock.ObservedOnly}) // the end of the Fixed lease is past by its clock
			l, err := c.Acquire(ctx, lock.Name(name), opts...)
			require.NoError(t, err, name)
			_, err = other.TryAcquire(ctx, lock.Name(name))
			require.ErrorIs(t, err, lock.ErrHeld, name)
			require.NoError(t, l.Write(ctx, w.count(name)))
			require.NoError(t, l.Release(ctx))
			o, err := other.TryAcquire(ctx, lock.Name(name))
			require.NoError(t, err, name)
			assert.Greater(t, o.Fence(), l.Fence(), name)
			require.NoError(t, c.Close(ctx))
		}
	})
}

// The row of a session tells when it was marked as dead by the time of DynamoDB, not by the clock of the client that did.
func TestClockBefore1970_MarksDeadInOrder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		dying, heir := w.clientOver(way, quiet), w.client(quiet, before1970)
		_, err := dying.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		id := lock.SessionID(dying)
		way.cut(refused)
		_, err = heir.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		list, err := heir.Sessions(ctx, id)
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.WithinDuration(t, time.Now(), list[0].Dead, 5*time.Second)
	})
}
