package lock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
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

// wallClock is a wall clock that can be set.
type wallClock struct {
	mu sync.Mutex
	by time.Duration
}

func (c *wallClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.by)
}

func (c *wallClock) jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by += by
}

func at(by time.Duration) table.Option { return table.WithClock((&wallClock{by: by}).now) }

// The wall clock of a suspended machine jumps when it resumes, while its monotonic clock
// has stood still.
func TestSuspendedHolderIsToldOnceItResumes(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		c := w.client(lock.Config{}, table.WithClock(wall.now))
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, context.Cause(l.Context()))
		// An outage, so that no renewal tells.
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest})
		wall.jump(time.Minute)
		resumed := time.Now()
		assert.Zero(t, l.Remaining())
		<-l.Context().Done()
		assert.LessOrEqual(t, time.Since(resumed), time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
		require.ErrorIs(t, l.Renew(ctx), lock.ErrExpired, "what has ended stays ended")
		w.engine.ClearFaults()
	})
}

func TestClockSetBackDoesNotProlongALease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		c := w.client(lock.Config{}, table.WithClock(wall.now))
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		wall.jump(-time.Hour)
		start := time.Now()
		<-l.Context().Done()
		assert.LessOrEqual(t, time.Since(start), 20*time.Second)
	})
}

// Requests that never answer cannot keep the end of the lease from being told.
func TestHungRequestsDoNotDelayTheEnd(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 1000 * time.Hour})
		start := time.Now()
		<-l.Context().Done()
		assert.LessOrEqual(t, time.Since(start), 20*time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
		require.ErrorIs(t, context.Cause(l.Context()), context.DeadlineExceeded, "the last renewal's error")
		assert.NotContains(t, context.Cause(l.Context()).Error(), "\n")
		w.engine.ClearFaults()
		require.NoError(t, l.Release(ctx), "nobody has taken it")
	})
}

// A table without any backoff must not make renewals spin through an outage.
func TestRenewalsDoNotSpin(t *testing.T) {
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

// Answers that are long in coming cost a session little of its lease: it counts from the attempt that was answered.
func TestSessionThatIsOpenedLateHasItsLease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.coldClient(lock.Config{Lease: time.Second}) // the grant of the session
		w.engine.ResetRequests()
		w.engine.Inject(
			tabletest.Fault{Kind: tabletest.Delay, After: true, For: time.Hour, Call: 1},
			tabletest.Fault{Kind: tabletest.Delay, After: true, For: time.Hour, Call: 2},
			tabletest.Fault{Kind: tabletest.Delay, After: true, For: 200 * time.Millisecond, Call: 3},
		)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.Greater(t, l.Remaining(), 600*time.Millisecond)
		time.Sleep(time.Minute)
		require.NoError(t, context.Cause(l.Context()))
	})
}

