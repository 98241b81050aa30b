package lock_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
)

// P18: of those that wait behind a dead holder, the first takes the lock, and nobody else tries to: however many wait,
// however long the holder had the lock, and however slow the network is.
func TestTakeover_CostsTwoWrites(t *testing.T) {
	const processes, lease, slow = 20, 20 * time.Second, 500 * time.Millisecond
	goroutines := testkit.IfSmall(4, 50)
	for kind, opts := range leases() {
		for _, held := range []time.Duration{lease / 2, 2 * lease, 50 * lease}[:testkit.IfSmall(1, 3)] {
			t.Run(fmt.Sprintf("%s, held for %v", kind, held), func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					target, way := lock.Name("report"), &line{to: w.engine.HTTPClient()}
					holder := w.clientOver(way, quiet)
					session := sessionKey(holder).PK
					var died atomic.Bool
					var marks, evictions atomic.Int64
					clients := make([]*lock.Client, processes)
					for i := range clients {
						clients[i] = w.clientOver(w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
							switch {
							case !died.Load() || operation != "UpdateItem":
							case strings.Contains(body, `"`+session+`"`) && !strings.Contains(body, "claim"): // which asks
								marks.Add(1)
							case strings.Contains(body, `"LOCK#report"`):
								evictions.Add(1)
							}
							return send()
						}), quiet)
					}
					w.latency(slow)
					l, err := holder.Acquire(ctx, target, opts...)
					require.NoError(t, err)
					waiting, cancel := context.WithTimeout(ctx, 2*time.Hour)
					defer cancel()
					waiters := make(chan *lock.Lease, processes*goroutines)
					var all sync.WaitGroup
					for _, c := range clients {
						for range goroutines {
							all.Go(func() {
								if l, err := c.Acquire(waiting, target); err == nil {
									waiters <- l
								}
							})
						}
						time.Sleep(50 * time.Millisecond)
					}
					for range held / (lease / 4) {
						time.Sleep(lease / 4)
						require.NoError(t, l.Renew(ctx))
					}
					way.cut(refused)
					died.Store(true)
					start := time.Now()
					waiter := <-waiters
					took := time.Since(start)
					time.Sleep(2 * time.Second) // until other requests have arrived
					assert.Equal(t, l.Fence()+1, waiter.Fence())
					t.Logf("%d writes mark it dead, %d take the lock", marks.Load(), evictions.Load())
					testkit.Check(t, fmt.Sprintf("P18, %s, %d waiters, held for %v", kind, processes*goroutines, held),
						testkit.AtMost(took, " until one holds", lease+5*time.Second),
						testkit.AtMost(int(marks.Load()+evictions.Load()), "writes", 2))
					cancel()
					all.Wait()
					require.NoError(t, waiter.Release(ctx))
				})
			})
		}
	}
}

// A line that is full of tickets of dead processes is emptied by those that find it full.
func TestTakeover_OfALineFullOfTheDead(t *testing.T) {
	const places, lease = 100, 20 * time.Second
	for name, tc := range map[string]struct {
		processes int
		expiry    lock.Expiry
		atMost    time.Duration
	}{
		"of one process":           {1, lock.RecordedOrObserved, 3 * lease},
		"of many":                  {9, lock.RecordedOrObserved, 4 * lease},
		"of one process, observed": {1, lock.ObservedOnly, 6 * lease},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way, targets := &line{to: w.engine.HTTPClient()}, names(2)
				waiting, stop := context.WithCancel(ctx)
				defer stop()
				_, err := w.clientOver(way, quiet).Acquire(ctx, targets[0])
				require.NoError(t, err)
				for range tc.processes {
					dead := w.clientOver(way, quiet)
					for range (places - 1) / tc.processes {
						go func() { _, _ = dead.AcquireAll(waiting, targets) }()
					}
				}
				time.Sleep(30 * time.Second)
				way.cut(refused)
				item, err := w.table.Get(ctx, w.lockKey(targets[0].Name()), true)
				require.NoError(t, err)
				require.Equal(t, places, len(lineIn(item))) //nolint:testifylint // the tickets would be shown

				config := quiet
				config.Expiry = tc.expiry
				start := time.Now()
				bounded, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				l, err := w.client(config).Acquire(bounded, targets[0])
				require.NoError(t, err)
				testkit.Check(t, "P18, a full line "+name, testkit.AtMost(time.Since(start), " until it is taken", tc.atMost))
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// Each dead process in the line delays the others by at most a lease, and by two if it waits for a lease of its own, of
// which nobody can tell whether its process lives.
func TestTakeover_EachDeadWaiterDelaysByALeaseOrTwo(t *testing.T) {
	const dead, lease, bound = 11, 20 * time.Second, 3 * time.Second // of the recorded end, and a look
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way := &line{to: w.engine.HTTPClient()}
				waiting, stop := context.WithCancel(ctx)
				defer stop()
				for range dead {
					acquireAsync(waiting, w.clientOver(way, quiet), lock.Name("report"), opts...)
				}
				way.cut(refused)
				start := time.Now()
				l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				perDead := map[string]time.Duration{"session": lease, "Fixed": 2 * lease}[kind] + bound
				testkit.Check(t, fmt.Sprintf("P18, %d dead, %s", dead, kind), testkit.AtMost(time.Since(start), " until it is taken", dead*perDead))
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// Who finds the line full writes once per try, and asks the session of the holder seldom.
func TestWait_BeforeAFullLineCostsOneWritePerTry(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.guardian = nil // it would take most of the time
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		holder := w.client(quiet)
		w.fillLine(waiting, holder, w.client(lock.Config{Backoff: every(time.Minute), Logger: quiet.Logger}), names(2)...)
		session := sessionKey(holder).PK
		tries, others := 0, 0
		c := w.clientOver(w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
			switch {
			case operation != "UpdateItem":
			case strings.Contains(body, `"LOCK#n00"`):
				tries++
			case strings.Contains(body, session):
				others++
			}
			return send()
		}), quiet)
		short, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		_, err := c.Acquire(short, names(1)[0])
		require.ErrorIs(t, err, lock.ErrHeld)
		t.Logf("%d tries, %d writes to the holder's session", tries, others)
		assert.Less(t, others, tries/2) // 3 to 7 of 23: four questions, and a few are repeated since the holder's mailbox is full
	})
}

// Nor does it depend on the leases of the dead, which may be shorter than the time between two tries, or on the skew.
func TestTakeover_OfALineFullOfTheDeadWithAnyLeaseAndSkew(t *testing.T) {
	cases := []struct{ lease, skew time.Duration }{{lease: time.Second}, {skew: time.Hour}, {skew: time.Minute}}
	for _, tc := range cases[:testkit.IfSmall(2, 3)] {
		t.Run(fmt.Sprintf("leases of %v, a skew of %v", cmp.Or(tc.lease, 20*time.Second), tc.skew), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				w.guardian = nil
				config := quiet
				config.Skew = tc.skew
				died := config
				died.Lease = tc.lease
				way, targets := &line{to: w.engine.HTTPClient()}, names(2)
				waiting, stop := context.WithCancel(ctx)
				defer stop()
				w.fillLine(waiting, w.clientOver(way, died), w.clientOver(way, died), targets...)
				way.cut(refused)
				start := time.Now()
				bounded, cancel := context.WithTimeout(ctx, 3*time.Hour)
				defer cancel()
				l, err := w.client(config).Acquire(bounded, targets[0])
				require.NoError(t, err)
				assert.Less(t, time.Since(start), 5*time.Minute)
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}
