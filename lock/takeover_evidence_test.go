package lock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A waiter that looks once, and then not again for a lease, knows of no renewal since. Its write checks again what it saw,
// and what it finds then begins a new observation.
func TestTakeover_RareLooksTakeNothingFromTheLiving(t *testing.T) {
	for kind, opts := range leases() {
		for how, expiry := range map[string]lock.Expiry{"recorded or observed": lock.RecordedOrObserved, "observed": lock.ObservedOnly} {
			t.Run(kind+"/"+how, func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), opts...)
					require.NoError(t, err)
					renewing, stop := context.WithCancel(ctx)
					renewed := make(chan struct{})
					go func() { // what a session does by itself
						defer close(renewed)
						for renewing.Err() == nil {
							assert.NoError(t, l.Renew(ctx))
							time.Sleep(5 * time.Second)
						}
					}()
					waiting, cancel := context.WithTimeout(ctx, 10*time.Minute)
					defer cancel()
					_, err = w.client(lock.Config{Expiry: expiry, Backoff: every(time.Hour)}).Acquire(waiting, lock.Name("report"))
					require.ErrorIs(t, err, lock.ErrHeld)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					stop()
					<-renewed
					require.NoError(t, context.Cause(l.Context()))
					require.NoError(t, l.Write(ctx, w.put("x")))
				})
			})
		}
	}
}

// However long the pauses between looks are, none lasts beyond the moment at which the lock can be taken.
func TestTakeover_RareLooksDoNotDelayIt(t *testing.T) {
	const lease, skew = 20 * time.Second, 2 * time.Second
	for kind, opts := range leases() {
		for expiry, bound := range map[lock.Expiry]time.Duration{lock.RecordedOrObserved: lease + skew, lock.ObservedOnly: lease} {
			t.Run(kind+"/"+string(expiry), func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					wire := &line{to: w.engine.HTTPClient()}
					dead := w.clientOver(wire, lock.Config{})
					time.Sleep(2 * lease) // no renewal is about to come: the session is idle, and ends
					l, err := dead.Acquire(ctx, lock.Name("report"), opts...)
					require.NoError(t, err)
					wire.cut(refused)
					start := time.Now()
					_, err = w.client(lock.Config{Expiry: expiry, Backoff: every(time.Hour)}).Acquire(ctx, lock.Name("report"))
					require.NoError(t, err)
					assert.LessOrEqual(t, time.Since(start), bound+time.Second)
					require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
				})
			})
		}
	}
}

// The next in line looks seldom also in the last second before a dead holder's recorded end is far enough in the past. Dates
// of answers are in whole seconds, so looks within that second show nothing new.
func TestTakeover_TakesFewLooks(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				dead := w.clientOver(wire, lock.Config{})
				time.Sleep(5300 * time.Millisecond) // the session has recorded its end
				_, err := dead.Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				wire.cut(refused)
				w.engine.ResetRequests()
				_, err = w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				assert.Less(t, len(w.engine.Requests()), 80)
			})
		})
	}
}

// More than Config.Skew has to have passed since a recorded end, to the millisecond. It can be up to a second more, since
// DynamoDB's time is in whole seconds.
func TestTakeover_RecordedEndIsPastByMoreThanTheSkew(t *testing.T) {
	const skew = 2 * time.Second
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				dead := w.clientOver(wire, lock.Config{})
				l, err := dead.Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				session := sessionKey(dead)
				wire.cut(refused)
				time.Sleep(time.Hour)
				ended := time.Now().Truncate(time.Second)
				recorded := table.Update(session, table.Attr("expires").Set(ended.UnixMilli()))
				if opts != nil {
					recorded = table.Update(l.Key(), table.Attr("renewed").Set(ended.Add(-20*time.Second).UnixMilli()))
				}
				require.NoError(t, w.table.Write(ctx, recorded))
				first, second := w.cold(lock.Config{}), w.cold(lock.Config{})
				time.Sleep(time.Until(ended.Add(skew)))
				_, err = first.TryAcquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrHeld, "by no more than the bound")
				time.Sleep(time.Second)
				_, err = second.TryAcquire(ctx, lock.Name("report"))
				require.NoError(t, err)
			})
		})
	}
}

