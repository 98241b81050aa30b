package lock_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// F13.
func TestOutage_ShortOneLosesNothingALongOneIsTold(t *testing.T) {
	t.Run("shorter than the remaining lease loses nothing", func(t *testing.T) {
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(lock.Config{})
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			const outages = 100
			lost := 0
			for range outages {
				time.Sleep(17 * time.Second)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest})
				time.Sleep(12 * time.Second) // less than a lease minus a period, with jitter
				w.engine.ClearFaults()
				if l.Context().Err() != nil {
					lost++
				}
			}
			testkit.Check(t, fmt.Sprintf("F13, %d outages of 12 s under a lease of 20 s", outages), testkit.Exactly(lost, "locks lost", 0))
			require.NoError(t, l.Write(ctx, w.put("x")))
		})
	})
	for _, expiry := range []lock.Expiry{lock.RecordedOrObserved, lock.ObservedOnly} {
		for name, how := range map[string]cut{"refused": refused, "hung": hung, "unanswered": unanswered} {
			t.Run("longer is told before another grant/"+name, func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					line := &line{to: w.engine.HTTPClient()}
					c, other := w.clientOver(line, lock.Config{}), w.client(lock.Config{Expiry: expiry})
					l, err := c.Acquire(ctx, lock.Name("report"))
					require.NoError(t, err)
					time.Sleep(33 * time.Second)
					line.cut(how)
					told := make(chan time.Time, 1)
					defer context.AfterFunc(l.Context(), func() { told <- time.Now() })()
					next, err := other.Acquire(ctx, lock.Name("report"))
					require.NoError(t, err)
					granted := time.Now()
					require.Len(t, told, 1, "granted before the holder was told")
					testkit.Check(t, "F13, longer, "+name, testkit.AtLeast(granted.Sub(<-told), " between being told and the next grant", time.Millisecond))
					require.ErrorIs(t, context.Cause(l.Context()), lock.ErrLost)
					line.cut(open)
					require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
					require.NoError(t, next.Write(ctx, w.put("x")))
				})
			})
		}
	}
}

// outages are the ways in which DynamoDB cannot be reached.
func outages() map[string]cut {
	return map[string]cut{"refused": refused, "hung": hung, "unanswered": unanswered}
}

// Close in an outage gives up when its session has ended, however many locks there are to release: they are free then, and
// nothing is sent for them.
func TestOutage_CloseEndsWithTheSession(t *testing.T) {
	const lease = 20 * time.Second
	for name, how := range map[string]cut{"refused": refused, "hung": hung} {
		for _, n := range []int{16, 160, 1600} {
			t.Run(fmt.Sprintf("%s, %d locks", name, n), func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					var mu sync.Mutex
					var sent int
					var last time.Time
					net := &line{to: w.engine.HTTPClient()}
					way := &line{to: passing{net, func(_, _ string, send func() (*http.Response, error)) (*http.Response, error) {
						mu.Lock()
						sent, last = sent+1, time.Now()
						mu.Unlock()
						return send()
					}}}
					c := w.unclosed(way, quiet)
					leases := make([]*lock.Lease, n)
					for i, target := range names(n) {
						var err error
						leases[i], err = c.Acquire(ctx, target)
						require.NoError(t, err)
					}
					net.cut(how)
					start := time.Now()
					require.ErrorIs(t, c.Close(ctx), table.ErrUnreachable)
					took := time.Since(start)
					time.Sleep(lease) // until late requests have arrived
					mu.Lock()
					before, until := sent, last.Sub(start)
					mu.Unlock()
					time.Sleep(time.Hour)
					mu.Lock()
					defer mu.Unlock()
					testkit.Check(t, fmt.Sprintf("Close in an outage, %s, %d locks", name, n),
						testkit.AtMost(took, " until it is over", lease+2*time.Second),
						testkit.AtMost(until, " until the last request", lease+time.Second),
						testkit.Exactly(sent-before, "requests later", 0))
					for _, l := range leases {
						require.Error(t, l.Context().Err())
					}
				})
			})
		}
	}
}

// A waiter survives an outage that lasts longer than any request is repeated, and longer than its session.
func TestOutage_WaitersSurviveIt(t *testing.T) {
	waitThroughOutages(t, func(waiting context.Context, w *world, c *lock.Client) func() {
		waiters := []<-chan *lock.Lease{acquireAsync(waiting, c, lock.Name("report")), acquireAsync(waiting, c, lock.Name("report"))}
		return func() {
			for _, waiter := range waiters {
				next := <-waiter
				require.NotNil(w, next)
				require.NoError(w, next.Write(waiting, w.put("x")))
				require.NoError(w, next.Release(waiting))
			}
		}
	})
}

// So does a caller that waits for several locks, one of which is held.
func TestOutage_WaitersForSeveralLocksSurviveIt(t *testing.T) {
	waitThroughOutages(t, func(waiting context.Context, w *world, c *lock.Client) func() {
		got := make(chan *lock.Bundle, 1)
		go func() {
			b, err := c.AcquireAll(waiting, append(names(2), lock.Name("report")))
			assert.NoError(w, err)
			got <- b
		}()
		time.Sleep(time.Second)
		return func() {
			b := <-got
			require.NotNil(w, b)
			require.NoError(w, b.Write(waiting, w.put("x")))
			require.NoError(w, b.Release(waiting))
		}
	})
}