// F13.
func TestOutage(t *testing.T) {
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

// F14.
func TestCancellationAtEveryCall(t *testing.T) {
	const lease = 20 * time.Second
	target := lock.Name("report")
	section := func(ctx context.Context, w *world, l *lock.Lease) error {
		return errors.Join(l.Write(ctx, w.count("a")), l.Renew(ctx), l.Write(ctx, w.count("b")))
	}
	acquire := func(ctx context.Context, w *world, c *lock.Client, opts ...lock.Option) {
		if l, err := c.Acquire(ctx, target, opts...); err == nil {
			_ = section(ctx, w, l)
			_ = l.Release(ctx)
		}
	}
	ways := map[string]func(ctx context.Context, w *world, c, other *lock.Client){
		"acquire": func(ctx context.Context, w *world, c, _ *lock.Client) { acquire(ctx, w, c) },
		"Fixed":   func(ctx context.Context, w *world, c, _ *lock.Client) { acquire(ctx, w, c, lock.Fixed(lease)) },
		"do": func(ctx context.Context, w *world, c, _ *lock.Client) {
			_ = c.Do(ctx, target, func(ctx context.Context, l *lock.Lease) error { return section(ctx, w, l) })
		},
		"waiting": func(ctx context.Context, w *world, c, other *lock.Client) {
			l, err := other.TryAcquire(w.Context(), target)
			require.NoError(w, err)
			time.AfterFunc(time.Second, func() { assert.NoError(w, l.Release(w.Context())) })
			acquire(ctx, w, c)
			time.Sleep(2 * time.Second)
		},
	}
	struck, long, longest := 0, 0, time.Duration(0)
	for name, way := range ways {
		for _, cold := range []bool{false, true} {
			for call, made := 1, true; made; call++ {
				made = false
				for _, after := range []bool{false, true} {
					virtual(t, func(ctx context.Context, w *world) {
						c, other := w.client(lock.Config{}), w.client(lock.Config{})
						if cold {
							c = w.coldClient(lock.Config{})
						}
						ending, cancel := context.WithCancel(ctx)
						defer cancel()
						var calls atomic.Int32
						w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, After: after, When: func(tabletest.Request) bool {
							if calls.Add(1) != int32(call) || ending.Err() != nil {
								return false
							}
							made = true
							time.AfterFunc(500*time.Millisecond, cancel) // in the middle of that call
							return true
						}})
						way(ending, w, c, other)
						w.engine.ClearFaults()
						if ending.Err() == nil {
							return // there are no more calls
						}
						struck++
						start := time.Now()
						next, err := other.Acquire(ctx, target)
						require.NoError(t, err)
						waited := time.Since(start)
						longest = max(longest, waited)
						if waited > lease {
							long++
							t.Logf("held for %v: %s, call %d, after %v, cold %v", waited, name, call, after, cold)
						}
						require.NoError(t, next.Release(ctx))
					}) // which ends only when all goroutines in it have
				}
			}
		}
	}
	testkit.Check(t, "F14", testkit.AtLeast(struck, "cancellations", 100), testkit.Exactly(long, "rows held longer than a lease", 0), testkit.AtMost(longest, " the longest", lease))
}

// The cause of the end of a lease, by how it came.
func TestTakenLockIsToldAtTheNextRenewal(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		told := make(chan error, 1)
		c := w.client(lock.Config{OnLost: func(_ *lock.Lease, cause error) { told <- cause }})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		start := time.Now()
		gone := sessionKey(c)
		require.NoError(t, w.table.Write(ctx, table.Delete(gone)))
		<-l.Context().Done()
		assert.LessOrEqual(t, time.Since(start), 6*time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
		require.ErrorIs(t, <-told, lock.ErrLost)
		_, err = w.table.Get(ctx, gone, true)
		require.ErrorIs(t, err, table.ErrNotFound, "a renewal must not make a row")

		// A row that goes under a live session is found by whatever uses it, and a lease of
		// its own by its renewal.
		under, err := c.Acquire(ctx, lock.Name("under"))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Delete(under.Key())))
		require.ErrorIs(t, under.Write(ctx, w.put("x")), lock.ErrLost)
		require.ErrorIs(t, context.Cause(under.Context()), lock.ErrStolen)
		require.ErrorIs(t, <-told, lock.ErrLost)
		fixed, err := c.Acquire(ctx, lock.Name("fixed"), lock.Fixed(time.Minute))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Delete(fixed.Key())))
		require.ErrorIs(t, fixed.Renew(ctx), lock.ErrStolen)
		require.ErrorIs(t, context.Cause(fixed.Context()), lock.ErrStolen)
		require.ErrorIs(t, <-told, lock.ErrLost)
		_, err = c.Inspect(ctx, lock.Name("fixed"))
		require.ErrorIs(t, err, table.ErrNotFound, "a renewal must not make a row")
	})
}

