package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// While a change of settings is deployed, old and new processes use the same table. docs/how-to/operate.md, Change a setting while old
// processes run, lists which settings may differ then, and what happens if others do. These tests check it.

// other is a client of another deployment: its table has another schema, and its clock is off.
func (w *world) other(schema table.Schema, off time.Duration, config lock.Config) *lock.Client {
	w.Helper()
	schema.Name = "app"
	tbl, err := table.Open(w.sdk(w.engine.HTTPClient()), schema, table.WithClock(func() time.Time { return time.Now().Add(off) }))
	require.NoError(w, err)
	config.Logger = quiet.Logger
	c, err := lock.New(tbl, config)
	require.NoError(w, err)
	w.Cleanup(func() { assert.NoError(w, c.Close(context.Background())) })
	return c
}

// A client whose Skew is smaller, or whose Lease is another one, does not take the lock from a holder that lives, whatever the clocks show.
func TestDeployment_HolderKeepsTheLockWhateverOthersAreSetTo(t *testing.T) {
	for _, off := range []time.Duration{30 * time.Minute, -1500 * time.Millisecond} {
		for _, skew := range []time.Duration{time.Second, time.Hour} {
			for _, opts := range [][]lock.Option{nil, {lock.Fixed(time.Minute)}, {lock.Shared()}} {
				t.Run(fmt.Sprint(off, skew, len(opts)), func(t *testing.T) {
					virtual(t, func(ctx context.Context, w *world) {
						w.guardian = nil
						w.latency(20 * time.Millisecond)
						holder := w.other(table.Schema{}, off, lock.Config{Lease: 20 * time.Second, Skew: skew, Retention: 24 * time.Hour})
						l, err := holder.Acquire(ctx, lock.Name("x"), opts...)
						require.NoError(t, err)
						var waits []<-chan *lock.Lease
						for i, config := range []lock.Config{
							{Lease: time.Second, Skew: time.Second},
							{Lease: time.Minute, Skew: time.Second},
							{Lease: time.Minute, Expiry: lock.ObservedOnly},
							{Lease: time.Second, Skew: time.Hour, Handoffs: -1, Margin: time.Millisecond},
						} {
							c := w.other(table.Schema{}, time.Duration(i-1)*off, config)
							waits = append(waits, acquireAsync(ctx, c, lock.Name("x")))
						}
						try := w.other(table.Schema{}, -off, lock.Config{Lease: time.Second, Skew: time.Second})
						for range 5 {
							time.Sleep(10 * time.Second)
							_, err := try.TryAcquire(ctx, lock.Name("x"))
							require.ErrorIs(t, err, lock.ErrHeld)
							require.NoError(t, l.Renew(ctx))
						}
						require.NoError(t, l.Context().Err())
						require.NoError(t, l.Commit(ctx, w.count("n")))
						for i, next := range waits {
							l := <-next
							require.NotNil(t, l, "waiter %d, in the order of the line", i)
							require.NoError(t, l.Commit(ctx, w.count("n")))
						}
						assert.EqualValues(t, 1+len(waits), w.counted("n"))
					})
				})
			}
		}
	}
}

