package lock_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Each try of a lock that a living holder has held for long costs one request. One try in a lease costs one more, which
// asks whether the holder is alive.
func TestTryAcquire_OfALivingHolderCostsOneRequest(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		holder, c := w.client(lock.Config{}), w.client(lock.Config{})
		_, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		const tries = 40
		ops := w.requests(func() {
			for range tries {
				_, err := c.TryAcquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrHeld)
				time.Sleep(100 * time.Millisecond)
			}
		})
		assert.LessOrEqual(t, len(ops)-times("BatchGetItem", ops), tries+2+2, "each try, and once whether the holder lives; and renewals of the holder")
	})
}

// However rarely a waiter looks, it finds a holder dead when its session has ended, also one that it found alive before.
func TestTakeover_DeathAfterASignOfLifeIsFoundInTime(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		_, err := w.clientOver(way, quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		waiter := w.client(lock.Config{Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }})
		got := acquireAsync(ctx, waiter, lock.Name("report"))
		time.Sleep(5 * time.Minute)
		way.cut(refused)
		start := time.Now()
		require.NotNil(t, <-got)
		assert.LessOrEqual(t, time.Since(start), 2*20*time.Second+5*time.Second)
	})
}

// unasked is a connection on which questions to a session fail for now.
type unasked struct {
	to      aws.HTTPClient
	session string
	fails   atomic.Bool
	times   atomic.Int64
}

func (u *unasked) Do(r *http.Request) (*http.Response, error) {
	body, err := peek(r)
	if err != nil {
		return nil, err
	}
	if u.fails.Load() && bytes.Contains(body, []byte(u.session)) && bytes.Contains(body, []byte(`"SS"`)) { // a set of questions
		u.times.Add(1)
		return nil, errors.New("connection refused")
	}
	return u.to.Do(r)
}

// A question that could not be asked is asked later.
func TestTakeover_QuestionsThatDoNotArriveAreAskedAgain(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		_, err := c.Acquire(ctx, lock.Name("other")) // its session goes on
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Call: 1, For: time.Minute})
		w.engine.ResetRequests()
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		between, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, between.Release(ctx))
		time.Sleep(time.Minute)
		r, err := w.client(quiet).Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.True(t, r.Held(), "by a ghost")

		way := &unasked{to: w.engine.HTTPClient(), session: lock.SessionID(c)}
		waiter := w.clientOver(&line{to: way}, quiet)
		way.fails.Store(true)
		bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		got := acquireAsync(bounded, waiter, lock.Name("report"))
		time.Sleep(time.Minute)
		require.Positive(t, way.times.Load(), "it was asked in vain")
		way.fails.Store(false)
		start := time.Now()
		require.NotNil(t, <-got)
		assert.LessOrEqual(t, time.Since(start), 25*time.Second, "a lease and a period")
	})
}

// The row that records the death of a missing session has a time to live.
func TestTakeover_RowOfAMissingSessionHasATimeToLive(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		dead := w.clientOver(way, quiet)
		_, err := dead.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		session := sessionKey(dead)
		way.cut(refused)
		require.NoError(t, w.table.Write(ctx, table.Delete(session)))
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		row, err := w.table.Get(ctx, session, true)
		require.NoError(t, err)
		assert.Contains(t, row, "ttl")
		require.NoError(t, l.Release(ctx))
	})
}

// A try costs one request if the holder is the client itself, or has held the lock for less than its lease.
func TestTryAcquire_DoesNotAskWhetherAHolderIsAlive(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		_, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		try := func(c *lock.Client) []string {
			return w.requests(func() {
				_, err := c.TryAcquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrHeld)
			})
		}
		time.Sleep(5 * time.Second) // its session goes on
		assert.Len(t, try(other), 1)
		time.Sleep(10 * time.Minute)
		assert.Len(t, try(c), 1)
	})
}

// Many locks of one session are waited for. A few questions are sent in one request. Those that do not fit are not sent in
// vain, which would keep the session from renewing.
func TestTakeover_ManyQuestionsToOneHolder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, questions := w.waitForAll(ctx, 200, 0, 80*time.Second)
		t.Logf("%d requests to ask about 200 locks", questions)
		assert.LessOrEqual(t, questions, 40)
	})
}

