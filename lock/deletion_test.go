package lock_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// deleted is when time to live may delete a row.
func (w *world) deleted(ctx context.Context, key keys.Key) time.Time {
	w.Helper()
	row, err := w.table.Get(ctx, key, true)
	require.NoError(w, err)
	return time.Unix(number(w.T, row["ttl"]), 0)
}

const day = 24 * time.Hour // the shortest retention

// longLease is a lease for locks that are held for days. With -short it is longer, so that fewer renewals are sent.
func longLease() time.Duration { return time.Duration(testkit.IfSmall(8, 1)) * time.Minute }

// forDays is longer than the shortest retention, at the end of which a row would be deleted.
func forDays() time.Duration { return time.Duration(testkit.IfSmall(30, 48)) * time.Hour }

// spared holds a lease for a while, and lets time to live delete all rows that it may.
func (w *world) spared(ctx context.Context, l *lock.Lease, during time.Duration) {
	w.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); {
		time.Sleep(min(10*time.Minute, during/60))
		w.engine.Sweep()
		_, err := w.table.Get(ctx, l.Key(), true)
		require.NoError(w, err, "deleted, by its date: %v before the end", time.Until(end))
		require.NoError(w, context.Cause(l.Context()))
	}
}

func skewed(by time.Duration) tabletest.Fault {
	return tabletest.Fault{Kind: tabletest.SkewDate, For: by}
}

// Answers with a wrong date do not cause the row of a held lock to be deleted: one of them, or many, before the first
// renewal or after (deletion, seeds 150, 276 and 777). The retention is the shortest.
func TestDeletion_WrongDatesKeepHeldRows(t *testing.T) {
	for name, c := range map[string]struct {
		by, from, until time.Duration // since the lock was acquired
		clock           time.Duration
	}{
		"when it was acquired":           {by: -61 * time.Minute, from: -time.Second, until: time.Millisecond},
		"when it was put off":            {by: -61 * time.Minute, from: 359 * time.Minute, until: 362 * time.Minute},
		"before it was put off":          {by: -61 * time.Minute, from: 355 * time.Minute, until: 359 * time.Minute},
		"for a while from its beginning": {by: -time.Hour, from: -time.Second, until: 3 * time.Minute},
		"more, for a while":              {by: -100 * time.Minute, from: -time.Second, until: 3 * time.Minute},
		"while the clock is fast":        {by: -31 * time.Minute, from: -time.Second, until: 362 * time.Minute, clock: 30 * time.Minute},
		"ever since":                     {by: -17 * time.Hour, from: time.Minute, until: 60 * time.Hour},
		"ahead, once":                    {by: 24 * time.Hour, from: time.Minute, until: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				locks := w.client(lock.Config{Retention: day, Lease: longLease()}, at(c.clock))
				time.AfterFunc(time.Minute+c.from, func() {
					w.engine.Inject(skewed(c.by))
					_, _ = locks.Inspect(ctx, lock.Name("report"))
				})
				time.AfterFunc(time.Minute+c.until, w.engine.ClearFaults)
				time.Sleep(time.Minute)
				l, err := locks.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				w.spared(ctx, l, forDays())
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// The same for a renewal of a Fixed lease, which writes anew when its row is to be deleted.
func TestDeletion_WrongDateOfARenewalDeletesNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Retention: day})
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		right := func() {
			t.Helper()
			assert.WithinDuration(t, time.Now().Add(day+time.Hour), w.deleted(ctx, l.Key()), 2*time.Second)
		}
		right()
		w.engine.Inject(skewed(-3 * time.Hour))
		require.NoError(t, l.Renew(ctx)) // has the wrong date
		time.Sleep(time.Minute)
		require.NoError(t, l.Renew(ctx)) // uses it
		require.Greater(t, time.Until(w.deleted(ctx, l.Key())), 20*time.Hour, "the retention is for that")
		w.engine.ClearFaults()
		require.NoError(t, l.Renew(ctx))
		time.Sleep(time.Minute)
		require.NoError(t, l.Renew(ctx))
		right()
	})
}

