package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestLead_ReturnsTheErrorOfTheFunction(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		target := lock.Name("leader")
		released := func() {
			p.Helper()
			r, err := p.client.Inspect(ctx, target)
			require.NoError(p, err)
			assert.False(p, r.Held())
		}
		broken := errors.New("broken")
		for _, want := range []error{nil, broken} {
			err := p.client.Lead(ctx, target, func(inside context.Context, l *lock.Lease) error {
				assert.NoError(p, inside.Err())
				assert.Equal(p, target, l.Target())
				return want
			})
			require.ErrorIs(p, err, want)
			released()
		}
		// A leader that commits has ended its own term.
		key := keys.NewKey("ROW", "ROW")
		require.NoError(p, p.client.Lead(ctx, target, func(ctx context.Context, l *lock.Lease) error {
			return l.Commit(ctx, table.Put(p.table.KeyItem(key)))
		}))
		released()
		require.NoError(p, p.client.Lead(ctx, target, func(ctx context.Context, l *lock.Lease) error { return l.Release(ctx) }, lock.Fixed(time.Minute)))
		assert.PanicsWithValue(p, "oops", func() {
			_ = p.client.Lead(ctx, target, func(context.Context, *lock.Lease) error { panic("oops") })
		})
		released()
		ending, cancel := context.WithCancel(ctx)
		err := p.client.Lead(ending, target, func(inside context.Context, _ *lock.Lease) error {
			cancel()
			<-inside.Done()
			return errors.Join(inside.Err(), broken)
		})
		require.ErrorIs(p, err, context.Canceled)
		require.ErrorIs(p, err, broken)
		released()
		// A row that is no lock is left alone.
		l, err := p.client.Acquire(ctx, target)
		require.NoError(p, err)
		require.NoError(p, l.Release(ctx))
		require.NoError(p, p.table.Write(ctx, table.Put(p.table.KeyItem(l.Key()))))
		require.ErrorIs(p, p.client.Lead(ctx, target, func(context.Context, *lock.Lease) error { return nil }), lock.ErrNotLock)
	})
}

// A leader that is cut off is told, waits for its function, and leads again once it can.
func TestLead_CampaignsAgainAfterALoss(t *testing.T) {
	for _, opts := range [][]lock.Option{nil, {lock.Fixed(20 * time.Second)}} {
		virtual(t, func(ctx context.Context, w *world) {
			ctx, stop := context.WithCancel(ctx)
			way := &line{to: w.engine.HTTPClient()}
			c := w.clientOver(way, quiet)
			terms, inside := 0, 0
			var fences []int64
			err := c.Lead(ctx, lock.Name("leader"), func(ctx context.Context, l *lock.Lease) error {
				inside++
				assert.Equal(t, 1, inside)
				defer func() { inside-- }()
				fences = append(fences, l.Fence())
				if terms++; terms == 3 {
					stop()
					return nil
				}
				way.cut(hung)
				<-ctx.Done()
				assert.ErrorIs(t, context.Cause(ctx), lock.ErrLost)
				time.Sleep(10 * time.Second) // it takes its time to return
				time.AfterFunc(time.Minute, func() { way.cut(open) })
				return ctx.Err()
			}, opts...)
			require.ErrorIs(t, err, context.Canceled)
			require.Len(t, fences, 3)
			assert.IsIncreasing(t, fences)
			w.free(context.WithoutCancel(ctx), []lock.Target{lock.Name("leader")})
		})
	}
}