// waitThroughOutages has wait begin to wait for the lock "report", which is held until an outage is over. What wait returns
// gets the lock and uses it.
func waitThroughOutages(t *testing.T, wait func(waiting context.Context, w *world, c *lock.Client) (use func())) {
	for name, how := range outages() {
		for _, lasts := range []time.Duration{15 * time.Second, time.Minute} {
			t.Run(fmt.Sprintf("%s for %v", name, lasts), func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					waiting, cancel := context.WithTimeout(ctx, time.Hour)
					defer cancel()
					way := &line{to: w.engine.HTTPClient()}
					c := w.clientOver(way, quiet)
					l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
					require.NoError(t, err)
					use := wait(waiting, w, c)
					way.cut(how)
					time.Sleep(lasts)
					way.cut(open)
					time.Sleep(5 * time.Second)
					require.NoError(t, l.Release(ctx))
					start := time.Now()
					use()
					assert.Less(t, time.Since(start), 26*time.Second, "a lease and a period")
				})
			})
		}
	}
}

// In an outage that does not end, a waiter waits until its context ends, and its error contains both.
func TestOutage_WaitersWaitUntilTheirContextEnds(t *testing.T) {
	const patience = 5 * time.Minute
	for name, how := range outages() {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way := &line{to: w.engine.HTTPClient()}
				c := w.clientOver(way, quiet)
				_, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				waiting, cancel := context.WithTimeout(ctx, patience)
				defer cancel()
				start := time.Now()
				ended := outcome(waiting, c, lock.Name("report"))
				time.Sleep(time.Second)
				way.cut(how)
				err = <-ended
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.GreaterOrEqual(t, time.Since(start), patience)
				assert.Less(t, time.Since(start), patience+6*time.Second, "giving up the place is bounded, too")
			})
		})
	}
}

// Leases that go on for long do not make Close long: in an outage it gives up once, not once per lock.
func TestOutage_CloseGivesUpOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		how   cut
		fault tabletest.FaultKind
		kind  error
	}{
		"refused":         {how: refused, kind: table.ErrUnreachable},
		"hung":            {how: hung, kind: table.ErrUnreachable},
		"internal errors": {how: open, fault: tabletest.InternalError, kind: table.ErrUnreachable},
		"throttled":       {how: open, fault: tabletest.Throttle, kind: table.ErrThrottled},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way := &line{to: w.engine.HTTPClient()}
				c := w.unclosed(way, quiet)
				const n = 320
				for _, target := range names(n) {
					_, err := c.Acquire(ctx, target, lock.Fixed(time.Hour))
					require.NoError(t, err)
				}
				way.cut(tc.how)
				w.engine.Inject(tabletest.Fault{Kind: tc.fault})
				start := time.Now()
				err := c.Close(ctx)
				require.ErrorIs(t, err, tc.kind)
				require.ErrorContains(t, err, "the releases of 304 more locks were not tried")
				testkit.Check(t, fmt.Sprintf("Close in an outage, %s, %d Fixed locks", name, n), testkit.AtMost(time.Since(start), " until it is over", 25*time.Second))
				way.cut(open)
				w.engine.ClearFaults()
				require.NoError(t, c.Close(ctx), "releases what is left")
				for _, target := range names(n) {
					r, err := w.client(quiet).Inspect(ctx, target)
					require.NoError(t, err)
					require.False(t, r.Held())
				}
			})
		})
	}
}

// The same where some of the leases end meanwhile: what is not released for that reason is no answer.
func TestOutage_CloseGivesUpOnceAmongLeasesThatEnd(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.unclosed(way, quiet)
		for i, target := range names(1600) {
			_, err := c.Acquire(ctx, target, [][]lock.Option{nil, {lock.Fixed(time.Hour)}}[i%2]...)
			require.NoError(t, err)
		}
		way.cut(refused)
		time.Sleep(14 * time.Second)
		start := time.Now()
		require.ErrorIs(t, c.Close(ctx), table.ErrUnreachable)
		assert.Less(t, time.Since(start), 25*time.Second)
		way.cut(open)
		require.NoError(t, c.Close(ctx), "releases what is left")
	})
}