// P5: nobody has watched since the holder died.
func TestTakeoverLongDead(t *testing.T) {
	for kind, opts := range leases() {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				_, err := w.clientOver(wire, lock.Config{}).Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(t, err)
				wire.cut(refused)
				time.Sleep(time.Hour)
				for how, acquire := range map[string]func(*lock.Client, context.Context, lock.Target, ...lock.Option) (*lock.Lease, error){
					"Acquire": (*lock.Client).Acquire, "TryAcquire": (*lock.Client).TryAcquire,
				} {
					c, again := w.client(lock.Config{}), w.engine.Snapshot()
					start := time.Now()
					ops := w.requests(func() { _, err = acquire(c, ctx, lock.Name("report")) })
					require.NoError(t, err)
					testkit.Check(t, "P5, "+kind+", "+how, testkit.AtMost(len(ops), "requests", 3), testkit.Exactly(time.Since(start), " waited", 0))
					w.engine.Restore(again)
				}
			})
		})
	}
}

// P6: a waiter is there when the holder dies, right after a renewal.
func TestTakeoverFreshCrash(t *testing.T) {
	const lease, skew, poll = 20 * time.Second, 2 * time.Second, 1125 * time.Millisecond // the longest poll, jitter included
	for kind, opts := range leases() {
		for how, expiry := range map[string]lock.Expiry{"recorded or observed": lock.RecordedOrObserved, "observed": lock.ObservedOnly} {
			t.Run(kind+"/"+how, func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					wire := &line{to: w.engine.HTTPClient()}
					c := w.client(lock.Config{Expiry: expiry})
					dead := w.clientOver(wire, lock.Config{})
					l, err := dead.Acquire(ctx, lock.Name("report"), opts...)
					require.NoError(t, err)
					if opts == nil { // until a renewal has just gone through
						before := l.Remaining()
						for l.Remaining() <= before {
							before = l.Remaining()
							time.Sleep(10 * time.Millisecond)
						}
					}
					wire.cut(refused)
					start := time.Now()
					next, err := c.Acquire(ctx, lock.Name("report"))
					require.NoError(t, err)
					took := time.Since(start)
					testkit.Check(t, "P6, "+kind+", "+how, testkit.AtMost(took, "", lease+skew+poll), testkit.AtLeast(took, "", lease-10*time.Millisecond))
					require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
					wire.cut(open)
					require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
					require.NoError(t, next.Write(ctx, w.put("x")))
				})
			})
		}
	}
}

// If the row at the key of a holder's session is malformed, or of another type, the waiter is told. The row is not read
// again and again.
func TestTakeover_MalformedSessionIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		spoil []table.Change
		want  error
	}{
		"foreign":         {[]table.Change{table.Attr("type").Set("Order")}, lock.ErrMalformed},
		"without a lease": {[]table.Change{table.Attr("lease").Remove()}, lock.ErrMalformed},
		"beat is text":    {[]table.Change{table.Attr("beat").Set("x")}, lock.ErrMalformed},
		"without a beat":  {[]table.Change{table.Attr("beat").Remove(), table.Attr("expires").Remove()}, lock.ErrMalformed},
		"without a type":  {[]table.Change{table.Attr("type").Remove()}, lock.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				holder, waiter := w.clientOver(wire, lock.Config{}), w.client(lock.Config{})
				_, err := holder.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				wire.cut(refused)
				require.NoError(t, w.table.Write(ctx, table.Update(sessionKey(holder), c.spoil...)))
				before, err := w.table.Get(ctx, sessionKey(holder), true)
				require.NoError(t, err)
				bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
				ops := w.requests(func() { _, err = waiter.Acquire(bounded, lock.Name("report")) })
				require.ErrorIs(t, err, c.want)
				assert.LessOrEqual(t, len(ops), 5)
				after, err := w.table.Get(ctx, sessionKey(holder), true)
				require.NoError(t, err)
				assert.True(t, attrvalue.SameItem(before, after), "it was changed")
			})
		})
	}
}

// A session is dead however long ago its death was recorded: its holder cannot renew it any more.
func TestTakeover_SessionThatDiedAtZero(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		holder, waiter := w.clientOver(way, lock.Config{}), w.client(lock.Config{})
		_, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(refused)
		require.NoError(t, w.table.Write(ctx, table.Update(sessionKey(holder), table.Attr("dead").Set(0))))
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		l, err := waiter.Acquire(bounded, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
	})
}

// Readers that died long ago are taken out of the line. Somebody else who has come meanwhile keeps the lock, or the place.
func TestTryAcquire_FromDeadReadersTakesNothingFromTheLiving(t *testing.T) {
	for name, late := range map[string]time.Duration{
		"a writer that holds": 6 * time.Second,
		"a writer that waits": time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				for range 2 {
					require.NoError(t, errOf(w.clientOver(wire, quiet).Acquire(ctx, catalogue, lock.Shared())))
				}
				wire.cut(refused)
				time.Sleep(time.Hour)
				writer, c := w.client(quiet), w.client(quiet)
				sent := 0
				w.engine.Inject(tabletest.Fault{
					Kind: tabletest.Delay, For: late, Times: 1, Operation: "UpdateItem", Key: w.table.KeyItem(w.lockKey("catalogue")),
					When: func(tabletest.Request) bool { sent++; return sent == 2 }, // the one that takes the dead out
				})
				tried := make(chan error, 1)
				go func() { tried <- errOf(c.TryAcquire(ctx, catalogue)) }()
				time.Sleep(min(late-time.Millisecond, 2*time.Second))
				l, err := writer.Acquire(ctx, catalogue)
				require.NoError(t, err)
				require.ErrorIs(t, <-tried, lock.ErrHeld)
				require.NoError(t, l.Write(ctx, w.put("x")))
				require.NoError(t, l.Release(ctx))
			})
		})
	}
}

