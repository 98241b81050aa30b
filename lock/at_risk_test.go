package lock_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// alarms are the calls of OnAtRisk.
type alarms struct {
	mu   sync.Mutex
	list []bool
	at   []time.Time
}

func (a *alarms) hear(atRisk bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list, a.at = append(a.list, atRisk), append(a.at, time.Now())
}

func (a *alarms) heard() []bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]bool{}, a.list...)
}

// A holder is told once when its locks are at risk, and once when they are safe again.
func TestOnAtRisk_IsCalledOnceEachWay(t *testing.T) {
	for name, atRisk := range map[string]float64{"half of the lease": 0.5, "a quarter": 0.25} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				const lease = 20 * time.Second
				var heard alarms
				config := quiet
				config.OnAtRisk, config.AtRisk = heard.hear, atRisk
				way := &line{to: w.engine.HTTPClient()}
				c := w.clientOver(way, config)
				list := make([]*lock.Lease, 10)
				for i, target := range names(len(list)) {
					var err error
					list[i], err = c.Acquire(ctx, target)
					require.NoError(t, err)
				}
				time.Sleep(time.Hour)
				require.Empty(t, heard.heard(), "renewals go through")

				way.cut(refused)
				least := time.Duration(atRisk * float64(lease))
				for len(heard.heard()) == 0 && list[0].Context().Err() == nil {
					time.Sleep(100 * time.Millisecond)
				}
				assert.InDelta(t, least, list[0].Remaining(), float64(lease/20))
				require.NoError(t, list[0].Context().Err(), "it was told before")
				time.Sleep(2 * time.Second)
				assert.Equal(t, []bool{true}, heard.heard())

				way.cut(open)
				time.Sleep(3 * time.Second)
				assert.Equal(t, []bool{true, false}, heard.heard())
				time.Sleep(time.Hour)
				assert.Equal(t, []bool{true, false}, heard.heard())
				for _, l := range list {
					require.NoError(t, context.Cause(l.Context()))
					require.NoError(t, l.Release(ctx))
				}
			})
		})
	}
}

// A session that was opened for callers that have given up is safe once a later one uses it.
func TestOnAtRisk_EndsWithASessionThatWasOpenedForOthers(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var heard alarms
		config := quiet
		config.OnAtRisk = heard.hear
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, config)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(refused)
		<-l.Context().Done()
		require.Equal(t, []bool{true}, heard.heard())
		way.cut(open)
		opensAndGivesUp(ctx, w, c)
		require.NoError(t, errOf(c.Acquire(ctx, lock.Name("other"))))
		assert.Equal(t, []bool{true, false}, heard.heard())
	})
}

// A renewal that hangs does not delay it.
func TestOnAtRisk_IsToldWhileARenewalHangs(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var heard alarms
		config := quiet
		config.OnAtRisk, config.Lease = heard.hear, lock.MinLease
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, config)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		way.cut(hung)
		for len(heard.heard()) == 0 && l.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		assert.InDelta(t, 495*time.Millisecond, l.Remaining(), float64(2*time.Millisecond), "half of the lease less the margin")
		way.cut(open)
	})
}

// Each outage is reported, also one that lasts longer than the lease.
func TestOnAtRisk_TellsOfEachOutage(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var heard alarms
		config := quiet
		config.OnAtRisk, config.AtRisk = heard.hear, 0.25
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, config)
		want := []bool{}
		for _, lasts := range []time.Duration{4 * time.Second, 17 * time.Second, time.Minute, 17 * time.Second} {
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			time.Sleep(time.Minute)
			way.cut(refused)
			time.Sleep(lasts)
			way.cut(open)
			time.Sleep(10 * time.Second)
			if lasts > 10*time.Second {
				want = append(want, true)
			}
			if l.Context().Err() == nil {
				require.NoError(t, l.Release(ctx))
			}
			l, err = c.Acquire(ctx, lock.Name("other"))
			require.NoError(t, err)
			time.Sleep(10 * time.Second)
			if lasts > 10*time.Second {
				want = append(want, false)
			}
			assert.Equal(t, want, heard.heard(), "after an outage of %v", lasts)
			require.NoError(t, l.Release(ctx))
		}
	})
}

// A process that holds nothing has nothing at risk.
func TestOnAtRisk_IsNotCalledWithoutLocks(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var heard alarms
		config := quiet
		config.OnAtRisk, config.AtRisk = heard.hear, 0.5
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, config)
		_, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Minute))
		require.NoError(t, err)
		time.Sleep(time.Hour)
		way.cut(refused)
		time.Sleep(time.Hour)
		assert.Empty(t, heard.heard())
	})
}