func TestLead_EndsWithItsContextOrClient(t *testing.T) {
	for name, end := range map[string]struct {
		how  func(c *lock.Client, cancel func())
		want error
	}{
		"context": {func(_ *lock.Client, cancel func()) { cancel() }, context.Canceled},
		"close":   {func(c *lock.Client, _ func()) { _ = c.Close(context.Background()) }, lock.ErrClosed},
	} {
		for _, led := range []string{"follower", "leader", "cut off"} {
			t.Run(name+", "+led, func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					way := &line{to: w.engine.HTTPClient()}
					c := w.clientOver(way, quiet)
					if led == "follower" {
						_, err := w.client(quiet).Acquire(ctx, lock.Name("leader"))
						require.NoError(t, err)
					}
					if led == "cut off" {
						way.cut(refused)
					}
					ending, cancel := context.WithCancel(ctx)
					done := make(chan struct{})
					time.AfterFunc(time.Minute, func() {
						defer close(done)
						end.how(c, cancel)
					})
					start := time.Now()
					led0 := false
					err := c.Lead(ending, lock.Name("leader"), func(ctx context.Context, _ *lock.Lease) error {
						led0 = true
						<-ctx.Done()
						return ctx.Err()
					})
					require.ErrorIs(t, err, end.want)
					assert.Equal(t, led == "leader", led0)
					assert.LessOrEqual(t, time.Since(start), time.Minute+time.Second)
					<-done // Close goes on for 5 s where DynamoDB cannot be reached
					if led == "leader" {
						w.free(ctx, []lock.Target{lock.Name("leader")})
					}
				})
			})
		}
	}
}

// The reason for an end is said once, although the attempt and the campaign both end by it.
func TestLead_SaysOnceWhyItEnds(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		lead := func(ctx context.Context) error {
			return c.Lead(ctx, lock.Name("leader"), func(context.Context, *lock.Lease) error { return nil })
		}
		var none context.Context
		err := lead(none)
		require.ErrorIs(t, err, lock.ErrInvalid)
		assert.EqualError(t, err, "lock: lead: invalid request: nil context")
		require.NoError(t, c.Close(ctx))
		err = lead(ctx)
		require.ErrorIs(t, err, lock.ErrClosed)
		assert.EqualError(t, err, "lock: lead: lock client closed: context canceled")
	})
}

// A leader that is asked to release gives way: the other gets the next turn.
func TestLead_GivesWayWhenRevoked(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		ctx, stop := context.WithCancel(ctx)
		a, b := w.client(quiet), w.client(quiet)
		var mu sync.Mutex
		var terms []string
		lead := func(c *lock.Client, who string) {
			err := c.Lead(ctx, lock.Name("leader"), func(ctx context.Context, l *lock.Lease) error {
				mu.Lock()
				terms = append(terms, who)
				mu.Unlock()
				time.AfterFunc(time.Minute, func() { _ = c.Revoke(ctx, l.Target()) })
				<-ctx.Done()
				return ctx.Err()
			})
			assert.ErrorIs(t, err, context.Canceled)
		}
		var all sync.WaitGroup
		all.Go(func() { lead(a, "a") })
		time.Sleep(time.Second)
		all.Go(func() { lead(b, "b") })
		time.Sleep(5*time.Minute + 30*time.Second)
		stop()
		all.Wait()
		assert.Equal(t, []string{"a", "b", "a", "b", "a", "b"}, terms)
	})
}