// A client that has not heard from DynamoDB yet knows nothing of its own clock.
func TestColdClientNeitherWritesNorUsesRecordedEnds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		holder := w.client(lock.Config{})
		_, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		// An hour fast: by its clock the lease is long over.
		fast := w.cold(lock.Config{}, at(time.Hour))
		_, err = fast.TryAcquire(ctx, lock.Name("report"))
		require.ErrorIs(t, err, lock.ErrHeld)

		free, err := holder.Acquire(ctx, lock.Name("other"))
		require.NoError(t, err)
		require.NoError(t, free.Release(ctx))
		cold := w.cold(lock.Config{HomeRegion: w.table.Region()}) // does not ask for replicas first
		l, err := cold.Acquire(ctx, lock.Name("other"), lock.Fixed(time.Minute))
		require.NoError(t, err)
		r, err := cold.Inspect(ctx, lock.Name("other"))
		require.NoError(t, err)
		assert.Equal(t, time.Now().Add(time.Minute).UTC(), r.Until(), "known by the answer")
		require.NoError(t, l.Release(ctx))
		off := w.cold(lock.Config{HomeRegion: w.table.Region(), Logger: quiet.Logger}, at(-time.Hour))
		_, err = off.Acquire(ctx, lock.Name("other"), lock.Fixed(time.Minute))
		require.NoError(t, err)
		r, err = cold.Inspect(ctx, lock.Name("other"))
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now().Add(time.Minute), r.Until(), 1100*time.Millisecond, "by DynamoDB's time, which has whole seconds")
		assert.False(t, r.Until().Before(time.Now().Add(time.Minute)), "not earlier than its holder believes")
	})
}

// The first request of a client does not know the time, and says nothing of when its lease ends. Soon
// after it does: the process may die, and nobody who does not wait could ever tell that it has.
func TestFirstLockOfAProcessThatDies(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				other := w.client(lock.Config{})
				l, err := other.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx)) // the row is there: the first request takes it
				way := &line{to: w.engine.HTTPClient()}
				c, err := lock.New(w.openOver(way, table.Schema{Name: "app"}), lock.Config{HomeRegion: w.table.Region(), Logger: quiet.Logger})
				require.NoError(t, err)
				defer func() { _ = c.Close(ctx) }()
				_, err = c.TryAcquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				time.Sleep(100 * time.Millisecond)
				way.cut(hung)
				time.Sleep(time.Minute + 3*time.Second)
				_, err = other.TryAcquire(ctx, lock.Name("report"))
				require.NoError(t, err)
			})
		})
	}
}

// Of several locks all ends are recorded at once, and not one after the other.
func TestFirstLocksOfAProcessAreRecordedTogether(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		const n = 100
		targets := names(n)
		b, err := w.client(lock.Config{}).AcquireAll(ctx, targets)
		require.NoError(t, err)
		require.NoError(t, b.Release(ctx)) // the rows are there
		w.latency(10 * time.Millisecond)
		c := w.cold(lock.Config{HomeRegion: w.table.Region()})
		start := time.Now()
		_, err = c.AcquireAll(ctx, targets, lock.Fixed(time.Minute))
		require.NoError(t, err)
		assert.Less(t, time.Since(start), 200*time.Millisecond)
		for _, target := range targets {
			r, err := c.Inspect(ctx, target)
			require.NoError(t, err)
			assert.False(t, r.Until().IsZero())
		}
	})
}

// A session that has proved to live is not known to for longer than that says, wherever the clock is set.
func TestSessionIsNotKnownToLiveForEver(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way, fast := &line{to: w.engine.HTTPClient()}, &wallClock{by: time.Hour}
		holder := w.clientOver(way, quiet)
		c := w.client(quiet, table.WithClock(fast.now))
		_, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		// A look that lags behind does not find the holder's session, which proves to live then.
		w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Operation: "BatchGetItem", Writes: 1000})
		waiting, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err = c.Acquire(waiting, lock.Name("report"))
		require.ErrorIs(t, err, lock.ErrHeld)
		w.engine.ClearFaults()
		fast.jump(-time.Hour)
		time.Sleep(20 * time.Second)
		way.cut(hung)
		time.Sleep(30 * time.Second)
		_, err = c.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
	})
}

// Three requests, of which one asks whether the table has replicas.
func TestColdClientTakesLongDeadLockWithThreeRequests(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
		require.NoError(t, err)
		time.Sleep(time.Hour)
		for _, try := range []func(*lock.Client) (*lock.Lease, error){
			func(c *lock.Client) (*lock.Lease, error) {
				return c.TryAcquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
			},
			func(c *lock.Client) (*lock.Lease, error) {
				return c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
			},
		} {
			c := w.cold(lock.Config{})
			start := time.Now()
			ops := w.requests(func() { _, err = try(c) })
			require.NoError(t, err)
			assert.Len(t, ops, 3)
			assert.Zero(t, time.Since(start))
			l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.NoError(t, l.Release(ctx))
			_, err = w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
			require.NoError(t, err)
			time.Sleep(time.Hour)
		}
	})
}