// A waiter of a deployment with another SessionKey gets the lock from a holder that releases it within a lease. If the holder does not, the
// waiter cannot find out whether it lives, and gets an error that says so.
func TestDeployment_AnotherSessionKeyIsAnError(t *testing.T) {
	for name, opts := range map[string][]lock.Option{"lock": nil, "reader": {lock.Shared()}, "permits": {lock.Permits(2)}} {
		for _, expiry := range []lock.Expiry{lock.RecordedOrObserved, lock.ObservedOnly} {
			t.Run(name+", "+string(expiry), func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					w.guardian = nil
					old := w.other(table.Schema{}, 0, lock.Config{Lease: 20 * time.Second})
					c := w.other(table.Schema{}, 0, lock.Config{Lease: 5 * time.Second, SessionKey: "S2#{id}", Expiry: expiry})
					wants := opts
					if name == "reader" {
						wants = nil
					}
					target := lock.Name("x")
					hold := func() (list []*lock.Lease) {
						for range max(2*len(opts), 1) {
							l, err := old.Acquire(ctx, target, opts...)
							require.NoError(t, err)
							list = append(list, l)
						}
						return list
					}
					held := hold()
					got := acquireAsync(ctx, c, target, wants...)
					for _, l := range held {
						require.NoError(t, l.Release(ctx))
					}
					l := <-got
					require.NotNil(t, l)
					require.NoError(t, l.Release(ctx))

					held = hold()
					_, err := c.Acquire(ctx, target, wants...)
					require.ErrorIs(t, err, lock.ErrMalformed)
					require.ErrorContains(t, err, "Config.SessionKey")
					_, err = c.TryAcquire(ctx, target, wants...)
					require.ErrorIs(t, err, lock.ErrHeld)
					for range 3 { // goroutines of one process
						err = <-outcome(ctx, c, target, wants...)
						require.ErrorIs(t, err, lock.ErrMalformed)
					}
					time.Sleep(time.Minute)
					require.ErrorContains(t, c.Revoke(ctx, target), "Config.SessionKey")
					for _, l := range held {
						require.NoError(t, l.Context().Err())
						require.NoError(t, l.Write(ctx, w.count("n")))
						require.NoError(t, l.Release(ctx))
					}
				})
			})
		}
	}
}

// Clients whose schemes name different attributes for the time to live: DynamoDB deletes a row that somebody holds, since only the other
// client has moved the time that counts. Guarded writes stay exclusive.
func TestDeployment_AnotherTTLAttributeLosesRowsAndNoWrites(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.guardian = nil
		day := 24 * time.Hour
		config := lock.Config{Retention: day, Lease: time.Hour} // with few renewals in two days
		old, c := w.other(table.Schema{}, 0, config), w.other(table.Schema{Keys: keys.Scheme{TTL: "expires_at"}}, 0, config)
		l, err := old.Acquire(ctx, lock.Name("x"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		l, err = c.Acquire(ctx, lock.Name("x"))
		require.NoError(t, err)
		time.Sleep(2 * day)
		w.engine.Sweep()
		_, err = c.Inspect(ctx, lock.Name("x"))
		require.ErrorIs(t, err, table.ErrNotFound)
		next, err := old.TryAcquire(ctx, lock.Name("x"))
		require.NoError(t, err)
		assert.Greater(t, next.Fence(), l.Fence())
		require.ErrorIs(t, l.Write(ctx, w.count("n")), lock.ErrLost)
		require.NoError(t, next.Write(ctx, w.count("n")))
		assert.EqualValues(t, 1, w.counted("n"))
	})
}

// Only some clients have the index: it shows a lock that somebody else holds from the next entry of a client that has it, and leaves out
// free ones. When all clients have it, it is complete.
func TestDeployment_AnIndexThatOnlySomeHave(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.guardian = nil
		old := w.other(table.Schema{}, 0, lock.Config{})
		w.indexed(byTime)
		c := w.other(table.Schema{Indexes: []table.Index{byTime}}, 0, lock.Config{Index: byTime.Name})
		listed := func() (names []string) {
			for r, err := range c.List(ctx, lock.Index()) {
				require.NoError(t, err)
				names = append(names, r.Of)
			}
			return names
		}
		first, err := old.Acquire(ctx, lock.Name("x"))
		require.NoError(t, err)
		assert.Empty(t, listed(), "held by a client without the index")
		got := acquireAsync(ctx, c, lock.Name("x"))
		assert.Equal(t, []string{"x"}, listed())
		require.NoError(t, first.Release(ctx))
		second := <-got
		got = acquireAsync(ctx, old, lock.Name("x"))
		require.NoError(t, second.Release(ctx))
		require.NoError(t, (<-got).Release(ctx))
		assert.Empty(t, listed(), "it is free, and its row is still in the index")
		l, err := c.Acquire(ctx, lock.Name("x"))
		require.NoError(t, err)
		assert.Equal(t, []string{"x"}, listed())
		require.NoError(t, l.Release(ctx))
		item, err := w.table.Get(ctx, l.Key(), true)
		require.NoError(t, err)
		assert.NotContains(t, item, byTime.PK)
	})
}