// Leaders are cut off for a while, at random. Their guarded writes never interleave, and somebody leads most of the time.
func TestLead_TwoLeadersNeverBothCommit(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		thirds := testkit.IfSmall(1, 3)
		ctx, stop := context.WithTimeout(ctx, time.Duration(thirds)*20*time.Minute)
		defer stop()
		w.engine.Inject(
			tabletest.Fault{Kind: tabletest.DropReply, Probability: 0.01, Seed: 1},
			tabletest.Fault{Kind: tabletest.TransactionConflict, Probability: 0.01, Seed: 2},
		)
		var mu sync.Mutex
		var fences []int64 // of the writes that were committed, in their order
		stale := 0
		var all sync.WaitGroup
		for i := range 4 {
			rnd := rand.New(rand.NewPCG(9, uint64(i)))
			way := &line{to: w.engine.HTTPClient()}
			c := w.clientOver(way, quiet, at(time.Duration(i-2)*time.Hour))
			all.Go(func() {
				err := c.Lead(ctx, lock.Name("leader"), func(inside context.Context, l *lock.Lease) error {
					for {
						pause := time.Duration(rnd.IntN(4000)) * time.Millisecond
						if rnd.IntN(20) == 0 { // a pause, in which nothing gets through
							way.cut(hung)
							pause = time.Duration(rnd.IntN(90)) * time.Second
						}
						time.Sleep(pause)
						way.cut(open)
						// The context is not looked at: the guard alone has to protect.
						bounded, cancel := context.WithTimeout(context.WithoutCancel(inside), 30*time.Second)
						err := l.Write(bounded, w.count("n"), table.Put(w.fenced(l.Fence())))
						cancel()
						if err == nil {
							mu.Lock()
							fences = append(fences, l.Fence())
							mu.Unlock()
						} else {
							mu.Lock()
							stale++
							mu.Unlock()
						}
						if inside.Err() != nil {
							return inside.Err()
						}
					}
				})
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		all.Wait()
		assert.IsNonDecreasing(t, fences)
		t.Logf("%d guarded writes, %d refused, %d terms", len(fences), stale, fences[len(fences)-1]-fences[0]+1)
		assert.Positive(t, stale)
		assert.EqualValues(t, len(fences), w.counted("n"))
		assert.Greater(t, len(fences), 700*thirds/3)
	})
}

// A leader whose commit succeeded is done, also if it was revoked before. One that only gave way campaigns again.
func TestLead_EndsWithACommit(t *testing.T) {
	for name, tc := range map[string]struct {
		end   func(ctx context.Context, w *world, l *lock.Lease) error
		terms int
	}{
		"commit":  {func(ctx context.Context, w *world, l *lock.Lease) error { return l.Commit(ctx, w.count("n")) }, 1},
		"release": {func(ctx context.Context, _ *world, l *lock.Lease) error { return l.Release(ctx) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, terms := w.client(quiet), 0
				require.NoError(t, c.Lead(ctx, lock.Name("leader"), func(inside context.Context, l *lock.Lease) error {
					if terms++; terms > 1 {
						return nil
					}
					assert.NoError(t, c.Revoke(ctx, l.Target()))
					<-inside.Done()
					return tc.end(ctx, w, l)
				}))
				assert.Equal(t, tc.terms, terms)
			})
		})
	}
}

// The lock was lost while the function ran. The client learns of it only from the release, however the function has learned of it.
func TestLead_CampaignsAgainAfterALossThatTheReleaseShows(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, w *world, l *lock.Lease) error{
		"nil": func(context.Context, *world, *lock.Lease) error { return nil },
		"guard": func(ctx context.Context, w *world, l *lock.Lease) error {
			return w.table.Write(ctx, w.count("n"), l.GuardToken().Guard(w.table))
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, operator, terms := w.client(quiet), w.client(quiet), 0
				require.NoError(t, c.Lead(ctx, lock.Name("leader"), func(inside context.Context, l *lock.Lease) error {
					if terms++; terms > 1 {
						return nil
					}
					w.force(ctx, operator, l.Target())
					return end(inside, w, l)
				}))
				assert.Equal(t, 2, terms)
			})
		})
	}
}

// The answer to a commit is lost, and the next holder is forced. Nothing tells the release whether the lock was lost or the commit was
// applied, as it was. The error is that of Do.
func TestLead_CommitWithoutAnAnswerIsNoLoss(t *testing.T) {
	for name, drops := range map[string]bool{"returned": false, "dropped": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way := &line{to: w.engine.HTTPClient()}
				c, other, operator, terms := w.clientOver(way, quiet), w.client(quiet), w.client(quiet), 0
				err := c.Lead(ctx, lock.Name("leader"), func(inside context.Context, l *lock.Lease) error {
					terms++
					next := acquireAsync(ctx, other, l.Target())
					way.cut(unanswered)
					bounded, cancel := context.WithTimeout(inside, 3*time.Second)
					defer cancel()
					err := l.Commit(bounded, w.count("n"))
					<-next
					w.force(ctx, operator, l.Target())
					way.cut(open)
					if drops {
						return nil
					}
					return err
				})
				require.ErrorIs(t, err, table.ErrUnreachable)
				require.NotErrorIs(t, err, lock.ErrLost)
				assert.True(t, table.MayBeApplied(err))
				assert.Equal(t, int64(1), w.counted("n"))
				assert.Equal(t, 1, terms)
			})
		})
	}
}