// A read lags so far behind that it does not show the holder's session. That does not mean that the session is dead.
func TestTakeover_SessionMissingInALaggingReadIsNotDead(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		holder, c := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Operation: "BatchGetItem", Writes: 1024})
		waiting, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		_, err = c.Acquire(waiting, lock.Name("report"))
		require.ErrorIs(t, err, lock.ErrHeld)
		require.NoError(t, context.Cause(l.Context()))
		require.NoError(t, l.Write(ctx, w.put("x")))
	})
}

// A look that lags behind, and does not show the own ticket yet, costs no waiter its place.
func TestLooks_LaggingOneCostsNoPlace(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		holder, c := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Operation: "BatchGetItem", Writes: 1})
		got := acquireAsync(ctx, c, lock.Name("report"))
		time.Sleep(time.Second)
		writes, looks := 0, 0
		for _, r := range w.requestsTo(l.Key().PK) {
			switch r.Operation {
			case "UpdateItem":
				writes++
			case "BatchGetItem":
				looks++
			}
		}
		assert.Equal(t, 1, writes, "it is there")
		assert.Positive(t, looks)
		w.engine.ClearFaults()
		require.NoError(t, l.Release(ctx))
		next := <-got
		require.NotNil(t, next)
		require.NoError(t, next.Release(ctx))
	})
}

// Between the moment at which a holder was found dead and the write that takes its lock, another client can have taken it.
func TestTakeover_IsFromTheHolderThatWasSeen(t *testing.T) {
	t.Run("session", func(t *testing.T) {
		virtual(t, func(ctx context.Context, w *world) {
			wire := &line{to: w.engine.HTTPClient()}
			dead := w.clientOver(wire, lock.Config{})
			_, err := dead.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			wire.cut(refused)
			late, fast := w.client(lock.Config{}), w.client(lock.Config{Owner: "fast"})
			w.engine.Inject(tabletest.Fault{
				Kind: tabletest.Delay, After: true, For: 2 * time.Second, Times: 1, Key: w.table.KeyItem(sessionKey(dead)),
				When: func(tabletest.Request) bool { return time.Now().Minute() > 0 }, // not one of its renewals
			})
			time.Sleep(time.Hour + time.Minute)
			refusal := make(chan error, 1)
			go func() {
				_, err := late.TryAcquire(ctx, lock.Name("report"))
				refusal <- err
			}()
			time.Sleep(time.Second)
			next, err := fast.TryAcquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			var held *lock.HeldError
			require.ErrorAs(t, <-refusal, &held)
			assert.Equal(t, "fast", held.Owner)
			require.NoError(t, next.Write(ctx, w.put("x")))
		})
	})
	t.Run("Fixed", func(t *testing.T) {
		virtual(t, func(ctx context.Context, w *world) {
			first, second := w.client(lock.Config{}), w.client(lock.Config{})
			l, err := first.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
			require.NoError(t, err)
			start := time.Now()
			next := acquireAsync(ctx, second, lock.Name("report"), lock.Fixed(20*time.Second))
			time.AfterFunc(10*time.Second, func() { assert.NoError(t, l.Release(ctx)) })
			c := w.client(lock.Config{Expiry: lock.ObservedOnly, Backoff: every(time.Hour)})
			_, err = c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			assert.GreaterOrEqual(t, time.Since(start), 30*time.Second, "the next one has its length from when it was first")
			require.ErrorIs(t, (<-next).Write(ctx, w.put("x")), lock.ErrLost)
		})
	})
}

// A client with ObservedOnly does not use a holder's recorded end, however long ago that is.
func TestObservedOnly_WaitsForALease(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				_, err := w.clientOver(wire, lock.Config{}).Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				wire.cut(refused)
				time.Sleep(time.Hour)
				c := w.client(lock.Config{Expiry: lock.ObservedOnly})
				_, err = c.TryAcquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrHeld)
				start := time.Now()
				_, err = c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				assert.GreaterOrEqual(t, time.Since(start), 20*time.Second)
				assert.LessOrEqual(t, time.Since(start), 22*time.Second)
			})
		})
	}
}