// The first request of a process does not know that its clock is slow, and nothing looks after a Fixed lease later.
func TestDeletion_SlowClockKeepsAFixedLease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		first, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, first.Release(ctx))
		c := w.cold(lock.Config{Retention: day, HomeRegion: tabletest.Region}, at(-2*time.Hour))
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(30*time.Minute))
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now().Add(day+30*time.Minute), w.deleted(ctx, l.Key()), 2*time.Second)
		w.spared(ctx, l, 29*time.Minute)
		require.NoError(t, l.Release(ctx))
	})
}

// A request that put off the deletion can arrive again later. The row of the held lock stays.
func TestDeletion_LateDuplicateKeepsAHeldRow(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Retention: day, Lease: time.Minute})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(6*time.Hour - time.Minute)
		w.engine.Inject(tabletest.Fault{
			Kind: tabletest.DuplicateLate, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 1, For: time.Minute,
		})
		time.Sleep(90 * time.Second) // put off by now
		before := w.deleted(ctx, l.Key())
		require.WithinDuration(t, time.Now().Add(day), before, 2*time.Minute)
		time.Sleep(time.Minute)
		require.Equal(t, before, w.deleted(ctx, l.Key()), "the duplicate")
		w.spared(ctx, l, forDays())
	})
}

// The row of a lock stays while its caller waits for the others of AcquireAll.
func TestDeletion_NotWhileOtherLocksAreWaitedFor(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		brief := lock.Config{Retention: day, Lease: 4 * time.Minute, Backoff: every(time.Minute)}
		holder, c := w.client(brief), w.client(brief)
		list := names(2)
		first, err := holder.Acquire(ctx, list[1])
		require.NoError(t, err)
		got := make(chan *lock.Bundle, 1)
		go func() {
			b, err := c.AcquireAll(ctx, list)
			assert.NoError(t, err)
			got <- b
		}()
		time.Sleep(time.Minute)
		r, err := holder.Inspect(ctx, list[0])
		require.NoError(t, err)
		require.True(t, r.Held())
		w.spared(ctx, first, forDays())
		now, err := holder.Inspect(ctx, list[0])
		require.NoError(t, err)
		require.Equal(t, r.Fence, now.Fence, "it has been held ever since")
		require.NoError(t, first.Release(ctx))
		b := <-got
		require.NoError(t, b.Write(ctx, w.put("x")))
		require.NoError(t, b.Release(ctx))
	})
}

// A row that is not in order by then is told as such.
func TestDeletion_MalformedRowOfALockThatIsKept(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		list, rarely := names(2), lock.Config{Lease: 4 * time.Minute, Backoff: every(time.Minute), Logger: quiet.Logger}
		first, err := w.client(rarely).Acquire(ctx, list[1])
		require.NoError(t, err)
		failed := make(chan error, 1)
		go func() {
			_, err := w.client(rarely).AcquireAll(ctx, list)
			failed <- err
		}()
		time.Sleep(time.Minute)
		key := keys.NewKey("LOCK#n00", "LOCK#n00")
		require.NoError(t, w.table.Write(ctx, table.Update(key, table.Attr("line").Set("no list"))))
		require.ErrorIs(t, <-failed, lock.ErrMalformed)
		require.NoError(t, first.Release(ctx))
	})
}

// The row of a lock stays, also if writes under it never end.
func TestDeletion_NotWhileWritesNeverEnd(t *testing.T) {
	for d, writers := range map[time.Duration]int{59 * time.Second: 2, 50 * time.Minute: 1} { // the second one outlasts renewals that wait for it
		virtual(t, func(ctx context.Context, w *world) {
			c := w.client(lock.Config{Retention: day, Lease: time.Hour}, table.WithRetry(table.Retry{Timeout: d + time.Second}))
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: d, Operation: "TransactWriteItems"})
			writing, stop := context.WithCancel(ctx)
			var all sync.WaitGroup
			for range writers {
				all.Go(func() {
					for writing.Err() == nil {
						_ = l.Write(writing, w.put("x"))
					}
				})
			}
			w.spared(ctx, l, 26*time.Hour)
			stop()
			all.Wait()
			w.engine.ClearFaults()
			require.NoError(t, l.Release(ctx))
		})
	}
}