// One commit does not arrive, and the next one is applied. An error that f returns after that is the caller's, whatever it matches.
func TestLead_ReturnsTheErrorOfAFunctionThatHasCommitted(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, quiet)
		mine := fmt.Errorf("another lock: %w", lock.ErrStolen)
		f := func(inside context.Context, l *lock.Lease) error {
			way.cut(hung)
			bounded, cancel := context.WithTimeout(inside, time.Second)
			defer cancel()
			err := l.Commit(bounded, w.count("n"))
			assert.True(t, table.MayBeApplied(err))
			way.cut(open)
			require.NoError(t, l.Commit(inside, w.count("n")))
			return mine
		}
		for name, call := range map[string]func(context.Context, lock.Target, func(context.Context, *lock.Lease) error, ...lock.Option) error{
			"Do": c.Do, "Lead": c.Lead,
		} {
			err := call(ctx, lock.Name(name), f)
			require.ErrorIs(t, err, mine, name)
			require.ErrorIs(t, err, lock.ErrLost, name)
			require.NotErrorIs(t, err, table.ErrUnreachable, name)
		}
		assert.Equal(t, int64(2), w.counted("n"))
	})
}

// fenced is a row that names its writer.
func (w *world) fenced(fence int64) table.Item {
	item := w.table.KeyItem(w.row("fenced"))
	av, err := table.Encode(fence)
	require.NoError(w, err)
	item["fence"] = av
	return item
}

// A leader that was revoked lets others have the next turn, however long it pauses between looks.
func TestLead_GivesWayHoweverRarelyItLooks(t *testing.T) {
	for _, poll := range []time.Duration{time.Hour, math.MaxInt64} {
		virtual(t, func(ctx context.Context, w *world) {
			config := quiet
			config.Backoff = func() backoff.BackOff { return backoff.NewConstantBackOff(poll) }
			c, other := w.client(config), w.client(quiet)
			life, stop := context.WithCancel(ctx)
			done := make(chan error, 1)
			terms := 0
			go func() {
				done <- c.Lead(life, lock.Name("leader"), func(ctx context.Context, _ *lock.Lease) error {
					terms++
					<-ctx.Done()
					return ctx.Err()
				})
			}()
			time.Sleep(time.Second)
			got := make(chan struct{})
			go func() {
				defer close(got)
				bounded, cancel := context.WithTimeout(ctx, 30*time.Second)
				defer cancel()
				l, err := other.Acquire(bounded, lock.Name("leader"))
				if assert.NoError(t, err, "%v", poll) {
					_ = l.Release(ctx)
				}
			}()
			time.Sleep(5 * time.Second)
			require.NoError(t, other.Revoke(ctx, lock.Name("leader")))
			<-got
			stop()
			require.ErrorIs(t, <-done, context.Canceled)
			assert.Equal(t, 1, terms, "%v", poll)
		})
	}
}

// foreign is a context of another type: package context waits for it in a goroutine.
type foreign struct{ context.Context }

func (foreign) Value(any) any { return nil }

// Lead returns its context's error, whatever type the context has and however soon it ends.
func TestLead_EndsWithAContextOfAnyType(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		for range 100 {
			leading, cancel := context.WithCancel(ctx)
			err := c.Lead(foreign{leading}, lock.Name("report"), func(_ context.Context, l *lock.Lease) error {
				assert.NoError(t, l.Commit(ctx, w.put("x")))
				cancel()
				return nil
			})
			require.ErrorIs(t, err, context.Canceled)
		}
	})
}

// A client without permission to take a lock does not campaign for it.
func TestLead_EndsWithoutPermission(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.coldClientOver(&line{to: &forbidding{to: w.engine.HTTPClient(), operation: "UpdateItem"}}, quiet)
		bounded, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		err := c.Lead(bounded, lock.Name("report"), func(context.Context, *lock.Lease) error { return nil })
		require.ErrorIs(t, err, table.ErrDenied)
		require.NoError(t, bounded.Err())
	})
}