// Clocks that are off beyond the bound neither judge recorded ends nor write them, and say
// so once. A lease of its own counts from DynamoDB's time then.
func TestClockThatIsOffTakesNoPart(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, -10 * time.Second, 10 * time.Second, time.Hour} {
		virtual(t, func(ctx context.Context, w *world) {
			var log bytes.Buffer
			_, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
			require.NoError(t, err)
			start := time.Now()
			c := w.client(lock.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, at(by))
			l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(2*time.Hour))
			require.NoError(t, err)
			// By observation, which needs no agreement of clocks.
			assert.GreaterOrEqual(t, time.Since(start), 20*time.Second, "clock off by %v", by)
			assert.LessOrEqual(t, time.Since(start), 22*time.Second, "clock off by %v", by)
			require.NoError(t, l.Renew(ctx))
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			assert.WithinDuration(t, time.Now().Add(2*time.Hour), r.Until(), 1100*time.Millisecond, "clock off by %v", by)
			assert.False(t, r.Until().Before(time.Now().Add(2*time.Hour)), "clock off by %v", by)
			_, err = w.client(lock.Config{}).Acquire(ctx, lock.Name("other"), lock.Fixed(20*time.Second))
			require.NoError(t, err)
			time.Sleep(time.Hour)
			require.NoError(t, context.Cause(l.Context()))
			_, err = c.TryAcquire(ctx, lock.Name("other"))
			require.ErrorIs(t, err, lock.ErrHeld, "a recorded end that lies back far enough, clock off by %v", by)
			item, err := w.table.Get(ctx, sessionKey(c), true)
			require.NoError(t, err)
			assert.NotContains(t, item, "expires")
			assert.Equal(t, 1, strings.Count(log.String(), "the clock is off"))
		})
	}
}

// A clock that is set while the client runs is not trusted until DynamoDB answers again.
func TestClockSetForwardDoesNotTakeALiveLock(t *testing.T) {
	for _, by := range []time.Duration{3 * time.Second, time.Minute, time.Hour} {
		virtual(t, func(ctx context.Context, w *world) {
			wall := &wallClock{}
			c := w.client(lock.Config{}, table.WithClock(wall.now))
			_, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			time.Sleep(3 * time.Second)
			wall.jump(by)
			for range 10 {
				_, err = c.TryAcquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrHeld, "clock set forward by %v", by)
			}
		})
	}
}

// What a clock that was set has to say about the end of a lease is not recorded: DynamoDB tells the time.
func TestClockThatWasSetIsNotRecorded(t *testing.T) {
	for _, by := range []time.Duration{20 * time.Minute, -20 * time.Minute} {
		virtual(t, func(ctx context.Context, w *world) {
			wall := &wallClock{}
			c := w.client(lock.Config{}, table.WithClock(wall.now))
			wall.jump(by)
			_, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Minute))
			require.NoError(t, err)
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			assert.WithinDuration(t, time.Now().Add(time.Minute), r.Until(), 1100*time.Millisecond, "set by %v", by)
			assert.False(t, r.Until().Before(time.Now().Add(time.Minute)), "set by %v", by)
		})
	}
}

// However far apart two clocks are that both pass for good: a recorded end is never taken
// for past while its holder may still work.
func TestRecordedEndIsNotJudgedEarly(t *testing.T) {
	repetition, number := testkit.Repetition(t), 0
	for _, skew := range []time.Duration{time.Second, 2 * time.Second, 10 * time.Second} {
		for _, slow := range []time.Duration{0, 500 * time.Millisecond, skew / 2, skew, skew + 600*time.Millisecond, skew + time.Second, 20 * time.Second} {
			for _, fast := range []time.Duration{0, 500 * time.Millisecond, time.Second, 2 * time.Second, 3 * time.Second, 20 * time.Second} {
				number++
				if !repetition.Turn(number) {
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

// An answer that is long under way has an old time in it.
func TestSlowAnswersDoNotPassForAClockThatIsOff(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var log bytes.Buffer
		c := w.client(lock.Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 2900 * time.Millisecond})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Renew(ctx))
		require.NoError(t, l.Release(ctx))
		assert.Empty(t, log.String())
	})
}