// The target of a pass goes by the time in its row, also where an earlier request passed the lock to it.
func TestDeletion_RecognisedPassIsKept(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Retention: day, Lease: longLease()})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		waiter := make(chan *lock.Lease, 1)
		go func() {
			l, err := c.Acquire(ctx, lock.Name("report"))
			assert.NoError(t, err)
			waiter <- l
		}()
		time.Sleep(30 * time.Second)
		w.engine.Inject(
			tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"},
			tabletest.Fault{Kind: tabletest.Delay, Operation: "BatchGetItem", For: 4 * time.Second},
			tabletest.Fault{Kind: tabletest.SkewDate, For: time.Hour, Operation: "GetItem"},
		)
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		time.AfterFunc(1900*time.Millisecond, func() { _, _ = c.Inspect(ctx, lock.Name("report")) })
		require.ErrorIs(t, l.Commit(short, w.count("n")), context.DeadlineExceeded)
		require.NoError(t, l.Release(ctx))
		next := <-waiter
		w.engine.ClearFaults()
		require.Equal(t, l.Fence()+1, next.Fence())
		w.spared(ctx, next, forDays())
	})
}

// The first request of a process does not know that its clock is years ahead. Should the process crash, its session's row
// does not stay for so long.
func TestDeletion_FastClockDoesNotKeepASession(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.cold(lock.Config{Retention: day, HomeRegion: tabletest.Region}, at(10*365*24*time.Hour))
		_, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.Greater(t, time.Until(w.deleted(ctx, sessionKey(c))), 24*time.Hour, "its clock was known")
		time.Sleep(10 * time.Second)
		assert.WithinDuration(t, time.Now().Add(day), w.deleted(ctx, sessionKey(c)), time.Minute)
	})
}

// With a margin of half the lease, a renewal leaves little more than half of it. What is done between renewals uses the end
// that the holders use.
func TestDeletion_IsPutOffWithAnyMargin(t *testing.T) {
	for _, margin := range []time.Duration{longLease() / 2, longLease()/2 - time.Second}[:testkit.IfSmall(1, 2)] {
		t.Run(margin.String(), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{Retention: day, Lease: longLease(), Margin: margin})
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 5 * time.Millisecond})
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				w.spared(ctx, l, forDays())
			})
		})
	}
}

func TestSession_RepeatsAFailedReleaseWithAnyMargin(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{Margin: 10 * time.Second}), w.client(lock.Config{})
		latency := tabletest.Fault{Kind: tabletest.Delay, For: 5 * time.Millisecond}
		w.engine.Inject(latency)
		_, err := c.Acquire(ctx, lock.Name("other")) // keeps the session
		require.NoError(t, err)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Key: w.table.KeyItem(l.Key())})
		w.releaseInVain(ctx, l)
		w.engine.ClearFaults()
		w.engine.Inject(latency)
		start := time.Now()
		_, err = other.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Less(t, time.Since(start), 20*time.Second)
	})
}

// The dates, or a clock, are behind for as long as the lock is held, by up to three quarters of the retention. The deletion
// is put off in time.
func TestDeletion_IsPutOffUnderAClockThatStaysBehind(t *testing.T) {
	for name, c := range map[string]struct {
		dates, clock time.Duration
		config       lock.Config
	}{
		"dates":                         {dates: -100 * time.Minute, config: lock.Config{Retention: day, Lease: longLease()}},
		"dates and clock":               {dates: -40 * time.Minute, clock: -40 * time.Minute, config: lock.Config{Retention: day, Lease: longLease()}},
		"a clock that is trusted to be": {clock: -40 * time.Minute, config: lock.Config{Retention: day, Lease: longLease(), Skew: time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				if c.dates != 0 {
					w.engine.Inject(skewed(c.dates))
				}
				locks := w.client(c.config, at(c.clock))
				l, err := locks.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				w.spared(ctx, l, forDays())
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// What is known of the time is kept while there is nothing to compare the clock with.
func TestDeletion_ClockThatIsSetDoesNotBringItForward(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		c := w.client(lock.Config{Retention: day}, table.WithClock(wall.now))
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(2*time.Hour))
		require.NoError(t, err)
		wall.jump(31 * time.Minute)
		require.NoError(t, l.Renew(ctx))
		w.engine.Inject(skewed(-6 * time.Hour))
		wall.jump(-31 * time.Minute)
		_, err = c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Renew(ctx))
		w.engine.ClearFaults()
		assert.Greater(t, time.Until(w.deleted(ctx, l.Key())), 19*time.Hour)
		w.spared(ctx, l, 119*time.Minute-31*time.Minute)
		require.NoError(t, l.Release(ctx))
	})
}

