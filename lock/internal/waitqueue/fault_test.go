package waitqueue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
	"github.com/mortise-go/mortise/table"
)

var errOutage = errors.New("no route to host")

// always answers every request with err.
func always(err error) func(context.Context, []keys.Key) error {
	return func(context.Context, []keys.Key) error { return err }
}

// hangs lets requests hang that have the key.
func hangs(key keys.Key) func(context.Context, []keys.Key) error {
	return func(ctx context.Context, list []keys.Key) error {
		if !slices.Contains(list, key) {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// without leaves the key out of every answer.
func without(key keys.Key, why error) func(context.Context, []keys.Key) error {
	return func(_ context.Context, list []keys.Key) error {
		if !slices.Contains(list, key) {
			return nil
		}
		return &table.UnprocessedError{Keys: []keys.Key{key}, Err: why}
	}
}

// Waiting goes on through an outage of hours, at the cost of a request every 5 s. What has piled up is read within the
// bound on the rate.
func TestPoller_GoesOnThroughAnOutage(t *testing.T) {
	for name, err := range map[string]error{
		"error":              errOutage,
		"of a batch, no key": &table.UnprocessedError{Err: errOutage},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
				const n = 2000
				logs := make([]*log, n)
				for i := range n {
					logs[i] = newLog(t, key(i))
					watch(p, key(i), time.Duration(i)*ms, logs[i].each(10*time.Second))
				}
				pause(20 * time.Second)
				synctest.Wait()
				r.answers(func(_ context.Context, list []keys.Key) error {
					var part *table.UnprocessedError
					if errors.As(err, &part) {
						return &table.UnprocessedError{Keys: list, Err: part.Err}
					}
					return err
				})
				pause(20 * time.Second) // until the backoff is at its longest
				r.sent()
				start := time.Now()
				pause(3 * time.Hour)
				synctest.Wait()
				during := r.sent()
				r.answers(nil)
				assert.InDelta(t, 3*3600/5, len(during), 200)
				pause(15 * time.Second)
				synctest.Wait()
				for _, l := range logs {
					last := l.looks()[len(l.looks())-1]
					require.Greater(t, last.At, start.Add(3*time.Hour))
					require.NoError(t, last.Err)
				}
				bounded(t, r.sent())
			})
		})
	}
}

// A short interruption delays a look by little more than itself.
func TestPoller_ShortOutageDelaysLittle(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
		r.answers(always(errOutage))
		l := newLog(t, key(1))
		watch(p, key(1), 0, l.each(time.Hour))
		pause(time.Second)
		assert.Empty(t, l.looks())
		r.answers(nil)
		pause(1500 * ms)
		assert.Len(t, l.looks(), 1)
		first := r.sent()
		assert.GreaterOrEqual(t, first[1].at.Sub(first[0].at), 26*ms)
		assert.LessOrEqual(t, first[1].at.Sub(first[0].at), 76*ms)
	})
}

func TestPoller_TellsAFatalError(t *testing.T) {
	for name, err := range map[string]error{
		"error":      errDenied,
		"of a batch": &table.UnprocessedError{Keys: []keys.Key{key(1), key(2)}, Err: errDenied},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
				a, b, other := newLog(t, key(1)), newLog(t, key(2)), newLog(t, key(3))
				r.answers(always(err))
				watch(p, key(1), 0, a.each(-1))
				watch(p, key(2), 0, b.each(100*ms))
				watch(p, key(3), time.Second, other.each(time.Hour))
				pause(50 * ms)
				r.answers(nil)
				pause(time.Second)
				for _, l := range []*log{a, b} {
					require.ErrorIs(t, l.looks()[0].Err, errDenied)
					require.Nil(t, l.looks()[0].Item)
				}
				assert.Len(t, a.looks(), 1, "it has ended its watch")
				assert.NoError(t, b.looks()[1].Err, "it has not")
				require.Len(t, other.looks(), 1)
				assert.NoError(t, other.looks()[0].Err)
			})
		})
	}
}

// What came with an error for other rows is not lost.
func TestPoller_FatalErrorOfSomeRowsLosesNoOthers(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
		a, b := newLog(t, key(1)), newLog(t, key(2))
		r.answers(without(key(1), errDenied))
		watch(p, key(1), 10*ms, a.each(-1))
		watch(p, key(2), 10*ms, b.each(-1))
		pause(time.Second)
		require.Len(t, a.looks(), 1)
		require.ErrorIs(t, a.looks()[0].Err, errDenied)
		require.Len(t, b.looks(), 1)
		require.NoError(t, b.looks()[0].Err)
	})
}

