package lock_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// outages are the ways in which DynamoDB cannot be reached.
func outages() map[string]cut {
	return map[string]cut{"refused": refused, "hung": hung, "unanswered": unanswered}
}

// Close in an outage gives up when its session has ended, however many locks there are to release: then
// they are nobody's any more, and nothing is sent for them.
func TestCloseInAnOutageEndsWithTheSession(t *testing.T) {
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
					time.Sleep(lease) // for what was on its way
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

// A lease that was lost is the application's to keep: one that it has let go of is not kept by the client, also where
// Release was never called.
func TestLostLeasesAreNotKept(t *testing.T) {
	const n = 100
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, quiet)
		acquire := func() (list []weak.Pointer[lock.Lease]) {
			for _, target := range names(n) {
				l, err := c.Acquire(ctx, target)
				require.NoError(t, err)
				list = append(list, weak.Make(l))
			}
			return list
		}
		list := acquire()
		kept := func() (n int) {
			heap()
			for _, p := range list {
				if p.Value() != nil {
					n++
				}
			}
			return n
		}
		require.Positive(t, kept(), "they are held")
		way.cut(refused)
		time.Sleep(time.Minute)
		way.cut(open)
		time.Sleep(time.Minute)
		l, err := c.Acquire(ctx, lock.Name("another")) // it goes on under another session
		require.NoError(t, err)
		assert.LessOrEqual(t, kept(), 1) // the last one may be in a register yet
		require.NoError(t, l.Release(ctx))
		runtime.KeepAlive(c)
	})
}

// A waiter survives an outage that is longer than any request is repeated for, and longer than its session
// lives.
func TestWaitersSurviveAnOutage(t *testing.T) {
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
					heirs := []<-chan *lock.Lease{acquireAsync(waiting, c, lock.Name("report")), acquireAsync(waiting, c, lock.Name("report"))}
					way.cut(how)
					time.Sleep(lasts)
					way.cut(open)
					time.Sleep(5 * time.Second)
					require.NoError(t, l.Release(ctx))
					start := time.Now()
					for _, heir := range heirs {
						next := <-heir
						require.NotNil(t, next)
						require.NoError(t, next.Write(ctx, w.put("x")))
						require.NoError(t, next.Release(ctx))
					}
					assert.Less(t, time.Since(start), 26*time.Second, "a lease and a period")
				})
			})
		}
	}
}

// In an outage that does not end, a waiter waits until its context ends, and tells that.
func TestWaitersInAnOutageWaitUntilTheirContextEnds(t *testing.T) {
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