// However far apart two clocks are that both count as right, a recorded end never counts as past while its holder may still
// work.
func TestTakeover_RecordedEndIsNotJudgedEarly(t *testing.T) {
	repetition, number := testkit.Repetition(t), 0
	for _, skew := range []time.Duration{time.Second, 2 * time.Second, 10 * time.Second} {
		for _, slow := range []time.Duration{0, 500 * time.Millisecond, skew / 2, skew, skew + 600*time.Millisecond, skew + time.Second, 20 * time.Second} {
			for _, fast := range []time.Duration{0, 500 * time.Millisecond, time.Second, 2 * time.Second, 3 * time.Second, 20 * time.Second} {
				number++
				if every := testkit.IfSmall(5, 1); number%every != 0 || !repetition.Turn(number/every) {
					continue
				}
				virtual(t, func(ctx context.Context, w *world) {
					time.Sleep(700 * time.Millisecond) // server times are in whole seconds
					holder := w.client(lock.Config{Skew: skew}, at(-slow))
					waiter := w.client(lock.Config{Skew: skew}, at(fast))
					l, err := holder.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
					require.NoError(t, err)
					ended := time.Now().Add(l.Remaining())
					time.Sleep(l.Remaining() - 5*time.Second)
					for time.Now().Before(ended) {
						_, err = waiter.TryAcquire(ctx, lock.Name("report"))
						require.ErrorIs(t, err, lock.ErrHeld, "bound %v: holder slow by %v, waiter fast by %v, %v early", skew, slow, fast, time.Until(ended))
						time.Sleep(130 * time.Millisecond)
					}
				})
				if t.Failed() {
					return
				}
			}
		}
	}
}

// A recorded end that is further ahead than a duration can express is not past.
func TestTakeover_RecordedEndInADistantFuture(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		const distant = int64(999_999_999_999_999)
		require.NoError(t, w.table.Write(ctx, table.Put(w.lineRow("report", text(fmt.Sprintf("ANOTHER@%d+60000 another", distant))))))
		var err error
		ops := w.requests(func() { _, err = c.TryAcquire(ctx, lock.Name("report"), lock.Fixed(time.Minute)) })
		require.ErrorIs(t, err, lock.ErrHeld)
		assert.Len(t, ops, 1)
	})
}

// An observation counts from the first answer that showed the row, and not from when the row was written or the read was
// sent.
func TestTakeover_ObservationCountsFromTheFirstAnswer(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		time.Sleep(15 * time.Second)
		c := w.client(lock.Config{Expiry: lock.ObservedOnly})
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 2 * time.Second, Call: 1})
		// A renewal just before it would be taken counts anew.
		time.AfterFunc(4*time.Second, func() { assert.NoError(t, l.Renew(ctx)) })
		start := time.Now()
		_, err = c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(start), 24*time.Second)
		assert.LessOrEqual(t, time.Since(start), 26*time.Second)
	})
}

// Calls end with their contexts, also while the sessions of holders do not answer, whether these holders live or not.
func TestTakeover_EndsWithItsContextWhileSessionsHang(t *testing.T) {
	for name, tc := range map[string]struct {
		holders       int
		holds, called []lock.Option
	}{
		"a holder": {1, nil, nil},
		"readers":  {20, []lock.Option{lock.Shared()}, nil},
		"permits":  {20, []lock.Option{lock.Permits(20)}, []lock.Option{lock.Permits(20)}},
	} {
		for _, dead := range []bool{false, true} {
			for call, f := range map[string]func(*lock.Client, context.Context, lock.Target, ...lock.Option) (*lock.Lease, error){
				"Acquire": (*lock.Client).Acquire, "TryAcquire": (*lock.Client).TryAcquire,
			} {
				t.Run(fmt.Sprintf("%s of %s, dead %v", call, name, dead), func(t *testing.T) {
					virtual(t, func(ctx context.Context, w *world) {
						way := &line{to: w.engine.HTTPClient()}
						for range tc.holders {
							require.NoError(t, errOf(w.clientOver(way, quiet).Acquire(ctx, exports, tc.holds...)))
						}
						if dead {
							way.cut(refused)
						}
						time.Sleep(time.Minute)
						c := w.client(quiet)
						w.engine.Inject(tabletest.Fault{
							Kind: tabletest.Delay, For: time.Hour, Operation: "UpdateItem",
							When: func(r tabletest.Request) bool { return !ofLocks(r) },
						})
						short, cancel := context.WithTimeout(ctx, time.Second)
						defer cancel()
						start := time.Now()
						require.Error(t, errOf(f(c, short, exports, tc.called...)))
						assert.LessOrEqual(t, time.Since(start), 1200*time.Millisecond)
						w.engine.ClearFaults()
					})
				})
			}
		}
	}
}