// Rows that DynamoDB leaves out are asked for again, less and less often. The others do not notice.
func TestPoller_AsksAgainForUnprocessedRows(t *testing.T) {
	inTime(t, waitqueue.PollerConfig{}, func(r *reader, p *waitqueue.Poller) {
		throttled, other := newLog(t, key(1)), newLog(t, key(2))
		r.answers(without(key(1), table.ErrThrottled))
		watch(p, key(1), 0, throttled.each(100*ms))
		watch(p, key(2), 0, other.each(100*ms))
		pause(10 * time.Minute)
		assert.Empty(t, throttled.looks())
		assert.Greater(t, len(other.looks()), 10*60*10*9/10)
		var asked int
		for _, q := range r.sent() {
			if slices.Contains(q.list, key(1)) {
				asked++
			}
		}
		assert.InDelta(t, 10*60/5, asked, 40)
		r.answers(nil)
		pause(8 * time.Second)
		require.NotEmpty(t, throttled.looks())
		n := len(throttled.looks())
		pause(10 * time.Second)
		assert.Greater(t, len(throttled.looks()), n+80, "as often as before")
	})
}

// A row whose reads hang soon hangs alone, wherever it is in the order. The others are read meanwhile.
func TestPoller_RowThatHangsHangsAlone(t *testing.T) {
	const duration = 3 * time.Minute
	for _, n := range []int{2, 10, 120} {
		for _, bad := range []int{0, n - 1} {
			t.Run(fmt.Sprintf("%d of %d", bad, n), func(t *testing.T) {
				inTime(t, waitqueue.PollerConfig{Timeout: time.Second}, func(r *reader, p *waitqueue.Poller) {
					r.answers(hangs(key(bad)))
					var last, longest time.Duration
					logs := make([]*log, n)
					for i := range n {
						logs[i] = newLog(t, key(i))
						watch(p, key(i), 10*ms, logs[i].each(100*ms))
					}
					pause(duration)
					for i, l := range logs {
						last = 0
						if i == bad {
							assert.Empty(t, l.looks())
							continue
						}
						for _, at := range append(l.times(), duration) {
							last, longest = at, max(longest, at-last)
						}
					}
					t.Logf("longest time without a look at another row: %v", longest)
					assert.Less(t, longest, 20*time.Second)
					r.answers(nil)
					pause(10 * time.Second)
					assert.NotEmpty(t, logs[bad].looks)
				})
			})
		}
	}
}

// A read that ran into its timeout is repeated, whatever Fatal says of such errors.
func TestPoller_TimeoutIsNotFatal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{t: t, latency: time.Hour}
		p := waitqueue.NewPoller(waitqueue.PollerConfig{
			Machine: machine.Real{}, Read: r.Read, Timeout: time.Second,
			Fatal: func(error) bool { return true },
		})
		defer p.Close()
		l := newLog(t, key(1))
		watch(p, key(1), 0, l.each(time.Hour))
		pause(5 * time.Second)
		r.mu.Lock()
		r.latency = 0
		r.mu.Unlock()
		pause(10 * time.Second)
		require.Len(t, l.looks(), 1)
		assert.NoError(t, l.looks()[0].Err)
	})
}

// An answer that is too short is no answer for the rows that are missing, and no reason to panic.
func TestPoller_ShortAnswerIsNoneForWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []int
		p := waitqueue.NewPoller(waitqueue.PollerConfig{
			Machine: machine.Real{}, Fatal: never, Timeout: 5 * time.Second,
			Read: func(_ context.Context, list []keys.Key) ([]table.Item, error) {
				asked = append(asked, len(list))
				return make([]table.Item, 1), nil
			},
		})
		defer p.Close()
		told := map[int]int{}
		for i := range 3 {
			watch(p, key(i), time.Millisecond, func(look waitqueue.Look) time.Duration {
				told[i]++
				assert.Nil(t, look.Item)
				assert.NoError(t, look.Err)
				return -1
			})
		}
		pause(time.Minute)
		assert.Equal(t, map[int]int{0: 1, 1: 1, 2: 1}, told)
		assert.Equal(t, 3, asked[0])
	})
}