// Old processes name 3 permits, and new ones 5. A call that is refused takes the number in the error, and tries again.
func TestDeployment_AnotherNumberOfPermits(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.guardian = nil
		follow := func(c *lock.Client, n int) (*lock.Lease, error) {
			l, err := c.Acquire(ctx, lock.Name("x"), lock.Permits(n))
			for other := (*lock.PermitsError)(nil); errors.As(err, &other) && other.Row > 0; {
				l, err = c.Acquire(ctx, lock.Name("x"), lock.Permits(other.Row))
			}
			return l, err
		}
		old, c := w.other(table.Schema{}, 0, lock.Config{}), w.other(table.Schema{}, 0, lock.Config{Lease: time.Minute})
		var held []*lock.Lease
		for range 3 {
			l, err := follow(old, 3)
			require.NoError(t, err)
			held = append(held, l)
		}
		_, err := c.TryAcquire(ctx, lock.Name("x"), lock.Permits(5))
		other := (*lock.PermitsError)(nil)
		require.ErrorAs(t, err, &other)
		assert.Equal(t, lock.PermitsError{Named: 5, Row: 3}, *other)
		waits := acquireAsync(ctx, old, lock.Name("x"), lock.Permits(3))
		require.NoError(t, c.SetPermits(ctx, lock.Name("x"), 5))
		held = append(held, <-waits)
		l, err := follow(old, 3)
		require.NoError(t, err)
		held = append(held, l)
		require.NoError(t, c.SetPermits(ctx, lock.Name("x"), 2))
		got := make(chan *lock.Lease)
		go func() {
			l, err := follow(c, 5)
			assert.NoError(t, err)
			got <- l
		}()
		for i, l := range held {
			require.NoError(t, l.Write(ctx, w.count("n")), "no holder loses its permit")
			require.NoError(t, l.Release(ctx))
			time.Sleep(time.Minute)
			r, err := c.Inspect(ctx, lock.Name("x"))
			require.NoError(t, err)
			assert.Len(t, r.Holders(), max(len(held)-1-i, min(2, len(held)-i)))
		}
		require.NoError(t, (<-got).Release(ctx))
		_, err = old.Acquire(ctx, lock.Name("x"))
		require.ErrorAs(t, err, &other, "and it does not become a lock")
		_, err = old.Acquire(ctx, lock.Name("x"), lock.Shared())
		require.ErrorAs(t, err, &other)
	})
}

// Applications with different prefixes can have locks beside the same row.
func TestDeployment_AnotherPrefixIsAnError(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.guardian = nil
		target := lock.Beside(keys.NewKey("ORDER#1", "ORDER#1"))
		clients := make([]*lock.Client, 3)
		for i, prefix := range []string{"", "a/", "b/"} {
			clients[i] = w.other(table.Schema{Keys: keys.Scheme{Prefix: prefix}}, 0, lock.Config{})
		}
		for i, holder := range clients {
			l, err := holder.Acquire(ctx, target)
			require.NoError(t, err)
			time.Sleep(time.Hour)
			for j, c := range clients {
				if i != j {
					_, err = c.TryAcquire(ctx, target)
					require.ErrorIs(t, err, lock.ErrHeld)
					_, err = c.Acquire(ctx, target)
					require.ErrorIs(t, err, lock.ErrMalformed)
				}
			}
			require.NoError(t, l.Release(ctx))
		}
	})
}