// The same if no answer tells the time.
func TestDeletion_ClockThatIsSetBackWithoutDates(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wall := &wallClock{}
		c, err := lock.New(w.openOver(undated{w.engine.HTTPClient()}, table.Schema{Name: "app"}, table.WithClock(wall.now)),
			lock.Config{Retention: day, Lease: longLease(), HomeRegion: tabletest.Region})
		require.NoError(t, err)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.spared(ctx, l, 18*time.Hour)
		wall.jump(-3 * time.Hour)
		w.spared(ctx, l, forDays())
		require.NoError(t, c.Close(ctx))
	})
}

// undated is a connection whose answers do not tell the time.
type undated struct{ to aws.HTTPClient }

func (u undated) Do(r *http.Request) (*http.Response, error) {
	resp, err := u.to.Do(r)
	if err == nil {
		resp.Header.Del("Date")
	}
	return resp, err
}

// Rows whose writes hang, each time, do not keep the deletion of the others from being put off.
func TestDeletion_RowsThatHangDelayNoOther(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Retention: day, Lease: 20 * time.Minute})
		var last *lock.Lease
		for i := range 5 {
			l, err := c.Acquire(ctx, lock.Name(fmt.Sprint("report-", i)))
			require.NoError(t, err)
			if last = l; i < 4 {
				w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Hour, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key())})
			}
		}
		w.spared(ctx, last, forDays())
		w.engine.ClearFaults()
	})
}

// A row that is released on a holder's behalf is kept like one that the holder releases. It does not matter which time that
// holder had written: by a clock that was not known to be slow, or long ago, before it died.
func TestDeletion_RowsReleasedForAHolderAreKept(t *testing.T) {
	const week = 7 * day
	key := keys.NewKey("LOCK#report", "LOCK#report")
	abandoned := func(ctx context.Context, w *world, c *lock.Client, f tabletest.Fault, limit time.Duration) {
		w.Helper()
		w.engine.ResetRequests()
		w.engine.Inject(f)
		bounded, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_, err := c.Acquire(bounded, lock.Name("report"), lock.Fixed(30*time.Second))
		require.ErrorIs(w, err, context.DeadlineExceeded)
		time.Sleep(time.Minute)
		w.engine.ClearFaults()
	}
	for name, f := range map[string]func(ctx context.Context, w *world){
		"taken back": func(ctx context.Context, w *world) {
			c := w.cold(lock.Config{HomeRegion: tabletest.Region}, at(-10*day))
			time.AfterFunc(500*time.Millisecond, func() { _, _ = c.Inspect(ctx, lock.Name("report")) }) // which tells the date
			abandoned(ctx, w, c, tabletest.Fault{
				Kind: tabletest.Delay, After: true, Operation: "UpdateItem", Key: w.table.KeyItem(key), Times: 1, For: 10 * time.Second,
			}, time.Second)
		},
		"taken back, without an answer": func(ctx context.Context, w *world) {
			c := w.cold(lock.Config{HomeRegion: tabletest.Region}, at(-10*day))
			time.AfterFunc(500*time.Millisecond, func() { _, _ = c.Inspect(ctx, lock.Name("report")) })
			time.AfterFunc(900*time.Millisecond, func() {
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Key: w.table.KeyItem(key), Times: 1})
			})
			abandoned(ctx, w, c, tabletest.Fault{
				Kind: tabletest.Delay, After: true, Operation: "UpdateItem", Key: w.table.KeyItem(key), Times: 1, For: 10 * time.Second,
			}, time.Second)
		},
		"taken back with others": func(ctx context.Context, w *world) {
			both := []lock.Target{lock.Name("report"), lock.Name("another")}
			b, err := w.client(lock.Config{}).AcquireAll(ctx, both) // creates the row of the other lock
			require.NoError(w, err)
			require.NoError(w, b.Release(ctx))
			c := w.cold(lock.Config{HomeRegion: tabletest.Region}, at(-10*day))
			time.AfterFunc(500*time.Millisecond, func() { _, _ = c.Inspect(ctx, lock.Name("report")) })
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, Operation: "TransactWriteItems", Times: 1, For: 10 * time.Second})
			bounded, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err = c.AcquireAll(bounded, both, lock.Fixed(30*time.Second))
			require.ErrorIs(w, err, context.DeadlineExceeded)
			time.Sleep(time.Minute)
			w.engine.ClearFaults()
		},
		"given back unseen": func(ctx context.Context, w *world) {
			c := w.cold(lock.Config{HomeRegion: tabletest.Region}, at(-10*day))
			abandoned(ctx, w, c, tabletest.Fault{Kind: tabletest.Delay, Call: 2, For: 10 * time.Second}, 500*time.Millisecond)
		},
		"forced, long after its holder has died": func(ctx context.Context, w *world) {
			wire := &line{to: w.engine.HTTPClient()}
			_, err := w.clientOver(wire, quiet).Acquire(ctx, lock.Name("report"))
			require.NoError(w, err)
			wire.cut(refused)
			time.Sleep(week - time.Minute)
			w.force(ctx, w.client(quiet), lock.Name("report"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.NoError(t, l.Release(ctx))
				f(ctx, w)
				assert.Greater(t, w.deleted(ctx, key), time.Now().Add(5*day))
			})
		})
	}
}