func TestOnAtRisk_IsAShareOfTheLease(t *testing.T) {
	virtual(t, func(_ context.Context, w *world) {
		for _, share := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
			_, err := lock.New(w.open(), lock.Config{AtRisk: share})
			require.ErrorIs(t, err, lock.ErrInvalid, "%v", share)
			assert.ErrorContains(t, err, "AtRisk", "%v", share)
		}
	})
}

// A lock that is acquired under a session that was idle is not at risk: no renewal has failed, or is late.
func TestOnAtRisk_IsNotCalledForASessionThatWasIdle(t *testing.T) {
	for _, tc := range []struct{ lease, latency, from time.Duration }{
		{20 * time.Second, 0, 9 * time.Second},
		{time.Second, 0, 380 * time.Millisecond},
		{time.Second, 30 * time.Millisecond, 380 * time.Millisecond},
		{time.Second, 60 * time.Millisecond, 380 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("leases of %v, latency %v", tc.lease, tc.latency), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				w.guardian = nil
				w.latency(tc.latency)
				step, alarmed, sick := tc.lease/1000, 0, 0
				for i := range 100 {
					var heard alarms
					config := quiet
					config.OnAtRisk, config.Lease = heard.hear, tc.lease
					c := w.client(config)
					time.Sleep(tc.from + time.Duration(i)*step - 2*tc.latency)
					l, err := c.Acquire(ctx, lock.Name("report"))
					require.NoError(t, err)
					healthy := true
					for range 300 {
						time.Sleep(step)
						healthy = healthy && c.Healthy(ctx) == nil
					}
					require.NoError(t, l.Release(ctx))
					if len(heard.heard()) > 0 {
						alarmed++
					}
					if !healthy {
						sick++
					}
				}
				assert.Zero(t, alarmed, "of 100 clients")
				assert.Zero(t, sick, "of 100 clients")
			})
		})
	}
}

// What OnAtRisk was told last is how it is, also where it takes its time.
func TestOnAtRisk_EndsWithWhatIsSo(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var heard alarms
		config := quiet
		config.OnAtRisk = func(atRisk bool) {
			if atRisk {
				time.Sleep(2 * time.Second)
			}
			heard.hear(atRisk)
		}
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, config)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		way.cut(refused)
		for l.Remaining() > 9900*time.Millisecond {
			time.Sleep(10 * time.Millisecond)
		}
		way.cut(open)
		time.Sleep(time.Hour)
		assert.Equal(t, []bool{true, false}, heard.heard())
	})
}

// A panic of OnAtRisk reaches the caller that opens the next session, which may recover it.
func TestOnAtRisk_PanicReachesTheCaller(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		config := quiet
		config.OnAtRisk = func(atRisk bool) {
			if !atRisk {
				panic("mine")
			}
		}
		c := w.clientOver(way, config)
		_, err := c.Acquire(ctx, lock.Name("a"))
		require.NoError(t, err)
		way.cut(refused)
		time.Sleep(time.Minute)
		way.cut(open)
		func() {
			defer func() { assert.Equal(t, "mine", recover()) }()
			_, _ = c.Acquire(ctx, lock.Name("b"))
		}()
		_ = table.ErrNotFound
	})
}

// A waiter can get a session by a pass without that OnAtRisk is told that it was opened. The next call must not tell that while it is at risk.
func TestOnAtRisk_IsNotTakenBackByTheNextCall(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var heard alarms
		config := quiet
		config.OnAtRisk = heard.hear
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, config)
		fixed, err := c.Acquire(ctx, lock.Name("a"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		got := make(chan *lock.Lease, 1)
		go func() {
			l, err := c.Acquire(ctx, lock.Name("a"))
			assert.NoError(t, err)
			got <- l
		}()
		time.Sleep(40 * time.Second) // the waiter's session ends, since nothing depends on it
		opensAndGivesUp(ctx, w, c)
		require.NoError(t, fixed.Release(ctx))
		l := <-got
		way.cut(refused)
		for len(heard.heard()) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		require.Error(t, errOf(c.Acquire(short, lock.Name("third"))))
		assert.Equal(t, []bool{true}, heard.heard(), "still at risk: %v", l.Remaining())
		way.cut(open)
	})
}

// opensAndGivesUp makes a call that opens a session, and gives up before the session is open.
func opensAndGivesUp(ctx context.Context, w *world, c *lock.Client) {
	w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, Times: 1})
	hasty, cancel := context.WithTimeout(ctx, time.Second/2)
	defer cancel()
	require.ErrorIs(w, errOf(c.Acquire(hasty, lock.Name("other"))), context.DeadlineExceeded)
	time.Sleep(time.Second)
}