// Waiters that have given up do not delay one that comes back after them.
func TestOutage_WaitersThatGaveUpTakeNoTurns(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		n := testkit.IfSmall(400, 1000)
		way := &line{to: w.engine.HTTPClient()}
		holder, c := w.client(quiet), w.clientOver(way, quiet)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		impatient, giveUp := context.WithCancel(ctx)
		defer giveUp()
		var all sync.WaitGroup
		list := names(n)
		for i, target := range list {
			_, err := holder.Acquire(ctx, target)
			require.NoError(t, err)
			waits := impatient
			if i == n-1 {
				waits = ctx
			}
			all.Go(func() {
				_, err := c.Acquire(waits, target)
				assert.ErrorIs(t, err, lock.ErrHeld)
			})
			time.Sleep(time.Millisecond)
		}
		way.cut(refused)
		time.Sleep(time.Minute)
		way.cut(open)
		updates := func() (sent int) {
			for _, r := range w.engine.Requests() {
				if r.Operation == "UpdateItem" {
					sent++
				}
			}
			return sent
		}
		opened := time.Now()
		for before := updates(); updates() < before+n/4; { // all of them are about to enter again, and some of them have
			time.Sleep(10 * time.Millisecond)
			require.Less(t, time.Since(opened), time.Minute)
		}
		giveUp()
		time.Sleep(50 * time.Millisecond)
		r, err := holder.Inspect(ctx, list[n-1])
		require.NoError(t, err)
		assert.Equal(t, 2, r.Waiting(), "the ticket of the session that has ended, and the new one")
		cancel()
		all.Wait()
	})
}

// Only those who have lost their places wait for turns.
func TestOutage_NewcomersTakeNoTurns(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		c := w.client(quiet)
		_, err = c.Acquire(ctx, lock.Name("other"))
		require.NoError(t, err)
		start := time.Now()
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		sent := w.requests(func() {
			_, err = c.Acquire(short, lock.Name("report"), lock.WithData("x")) // refused first, and then in the line
			require.ErrorIs(t, err, lock.ErrHeld)
		})
		assert.GreaterOrEqual(t, len(sent), 3, "it has entered, and left")
		assert.Less(t, time.Since(start), 2*time.Millisecond)
	})
}

// Waiters whose session has ended in an outage enter their lines again one after the other: DynamoDB, which has just come
// back, does not get all of them at once. So do goroutines that have waited behind others of their own process.
func TestOutage_WaitersComeBackInTurn(t *testing.T) {
	for name, own := range map[string]bool{"behind another process": false, "behind their own process": true} {
		goal := 100
		if own {
			goal = 110 // each sends two writes: it enters, and removes the old ticket that stands before its own
		}
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				n := testkit.IfSmall(200, 1000)
				way := &line{to: w.engine.HTTPClient()}
				holder, c := w.client(quiet), w.clientOver(way, quiet)
				if own {
					holder = c
				}
				ctx, cancel := context.WithCancel(ctx)
				var all sync.WaitGroup
				for _, target := range names(n) {
					_, err := holder.Acquire(ctx, target)
					require.NoError(t, err)
					all.Go(func() {
						if _, err := c.Acquire(ctx, target); !own {
							assert.ErrorIs(t, err, lock.ErrHeld)
						} else {
							assert.NoError(t, err)
						}
					})
				}
				w.latency(2 * time.Millisecond)
				time.Sleep(10 * time.Second)
				way.cut(refused)
				time.Sleep(time.Minute)
				way.cut(open)
				most, sent := 0, 0
				for range 600 {
					r := len(w.requests(func() { time.Sleep(100 * time.Millisecond) }))
					most, sent = max(most, r), sent+r
				}
				testkit.Check(t, fmt.Sprintf("%d waiters after an outage, %s", n, name),
					testkit.AtMost(most, "requests in 0.1 s", goal), testkit.AtLeast(sent, "requests in a minute", n))
				if !own {
					r, err := holder.Inspect(ctx, names(n)[n-1])
					require.NoError(t, err)
					require.Equal(t, 2, r.Waiting(), "the ticket of the session that has ended, and the new one")
				}
				cancel()
				all.Wait()
			})
		})
	}
}

// However long an outage lasts, campaigns and renewals send few requests.
func TestOutage_RequestsAreFew(t *testing.T) {
	for name, begin := range map[string]func(ctx context.Context, w *world, c *lock.Client){
		"Lead": func(ctx context.Context, _ *world, c *lock.Client) {
			go func() {
				_ = c.Lead(ctx, lock.Name("report"), func(ctx context.Context, _ *lock.Lease) error {
					<-ctx.Done()
					return nil
				})
			}()
		},
		"renewals": func(ctx context.Context, w *world, c *lock.Client) {
			_, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(w, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				config := quiet
				if name == "renewals" {
					config.Lease = time.Hour
				}
				begin(ctx, w, w.client(config))
				time.Sleep(time.Minute)
				w.latency(50 * time.Millisecond) // without it, a client that does not pause would repeat for ever at one instant
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest})
				time.Sleep(20 * time.Minute)
				tries := len(w.requests(func() { time.Sleep(20 * time.Minute) }))
				assert.Positive(t, tries)
				assert.LessOrEqual(t, tries, 20*60, "one a second")
				w.engine.ClearFaults()
			})
		})
	}
}

// On a table without any backoff, renewals do not spin through an outage.
func TestOutage_RenewalsDoNotSpin(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{}, table.WithRetry(table.Retry{Backoff: func() backoff.BackOff { return &backoff.StopBackOff{} }}))
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.InternalError})
		w.engine.ResetRequests()
		<-l.Context().Done()
		assert.Less(t, len(w.engine.Requests()), 60)
		w.engine.ClearFaults()
	})
}
