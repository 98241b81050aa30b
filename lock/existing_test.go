package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// A lock whose row does not exist is not created.
func TestExisting_CreatesNoRow(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(quiet)
				first, err := c.Acquire(ctx, names(2)[0])
				require.NoError(t, err)
				require.NoError(t, first.Release(ctx))
				before, err := w.table.Get(ctx, first.Key(), true)
				require.NoError(t, err)
				for how, take := range takers(c, append(opts, lock.Existing())...) {
					start := time.Now()
					_, err := take(ctx)
					require.ErrorIs(t, err, table.ErrNotFound, how)
					require.NotErrorIs(t, err, lock.ErrHeld, how)
					assert.Less(t, time.Since(start), time.Second, "%s does not wait for a row", how)
					_, err = w.table.Get(ctx, keys.NewKey("LOCK#n01", "LOCK#n01"), true)
					require.ErrorIs(t, err, table.ErrNotFound, how)
					after, err := w.table.Get(ctx, first.Key(), true)
					require.NoError(t, err)
					assert.Equal(t, before, after, "%s: the other row is as it was", how)
				}
			})
		})
	}
}

// If the row exists, the option changes nothing.
func TestExisting_TakesARowThatExists(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.client(quiet), w.client(quiet)
				b, err := other.AcquireAll(ctx, names(2))
				require.NoError(t, err)
				require.NoError(t, b.Release(ctx))
				for how, take := range takers(c, append(opts, lock.Existing())...) {
					release, err := take(ctx)
					require.NoError(t, err, how)
					require.NoError(t, release(ctx), how)

					b, err := other.AcquireAll(ctx, names(2))
					require.NoError(t, err)
					short, cancel := context.WithTimeout(ctx, time.Minute)
					_, err = take(short)
					cancel()
					require.ErrorIs(t, err, lock.ErrHeld, how)
					require.NotErrorIs(t, err, table.ErrNotFound, how)
					require.NoError(t, b.Release(ctx))
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// A waiter for a row that is deleted meanwhile is told, and does not create the row again.
func TestExisting_ReportsThatTheRowWasDeleted(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		c := w.client(quiet)
		ended := make(chan error, 1)
		go func() {
			waiting, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			_, err := c.Acquire(waiting, lock.Name("report"), lock.Existing())
			ended <- err
		}()
		time.Sleep(time.Second)
		require.NoError(t, w.table.Write(ctx, table.Delete(l.Key())))
		require.ErrorIs(t, <-ended, table.ErrNotFound)
		_, err = w.table.Get(ctx, l.Key(), true)
		require.ErrorIs(t, err, table.ErrNotFound)
	})
}

// A campaign for a lock that does not exist ends: nobody may ever make its row.
func TestExisting_EndsLeadAndEvery(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		bounded, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		err := c.Lead(bounded, lock.Name("report"), func(context.Context, *lock.Lease) error { return nil }, lock.Existing())
		require.ErrorIs(t, err, table.ErrNotFound)
		err = c.Every(bounded, lock.Name("report"), time.Minute, func(context.Context, *lock.Lease, time.Time) error { return nil }, lock.Existing())
		require.ErrorIs(t, err, table.ErrNotFound)
	})
}