// A call takes a lock from any number of readers that died long ago.
func TestTryAcquire_TakesFromManyDeadReaders(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wire := &line{to: w.engine.HTTPClient()}
		dead := w.clientOver(wire, quiet)
		for range 60 {
			require.NoError(t, errOf(dead.Acquire(ctx, catalogue, lock.Shared())))
		}
		wire.cut(refused)
		time.Sleep(time.Hour)
		l, err := w.client(quiet).TryAcquire(ctx, catalogue)
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
	})
}

// However many hold a lock and live, a call that is refused asks for one of them at most.
func TestTryAcquire_OfManyLivingHoldersCostsTwoRequests(t *testing.T) {
	for name, tc := range map[string]struct{ holders, call []lock.Option }{
		"readers": {[]lock.Option{lock.Shared()}, nil},
		"permits": {[]lock.Option{lock.Permits(20)}, []lock.Option{lock.Permits(20)}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				for _, c := range w.clients(20) {
					require.NoError(t, errOf(c.Acquire(ctx, exports, tc.holders...)))
				}
				time.Sleep(time.Minute)
				for call, most := range map[string]int{"TryAcquire": 2, "Acquire": 3} { // which enters the line, and leaves it
					writes := 0
					c := w.clientOver(w.passing(func(operation, _ string, send func() (*http.Response, error)) (*http.Response, error) {
						if operation == "UpdateItem" {
							writes++
						}
						return send()
					}), quiet)
					f := c.TryAcquire
					if call == "Acquire" {
						f = c.Acquire
					}
					short, cancel := context.WithTimeout(ctx, time.Second)
					writes = 0
					require.ErrorIs(t, errOf(f(short, exports, tc.call...)), lock.ErrHeld)
					assert.LessOrEqual(t, writes, most, call)
					cancel()
				}
			})
		})
	}
}

// Holders that came just now cannot be dead, and nothing is asked about them.
func TestTryAcquire_OfPermitsThatAreHeldCostsOneWrite(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		const n = 20
		for range n {
			_, err := w.client(quiet).Acquire(ctx, lock.Name("pool"), lock.Permits(n))
			require.NoError(t, err)
		}
		c := w.client(quiet)
		for range 2 {
			ops := w.requests(func() {
				_, err := c.TryAcquire(ctx, lock.Name("pool"), lock.Permits(n))
				require.ErrorIs(t, err, lock.ErrHeld)
			})
			var reads int
			for _, r := range w.engine.Requests() {
				if r.Operation == "BatchGetItem" {
					reads += len(r.Keys)
				}
			}
			t.Log(ops, reads)
			assert.Equal(t, []string{"UpdateItem"}, ops)
			time.Sleep(time.Second)
		}
	})
}

// The request that takes a lock from a dead holder hangs. It is repeated in time, also if the application has set no
// timeout for requests.
func TestTakeover_HungRequestIsRepeated(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"default timeout": 0, "no timeout": -1} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way := &line{to: w.engine.HTTPClient()}
				l, err := w.clientOver(way, quiet).Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				way.cut(refused)
				start := time.Now()
				got := acquireFor(ctx, time.Hour, w.client(quiet, table.WithRetry(table.Retry{Timeout: timeout})), lock.Name("report"))
				w.engine.Inject(tabletest.Fault{
					Kind: tabletest.Delay, For: 240 * time.Hour, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 1,
				})
				require.NotNil(t, <-got)
				assert.Less(t, time.Since(start), 35*time.Second)
			})
		})
	}
}