// A leader loses the lock long after an outage. It campaigns again at once.
func TestLead_ForgetsAnOldOutage(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c, op := w.clientOver(way, quiet), w.client(quiet)
		bounded, cancel := context.WithCancel(ctx)
		defer cancel()
		terms := make(chan time.Time, 10)
		ended := make(chan error, 1)
		way.cut(refused)
		go func() {
			ended <- c.Lead(bounded, lock.Name("report"), func(ctx context.Context, _ *lock.Lease) error {
				terms <- time.Now()
				<-ctx.Done()
				return nil
			})
		}()
		time.Sleep(10 * time.Minute)
		way.cut(open)
		<-terms
		for range 3 { // waits are random
			time.Sleep(time.Hour)
			w.force(ctx, op, lock.Name("report"))
			start := time.Now()
			assert.LessOrEqual(t, (<-terms).Sub(start), 5500*time.Millisecond+time.Second, "told within a period, and then at once")
		}
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// A campaign ends with an error that another attempt cannot mend.
func TestLead_EndsWithAnErrorThatLasts(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		bounded, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		tbl, err := table.Open(&replicated{Client: w.sdk(w.engine.HTTPClient())}, table.Schema{Name: "app"})
		require.NoError(t, err)
		c, err := lock.New(tbl, quiet)
		require.NoError(t, err)
		require.ErrorIs(t, c.Lead(bounded, lock.Name("report"), func(context.Context, *lock.Lease) error { return nil }), lock.ErrMultiRegion)
		require.NoError(t, c.Close(ctx))

		config := quiet
		config.HomeRegion = tabletest.Region
		tbl = w.openOver(undated{w.engine.HTTPClient()}, table.Schema{Name: "app"})
		c, err = lock.New(tbl, config)
		require.NoError(t, err)
		err = c.Every(bounded, lock.Name("report"), time.Minute, func(context.Context, *lock.Lease, time.Time) error { return nil })
		require.ErrorIs(t, err, lock.ErrNoTime)
		require.NoError(t, c.Close(ctx))

		c = w.client(quiet)
		l, err := c.Acquire(ctx, exports, lock.Permits(3))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		err = c.Lead(bounded, exports, func(context.Context, *lock.Lease) error { return nil })
		require.ErrorAs(t, err, new(*lock.PermitsError))
		require.NoError(t, bounded.Err())
	})
}

// A leader that was revoked, and whose guarded writes hang, campaigns again and does not wait for itself.
func TestLead_CampaignsAgainBehindWritesThatHang(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: 4900 * time.Millisecond, Operation: "TransactWriteItems", Times: 2})
		leading, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		terms := 0
		done := make(chan error, 1)
		go func() {
			done <- c.Lead(leading, lock.Name("report"), func(ctx context.Context, l *lock.Lease) error {
				terms++
				<-ctx.Done()
				if terms == 1 {
					go func() { _ = l.Write(context.Background(), w.put("x")) }()
					go func() { _ = l.Write(context.Background(), w.put("x")) }()
					time.Sleep(time.Millisecond)
				}
				return ctx.Err()
			})
		}()
		time.Sleep(10 * time.Millisecond)
		require.NoError(t, other.Revoke(ctx, lock.Name("report")))
		time.Sleep(30 * time.Minute)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		assert.Greater(t, terms, 1)
	})
}

// A payload tells others where the leader is. It is written before the leader's function runs.
func TestLead_PayloadTellsWhoLeads(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		target, follower := lock.Name("dispatcher"), w.client(quiet)
		leading := make(chan string)
		stops := map[string]context.CancelFunc{}
		var all sync.WaitGroup
		for _, name := range []string{"a:80", "b:80", "c:80"} {
			c := w.client(quiet)
			open, stop := context.WithCancel(ctx)
			stops[name] = stop
			all.Go(func() {
				err := c.Lead(open, target, func(ctx context.Context, _ *lock.Lease) error {
					leading <- name
					<-ctx.Done()
					return nil
				}, lock.WithData(name))
				assert.ErrorIs(t, err, context.Canceled)
			})
			time.Sleep(time.Second)
		}
		for range stops {
			name := <-leading
			r, err := follower.Inspect(ctx, target)
			require.NoError(t, err)
			var shown string
			require.NoError(t, r.Data.Decode(&shown))
			assert.Equal(t, name, shown)
			stops[name]()
		}
		all.Wait()
	})
}