// A holder that puts off the deletion of a row that was deleted already learns that the lock is lost.
func TestDeletion_HolderOfADeletedRowIsTold(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(lock.Config{Retention: aDay, Logger: quiet.Logger}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Delete(l.Key())))
		time.Sleep(8 * time.Hour)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
	})
}

// A held row is kept for longer than any retention, since renewals put its deletion off.
func TestDeletion_NeverOfAHeldRow(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{Retention: day, Lease: time.Hour})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		for range 72 {
			time.Sleep(time.Hour)
			w.engine.Sweep()
			r, err := c.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.True(t, r.Held())
		}
		require.NoError(t, context.Cause(l.Context()))
		require.NoError(t, l.Release(ctx))
		time.Sleep(day + 3*time.Second)
		w.engine.Sweep()
		_, err = c.Inspect(ctx, lock.Name("report"))
		require.ErrorIs(t, err, table.ErrNotFound)
	})
}

// The machine of a holder is suspended most of the time, each time for less than its lease. Its monotonic clock stands still meanwhile, but
// the time until the deletion of the row goes on.
func TestDeletion_SuspensionsKeepHeldRows(t *testing.T) {
	targets := names(2)
	for name, acquire := range map[string]func(*lock.Client, context.Context) (*lock.Lease, error){
		"held": func(c *lock.Client, ctx context.Context) (*lock.Lease, error) { return c.Acquire(ctx, targets[0]) },
		"held while another one is waited for": func(c *lock.Client, ctx context.Context) (*lock.Lease, error) {
			b, err := c.AcquireAll(ctx, targets)
			if err != nil {
				return nil, err
			}
			return b.Leases()[0], nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				m, l := &frozen{}, &line{to: w.engine.HTTPClient()}
				tbl, err := table.Open(frozenClient{w.sdk(l), m}, table.Schema{Name: "app"})
				require.NoError(t, err)
				c, err := lock.New(tbl, lock.Config{Retention: day, Lease: time.Hour})
				require.NoError(t, err)
				other, err := w.client(lock.Config{Retention: day, Lease: time.Hour}).Acquire(ctx, targets[1])
				require.NoError(t, err)
				got := make(chan *lock.Lease, 1)
				go func() {
					l, err := acquire(c, ctx)
					assert.NoError(t, err)
					got <- l
				}()
				key, err := c.Key(targets[0])
				require.NoError(t, err)
				for range 60 {
					time.Sleep(5 * time.Minute)
					l.cut(refused)
					for range 35 {
						time.Sleep(time.Minute)
						m.by.Add(int64(time.Minute))
					}
					l.cut(open)
					w.engine.Sweep()
					_, err := w.table.Get(ctx, key, true)
					require.NoError(t, err)
				}
				time.Sleep(20 * time.Minute)
				require.NoError(t, other.Release(ctx))
				require.NoError(t, (<-got).Release(ctx))
				require.NoError(t, c.Close(ctx))
			})
		})
	}
}