// Holder and waiter have died long ago. TryAcquire takes the lock from both.
func TestTryAcquire_TakesFromADeadHolderAndItsDeadWaiter(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, holder, other *lock.Client){
		"of two processes": func(ctx context.Context, _, other *lock.Client) { acquireAsync(ctx, other, names(1)[0]) },
		"of one": func(ctx context.Context, holder, _ *lock.Client) {
			go func() { _, _ = holder.AcquireAll(ctx, names(2)) }()
			time.Sleep(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				way := &line{to: w.engine.HTTPClient()}
				holder, other, c := w.clientOver(way, quiet), w.clientOver(way, quiet), w.client(quiet)
				require.NoError(t, errOf(holder.Acquire(ctx, names(1)[0])))
				waiting, cancel := context.WithCancel(ctx)
				defer cancel()
				wait(waiting, holder, other)
				way.cut(refused)
				time.Sleep(10 * time.Minute)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.ExpiredCredentials, Operation: "UpdateItem", Key: w.table.KeyItem(w.lockKey("n00")), Every: 2, Times: 1})
				err := errOf(c.TryAcquire(ctx, names(1)[0]))
				require.ErrorIs(t, err, table.ErrCredentials, "the one that removes the waiter")
				require.NotErrorIs(t, err, lock.ErrHeld)
				require.NoError(t, errOf(c.TryAcquire(ctx, names(1)[0])))
			})
		})
	}
}

// A process that only tries takes the lock from a dead holder also if recorded times do not tell that it is dead. Likewise a reader
// passes a writer that died while it waited for other readers.
func TestTryAcquire_PassesTheDeadThatItHasSeen(t *testing.T) {
	off := table.WithClock(func() time.Time { return time.Now().Add(-5 * time.Second) })
	for name, tc := range map[string]struct {
		config lock.Config
		clock  []table.Option
		every  time.Duration
	}{
		"recorded":                    {lock.Config{}, nil, 500 * time.Millisecond},
		"observed only":               {lock.Config{Expiry: lock.ObservedOnly}, nil, 500 * time.Millisecond},
		"observed only, rarely tried": {lock.Config{Expiry: lock.ObservedOnly}, nil, 45 * time.Second},
		"clock is off":                {lock.Config{}, []table.Option{off}, 500 * time.Millisecond},
	} {
		for what, call := range map[string]func(ctx context.Context, w *world, dies *lock.Client) []lock.Option{
			"holder": func(ctx context.Context, _ *world, dies *lock.Client) []lock.Option {
				require.NoError(t, errOf(dies.Acquire(ctx, catalogue)))
				return nil
			},
			"waiting writer": func(ctx context.Context, w *world, dies *lock.Client) []lock.Option {
				w.readers(ctx, 2)
				acquireAsync(ctx, dies, catalogue)
				time.Sleep(time.Second)
				return []lock.Option{lock.Shared()}
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					way := &line{to: w.engine.HTTPClient()}
					opts := call(ctx, w, w.clientOver(way, quiet))
					tc.config.Logger = quiet.Logger
					c := w.client(tc.config, tc.clock...)
					tried := func(long time.Duration) (err error) {
						err = lock.ErrHeld
						for end := time.Now().Add(long); errors.Is(err, lock.ErrHeld) && time.Now().Before(end); time.Sleep(tc.every) {
							_, err = c.TryAcquire(ctx, catalogue, opts...)
						}
						return err
					}
					require.ErrorIs(t, tried(5*time.Minute), lock.ErrHeld, "it lives")
					way.cut(refused)
					require.NoError(t, tried(25*time.Second+2*tc.every))
				})
			})
		}
	}
}

// A try finds a holder that died long ago. Before it takes the lock, another client has taken and released it: the lock is free.
func TestTryAcquire_TakesAFreeLockThatHadADeadHolder(t *testing.T) {
	for name, try := range map[string]func(ctx context.Context, c *lock.Client) error{
		"one":     func(ctx context.Context, c *lock.Client) error { return errOf(c.TryAcquire(ctx, names(1)[0])) },
		"several": func(ctx context.Context, c *lock.Client) error { return errOf(c.TryAcquireAll(ctx, names(2))) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				other := w.client(quiet)
				var writes atomic.Int64
				c := w.clientOver(&line{to: roundTrip(func(r *http.Request) (*http.Response, error) {
					op := r.Header.Get("X-Amz-Target")
					if (strings.HasSuffix(op, "UpdateItem") || strings.HasSuffix(op, "TransactWriteItems")) && writes.Add(1) == 2 {
						l, err := other.TryAcquire(ctx, names(1)[0])
						assert.NoError(t, err)
						assert.NoError(t, l.Release(ctx))
					}
					return w.engine.HTTPClient().Do(r)
				})}, quiet)
				require.NoError(t, errOf(w.client(quiet).Acquire(ctx, names(1)[0], lock.Fixed(time.Second))))
				time.Sleep(time.Minute)
				require.NoError(t, errOf(c.Acquire(ctx, lock.Name("warm up"))))
				writes.Store(0)
				require.NoError(t, try(ctx, c))
				assert.GreaterOrEqual(t, writes.Load(), int64(2))
			})
		})
	}
}
